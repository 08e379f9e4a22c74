/**
 * The ops in typed arrays: rows and distributions behind handles, and the arithmetic on them. Equal to
 * journee_deploy.arithmetic.plain to the bit, but for `agreement`, which is rounded and for reports alone.
 *
 * A vector is a Float64Array, or a spike: one weight at one token, which is what greedy decoding and one-hot drafts are made
 * of. Arrays that the ops made are used again after `clear`.
 */

import { JourneeError } from "../errors";
import type { Ops, Sampling } from "../types";
import { FLOORS, TIERS, WIDTHS } from "./darts";
import { distribute, largest } from "./distribute";
import { History } from "./history";
import { bad, checkSampling } from "./sampling";

/** Instead of a handle: masking left a draft's row without a token. */
export const EMPTY = -1;

export interface OpsOptions {
  /** Tokens of the tokenizer; columns of a row past it are ignored. */
  size: number;
  prompt: readonly number[];
  sampling: Sampling;
  /** End-of-sequence tokens, banned until `minNewTokens`. */
  ends?: readonly number[];
}

/** The ops of one generation. Refuses options and prompts with a JourneeError of code "bad-request". */
export function createOps(options: OpsOptions): TypedOps {
  return new TypedOps(options);
}

interface Row {
  role: string;
  position: number;
  logits: Float32Array;
}

class Spike {
  constructor(
    readonly token: number,
    readonly weight: number,
  ) {}
}

type Vector = Float64Array | Spike;

export class TypedOps implements Ops {
  readonly size: number;
  readonly #sampling: Sampling;
  readonly #ends: readonly number[];
  readonly #history: History;
  readonly #scratch: Float64Array;
  readonly #spare: Float64Array[] = [];
  readonly #lent: Float64Array[] = [];
  readonly #rows: Row[] = [];
  readonly #vectors: Vector[] = [];
  #tallest: Float64Array[] | null = null;
  #zeros: Float32Array | null = null;

  constructor({ size, prompt, sampling, ends = [] }: OpsOptions) {
    checkSampling(sampling, size);
    if (prompt.length === 0) throw bad("the prompt has no tokens; give at least one (a begin-of-text token will do)");
    for (const token of prompt) {
      if (!(Number.isInteger(token) && token >= 0 && token < size)) {
        throw bad(`the prompt has token ${token}; the vocabulary has ${size} tokens`);
      }
    }
    this.size = size;
    this.#sampling = sampling;
    this.#ends = ends.filter(token => token < size);
    this.#history = new History(prompt);
    this.#scratch = new Float64Array(size);
  }

  // Rows and vectors by handle.

  hold(role: string, position: number, rows: readonly Float32Array[]): number {
    const first = this.#rows.length;
    rows.forEach((logits, offset) => this.#rows.push({ role, position: position + offset, logits }));
    return first;
  }

  clear(): void {
    this.#rows.length = 0;
    this.#vectors.length = 0;
    while (this.#lent.length > 0) this.#spare.push(this.#lent.pop()!);
  }

  /** A handle to a vector of length `size`, the ops' own from now on. */
  keep(vector: Float64Array): number {
    return this.#keep(vector);
  }

  /** A copy of a vector, of length `size`. */
  vector(handle: number): Float64Array {
    const held = this.#held(handle);
    if (held instanceof Float64Array) return held.slice();
    const dense = new Float64Array(this.size);
    dense[held.token] = held.weight;
    return dense;
  }

  #keep(vector: Vector): number {
    this.#vectors.push(vector);
    return this.#vectors.length - 1;
  }

  #held(handle: number): Vector {
    const vector = this.#vectors[handle];
    if (vector === undefined) throw new RangeError(`there is no vector ${handle}; handles mean nothing after clear()`);
    return vector;
  }

