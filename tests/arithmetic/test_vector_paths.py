"""The ways through the NumPy arithmetic agree: all entries or few, one block or many, new memory or used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journee_deploy.arithmetic import plain, vector_steps
from journee_deploy.arithmetic.arena import EMPTY, LogitsError
from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vector_steps import EXACT, SAFE, Spike, distribute
from journee_deploy.arithmetic.vectors import STRIDE, VectorOps
from tests.arithmetic.cases import FAMILIES, Case, cases, row
from tests.arithmetic.test_two_hosts import same

UNITS = 2**50
OPTIONS = [
    Sampling(),
    Sampling(top_k=40),
    Sampling(top_p=0.9),
    Sampling(min_p=0.02),
    Sampling(top_k=300, top_p=0.7, min_p=0.001),
    Sampling(temperature=0.3, top_p=1.0 - 2.0**-53),
]


def assert_plain(x: np.ndarray[Any, Any], sampling: Sampling, memory: Any = None) -> None:
    found = distribute(x, sampling, None, memory)
    wanted = plain.distribute(x.tolist(), sampling)
    assert not isinstance(found, Spike)
    assert same(found, wanted)


# Which entries are looked at.


@pytest.mark.parametrize("sampling", OPTIONS, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.49, 0.5, 0.51, 0.99])
def test_few_or_many_entries_too_low_to_count(sampling: Sampling, share: float) -> None:
    """Below a half of them everything is computed; above, what counts alone."""
    for seed in range(3):
        x = row("random", 600, seed)
        low = np.random.default_rng(seed).permutation(600)[: int(600 * share)]
        x[low] = np.resize(np.array([-60.0, -1e30, -np.inf], np.float32), len(low))
        assert_plain(x, sampling)


def test_entries_at_the_edge_of_counting() -> None:
    edge = -36.0 + np.arange(-4, 5) * 2.0**-20
    for others in (0, 5, 50):
        assert_plain(np.concatenate(([0.0], np.full(others, -2.0), edge, np.full(9, -40.0))), Sampling())


@given(st.floats(2.0**-50, 1.0), st.integers(-40, 40))
def test_min_p_leaves_out_nothing_that_it_keeps(least: float, steps: int) -> None:
    """Entries around z = log(min_p), by single bits of the float64 and by larger steps."""
    edge = math.log(least)
    near = [min(edge + step * abs(edge) * 2.0**-52, 0.0) for step in range(-3, 4)]
    x = np.array([0.0, *near, min(edge + steps * 2.0**-34, 0.0), *[-30.0] * 20])
    assert_plain(x, Sampling(min_p=least))


@settings(max_examples=60)
@given(cases((1, 7, 512)), st.integers(1, 90))
def test_blocks_of_any_length_give_the_same(case: Case, width: int) -> None:
    if case.sampling.temperature != 0.0:
        assert same(
            distribute(case.logits, case.sampling), distribute(case.logits, case.sampling, None, np.empty((2, width)))
        )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mass", [5e-324, 2.0**-50, 0.25, 0.5, 0.999, 1.0 - 2.0**-50, 1.0 - 2.0**-53])
def test_top_p_over_ties_and_all_else(family: str, mass: float) -> None:
    for size in (5, 700):
        for seed in range(3):
            assert_plain(row(family, size, seed), Sampling(top_p=mass))


@pytest.mark.parametrize("best", range(8))
def test_among_equals_top_p_keeps_the_best_token_and_then_the_lowest(best: int) -> None:
    """Logits so near to the best one's that the exponential is 1: all have the same probability, an eighth."""
    x = np.full(8, -(2.0**-60))
    x[best] = 0.0
    for number in range(1, 9):
        sampling = Sampling(top_p=number / 8 - 2.0**-30)
        assert_plain(x, sampling)
        p = distribute(x, sampling)
        kept = sorted([best, *[token for token in range(8) if token != best][: number - 1]])
        assert isinstance(p, np.ndarray)
        assert np.flatnonzero(p).tolist() == kept


# Sums.


@given(st.integers(-600, 600), st.integers(9, 40))
def test_a_sum_about_the_largest_exact_one(over: int, count: int) -> None:
    """Odd sums above 2^53 are rounded to even, once."""
    whole = 2**53 + over
    share = whole // count
    k = [float(share)] * (count - 1) + [float(whole - share * (count - 1))]
    assert vector_steps.sum_once(np.array(k)) == float(whole)
    assert vector_steps.sum_once(np.array([*k, *[1.0] * 3])) == float(whole + 3)


@pytest.mark.parametrize("count", [SAFE - 1, SAFE, SAFE + 1, 2 * SAFE, 3 * SAFE + 5])
def test_the_largest_sums_fit(count: int) -> None:
    assert vector_steps.sum_once(np.full(count, float(UNITS))) == float(count * UNITS)
    assert count * UNITS > EXACT


@settings(max_examples=50)
@given(st.integers(1, 4 * STRIDE), st.integers(0, 2**31), st.sampled_from(["flat", "holes", "steep", "random"]))
def test_locate_over_several_strides(size: int, seed: int, family: str) -> None:
    ops = VectorOps([0], size, Sampling())
    handle = ops.distribution(ops.hold("draft", 1, [row(family, size, seed)]))
    reached = np.cumsum(ops.vector(handle))
    random = np.random.default_rng(seed)
    edges = reached[random.integers(0, size, 20)]
    for fraction in [*(edges - 2.0**-50), *edges, *random.integers(0, UNITS, 20) / UNITS, edges[0] - 2.0**-52]:
        if 0.0 <= fraction < 1.0:
            assert ops.locate(handle, float(fraction)) == int(np.searchsorted(reached, fraction, side="right"))


