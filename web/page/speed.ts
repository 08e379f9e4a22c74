/** The second section: plain and speculative decoding in turns, on the same prompt and seeds. */

import type { LanguageModel } from "journee-web";
import { announce } from "./announce";
import { find, make } from "./dom";
import { clearFailure, showFailure } from "./failures";
import { percent, rate } from "./format";
import { JobButton, type Jobs } from "./jobs";
import { type Asked, drafting, type Form, freshSeed } from "./options";
import { tokensPerSecond } from "./summary";

type Way = "plain" | "speculative";
type Speeds = Record<Way, number[]>;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 ? upper : (upper + (sorted[middle - 1] ?? NaN)) / 2;
}

/** Speculative over plain, seed by seed. */
export function ratios(speeds: Readonly<Speeds>): number[] {
  return speeds.speculative.flatMap((fast, i) => {
    const plain = speeds.plain[i];
    return plain === undefined ? [] : [fast / plain];
  });
}

export class SpeedSection {
  private readonly progress = find("speed-progress", HTMLElement);
  private readonly result = find("speed-result", HTMLElement);
  private readonly failure = find("speed-failure", HTMLElement);
  private readonly seeds = find("speed-seeds", HTMLSelectElement);

  constructor(
    private readonly model: LanguageModel,
    private readonly form: Form,
    jobs: Jobs,
  ) {
    if (model.info.draft === "none") {
      this.progress.textContent = "There is no draft to compare with.";
      return;
    }
    const button = new JobButton(find("compare", HTMLButtonElement), jobs, (signal) => this.run(signal));
    find("compare", HTMLButtonElement).addEventListener("click", () => void button.press());
    button.enable();
  }

  private async run(signal: AbortSignal): Promise<void> {
    clearFailure(this.failure);
    const asked = this.form.read();
    if (!asked) return;
    const speeds: Speeds = { plain: [], speculative: [] };
    announce("Comparing speed.");
    try {
      await this.compare(asked, speeds, signal);
      this.progress.textContent = "";
      announce(sentence(speeds));
    } catch (error) {
      this.progress.textContent = signal.aborted ? "Stopped." : "";
      if (!signal.aborted) showFailure(this.failure, error);
    }
  }

  private async compare(asked: Asked, speeds: Speeds, signal: AbortSignal): Promise<void> {
    const pairs = Number(this.seeds.value);
    const few = { ...asked, options: { ...asked.options, maxNewTokens: Math.min(8, asked.options.maxNewTokens ?? 8) } };
    this.progress.textContent = "Warming up";
    for (const way of ["plain", "speculative"] as const) await this.measure(few, way, freshSeed(), signal);
    for (let i = 0; i < pairs; i++) {
      const seed = freshSeed();
      const order: readonly Way[] = i % 2 ? ["speculative", "plain"] : ["plain", "speculative"];
      for (const way of order) {
        this.progress.textContent = `Seed ${i + 1} of ${pairs}, ${way}`;
        speeds[way].push(await this.measure(asked, way, seed, signal));
        this.show(speeds);
      }
    }
  }

  private async measure(asked: Asked, way: Way, seed: bigint, signal: AbortSignal): Promise<number> {
    const options = { ...drafting(asked, way === "speculative"), seed, signal };
    return tokensPerSecond(await this.model.generate(asked.prompt, options));
  }

  private show(speeds: Speeds): void {
    const largest = Math.max(...speeds.plain, ...speeds.speculative) * 1.05;
    this.result.replaceChildren(
      make("div", { class: "speeds" }, ...row("plain", speeds.plain, largest), ...row("speculative", speeds.speculative, largest)),
      make("p", { class: "ratio" }, sentence(speeds)),
      make("p", { class: "note" }, "Bars are medians, dots single runs, in tokens a second, prompt included. Other tabs and a warm processor move them."),
    );
    this.result.hidden = false;
  }
}

function row(way: Way, speeds: readonly number[], largest: number): Node[] {
  const track = make("div", { class: "track tall", "aria-hidden": "true" });
  let words = "not run yet";
  if (speeds.length > 0) {
    const bar = make("span", { class: `bar ${way}` });
    bar.style.width = percent(median(speeds) / largest, 2);
    track.append(bar, ...speeds.map((speed) => dot(speed / largest)));
    const spread = speeds.length > 1 ? ` (${rate(Math.min(...speeds))} to ${rate(Math.max(...speeds))})` : "";
    words = `${rate(median(speeds))}${spread}`;
  }
  return [make("span", { class: "way" }, way), make("span", { class: "value" }, words), track];
}

function dot(share: number): Node {
  const mark = make("span", { class: "dot" });
  mark.style.left = percent(share, 2);
  return mark;
}

function sentence(speeds: Readonly<Speeds>): string {
  const pairs = ratios(speeds);
  if (pairs.length === 0) return "";
  const middle = median(pairs);
  const spread = pairs.length > 1 ? ` (${Math.min(...pairs).toFixed(2)} to ${Math.max(...pairs).toFixed(2)})` : "";
  const told = `Speculative is ${middle.toFixed(2)} times as fast as plain${spread}, over ${pairs.length} ${pairs.length === 1 ? "seed" : "seeds"}.`;
  return middle < 1 ? `${told} Drafting doesn't pay with these options on this machine: another K, or auto, may.` : told;
}
