"""What makes a vector a distribution, checked with integers; and the document, restated, against the code."""

from __future__ import annotations

import math
import struct
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journee_deploy.arithmetic import exponential, plain, vector_steps
from journee_deploy.arithmetic.arena import EMPTY, LogitsError
from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from tests.arithmetic import oracle, worked_examples
from tests.arithmetic.cases import Case, cases, row

UNITS = 2**50


def units(vector: Any) -> list[int]:
    """Whole numbers of 2^-50, or a failure."""
    scaled = [float(value) * UNITS for value in vector]  # a power of two: exact
    assert all(value >= 0.0 and value.is_integer() for value in scaled)
    return [int(value) for value in scaled]


# The document.


@settings(max_examples=400)
@given(cases((1, 2, 3, 7)))
def test_the_code_does_what_the_document_says(case: Case) -> None:
    ops = case.ops(VectorOps)
    ends = [token for token in case.ends if token < case.size]
    x = oracle.processed(case.logits.tolist(), case.size, case.sampling, case.prompt, case.pushed, ends)
    wanted = oracle.distribution(x, case.sampling)
    handle = ops.distribution(ops.hold("draft", 0, [case.logits]))
    assert (handle == EMPTY) == (wanted is None)
    if wanted is not None:
        assert units(ops.vector(handle)) == wanted


def test_the_documents_constants_are_the_modules() -> None:
    names = ["LOG2E", "LN2_HIGH", "LN2_LOW", *(f"c{i}" for i in range(13, -1, -1))]
    module = [exponential.LOG2E, exponential.LN2_HIGH, exponential.LN2_LOW, *exponential.COEFFICIENTS]
    assert {name: Fraction(value) for name, value in zip(names, module, strict=True)} == oracle.CONSTANTS


def test_the_constants_are_what_they_are_called() -> None:
    with localcontext() as context:
        context.prec = 60
        ln2 = Fraction(Decimal(2).ln())
    for i in range(14):
        assert oracle.CONSTANTS[f"c{i}"] == oracle.rounded(Fraction(1, math.factorial(i)))
    assert oracle.CONSTANTS["LOG2E"] == oracle.rounded(1 / ln2)
    high = struct.unpack(">Q", struct.pack(">d", exponential.LN2_HIGH))[0]
    assert high % 2**21 == 0
    assert oracle.CONSTANTS["LN2_LOW"] == oracle.rounded(ln2 - oracle.CONSTANTS["LN2_HIGH"])
    assert list(exponential.POWERS) == [2.0**-n for n in range(54)]


@pytest.mark.parametrize("number", range(4))
def test_the_documents_examples_are_what_the_code_computes(number: int) -> None:
    block = worked_examples.blocks()[number]
    assert "\n".join("    " + line for line in block.split("\n")) in oracle.DOCUMENT


# Invariants.


@settings(max_examples=150)
@given(cases((1, 2, 7, 512)), st.integers(0, 2**31))
def test_everything_is_whole_units_and_adds_up(case: Case, seed: int) -> None:
    ops = case.ops(VectorOps)
    first = ops.hold("draft", 0, [case.logits, row("random", case.size, seed)])
    handles = [ops.distribution(first), ops.distribution(first + 1)]
    if EMPTY in handles:
        return
    p, q = (units(ops.vector(handle)) for handle in handles)
    assert sum(p) == sum(q) == UNITS
    kept = [min(a, b) for a, b in zip(p, q, strict=True)]
    left = units(ops.vector(ops.residual(*handles)))
    assert [a + b for a, b in zip(kept, left, strict=True)] == p
    assert Fraction(ops.overlap(*handles)) * UNITS == sum(kept)
    assert Fraction(ops.total(ops.residual(*handles))) * UNITS == sum(left) == UNITS - sum(kept)


