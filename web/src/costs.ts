/**
 * What drafting costs here, in plain runs of the target, for speculationLength "auto": measured once, as
 * journee_deploy/costs.py does it. A proposal's share beside the models is timed by the controller itself, over rows that
 * are there already.
 */

import { createOps } from "./ops";
import type { Models } from "./engine";
import { median } from "./median";
import type { Model } from "./rows/slots";
import type { Controller, Role, RuleName, Spec } from "./types";

/** Constants of controller.AdaptivePace. */
export interface Costs {
  draft: number;
  row: number;
  free: number;
  most: number;
}

const PREFILL = 32;
const WIDTHS = [1, 2, 5, 9];
const REPEATS = 6; // the first isn't counted
const MOST = 8;
const SLOT = 2 ** 30; // no generation's
/** Of the order seen with small models, where a context is too short to measure. */
const TYPICAL: Costs = { draft: 0.25, row: 0.1, free: 1, most: MOST };

export async function measureCosts(
  models: Models,
  draft: Spec["draft"],
  rule: RuleName,
  greedy: boolean,
  size: number,
  controller: Controller,
): Promise<Costs> {
  const drafting = draft.kind === "model" ? (models.draft as Model) : null;
  const needed = PREFILL + REPEATS * 5 + 9;
  const open = [models.target, ...(drafting ? [drafting] : [])];
  if (open.some((model) => model.forward.contextLength < needed)) return TYPICAL;
  const seconds = new Map<string, number[]>();
  const rows: Partial<Record<Role, Float32Array>> = {};
  const series = [...WIDTHS.map((width) => ["target", width] as const), ...(drafting ? [["draft", 1] as const] : [])];
  try {
    for (const [i, [role]] of series.entries()) await (models[role] as Model).run(SLOT + i, tokens(size, 0, PREFILL), 0, 1);
    for (let repeat = 0; repeat < REPEATS; repeat++)
      for (const [i, [role, width]] of series.entries()) {
        const start = PREFILL + repeat * (Math.floor(width / 2) | 1);
        const began = performance.now();
        const found = await (models[role] as Model).run(SLOT + i, tokens(size, start, width), start, width);
        const spent = performance.now() - began;
        rows[role] = found[found.length - 1] as Float32Array;
        if (repeat) seconds.set(`${role} ${width}`, [...(seconds.get(`${role} ${width}`) ?? []), spent]);
      }
  } finally {
    for (const i of series.keys()) for (const model of open) model.release(SLOT + i);
  }
  const of = (name: string) => median(seconds.get(name) ?? [0]);
  const plain = of("target 1");
  if (!(plain > 0)) return TYPICAL;
  const proposal = proposalCost(rows, draft, rule, greedy, size, controller);
  const found = models.target.rule;
  const free = found && !found.fixed ? found.rows : 1;
  const beyond = WIDTHS.filter((width) => width > free).map((width) => [width - free, Math.max(0, of(`target ${width}`) / plain - 1)] as const);
  const weight = beyond.reduce((sum, [width]) => sum + width * width, 0);
  const row = weight ? beyond.reduce((sum, [width, extra]) => sum + width * extra, 0) / weight : 1;
  const digits = (value: number) => Math.round(value * 1e4) / 1e4;
  return { draft: digits((of("draft 1") + proposal) / plain), row: digits(row), free, most: MOST };
}

/** Milliseconds that one proposal more takes outside the models: a round of K = 2 against one of K = 1. */
function proposalCost(
  rows: Partial<Record<Role, Float32Array>>,
  draft: Spec["draft"],
  rule: RuleName,
  greedy: boolean,
  size: number,
  controller: Controller,
): number {
  const spent: [number[], number[]] = [[], []];
  const prompt = tokens(Math.min(size, PREFILL / 2), 0, PREFILL); // says everything twice, so that n-grams propose
  const sampling = { temperature: greedy ? 0 : 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1, frequencyPenalty: 0, presencePenalty: 0, minNewTokens: 0, logitBias: [] };
  for (let repeat = 0; repeat < REPEATS; repeat++)
    for (const more of [0, 1] as const) {
      const ops = createOps({ prompt, size, sampling, ends: [] });
      const spec: Spec = {
        prompt,
        rule,
        draft,
        pace: { kind: "constant", length: 1 + more },
        seed: BigInt(repeat),
        sample: 0,
        stops: { limit: 8, reason: "length", ends: [], sequences: [], strings: null },
        trace: false,
      };
      const generation = controller.begin(spec, ops);
      try {
        let answer: number[] | null = null;
        const began = performance.now();
        for (let wish = generation.next(answer); wish?.kind === "run"; wish = generation.next(answer))
          answer = wish.runs.map(({ role, keep, start, tokens: run }) =>
            ops.hold(role, start + run.length - keep + 1, new Array<Float32Array>(keep).fill(rows[role] as Float32Array)),
          );
        if (repeat) spent[more].push(performance.now() - began);
      } finally {
        generation.close();
      }
    }
  return Math.max(0, median(spent[1]) - median(spent[0]));
}

const tokens = (size: number, start: number, count: number): number[] => Array.from({ length: count }, (_, i) => (start + i) % size);
