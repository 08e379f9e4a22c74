"""Where time goes: stages add up to the whole, exclude each other, and change no token."""

from __future__ import annotations

import pytest

from journee_deploy.arithmetic.arena import LogitsError
from journee_deploy.controller import RULES
from journee_deploy.language_model import DraftKind, LanguageModel
from journee_deploy.profiling import OUTSIDE, STAGES, Stopwatch, profile
from journee_deploy.runtime import Model, Rows
from journee_deploy.text import Codec
from tests.engine.prefix_model import PrefixModel, hashed

SIZE = 330


class Clock:
    """A second later each time it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("journee_deploy.profiling.perf_counter", clock)
    return clock


def test_inner_stages_are_taken_out_of_outer_ones(clock: Clock) -> None:
    watch = Stopwatch()

    def inner() -> str:
        return "done"

    def outer() -> str:
        return watch.timed("draws", inner)() + watch.timed("draws", inner)()

    assert watch.timed("distributions", outer)() == "donedone"
    assert watch.seconds["distributions"] == 3.0  # before, between and after
    assert watch.seconds["draws"] == 2.0
    assert watch.entries == {**dict.fromkeys(STAGES, 0), "distributions": 1, "draws": 2}
    assert clock.now - 1 == sum(watch.seconds.values())


def test_time_can_be_moved_to_another_stage(clock: Clock) -> None:
    watch = Stopwatch()
    watch.enter("around")
    watch.move(0.75, "target")
    watch.leave()
    assert watch.seconds["target"] == 0.75
    assert watch.seconds["around"] == 2.0 - 0.75
    assert clock.now == 3.0


def test_a_stage_that_fails_is_closed(clock: Clock) -> None:
    watch = Stopwatch()

    def fails() -> None:
        raise LogitsError("no")

    watch.enter("rest")
    with pytest.raises(LogitsError):
        watch.timed("draws", fails)()
    watch.leave()
    assert watch.seconds["draws"] == 1.0
    assert watch.seconds["rest"] == 2.0
    del clock


class Slow(PrefixModel):
    """Whose graph takes a thousandth of a second a run, by its own account."""

    def _step(self, step: object) -> Rows:
        self.counters.seconds += 1e-9
        return super()._step(step)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("draft", ["model", "ngram", "uniform", "none"])
def test_a_profiled_text_is_the_text(codec: Codec, rule: str, draft: DraftKind) -> None:
    target = Slow(hashed(SIZE, 1), SIZE)
    drafting: Model | DraftKind = Slow(hashed(SIZE, 2), SIZE) if draft == "model" else draft
    lm = LanguageModel("a toy", target, codec, draft=drafting)
    text, watch = profile(lm, "abcabcab", seed=3, rule=rule, max_new_tokens=24)
    assert text.tokens == lm.generate("abcabcab", seed=3, rule=rule, max_new_tokens=24).tokens
    assert watch.entries["target"] == len(text.report.rounds)
    assert watch.seconds["target"] == pytest.approx(1e-9 * len(text.report.rounds))
    assert (watch.entries["draft"] > 0) == (draft == "model")
    assert watch.entries["distributions"] >= len(text.report.rounds)
    assert watch.entries["draws"] >= len(text.report.rounds)
    assert all(watch.seconds[stage] > 0 for stage in OUTSIDE)
    assert target is lm.engine.models["target"]


def test_the_models_are_put_back_when_it_fails(codec: Codec) -> None:
    target = PrefixModel(lambda prefix: [float("nan")] * SIZE, SIZE)
    lm = LanguageModel("a toy", target, codec)
    before = lm.instruments
    with pytest.raises(LogitsError):
        profile(lm, "abc")
    assert lm.instruments is before
    assert lm.engine.models["target"] is target
