"""The rule on integers: every draw of `Chance` and `Residual` over every pair of small distributions, counted."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import BONUS, JUDGE, PROPOSE, RECOVER, Chance, Residual


class Scripted:
    """Draws that follow a script of values and note each bound and key; past the script, 0."""

    def __init__(self, script: list[int]) -> None:
        self.script = script
        self.bounds: list[int] = []
        self.keys: list[tuple[int, int, int]] = []

    def below(self, n: int, key: tuple[int, int, int]) -> int:
        assert n >= 1
        place = len(self.bounds)
        self.bounds.append(n)
        self.keys.append(key)
        if place == len(self.script):
            self.script.append(0)
        return self.script[place]


def every_draw(program: Any) -> Iterator[tuple[Any, Fraction, Scripted]]:
    """What the program returns for every sequence of draws, with the sequence's probability."""
    script: list[int] = []
    while True:
        draws = Scripted(script)
        result = program(draws)
        weight = Fraction(1)
        for bound in draws.bounds:
            weight /= bound
        yield result, weight, draws
        while script and script[-1] == draws.bounds[len(script) - 1] - 1:
            script.pop()
        if not script:
            return
        script[-1] += 1


def compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    return [c for c in itertools.product(range(total + 1), repeat=parts) if sum(c) == total]


def ops_holding(*vectors: tuple[int, ...], units: int) -> PlainOps:
    ops = PlainOps([0], len(vectors[0]), Sampling())
    for vector in vectors:
        ops.keep([count / units for count in vector])
    return ops


@pytest.mark.parametrize(("units", "size"), [(8, 2), (4, 3)])
def test_the_rule_emits_p_and_accepts_exactly_the_overlap(units: int, size: int) -> None:
    rule = Residual()
    for p, q in itertools.product(compositions(units, size), repeat=2):
        emitted: Counter[int] = Counter()
        accepted: Counter[int] = Counter()

        def program(draws: Scripted, p: Any = p, q: Any = q) -> tuple[int, int, bool]:
            ops: Any = ops_holding(p, q, units=units)
            chance = Chance(ops, draws, units)
            proposal, _ = rule.propose(1, 5, 0, chance)
            token, kept, _ = rule.judge(0, 1, proposal, 5, 0, ops, chance)
            return proposal, token, kept

        for (proposal, token, kept), weight, draws in every_draw(program):
            assert q[proposal] > 0
            assert kept == (draws.script[1] < p[proposal])
            assert draws.keys == [(PROPOSE, 5, 0), (JUDGE, 5, 0), (RECOVER, 5, 0)][: 2 if kept else 3]
            assert draws.bounds[:2] == [units, q[proposal]]
            emitted[token] += weight
            if kept:
                accepted[token] += weight
            else:
                assert draws.bounds[2] == sum(max(a - b, 0) for a, b in zip(p, q, strict=True))
                assert p[token] > q[token]
        for token in range(size):
            assert emitted[token] == Fraction(p[token], units)
            assert accepted[token] == Fraction(min(p[token], q[token]), units)


def test_the_bonus_is_p() -> None:
    for p in compositions(8, 3):
        counts: Counter[int] = Counter()

        def program(draws: Scripted, p: Any = p) -> tuple[int, float | None]:
            ops: Any = ops_holding(p, units=8)
            return Residual().bonus(0, 9, 4, Chance(ops, draws, 8))

        for (token, coin), weight, draws in every_draw(program):
            assert coin == draws.script[0] / 8
            assert draws.keys == [(BONUS, 9, 4)]
            counts[token] += weight
        assert [counts[token] for token in range(3)] == [Fraction(count, 8) for count in p]


def test_a_zero_is_never_accepted_and_a_larger_p_always() -> None:
    ops: Any = ops_holding((0, 8), (4, 4), units=8)
    for coin in range(4):
        chance = Chance(ops, Scripted([coin]), 8)
        assert chance.accept(0.0, 0.5, (JUDGE, 0, 0)) == (False, coin / 8)
        assert Chance(ops, Scripted([coin]), 8).accept(0.5, 0.5, (JUDGE, 0, 0))[0]


def test_weights_of_one_unit_of_two_to_the_fifty_are_whole() -> None:
    unit = 2.0**-50
    ops = PlainOps([0], 2, Sampling())
    ops.keep([unit, 1.0 - unit])
    for coin, token in ((0, 0), (1, 1), (2**50 - 1, 1)):
        draws = Scripted([coin])
        assert Chance(ops, draws).pick(0, (BONUS, 0, 0)) == (token, coin * unit)  # type: ignore[arg-type]
        assert draws.bounds == [2**50]
    draws = Scripted([0])
    assert Chance(ops, draws).accept(0.0, unit, (JUDGE, 0, 0)) == (False, 0.0)  # type: ignore[arg-type]
    assert draws.bounds == [1]
