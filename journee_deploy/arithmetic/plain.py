"""The arithmetic in plain Python: the reference that docs/distributions.md describes, step by step.

Portable Python.

Lists of floats in, lists of floats out, one loop a step. `vector_steps.py` does the same to the bit in NumPy.
"""

from __future__ import annotations

from journee_deploy.arithmetic.arena import Arena, LogitsError
from journee_deploy.arithmetic.exponential import COEFFICIENTS, LN2_HIGH, LN2_LOW, LOG2E, LOWEST, POWERS
from journee_deploy.arithmetic.units import HALF, SCALE, UNITS
from journee_deploy.controller.darts import WIDTHS, floor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from journee_deploy.arithmetic.history import History
    from journee_deploy.arithmetic.sampling import Sampling

INFINITY = float("inf")


def exponential(z: float) -> float:
    """exp(z) for -36 <= z <= 0, as specified; at most 1, and 1 at 0."""
    n = int(z * LOG2E + 0.5)
    if n > z * LOG2E + 0.5:  # int() cuts towards zero; the specification asks for the floor
        n -= 1
    r = (z - n * LN2_HIGH) - n * LN2_LOW
    value = COEFFICIENTS[0]
    for coefficient in COEFFICIENTS[1:]:
        value = value * r + coefficient
    return value * POWERS[-n]


def check(logits: Sequence[float], role: str, position: int) -> None:
    """Step 1: NaN, plus infinity, or nothing but minus infinity is an error."""
    for token, logit in enumerate(logits):
        if logit != logit or logit == INFINITY:
            raise LogitsError(bad_logit(role, position, token, logit))
    if all(logit == -INFINITY for logit in logits):
        raise LogitsError(no_logit(role, position))


def bad_logit(role: str, position: int, token: int, logit: float) -> str:
    what = "NaN" if logit != logit else "plus infinity"
    return (
        f"{role} logits at position {position}: token {token} is {what}; "
        "the graph or its weights are broken (check the export's parity and the weights' hash)"
    )


def no_logit(role: str, position: int) -> str:
    return f"{role} logits at position {position}: all are minus infinity; the graph or its weights are broken"


def process(
    logits: Sequence[float], size: int, sampling: Sampling, history: History, banned: Sequence[int]
) -> list[float]:
    """Steps 2 and 3: the vocabulary cut or padded to `size`, then bias, repetition, frequency, presence,
    banned ends.
    """
    x = [float(logit) for logit in logits[:size]] + [-INFINITY] * (size - len(logits))
    for token, amount in sampling.logit_bias:
        x[token] = x[token] + amount
    r = sampling.repetition_penalty
    if r != 1.0:
        for token in history.seen():
            x[token] = x[token] / r if x[token] > 0.0 else x[token] * r
    if sampling.frequency_penalty != 0.0:
        for token in history.counts:  # order: irrelevant
            x[token] = x[token] - sampling.frequency_penalty * history.counts[token]
    if sampling.presence_penalty != 0.0:
        for token in history.counts:  # order: irrelevant
            x[token] = x[token] - sampling.presence_penalty
    for token in banned:
        x[token] = -INFINITY
    return x


def largest(x: Sequence[float]) -> int:
    """Step 4: the index of the largest entry, the lowest on ties."""
    best = 0
    for token in range(1, len(x)):
        if x[token] > x[best]:
            best = token
    return best


def one_hot(size: int, token: int) -> list[float]:
    vector = [0.0] * size
    vector[token] = 1.0
    return vector


def top_k(x: Sequence[float], k: int) -> list[bool]:
    """Step 5: which entries are at least the k-th largest."""
    if k == 0 or k >= len(x):
        return [True] * len(x)
    least = sorted(x, reverse=True)[k - 1]
    return [value >= least for value in x]


def weigh(x: Sequence[float], best: int, temperature: float, kept: Sequence[bool]) -> list[float]:
    """Step 6: k = floor(exp(z) * 2^50) for the kept entries, z = (x - largest) / T."""
    k = [0.0] * len(x)
    for token, value in enumerate(x):
        z = (value - x[best]) / temperature
        if kept[token] and z >= LOWEST:
            k[token] = float(int(exponential(z) * SCALE))
    return k


def sum_once(k: Sequence[float]) -> float:
    """Step 7: the sum, rounded once."""
    high = 0.0
    low = 0.0
    for value in k:
        h = float(int(value / HALF))
        high += h
        low += value - h * HALF
    return high * HALF + low


