"""Philox4x32-10, a counter-based generator: a draw is a function of seed, sample and key alone.

Portable Python.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); tested against the
Random123 vectors. docs/distributions.md says how keys become counters. No draw has state, so none can be
shared or drawn twice by accident.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from journee_deploy.controller.chance import Key

WORD = 0xFFFFFFFF


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """Ten rounds over four 32-bit counter words and two key words: four 32-bit words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        first = 0xD2511F53 * c0
        second = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & WORD, (first >> 32) ^ c3 ^ k1, first & WORD
        k0 = (k0 + 0x9E3779B9) & WORD
        k1 = (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


def bits(n: int) -> int:
    """The bit length of n >= 0 (MicroPython's integers have no such method)."""
    count = 0
    while n >> count:
        count += 32 if n >> (count + 32) else 1
    return count


def uniform(n: int, words: Iterator[int], size: int = 32) -> int:
    """A whole number v with 0 <= v < n, each as likely, from independent uniform words of `size` bits.

    The top bits of as many words as n - 1 needs, the first word high; drawn again from the words that follow
    while not below n. n = 1 takes no word.
    """
    if n < 1:
        raise ValueError(f"a draw needs a bound of at least 1, got {n}")
    width = bits(n - 1)
    while True:
        value = 0
        have = 0
        while have < width:
            value = value << size | next(words)
            have += size
        value >>= have - width
        if value < n:
            return value


class Philox:
    """Whole numbers below n, uniformly, each by its key (purpose, position, round).

    seed    0 to 2^64 - 1
    sample  0 to 2^32 - 1: samples of one seed are independent streams
    """

    def __init__(self, seed: int, sample: int = 0) -> None:
        if seed < 0 or seed >> 64:
            raise ValueError(f"seed is {seed}; it must be from 0 to 2^64 - 1")
        if sample < 0 or sample >> 32:
            raise ValueError(f"sample is {sample}; it must be from 0 to 2^32 - 1")
        seed = int(seed)  # other kinds of integers may wrap
        sample = int(sample)
        self._key = philox((sample, 0, 0, WORD), (seed & WORD, seed >> 32))[:2]

    def below(self, n: int, key: Key) -> int:
        """A uniform whole number v with 0 <= v < n: a function of seed, sample and key."""
        return uniform(n, self.words(key))

    def words(self, key: Key) -> Generator[int, None, None]:
        """The endless 32-bit words of a key, four a block; the block's number is the counter's first word."""
        purpose, position, round_ = key
        if (purpose | position | round_) >> 32:
            raise ValueError(f"the draw {key} does not fit a counter: purpose, position and round are below 2^32")
        block = 0
        while True:
            yield from philox((block, position, round_, purpose), self._key)
            block += 1

    def streams(self, keys: Sequence[Key]) -> list[Iterator[int]]:
        """The endless words of each key."""
        return [self.words(key) for key in keys]
