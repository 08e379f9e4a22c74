"""Darts, exactly: how many fall, where one falls, who wins; and all of it beside an independent rendering."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import Chance, Philox
from journee_deploy.controller.darts import STEP, WIDTHS, first_dart, floor, poisson
from journee_deploy.controller.philox import philox, uniform
from journee_deploy.draws import VectorPhilox

UNITS = 1 << 50


class Choosing:
    """Words for `uniform` that follow a script of answers, whatever bound is asked for; one word is one answer."""

    def __init__(self, answers: list[tuple[int, int]]) -> None:
        self._answers = list(answers)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if not self._answers:
            raise LookupError("the script has ended")
        answer, bound = self._answers.pop(0)
        width = (bound - 1).bit_length()
        return answer << (32 - width)


def poisson_masses(steps: int) -> tuple[Counter[int], Fraction]:
    """The mass of every answer of `poisson` within so many draws, and the mass still undecided: every branch taken."""
    masses: Counter[int] = Counter()
    open_: list[tuple[list[tuple[int, int]], Fraction]] = [([], Fraction(1))]
    undecided = Fraction(0)
    while open_:
        script, mass = open_.pop()
        try:
            masses[poisson(Choosing(script))] += mass  # type: ignore[assignment]
        except LookupError:
            if len(script) == steps:
                undecided += mass
                continue
            bound = len(script) + 2
            open_ += [([*script, (answer, bound)], mass / bound) for answer in range(bound)]
    return masses, undecided


def test_the_number_of_darts_has_the_poisson_law() -> None:
    """Its exact masses after seven draws bracket e^-1 / k!, with the mass still undecided as the only slack."""
    masses, undecided = poisson_masses(7)
    assert sum(masses.values()) + undecided == 1
    assert undecided == Fraction(2**7, math.factorial(8))
    for k in range(6):
        low = Fraction(masses[k])
        exact = Fraction(math.exp(-1)) / math.factorial(k)
        assert low <= exact + Fraction(1, 10**15)
        assert exact <= low + undecided + Fraction(1, 10**15)


def poisson_by_states(steps: int) -> dict[int, Fraction]:
    """The same law from the paper's recursion, by dynamic programming over (guard, k); no code of the project."""
    states = {(0, 1): Fraction(1)}
    found: dict[int, Fraction] = {}
    for n in range(1, steps + 1):
        following: dict[tuple[int, int], Fraction] = {}
        for (guard, k), mass in states.items():
            for i in range(1, n + 2):
                share = mass / (n + 1)
                if i == n + 1:
                    state = (guard, k + 1)
                elif i > guard:
                    state = (n + 1, k - 1)
                else:
                    found[k] = found.get(k, Fraction(0)) + share
                    continue
                following[state] = following.get(state, Fraction(0)) + share
        states = following
    return found


def test_the_number_of_darts_follows_the_paper_to_thirty_draws() -> None:
    """The recursion's masses agree with e^-1 / k! to 1e-15; the shipped code's with the recursion's, draw for draw."""
    long = poisson_by_states(30)
    for k in range(8):
        assert abs(long[k] - Fraction(math.exp(-1)) / math.factorial(k)) < Fraction(1, 10**15)
    masses, _ = poisson_masses(6)
    assert dict(masses) == {k: mass for k, mass in poisson_by_states(6).items() if mass}


def heights(size: int, seed: int, total: int) -> list[int]:
    """Whole heights that add up to `total`, some tall, many low, some 0."""
    generator = np.random.default_rng([seed, size])
    weights = generator.dirichlet(np.full(size, 0.2))
    units = [int(weight * total) for weight in weights]
    units[int(generator.integers(size))] += total - sum(units)
    return units


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 40])
def test_one_dart_hits_every_unit_under_the_curve_once(size: int) -> None:
    """Of the places where a dart may fall, a box of one area each, exactly p[x] of 2^16 a box are token x's."""
    total = 1 << 16
    for seed in range(4):
        curve = heights(size, seed, total)
        hits = [0] * size
        for tier, box in boxes_of(curve, total):
            ceiling = total // WIDTHS[tier]
            ground = int(floor(tier) * total)
            for token in range(box * WIDTHS[tier], min((box + 1) * WIDTHS[tier], size)):
                hits[token] += max(min(curve[token], ceiling) - ground, 0)
        assert hits == curve


