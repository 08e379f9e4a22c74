/**
 * The third section: the law of the next token, seen. The ways take turns in batches, each batch a whole `law` with a seed of its own,
 * so that nothing has to be open at once; batches grow with what is drawn.
 */

import type { LanguageModel, NextToken } from "journee-web";
import { announce } from "./announce";
import { chanceLine, curve, type Point, type Points, sample } from "./curve";
import { find, make } from "./dom";
import { clearFailure, showFailure } from "./failures";
import { whole } from "./format";
import { Histograms, histogramLegend, TITLES, WAYS, type Way } from "./histograms";
import { JobButton, type Jobs } from "./jobs";
import { chance, distance, limit, wrongLaw } from "./laws";
import { Names } from "./names";
import { type Asked, type Form, freshSeed } from "./options";

const FIRST_BATCH = 200;
const GROWTH = 0.25;

/** Counts of one way so far. */
interface Tally {
  counts: Uint32Array;
  draws: number;
}

export class ExactnessSection {
  private readonly progress = find("draw-progress", HTMLElement);
  private readonly place = find("law", HTMLElement);
  private readonly failure = find("exactness-failure", HTMLElement);
  private readonly pause = find("pause", HTMLButtonElement);
  private readonly wanted = find("draws", HTMLSelectElement);
  private readonly names: Names;
  private resume: (() => void) | null = null;
  private paused = false;
  private view: LawView | null = null;

  constructor(
    private readonly model: LanguageModel,
    private readonly form: Form,
    jobs: Jobs,
  ) {
    this.names = new Names(model);
    const draw = find("draw", HTMLButtonElement);
    const button = new JobButton(draw, jobs, (signal) => this.run(signal));
    draw.addEventListener("click", () => void button.press());
    this.pause.addEventListener("click", () => this.toggle());
    new ResizeObserver(() => this.view?.drawCurve()).observe(this.place);
    button.enable();
  }

  private toggle(): void {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Go on" : "Pause";
    announce(this.paused ? "Paused." : "Going on.");
    if (!this.paused) this.resume?.();
  }

  private async run(signal: AbortSignal): Promise<void> {
    clearFailure(this.failure);
    const asked = this.form.read();
    if (!asked) return;
    this.paused = false;
    this.pause.textContent = "Pause";
    this.pause.hidden = false;
    announce("Drawing.");
    try {
      await this.draw(asked, signal);
      this.progress.textContent = "";
      announce(this.view?.spoken() ?? "");
    } catch (error) {
      this.progress.textContent = signal.aborted ? "Stopped." : "";
      if (!signal.aborted) showFailure(this.failure, error);
    } finally {
      if (document.activeElement === this.pause) find("draw", HTMLButtonElement).focus();
      this.pause.hidden = true;
    }
  }

  private async draw(asked: Asked, signal: AbortSignal): Promise<void> {
    const { temperature = 1, topK = 0, topP = 1, rule = "residual" } = asked.options;
    const options = { temperature, topK, topP, signal };
    const law = await this.model.nextToken(asked.prompt, options);
    const draws = Number(this.wanted.value);
    const view = new LawView(this.place, law, draws, this.names);
    this.view = view;
    for (let done = 0; done < draws; ) {
      const batch = Math.min(draws - done, Math.max(FIRST_BATCH, Math.ceil(done * GROWTH)));
      for (const way of view.ways) {
        const chosen = { ...options, rule: way === "wrong" ? ("residual" as const) : rule, way, draws: batch, every: FIRST_BATCH, seed: freshSeed() };
        for await (const { counts, draws: drawn } of this.model.law(asked.prompt, chosen)) {
          view.add(way, counts, drawn);
          await this.goOn(signal);
        }
        view.close(way);
      }
      done += batch;
      this.progress.textContent = `${whole(done)} of ${whole(draws)} draws each`;
    }
  }

  /** Let the page breathe and, when paused, wait. */
  private async goOn(signal: AbortSignal): Promise<void> {
    while (this.paused && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.resume = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    signal.throwIfAborted();
  }
}

/** What is seen: histograms, distances, curve. */
class LawView {
  readonly ways: readonly Way[];
  private readonly before: Record<Way, Tally>;
  private readonly now: Record<Way, Tally>;
  private readonly points: Record<Way, [number, number][]> = { plain: [], speculative: [], wrong: [] };
  private readonly histograms: Histograms;
  private readonly figure = make("div", { class: "figure-place" });
  private readonly caption = make("caption");
  private readonly table = make("tbody");
  private readonly bound: number | null;
  private readonly chances: readonly Point[];
  private waiting = false;

