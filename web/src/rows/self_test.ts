/**
 * The self-test that finds a graph's row rule in this browser: the cheapest candidate under which no row differs.
 *
 * The same test as journee_deploy/row_self_test.py, which says what it covers and what it can't: rows of random splits are
 * compared, bit for bit, with the rows of one long run, from nothing, after real prefills and after invented caches. The
 * rule is measured, not proved.
 */

import { seeded, whole } from "./random";
import { CANDIDATES, LARGEST, type RowRule } from "./row_rule";
import { noCounters, type Runner, type Slot } from "./slots";

/** Of the test: raise it when the test changes, and all graphs are tested again. */
export const SELF_TEST_VERSION = 1;

const LARGEST_STEP = 17; // K + 1 for K = 16
const SPLIT = 153; // each count of 1 to 17 once
const PREFILLS = [0, 0, 0, 40, 40];
/** Lengths of the invented caches, and rows run after them. */
const INVENTED: readonly (readonly [length: number, rows: number])[] = [
  [240, 40],
  [496, 80],
  [1008, 40],
  [2000, 40],
];
const SEED = 20_260_711;

export interface Finding {
  rule: RowRule | null;
  /** Rows compared for it. */
  rows: number;
}

/** The first candidate under which all rows agree; `between` is awaited now and then, and may end the test by throwing. */
export async function findRowRule(
  runner: Runner,
  between: () => Promise<void> = async () => {},
  candidates: readonly RowRule[] = CANDIDATES,
): Promise<Finding> {
  let compared = 0;
  for (const rule of candidates) {
    const trial = new Trial(runner, rule, between);
    if (await trial.holds()) return { rule, rows: trial.compared };
    compared += trial.compared;
  }
  return { rule: null, rows: compared };
}

type Scene = readonly [invented: number, length: number, prefills: readonly number[]];

class Trial {
  compared = 0;
  private readonly random = seeded(SEED);

  constructor(
    private readonly runner: Runner,
    private readonly rule: RowRule,
    private readonly between: () => Promise<void>,
  ) {}

  /** The first scene is short, so that most candidates fail soon. */
  async holds(): Promise<boolean> {
    for (const scene of this.scenes()) if (!(await this.scene(...scene))) return false;
    return true;
  }

  private scenes(): Scene[] {
    const context = this.runner.forward.contextLength;
    const pastChunk = this.runner.chunk + 1;
    const scenes: Scene[] = [
      [0, Math.floor(SPLIT / 2), [0]],
      [0, pastChunk + Math.floor(SPLIT / 2), [...PREFILLS, pastChunk]],
      ...INVENTED.map(([invented, rows]): Scene => [invented, rows, [0]]),
    ];
    return scenes
      .map(([invented, length, prefills]): Scene => {
        const fits = Math.min(length, context - invented);
        return [invented, fits, prefills.filter((prefill) => prefill < fits)];
      })
      .filter(([, length]) => length > 0);
  }

  private async scene(invented: number, length: number, prefills: readonly number[]): Promise<boolean> {
    const text = Array.from({ length }, () => this.token());
    const slot = () => this.runner.invented(invented, seeded(invented));
    const expected = await this.rows(slot(), invented, text, 0, length, length);
    for (const prefill of prefills) {
      const held = slot();
      const steps: [number, number, number][] = prefill ? [[0, prefill, 1]] : [];
      for (const [at, end, keep] of [...steps, ...this.steps(prefill, Math.min(length, prefill + SPLIT))]) {
        this.compared += keep;
        const rows = await this.rows(held, invented, text, at, end, keep);
        if (!rows.every((row, i) => same(row, expected[end - keep + i]))) return false;
      }
    }
    return true;
  }

  private async rows(
    slot: Slot,
    invented: number,
    text: readonly number[],
    at: number,
    end: number,
    keep: number,
  ): Promise<Float32Array[]> {
    await this.between();
    const garbage = Array.from({ length: LARGEST }, () => this.token());
    return this.runner.step(slot, text.slice(at, end), invented + at, keep, this.rule, noCounters(), { garbage });
  }

  /** (start, end, keep) of random steps, some of which step back before they go on. */
  private *steps(first: number, stop: number): Generator<[number, number, number]> {
    let at = first;
    for (const count of this.counts()) {
      if (at === stop) return;
      const end = Math.min(stop, at + count);
      const every = end - at;
      const keeps = [1, every, every, 1 + whole(this.random, every)];
      yield [at, end, keeps[whole(this.random, 4)] ?? every];
      at = end === stop || this.random() < 0.7 ? end : Math.max(first, end - 1 - whole(this.random, 5));
    }
  }

  /** One row first, then each count of 1 to 17 once and three more ones, in random order, again and again. */
  private *counts(): Generator<number> {
    yield 1;
    for (;;) {
      const counts = [...Array.from({ length: LARGEST_STEP }, (_, i) => i + 1), 1, 1, 1];
      for (let i = counts.length - 1; i > 0; i--) {
        const j = whole(this.random, i + 1);
        [counts[i], counts[j]] = [counts[j] ?? 1, counts[i] ?? 1];
      }
      yield* counts;
    }
  }

  private token(): number {
    return whole(this.random, this.runner.forward.vocabularySize);
  }
}

/** Equal bits: a NaN equals itself, and 0 isn't -0. */
function same(row: Float32Array, other: Float32Array | undefined): boolean {
  if (row.length !== other?.length) return false;
  const left = new Uint32Array(row.buffer, row.byteOffset, row.length);
  const right = new Uint32Array(other.buffer, other.byteOffset, other.length);
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return false;
  return true;
}
