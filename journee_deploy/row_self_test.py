"""The self-test that finds a model's row rule on this machine: the cheapest candidate under which no row differs.

Rows of random splits are compared, bit for bit, with the rows of one long run, both under the candidate rule. A split
takes each count of 1 to 17 rows in random order, now and then steps back, keeps one row, all or some, and has random
tokens in its padding. Splits start from nothing, after real prefills up to past one chunk, and after invented caches up
to 2,000 tokens long, for a kernel may change its path with the length.

Where the context has room for all of it, over 900 rows of 150 to 200 runs are compared for the rule found. A fault in
one run shape of twenty escapes with a chance below 0.1%, in one of a hundred with 25%; one that needs a length or a
count not tried here escapes always: the rule is measured, not proved. The seed is fixed, so that a machine finds the
same rule each time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

from journee_deploy.forward import Cache
from journee_deploy.row_rule import CANDIDATES, RowRule
from journee_deploy.runtime import Counters, Rows, Step
from journee_deploy.slot_runner import Runner, Slot

LARGEST = 17
"""Rows of the largest step of a split: K + 1 for K = 16."""
SPLIT = 153
"""Rows that a split covers at most: each count of 1 to 17 once."""
PREFILLS = (0, 0, 0, 40, 40)
"""Lengths of the real prefills before a split each; one more ends just past a chunk."""
INVENTED = {240: 40, 496: 80, 1008: 40, 2000: 40}
"""Lengths of the invented caches, and rows run after them. They are multiples of 16, so that aligned blocks
start where they end, and most are such that the rows cross a power of two.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """The rule found, or None, and how many rows were compared for it."""

    rule: RowRule | None
    rows: int


def find_row_rule(runner: Runner[Cache], candidates: tuple[RowRule, ...] = CANDIDATES) -> Finding:
    """The first candidate under which all rows agree. The runner's caches and counters are its own; nothing
    is kept.
    """
    compared = 0
    for rule in candidates:
        trial = Trial(runner, rule, random.Random(20_260_711))
        if trial.holds():
            return Finding(rule, trial.compared)
        compared += trial.compared
    return Finding(None, compared)


@dataclass(slots=True)
class Trial(Generic[Cache]):
    """One candidate rule on trial; `compared` counts rows."""

    runner: Runner[Cache]
    rule: RowRule
    chance: random.Random
    compared: int = 0

    def holds(self) -> bool:
        """Whether all rows agree. The first scene is short, so that most candidates fail soon."""
        return all(self._scene(*scene) for scene in self._scenes())

    def _scenes(self) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """(length of the invented cache, of the text after it, prefills of that text), as far as the context
        reaches.
        """
        context = self.runner.facts.context_length
        past_chunk = self.runner.chunk + 1
        scenes = [(0, SPLIT // 2, (0,)), (0, past_chunk + SPLIT // 2, (*PREFILLS, past_chunk))]
        scenes += [(invented, length, (0,)) for invented, length in INVENTED.items()]
        for invented, length, prefills in scenes:
            length = min(length, context - invented)
            if length > 0:
                yield invented, length, tuple(prefill for prefill in prefills if prefill < length)

    def _scene(self, invented: int, length: int, prefills: tuple[int, ...]) -> bool:
        text = tuple(self._token() for _ in range(length))
        long_run = Walk(self, self._slot(invented), invented, text)
        expected = long_run.rows(0, length, keep=length)
        return all(
            self._split(Walk(self, self._slot(invented), invented, text), prefill, expected) for prefill in prefills
        )

    def _split(self, walk: Walk[Cache], prefill: int, expected: Rows) -> bool:
        """Prefill, then go on in random steps; False at the first row that differs."""
        steps = [(0, prefill, 1)] if prefill else []
        for at, end, keep in [*steps, *self._steps(prefill, min(len(expected), prefill + SPLIT))]:
            self.compared += keep
            if walk.rows(at, end, keep).tobytes() != expected[end - keep : end].tobytes():
                return False
        return True

    def _steps(self, first: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """(start, end, keep) of random steps from `first` to `stop`, some of which step back before they go
        on.
        """
        at = first
        for count in self._counts():
            if at == stop:
                return
            end = min(stop, at + count)
            every = end - at
            yield at, end, self.chance.choice((1, every, every, self.chance.randint(1, every)))
            at = end if end == stop or self.chance.random() < 0.7 else max(first, end - self.chance.randint(1, 5))

    def _counts(self) -> Iterator[int]:
        """One row first, then each count of 1 to 17 once and three more ones, in random order, again and again."""
        yield 1
        while True:
            counts = [*range(1, LARGEST + 1), 1, 1, 1]
            self.chance.shuffle(counts)
            yield from counts

    def _slot(self, invented: int) -> Slot[Cache]:
        return self.runner.invented(invented, seed=invented)

    def _token(self) -> int:
        return self.chance.randrange(self.runner.facts.vocabulary_size)

    def garbage(self) -> list[int]:
        """Random tokens for the padding of one run."""
        return [self._token() for _ in range(LARGEST)]


@dataclass(frozen=True, slots=True)
class Walk(Generic[Cache]):
    """A slot that holds `invented` tokens, and the text to run after them."""

    trial: Trial[Cache]
    slot: Slot[Cache]
    invented: int
    text: tuple[int, ...]

    def rows(self, at: int, end: int, keep: int) -> Rows:
        """Run text[at:end]; what comes before is in the slot."""
        step = Step(0, self.text[at:end], self.invented + at, keep)
        return self.trial.runner.step(self.slot, step, self.trial.rule, Counters(), self.trial.garbage())