  constructor(
    private readonly place: HTMLElement,
    private readonly law: NextToken,
    draws: number,
    names: Names,
  ) {
    this.ways = law.q ? WAYS : ["plain"];
    const empty = (): Tally => ({ counts: new Uint32Array(law.p.length), draws: 0 });
    this.before = { plain: empty(), speculative: empty(), wrong: empty() };
    this.now = { plain: empty(), speculative: empty(), wrong: empty() };
    this.bound = law.q ? distance(wrongLaw(law.p, law.q), 1, law.p) : null;
    this.chances = chanceLine(law.p, draws);
    this.histograms = new Histograms(law.p, this.ways, names);
    this.build();
  }

  /** The running counts of a batch of one way. */
  add(way: Way, counts: Uint32Array, draws: number): void {
    const { counts: base, draws: done } = this.before[way];
    this.now[way] = { counts: counts.map((each, i) => each + (base[i] ?? 0)), draws: done + draws };
    this.points[way].push([done + draws, distance(this.now[way].counts, done + draws, this.law.p)]);
    this.soon();
  }

  /** The batch is complete. */
  close(way: Way): void {
    this.before[way] = this.now[way];
  }

  drawCurve(): void {
    const width = Math.max(240, Math.round(this.figure.clientWidth));
    const points: Points = this.points;
    this.figure.replaceChildren(curve({ points, chances: this.chances, bound: this.bound }, width));
  }

  /** The outcome in a sentence, for a screen reader. */
  spoken(): string {
    const told = this.ways.map((way) => `${TITLES[way]}: ${this.judged(way).distance.toFixed(4)}, ${this.judged(way).words}`);
    return `Distances to p after ${whole(this.now.plain.draws)} draws. ${told.join(". ")}.`;
  }

  private build(): void {
    const parts: Node[] = [];
    if (!this.law.q) parts.push(make("p", { class: "note" }, "There is no draft here: plain decoding alone is drawn."));
    const heads = ["drawn by", "distance to p", "by chance"].map((head) => make("th", { scope: "col" }, head));
    parts.push(
      make("table", { class: "distances" }, this.caption, make("thead", {}, make("tr", {}, ...heads)), this.table),
      make("h3", {}, "Distance against draws"),
      this.figure,
      this.curveLegend(),
      make("h3", {}, "The laws"),
      histogramLegend(),
      this.histograms.element,
      make("p", { class: "note" }, "“By chance” is the exact expectation of the distance for draws from p itself (De Moivre’s mean deviation of each count). “Beyond chance” is said where true draws would come so far less than once in a million looks (McDiarmid’s inequality)."),
    );
    this.place.replaceChildren(...parts);
    this.place.hidden = false;
    this.show();
  }

  private curveLegend(): Node {
    const items = this.ways.map((way) => make("li", {}, sample(way), ` ${TITLES[way]}`));
    items.push(make("li", {}, make("span", { class: "swatch chance" }), " what chance gives"));
    if (this.bound !== null) items.push(make("li", {}, make("span", { class: "swatch bound" }), " where the mistake is bound for, from p and q"));
    return make("ul", { class: "legend" }, ...items);
  }

  /** At most one drawing a frame. A page in the background is drawn when it is seen again. */
  private soon(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.show();
    });
  }

  private show(): void {
    for (const way of this.ways) this.histograms.fill(way, this.now[way].counts, this.now[way].draws);
    this.histograms.scale();
    this.caption.textContent = `Total variation distance to p after ${whole(this.now[this.ways.at(-1) ?? "plain"].draws)} draws`;
    this.table.replaceChildren(...this.ways.map((way) => this.row(way)));
    this.drawCurve();
  }

  private judged(way: Way): { distance: number; chance: number; words: string; beyond: boolean } {
    const { counts, draws } = this.now[way];
    const found = distance(counts, draws, this.law.p);
    const beyond = found > limit(draws, this.law.p);
    const near = way === "wrong" ? "not yet told from chance" : "within chance";
    return { distance: found, chance: chance(draws, this.law.p), words: beyond ? "beyond chance" : near, beyond };
  }

  private row(way: Way): Node {
    const name = make("th", { scope: "row" }, sample(way), ` ${TITLES[way]}`);
    const draws = this.now[way].draws;
    if (draws === 0) return make("tr", {}, name, ...["–", "–"].map((text) => make("td", {}, text)));
    const { distance: found, chance: expected, words, beyond } = this.judged(way);
    const said = make("span", { class: beyond ? "beyond" : "within" }, words);
    return make("tr", {}, name, make("td", {}, found.toFixed(4), " ", said), make("td", {}, expected.toFixed(4)));
  }
}
