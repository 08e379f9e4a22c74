"""Which runs a rule asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_deploy.row_rule import CANDIDATES, NO_RULE, Piece, RowRule

rules = st.sampled_from(CANDIDATES)
steps = st.tuples(st.integers(0, 700), st.integers(1, 700), st.integers(1, 700)).map(
    lambda step: (step[0], step[1], min(step[1], step[2]))
)
chunks = st.integers(36, 300)


def obeys(rule: RowRule, piece: Piece) -> bool:
    if rule.fixed:
        return piece.rows == rule.rows and piece.start % rule.rows == 0
    return piece.rows >= rule.rows and (piece.start + piece.rows) % rule.multiple == 0


@given(rules, steps, chunks)
def test_every_run_obeys_the_rule(rule: RowRule, step: tuple[int, int, int], chunk: int) -> None:
    assert all(obeys(rule, piece) for piece in rule.plan(*step, chunk))


@given(rules, steps, chunks)
def test_pieces_cover_the_step_once(rule: RowRule, step: tuple[int, int, int], chunk: int) -> None:
    start, count, _ = step
    pieces = rule.plan(*step, chunk)
    assert pieces[0].start == rule.origin(start) <= start
    assert [piece.end for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]
    assert pieces[-1].end == start + count
    assert all(piece.real >= 1 for piece in pieces)


@given(rules, steps, chunks)
def test_only_the_last_piece_is_padded_and_none_is_longer_than_a_chunk_and_its_padding(
    rule: RowRule, step: tuple[int, int, int], chunk: int
) -> None:
    pieces = rule.plan(*step, chunk)
    assert not any(piece.padding for piece in pieces[:-1])
    assert all(piece.real <= chunk for piece in pieces)
    assert pieces[-1].padding < max(rule.rows + rule.multiple, 2)


@given(rules, steps, chunks)
def test_the_wanted_rows_are_the_last(rule: RowRule, step: tuple[int, int, int], chunk: int) -> None:
    start, count, keep = step
    taken = [at for piece in rule.plan(*step, chunk) for at in range(piece.end - piece.take, piece.end)]
    assert taken == list(range(start + count - keep, start + count))


@given(rules, steps, chunks)
def test_the_graph_is_asked_for_the_wanted_rows_and_padding_and_for_as_many_as_the_rule_says(
    rule: RowRule, step: tuple[int, int, int], chunk: int
) -> None:
    for piece in rule.plan(*step, chunk):
        assert 1 <= piece.keep <= piece.rows
        if piece.take:
            assert piece.keep >= piece.take + piece.padding
            assert piece.keep >= min(rule.rows, piece.rows)


@given(steps)
def test_without_a_rule_nothing_is_added(step: tuple[int, int, int]) -> None:
    start, count, keep = step
    assert NO_RULE.plan(*step, 10**6) == (Piece(start, count, 0, keep, keep),)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (RowRule(1, 1), "at least 1 row a run"),
        (RowRule(2, 1), "at least 2 rows a run"),
        (RowRule(2, 8), "at least 2 rows a run, start + rows a multiple of 8"),
        (RowRule(8, 8, fixed=True), "aligned blocks of 8 rows"),
    ],
)
def test_rules_read_well(rule: RowRule, text: str) -> None:
    assert str(rule) == text


@pytest.mark.parametrize(
    ("rows", "multiple", "fixed"), [(0, 1, False), (1, 0, False), (33, 1, False), (1, 64, False), (8, 4, True)]
)
def test_impossible_rules_are_refused(rows: int, multiple: int, fixed: bool) -> None:
    with pytest.raises(ValueError, match="no such row rule"):
        RowRule(rows, multiple, fixed)
