"""Steps 1 to 10 in NumPy. Equal to plain.py to the bit; docs/distributions.md says why each step is.

Only elementwise float64 operations, integer-valued sums and sorts: no dot, matmul, einsum or fused kernel on
this path.

What saves time changes no bit (docs/performance.md, "Time outside the graphs"):

1. A pass over the vector writes where there is memory already: into the result, or into a scratch that fits a core's
   cache. Fresh memory for whole vectors costs more than the arithmetic, since the system hands it out page by page.
2. An entry that can't get a count is left out before its exponential is computed, and put back as 0 at the end.
3. Powers of two, which are exact, are moved to where they save a pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journee_deploy.arithmetic.arena import LogitsError
from journee_deploy.arithmetic.exponential import COEFFICIENTS, LN2_HIGH, LN2_LOW, LOG2E, LOWEST
from journee_deploy.arithmetic.history import History
from journee_deploy.arithmetic.plain import bad_logit, no_logit
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.units import SCALE

Vector = NDArray[np.float64]
Ids = NDArray[np.intp]
Logits = NDArray[Any]

BLOCK = 16384
"""Entries that go through the exponential together: three arrays of them stay in a core's cache."""
COOLEST = 1e-6
"""From this temperature on, no quotient of float32 logits overflows, so that no warning need be kept quiet."""
SAFE = 4096
"""Counts whose sum surely fits a signed 64-bit integer."""
EXACT = float(1 << 53)
"""Sums of whole numbers are exact in float64 while they stay below this."""

# Arrays without dimensions: NumPy takes them as they are, where a Python number is converted at every call.
_LOG2E, _HALF, _HIGH, _LOW = np.array(LOG2E), np.array(0.5), np.array(LN2_HIGH), np.array(LN2_LOW)
_COEFFICIENTS = tuple(np.array(coefficient) for coefficient in COEFFICIENTS)
_LOWEST = np.array(LOWEST)
_UNIT = np.array(1 / SCALE)
_MANTISSA = np.array(52)
_ALIGN = 1.5 * 2.0**52 + 1023.0
"""Added to a small whole number, leaves that number plus the exponent's bias in the lowest bits."""


class Spike:
    """A vector that is `weight` at one token and 0 elsewhere: what greedy decoding and one-hot drafts are made of."""

    __slots__ = ("token", "weight")

    def __init__(self, token: int, weight: float = 1.0) -> None:
        self.token = token
        self.weight = weight

    def at(self, token: int) -> float:
        return self.weight if token == self.token else 0.0

    def dense(self, size: int) -> Vector:
        vector = np.zeros(size)
        vector[self.token] = self.weight
        return vector


def scratch(size: int) -> Vector:
    """Memory for `distribute` over vectors of this size; for one call at a time."""
    return np.empty((2, min(size, BLOCK)))


def exponential(z: Vector) -> Vector:
    """exp(z), elementwise, for -36 <= z <= 0, as specified."""
    value = z.copy()
    n, r = np.empty((2, len(z)))
    _exponentiate(value, n, r, 0)
    return value


def _exponentiate(z: Vector, n: Vector, r: Vector, shift: int) -> None:
    """z becomes exp(z) * 2^shift; n and r, of the same length, are overwritten."""
    np.multiply(z, _LOG2E, n)
    np.add(n, _HALF, n)
    np.floor(n, n)
    np.multiply(n, _HIGH, r)
    np.subtract(z, r, r)
    np.multiply(n, _LOW, z)
    np.subtract(r, z, r)
    np.multiply(r, _COEFFICIENTS[0], z)
    np.add(z, _COEFFICIENTS[1], z)
    for coefficient in _COEFFICIENTS[2:]:
        np.multiply(z, r, z)
        np.add(z, coefficient, z)
    np.multiply(z, _power(n, shift), z)


def _power(n: Vector, shift: int) -> Vector:
    """2^(n + shift), for whole n with n + shift from -52 to 50, by its bits; in n's memory."""
    np.add(n, _ALIGN + shift, n)
    bits = n.view(np.int64)
    np.left_shift(bits, _MANTISSA, bits)
    return n


def check(logits: Logits, role: str, position: int) -> None:
    """Step 1: NaN, plus infinity, or nothing but minus infinity is an error."""
    peak = logits[logits.argmax()]
    if not peak < np.inf:  # NaN too: argmax stops at the first
        token = int(np.flatnonzero(~(logits < np.inf))[0])
        raise LogitsError(bad_logit(role, position, token, float(logits[token])))
    if peak == -np.inf:
        raise LogitsError(no_logit(role, position))


def process(
    logits: Logits,
    size: int,
    sampling: Sampling,
    history: History,
    prompt: Ids,
    banned: Sequence[int],
    out: Vector,
) -> Logits:
    """Steps 2 and 3: the logits as they came where they need nothing, or else in float64, in `out`.

    prompt  the tokens of the history's prompt, once each
    """
    penalised = sampling.repetition_penalty != 1.0 or sampling.frequency_penalty or sampling.presence_penalty
    if len(logits) >= size and not (sampling.logit_bias or penalised or banned):
        return logits[:size]
    out[: len(logits)] = logits[:size]
    out[len(logits) :] = -np.inf
    for token, amount in sampling.logit_bias:
        out[token] += amount
    if penalised:
        _penalise(out, sampling, history, prompt)
    if banned:
        out[list(banned)] = -np.inf
    return out


