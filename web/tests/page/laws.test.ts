/** What the exactness panel computes, against sums over whole laws. */

import { describe, expect, it } from "vitest";
import { chance, distance, largest, limit, meanDeviation, wrongLaw } from "../../page/laws";

function binomial(n: number, p: number): number[] {
  const law = [(1 - p) ** n];
  for (let k = 1; k <= n; k++) law.push(((law[k - 1] ?? 0) * (n - k + 1) * p) / (k * (1 - p)));
  return law;
}

describe("chance", () => {
  it("has De Moivre's mean deviation as the sum over the law gives it", () => {
    for (const n of [1, 2, 7, 60, 400]) {
      for (const p of [0.001, 0.02, 0.25, 0.5, 0.77, 0.999]) {
        const least = Math.min(p, 1 - p); // the deviation is the same for the other side, and its law doesn't underflow
        const summed = binomial(n, least).reduce((sum, weight, k) => sum + weight * Math.abs(k - n * least), 0);
        expect(meanDeviation(n, p) / summed, `n ${n}, p ${p}`).toBeCloseTo(1, 8);
      }
    }
    expect(meanDeviation(10, 0)).toBe(0);
    expect(meanDeviation(10, 1)).toBe(0);
  });

  it("shrinks as one over the square root, and stays below its limit", () => {
    const p = [0.4, 0.3, 0.2, 0.1];
    expect(chance(1000, p) / chance(100_000, p)).toBeCloseTo(10, 1);
    expect(limit(1000, p)).toBeGreaterThan(chance(1000, p));
  });
});

describe("laws", () => {
  const p = [0.5, 0.25, 0.25, 0];
  const q = [0.25, 0.25, 0.25, 0.25];

  it("gives the law of the mistake", () => {
    expect([...wrongLaw(p, q)]).toEqual([0.375, 0.3125, 0.3125, 0]);
    expect(distance(wrongLaw(p, q), 1, p)).toBeCloseTo(0.125, 12);
    expect(distance(wrongLaw(p, p), 1, p)).toBe(0);
  });

  it("measures distance and finds the largest", () => {
    expect(distance([50, 25, 25, 0], 100, p)).toBe(0);
    expect(distance([0, 0, 0, 100], 100, p)).toBe(1);
    expect(largest(p, 9)).toEqual([0, 1, 2]);
  });
});
