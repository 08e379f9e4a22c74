"""What drafting costs: measured with a clock that the models move, given, or typical; and texts under "auto"."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

import pytest

from journee_deploy.controller import ModelDraft, NgramDraft, Residual, UniformDraft
from journee_deploy.costs import NEEDED, TYPICAL, CostMeter, Costs, costs_of, time_models, time_proposal
from journee_deploy.language_model import LanguageModel
from journee_deploy.request import RequestError
from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import Rows, Step
from journee_deploy.text import Codec
from tests.engine.prefix_model import PrefixModel, hashed

SIZE = 40


class Clock:
    """Stands still but for what models add."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TimedModel(PrefixModel):
    """A run of n rows takes `first + further * max(0, n - free)`; every third run ten times as long."""

    def __init__(self, clock: Clock, first: float, further: float = 0.0, free: int = 1, **options: object) -> None:
        super().__init__(hashed(SIZE, 1), SIZE, **options)  # type: ignore[arg-type]
        self.clock = clock
        self.seconds = first, further, free

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        first, further, free = self.seconds
        rows = len(steps[0].tokens)
        self.clock.now += (first + further * max(0, rows - free)) * (10 if self.counters.runs % 29 == 0 else 1)
        return super().run(steps)


@pytest.mark.parametrize(("rule", "free"), [(None, 1), (RowRule(1, 1), 1), (RowRule(2, 1), 2), (RowRule(2, 8), 2)])
def test_costs_are_the_models_times_in_plain_runs(rule: RowRule | None, free: int) -> None:
    clock = Clock()
    target = TimedModel(clock, 4.0, 0.5, free, rule=rule)
    draft = TimedModel(clock, 1.0, 7.0)
    timings = time_models(target, draft, clock)
    assert timings is not None
    assert costs_of(timings, 1.0, rule) == Costs(draft=0.5, row=0.125, free=free)
    assert target.counters.runs <= 30
    assert not target.slots
    assert not draft.slots


def test_blocks_are_paid_by_the_row() -> None:
    """Aligned blocks of 8 rows: a further row begins another block once in eight."""
    timings = time_models(TimedModel(clock := Clock(), 8.0, 1.0), None, clock)
    assert timings is not None
    assert costs_of(timings, 0.0, RowRule(8, 8, fixed=True)) == Costs(0.0, 0.125, 1)


def test_a_proposals_time_is_what_it_takes_beyond_a_bonus() -> None:
    ticks = iter(range(10**6))
    timings = time_models(TimedModel(Clock(), 1.0), TimedModel(Clock(), 1.0))
    assert timings is not None
    for draft in (ModelDraft(), NgramDraft(), UniformDraft()):
        for greedy in (True, False):
            assert time_proposal(timings, SIZE, draft, Residual(), greedy, lambda: float(next(ticks))) == 0.0
    seconds = iter([0.0, 1.0, 4.0] * 6)  # a bonus takes 1, a proposal 3
    assert time_proposal(timings, SIZE, UniformDraft(), Residual(), False, lambda: next(seconds)) == 2.0


def test_models_are_measured_once_and_proposals_once_a_rule_and_kind_of_sampling() -> None:
    target = TimedModel(clock := Clock(), 1.0)
    meter = CostMeter(target, None, SIZE, clock=clock)
    first, source = meter.costs(NgramDraft(), Residual(), False)
    assert source == "measured"
    runs = target.counters.runs
    assert meter.costs(NgramDraft(), Residual(), False)[0] is first
    assert meter.costs(NgramDraft(), Residual(), True)[0] is not first
    assert target.counters.runs == runs


