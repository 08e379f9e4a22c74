/** What a run came to: speed, acceptance beside its prediction, target runs a token. */

import type { Generation, Report } from "journee-web";
import { make } from "./dom";
import { percent, rate, seconds } from "./format";

const REASONS: Readonly<Record<string, string>> = {
  "end-of-sequence": "the model ended the text",
  stop: "a stop was reached",
  length: "the limit was reached",
  context: "the model's context is full",
  "": "stopped",
};

export function tokensPerSecond(generation: Generation): number {
  return generation.tokens.length / Math.max(generation.report.seconds, 1e-9);
}

/** How far acceptance strays from its prediction by chance: the standard deviation of a sum of independent verdicts. */
export function chanceOf(report: Report): number | null {
  const chances = report.judgements.flatMap((judgement) => judgement.predicted ?? []);
  if (chances.length === 0) return null;
  return Math.sqrt(chances.reduce((sum, chance) => sum + chance * (1 - chance), 0)) / chances.length;
}

function targetRuns(report: Report): number {
  return report.models["target"]?.runs ?? report.rounds.length;
}

function acceptance(report: Report): string {
  return report.acceptance === null ? "nothing was judged" : `${percent(report.acceptance)} (${report.accepted} of ${report.judged})`;
}

function prediction(report: Report): string {
  if (report.predicted === null) return "–";
  const chance = chanceOf(report);
  return chance === null ? percent(report.predicted) : `${percent(report.predicted)} ± ${percent(chance)} by chance`;
}

export function showSummary(place: HTMLElement, generation: Generation, stopped: boolean): void {
  const { report, tokens } = generation;
  const facts: [string, string, string?][] = [
    ["Speed", `${rate(tokensPerSecond(generation))} tokens/s`, `first token after ${seconds(report.firstSeconds)}`],
    ["Acceptance", acceptance(report), `predicted ${prediction(report)}`],
    ["Target runs a token", tokens.length ? (targetRuns(report) / tokens.length).toFixed(2) : "–", "plain decoding needs about 1"],
    ["Length", `${tokens.length} tokens`, stopped ? "stopped" : (REASONS[report.reason] ?? report.reason)],
    ["Seed", String(report.seed), `rule ${report.rule}`],
    ["Outside the models", seconds(report.controllerSeconds), "controller and arithmetic"],
  ];
  place.replaceChildren(
    ...facts.map(([name, value, more]) => make("div", {}, make("dt", {}, name), make("dd", value.length > 18 ? { class: "long" } : {}, value, make("small", {}, more ?? "")))),
  );
}

/** The end of a run in a sentence, for a screen reader. */
export function spoken(generation: Generation, stopped: boolean): string {
  const { report, tokens } = generation;
  const parts = [`${stopped ? "Stopped" : "Finished"}: ${tokens.length} tokens, ${rate(tokensPerSecond(generation))} tokens per second`];
  if (report.acceptance !== null) parts.push(`acceptance ${percent(report.acceptance)}`);
  if (report.predicted !== null) parts.push(`predicted ${percent(report.predicted)}`);
  return `${parts.join(", ")}.`;
}

export function promised(report: Report, stopped: boolean): string {
  const cut = stopped ? " A text that its reader stops is cut by what was read: the promise is about texts that end by themselves." : "";
  if (!report.exact) return `Not exact: ${report.rowRuleNote || "no row rule is in force on this machine."}${cut}`;
  return `This text was drawn from exactly the model's distribution${report.rule === "coupled" ? ", and the same seed gives it with any draft or none" : ""}.${cut}`;
}
