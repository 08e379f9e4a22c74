/**
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): a draw is a function of seed, sample and key alone.
 * journee_deploy/controller/philox.py is the reference.
 */

import { bad } from "./sampling";

/** A 32-bit word's place in `Words`: purpose, position and round of a draw key. */
export type Key = readonly [purpose: number, position: number, round: number];

/** Ten rounds over the four counter words in `state`, in place, under a key of two words. */
function rounds(state: Uint32Array, key0: number, key1: number): void {
  let [c0, c1, c2, c3] = state as unknown as [number, number, number, number];
  let k0 = key0 | 0;
  let k1 = key1 | 0;
  for (let i = 0; i < 10; i++) {
    const low0 = Math.imul(c0, 0xd2511f53);
    const high0 = multiplyHigh(c0, 0xd251, 0x1f53);
    const low1 = Math.imul(c2, 0xcd9e8d57);
    const high1 = multiplyHigh(c2, 0xcd9e, 0x8d57);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = (k0 + 0x9e3779b9) | 0;
    k1 = (k1 + 0xbb67ae85) | 0;
  }
  state[0] = c0;
  state[1] = c1;
  state[2] = c2;
  state[3] = c3;
}

/** The high word of a product of two 32-bit words, the second in halves. */
function multiplyHigh(a: number, high: number, low: number): number {
  const aHigh = a >>> 16;
  const aLow = a & 0xffff;
  const middle = aHigh * low + ((aLow * low) >>> 16); // below 2^32, and so is every sum here
  const other = aLow * high + (middle & 0xffff);
  return (aHigh * high + (middle >>> 16) + (other >>> 16)) | 0;
}

/** The four words of a counter of four, under a key of two. */
export function philox(counter: readonly number[], key: readonly number[]): [number, number, number, number] {
  const state = Uint32Array.from(counter);
  rounds(state, key[0]!, key[1]!);
  return [state[0]!, state[1]!, state[2]!, state[3]!];
}

/** Where 32-bit words come from, one after the other. */
export interface WordStream {
  next(): number;
}

/** A whole number v with 0 <= v < n, each as likely; 1 <= n <= 2^53. n = 1 takes no word. */
export function uniform(n: number, words: WordStream): number {
  if (!(Number.isSafeInteger(n) && n >= 1)) throw new RangeError(`a draw needs a bound of at least 1, got ${n}`);
  const width = bitLength(n - 1);
  if (width === 0) return 0;
  for (;;) {
    let value: number;
    if (width <= 32) value = words.next() >>> (32 - width);
    else {
      const high = words.next(); // the first word is the high one
      value = high * 2 ** (width - 32) + (words.next() >>> (64 - width));
    }
    if (value < n) return value;
  }
}

function bitLength(n: number): number {
  return n < 2 ** 32 ? 32 - Math.clz32(n) : 64 - Math.clz32(Math.floor(n / 2 ** 32));
}

/** The endless words of a key. Use the one that Philox gives before asking for another. */
class Words implements WordStream {
  readonly #block = new Uint32Array(4);
  #used = 0;
  #number = 0;
  #purpose = 0;
  #position = 0;
  #round = 0;

  constructor(
    readonly key0: number,
    readonly key1: number,
  ) {}

  begin(purpose: number, position: number, round: number): this {
    this.#purpose = purpose;
    this.#position = position;
    this.#round = round;
    this.#number = 0;
    this.#used = 4;
    return this;
  }

  next(): number {
    const block = this.#block;
    if (this.#used === 4) {
      block[0] = this.#number++;
      block[1] = this.#position;
      block[2] = this.#round;
      block[3] = this.#purpose;
      rounds(block, this.key0, this.key1);
      this.#used = 0;
    }
    return block[this.#used++]!;
  }
}

/** Whole numbers below n, uniformly, each by its key. */
export class Philox {
  readonly #words: Words;

  /** seed: 0 to 2^64 - 1; sample: 0 to 2^32 - 1, independent streams of one seed. */
  constructor(seed: bigint, sample = 0) {
    if (typeof seed !== "bigint" || seed < 0n || seed >> 64n) {
      throw bad(`seed is ${String(seed)}; it must be a whole number from 0 to 2^64 - 1`);
    }
    if (!(Number.isInteger(sample) && sample >= 0 && sample < 2 ** 32)) {
      throw bad(`sample is ${String(sample)}; it must be a whole number from 0 to 2^32 - 1`);
    }
    const key = philox([sample, 0, 0, 0xffffffff], [Number(seed & 0xffffffffn), Number(seed >> 32n)]);
    this.#words = new Words(key[0], key[1]);
  }

  /** A uniform whole number v with 0 <= v < n: a function of seed, sample and key. */
  below(n: number, [purpose, position, round]: Key): number {
    return uniform(n, this.words(purpose, position, round));
  }

  /** The endless words of a key; good until words are asked for again. */
  words(purpose: number, position: number, round: number): WordStream {
    if (!(isWord(purpose) && isWord(position) && isWord(round))) {
      throw new RangeError(
        `the draw ${purpose}, ${position}, ${round} does not fit a counter: purpose, position and round are below 2^32`,
      );
    }
    return this.#words.begin(purpose, position, round);
  }
}

function isWord(value: number): boolean {
  return value >>> 0 === value;
}