def _penalise(x: Vector, sampling: Sampling, history: History, prompt: Ids) -> None:
    generated = np.fromiter(history.counts.keys(), np.intp)
    if sampling.repetition_penalty != 1.0:
        seen = np.concatenate((prompt, generated))  # a token in both is written twice, the same
        values = x[seen]
        x[seen] = np.where(values > 0.0, values / sampling.repetition_penalty, values * sampling.repetition_penalty)
    values = x[generated]
    if sampling.frequency_penalty != 0.0:
        values = values - sampling.frequency_penalty * np.fromiter(history.counts.values(), np.float64)
    if sampling.presence_penalty != 0.0:
        values = values - sampling.presence_penalty
    x[generated] = values


def distribute(
    x: Logits, sampling: Sampling, out: Vector | None = None, memory: Vector | None = None
) -> Vector | Spike | None:
    """Steps 4 to 10: the distribution of processed logits, in `out` if given; None if all are minus infinity.

    out     float64, as long as x; it may be x
    memory  what `scratch` gives
    """
    best = int(x.argmax())
    if x[best] == -np.inf:
        return None
    if sampling.temperature == 0.0:
        return Spike(best)
    if out is None:
        out = np.empty(len(x))
    if memory is None:
        memory = scratch(len(x))
    if x.dtype == np.float32 and sampling.temperature >= COOLEST:
        return _distribute(x, best, sampling, out, memory)
    with np.errstate(all="ignore"):  # a difference or a quotient may overflow to minus infinity
        return _distribute(x, best, sampling, out, memory)


def _distribute(x: Logits, best: int, sampling: Sampling, out: Vector, memory: Vector) -> Vector:
    """Where not all tokens can have a count, `kept` says which are looked at, and vectors are as long as it is."""
    kept, k = weigh(x, best, sampling, out)
    count(k, memory)
    if sampling.top_p < 1.0:
        inside = top_p(k, best if kept is None else int(kept.searchsorted(best)), sampling.top_p)
        kept, k = inside if kept is None else kept[inside], k[inside]
    if sampling.min_p > 0.0:
        k *= k >= sampling.min_p * SCALE
    if kept is None:
        return normalise(k, best, out)
    p = normalise(k, int(kept.searchsorted(best)))
    out.fill(0.0)
    out[kept] = p
    return out


def weigh(x: Logits, best: int, sampling: Sampling, out: Vector) -> tuple[Ids | None, Vector]:
    """Steps 5 and 6 as far as z: which tokens may have a count (None: all), ascending, and their z, in `out` where
    those are all. Some of them may be below LOWEST by then; z is LOWEST there, since that counts 0 as well.
    """
    kept = top_k(x, sampling.top_k)
    z = out if kept is None else x[kept].astype(np.float64)
    if kept is None and x is not out:
        np.copyto(out, x)
    z -= np.float64(x[best])
    if sampling.temperature != 1.0:
        z /= sampling.temperature
    least = least_z(sampling)
    if np.minimum.reduce(z) >= least:
        return kept, z
    above = z >= least
    if 2 * np.count_nonzero(above) > len(z):
        return kept, np.maximum(z, _LOWEST, out=z)
    inside = np.flatnonzero(above)
    return inside if kept is None else kept[inside], z[inside]


def top_k(x: Logits, k: int) -> Ids | None:
    """Step 5: the entries that are at least the k-th largest; None for all."""
    if not 0 < k < len(x):
        return None
    return np.flatnonzero(x >= np.partition(x, len(x) - k)[len(x) - k])


def least_z(sampling: Sampling) -> float:
    """No entry with a smaller z has a count after step 9.

    Where min-p looks at the counts of all, it drops what is below exp(z) = min_p; the margin is a million times the
    exponential's error and the logarithm's.
    """
    if sampling.min_p == 0.0 or sampling.top_p < 1.0:
        return LOWEST
    return max(LOWEST, math.log(sampling.min_p) - 1e-9)


def count(z: Vector, memory: Vector) -> None:
    """The rest of step 6: z becomes k = floor(exp(z) * 2^50), a block at a time."""
    width = memory.shape[1]
    for start in range(0, len(z), width):
        block = z[start : start + width]
        n, r = memory[:, : len(block)]
        _exponentiate(block, n, r, 50)
        np.floor(block, block)


def sum_once(k: Vector) -> float:
    """Step 7: the sum, rounded once. Where NumPy's stays below 2^53, no partial sum was rounded; else in integers."""
    total = float(np.add.reduce(k))
    if total < EXACT:
        return total
    return float(sum(int(k[start : start + SAFE].astype(np.int64).sum()) for start in range(0, len(k), SAFE)))


def normalise(k: Vector, best: int, out: Vector | None = None) -> Vector:
    """Step 10: multiples of 2^-50 that sum to exactly 1, in `out` if given, which may be k.

    k / (W / 2^50) is (k / W) * 2^50 to the bit: powers of two move through a quotient.
    """
    units: Vector = np.divide(k, sum_once(k) / SCALE, out)
    np.floor(units, units)
    units[best] += SCALE - np.add.reduce(units)
    np.multiply(units, _UNIT, units)
    return units


def top_p(k: Vector, best: int, mass: float) -> Ids:
    """Step 8: the fewest entries, most probable first, whose mass reaches `mass`; ascending."""
    p = normalise(k, best)
    likely = np.flatnonzero(p >= (1.0 - mass) / len(p))  # the others together have less than 1 - mass
    if not p[likely].sum() >= mass:
        likely = np.arange(len(p))  # so close that a rounding decided
    ranked = np.sort(p[likely])[::-1]
    number = int(np.cumsum(ranked).searchsorted(mass)) + 1  # kept while the sum before is less
    least = ranked[number - 1]
    above = likely[p[likely] > least]
    equal = likely[p[likely] == least]
    if p[best] == least:  # then nothing is above it
        equal = np.concatenate(([best], equal[equal != best]))
    return np.sort(np.concatenate((above, equal[: number - len(above)])))
