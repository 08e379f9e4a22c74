/**
 * Darts: a random process that every distribution at a position shares, which rule `coupled` looks at.
 * journee_deploy/controller/darts.py tells the theory and is the reference; docs/distributions.md, section 7, specifies it.
 */

import type { Ops } from "../types";
import { SCALE } from "./exponential";
import { uniform, type Philox, type WordStream } from "./philox";

/** Tokens a box, by tier. */
export const WIDTHS = [1, 16, 256, 4096, 65536];
export const TIERS = WIDTHS.length;
const STEP = 16;
/** Where a tier's heights begin, as a probability. */
export const FLOORS = WIDTHS.map((width, tier) => (tier === TIERS - 1 ? 0 : 1 / (width * STEP)));

/** The purpose of a dart's draw key, with the tier in bits 4 to 7 and the box from bit 8 on. */
const DART = 4;

/** How many darts: exactly Poisson(1), from uniform whole numbers alone (Duchon and Duvignau 2016, Algorithm 1). */
export function poisson(words: WordStream): number {
  let guard = 0;
  let k = 1;
  for (let n = 1; ; n++) {
    const i = uniform(n + 1, words);
    if (i === n) k++;
    else if (i >= guard) {
      k--;
      guard = n + 1;
    } else return k;
  }
}

/** The token that a position's first dart under a distribution falls on, and the window of time it falls in. */
export function firstDart(
  ops: Pick<Ops, "boxes" | "weight" | "size">,
  draws: Philox,
  handle: number,
  position: number,
): { token: number; window: number } {
  const opened = ops.boxes(handle);
  for (let window = 0; ; window++) {
    const token = firstInWindow(ops, draws, handle, position, window, opened);
    if (token >= 0) return { token, window };
  }
}

/** The same in one window, or -1: there is none, or the two first ones fell at the same time. */
function firstInWindow(
  ops: Pick<Ops, "weight" | "size">,
  draws: Philox,
  handle: number,
  position: number,
  window: number,
  opened: readonly (readonly [number, number])[],
): number {
  let high = -1; // the earliest time so far, a word each; -1: none
  let low = 0;
  let found = -1;
  for (const [tier, box] of opened) {
    const width = WIDTHS[tier]!;
    const ceiling = SCALE / width;
    const ground = FLOORS[tier]! * SCALE;
    const words = draws.words((DART | (tier << 4) | (box << 8)) >>> 0, position, window);
    for (let left = poisson(words); left > 0; left--) {
      const dartHigh = words.next();
      const dartLow = words.next();
      const token = box * width + uniform(width, words);
      const height = uniform(ceiling, words);
      if (height < ground || token >= ops.size || height >= ops.weight(handle, token) * SCALE) continue;
      if (high < 0 || dartHigh < high || (dartHigh === high && dartLow < low)) {
        high = dartHigh;
        low = dartLow;
        found = token;
      } else if (dartHigh === high && dartLow === low) found = -1;
    }
  }
  return found;
}
