"""Where the time of a generation goes, stage by stage, while the shipped loop runs.

    target, draft   inside the graphs
    around          the runtime's work beside them: checks, padding, slots, copies
    distributions   from logits to distributions
    draws           random numbers, verdicts, residuals, tokens looked up
    rest            the controller, stops, text

Stages are exclusive: what runs inside another stage is taken out of it. The stopwatch itself costs about a microsecond
a stage entered, which goes to the stage around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, ParamSpec, TypeVar, Unpack, cast

from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import Chance
from journee_deploy.language_model import Instruments, LanguageModel
from journee_deploy.report import Generation
from journee_deploy.request import Options
from journee_deploy.runtime import Model, Rows, Step

STAGES: tuple[str, ...] = ("target", "draft", "around", "distributions", "draws", "rest")
OUTSIDE = ("around", "distributions", "draws", "rest")
"""Stages that are no graph."""

P = ParamSpec("P")
R = TypeVar("R")


class Stopwatch:
    """Seconds and entries by stage. Stages nest; the inner one's time is not the outer one's."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self.entries: dict[str, int] = dict.fromkeys(STAGES, 0)
        self._open: list[str] = []
        self._since = 0.0

    def timed(self, stage: str, work: Callable[P, R]) -> Callable[P, R]:
        """`work`, timed as that stage."""

        def run(*arguments: P.args, **options: P.kwargs) -> R:
            self.enter(stage)
            try:
                return work(*arguments, **options)
            finally:
                self.leave()

        return run

    def enter(self, stage: str) -> None:
        self._charge()
        self._open.append(stage)
        self.entries[stage] += 1

    def leave(self) -> None:
        self._charge()
        self._open.pop()

    def move(self, seconds: float, stage: str) -> None:
        """So much of the open stage's time, past already, was another one's."""
        self._charge()
        self.seconds[self._open[-1]] -= seconds
        self.seconds[stage] += seconds
        self.entries[stage] += 1

    def _charge(self) -> None:
        now = perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


def profile(lm: LanguageModel, prompt: str | Sequence[int], **options: Unpack[Options]) -> tuple[Generation, Stopwatch]:
    """One generation, and where its time went. Options: journee_deploy.Request."""
    watch = Stopwatch()
    before, models = lm.instruments, dict(lm.engine.models)
    lm.instruments = _instruments(watch)
    lm.engine.models = {role: cast(Model, TimedModel(model, role, watch)) for role, model in models.items()}
    try:
        return _whole(watch, lm, prompt, options), watch
    finally:
        lm.instruments, lm.engine.models = before, models


def _whole(watch: Stopwatch, lm: LanguageModel, prompt: str | Sequence[int], options: Options) -> Generation:
    watch.enter("rest")
    try:
        return lm.generate(prompt, **options)
    finally:
        watch.leave()


def _instruments(watch: Stopwatch) -> Instruments:
    """Ops and chance that tell the stopwatch."""

    class TimedOps(VectorOps):
        distribution = watch.timed("distributions", VectorOps.distribution)
        residual = watch.timed("draws", VectorOps.residual)

    class TimedChance(Chance):
        accept = watch.timed("draws", Chance.accept)
        pick = watch.timed("draws", Chance.pick)
        first_dart = watch.timed("draws", Chance.first_dart)

    return Instruments(TimedOps, TimedChance)


class TimedModel:
    """A `journee_deploy.runtime.Model` that tells the stopwatch: its graph's seconds apart from the rest of a run."""

    def __init__(self, model: Model, role: str, watch: Stopwatch) -> None:
        self._model = model
        self._role = role
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        self._watch.enter("around")
        before = self._model.counters.seconds
        try:
            return self._model.run(steps)
        finally:
            self._watch.move(self._model.counters.seconds - before, self._role)
            self._watch.leave()
