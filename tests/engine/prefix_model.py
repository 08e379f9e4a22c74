"""A model whose rows are a function of the prefix, with caches that must be used as the protocol says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import Counters, Rows, Step

Table = Callable[[tuple[int, ...]], Sequence[float]]


def hashed(size: int, seed: int, sharpness: float = 2.0) -> Table:
    """Logits that look random and depend on the last three tokens."""

    def row(prefix: tuple[int, ...]) -> Sequence[float]:
        generator = np.random.default_rng([seed, *prefix[-3:]])
        return (generator.standard_normal(size) * sharpness).tolist()

    return row


ANY = RowRule(1, 1)


class PrefixModel:
    """`journee_deploy.runtime.Model` over a table; strict about starts, keeps, contexts and slots."""

    def __init__(self, table: Table, size: int, context: int = 4096, rule: RowRule | None = ANY) -> None:
        self.table = table
        self.name = "toy"
        self.vocabulary_size = size
        self.context_length = context
        self.row_rule = rule
        self.row_rule_note = "a table" if rule else "switched off for a test"
        self.counters = Counters()
        self.slots: dict[int, list[int]] = {}
        self.closed = False

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        assert not self.closed
        assert len({step.slot for step in steps}) == len(steps)
        return [self._step(step) for step in steps]

    def _step(self, step: Step) -> Rows:
        cache = self.slots.setdefault(step.slot, [])
        assert 0 <= step.start <= len(cache)
        assert 1 <= step.keep <= len(step.tokens)
        assert step.start + len(step.tokens) <= self.context_length
        cache[step.start :] = step.tokens
        self.counters.runs += 1
        self.counters.rows += len(step.tokens)
        first = len(cache) - step.keep + 1
        rows = [self.table(tuple(cache[:end])) for end in range(first, len(cache) + 1)]
        return np.array(rows, np.float32)

    def held(self, slot: int) -> int:
        return len(self.slots.get(slot, []))

    def release(self, slot: int) -> None:
        self.slots.pop(slot, None)

    def close(self) -> None:
        self.closed = True
