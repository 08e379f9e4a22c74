"""An interpolated trigram: the baseline that a target must beat (Jelinek and Mercer 1980).

    P(c | a, b) = l3 P3(c | a, b) + l2 P2(c | b) + l1 P1(c) + l0 / V

P1, P2, P3 are relative frequencies in the training tokens. The weights depend on how often the context (a, b) was seen,
in octaves, and are fitted by expectation-maximization on the last tenth of the training tokens, with counts from the
rest; then everything is counted anew. Held-out text is never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from journee.tokenizer import Tokens

OCTAVES = 16
ROUNDS = 20

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """Sorted keys of seen n-grams (read as numbers in base V) and how often each was seen, for n = 1, 2, 3."""

    vocab_size: int
    keys: tuple[Integers, ...]
    times: tuple[Integers, ...]

    def of(self, n: int, keys: Integers) -> Integers:
        """How often each n-gram was seen."""
        at = np.minimum(np.searchsorted(self.keys[n - 1], keys), len(self.keys[n - 1]) - 1)
        return np.where(self.keys[n - 1][at] == keys, self.times[n - 1][at], 0)


@dataclass(frozen=True)
class Trigram:
    """Counts and interpolation weights [OCTAVES, 4], in the order l3, l2, l1, l0."""

    counts: Counts
    weights: Floats

    def nats(self, tokens: Tokens) -> float:
        """Summed code length of `tokens` from the second on; the first stands before the text, twice."""
        parts, octave = _parts(self.counts, tokens)
        return float(-np.log((parts * self.weights[octave]).sum(1)).sum())


def fit_trigram(tokens: Tokens, vocab_size: int) -> Trigram:
    """A trigram over the training tokens."""
    cut = len(tokens) * 9 // 10
    weights = _fit_weights(count(tokens[:cut], vocab_size), tokens[cut:])
    return Trigram(count(tokens, vocab_size), weights)


def count(tokens: Tokens, vocab_size: int) -> Counts:
    """Counts of all 1-, 2- and 3-grams that end at the second token or later."""
    seen = [np.unique(keys, return_counts=True) for keys in _keys(tokens, vocab_size)]
    return Counts(vocab_size, tuple(keys for keys, _ in seen), tuple(times for _, times in seen))


def _keys(tokens: Tokens, vocab_size: int) -> list[Integers]:
    """The n-grams that end at each token from the second on, as numbers in base V, for n = 1, 2, 3."""
    c, b = tokens[1:], tokens[:-1]
    a = np.concatenate([tokens[:1], tokens[:-2]])
    return [c, b * vocab_size + c, (a * vocab_size + b) * vocab_size + c]


def _parts(counts: Counts, tokens: Tokens) -> tuple[Floats, Integers]:
    """The four estimates of each token's probability [tokens, 4], and the octave of its context's count."""
    size = counts.vocab_size
    uni, bi, tri = _keys(tokens, size)
    total = counts.times[0].sum()
    one = counts.of(1, uni) / total
    before_two, before_three = counts.of(1, bi // size), counts.of(2, tri // size)
    two = counts.of(2, bi) / np.maximum(before_two, 1)
    three = counts.of(3, tri) / np.maximum(before_three, 1)
    octave = np.minimum(np.log2(before_three + 1).astype(np.int64), OCTAVES - 1)
    return np.stack([three, two, one, np.full(len(uni), 1 / size)], axis=1), octave


def _fit_weights(counts: Counts, tokens: Tokens) -> Floats:
    """Expectation-maximization of the weights of each octave; an octave never seen keeps equal weights."""
    parts, octave = _parts(counts, tokens)
    weights = np.full((OCTAVES, 4), 0.25)
    for _ in range(ROUNDS):
        mine = parts * weights[octave]
        mine /= mine.sum(1, keepdims=True)
        for o in np.unique(octave):
            weights[o] = mine[octave == o].mean(0)
    return weights
