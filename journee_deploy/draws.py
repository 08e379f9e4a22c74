"""Philox in NumPy, for rule `coupled`, which asks for the words of hundreds of keys at once. The same words to the bit.

The specification and its readable form are controller/philox.py; what is here saves time and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from journee_deploy.controller.philox import WORD, Philox, philox
from journee_deploy.protocols import Key

BLOCKS = 3  # a key, computed ahead: twelve words, enough for most boxes of darts

PAIR = 64  # bits of two words

Words = NDArray[np.uint64]


class VectorPhilox(Philox):
    """`controller.Philox` whose streams of several keys are begun in one sweep, and whose draws from the first words
    take no generator.
    """

    def below(self, n: int, key: Key) -> int:
        """A uniform whole number v with 0 <= v < n: a function of seed, sample and key."""
        spare = PAIR - (n - 1).bit_length()
        purpose, position, round_ = key
        if 0 <= spare < 32 and not (purpose | position | round_) >> 32:  # two words a try
            first, second, third, fourth = philox((0, position, round_, purpose), self._key)
            if (value := (first << 32 | second) >> spare) < n or (value := (third << 32 | fourth) >> spare) < n:
                return value
        return super().below(n, key)  # which says what is wrong, if something is

    def streams(self, keys: Sequence[Key]) -> list[Iterator[int]]:
        """The endless words of each key."""
        if not all(0 <= word <= WORD for key in keys for word in key):
            return super().streams(keys)  # which says what is wrong, when it is read
        if len(keys) == 0:
            return []
        ahead = self._ahead(np.array(keys, np.uint64))
        return [chain(words, self._later(key)) for words, key in zip(ahead.tolist(), keys, strict=True)]

    def _ahead(self, keys: Words) -> Words:
        """The first words of keys [count, 3], as [count, 4 * BLOCKS]."""
        purpose, position, round_ = (np.repeat(column, BLOCKS) for column in keys.T)
        block = np.tile(np.arange(BLOCKS, dtype=np.uint64), len(keys))
        return np.stack(_sweep(block, position, round_, purpose, self._key), axis=1).reshape(len(keys), -1)

    def _later(self, key: Key) -> Iterator[int]:
        yield from islice(self.words(key), 4 * BLOCKS, None)


def _sweep(c0: Words, c1: Words, c2: Words, c3: Words, key: tuple[int, ...]) -> tuple[Words, Words, Words, Words]:
    """`controller.philox.philox` for many counters: 32-bit words in 64-bit lanes, so that products fit."""
    half, word = np.uint64(32), np.uint64(WORD)
    k0, k1 = key
    for _ in range(10):
        first = np.uint64(0xD2511F53) * c0
        second = np.uint64(0xCD9E8D57) * c2
        c0, c1 = (second >> half) ^ c1 ^ np.uint64(k0), second & word
        c2, c3 = (first >> half) ^ c3 ^ np.uint64(k1), first & word
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3
