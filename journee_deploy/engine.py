"""The loop between a controller and the models: answers its runs, passes on what it emits, measures where time goes.

Roles map to models and that is all there is to mixed providers: a target on one and a draft on another are two entries.
The engine knows no rule, no distribution and no text. It takes one slot in each model for a generation and gives it
back.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from threading import RLock
from time import perf_counter

from journee_deploy.arithmetic.arena import Arena
from journee_deploy.controller import Emit, Run
from journee_deploy.runtime import Model, Step


@dataclass(slots=True)
class Meter:
    """What one generation cost, by role: runs, rows of padding, seconds inside the graph; and seconds in all."""

    runs: dict[str, int] = field(default_factory=dict[str, int])
    padding: dict[str, int] = field(default_factory=dict[str, int])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    total: float = 0.0
    first: float = 0.0  # until the first tokens were final

    def add(self, role: str, padding: int, seconds: float) -> None:
        self.runs[role] = self.runs.get(role, 0) + 1
        self.padding[role] = self.padding.get(role, 0) + padding
        self.seconds[role] = self.seconds.get(role, 0.0) + seconds


class Engine:
    """Models by role. Generations may run at the same time from several threads; each model runs one step at a time.

    The locks are re-entrant, since the collector may end an abandoned generation, which gives its slots back, while
    another one's step is running in the same thread.
    """

    def __init__(self, models: Mapping[str, Model]) -> None:
        self.models = dict(models)
        self._locks = {role: RLock() for role in self.models}
        self._slots = count()

    def drive(
        self, wishes: Generator[tuple[Run, ...] | Emit, tuple[int, ...], None], ops: Arena, meter: Meter
    ) -> Iterator[Emit]:
        """Run a controller; yield what it emits. Closing this closes the controller and gives the slots back."""
        slot = next(self._slots)
        began = perf_counter()
        try:
            wish = next(wishes, None)
            while wish is not None:
                if isinstance(wish, Emit):
                    meter.total = perf_counter() - began
                    meter.first = meter.first or meter.total
                    yield wish
                    began = perf_counter() - meter.total  # what the reader of the stream does is not counted
                    wish = _send(wishes, ())
                else:
                    wish = _send(wishes, tuple(self._answer(run, slot, ops, meter) for run in wish))
        finally:
            wishes.close()
            for role, model in self.models.items():
                with self._locks[role]:
                    model.release(slot)

    def _answer(self, run: Run, slot: int, ops: Arena, meter: Meter) -> int:
        model = self.models[run.role]
        with self._locks[run.role]:
            counters = model.counters
            padding, seconds = counters.padding, counters.seconds
            (rows,) = model.run([Step(slot, tuple(run.tokens), run.start, run.keep)])
            meter.add(run.role, counters.padding - padding, counters.seconds - seconds)
        return ops.hold(run.role, run.start + len(run.tokens) - run.keep + 1, rows)

    @contextmanager
    def idle(self) -> Generator[None]:
        """No generation's step runs inside; for measuring."""
        with ExitStack() as held:
            for lock in self._locks.values():
                held.enter_context(lock)
            yield

    def close(self) -> None:
        """Free the models, each once its step is done."""
        for role, model in self.models.items():
            with self._locks[role]:
                model.close()


def _send(
    wishes: Generator[tuple[Run, ...] | Emit, tuple[int, ...], None], answer: tuple[int, ...]
) -> tuple[Run, ...] | Emit | None:
    try:
        return wishes.send(answer)
    except StopIteration:
        return None
