"""What drafting costs here, in plain runs of the target: the constants of the adaptive pace, measured once or given.

    lm = journee_deploy.load("artifacts/tiny", costs=Costs(draft=0.4, row=0.1, free=2))

The pace is a pure function of what was accepted and of these constants. So a text under rule `residual`, which depends
on how far each round drafted, is the same again with the same seed and the same costs; the report tells them.

Measured are the target's runs of 1 row, as plain decoding asks for them, and of 2, 5 and 9, the draft model's of one,
and what a proposal takes beside models: its distribution, its draw and the verdict, which depend on the rule and on
whether sampling is greedy. Every figure is the mean of five without the smallest and the largest, the series run in
turn. Not measured: longer texts, other options of sampling, and what a draft model has to catch up after a pause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import fmean
from time import perf_counter
from typing import Any

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import AdaptivePace, Caches, Chance
from journee_deploy.draws import VectorPhilox
from journee_deploy.protocols import Draft, Rule
from journee_deploy.request import RequestError
from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import Model, Rows, Step

PREFILL = 32  # tokens before the runs that are timed
WIDTHS = (1, 2, 5, 9)  # rows of the target's runs
REPEATS = 5  # and one first that isn't counted
NEEDED = PREFILL + REPEATS * (max(WIDTHS) // 2 | 1) + max(WIDTHS)  # tokens of context
SLOTS = (1 << 30) + 2  # slots from here on, which no generation uses
DIGITS = 4  # after the point, so that costs can be copied from a report

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Costs:
    """Constants of `controller.AdaptivePace`, in plain runs of the target.

    draft   what drawing one proposal and its verdict cost
    row     what a row of the target costs, beyond those that come free
    free    rows that a plain run has anyway, padded by the row rule: at least 1
    most    the largest K, 1 to 16
    """

    draft: float
    row: float
    free: float = 1
    most: int = 8

    def __post_init__(self) -> None:
        try:
            self.pace()
        except ValueError as error:
            raise RequestError(f"costs: {error}") from None

    def pace(self) -> AdaptivePace:
        return AdaptivePace(self.draft, self.row, self.free, self.most)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


TYPICAL = {"model": Costs(0.25, 0.05, 2), "ngram": Costs(0.05, 0.05, 2), "uniform": Costs(0.1, 0.05, 2)}
"""By kind of draft, where nothing can be measured: of the order seen with small models on CPUs, no more."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of a run of the target by its rows, and of a draft model's; and a row of either, to draw from."""

    target: dict[int, float]
    draft: float
    target_row: Rows
    draft_row: Rows