@pytest.mark.parametrize("kind", [VectorOps, PlainOps])
def test_locate_inverts_the_cumulative_sum(kind: Any) -> None:
    ops = kind([0], 5, Sampling())
    ops.keep(np.array([0, 3, 0, 4, 0]) / UNITS)
    assert [ops.locate(0, u / UNITS) for u in range(7)] == [1, 1, 1, 3, 3, 3, 3]
    random = np.random.default_rng(3)
    for seed in range(40):
        handle = ops.distribution(ops.hold("target", 0, [row("random", 5, seed)]))
        p = units(ops.vector(handle))
        for u in [0, UNITS - 1, *random.integers(0, UNITS, 20).tolist()]:
            token = ops.locate(handle, u / UNITS)
            assert sum(p[:token]) <= u < sum(p[: token + 1])


# The remainder of step 10.


def missing(k: np.ndarray[Any, Any], total: float) -> int:
    """What flooring loses, by integers, with this sum of k."""
    return UNITS - sum(int(value / total * UNITS) for value in k.tolist())


def test_the_remainder_is_never_negative() -> None:
    """Also where a sum from left to right, which rounds at each step, makes it so: the first of these."""
    random = np.random.default_rng(11)
    counts = [633130291545133, *random.integers(1, UNITS, 6).tolist()]
    for size, count in zip([61_737, 61_737, 8_193, 100_003, 61_737, 3, 2], counts, strict=True):
        k = np.full(size, count, np.float64)
        k[0] = UNITS
        assert vector_steps.sum_once(k) == float(sum(int(value) for value in k))
        assert 0 <= missing(k, vector_steps.sum_once(k)) < size
        p = units(vector_steps.normalise(k, 0))
        assert sum(p) == UNITS
        assert p[0] >= p[1]
    k = np.full(61_737, counts[0], np.float64)
    k[0] = UNITS
    assert missing(k, float(np.cumsum(k)[-1])) < 0, "the control"


def test_normalising_divides_by_the_sum_rounded_once() -> None:
    """Against whole numbers; NumPy's own sum, which rounds in between, differs in part of these."""
    random = np.random.default_rng(2)
    differ = 0
    for _ in range(25):
        k = random.integers(0, UNITS, 1500).astype(np.float64)
        k[3] = UNITS
        wanted = oracle.shares([int(value) for value in k], 3)
        assert units(vector_steps.normalise(k, 3)) == wanted
        assert units(plain.normalise(k.tolist(), 3)) == wanted
        floors = np.floor(k / k.sum() * UNITS)
        differ += int(floors[np.arange(len(k)) != 3].sum()) != sum(wanted) - wanted[3]
    assert differ > 0


@pytest.mark.parametrize("size", [1, 2, 7, 512, 50_000, 61_737, 152_064])
def test_equal_logits_share_equally(size: int) -> None:
    p = vector_steps.distribute(np.full(size, -3.5), Sampling())
    assert p is not None
    share, over = divmod(UNITS, size)
    counts = (p * UNITS).astype(np.int64)
    assert set(counts[1:].tolist()) <= {share}
    assert counts[0] == share + over


@given(st.lists(st.integers(0, UNITS), min_size=1, max_size=60))
def test_a_sum_is_the_exact_sum_rounded_once(counts: list[int]) -> None:
    k = [float(count) for count in counts]
    assert plain.sum_once(k) == vector_steps.sum_once(np.array(k)) == float(sum(counts))


# The exponential and the softmax.


def grid() -> list[float]:
    random = np.random.default_rng(5)
    near = [i / 64 + d for i in range(-36 * 64, 1) for d in (0.0, -(2.0**-30))]
    halves = [-(n + 0.5) * math.log(2) * (1 + d * 2.0**-52) for n in range(52) for d in (-2, -1, 0, 1, 2)]
    tiny = [-(2.0**-n) for n in range(1, 1075)]
    return [z for z in near + halves + tiny + random.uniform(-36, 0, 3000).tolist() if z >= -36.0]


def test_the_exponential_is_one_at_zero_never_above_one_and_accurate() -> None:
    assert plain.exponential(0.0) == plain.exponential(-0.0) == 1.0
    worst = Fraction(0)
    with localcontext() as context:
        context.prec = 50
        for z in grid():
            value = plain.exponential(z)
            assert 0.0 < value <= 1.0
            true = Fraction(Decimal(z).exp())
            worst = max(worst, abs(Fraction(value) - true) / true)
    assert worst < Fraction(3, 2**53)
    assert all(plain.exponential(-(2.0**-n)) == 1.0 for n in range(54, 1075))


