"""Every branch of a program that draws, with exact weights: the law of what the shipped code emits, as fractions.

`BranchingChance` stands in for `controller.Chance`. Each key is *one* uniform real number in [0, 1), refined as
questions are asked of it; a program that draws a key twice is refused, or (strict=False) gets the correlated answers
that the same number really gives, so that the bias shows in the law. A chance that branched afresh at every call would
certify biased code. The darts of a position are one Poisson process, revealed as far as it is asked about (`Darts`).

`law` runs a program over and over, taking another branch each time, until all are taken. The weights of the branches
are fractions and add up to 1; two laws are equal or they are not. No statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Generic, TypeVar

from journee_deploy.arithmetic.arena import Arena
from journee_deploy.controller.chance import DART
from journee_deploy.protocols import Key, Ops

Outcome = TypeVar("Outcome", bound=Hashable)

ZERO, ONE = Fraction(0), Fraction(1)


class LawError(Exception):
    """Weights that should be a law are none, or not the right one: a rule or the arithmetic is wrong."""


class DrawnTwiceError(RuntimeError):
    """A program asked for the same draw twice, which biases what it emits."""


class Branches:
    """The choices of one run: follows a script of earlier choices, then takes the first branch with weight
    everywhere.
    """

    def __init__(self, script: list[int], strict: bool = True) -> None:
        self._script = script
        self._strict = strict
        self._intervals: dict[Key, tuple[Fraction, Fraction]] = {}
        self.taken: list[tuple[int, int]] = []  # (branch, last branch with weight), where there was a choice
        self.weight = ONE

    def choose(self, key: Key, weights: list[Fraction]) -> int:
        """Where the key's uniform number falls among cells of these widths, which add up to 1."""
        if self._strict and key in self._intervals:
            raise DrawnTwiceError(f"the draw (purpose, position, round) = {key} was used twice")
        low, high = self._intervals.get(key, (ZERO, ONE))
        cells: list[tuple[Fraction, Fraction]] = []
        reached = ZERO
        for weight in weights:
            cells.append((max(reached, low), min(reached + weight, high)))
            reached += weight
        if reached != ONE:
            raise LawError(f"the weights of the draw {key} add up to {reached}, not 1")
        open_ = [index for index, (a, b) in enumerate(cells) if b > a]
        branch = self._next(open_)
        a, b = cells[branch]
        self.weight *= (b - a) / (high - low)
        self._intervals[key] = (a, b)
        return branch

    def _next(self, open_: list[int]) -> int:
        if len(open_) == 1:
            return open_[0]
        depth = len(self.taken)
        place = self._script[depth] if depth < len(self._script) else 0
        self.taken.append((place, len(open_) - 1))
        return open_[place]


@dataclass(slots=True)
class _Dart:
    """A dart that has been seen: its column, and between which heights it is known to be. Before it, since the dart
    before that, none fell under `covered`.
    """

    covered: list[Fraction]
    token: int
    low: Fraction
    high: Fraction