@dataclass(slots=True)
class _Series:
    """Runs of `rows` rows, each about half further than the one before, as rounds are; `last` is what they gave."""

    model: Model
    slot: int
    rows: int
    seconds: list[float]
    last: Rows

    @classmethod
    def begin(cls, model: Model, slot: int, rows: int) -> _Series:
        (last,) = model.run([Step(slot, _tokens(model.vocabulary_size, 0, PREFILL), 0, 1)])
        return cls(model, slot, rows, [], last)

    def run(self, repeat: int, clock: Clock) -> None:
        start = PREFILL + repeat * (self.rows // 2 | 1)
        step = Step(self.slot, _tokens(self.model.vocabulary_size, start, self.rows), start, self.rows)
        began = clock()
        (self.last,) = self.model.run([step])
        self.seconds.append(clock() - began)


def time_models(target: Model, draft: Model | None, clock: Clock = perf_counter) -> Timings | None:
    """Time both models, whose slots must be idle; about 30 runs of the target. None where a context is too short."""
    models = [target] if draft is None else [target, draft]
    if any(model.context_length < NEEDED for model in models):
        return None
    asked = [(target, rows) for rows in WIDTHS] + ([] if draft is None else [(draft, 1)])
    try:
        series = [_Series.begin(model, SLOTS + i, rows) for i, (model, rows) in enumerate(asked)]
        for repeat in range(REPEATS + 1):
            for one in series:
                one.run(repeat, clock)
    finally:
        for i, (model, _) in enumerate(asked):
            model.release(SLOTS + i)
    figures = [_middle(one.seconds[1:]) for one in series]
    return Timings(
        target=dict(zip(WIDTHS, figures, strict=False)),
        draft=0.0 if draft is None else figures[-1],
        target_row=series[0].last[-1:],
        draft_row=series[-1].last[-1:],
    )


def time_proposal(
    timings: Timings, size: int, draft: Draft, rule: Rule, greedy: bool, clock: Clock = perf_counter
) -> float:
    """Seconds that a proposal takes beside the models: its distribution, its draw, its verdict in place of a bonus."""
    text = list(_tokens(min(size, PREFILL // 2), 0, PREFILL))  # says everything twice, so that an n-gram draft proposes
    ops = VectorOps(text, size, Sampling(temperature=0.0 if greedy else 1.0))
    chance = Chance(ops, VectorPhilox(0, 0))
    seconds: list[float] = []
    for number in range(REPEATS + 1):
        ops.clear()
        p = ops.distribution(ops.hold("target", len(text), timings.target_row))
        row = ops.hold("draft", len(text), timings.draft_row)
        position = len(text) + number
        began = clock()
        rule.bonus(p, position, number, chance)
        between = clock()
        q = _answered(draft, text, ops, row)
        proposal, _ = rule.propose(q, position, number, chance)
        rule.judge(p, q, proposal, position, number, ops, chance)
        seconds.append((clock() - between) - (between - began))
    return max(_middle(seconds[1:]), 0.0)


def costs_of(timings: Timings, proposal: float, rule: RowRule | None) -> Costs:
    """In plain runs. Rows beyond the free ones are fitted by a line from the plain run on; `proposal` is in seconds."""
    plain = timings.target[1]
    free = 1 if rule is None or rule.fixed else rule.rows  # a block is crossed once in so many rows, wherever it lies
    beyond = [(rows - free, max(seconds / plain - 1.0, 0.0)) for rows, seconds in timings.target.items() if rows > free]
    weight = sum(rows * rows for rows, _ in beyond)
    row = sum(rows * extra for rows, extra in beyond) / weight if weight else 1.0 / free
    return Costs(round((timings.draft + proposal) / plain, DIGITS), round(row, DIGITS), free)


class CostMeter:
    """The costs of one language model: as given; or measured, models once, proposals once a rule and kind of sampling.

    What it answers comes with a word on where it is from: given, measured, or typical, where a model's context is too
    short to measure or the clock too coarse.
    """

    def __init__(
        self, target: Model, draft: Model | None, size: int, given: Costs | None = None, clock: Clock = perf_counter
    ) -> None:
        self._target = target
        self._draft = draft
        self._size = size
        self._given = given
        self._clock = clock
        self._timings: Timings | None = None
        self._known: dict[tuple[str, str, bool], tuple[Costs, str]] = {}

    def costs(self, draft: Draft, rule: Rule, greedy: bool) -> tuple[Costs, str]:
        """Measure if need be; the models must be idle meanwhile."""
        if self._given is not None:
            return self._given, "given"
        key = (draft.name, rule.name, greedy)
        if key not in self._known:
            self._known[key] = self._measured(draft, rule, greedy)
        return self._known[key]

    def _measured(self, draft: Draft, rule: Rule, greedy: bool) -> tuple[Costs, str]:
        self._timings = self._timings or time_models(self._target, self._draft, self._clock)
        if self._timings is None or self._timings.target[1] <= 0:
            return TYPICAL[draft.name], "typical"
        proposal = time_proposal(self._timings, self._size, draft, rule, greedy, self._clock)
        return costs_of(self._timings, proposal, self._target.row_rule), "measured"


def _tokens(size: int, start: int, count: int) -> tuple[int, ...]:
    return tuple(i % size for i in range(start, start + count))


def _middle(seconds: list[float]) -> float:
    """The mean without the smallest and the largest."""
    return fmean(sorted(seconds)[1:-1])


def _answered(draft: Draft, text: list[int], ops: VectorOps, row: int) -> int:
    """The distribution that a draft proposes from, its runs answered with a row that is there already."""
    asking = draft.next(text, [], ops, Caches())
    try:
        runs = next(asking)
        while True:
            runs = asking.send((row,) * len(runs))
    except StopIteration as done:
        return int(done.value)
