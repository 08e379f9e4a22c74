/**
 * Running steps on slots over a graph: rewinding, chunks and padding, as journee_deploy/slot_runner.py has them.
 *
 * Each slot keeps the tokens it holds and two caches, the one its last run started from and the one it left. A run starts
 * from a cache of exactly as many tokens as come before it; rows between the earlier cache and the step's start may take the
 * place of padding, which saves a trim: plain decoding at two rows a run copies nothing. A step that fails leaves its slot
 * consistent, holding the part of the text that was run.
 */

import { JourneeError } from "../errors";
import { CHUNK, LARGEST, NO_RULE, type Piece, type RowRule } from "./row_rule";

/** The token of padding rows; any would do. */
const PADDING = 0;

/** Key and value of each layer in turn, [1, kv_heads, tokens, head_dim] each. */
export interface Cache {
  readonly length: number;
  readonly parts: readonly Float32Array[];
}

/** A graph over explicit caches, which are never changed once made. */
export interface Forward {
  readonly name: string;
  readonly vocabularySize: number;
  readonly contextLength: number;
  empty(): Cache;
  /** Rows of the last `keep` tokens, and the cache of past and tokens. The last `padding` tokens are masked. */
  run(past: Cache, tokens: readonly number[], padding: number, keep: number): Promise<{ rows: Float32Array[]; cache: Cache }>;
  trim(cache: Cache, length: number): Cache;
  /** A cache of tokens that never were, with finite values that differ. */
  invent(length: number, random: () => number): Cache;
  close(): Promise<void>;
}

export interface Counters {
  runs: number;
  rows: number;
  padding: number;
  milliseconds: number;
}

export const noCounters = (): Counters => ({ runs: 0, rows: 0, padding: 0, milliseconds: 0 });

export interface Slot {
  before: Cache;
  after: Cache;
  tokens: number[];
}

export class Runner {
  constructor(
    readonly forward: Forward,
    readonly chunk = CHUNK,
  ) {}

  fresh(): Slot {
    const nothing = this.forward.empty();
    return { before: nothing, after: nothing, tokens: [] };
  }

  /** A slot that holds `length` tokens that never were; for the row self-test. */
  invented(length: number, random: () => number): Slot {
    if (!length) return this.fresh();
    const cache = this.forward.invent(length, random);
    return { before: cache, after: cache, tokens: new Array<number>(length).fill(PADDING) };
  }

  /**
   * The last `keep` rows of one step: `tokens` after the first `start` that the slot holds. Padding takes its tokens from
   * `garbage` while it lasts. `between` is awaited before every run but the first.
   */
  async step(
    slot: Slot,
    tokens: readonly number[],
    start: number,
    keep: number,
    rule: RowRule,
    counters: Counters,
    options: { garbage?: readonly number[]; between?: () => Promise<void> } = {},
  ): Promise<Float32Array[]> {
    this.check(slot, tokens, start, keep);
    const end = start + tokens.length;
    const earlier = slot.before.length;
    const replaces = start > earlier && start - earlier <= rule.padding(start, tokens.length);
    const origin = replaces ? earlier : start;
    const pieces = rule.plan(origin, end - origin, keep, this.chunk);
    const first = pieces[0]?.start ?? start;
    const text = [...slot.tokens.slice(first, start), ...tokens];
    const wanted: Float32Array[] = [];
    for (const [i, piece] of pieces.entries()) {
      if (i) await options.between?.();
      const part = text.slice(piece.start - first, piece.start + piece.real - first);
      wanted.push(...(await this.piece(slot, part, piece, options.garbage ?? [], counters)));
      counters.runs += 1;
      counters.padding += piece.real + piece.padding;
    }
    counters.rows += tokens.length;
    counters.padding -= tokens.length;
    return wanted;
  }

  private check(slot: Slot, tokens: readonly number[], start: number, keep: number): void {
    const { name, contextLength, vocabularySize } = this.forward;
    const refuse = (problem: string) => {
      throw new JourneeError("runtime", `${name}: ${problem}`);
    };
    if (!tokens.length) refuse("a step without tokens; give at least one");
    if (keep < 1 || keep > tokens.length) refuse(`keep is ${keep}, expected 1 to ${tokens.length}`);
    if (start < 0 || start > slot.tokens.length) refuse(`start is ${start}, but the cache holds ${slot.tokens.length} tokens`);
    if (start + tokens.length > contextLength) refuse(`${start + tokens.length} tokens are longer than its context of ${contextLength}`);
    const bad = tokens.find((token) => !(token >= 0 && token < vocabularySize));
    if (bad !== undefined) refuse(`token ${bad} is not in its vocabulary of ${vocabularySize}`);
  }

  private async piece(
    slot: Slot,
    tokens: readonly number[],
    piece: Piece,
    garbage: readonly number[],
    counters: Counters,
  ): Promise<Float32Array[]> {
    const past = this.rewind(slot, piece.start);
    const filler = Array.from({ length: piece.padding }, (_, i) => garbage[i] ?? PADDING);
    const began = performance.now();
    const { rows, cache } = await this.forward.run(past, [...tokens, ...filler], piece.padding, piece.keep);
    counters.milliseconds += performance.now() - began;
    slot.after = cache;
    slot.tokens.push(...tokens);
    const last = piece.keep - piece.padding;
    return piece.take ? rows.slice(last - piece.take, last) : [];
  }

  /** Hold the first `length` tokens alone; their cache. */
  private rewind(slot: Slot, length: number): Cache {
    const held = [slot.after, slot.before].find((cache) => cache.length === length);
    const base = held ?? (length ? this.forward.trim(slot.after, length) : this.forward.empty());
    slot.before = slot.after = base;
    slot.tokens.length = length;
    return base;
  }
}

/** A graph with its slots, its counters and the row rule in force. */
export class Model {
  readonly counters = noCounters();
  rule: RowRule | null = null;
  note = "no row rule was looked for";
  readonly runner: Runner;
  private readonly slots = new Map<number, Slot>();

  constructor(
    readonly forward: Forward,
    chunk = CHUNK,
  ) {
    this.runner = new Runner(forward, chunk);
  }


  async run(
    slot: number,
    tokens: readonly number[],
    start: number,
    keep: number,
    between?: () => Promise<void>,
  ): Promise<Float32Array[]> {
    let held = this.slots.get(slot);
    if (!held) this.slots.set(slot, (held = this.runner.fresh()));
    return this.runner.step(held, tokens, start, keep, this.rule ?? NO_RULE, this.counters, between ? { between } : {});
  }

  release(slot: number): void {
    this.slots.delete(slot);
  }

  async close(): Promise<void> {
    this.slots.clear();
    await this.forward.close();
  }
}

/** More rows than any rule adds to a run: a graph's tables must reach so far past its context. */
export const LARGEST_PADDING = 2 * LARGEST;
