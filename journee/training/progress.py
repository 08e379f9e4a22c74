"""What a run shows: a bar in a terminal, otherwise a line now and then; loss, tokens per second, time left."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

LINE_EVERY = 15.0


class TrainingProgress:
    """A context; `advance` once a step."""

    def __init__(self, title: str, start: int, steps: int, tokens_a_step: int, console: Console) -> None:
        self._title, self._steps, self._tokens = title, steps, tokens_a_step
        self._first, self._began, self._shown = start, time.monotonic(), time.monotonic()
        self._console, self._smooth = console, 0.0
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[figures]}"))
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task(title, total=steps, completed=start, figures="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def advance(self, step: int, loss: float) -> None:
        """Show that `step` steps are done, the last of them at `loss` nats a token."""
        now = time.monotonic()
        self._smooth = loss if step == self._first + 1 else 0.95 * self._smooth + 0.05 * loss
        rate = (step - self._first) / max(now - self._began, 1e-9)
        figures = f"step {step}/{self._steps}  loss {self._smooth:.3f}  {rate * self._tokens:,.0f} tokens/s"
        self._bar.update(self._task, completed=step, figures=figures)
        if not self._console.is_terminal and (now - self._shown >= LINE_EVERY or step == self._steps):
            self._shown = now
            left = (self._steps - step) / rate
            self._console.print(f"{self._title}: {figures}  {left / 60:.1f} min left", highlight=False)