  #row(handle: number): Row {
    const row = this.#rows[handle];
    if (row === undefined) throw new RangeError(`there is no row ${handle}; handles mean nothing after clear()`);
    return row;
  }

  #borrow(): Float64Array {
    const vector = this.#spare.pop() ?? new Float64Array(this.size);
    this.#lent.push(vector);
    return vector;
  }

  // History.

  push(token: number): void {
    this.#history.push(token);
  }

  truncate(length: number): void {
    this.#history.truncate(length);
  }

  // Distributions.

  distribution(row: number): number {
    const { role, position, logits } = this.#row(row);
    check(logits, role, position);
    const x = this.#borrow();
    this.#process(logits, x);
    const best = largest(x);
    if (x[best] === -Infinity) {
      if (role !== "target") return EMPTY;
      throw bad(
        `target logits at position ${position}: masking leaves no token; relax logitBias or minNewTokens`,
      );
    }
    if (this.#sampling.temperature === 0) return this.oneHot(best);
    distribute(x, best, this.#sampling, this.#scratch);
    return this.#keep(x);
  }

  /** Steps 2 and 3: the vocabulary cut or padded to `size`, then bias, repetition, frequency, presence, banned ends. */
  #process(logits: Float32Array, x: Float64Array): void {
    const { logitBias, repetitionPenalty, frequencyPenalty, presencePenalty, minNewTokens } = this.#sampling;
    const history = this.#history;
    if (logits.length >= this.size) x.set(logits.length === this.size ? logits : logits.subarray(0, this.size));
    else {
      x.set(logits);
      x.fill(-Infinity, logits.length);
    }
    for (const [token, amount] of logitBias) x[token]! += amount;
    if (repetitionPenalty !== 1) {
      const repeat = (token: number) => {
        const value = x[token]!;
        x[token] = value > 0 ? value / repetitionPenalty : value * repetitionPenalty;
      };
      for (const token of history.prompt) repeat(token);
      for (const token of history.counts.keys()) if (!history.prompt.has(token)) repeat(token);
    }
    if (frequencyPenalty !== 0) for (const [token, count] of history.counts) x[token]! -= frequencyPenalty * count;
    if (presencePenalty !== 0) for (const token of history.counts.keys()) x[token]! -= presencePenalty;
    if (history.generated < minNewTokens) for (const token of this.#ends) x[token] = -Infinity;
  }

  oneHot(token: number): number {
    return this.#keep(new Spike(token, 1));
  }

  uniform(): number {
    this.#zeros ??= new Float32Array(this.size);
    return this.distribution(this.hold("uniform draft", this.#history.length, [this.#zeros]));
  }

  residual(p: number, q: number): number {
    const ours = this.#held(p);
    const theirs = this.#held(q);
    if (ours instanceof Spike) {
      return this.#keep(new Spike(ours.token, Math.max(ours.weight - at(theirs, ours.token), 0)));
    }
    const left = this.#borrow();
    if (theirs instanceof Spike) {
      left.set(ours);
      left[theirs.token] = Math.max(ours[theirs.token]! - theirs.weight, 0);
      return this.#keep(left);
    }
    for (let token = 0; token < left.length; token++) {
      const a = ours[token]!;
      const b = theirs[token]!;
      left[token] = a > b ? a - b : 0;
    }
    return this.#keep(left);
  }

  // Questions.

  weight(handle: number, token: number): number {
    return at(this.#held(handle), token);
  }

  total(handle: number): number {
    const held = this.#held(handle);
    if (held instanceof Spike) return held.weight;
    let total = 0;
    for (let token = 0; token < held.length; token++) total += held[token]!;
    return total;
  }

  locate(handle: number, fraction: number): number {
    const held = this.#held(handle);
    if (held instanceof Spike) {
      if (fraction < held.weight) return held.token;
    } else {
      let reached = 0;
      for (let token = 0; token < held.length; token++) {
        reached += held[token]!;
        if (reached > fraction) return token;
      }
    }
    throw new RangeError(`${fraction} is not below the vector's total ${this.total(handle)}`);
  }

  boxes(handle: number): [tier: number, box: number][] {
    const held = this.#held(handle);
    const found: [number, number][] = [];
    if (held instanceof Spike) {
      for (let tier = 0; tier < TIERS; tier++) {
        if (held.weight > FLOORS[tier]!) found.push([tier, Math.floor(held.token / WIDTHS[tier]!)]);
      }
      return found;
    }
    // The tallest token of each box, from those of the sixteen narrower boxes in it.
    this.#tallest ??= WIDTHS.slice(1).map(width => new Float64Array(Math.ceil(this.size / width)));
    let below = held;
    for (let tier = 0; tier < TIERS; tier++) {
      if (tier > 0) below = maxima(below, this.#tallest[tier - 1]!);
      const floor = FLOORS[tier]!;
      for (let box = 0; box < below.length; box++) if (below[box]! > floor) found.push([tier, box]);
    }
    return found;
  }

  overlap(p: number, q: number): number {
    const ours = this.#held(p);
    const theirs = this.#held(q);
    if (ours instanceof Spike) return Math.min(ours.weight, at(theirs, ours.token));
    if (theirs instanceof Spike) return Math.min(theirs.weight, at(ours, theirs.token));
    let total = 0;
    for (let token = 0; token < ours.length; token++) {
      const a = ours[token]!;
      const b = theirs[token]!;
      total += a < b ? a : b;
    }
    return total;
  }

  agreement(p: number, q: number): number {
    let total = 0;
    const ours = this.#held(p);
    const theirs = this.#held(q);
    for (let token = 0; token < this.size; token++) {
      const a = at(ours, token);
      const b = at(theirs, token);
      total += a < b ? a * (1 + b - a) : b * (1 + a - b);
    }
    return total / (2 - this.overlap(p, q));
  }

  top(handle: number, count: number): [token: number, probability: number][] {
    const held = this.#held(handle);
    return first(held instanceof Spike ? this.vector(handle) : held, this.size, count);
  }

  topLogits(row: number, count: number): [token: number, logit: number][] {
    const { logits } = this.#row(row);
    return first(logits, Math.min(logits.length, this.size), count);
  }
}

function at(vector: Vector, token: number): number {
  if (vector instanceof Spike) return token === vector.token ? vector.weight : 0;
  return vector[token]!;
}

/** Step 1: NaN, plus infinity, or nothing but minus infinity is an error, in any column. */
function check(logits: Float32Array, role: string, position: number): void {
  let most = -Infinity;
  for (let token = 0; token < logits.length; token++) {
    const value = logits[token]!;
    if (!(value < Infinity)) {
      throw new JourneeError(
        "runtime",
        `${role} logits at position ${position}: token ${token} is ${value !== value ? "NaN" : "plus infinity"}; ` +
          "the graph or its weights are broken (check the export's parity and the weights' hash)",
      );
    }
    if (value > most) most = value;
  }
  if (most === -Infinity) {
    throw new JourneeError(
      "runtime",
      `${role} logits at position ${position}: all are minus infinity; the graph or its weights are broken`,
    );
  }
}

function maxima(values: Float64Array, out: Float64Array): Float64Array {
  for (let box = 0; box < out.length; box++) {
    const end = Math.min(16 * box + 16, values.length);
    let most = values[16 * box]!;
    for (let i = 16 * box + 1; i < end; i++) if (values[i]! > most) most = values[i]!;
    out[box] = most;
  }
  return out;
}

/** The `count` largest of the first `length` entries, lowest index first among equals. */
function first(values: Float64Array | Float32Array, length: number, count: number): [number, number][] {
  const found: [number, number][] = [];
  for (let token = 0; token < length; token++) {
    const value = values[token]!;
    if (found.length === count && !(value > found[count - 1]![1])) continue;
    let place = found.length === count ? count - 1 : found.length;
    for (; place > 0 && found[place - 1]![1] < value; place--) found[place] = found[place - 1]!;
    found[place] = [token, value];
  }
  return found;
}