def boxes_of(curve: list[int], total: int) -> list[tuple[int, int]]:
    """Which boxes to open, from their definition."""
    return [
        (tier, box)
        for tier, width in enumerate(WIDTHS)
        for box in range(-(-len(curve) // width))
        if any(Fraction(height, total) > Fraction(floor(tier)) for height in curve[box * width : (box + 1) * width])
    ]


def test_tiers_meet_and_boxes_have_one_area() -> None:
    assert WIDTHS[0] == 1
    for tier, width in enumerate(WIDTHS):
        assert floor(tier) == (1 / WIDTHS[tier + 1] if tier + 1 < len(WIDTHS) else 0)
        assert UNITS % width == 0
    assert all(b == a * STEP for a, b in pairwise(WIDTHS))


class Script:
    """Words of opened boxes as given, by (tier, box, window); a box that isn't given has no dart."""

    def __init__(
        self, darts: dict[tuple[int, int, int], list[list[int]]], opened: tuple[tuple[int, int], ...] = ((0, 0), (0, 1))
    ) -> None:
        self._darts = darts
        self.opened = list(opened)
        self.windows: list[int] = []

    def streams(self, window: int) -> list[Iterator[int]]:
        self.windows.append(window)
        return [self._words(self._darts.get((*box, window), [])) for box in self.opened]

    def _words(self, darts: list[list[int]]) -> Iterator[int]:
        yield from {0: NONE, 1: ONE, 2: TWO}[len(darts)]
        for dart in darts:
            yield from dart


TOP = 1 << 31  # one bit: the answer 1 of two
NONE = [0, 0]  # i = 0 of 2: k falls to 0, and then i = 0 of 3 is below the guard
ONE = [TOP, 0, 0]  # i = 1 of 2: k = 2; i = 0 of 3: k = 1; i = 0 of 4
TWO = [TOP, TOP, 0, 0]  # k = 2, k = 3, then down to 2, then done


def test_the_scripts_mean_what_they_say() -> None:
    for wanted, words in enumerate((NONE, ONE, TWO)):
        stream = iter(words)
        assert poisson(stream) == wanted
        assert list(stream) == []


def dart(time: int, height: int, offset: int | None = None) -> list[int]:
    """A dart's words: time, place in a box of tier 1 (none in tier 0), height."""
    bits = 50 if offset is None else 46
    place = [] if offset is None else [offset << 28]
    tall = height << (64 - bits)
    return [time >> 32, time & 0xFFFFFFFF, *place, tall >> 32, tall & 0xFFFFFFFF]


HALF = 1 << 49
PAIR = [HALF, HALF]


def winner(script: Script) -> tuple[int, int]:
    return first_dart(script.opened, lambda token: PAIR[token] if token < 2 else 0, script.streams, UNITS)


def test_the_earliest_hit_wins_whatever_the_order_of_boxes() -> None:
    early, late = dart(5, HALF - 1), dart(6, HALF - 1)
    assert winner(Script({(0, 0, 0): [early], (0, 1, 0): [late]})) == (0, 0)
    assert winner(Script({(0, 0, 0): [late], (0, 1, 0): [early]})) == (1, 0)
    assert winner(Script({(0, 0, 0): [late, early], (0, 1, 0): [late]})) == (0, 0)
    assert winner(Script({(0, 0, 0): [dart(1 << 63, HALF - 1)], (0, 1, 0): [dart((1 << 63) + 1, HALF - 1)]})) == (0, 0)


def test_a_dart_above_the_curve_or_below_the_floor_does_not_count() -> None:
    over, under, hit = dart(1, HALF), dart(1, (1 << 46) - 1), dart(9, 1 << 46)
    assert winner(Script({(0, 0, 0): [over], (0, 1, 0): [hit]})) == (1, 0)
    assert winner(Script({(0, 0, 0): [under], (0, 1, 0): [hit]})) == (1, 0)


def test_a_tie_of_the_earliest_drops_the_window_and_a_later_tie_does_not() -> None:
    early, late = dart(5, HALF - 1), dart(6, HALF - 1)
    tied = {(0, 0, 0): [early], (0, 1, 0): [early], (0, 0, 1): [late]}
    assert winner(Script(tied)) == (0, 1)
    assert winner(Script({(0, 0, 0): [early, early], (0, 1, 0): [late], (0, 1, 1): [late]})) == (1, 1)
    assert winner(Script({(0, 0, 0): [late, early], (0, 1, 0): [late]})) == (0, 0)
    # two misses at the same time are no tie
    over = dart(1, HALF)
    assert winner(Script({(0, 0, 0): [over, late], (0, 1, 0): [over]})) == (0, 0)


def test_windows_follow_one_another_until_one_has_a_hit() -> None:
    script = Script({(0, 1, 3): [dart(7, HALF - 1)]})
    assert winner(script) == (1, 3)
    assert script.windows == [0, 1, 2, 3]


def test_a_dart_past_the_vocabulary_is_void() -> None:
    curve = [1 << 44] * 3  # stands for a row's tail: tier 1 is where these heights end
    script = Script({(1, 0, 0): [dart(1, 1 << 43, 7)], (1, 0, 1): [dart(1, 1 << 43, 2)]}, opened=((1, 0),))
    found = first_dart(script.opened, lambda token: curve[token] if token < 3 else 0, script.streams, UNITS)
    assert found == (2, 1)


# The whole, against an independent rendering: no shared code but `philox`.


def reference(curve: list[int], seed: int, sample: int, position: int) -> tuple[int, int]:
    """The first dart as docs/distributions.md has it, every box of every tier opened."""
    key = philox((sample, 0, 0, 0xFFFFFFFF), (seed & 0xFFFFFFFF, seed >> 32))[:2]
    window = 0
    while True:
        hits: list[tuple[int, int]] = []
        for tier in range(5):
            width, cap = 16**tier, UNITS // 16**tier
            for box in range(-(-len(curve) // width)):
                stream = words_of(key, position, window, 4 + 16 * tier + 256 * box)
                for _ in range(duchon_duvignau(stream)):
                    time = next(stream) * 2**32 + next(stream)
                    token = box * width + draw(stream, width)
                    height = draw(stream, cap)
                    low = cap // 16 if tier < 4 else 0
                    if token < len(curve) and low <= height < curve[token]:
                        hits.append((time, token))
        hits.sort()
        if hits and (len(hits) == 1 or hits[0][0] != hits[1][0]):
            return hits[0][1], window
        window += 1


def words_of(key: tuple[int, ...], position: int, window: int, purpose: int) -> Iterator[int]:
    block = 0
    while True:
        yield from philox((block, position, window, purpose), key)
        block += 1


def draw(stream: Iterator[int], n: int) -> int:
    if n == 1:
        return 0
    bits = (n - 1).bit_length()
    while True:
        joined = 0
        for _ in range(-(-bits // 32)):
            joined = joined * 2**32 + next(stream)
        value = joined >> (-bits % 32)
        if value < n:
            return value


def duchon_duvignau(stream: Iterator[int]) -> int:
    n, guard, k = 1, 0, 1
    while True:
        i = draw(stream, n + 1) + 1
        if i == n + 1:
            k += 1
        elif i > guard:
            k, guard = k - 1, n + 1
        else:
            return k
        n += 1


def ops_with(kind: type[PlainOps] | type[VectorOps], units: list[int]) -> tuple[PlainOps | VectorOps, int]:
    ops = kind([0], len(units), Sampling())
    vector = [unit / UNITS for unit in units]
    return ops, ops.keep(np.array(vector) if kind is VectorOps else vector)


@given(
    size=st.sampled_from([1, 2, 5, 16, 17, 300]),
    shape=st.integers(0, 1000),
    seed=st.integers(0, (1 << 64) - 1),
    sample=st.integers(0, (1 << 32) - 1),
    position=st.integers(0, (1 << 32) - 1),
)
def test_both_hosts_throw_the_specified_dart(size: int, shape: int, seed: int, sample: int, position: int) -> None:
    curve = heights(size, shape, UNITS)
    wanted = reference(curve, seed, sample, position)
    for kind in (PlainOps, VectorOps):
        ops, handle = ops_with(kind, curve)
        for draws in (Philox(seed, sample), VectorPhilox(seed, sample)):
            assert Chance(ops, draws).first_dart(handle, position) == wanted  # type: ignore[arg-type]


@given(
    seed=st.integers(0, (1 << 64) - 1),
    sample=st.integers(0, (1 << 32) - 1),
    keys=st.lists(st.tuples(*[st.integers(0, (1 << 32) - 1)] * 3), max_size=5),
)
def test_both_generators_give_the_same_words(seed: int, sample: int, keys: list[tuple[int, int, int]]) -> None:
    streams = VectorPhilox(seed, sample).streams(keys)
    assert len(streams) == len(keys)
    for key, stream in zip(keys, streams, strict=True):
        assert list(islice(stream, 41)) == list(islice(Philox(seed, sample).words(key), 41))


@pytest.mark.parametrize("size", [1, 16, 17, 256, 257, 4097, 70000])
def test_both_hosts_open_the_same_boxes(size: int) -> None:
    for seed in range(3):
        curve = heights(size, seed, UNITS)
        plain, handle = ops_with(PlainOps, curve)
        assert handle == 0
        assert plain.boxes(0) == ops_with(VectorOps, curve)[0].boxes(0) == boxes_of(curve, UNITS)


def test_a_boxs_words_are_its_own() -> None:
    """No two of (tier, box, window, position) share a draw, nor do darts share one with the other purposes."""

    class Keys:
        def below(self, n: int, key: tuple[int, int, int]) -> int:
            raise AssertionError(f"{n}, {key}: darts draw words only")

        def streams(self, keys: list[tuple[int, int, int]]) -> list[Iterator[int]]:
            seen.update(keys)
            return Philox(1).streams(keys)

    seen: Counter[tuple[int, int, int]] = Counter()
    curve = heights(300, 1, UNITS)
    ops, handle = ops_with(PlainOps, curve)
    chance = Chance(ops, Keys())  # type: ignore[arg-type]
    for position in range(20):
        chance.first_dart(handle, position)
    assert set(seen.values()) == {1}
    assert {purpose & 15 for purpose, _, _ in seen} == {4}
    assert {(purpose >> 4 & 15, purpose >> 8) for purpose, _, _ in seen} == set(ops.boxes(handle))


def test_uniform_takes_no_word_for_one_and_all_fixed_widths_need_no_second_try() -> None:
    """Why a dart's words can be counted: widths and ceilings are powers of two."""
    for width in WIDTHS:
        for n in (width, UNITS // width):
            words = iter([0xFFFFFFFF, 0xFFFFFFFF])
            assert uniform(n, words) == n - 1
