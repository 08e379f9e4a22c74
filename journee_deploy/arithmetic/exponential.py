"""The specified exponential's constants (docs/distributions.md, step 6), given as float64 bit patterns.

For -36 <= z <= 0: n = floor(z * LOG2E + 0.5); r = (z - n * LN2_HIGH) - n * LN2_LOW; Horner over COEFFICIENTS
from the first to the last, one multiply and one add a step, never fused or reordered; times POWERS[-n]. Then
exp(0) = 1 and no result exceeds 1. Below LOWEST the exponential times 2^50 is less than one and counts as 0.

Portable Python. Bit patterns, because not every language reads decimal literals to the last bit.
"""

from __future__ import annotations


def from_bits(bits: int) -> float:
    """The positive normal float64 below 2 with these 64 bits, by operations that are exact in every host."""
    return ((bits & ((1 << 52) - 1)) | (1 << 52)) / (1 << (1075 - (bits >> 52)))


LOWEST = -36.0
LOG2E = from_bits(0x3FF71547652B82FE)
LN2_HIGH = from_bits(0x3FE62E42FEE00000)  # ends in 21 zero bits, so that n * LN2_HIGH is exact
LN2_LOW = from_bits(0x3DEA39EF35793C76)

# 1 / i! for i = 13 down to 0, each rounded to nearest.
COEFFICIENTS = (
    from_bits(0x3DE6124613A86D09),
    from_bits(0x3E21EED8EFF8D898),
    from_bits(0x3E5AE64567F544E4),
    from_bits(0x3E927E4FB7789F5C),
    from_bits(0x3EC71DE3A556C734),
    from_bits(0x3EFA01A01A01A01A),
    from_bits(0x3F2A01A01A01A01A),
    from_bits(0x3F56C16C16C16C17),
    from_bits(0x3F81111111111111),
    from_bits(0x3FA5555555555555),
    from_bits(0x3FC5555555555555),
    0.5,
    1.0,
    1.0,
)


def _halvings(count: int) -> tuple[float, ...]:
    powers = [1.0]
    while len(powers) < count:
        powers.append(powers[-1] * 0.5)
    return tuple(powers)


POWERS = _halvings(54)  # POWERS[n] = 2^-n; z >= -36 needs n up to 52