class Darts:
    """The darts of one position: a Poisson process of rate 1 an area over columns of tokens, revealed in order of time
    as far as questions need it.

    Time itself is never revealed, only order, and heights only as far as curves tell them apart. The wait between two
    darts seen is exponential, with the covered area as its rate, whatever was asked before (it has no memory); so which
    comes first, a dart under newly asked area or the next one seen, is a matter of areas alone.
    """

    def __init__(self, choose: Callable[[list[Fraction]], int]) -> None:
        self._choose = choose
        self._seen: list[_Dart] = []

    def first(self, curve: list[Fraction]) -> int:
        """The column of the first dart under a curve."""
        for place, dart in enumerate(self._seen):
            if (token := self._earlier(place, dart, curve)) is not None:
                return token
            if self._under(dart, curve[dart.token]):
                return dart.token
        return self._new(len(self._seen), list(curve), [ZERO] * len(curve), curve)

    def _earlier(self, place: int, dart: _Dart, curve: list[Fraction]) -> int | None:
        """A dart under what the curve adds to the covered area, before the one seen; or none there."""
        added = [max(height - known, ZERO) for height, known in zip(curve, dart.covered, strict=True)]
        covered = [max(pair) for pair in zip(curve, dart.covered, strict=True)]
        area = sum(covered, ZERO)
        if self._choose([sum(added, ZERO) / area, sum(dart.covered, ZERO) / area]) == 0:
            return self._new(place, covered, dart.covered, curve)
        dart.covered = covered
        return None

    def _new(self, place: int, covered: list[Fraction], floor: list[Fraction], curve: list[Fraction]) -> int:
        """Reveal a dart between a floor and a curve."""
        heights = [max(top - low, ZERO) for top, low in zip(curve, floor, strict=True)]
        area = sum(heights, ZERO)
        token = self._choose([height / area for height in heights])
        self._seen.insert(place, _Dart(covered, token, floor[token], curve[token]))
        return token

    def _under(self, dart: _Dart, height: Fraction) -> bool:
        low, high = dart.low, dart.high
        inside = min(max(height - low, ZERO), high - low) / (high - low)
        under = self._choose([inside, ONE - inside]) == 0
        if under:
            dart.high = min(high, height)
        else:
            dart.low = max(low, height)
        return under


class BranchingChance:
    """`controller.Chance`, enumerated: the same questions, the weights of `ops` read as exact fractions."""

    def __init__(self, ops: Ops, size: int, branches: Branches) -> None:
        self._ops = ops
        self._size = size
        self._branches = branches
        self._darts: dict[int, Darts] = {}

    def accept(self, p: float, q: float, key: Key) -> tuple[bool, None]:
        chance = min(ONE, Fraction(p) / Fraction(q))
        return self._branches.choose(key, [chance, ONE - chance]) == 0, None

    def pick(self, handle: int, key: Key) -> tuple[int, None]:
        weights = self._weights(handle)
        total = Fraction(self._ops.total(handle))
        return self._branches.choose(key, [weight / total for weight in weights]), None

    def first_dart(self, handle: int, position: int) -> tuple[int, int]:
        if position not in self._darts:
            asked = count()
            self._darts[position] = Darts(lambda weights: self._branches.choose((DART, position, next(asked)), weights))
        return self._darts[position].first(self._weights(handle)), 0

    def _weights(self, handle: int) -> list[Fraction]:
        return [Fraction(self._ops.weight(handle, token)) for token in range(self._size)]


@dataclass(frozen=True, slots=True)
class Law(Generic[Outcome]):
    """Outcomes with their exact probabilities, and how many runs it took to find them."""

    weights: dict[Outcome, Fraction]
    leaves: int


def law(program: Callable[[Branches], Outcome], strict: bool = True) -> Law[Outcome]:
    """The exact law of what `program` returns, over every branch."""
    weights: dict[Outcome, Fraction] = {}
    script: list[int] = []
    leaves = 0
    while True:
        branches = Branches(script, strict)
        outcome = program(branches)
        weights[outcome] = weights.get(outcome, ZERO) + branches.weight
        leaves += 1
        taken = branches.taken
        while taken and taken[-1][0] == taken[-1][1]:
            taken.pop()
        if not taken:
            return Law(weights, leaves)
        script = [place for place, _ in taken]
        script[-1] += 1


def distance(a: Mapping[Outcome, Fraction], b: Mapping[Outcome, Fraction]) -> Fraction:
    """Total variation: half the sum of absolute differences. 0 if and only if the laws are equal."""
    keys = set(a) | set(b)
    return sum((abs(a.get(key, ZERO) - b.get(key, ZERO)) for key in keys), ZERO) / 2


def probabilities(ops: Arena, row: int) -> list[Fraction]:
    """A row's distribution under `ops`, as fractions."""
    return [Fraction(weight) for weight in ops.vector(ops.distribution(row))]
