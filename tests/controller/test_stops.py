"""Where a text ends: the earliest end wins, and at one token the order is end-of-sequence, stop, length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_deploy.controller import Stops


def test_each_reason() -> None:
    assert Stops(9).cut([], [1, 2]) == (2, "")
    assert Stops(9, ends=(2, 7)).cut([], [1, 2, 3]) == (2, "end-of-sequence")
    assert Stops(9, sequences=((2, 3),)).cut([], [1, 2, 3, 4]) == (3, "stop")
    assert Stops(9, strings=lambda old, new: (old + new)[-1] == 3).cut([], [1, 3, 3]) == (2, "stop")
    assert Stops(3).cut([5, 5], [1, 2, 3]) == (1, "length")
    assert Stops(3, reason="context").cut([5, 5], [1]) == (1, "context")


def test_the_earliest_wins() -> None:
    stops = Stops(3, ends=(9,), sequences=((1, 2),))
    assert stops.cut([], [1, 2, 9]) == (2, "stop")
    assert stops.cut([], [9, 1, 2]) == (1, "end-of-sequence")
    assert stops.cut([1], [2, 9, 0]) == (1, "stop")
    assert stops.cut([], [0, 0, 0, 9]) == (3, "length")


def test_at_one_token_an_end_or_a_stop_goes_before_the_length() -> None:
    stops = Stops(2, ends=(9,), sequences=((1, 9), (1, 2)), strings=lambda old, new: new[-1] == 4)
    assert stops.cut([], [1, 9]) == (2, "end-of-sequence")
    assert stops.cut([], [1, 2]) == (2, "stop")
    assert stops.cut([1], [4]) == (1, "stop")
    assert stops.cut([1], [5]) == (1, "length")


def test_sequences_may_begin_in_earlier_rounds_but_not_in_the_prompt() -> None:
    stops = Stops(99, sequences=((1, 2, 3),))
    assert stops.cut([0, 1], [2, 3]) == (2, "stop")
    assert stops.cut([0, 1, 2], [3]) == (1, "stop")
    assert stops.cut([2], [3]) == (1, "")


@given(
    st.lists(st.integers(0, 2), max_size=12),
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3), max_size=3),
    st.integers(1, 12),
    st.lists(st.integers(1, 4), min_size=1),
)
def test_all_at_once_or_piecemeal(text: list[int], sequences: list[list[int]], limit: int, pieces: list[int]) -> None:
    """However the tokens come in, the text ends at the same place for the same reason, found by brute force."""
    stops = Stops(limit, ends=(2,), sequences=sequences)
    kept: list[int] = []
    reason = ""
    rest = list(text)
    turn = 0
    while rest and not reason:
        size = pieces[turn % len(pieces)]
        new, rest, turn = rest[:size], rest[size:], turn + 1
        count, reason = stops.cut(kept, new)
        kept += new[:count]
    wanted = ""
    for end in range(1, len(text) + 1):
        before = text[:end]
        if before[-1] == 2:
            wanted = "end-of-sequence"
        elif any(before[-len(sequence) :] == sequence for sequence in sequences):
            wanted = "stop"
        elif end == limit:
            wanted = "length"
        if wanted:
            assert (kept, reason) == (before, wanted)
            return
    assert (kept, reason) == (text, "")


def test_strings_are_told_the_generated_and_the_new_tokens_once_each() -> None:
    told: list[tuple[list[int], list[int]]] = []

    def strings(old: list[int], new: list[int]) -> bool:
        told.append((list(old), list(new)))
        return False

    Stops(9, strings=strings).cut([7], [1, 2])
    assert told == [([7], [1]), ([7], [1, 2])]


def test_room() -> None:
    assert [Stops(3).room(count) for count in range(4)] == [3, 2, 1, 0]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="the limit is 0 new tokens; it must be at least 1"):
        Stops(0)
    with pytest.raises(ValueError, match="a stop sequence has no tokens"):
        Stops(1, sequences=((1,), ()))
