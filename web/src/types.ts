/** What the parts of the engine say to each other, inside its worker. Public types are in `api.ts`. */

export type Role = "target" | "draft";
export type RuleName = "residual" | "coupled";
export type Kind = "accepted" | "recovered" | "bonus";

/** Options of a distribution, as docs/distributions.md has them. All are given; the defaults are in `request.ts`. */
export interface Sampling {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  repetitionPenalty: number;
  frequencyPenalty: number;
  presencePenalty: number;
  minNewTokens: number;
  logitBias: readonly (readonly [token: number, amount: number])[];
}

/** "The cache of `role` holds the first `start` tokens; run these after them; I want the last `keep` rows." */
export interface Run {
  role: Role;
  tokens: number[];
  start: number;
  keep: number;
}

/** What one round did (journee_deploy/controller/requests.py). */
export interface Round {
  length: number;
  proposed: number;
  judged: number;
  accepted: number;
  emitted: number;
  empty: number;
  rows: number;
}

/** How one token came about; `null` where nothing was proposed. Only with `trace`. */
export interface Judgement {
  token: number;
  kind: Kind;
  p: number;
  proposal: number | null;
  proposalP: number | null;
  proposalQ: number | null;
  coin: number | null;
  tv: number | null;
  predicted: number | null;
  top: [token: number, probability: number][];
  logits: [token: number, logit: number][];
}

export interface Emit {
  tokens: number[];
  kinds: Kind[];
  round: Round;
  /** Why the text ends with these tokens; "" if it goes on. */
  reason: string;
  judgements: Judgement[];
}

export type Wish = { kind: "run"; runs: Run[] } | ({ kind: "emit" } & Emit);

/** How far a generation drafts: K each round, or the constants of `controller.AdaptivePace`. */
export type Pace =
  | { kind: "constant"; length: number }
  | { kind: "adaptive"; draft: number; row: number; free: number; most: number };

/** One generation, as the controller is told of it. */
export interface Spec {
  prompt: number[];
  /** "wrong" is `residual` with a mistake, to show what it does: a rejected proposal's place is taken by a draw from p. */
  rule: RuleName | "wrong";
  draft: { kind: "none" | "uniform" | "ngram" } | { kind: "model"; context: number };
  pace: Pace;
  /** 0 to 2^64 - 1. */
  seed: bigint;
  sample: number;
  stops: {
    limit: number;
    reason: "length" | "context";
    ends: number[];
    sequences: number[][];
    /** Whether the text of the generated and the new tokens contains a stop string; null where there are none. */
    strings: ((generated: number[], fresh: number[]) => boolean) | null;
  };
  trace: boolean;
}

/**
 * One generation under way. `next` is sent the handle of the first row of each run that was asked for (or nothing, at the
 * start and after an emit) and says what is wanted now; null at the end. `close` may be called at any time, and must be
 * in the end: Python's `finally` blocks run then.
 */
export interface Generation {
  next(answer: readonly number[] | null): Wish | null;
  close(): void;
}

/** The shipped Python controller in some interpreter. One a realm: an interpreter keeps its state in globals. */
export interface Controller {
  readonly name: "micropython" | "pyodide";
  readonly version: string;
  begin(spec: Spec, ops: Ops): Generation;
  dispose(): void;
}

/**
 * Vector arithmetic behind handles: `journee_deploy.protocols.Ops`, in typed arrays, equal to the bit. Rows come in by
 * `hold`; handles mean nothing after `clear`.
 */
export interface Ops {
  readonly size: number;
  /** Keep rows of logits, the first of which follows `position` tokens; the handle of the first. */
  hold(role: string, position: number, rows: readonly Float32Array[]): number;
  clear(): void;
  /** A copy of a vector, of length `size`. */
  vector(handle: number): Float64Array;
  push(token: number): void;
  truncate(length: number): void;
  /** -1 for a draft's row that masking left empty. */
  distribution(row: number): number;
  oneHot(token: number): number;
  uniform(): number;
  weight(handle: number, token: number): number;
  total(handle: number): number;
  locate(handle: number, fraction: number): number;
  residual(p: number, q: number): number;
  boxes(handle: number): [tier: number, box: number][];
  overlap(p: number, q: number): number;
  agreement(p: number, q: number): number;
  top(handle: number, count: number): [token: number, probability: number][];
  topLogits(row: number, count: number): [token: number, logit: number][];
}
