"""The self-test finds the cheapest rule that holds, for each way in which rows are known to depend on their run.

The faults are the negative control: each breaks every cheaper rule, and the self-test must see it.
"""

from __future__ import annotations

import random

import pytest

from journee_deploy.row_rule import RowRule
from journee_deploy.row_self_test import find_row_rule
from tests.runtime.fake_forward import FakeForward, Fault, Run, healthy, runner

FIXED_8 = RowRule(8, 8, fixed=True)
FIXED_16 = RowRule(16, 16, fixed=True)


def one_row(run: Run) -> float:
    return run.rows == 1


def one_row_kept(run: Run) -> float:
    """A head that takes another path for one row of several."""
    return run.keep == 1 < run.rows


def lanes_of(width: int, after: int = 0) -> Fault:
    return lambda run: run.total % width if run.total > after else 0.0


def one_row_or_lanes_of_four(run: Run) -> float:
    return one_row(run) + lanes_of(4)(run)


def number_of_rows(run: Run) -> float:
    return run.rows


def where_the_run_starts(run: Run) -> float:
    return run.start % 3


def many_rows(run: Run) -> float:
    return run.rows >= 200


def one_short_run_in_twenty(run: Run) -> float:
    return run.rows < 8 and random.Random(f"{run.start} {run.rows}").random() < 0.05


def never_the_same_below_sixteen_rows(run: Run) -> float:
    return run.number if run.rows < 16 else 0.0


def neighbours(run: Run) -> float:
    """One scale for all rows, as dynamic int8 has; at one row it is the row's own."""
    return max(run.tokens)


def padding_leaks(run: Run) -> float:
    """Rows that read the padding behind them."""
    return run.tokens[-1] if run.rows > 1 else 0.0


def never_the_same(run: Run) -> float:
    return run.number


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        (healthy, RowRule(1, 1)),
        (one_row, RowRule(2, 1)),
        (one_row_kept, RowRule(2, 1)),
        (lanes_of(4), RowRule(1, 4)),
        (one_row_or_lanes_of_four, RowRule(2, 4)),
        (lanes_of(8), RowRule(2, 8)),
        (lanes_of(16), RowRule(2, 16)),
        (lanes_of(4, after=1024), RowRule(1, 4)),
        (number_of_rows, FIXED_8),
        (where_the_run_starts, FIXED_8),
        (many_rows, FIXED_8),
        (never_the_same_below_sixteen_rows, FIXED_16),
        (neighbours, None),
        (padding_leaks, None),
        (never_the_same, None),
    ],
)
def test_the_cheapest_rule_that_holds_is_found(fault: Fault, rule: RowRule | None) -> None:
    assert find_row_rule(runner(fault)).rule == rule


def test_a_fault_in_one_short_run_of_twenty_is_seen() -> None:
    assert find_row_rule(runner(one_short_run_in_twenty)).rule not in (RowRule(1, 1), RowRule(2, 1))


def test_at_least_as_many_rows_are_compared_as_the_module_says() -> None:
    assert find_row_rule(runner()).rows >= 900


def test_the_same_rule_is_found_each_time() -> None:
    assert find_row_rule(runner(one_row)) == find_row_rule(runner(one_row))


@pytest.mark.parametrize("context", [2, 9, 40, 257])
def test_short_contexts_are_tested_as_far_as_they_reach(context: int) -> None:
    assert find_row_rule(runner(one_row, context=context)).rule == RowRule(2, 1)


def test_about_as_many_runs_are_compared_as_the_module_says() -> None:
    counted = runner()
    find_row_rule(counted)
    assert isinstance(counted.forward, FakeForward)
    assert 150 <= counted.forward.runs <= 200
