"""The baseline: counts, a proper distribution, and that it learns."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from journee.trigram import Trigram, count, fit_trigram

V = 7


def chain(length, seed=1):
    """Tokens where two before decide the next, nine times in ten."""
    chance = np.random.default_rng(seed)
    tokens = [0, 1]
    while len(tokens) < length:
        likely = (3 * tokens[-1] + 2 * tokens[-2] + 1) % V
        tokens.append(likely if chance.random() < 0.9 else int(chance.integers(V)))
    return np.array(tokens, dtype=np.int64)


@pytest.fixture(scope="module")
def trigram() -> Trigram:
    return fit_trigram(chain(20_000), V)


def test_counts_are_those_of_a_plain_loop():
    tokens = chain(300)
    counts = count(tokens, V)
    for b in range(V):
        for c in range(V):
            seen = sum(1 for x, y in pairwise(tokens) if (x, y) == (b, c))
            assert counts.grams[1].of(np.array([b * V + c]))[0] == seen


def test_weights_are_distributions(trigram):
    assert np.allclose(trigram.weights.sum(1), 1)
    assert (trigram.weights >= 0).all()


def test_probabilities_of_the_next_token_sum_to_one(trigram):
    for a in range(V):
        for b in range(V):
            both = [trigram.nats(np.array([a, b, c])) - trigram.nats(np.array([a, b])) for c in range(V)]
            assert sum(math.exp(-nats) for nats in both) == pytest.approx(1, abs=1e-12)


def test_it_comes_close_to_the_entropy_of_its_source(trigram):
    tokens = chain(5_000, seed=2)
    likely = 0.9 + 0.1 / V
    entropy = -likely * math.log(likely) - (V - 1) * 0.1 / V * math.log(0.1 / V)
    assert trigram.nats(tokens) / (len(tokens) - 1) == pytest.approx(entropy, rel=0.07)
