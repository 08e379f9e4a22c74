/** The toy models of record.py, and what it recorded. */

import { readFileSync } from "node:fs";
import type { Pace, RuleName, Sampling } from "../../src/types";
import type { Rows } from "./drive";
import { double, sampling } from "./cases";

export const SIZE = 40;
const SALTS: Record<string, number> = { target: 1, draft: 2 };

function mixed(word: number): number {
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
  return (word ^ (word >>> 16)) >>> 0;
}

export const toyRows: Rows = (role, before) =>
  Float32Array.from({ length: SIZE }, (_, token) => {
    const word = mixed(before.at(-1)! * 64 + (before.at(-2) ?? 0) + 4096 * token);
    const extra = mixed((word ^ SALTS[role]!) >>> 0);
    return (word >>> 25) / 16 + (role === "target" ? 0 : (extra >>> 27) / 16);
  });

export function textOf(tokens: readonly number[]): string {
  return tokens.map(token => String.fromCharCode(97 + (token % 26))).join("");
}

type Pairs = [number, string][];
export type RecordedJudgement = [number, string, number | null, ...(string | null)[], Pairs, Pairs];

export interface Recorded {
  rule: RuleName;
  draft: "model" | "ngram" | "uniform" | "none";
  options: Parameters<typeof sampling>[0];
  pace: { kind: "constant"; length: number } | { kind: "adaptive"; draft: string; row: string; free: string; most: number };
  seed: string;
  stop: string;
  tokens: number[];
  kinds: string;
  rounds: number[][];
  reason: string;
  judgements: RecordedJudgement[];
}

export function recorded(): Recorded[] {
  return JSON.parse(readFileSync(new URL("recorded.json", import.meta.url), "utf8")) as Recorded[];
}

export function paceOf({ pace }: Recorded): Pace {
  if (pace.kind === "constant") return pace;
  return { ...pace, draft: double(pace.draft), row: double(pace.row), free: double(pace.free) };
}

export function samplingOf({ options }: Recorded): Sampling {
  return sampling(options);
}
