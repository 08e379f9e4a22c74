"""Ctrl-C as a wish that a loop grants between two steps, so that what it saves is never half a step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Interrupt:
    """Whether Ctrl-C was pressed."""

    wanted: bool = False


@contextmanager
def held_interrupt() -> Generator[Interrupt]:
    """While the block runs, the first Ctrl-C is only noted; a second one raises KeyboardInterrupt at once.

    The handler that was there is put back. Signals reach the main thread alone, so in any other one nothing is changed;
    nor is it where SIGINT is ignored, as for a background job of a shell.
    """
    interrupt = Interrupt()

    def note(_signal: int, _frame: object) -> None:
        if interrupt.wanted:
            raise KeyboardInterrupt
        interrupt.wanted = True

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield interrupt
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
