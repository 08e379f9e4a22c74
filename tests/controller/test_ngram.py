"""The n-gram draft against its definition, written out another way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import Caches, NgramDraft
from journee_deploy.controller.requests import EMPTY


def proposed(draft: NgramDraft, text: list[int], proposals: list[int], size: int = 8) -> int | None:
    """The token that the draft is sure of, or None; it runs no model."""
    ops = PlainOps(list(text), size, Sampling())
    answer = draft.next(text, proposals, ops, Caches())  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as done:
        next(answer)
    handle = done.value.value
    if handle == EMPTY:
        return None
    vector = ops.vector(handle)
    assert sorted(vector) == [0.0] * (size - 1) + [1.0]
    return int(vector.index(1.0))


def by_definition(tokens: list[int], least: int, most: int) -> int | None:
    """Longest run of last tokens first, then the latest place."""
    for n in range(most, least - 1, -1):
        for end in range(len(tokens) - 1, n - 1, -1):
            if tokens[end - n : end] == tokens[len(tokens) - n :]:
                return tokens[end]
    return None


@given(
    text=st.lists(st.integers(0, 3), min_size=1, max_size=24),
    proposals=st.lists(st.integers(0, 3), max_size=4),
    least=st.integers(1, 3),
    more=st.integers(0, 3),
)
def test_it_proposes_what_followed_the_latest_longest_match(
    text: list[int], proposals: list[int], least: int, more: int
) -> None:
    draft = NgramDraft(least, least + more)
    assert proposed(draft, text, proposals) == by_definition(text + proposals, least, least + more)


def test_worked_cases() -> None:
    draft = NgramDraft()
    assert proposed(draft, [1, 2, 3, 1, 2], []) == 3
    assert proposed(draft, [1, 2, 3, 1, 2], [3]) == 1  # it follows its own proposals
    assert proposed(draft, [5, 2, 7, 1, 2, 4, 5, 2], []) == 7  # the longer match, not the later
    assert proposed(draft, [2, 6, 2, 7, 2], []) == 7  # the later of two as long
    assert proposed(draft, [4, 4, 4], []) == 4  # a match may overlap what it matches
    assert proposed(draft, [1, 2, 3], []) is None
    assert proposed(draft, [1], []) is None
    assert proposed(NgramDraft(least=2), [1, 2, 3, 2], []) is None


@pytest.mark.parametrize(("least", "most"), [(0, 3), (3, 2), (-1, -1)])
def test_lengths_that_match_nothing_are_refused(least: int, most: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        NgramDraft(least, most)
