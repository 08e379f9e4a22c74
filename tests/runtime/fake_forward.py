"""A `Forward` in NumPy whose rows depend on their prefix alone, unless a fault is asked for.

Its cache is the tokens themselves, so that padding left in a cache, a wrong mask or a wrong position is caught at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from journee_deploy.forward import Ids
from journee_deploy.runtime import Rows
from journee_deploy.slot_runner import Facts, Runner

Text = tuple[int, ...]
VOCABULARY = 7
CONTEXT = 2304


@dataclass(frozen=True)
class Run:
    """The shape of one run, for faults."""

    start: int
    tokens: Text
    keep: int
    number: int

    @property
    def rows(self) -> int:
        return len(self.tokens)

    @property
    def total(self) -> int:
        return self.start + self.rows


Fault = Callable[[Run], float]


def healthy(run: Run) -> float:
    del run
    return 0.0


def expected(text: Text) -> Rows:
    """The row after `text`."""
    return np.random.default_rng(zlib.crc32(bytes(text))).standard_normal(VOCABULARY, np.float32)


@dataclass
class FakeForward:
    """`fault` gives what a run adds to all of its rows. `runs`, `padding` and `trims` tell what was asked for."""

    fault: Fault = healthy
    runs: int = 0
    padding: int = 0
    trims: list[int] = field(default_factory=list)
    freed: int = 0
    closed: bool = False

    def empty(self) -> Text:
        return ()

    def run(self, past: Text, tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, Text]:
        self.runs += 1
        start, rows = len(past), len(tokens)
        real = int(mask[start:].sum())
        self.padding += rows - real
        assert mask.tolist() == [1] * (start + real) + [0] * (rows - real)
        assert positions.tolist() == list(range(start, start + rows))
        assert 1 <= real <= rows
        assert 1 <= keep <= rows
        added = np.float32(self.fault(Run(start, tuple(tokens.tolist()), keep, self.runs)))
        text = (*past, *tokens.tolist())
        wanted = range(len(text) - keep + 1, len(text) + 1)
        return np.stack([expected(text[:end]) + added for end in wanted]), text

    @property
    def in_place(self) -> bool:
        return False

    def free(self, cache: Text) -> None:
        self.freed += 1

    def trim(self, cache: Text, length: int) -> Text:
        assert 0 < length < len(cache)
        self.trims.append(length)
        return cache[:length]

    def invent(self, length: int, seed: int) -> Text:
        return tuple(np.random.default_rng(seed).integers(0, VOCABULARY, length).tolist())

    def close(self) -> None:
        self.closed = True


def runner(fault: Fault = healthy, context: int = CONTEXT) -> Runner[Text]:
    return Runner(FakeForward(fault), Facts("a fake", VOCABULARY, context))