def test_where_nothing_can_be_measured_costs_are_typical() -> None:
    short = TimedModel(Clock(), 1.0, context=NEEDED - 1)
    long = TimedModel(Clock(), 1.0, context=NEEDED)
    still = TimedModel(Clock(), 0.0)
    assert CostMeter(short, None, SIZE).costs(NgramDraft(), Residual(), False) == (TYPICAL["ngram"], "typical")
    assert CostMeter(long, short, SIZE).costs(ModelDraft(), Residual(), False) == (TYPICAL["model"], "typical")
    clock = Clock()
    assert CostMeter(still, None, SIZE, None, clock).costs(UniformDraft(), Residual(), False)[1] == "typical"
    assert CostMeter(long, None, SIZE).costs(UniformDraft(), Residual(), False)[1] == "measured"


@pytest.mark.parametrize("costs", [(-1.0, 0.0), (0.1, float("nan")), (0.1, 0.1, 0), (0.1, 0.1, 1, 17)])
def test_costs_out_of_range_are_refused(costs: tuple[float, ...]) -> None:
    with pytest.raises(RequestError, match="costs: "):
        Costs(*costs)  # type: ignore[arg-type]


# Texts.


def with_costs(lm: LanguageModel, costs: Costs | None) -> LanguageModel:
    return LanguageModel("toy", lm.target, lm.codec, draft=lm.engine.models["draft"], ends=lm.ends, costs=costs)


CHEAP, DEAR = Costs(0.05, 0.01, 2), Costs(0.9, 0.3, 1)


def test_with_the_same_costs_a_seed_gives_its_text_again(lm: LanguageModel) -> None:
    texts = []
    for _ in range(2):
        found = with_costs(lm, CHEAP).generate("the proof", max_new_tokens=60, seed=3, speculation_length="auto")
        assert found.report.pace == {"kind": "adaptive", "source": "given", **CHEAP.as_dict()}
        texts.append((found.tokens, found.kinds, [r.length for r in found.report.rounds]))
        json.dumps(found.as_dict())
    assert texts[0] == texts[1]
    assert len(set(texts[0][2])) > 2  # K did change


@pytest.mark.parametrize("costs", [CHEAP, DEAR, None])
def test_greedy_and_coupled_texts_are_the_plain_ones(lm: LanguageModel, costs: Costs | None) -> None:
    auto = with_costs(lm, costs)
    for options in ({"temperature": 0}, {"rule": "coupled", "seed": 8}):
        plain = auto.generate("the proof", max_new_tokens=40, draft=False, **options)  # type: ignore[arg-type]
        found = auto.generate("the proof", max_new_tokens=40, speculation_length="auto", **options)  # type: ignore[arg-type]
        assert found.tokens == plain.tokens
        assert plain.report.pace == {"kind": "constant", "length": 0}


def test_a_useless_draft_is_left_alone(codec: Codec) -> None:
    target = PrefixModel(hashed(codec.size, 1, 6.0), codec.size)
    draft = PrefixModel(hashed(codec.size, 2, 6.0), codec.size)
    lm = LanguageModel("toy", target, codec, draft=draft, costs=Costs(0.25, 0.05, 2))
    found = lm.generate([70, 71], max_new_tokens=128, seed=1, speculation_length="auto").report
    assert found.proposed <= 16
    assert [r.length for r in found.rounds[-16:]].count(0) >= 14


def test_measuring_waits_for_runs_under_way_and_leaves_them_alone(lm: LanguageModel) -> None:
    wanted = lm.generate("the proof", max_new_tokens=60, seed=3, speculation_length=4).tokens
    found: list[Sequence[int]] = []
    stream = lm.stream("the proof", max_new_tokens=60, seed=3, speculation_length=4)
    next(stream)
    other = threading.Thread(
        target=lambda: found.append(lm.generate("the proof", max_new_tokens=20, speculation_length="auto").tokens)
    )
    other.start()
    for _ in stream:
        pass
    other.join()
    assert stream.generation().tokens == wanted
    assert len(found) == 1


def test_a_refused_request_measures_nothing(lm: LanguageModel) -> None:
    with pytest.raises(ValueError, match="logit_bias names token"):
        lm.stream("the proof", speculation_length="auto", logit_bias={99999: 1.0})
    assert lm.target.counters.runs == 0
