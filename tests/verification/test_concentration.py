"""The G-test's bound, tried on every multinomial that is small enough to enumerate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest

from journee_deploy.verification.concentration import degrees, divergence, false_alarms, threshold

Law = dict[int, Fraction]

LAWS: list[Law] = [
    dict(enumerate(weights))
    for weights in [
        (Fraction(1, 2), Fraction(1, 2)),
        (Fraction(1, 3), Fraction(2, 3)),
        (Fraction(1, 1000), Fraction(999, 1000)),
        (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)),
        (Fraction(1, 50), Fraction(9, 50), Fraction(4, 5)),
        (Fraction(1, 4), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)),
        (Fraction(1, 100), Fraction(1, 100), Fraction(18, 100), Fraction(4, 5)),
    ]
]


def compositions(n: int, cells: int) -> Iterator[tuple[int, ...]]:
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, cells - 1):
            yield (first, *rest)


def statistics(law: Law, n: int) -> list[tuple[float, Fraction]]:
    """Every value of the statistic with its exact probability."""
    found: list[tuple[float, Fraction]] = []
    for counts in compositions(n, len(law)):
        ways = math.factorial(n)
        chance = Fraction(1)
        for token, count in enumerate(counts):
            ways //= math.factorial(count)
            chance *= law[token] ** count
        found.append((divergence(dict(enumerate(counts)), law), ways * chance))
    return found


@pytest.mark.parametrize("n", [1, 2, 5, 12, 20])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: " ".join(map(str, law.values())))
def test_the_bound_holds_for_every_multinomial(law: Law, n: int) -> None:
    found = sorted(statistics(law, n), reverse=True)
    assert sum(chance for _, chance in found) == 1
    tail = Fraction(0)
    for value, chance in found:
        tail += chance  # P(statistic >= value), at least
        assert float(tail) <= false_alarms(value * (1 - 1e-12), degrees(law)) + 1e-15


@pytest.mark.parametrize("t", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: " ".join(map(str, law.values())))
def test_the_moment_generating_function_is_below_a_gammas(law: Law, t: float) -> None:
    for n in (1, 3, 10):
        moment = math.fsum(math.exp(t * value) * float(chance) for value, chance in statistics(law, n))
        assert moment <= (1 - t) ** -degrees(law) * (1 + 1e-12)


def test_the_bound_holds_for_sums_of_independent_samples() -> None:
    first, second = statistics(LAWS[1], 9), statistics(LAWS[4], 7)
    d = degrees(LAWS[1]) + degrees(LAWS[4])
    sums = sorted(((a + b, p * q) for (a, p), (b, q) in product(first, second)), reverse=True)
    tail = Fraction(0)
    for value, chance in sums:
        tail += chance
        assert float(tail) <= false_alarms(value * (1 - 1e-12), d) + 1e-15


@pytest.mark.parametrize("d", [1, 2, 8, 26, 300])
@pytest.mark.parametrize("rate", [0.5, 1e-3, 1e-6, 1e-12])
def test_the_threshold_is_the_smallest_that_keeps_the_rate(d: int, rate: float) -> None:
    x = threshold(d, rate)
    assert x > d
    assert false_alarms(x, d) <= rate
    assert false_alarms(x * (1 - 1e-9), d) > rate


def test_the_statistic_by_hand() -> None:
    law = {"a": Fraction(1, 2), "b": Fraction(1, 2), "never": Fraction(0)}
    assert degrees(law) == 1
    assert divergence({"a": 5, "b": 5}, law) == 0.0
    assert divergence({"a": 10}, law) == pytest.approx(10 * math.log(2))
    assert divergence({"a": 9, "never": 1}, law) == math.inf
    assert divergence({"a": 9, "unheard of": 1}, law) == math.inf
    assert divergence({"a": 9, "never": 0}, law) < math.inf


def test_one_cell_alarms_only_at_what_cannot_be() -> None:
    law = {"a": Fraction(1)}
    assert divergence({"a": 100}, law) == 0.0
    assert divergence({"a": 100}, law) < threshold(0, 1e-6)
    assert false_alarms(threshold(0, 1e-6), 0) == 0.0


def test_an_impossible_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="false-alarm rate is 0"):
        threshold(3, 0)