def test_the_exponential_does_not_fall_where_its_argument_rises() -> None:
    z = np.sort(np.array(grid()))
    far = np.concatenate(([True], np.diff(z) > 2.0**-50))  # neighbours closer than the error may swap by a bit
    assert np.all(np.diff(vector_steps.exponential(z[far])) >= 0)


def softmax_distance(x: list[float], temperature: float) -> Fraction:
    """Total variation between the distribution and the real softmax, in units."""
    p = plain.distribute(x, Sampling(temperature=temperature))
    assert p is not None
    with localcontext() as context:
        context.prec = 60
        weights = [((Decimal(value) - Decimal(max(x))) / Decimal(temperature)).exp() for value in x]
        total = sum(weights)
        return sum(abs(Fraction(a) - Fraction(w / total)) for a, w in zip(p, weights, strict=True)) * UNITS / 2


@settings(max_examples=100)
@given(
    st.lists(st.floats(-60, 60, width=32), min_size=1, max_size=8), st.sampled_from([0.01, 0.3, 0.7, 1.0, 1.5, 30.0])
)
def test_the_softmax_is_within_two_units_a_token(x: list[float], temperature: float) -> None:
    assert softmax_distance(x, temperature) < 2 * len(x)


def test_one_unit_a_token_is_not_enough() -> None:
    """The two floors of steps 6 and 10 can each cost a token nearly a unit, so the bound is 2V and not V."""
    just_below_two = math.log(1.999 / UNITS)
    assert 1996 < softmax_distance([0.0] + [just_below_two] * 999, 1.0) < 2000


# Errors.


@pytest.mark.parametrize("kind", [VectorOps, PlainOps])
@pytest.mark.parametrize("role", ["target", "draft"])
def test_broken_logits_are_named(kind: Any, role: str) -> None:
    def refusal(values: list[float]) -> str:
        ops = kind([0], 3, Sampling())
        logits = np.array(values, np.float32) if kind is VectorOps else values
        with pytest.raises(LogitsError) as caught:
            ops.distribution(ops.hold(role, 41, [[0.0] * 3, logits]) + 1)
        return str(caught.value)

    inf = math.inf
    for values in ([0.0, math.nan, 1.0], [-inf, math.nan, inf], [0.0, 1.0, 2.0, math.nan]):
        assert f"{role} logits at position 42: token {values.index(math.nan)} is NaN" in refusal(values)
    assert f"{role} logits at position 42: token 2 is plus infinity" in refusal([0.0, 1.0, inf])
    assert f"{role} logits at position 42: token 0 is plus infinity" in refusal([inf, math.nan, 0.0])
    assert f"{role} logits at position 42: all are minus infinity" in refusal([-inf] * 3)


@pytest.mark.parametrize("kind", [VectorOps, PlainOps])
def test_a_masked_out_draft_row_is_empty_and_a_target_row_an_error(kind: Any) -> None:
    banned = Sampling(logit_bias={0: -math.inf}, min_new_tokens=2)
    ops = kind([0], 2, banned, ends=(1,))
    logits = np.zeros((1, 2)) if kind is VectorOps else [[0.0, 0.0]]
    assert ops.distribution(ops.hold("draft", 1, logits)) == EMPTY
    assert ops.uniform() == EMPTY
    with pytest.raises(LogitsError, match="target logits at position 1: masking leaves no token"):
        ops.distribution(ops.hold("target", 1, logits))
    ops.push(1)
    ops.push(1)
    assert units(ops.vector(ops.distribution(ops.hold("target", 3, logits)))) == [0, UNITS]


@pytest.mark.parametrize("kind", [VectorOps, PlainOps])
def test_tokens_outside_the_vocabulary_are_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="the prompt has token 5; the vocabulary has 5 tokens"):
        kind([0, 5], 5, Sampling())
    with pytest.raises(ValueError, match="the prompt has token -1"):
        kind([-1], 5, Sampling())
    with pytest.raises(ValueError, match="logit_bias names token 5; the vocabulary has 5 tokens"):
        kind([0], 5, Sampling(logit_bias={5: 1.0}))
