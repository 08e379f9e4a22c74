/**
 * What counts of draws say about a law.
 *
 * The distance is total variation, TV = 1/2 sum |counts/n - p|. It isn't 0 for true draws: the chance value is its expectation for
 * n draws from p itself, exactly: a count is binomial, and De Moivre's formula gives its mean absolute deviation,
 * E|X - np| = 2 v C(n, v) p^v (1 - p)^(n - v + 1) with v = floor(np) + 1. It shrinks as 1/sqrt(n).
 * A draw moves TV by 1/n at most, so TV exceeds its expectation by t with probability at most exp(-2 n t^2) (McDiarmid 1989).
 */

/** The false-alarm rate of one look at "further from p than chance takes it". */
export const ALARM = 1e-6;

export function distance(counts: ArrayLike<number>, draws: number, p: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < p.length; i++) sum += Math.abs((counts[i] ?? 0) / draws - (p[i] ?? 0));
  return sum / 2;
}

/** Lanczos, g = 7, nine terms: relative error below 1e-13 for the arguments here. */
const LANCZOS = [
  0.9999999999998099, 676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
  -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
];

function logGamma(x: number): number {
  let sum = LANCZOS[0] ?? 1;
  for (let i = 1; i < LANCZOS.length; i++) sum += (LANCZOS[i] ?? 0) / (x - 1 + i);
  const t = x + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

/** E|X - np| of a binomial count X. */
export function meanDeviation(n: number, p: number): number {
  if (p <= 0 || p >= 1) return 0;
  const v = Math.floor(n * p) + 1;
  if (v > n) return 2 * n * Math.exp(n * Math.log(p)) * (1 - p);
  const choose = v === 1 ? Math.log(n) : logGamma(n + 1) - logGamma(v + 1) - logGamma(n - v + 1);
  return 2 * v * Math.exp(choose + v * Math.log(p) + (n - v + 1) * Math.log1p(-p));
}

/** The expected distance of n draws from p to p. */
export function chance(n: number, p: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < p.length; i++) sum += meanDeviation(n, p[i] ?? 0);
  return sum / (2 * n);
}

/** The distance that draws from p pass with probability ALARM at most. */
export function limit(n: number, p: ArrayLike<number>): number {
  return chance(n, p) + Math.sqrt(Math.log(1 / ALARM) / (2 * n));
}

/** What the mistake comes to: proposals from q, and draws from p where a proposal is rejected. */
export function wrongLaw(p: ArrayLike<number>, q: ArrayLike<number>): Float64Array {
  let rejected = 0;
  for (let i = 0; i < p.length; i++) rejected += Math.max(0, (p[i] ?? 0) - (q[i] ?? 0));
  return Float64Array.from({ length: p.length }, (_, i) => Math.min(p[i] ?? 0, q[i] ?? 0) + rejected * (p[i] ?? 0));
}

/** The indices of the largest weights, the largest first. */
export function largest(weights: ArrayLike<number>, most: number): number[] {
  return Array.from({ length: weights.length }, (_, i) => i)
    .filter((i) => (weights[i] ?? 0) > 0)
    .sort((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0) || a - b)
    .slice(0, most);
}
