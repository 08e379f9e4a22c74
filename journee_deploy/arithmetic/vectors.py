"""The ops in NumPy: what ships on CPython. Equal to plain.py to the bit; vector_steps.py has the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journee_deploy.arithmetic.arena import Arena, LogitsError
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vector_steps import Spike, Vector, check, distribute, process, scratch
from journee_deploy.controller.darts import STEP, WIDTHS, floor

# By their bits: no denormal literal, no finfo. Four, as many as go through a vector instruction.
_SMALLEST = np.full(4, 1, np.uint32).view(np.float32)
_SMALLEST_WIDE = np.full(4, 1, np.uint64).view(np.float64)
_TWO = np.float32(2)

STRIDE = 256
"""Tokens a partial sum: where a cumulative sum is looked for in two steps."""


def check_denormals() -> None:
    """Refuse to sample while the processor flushes denormals to zero: the argmax of denormal logits would
    move.
    """
    widened, narrow, wide = _SMALLEST.astype(np.float64), _SMALLEST * _TWO, _SMALLEST_WIDE * 2.0
    if not (widened.all() and narrow.all() and wide.all()):
        raise LogitsError(
            "this thread flushes denormal numbers to zero, so distributions would not be exact; "
            "switch off set_denormal_as_zero, torch.set_flush_denormal or -ffast-math in this process"
        )


def first_largest(values: Vector, count: int) -> list[tuple[int, float]]:
    """The `count` largest entries, lowest index first among equals."""
    order = np.argsort(-values, kind="stable")[:count]
    return [(int(token), float(values[token])) for token in order]


class VectorOps(Arena):
    """The ops over NumPy vectors. Rows of logits are float32 or float64 and are widened before any
    arithmetic.

    Vectors that the ops made are overwritten after `clear`, unless `vector` has shown them to someone.
    """

    def __init__(self, prompt: list[int], size: int, sampling: Sampling, ends: Sequence[int] = ()) -> None:
        super().__init__(prompt, size, sampling, ends)
        self._prompt = np.array(sorted(set(prompt)), np.intp)
        self._scratch = scratch(size)
        self._starts = np.arange(0, size, STRIDE)
        self._spare: list[Vector] = []
        self._lent: list[Vector] = []
        self._running: dict[int, Vector] = {}

    # Memory.

    def clear(self) -> None:
        """Forget every row and distribution."""
        super().clear()
        self._running.clear()
        self._spare += self._lent
        self._lent.clear()

    def _borrow(self) -> Vector:
        """A vector with anything in it, ours until `clear`."""
        vector = self._spare.pop() if self._spare else np.empty(self.size)
        self._lent.append(vector)
        return vector

    def vector(self, handle: int) -> Vector:
        """The distribution itself, of length `size`; the ops' own, not to be changed."""
        held: Vector | Spike = self._distributions[handle]
        if isinstance(held, Spike):
            return held.dense(self.size)
        self._lent = [vector for vector in self._lent if vector is not held]
        return held

    # The ops.

    def _distribute(self, role: str, position: int, logits: NDArray[Any]) -> Vector | Spike | None:
        check(logits, role, position)
        banned = self.ends if self._ending_is_banned() else ()
        out = self._borrow()
        x = process(logits, self.size, self.sampling, self.history, self._prompt, banned, out)
        return distribute(x, self.sampling, out, self._scratch)

    def one_hot(self, token: int) -> int:
        return self.keep(Spike(token))

    def uniform(self) -> int:
        """What equal logits give under the options: a draft that knows nothing."""
        return self.distribution(self.hold("uniform draft", len(self.history), np.zeros((1, self.size))))

    def weight(self, handle: int, token: int) -> float:
        """A token's probability."""
        held: Vector | Spike = self._distributions[handle]
        return held.at(token) if isinstance(held, Spike) else held.item(token)

    def total(self, handle: int) -> float:
        """The sum of a vector: 1 for a distribution, Z for a residual."""
        held: Vector | Spike = self._distributions[handle]
        return held.weight if isinstance(held, Spike) else self._reached(handle, held).item(-1)

    def locate(self, handle: int, fraction: float) -> int:
        """The first token whose cumulative sum exceeds `fraction`, which is at least 0 and below the total."""
        if not fraction < self.total(handle):
            raise ValueError(f"{fraction} is not below the vector's total {self.total(handle)}")
        held: Vector | Spike = self._distributions[handle]
        if isinstance(held, Spike):
            return held.token
        reached = self._reached(handle, held)
        block = int(reached.searchsorted(fraction, "right"))
        within = held[block * STRIDE : (block + 1) * STRIDE].cumsum()
        if block:
            within += reached[block - 1]
        return block * STRIDE + int(within.searchsorted(fraction, "right"))

    def _reached(self, handle: int, vector: Vector) -> Vector:
        """Cumulative sums after every STRIDE tokens; exact, in whatever order they are added."""
        if handle not in self._running:
            self._running[handle] = np.add.reduceat(vector, self._starts).cumsum()
        return self._running[handle]

    def residual(self, p: int, q: int) -> int:
        """max(p - q, 0), not normalised."""
        ours: Vector | Spike = self._distributions[p]
        if isinstance(ours, Spike):
            return self.keep(Spike(ours.token, max(ours.weight - self.weight(q, ours.token), 0.0)))
        theirs: Vector | Spike = self._distributions[q]
        left = self._borrow()
        np.subtract(ours, theirs.dense(self.size) if isinstance(theirs, Spike) else theirs, left)
        return self.keep(np.maximum(left, 0.0, out=left))

    def boxes(self, handle: int) -> list[tuple[int, int]]:
        """The boxes (tier, number) in which some token rises above the tier's floor (controller.darts)."""
        tallest = self.vector(handle)
        found: list[tuple[int, int]] = []
        for tier in range(len(WIDTHS)):
            if tier:
                tallest = np.maximum.reduceat(tallest, np.arange(0, len(tallest), STEP))
            found += [(tier, box) for box in np.flatnonzero(tallest > floor(tier)).tolist()]
        return found

    def overlap(self, p: int, q: int) -> float:
        """The sum of min(p, q), which is 1 - TV."""
        return float(np.minimum(self.vector(p), self.vector(q)).sum())

    def agreement(self, p: int, q: int) -> float:
        """The probability that the first darts under p and q fall on the same token. Rounded: for reports alone."""
        a, b = self.vector(p), self.vector(q)
        return float((np.minimum(a, b) * (1.0 + np.abs(a - b))).sum()) / (2.0 - self.overlap(p, q))

    def top(self, handle: int, count: int) -> list[tuple[int, float]]:
        """The `count` most probable tokens with their probabilities, lowest index first among equals."""
        return first_largest(self.vector(handle), count)

    def top_logits(self, row: int, count: int) -> list[tuple[int, float]]:
        """The `count` largest raw logits within the vocabulary, lowest index first among equals."""
        return first_largest(self._rows[row][2][: self.size].astype(np.float64), count)
