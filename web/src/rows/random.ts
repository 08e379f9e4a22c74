/** A small generator for self-tests, the same everywhere: xorshift32. Nothing that is sampled comes from it. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

export const whole = (random: () => number, size: number): number => Math.floor(random() * size);
