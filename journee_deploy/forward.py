"""What a framework must offer so that `journee_deploy.slots` can make a model of it: a run over an explicit cache."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from journee_deploy.runtime import Rows

Cache = TypeVar("Cache")
Ids = NDArray[np.int64]


class Forward(Protocol[Cache]):
    """A graph and the caches it reads and writes, for one sequence.

    Where `in_place` is false, a cache is never changed once made: a run gives another one. Where it is true, a cache is
    a buffer: a run writes its rows behind the past and gives the same buffer back, what it holds of the past is as
    before, and trimming costs nothing.
    """

    @property
    def in_place(self) -> bool: ...

    def empty(self) -> Cache:
        """The cache of no tokens."""
        ...

    def run(self, past: Cache, tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, Cache]:
        """Run `tokens` [rows] at `positions` [rows] after `past`; `mask` [past + rows] is 0 for padding. These may be
        views that are used again: don't write to them.

        Returns the logits of the last `keep` rows, float32 [keep, vocabulary], in memory of their own, and
        the cache of past and rows, padding included. The past is as long as mask and tokens say.
        """
        ...

    def trim(self, cache: Cache, length: int) -> Cache:
        """The first `length` tokens' cache: a copy, or the buffer itself."""
        ...

    def free(self, cache: Cache) -> None:
        """Nobody holds the cache any more; a buffer may be used again."""
        ...

    def invent(self, length: int, seed: int) -> Cache:
        """A cache of `length` tokens that never were, with finite values that differ; the row self-test runs
        after it.
        """
        ...

    def close(self) -> None:
        """Free what the framework holds."""
        ...
