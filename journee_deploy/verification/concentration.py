"""How far counts may be from their law by chance: a G-test whose false-alarm rate is a theorem.

Of n independent outcomes with the law p over k cells, let e be the shares counted. The statistic is

    n * KL(e || p) = sum over cells of count * ln(count / (n * p)),        half of the usual G.

Agrawal 2020 ("Finite-sample concentration of the multinomial in relative entropy", IEEE Trans. Inf. Theory 66(10),
Theorem 1.3; arXiv 1904.02291): for 0 <= t < 1, every n and every p,

    E exp(t * n * KL) <= (1 - t)^-(k - 1).

Several independent samples: expectations of products multiply, so the sum of their statistics obeys the same with
d = sum of (k_i - 1). Markov's inequality at the best t, which is 1 - d / x, gives for x > d

    P(statistic >= x) <= exp(-x) * (e * x / d)^d.

Nothing here is asymptotic: the usual chi-square threshold holds only as n grows, and says nothing sure at a rate of
one in a million. The price is power: the threshold is one and a half times as large with few cells, and nearly twice
with many.

With d = 0 (one cell each) the statistic is always 0. An outcome with p = 0 needs no statistic: it can't occur.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TypeVar

Outcome = TypeVar("Outcome", bound=Hashable)


def divergence(counts: Mapping[Outcome, int], law: Mapping[Outcome, Fraction]) -> float:
    """n * KL(shares || law), at least 0; infinite where something occurred that the law gives no weight."""
    n = sum(counts.values())
    terms: list[float] = []
    for outcome, count in counts.items():
        if count and not law.get(outcome):
            return math.inf
        if count:
            terms.append(count * math.log(count / (n * law[outcome])))
    return max(math.fsum(terms), 0.0)


def degrees(law: Mapping[Outcome, Fraction]) -> int:
    """k - 1: cells with weight, less one."""
    return sum(1 for weight in law.values() if weight) - 1


def false_alarms(x: float, d: int) -> float:
    """A bound on the probability that a sum of statistics with `d` degrees in all reaches `x` by chance."""
    if d == 0:
        return 0.0 if x > 0 else 1.0
    return 1.0 if x <= d else math.exp(d - x + d * math.log(x / d))


def threshold(d: int, rate: float) -> float:
    """The smallest x, to 12 digits and rounded up, at which the bound is at most `rate`."""
    if not 0 < rate < 1:
        raise ValueError(f"the false-alarm rate is {rate}; it must be between 0 and 1")
    if d == 0:
        return math.ulp(0.0)
    low, high = float(d), 2.0 * d - 2.0 * math.log(rate) + 2.0
    while false_alarms(high, d) > rate:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if false_alarms(middle, d) <= rate else (middle, high)
    return high
