"""docs/distributions.md restated in whole numbers and fractions: a third implementation, sharing no code with the two.

A float64 operation is one exact operation on fractions, rounded once: `rounded` does it by dividing two integers, which
Python does correctly. Minus infinity is None. The constants are read from the document.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from fractions import Fraction
from pathlib import Path

from journee_deploy.arithmetic.sampling import Sampling

DOCUMENT = (Path(__file__).parents[2] / "docs" / "distributions.md").read_text(encoding="utf-8")
UNITS = 2**50

Number = Fraction | None
Ids = tuple[int, ...]


def constants() -> dict[str, Fraction]:
    found = re.findall(r"^    (LOG2E|LN2_HIGH|LN2_LOW|c\d+) +([0-9A-F]{16})$", DOCUMENT, re.MULTILINE)
    return {name: Fraction(struct.unpack(">d", bytes.fromhex(pattern))[0]) for name, pattern in found}


CONSTANTS = constants()


def rounded(value: Fraction) -> Fraction:
    return Fraction(value.numerator / value.denominator)


def exponential(z: Fraction) -> Fraction:
    n = math.floor(rounded(rounded(z * CONSTANTS["LOG2E"]) + Fraction(1, 2)))
    high = rounded(n * CONSTANTS["LN2_HIGH"])
    assert high == n * CONSTANTS["LN2_HIGH"], "LN2_HIGH's zero bits make this product exact"
    r = rounded(rounded(z - high) - rounded(n * CONSTANTS["LN2_LOW"]))
    value = CONSTANTS["c13"]
    for i in range(12, -1, -1):
        value = rounded(rounded(value * r) + CONSTANTS[f"c{i}"])
    return value * Fraction(2) ** n


def processed(
    logits: list[float],
    size: int,
    options: Sampling,
    prompt: tuple[int, ...],
    generated: tuple[int, ...],
    ends: list[int],
) -> list[Number]:
    x: list[Number] = [None if logit == -math.inf else Fraction(logit) for logit in logits[:size]]
    x += [None] * (size - len(x))

    def change(token: int, value: Fraction) -> None:
        x[token] = rounded(value)

    for token, amount in options.logit_bias:
        if amount == -math.inf:
            x[token] = None
        elif (old := x[token]) is not None:
            change(token, old + Fraction(amount))
    r = Fraction(options.repetition_penalty)
    counts = Counter(generated)
    for token in set(prompt) | set(generated):
        if r != 1 and (old := x[token]) is not None:
            change(token, old / r if old > 0 else old * r)
    for token, count in counts.items():
        if (old := x[token]) is not None:
            change(token, old - rounded(Fraction(options.frequency_penalty) * count))
    for token in counts:
        if (old := x[token]) is not None:
            change(token, old - Fraction(options.presence_penalty))
    if len(generated) < options.min_new_tokens:
        for token in ends:
            x[token] = None
    return x


def shares(k: list[int], best: int) -> list[int]:
    """Steps 7 and 10: units that add up to 2^50."""
    total = Fraction(float(sum(k)))  # an integer to a float: rounded once
    units = [math.floor(rounded(count / total) * UNITS) for count in k]
    missing = UNITS - sum(units)
    assert 0 <= missing < len(k)
    units[best] += missing
    return units


def distribution(x: list[Number], options: Sampling) -> list[int] | None:
    """Steps 4 to 10, in units; None if nothing is left."""
    finite = [value for value in x if value is not None]
    if not finite:
        return None
    m = max(finite)
    best = x.index(m)
    if options.temperature == 0:
        return [UNITS if token == best else 0 for token in range(len(x))]
    k = [_count(value, m, options) for value in x]
    if 0 < options.top_k < len(x):
        ranked = sorted(finite, reverse=True)
        least = ranked[min(options.top_k, len(ranked)) - 1]
        k = [count if value is not None and value >= least else 0 for count, value in zip(k, x, strict=True)]
    if options.top_p < 1:
        p = shares(k, best)
        order = sorted(range(len(k)), key=lambda token: (-p[token], token != best, token))
        before = [sum(p[token] for token in order[:place]) for place in range(len(order))]
        kept = {token for token, sum_ in zip(order, before, strict=True) if sum_ < Fraction(options.top_p) * UNITS}
        k = [count if token in kept else 0 for token, count in enumerate(k)]
    k = [count if count >= Fraction(options.min_p) * UNITS else 0 for count in k]
    return shares(k, best)


def _count(value: Number, m: Fraction, options: Sampling) -> int:
    if value is None:
        return 0
    try:
        z = rounded(rounded(value - m) / Fraction(options.temperature))
    except OverflowError:  # minus infinity in float64
        return 0
    return math.floor(exponential(z) * UNITS) if z >= -36 else 0