# Vectors with one token.


@pytest.mark.parametrize("options", [Sampling(), Sampling(temperature=0.0)])
def test_a_single_token_is_a_vector_like_any_other(options: Sampling) -> None:
    """Every op over one-hot, greedy and other vectors and their residuals, against plain Python."""
    for seed in range(4):
        rows = [row("random", 9, seed), row("random", 9, seed + 1)]
        told = []
        for ops in (VectorOps([0], 9, options), PlainOps([0], 9, options)):
            held: Any = ops
            first = ops.hold("draft", 1, rows if isinstance(ops, VectorOps) else [r.tolist() for r in rows])
            handles = [held.distribution(first), held.distribution(first + 1), held.one_hot(seed), held.one_hot(8)]
            handles += [held.residual(p, q) for p in handles for q in handles]
            told.append(
                [
                    (
                        [float(value) for value in held.vector(handle)],
                        held.total(handle),
                        [held.weight(handle, token) for token in range(9)],
                        held.boxes(handle),
                        held.top(handle, 3),
                        [held.overlap(handle, other) for other in handles[:4]],
                        held.locate(handle, 0.0) if held.total(handle) else None,
                    )
                    for handle in handles
                ]
            )
        assert told[0] == told[1]


# Memory.


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 2**31), min_size=1, max_size=4), min_size=2, max_size=5), cases((7, 512)))
def test_ops_used_over_many_rounds_give_what_new_ones_give(rounds: list[list[int]], case: Case) -> None:
    """Nothing of a round is left in the next: neither vectors nor sums. Half of the vectors are shown."""
    used = case.ops(VectorOps)
    for seeds in rounds:
        used.clear()
        new = case.ops(VectorOps)
        for ops in (used, new):
            for seed in seeds:
                ops.hold("draft", 3, [row(FAMILIES[seed % len(FAMILIES)], len(case.logits), seed)])
        handles = [(used.distribution(i), new.distribution(i)) for i in range(len(seeds))]
        live = [mine for mine, _ in handles if mine != EMPTY]
        assert [mine for mine, _ in handles] == [fresh for _, fresh in handles]
        live += [used.residual(p, q) for p in live for q in live]
        for p in [fresh for _, fresh in handles if fresh != EMPTY]:
            for q in [fresh for _, fresh in handles if fresh != EMPTY]:
                new.residual(p, q)
        for handle in live:
            assert used.total(handle) == new.total(handle)
            if used.total(handle):
                assert used.locate(handle, used.total(handle) / 2) == new.locate(handle, new.total(handle) / 2)
        for handle in live[::2]:
            assert same(used.vector(handle), new.vector(handle))


def test_live_vectors_share_no_memory() -> None:
    ops = VectorOps([0], 300, Sampling())
    for seed in range(4):
        ops.clear()
        rows = [row("random", 300, 10 * seed + i) for i in range(5)]
        first = ops.hold("target", 1, rows)
        handles = [ops.distribution(first + i) for i in range(5)]
        handles += [ops.residual(handles[0], handles[1]), ops.one_hot(2), ops.one_hot(2)]
        held = [*(ops.vector(handle) for handle in handles if seed % 2), *rows]
        for i, one in enumerate(held):
            assert not any(np.shares_memory(one, other) for other in held[i + 1 :])


def test_a_vector_that_was_shown_is_never_overwritten() -> None:
    ops = VectorOps([0], 300, Sampling())
    shown: list[tuple[Any, bytes]] = []
    for seed in range(6):
        ops.clear()
        first = ops.hold("target", 1, [row("random", 300, 3 * seed + i) for i in range(3)])
        handles = [ops.distribution(first + i) for i in range(3)]
        handles.append(ops.residual(*handles[:2]))
        shown += [(vector, vector.tobytes()) for vector in (ops.vector(handles[seed % 4]), ops.vector(handles[3]))]
    assert all(vector.tobytes() == before for vector, before in shown)


@settings(max_examples=60)
@given(cases((2, 7, 512)))
def test_rows_are_left_as_they_came(case: Case) -> None:
    ops = case.ops(VectorOps)
    wide = case.logits.astype(np.float64)
    for rows in (case.logits, wide):
        before = rows.tobytes()
        handle = ops.distribution(ops.hold("draft", 3, [rows]))
        if handle != EMPTY:
            ops.residual(handle, ops.one_hot(0))
        assert rows.tobytes() == before


# The processor's warnings, and broken rows.


@settings(max_examples=60)
@given(cases((2, 7, 512)))
def test_a_caller_who_makes_warnings_errors_is_not_disturbed(case: Case) -> None:
    handle = case.ops(VectorOps)
    wanted = handle.distribution(handle.hold("draft", 3, [case.logits]))
    ops = case.ops(VectorOps)
    with np.errstate(over="raise", under="raise", invalid="raise", divide="raise"):
        assert ops.distribution(ops.hold("draft", 3, [case.logits])) == wanted
    if wanted != EMPTY:
        assert same(ops.vector(wanted), handle.vector(wanted))


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from([(math.nan, math.inf), (math.inf, math.nan)]))
def test_the_first_broken_logit_of_a_long_row_is_named(one: int, other: int, values: tuple[float, float]) -> None:
    ops = VectorOps([0], 900, Sampling())
    x = row("random", 1000, 1)
    x[one], x[other] = values
    first = min(one, other)
    with pytest.raises(LogitsError, match=f"token {first} is {'NaN' if np.isnan(x[first]) else 'plus infinity'}"):
        ops.distribution(ops.hold("draft", 3, [x]))
