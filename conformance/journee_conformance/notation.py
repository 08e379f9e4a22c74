"""Numbers as cases write them, and a die for making cases that rolls the same on every machine."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from journee_deploy.controller import Philox

UNITS = 1 << 50


def float32(values: Sequence[float]) -> str:
    """Eight hexadecimal digits a number, which must be a float32 already (or be rounded to one)."""
    return struct.pack(f">{len(values)}f", *values).hex()


def float64(value: float) -> str:
    """Sixteen hexadecimal digits."""
    return struct.pack(">d", value).hex()


def hexadecimal(seed: int) -> str:
    return f"{seed:016x}"


class Die:
    """Whole numbers below n, one after the other, by name."""

    def __init__(self, name: str) -> None:
        self._draws = Philox(int.from_bytes(name.encode()[-8:], "big"))
        self._rolled = 0

    def below(self, n: int) -> int:
        self._rolled += 1
        return self._draws.below(n, (0xFF, self._rolled, 0))

    def seed(self) -> str:
        return hexadecimal(self.below(1 << 64))

    def logits(self, count: int, spread: int = 8) -> list[float]:
        """Float32 numbers of 24 random bits between plus and minus `spread`."""
        return [(self.below(1 << 24) - (1 << 23)) * spread / (1 << 23) for _ in range(count)]

    def units(self, size: int, kept: int = 0) -> list[int]:
        """A distribution in units, with at most `kept` tokens above 0 (0: any), uneven."""
        tokens = sorted({self.below(size) for _ in range(kept)}) if kept else list(range(size))
        weights = [1 << self.below(40) for _ in tokens]
        found = [0] * size
        for token, weight in zip(tokens, weights, strict=True):
            found[token] = UNITS * weight // sum(weights)
        found[tokens[0]] += UNITS - sum(found)
        return found

    def even(self, size: int) -> list[int]:
        """A distribution in units with no token above all others, so that acceptance and rejection are both likely."""
        weights = [1 + self.below(1000) for _ in range(size)]
        found = [UNITS * weight // sum(weights) for weight in weights]
        found[0] += UNITS - sum(found)
        return found

    def tokens(self, count: int, size: int) -> list[int]:
        return [self.below(size) for _ in range(count)]
