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
ROUNDS = 50

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Tally:
    """Sorted keys, n-grams read as numbers in base V, and how often each was seen."""

    keys: Integers
    times: Integers

    def of(self, keys: Integers) -> Integers:
        """How often each key was seen."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.times[at], 0)


@dataclass(frozen=True)
class Counts:
    """How often each n-gram was seen, for n = 1, 2, 3, and how often each context of n - 1 tokens came before one."""

    vocab_size: int
    grams: tuple[Tally, ...]
    contexts: tuple[Tally, ...]


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
    keys = _keys(tokens, vocab_size)
    grams = tuple(Tally(*np.unique(gram, return_counts=True)) for gram in keys)
    contexts = tuple(Tally(*np.unique(gram // vocab_size, return_counts=True)) for gram in keys)
    return Counts(vocab_size, grams, contexts)


def _keys(tokens: Tokens, vocab_size: int) -> list[Integers]:
    """The n-grams that end at each token from the second on, as numbers in base V, for n = 1, 2, 3."""
    c, b = tokens[1:], tokens[:-1]
    a = np.concatenate([tokens[:1], tokens[:-2]])
    return [c, b * vocab_size + c, (a * vocab_size + b) * vocab_size + c]


def _parts(counts: Counts, tokens: Tokens) -> tuple[Floats, Integers]:
    """The four estimates of each token's probability [tokens, 4], and the octave of its context's count."""
    size = counts.vocab_size
    keys = _keys(tokens, size)
    before = [context.of(gram // size) for context, gram in zip(counts.contexts, keys, strict=True)]
    one, two, three = (
        tally.of(gram) / np.maximum(times, 1) for tally, gram, times in zip(counts.grams, keys, before, strict=True)
    )
    octave = np.minimum(np.log2(before[2] + 1).astype(np.int64), OCTAVES - 1)
    return np.stack([three, two, one, np.full(len(one), 1 / size)], axis=1), octave


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