def normalise(k: Sequence[float], best: int) -> list[float]:
    """Step 10: multiples of 2^-50 that sum to exactly 1; the units that flooring loses go to the largest
    entry.
    """
    total = sum_once(k)
    units = [float(int(value / total * SCALE)) for value in k]
    missing = SCALE
    for value in units:
        missing -= value
    units[best] += missing
    return [value / SCALE for value in units]


def top_p(k: Sequence[float], best: int, mass: float) -> list[float]:
    """Step 8: the fewest entries, most probable first, whose mass reaches `mass`."""
    if mass == 1.0:
        return list(k)
    p = normalise(k, best)
    order = sorted(range(len(p)), key=lambda token: (-p[token], token != best, token))
    kept = [0.0] * len(k)
    before = 0.0
    for token in order:
        if before >= mass:
            break
        kept[token] = k[token]
        before += p[token]
    return kept


def min_p(k: Sequence[float], least: float) -> list[float]:
    """Step 9: the entries that are at least `least` times the largest, whose k is 2^50."""
    return [value if value >= least * SCALE else 0.0 for value in k]


def distribute(x: Sequence[float], sampling: Sampling) -> list[float] | None:
    """Steps 4 to 10: the distribution of processed logits; None if all are minus infinity."""
    best = largest(x)
    if x[best] == -INFINITY:
        return None
    if sampling.temperature == 0.0:
        return one_hot(len(x), best)
    k = weigh(x, best, sampling.temperature, top_k(x, sampling.top_k))
    k = top_p(k, best, sampling.top_p)
    return normalise(min_p(k, sampling.min_p), best)


class PlainOps(Arena):
    """The ops over lists of floats."""

    def _distribute(self, role: str, position: int, logits: Sequence[float]) -> list[float] | None:
        check(logits, role, position)
        banned = self.ends if self._ending_is_banned() else []
        return distribute(process(logits, self.size, self.sampling, self.history, banned), self.sampling)

    def one_hot(self, token: int) -> int:
        return self.keep(one_hot(self.size, token))

    def uniform(self) -> int:
        """What equal logits give under the options: a draft that knows nothing."""
        return self.distribution(self.hold("uniform draft", len(self.history), [[0.0] * self.size]))

    def weight(self, handle: int, token: int) -> float:
        """A token's probability."""
        return self.vector(handle)[token]  # type: ignore[no-any-return]

    def total(self, handle: int) -> float:
        """The sum of a vector: 1 for a distribution, Z for a residual."""
        total = 0.0
        for value in self.vector(handle):
            total += value
        return total

    def locate(self, handle: int, fraction: float) -> int:
        """The first token whose cumulative sum exceeds `fraction`, which is at least 0 and below the total."""
        reached = 0.0
        for token, value in enumerate(self.vector(handle)):
            reached += value
            if reached > fraction:
                return token
        raise ValueError(f"{fraction} is not below the vector's total {reached}")

    def residual(self, p: int, q: int) -> int:
        """max(p - q, 0), not normalised."""
        return self.keep([a - b if a > b else 0.0 for a, b in zip(self.vector(p), self.vector(q))])

    def boxes(self, handle: int) -> list[tuple[int, int]]:
        """The boxes (tier, number) in which some token rises above the tier's floor (controller.darts)."""
        found: list[tuple[int, int]] = []
        for tier, width in enumerate(WIDTHS):
            low = floor(tier)
            last = -1
            for token, value in enumerate(self.vector(handle)):
                if value > low and token // width > last:
                    last = token // width
                    found.append((tier, last))
        return found

    def overlap(self, p: int, q: int) -> float:
        """The sum of min(p, q), which is 1 - TV."""
        total = 0.0
        for a, b in zip(self.vector(p), self.vector(q)):
            total += a if a < b else b
        return total

    def agreement(self, p: int, q: int) -> float:
        """The probability that the first darts under p and q fall on the same token. Rounded: for reports alone."""
        total = 0.0
        for a, b in zip(self.vector(p), self.vector(q)):
            total += a * (1.0 + b - a) if a < b else b * (1.0 + a - b)
        return total / (2.0 - self.overlap(p, q))

    def top(self, handle: int, count: int) -> list[tuple[int, float]]:
        """The `count` most probable tokens with their probabilities, lowest index first among equals."""
        p = self.vector(handle)
        order = sorted(range(len(p)), key=lambda token: (-p[token], token))
        return [(token, p[token]) for token in order[:count]]

    def top_logits(self, row: int, count: int) -> list[tuple[int, float]]:
        """The `count` largest raw logits within the vocabulary, lowest index first among equals."""
        logits = self._rows[row][2][: self.size]
        order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
        return [(token, logits[token]) for token in order[:count]]


assert UNITS == SCALE
