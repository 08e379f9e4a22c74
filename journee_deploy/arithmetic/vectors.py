"""The arithmetic in NumPy: what ships on CPython. Equal to plain.py to the bit; docs/distributions.md says
why each step is.

Only elementwise float64 operations, integer-valued sums and sorts: no dot, matmul, einsum or fused kernel on
this path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journee_deploy.arithmetic.arena import Arena, LogitsError
from journee_deploy.arithmetic.exponential import COEFFICIENTS, LN2_HIGH, LN2_LOW, LOG2E, LOWEST, POWERS
from journee_deploy.arithmetic.history import History
from journee_deploy.arithmetic.plain import bad_logit, no_logit
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.units import HALF, SCALE
from journee_deploy.controller.darts import STEP, WIDTHS, floor

Vector = NDArray[np.float64]

_POWERS = np.array(POWERS)


def check_denormals() -> None:
    """Refuse to sample while the processor flushes denormals to zero: the argmax of denormal logits would
    move.
    """
    smallest = np.full(4, 1, np.uint32).view(np.float32)  # by its bits: no denormal literal, no finfo
    kept = np.all(smallest.astype(np.float64) > 0.0) and np.all(smallest * np.float32(2) > 0.0)
    if not (kept and np.all(np.full(4, 1, np.uint64).view(np.float64) * 2.0 > 0.0)):
        raise LogitsError(
            "this thread flushes denormal numbers to zero, so distributions would not be exact; "
            "switch off set_denormal_as_zero, torch.set_flush_denormal or -ffast-math in this process"
        )


def exponential(z: Vector) -> Vector:
    """exp(z), elementwise, for -36 <= z <= 0, as specified."""
    n = np.floor(z * LOG2E + 0.5)
    r = (z - n * LN2_HIGH) - n * LN2_LOW
    value = np.full_like(r, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        value *= r
        value += coefficient
    value *= _POWERS[(-n).astype(np.intp)]
    return value


def check(logits: Vector, role: str, position: int) -> None:
    """Step 1: NaN, plus infinity, or nothing but minus infinity is an error."""
    peak = logits.max()
    if not peak < np.inf:  # NaN too: max passes it on
        token = int(np.flatnonzero(~(logits < np.inf))[0])
        raise LogitsError(bad_logit(role, position, token, float(logits[token])))
    if peak == -np.inf:
        raise LogitsError(no_logit(role, position))


def process(logits: Vector, size: int, sampling: Sampling, history: History, banned: Sequence[int]) -> Vector:
    """Steps 2 and 3, in float64, on a copy."""
    x = np.full(size, -np.inf)
    width = min(size, len(logits))
    x[:width] = logits[:width]
    for token, amount in sampling.logit_bias:
        x[token] += amount
    if sampling.repetition_penalty != 1.0:
        seen = np.array(history.seen(), np.intp)
        values = x[seen]
        x[seen] = np.where(values > 0.0, values / sampling.repetition_penalty, values * sampling.repetition_penalty)
    if history.counts and (sampling.frequency_penalty != 0.0 or sampling.presence_penalty != 0.0):
        _subtract_counts(x, sampling, history)
    if banned:
        x[list(banned)] = -np.inf
    return x


def _subtract_counts(x: Vector, sampling: Sampling, history: History) -> None:
    tokens = np.fromiter(history.counts.keys(), np.intp)
    counts = np.fromiter(history.counts.values(), np.float64)
    values = x[tokens]
    if sampling.frequency_penalty != 0.0:
        values = values - sampling.frequency_penalty * counts
    if sampling.presence_penalty != 0.0:
        values = values - sampling.presence_penalty
    x[tokens] = values


def weigh(x: Vector, best: int, temperature: float, k: int) -> Vector:
    """Steps 5 and 6: the counts of units before normalising."""
    with np.errstate(over="ignore", under="ignore"):
        z = (x - x[best]) / temperature
    kept = z >= LOWEST
    if 0 < k < len(x):
        kept &= x >= np.partition(x, len(x) - k)[len(x) - k]
    units = np.zeros_like(x)
    units[kept] = np.floor(exponential(z[kept]) * SCALE)
    return units


def sum_once(k: Vector) -> float:
    """Step 7: the sum, rounded once."""
    high = np.floor(k / HALF)
    low = k - high * HALF
    return float(high.sum() * HALF + low.sum())


def normalise(k: Vector, best: int) -> Vector:
    """Step 10: multiples of 2^-50 that sum to exactly 1."""
    units: Vector = np.floor(k / sum_once(k) * SCALE)
    units[best] += SCALE - units.sum()
    return units / SCALE


def top_p(k: Vector, best: int, mass: float) -> Vector:
    """Step 8: the fewest entries, most probable first, whose mass reaches `mass`."""
    if mass == 1.0:
        return k
    p = normalise(k, best)
    key = -p
    key[best] = np.nextafter(key[best], -np.inf)  # first among equals; others differ by 2^-50 or more
    order = np.argsort(key, kind="stable")
    before = np.concatenate(([0.0], np.cumsum(p[order])[:-1]))
    return np.where(_at(order, before < mass), k, 0.0)


def _at(order: NDArray[np.intp], flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    scattered = np.empty_like(flags)
    scattered[order] = flags
    return scattered


def distribute(x: Vector, sampling: Sampling) -> Vector | None:
    """Steps 4 to 10: the distribution of processed logits; None if all are minus infinity."""
    best = int(np.argmax(x))
    if x[best] == -np.inf:
        return None
    if sampling.temperature == 0.0:
        return one_hot(len(x), best)
    k = top_p(weigh(x, best, sampling.temperature, sampling.top_k), best, sampling.top_p)
    if sampling.min_p > 0.0:
        k = np.where(k >= sampling.min_p * SCALE, k, 0.0)
    return normalise(k, best)


def one_hot(size: int, token: int) -> Vector:
    vector = np.zeros(size)
    vector[token] = 1.0
    return vector


def first_largest(values: Vector, count: int) -> list[tuple[int, float]]:
    """The `count` largest entries, lowest index first among equals."""
    order = np.argsort(-values, kind="stable")[:count]
    return [(int(token), float(values[token])) for token in order]


class VectorOps(Arena):
    """The ops over NumPy vectors. Rows of logits are float32 or float64 and are widened before any
    arithmetic.
    """

    def _distribute(self, role: str, position: int, logits: NDArray[Any]) -> Vector | None:
        wide = logits.astype(np.float64)
        check(wide, role, position)
        banned = self.ends if self._ending_is_banned() else ()
        return distribute(process(wide, self.size, self.sampling, self.history, banned), self.sampling)

    def one_hot(self, token: int) -> int:
        return self.keep(one_hot(self.size, token))

    def uniform(self) -> int:
        """What equal logits give under the options: a draft that knows nothing."""
        return self.distribution(self.hold("uniform draft", len(self.history), np.zeros((1, self.size))))

    def weight(self, handle: int, token: int) -> float:
        """A token's probability."""
        return float(self.vector(handle)[token])

    def total(self, handle: int) -> float:
        """The sum of a vector: 1 for a distribution, Z for a residual."""
        return float(self.vector(handle).sum())

    def locate(self, handle: int, fraction: float) -> int:
        """The first token whose cumulative sum exceeds `fraction`, which is at least 0 and below the total."""
        reached = np.cumsum(self.vector(handle))
        token = int(np.searchsorted(reached, fraction, side="right"))
        if token == len(reached):
            raise ValueError(f"{fraction} is not below the vector's total {reached[-1]}")
        return token

    def residual(self, p: int, q: int) -> int:
        """max(p - q, 0), not normalised."""
        return self.keep(np.maximum(self.vector(p) - self.vector(q), 0.0))

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
