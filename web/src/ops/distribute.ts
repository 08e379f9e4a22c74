/**
 * Steps 4 to 10 of docs/distributions.md: from processed logits to a distribution of whole units of 2^-50, in place.
 * Equal to journee_deploy/arithmetic/plain.py to the bit.
 *
 * Only elementwise float64 operations and sums of whole numbers. JavaScript has no fused multiply-add, and its engines may not
 * reorder floating-point arithmetic, so the order that is written is the order that runs.
 */

import type { Sampling } from "../types";
import {
  C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13,
  LN2_HIGH, LN2_LOW, LOG2E, LOWEST, SCALE, SCALED, UNIT,
} from "./exponential";

const HALF = 2 ** 25;
/** Sums of whole numbers are exact in float64 while they stay below this. */
const EXACT = 2 ** 53;

/** Step 4: the index of the largest entry, the lowest on ties. */
export function largest(x: Float64Array): number {
  let best = 0;
  let most = x[0]!;
  for (let token = 1; token < x.length; token++) {
    const value = x[token]!;
    if (value > most) {
      most = value;
      best = token;
    }
  }
  return best;
}

/**
 * Steps 5 to 10: processed logits `x`, whose largest entry is `best` and finite, become their distribution.
 * The temperature is not 0. `spare` is as long as x, for one call at a time.
 */
export function distribute(x: Float64Array, best: number, sampling: Sampling, spare: Float64Array): void {
  const least = leastKept(x, sampling.topK, spare);
  weigh(x, x[best]!, sampling.temperature, least);
  if (sampling.topP < 1) topP(x, best, sampling.topP, spare);
  if (sampling.minP > 0) {
    const floor = sampling.minP * SCALE;
    for (let token = 0; token < x.length; token++) if (!(x[token]! >= floor)) x[token] = 0;
  }
  normalise(x, best, x);
}

/** Step 5: the k-th largest entry; what is below it is dropped. Minus infinity where nothing is. */
function leastKept(x: Float64Array, k: number, spare: Float64Array): number {
  if (k === 0 || k >= x.length) return -Infinity;
  if (k > 256) {
    spare.set(x);
    return spare.sort()[x.length - k]!;
  }
  // The k largest so far in a heap, the smallest of them first.
  const heap = spare;
  for (let i = 0; i < k; i++) heap[i] = x[i]!;
  for (let i = (k >> 1) - 1; i >= 0; i--) sink(heap, i, k);
  for (let token = k; token < x.length; token++) {
    const value = x[token]!;
    if (value > heap[0]!) {
      heap[0] = value;
      sink(heap, 0, k);
    }
  }
  return heap[0]!;
}

function sink(heap: Float64Array, from: number, length: number): void {
  const value = heap[from]!;
  let i = from;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= length) break;
    if (child + 1 < length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= value) break;
    heap[i] = heap[child]!;
    i = child;
  }
  heap[i] = value;
}

/** Step 6: x becomes k = floor(exp(z) * 2^50), z = (x - largest) / T; 0 for what is not kept. */
function weigh(x: Float64Array, most: number, temperature: number, least: number): void {
  for (let token = 0; token < x.length; token++) {
    const value = x[token]!;
    const z = (value - most) / temperature;
    if (!(z >= LOWEST) || value < least) {
      x[token] = 0;
      continue;
    }
    const n = Math.floor(z * LOG2E + 0.5);
    const r = z - n * LN2_HIGH - n * LN2_LOW;
    let sum = C13 * r + C12;
    sum = sum * r + C11;
    sum = sum * r + C10;
    sum = sum * r + C9;
    sum = sum * r + C8;
    sum = sum * r + C7;
    sum = sum * r + C6;
    sum = sum * r + C5;
    sum = sum * r + C4;
    sum = sum * r + C3;
    sum = sum * r + 0.5;
    sum = sum * r + 1;
    sum = sum * r + 1;
    x[token] = Math.floor(sum * SCALED[-n | 0]!);
  }
}

/** Step 7: the sum, rounded once. Below 2^53 no partial sum was rounded; else halves are added, exactly. */
export function sumOnce(k: Float64Array): number {
  let total = 0;
  for (let token = 0; token < k.length; token++) total += k[token]!;
  if (total < EXACT) return total;
  let high = 0;
  let low = 0;
  for (let token = 0; token < k.length; token++) {
    const value = k[token]!;
    const h = Math.floor(value / HALF);
    high += h;
    low += value - h * HALF;
  }
  return high * HALF + low;
}

/** Step 10: multiples of 2^-50 that sum to exactly 1, in `out`, which may be k; what flooring loses goes to `best`. */
function normalise(k: Float64Array, best: number, out: Float64Array): void {
  const whole = sumOnce(k) / SCALE; // k / (W / 2^50) is k / W * 2^50 to the bit
  let given = 0;
  for (let token = 0; token < k.length; token++) {
    const value = k[token]!;
    if (value === 0) {
      out[token] = 0;
      continue;
    }
    const units = Math.floor(value / whole);
    given += units;
    out[token] = units * UNIT;
  }
  out[best]! += (SCALE - given) * UNIT;
}

/** Step 8: keep the fewest entries, most probable first, whose mass reaches `mass`; k of the others becomes 0. */
function topP(k: Float64Array, best: number, mass: number, p: Float64Array): void {
  normalise(k, best, p);
  // The others together have less than 1 - mass; where a rounding decided otherwise, look at all.
  let likely = above(p, (1 - mass) / p.length);
  let sum = 0;
  for (let i = 0; i < likely.length; i++) sum += likely[i]!;
  if (!(sum >= mass)) likely = p.slice();
  likely.sort();
  let place = likely.length;
  let before = 0;
  while (place > 0 && before < mass) before += likely[--place]!;
  const least = likely[place]!;
  // Entries equal to the least one kept: as many as fit, `best` first, then by index.
  let equal = 1;
  while (place + equal < likely.length && likely[place + equal] === least) equal++;
  if (p[best] === least) equal--;
  for (let token = 0; token < k.length; token++) {
    const value = p[token]!;
    if (value > least || token === best) continue;
    if (value === least && equal > 0) equal--;
    else k[token] = 0;
  }
}

/** The entries that are at least `floor`. */
function above(p: Float64Array, floor: number): Float64Array {
  let count = 0;
  for (let token = 0; token < p.length; token++) if (p[token]! >= floor) count++;
  const found = new Float64Array(count);
  count = 0;
  for (let token = 0; token < p.length; token++) if (p[token]! >= floor) found[count++] = p[token]!;
  return found;
}
