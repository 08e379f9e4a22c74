"""Philox against the published vectors; `uniform` exhausted over every sequence of small words."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_deploy.controller import Philox
from journee_deploy.controller.philox import WORD, bits, philox, uniform
from journee_deploy.draws import VectorPhilox

# Random123's known answers for philox4x32 with ten rounds: counter, key, output.
VECTORS = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""


@pytest.mark.parametrize("line", VECTORS.split("\n")[1:-1])
def test_the_random123_vectors(line: str) -> None:
    words = [int(word, 16) for word in line.split()]
    assert list(philox(words[:4], words[4:6])) == words[6:]


@given(st.lists(st.integers(0, WORD), min_size=6, max_size=6), st.integers(0, 5), st.integers(1, WORD))
def test_every_word_of_counter_and_key_matters(words: list[int], which: int, change: int) -> None:
    other = list(words)
    other[which] ^= change
    assert philox(words[:4], words[4:]) != philox(other[:4], other[4:])


@given(st.integers(0, 2**200))
def test_bits_is_the_bit_length(n: int) -> None:
    assert bits(n) == n.bit_length()


def test_bits_at_its_edges() -> None:
    for width in range(200):
        for n in (2**width - 1, 2**width, 2**width + 1):
            assert bits(n) == n.bit_length()


# uniform


class RanOutError(Exception):
    """The words so far were all rejected."""


def counted(words: tuple[int, ...], taken: list[int]) -> Iterator[int]:
    for word in words:
        taken[0] += 1
        yield word
    raise RanOutError


@pytest.mark.parametrize(("size", "length"), [(1, 8), (2, 5), (3, 3), (4, 2)])
def test_every_sequence_of_small_words_gives_every_value_equally_often(size: int, length: int) -> None:
    """All sequences of `length` words: those that are not rejected to the end fall evenly on 0..n-1."""
    for n in range(2, 2 ** (2 * size) + 1):
        words_each = -(-(n - 1).bit_length() // size)
        counts: Counter[int] = Counter()
        rejected = 0
        for words in itertools.product(range(2**size), repeat=length - length % words_each):
            try:
                counts[uniform(n, counted(words, [0]), size)] += 1
            except RanOutError:
                rejected += 1
        assert set(counts) == set(range(n))
        assert len(set(counts.values())) == 1
        tries = length // words_each
        width = (n - 1).bit_length()
        assert rejected * 2 ** (width * tries) == (2**width - n) ** tries * 2 ** (size * words_each * tries)


def test_the_first_word_is_the_high_one_and_the_top_bits_count() -> None:
    assert uniform(2**32, iter([5])) == 5
    assert uniform(2**33, iter([0x80000001, 0x80000000])) == 0x100000003
    assert uniform(2**64, iter([1, 2])) == 2**32 + 2
    assert uniform(2**65, iter([2**31, 0, 2**31])) == 2**64 + 1
    assert uniform(2, iter([2**31])) == 1
    assert uniform(2, iter([2**31 - 1])) == 0
    assert uniform(2**16, iter([0xABCD1234])) == 0xABCD


def test_a_rejected_candidate_is_followed_by_the_next_words() -> None:
    assert uniform(3, iter([0xC0000000, 0xFFFFFFFF, 0x80000000])) == 2
    assert uniform(2**32 + 1, iter([0xFFFFFFFF, 0, 0, 0x80000000])) == 1
    assert uniform(2**50 - 1, iter([WORD, WORD, 0, 1 << 14])) == 1


@pytest.mark.parametrize(
    ("n", "wanted"), [(1, 0), (2, 1), (2**32, 1), (2**32 + 1, 2), (2**50, 2), (2**64, 2), (2**65, 3)]
)
def test_how_many_words_are_taken(n: int, wanted: int) -> None:
    taken = [0]
    assert uniform(n, counted((0,) * 4, taken)) == 0
    assert taken == [wanted]


@pytest.mark.parametrize("n", [0, -1])
def test_a_bound_below_one_is_an_error(n: int) -> None:
    with pytest.raises(ValueError, match="a draw needs a bound of at least 1"):
        Philox(0).below(n, (0, 0, 0))


# Keys.


def test_draws_are_functions_of_seed_sample_and_key() -> None:
    def draws(generator: Philox) -> list[int]:
        keys = itertools.product(range(4), (0, 1, 2, 2**32 - 1), (0, 1, 2, 2**32 - 1))
        return [generator.below(2**64, key) for key in keys]

    first = draws(Philox(5, 1))
    assert draws(Philox(5, 1)) == first
    others = [draws(Philox(*pair)) for pair in ((5, 0), (5, 2), (4, 1), (5 + 2**32, 1), (2**64 - 1, 2**32 - 1))]
    everything = first + [draw for other in others for draw in other]
    assert len(set(everything)) == len(everything)  # 64-bit numbers: an accident has a chance of 1e-14


def test_counters_are_block_position_round_purpose_under_the_samples_key() -> None:
    seed, sample = 0xFEDCBA9876543210, 3
    key = philox((sample, 0, 0, WORD), (0x76543210, 0xFEDCBA98))[:2]
    words = Philox(seed, sample).words((2, 70, 9))
    assert [next(words) for _ in range(10)] == [word for block in range(3) for word in philox((block, 70, 9, 2), key)][
        :10
    ]


@pytest.mark.parametrize("key", [(0, 2**32, 0), (0, 0, 2**32), (2**32, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_a_key_that_does_not_fit_a_counter_is_an_error(key: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="does not fit a counter"):
        Philox(0).below(10, key)


@pytest.mark.parametrize(
    ("seed", "sample", "what"), [(-1, 0, "seed"), (2**64, 0, "seed"), (0, -1, "sample"), (0, 2**32, "sample")]
)
def test_seeds_and_samples_out_of_range_are_errors(seed: int, sample: int, what: str) -> None:
    with pytest.raises(ValueError, match=f"^{what} is "):
        Philox(seed, sample)


bounds = st.one_of(
    st.integers(1, 2**70),
    st.sampled_from([32, 33, 50, 63, 64, 65]).flatmap(lambda bits: st.integers(2**bits - 2, 2**bits + 2)),
    st.integers(32, 63).map(lambda bits: 2**bits + 1),  # about half of all tries are not below it
)
words = st.integers(0, WORD)


@given(bounds, st.integers(0, 2**64 - 1), st.tuples(words, words, words))
def test_draws_without_a_generator_are_the_same(n: int, seed: int, key: tuple[int, int, int]) -> None:
    assert VectorPhilox(seed).below(n, key) == Philox(seed).below(n, key)


@pytest.mark.parametrize("n", [0, -1, -(2**40)])
def test_draws_without_a_generator_refuse_the_same(n: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        VectorPhilox(0).below(n, (0, 0, 0))


@pytest.mark.parametrize("key", [(WORD + 1, 0, 0), (0, WORD + 1, 0), (0, 0, WORD + 1), (0, -1, 0)])
def test_keys_without_a_generator_are_refused_the_same(key: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        VectorPhilox(0).below(2**50, key)
