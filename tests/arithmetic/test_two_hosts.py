"""NumPy and plain Python give the same distributions, residuals and draws: the same bits, or the same refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journee_deploy.arithmetic import plain, vector_steps
from journee_deploy.arithmetic.arena import EMPTY, LogitsError
from journee_deploy.arithmetic.exponential import LOWEST
from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from tests.arithmetic.cases import FAMILIES, Case, cases, row


def same(a: Any, b: Any) -> bool:
    """Equal float64 bytes: 0.0 and -0.0 differ."""
    return np.asarray(a, np.float64).tobytes() == np.asarray(b, np.float64).tobytes()


def outcome(ops: Any, role: str, logits: Any) -> tuple[int, str]:
    """A handle, or what the refusal says."""
    try:
        return ops.distribution(ops.hold(role, 5, [logits])), ""
    except LogitsError as error:
        return EMPTY, str(error)


def assert_same(case: Case, roles: tuple[str, ...] = ("draft", "target")) -> None:
    fast, slow = case.ops(VectorOps), case.ops(PlainOps)
    for role in roles:
        p, said = outcome(fast, role, case.logits)
        wanted, told = outcome(slow, role, case.logits.tolist())
        assert (p, said) == (wanted, told)
        if p == EMPTY:
            continue
        assert same(fast.vector(p), slow.vector(wanted))
        assert fast.top(p, 4) == slow.top(wanted, 4)
        assert fast.top_logits(0, 4) == slow.top_logits(0, 4)
        assert fast.total(p) == slow.total(wanted) == 1.0


@settings(max_examples=400)
@given(cases((1, 2, 7)))
def test_every_option_over_small_vocabularies(case: Case) -> None:
    assert_same(case)


@settings(max_examples=80)
@given(cases((512,)))
def test_every_option_over_512_tokens(case: Case) -> None:
    assert_same(case)


@settings(max_examples=8)
@given(cases((50_000,)))
def test_every_option_over_50_000_tokens(case: Case) -> None:
    assert_same(case, ("target",))


@pytest.mark.parametrize("size", [1, 2, 7])
def test_many_seeded_combinations(size: int) -> None:
    """Ten times as many as hypothesis has time for: every option set from a seeded generator."""
    random = np.random.default_rng(size)
    for seed in range(2000):
        tokens = [int(token) for token in random.integers(0, size, 8)]
        sampling = Sampling(
            temperature=float(random.choice([0.0, 5e-324, 1e-3, 0.4, 1.0, 2.5, 1e300])),
            top_k=int(random.integers(0, size + 2)),
            top_p=float(random.choice([5e-324, 2.0**-50, 0.3, 0.9, 1.0 - 2.0**-53, 1.0, random.uniform(0.01, 1)])),
            min_p=float(random.choice([0.0, 0.0, 2.0**-49, 0.1, 1.0, random.uniform()])),
            repetition_penalty=float(random.choice([0.01, 1.0, 1.0, 1.2, 100.0])),
            frequency_penalty=float(random.choice([0.0, 0.3, -0.3, 3e38])),
            presence_penalty=float(random.choice([0.0, 0.3, -0.3, -3e38])),
            logit_bias={tokens[0]: float(random.choice([0.0, 0.5, -np.inf, 3e38]))} if seed % 2 else {},
            min_new_tokens=int(random.integers(0, 5)),
        )
        logits = row(FAMILIES[seed % len(FAMILIES)], int(max(1, size + random.integers(-1, 2))), seed)
        assert_same(Case(size, logits, sampling, tuple(tokens[1:4]), tuple(tokens[4:]), (size - 1,)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1, 2, 7, 512])
def test_every_family_with_options_off(family: str, size: int) -> None:
    for seed in range(10):
        assert_same(Case(size, row(family, size, seed), Sampling(), (0,), (), ()))


@settings(max_examples=150)
@given(cases((2, 7)), st.integers(0, 2**31))
def test_two_distributions_together(case: Case, seed: int) -> None:
    """Residual, overlap, total, one-hot, uniform and locate, at every boundary of the cumulative sum."""
    fast, slow = case.ops(VectorOps), case.ops(PlainOps)
    handles = []
    for ops in (fast, slow):
        rows = [case.logits, row("random", case.size, seed)]
        first = ops.hold("draft", 1, rows if ops is fast else [values.tolist() for values in rows])
        p, q = ops.distribution(first), ops.distribution(first + 1)
        if EMPTY in (p, q):
            handles.append((p, q))
            continue
        assert 0.0 <= ops.overlap(p, q) <= 1.0
        handles.append((p, q, ops.residual(p, q), ops.residual(q, p), ops.one_hot(seed % case.size), ops.uniform()))
    assert handles[0] == handles[1]
    if EMPTY in handles[0][:2]:
        return
    assert fast.overlap(*handles[0][:2]) == slow.overlap(*handles[1][:2])
    for handle in handles[0]:
        if handle == EMPTY:
            continue
        assert same(fast.vector(handle), slow.vector(handle))
        assert fast.total(handle) == slow.total(handle)
        assert [fast.weight(handle, token) for token in range(case.size)] == slow.vector(handle)
        for fraction in edges(slow.vector(handle)):
            assert fast.locate(handle, fraction) == slow.locate(handle, fraction)
        for ops in (fast, slow):
            with pytest.raises(ValueError, match="is not below the vector's total"):
                ops.locate(handle, ops.total(handle))


def edges(vector: list[float]) -> list[float]:
    """Every cumulative sum and its neighbours a unit away, below the total."""
    reached = [sum(vector[:count]) for count in range(len(vector) + 1)]
    near = [edge + step * 2.0**-50 for edge in reached for step in (-1, 0, 1)]
    return [fraction for fraction in near if 0.0 <= fraction < reached[-1]]


def test_the_exponentials_agree() -> None:
    random = np.random.default_rng(0)
    z = np.concatenate(
        [
            random.uniform(LOWEST, 0.0, 20_000),
            -np.exp(random.uniform(-745.0, 3.58, 20_000)),
            np.arange(0, -36 * 64 - 1, -1) / 64,
            [-0.0, -5e-324, LOWEST, np.nextafter(LOWEST, 0.0)],
        ]
    )
    z = z[z >= LOWEST]
    assert same(vector_steps.exponential(z), [plain.exponential(value) for value in z.tolist()])


@pytest.mark.parametrize("count", [1, 2, 7, 8191, 8193, 61_737])
def test_the_sums_agree(count: int) -> None:
    random = np.random.default_rng(count)
    for high in (2, 2**26, 2**50 + 1):
        k = random.integers(0, high, count).astype(np.float64)
        assert vector_steps.sum_once(k) == plain.sum_once(k.tolist())


def test_other_float_types_are_widened_first() -> None:
    logits = row("random", 7, 3)
    case = Case(7, logits, Sampling(repetition_penalty=1.3, temperature=0.7), (1, 2), (2,), ())
    fast, slow = case.ops(VectorOps), case.ops(PlainOps)
    wanted = fast.vector(outcome(fast, "target", logits)[0])
    assert same(fast.vector(outcome(fast, "target", logits.astype(np.float64))[0]), wanted)
    assert same(slow.vector(outcome(slow, "target", logits)[0]), wanted)  # NumPy's own scalars, in plain Python
