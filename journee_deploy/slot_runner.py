"""Running steps on slots over any framework's `Forward`: rewinding, chunks and padding happen here and
nowhere else.

Each slot keeps the tokens it holds and two caches: the one its last run started from and the one it left.
Rules:

1. A run starts from a cache of exactly as many tokens as come before it. If neither cache has that length,
   the later one is trimmed, which is a copy.
2. Where a rule asks for padding, rows between the earlier cache and the step's start may take its place: they
   are run again from known tokens, which costs no more than padding and saves the trim. Plain decoding at two
   rows a run thus copies nothing. Caches that are buffers have no trim to save, and padding computes no experts.
3. A step that fails leaves its slot consistent, holding the part of the text that was run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Generic, NamedTuple

import numpy as np

from journee_deploy.forward import Cache, Forward
from journee_deploy.row_rule import CHUNK, LARGEST, Piece, RowRule
from journee_deploy.runtime import Counters, Rows, RuntimeFailure, Step

PADDING = 0
"""The token id of padding rows; any id would do."""
LARGEST_PADDING = 2 * LARGEST
"""More rows than any rule adds to a run."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What messages and callers need to know of a model; see `journee_deploy.runtime.Model`."""

    name: str
    vocabulary_size: int
    context_length: int


class Held(NamedTuple, Generic[Cache]):
    """A cache of `length` tokens, padding included."""

    cache: Cache
    length: int


@dataclass(slots=True)
class Slot(Generic[Cache]):
    """The tokens one slot holds, and its caches: before and after its last run. `after` covers all tokens."""

    before: Held[Cache]
    after: Held[Cache]
    tokens: list[int] = field(default_factory=list[int])

    def rewind(self, length: int, forward: Forward[Cache]) -> Cache:
        """Hold the first `length` tokens alone, at most as many as are held; their cache."""
        base = self._cache_of(length, forward)
        self.before = self.after = base
        del self.tokens[length:]
        return base.cache

    def advance(self, tokens: Sequence[int], cache: Cache, length: int) -> None:
        """Hold `tokens` more; `cache` has `length` tokens, padding included."""
        self.after = Held(cache, length)
        self.tokens += tokens

    def origin(self, start: int, count: int, rule: RowRule) -> int:
        """Where to begin a run of `count` rows from `start` on: there, or at the earlier cache in place of padding."""
        earlier = self.before.length
        return earlier if 0 < start - earlier <= rule.padding(start, count) else start

    def _cache_of(self, length: int, forward: Forward[Cache]) -> Held[Cache]:
        for held in (self.after, self.before):
            if held.length == length:
                return held
        trims = length or forward.in_place
        return Held(forward.trim(self.after.cache, length) if trims else forward.empty(), length)


class Runner(Generic[Cache]):
    """Runs steps on slots under any rule. Steps must be sound: `SlotModel` checks them."""

    def __init__(self, forward: Forward[Cache], facts: Facts, chunk: int = CHUNK) -> None:
        self.forward = forward
        self.facts = facts
        self.chunk = chunk
        self._longest = facts.context_length + LARGEST_PADDING
        self._masks = np.repeat(np.array([1, 0], np.int64), [self._longest, LARGEST_PADDING])
        self._positions = np.arange(self._longest, dtype=np.int64)

    def fresh(self) -> Slot[Cache]:
        nothing = Held(self.forward.empty(), 0)
        return Slot(nothing, nothing)

    def invented(self, length: int, seed: int) -> Slot[Cache]:
        """A slot that holds `length` tokens that never were; for the row self-test."""
        if not length:
            return self.fresh()
        cache = Held(self.forward.invent(length, seed), length)
        return Slot(cache, cache, [PADDING] * length)

    def step(
        self, slot: Slot[Cache], step: Step, rule: RowRule, counters: Counters, garbage: Sequence[int] = ()
    ) -> Rows:
        """Rows [keep, vocabulary] of one step. Padding takes its tokens from `garbage` while it lasts."""
        end = step.start + len(step.tokens)
        origin = step.start if self.forward.in_place else slot.origin(step.start, len(step.tokens), rule)
        pieces = rule.plan(origin, end - origin, step.keep, self.chunk)
        first = pieces[0].start
        tokens = (*slot.tokens[first : step.start], *step.tokens)
        wanted: list[Rows] = []
        for piece in pieces:
            rows = self._piece(slot, tokens[piece.start - first : piece.end - first], piece, garbage, counters)
            counters.runs += 1
            counters.padding += piece.rows
            if len(rows):
                wanted.append(rows)
        counters.rows += len(step.tokens)
        counters.padding -= len(step.tokens)
        return wanted[0] if len(wanted) == 1 else np.concatenate(wanted)

    def _piece(
        self, slot: Slot[Cache], tokens: tuple[int, ...], piece: Piece, garbage: Sequence[int], counters: Counters
    ) -> Rows:
        past = slot.rewind(piece.start, self.forward)
        filler = (*garbage, *[PADDING] * piece.padding)[: piece.padding]
        total = piece.start + piece.rows
        mask = self._masks[self._longest - piece.end : self._longest + piece.padding]
        positions = self._positions[piece.start : total]
        began = perf_counter()
        rows, cache = self.forward.run(past, np.array(tokens + filler, np.int64), mask, positions, piece.keep)
        counters.seconds += perf_counter() - began
        self._check_rows(rows, piece.keep)
        slot.advance(tokens, cache, total)
        last = piece.keep - piece.padding
        return rows[last - piece.take : last]

    def _check_rows(self, rows: Rows, keep: int) -> None:
        expected = (keep, self.facts.vocabulary_size)
        if rows.shape != expected or rows.dtype != np.float32:
            found = f"{rows.dtype} {list(rows.shape)}"
            raise RuntimeFailure(
                f"{self.facts.name}: logits are {found}, expected float32 {list(expected)}; export the model again"
            )
