"""Philox and whole numbers below n, in any Python: asserts only."""

from __future__ import annotations

from journee_deploy.controller.philox import WORD, Philox, bits, philox, uniform
from tests.portable import recorded
from tests.portable.toys import refusal


def test_random123_vectors():
    for line in recorded.PHILOX:
        assert philox(line[:4], line[4:6]) == tuple(line[6:])


def test_bit_lengths():
    for width in range(130):
        assert bits(1 << width) == width + 1
        assert bits((1 << width) - 1) == width


def test_uniform_takes_the_top_bits_high_word_first():
    assert uniform(1 << 33, iter([0x80000001, 0x80000000])) == 0x100000003
    assert uniform(1 << 64, iter([1, 2])) == (1 << 32) + 2
    assert uniform(2, iter([1 << 31])) == 1
    assert uniform(3, iter([0xC0000000, WORD, 0x80000000])) == 2
    assert uniform(1, iter([])) == 0


def value_or_none(n, words):
    """None where the words are all rejected."""
    try:
        return uniform(n, iter(words), 2)
    except StopIteration:
        return None


def test_uniform_exhausted():
    for n in range(2, 17):
        values = [value_or_none(n, [word >> 6, word >> 4 & 3, word >> 2 & 3, word & 3]) for word in range(256)]
        counts = [values.count(value) for value in range(n)]
        assert counts[0] > 0
        assert counts == [counts[0]] * n
        assert sum(counts) + values.count(None) == 256


def test_recorded_draws():
    for seed, sample, key, n, value in recorded.DRAWS:
        assert Philox(seed, sample).below(n, key) == value


def test_refusals():
    assert refusal(ValueError, lambda: Philox(-1))
    assert refusal(ValueError, lambda: Philox(1 << 64))
    assert refusal(ValueError, lambda: Philox(0, 1 << 32))
    assert refusal(ValueError, lambda: Philox(0).below(0, (0, 0, 0)))
    assert refusal(ValueError, lambda: Philox(0).below(2, (0, 1 << 32, 0)))
    assert refusal(ValueError, lambda: Philox(0).below(2, (0, 0, -1)))
