"""Rule `coupled`: a seed's text is the same with any draft or none; what is accepted is what was predicted, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import (
    Chance,
    ConstantPace,
    Coupled,
    ModelDraft,
    NgramDraft,
    NoDraft,
    Philox,
    Residual,
    Stops,
    UniformDraft,
    speculate,
)
from journee_deploy.enumeration import Branches, BranchingChance, law
from journee_deploy.exactness import LookingPace
from journee_deploy.protocols import Draft, Pace, Rule
from tests.portable.toys import Host, drive, kinds_of, model, tokens_of

SIZE = 8
SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.7, top_k=4, top_p=0.9),
    Sampling(temperature=1.3, repetition_penalty=1.4, presence_penalty=0.5, frequency_penalty=0.3, min_new_tokens=4),
    Sampling(temperature=0),
]


def emits(
    seed: int, draft: Draft, pace: Pace, sampling: Sampling, other: int = 1, ends: tuple[int, ...] = ()
) -> list[object]:
    """One generation of 20 tokens; `other` is the draft model's own table (1 is the target's)."""
    prompt = [1, 2, 1, 3]
    ops = PlainOps(list(prompt), SIZE, sampling, ends)
    host = Host({"target": model(1, SIZE), "draft": model(other, SIZE)}, ops)
    controller = speculate(
        prompt,
        ops=ops,  # type: ignore[arg-type]
        chance=Chance(ops, Philox(seed, 5)),  # type: ignore[arg-type]
        rule=Coupled(),
        draft=draft,
        pace=pace,
        stops=Stops(20, ends=ends),
        trace=True,
    )
    return drive(controller, host)  # type: ignore[no-untyped-call, no-any-return]


DRAFTS = [
    (ModelDraft(), 1),  # as good as can be
    (ModelDraft(), 2),  # another model
    (UniformDraft(), 1),
    (NgramDraft(), 1),
    (NgramDraft(least=2, most=3), 1),
]


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=range(len(SAMPLINGS)))
def test_the_text_of_a_seed_is_the_same_with_any_draft_and_any_length(sampling: Sampling) -> None:
    for seed in range(12):
        plain = tokens_of(emits(seed, NoDraft(), ConstantPace(0), sampling, ends=(6,)))
        for draft, other in DRAFTS:
            for pace in (ConstantPace(1), ConstantPace(5), LookingPace(3)):
                assert tokens_of(emits(seed, draft, pace, sampling, other, ends=(6,))) == plain, (seed, draft.name)


def test_seeds_give_different_texts() -> None:
    """What the test above leans on: it would not pass by everything being the same."""
    texts = {tuple(tokens_of(emits(seed, NoDraft(), ConstantPace(0), SAMPLINGS[0]))) for seed in range(12)}
    assert len(texts) == 12


@given(
    seed=st.integers(0, (1 << 64) - 1),
    length=st.integers(0, 6),
    other=st.integers(1, 50),
    temperature=st.sampled_from([0.3, 1.0, 2.0]),
    top_k=st.integers(0, SIZE),
)
def test_the_text_is_the_seeds_alone(seed: int, length: int, other: int, temperature: float, top_k: int) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k)
    plain = tokens_of(emits(seed, NoDraft(), ConstantPace(0), sampling))
    assert tokens_of(emits(seed, ModelDraft(), ConstantPace(length), sampling, other)) == plain


def test_a_draft_equal_to_the_target_is_always_right_and_a_sure_draft_sometimes() -> None:
    right = emits(3, ModelDraft(), ConstantPace(4), SAMPLINGS[0], 1)
    assert set(kinds_of(right)) == {"accepted", "bonus"}
    assert {"accepted", "recovered"} <= set(kinds_of(emits(3, UniformDraft(), ConstantPace(4), SAMPLINGS[0])))


# Acceptance, exactly: one proposal, every branch of the darts.


def accepted(rule: Rule, p: list[Fraction], q: list[Fraction]) -> Fraction:
    """The probability that a rule accepts a proposal, with the emitted token's law checked on the way."""

    def program(branches: Branches) -> tuple[int, bool]:
        ops = PlainOps([0], len(p), Sampling())
        ours, theirs = (ops.keep([float(share) for share in row]) for row in (p, q))
        chance = BranchingChance(ops, len(p), branches)  # type: ignore[arg-type]
        proposal, _ = rule.propose(theirs, 1, 0, chance)
        token, kept, _ = rule.judge(ours, theirs, proposal, 1, 0, ops, chance)  # type: ignore[arg-type]
        return token, kept

    found = law(program).weights
    for token, share in enumerate(p):
        assert sum(found.get((token, kept), Fraction(0)) for kept in (True, False)) == share
    return sum((mass for (_, kept), mass in found.items() if kept), Fraction(0))


def sixteenths(*parts: int) -> list[Fraction]:
    assert sum(parts) == 16
    return [Fraction(part, 16) for part in parts]


PAIRS = [
    (sixteenths(8, 4, 4), sixteenths(4, 4, 8)),
    (sixteenths(16, 0), sixteenths(0, 16)),
    (sixteenths(5, 5, 6), sixteenths(5, 5, 6)),
    (sixteenths(1, 2, 3, 10), sixteenths(9, 1, 6, 0)),
    (sixteenths(1, 15), sixteenths(15, 1)),
    (sixteenths(0, 6, 6, 4), sixteenths(16, 0, 0, 0)),
    (sixteenths(2, 14), sixteenths(0, 16)),
]


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_acceptance_is_the_formula_exactly(p: list[Fraction], q: list[Fraction]) -> None:
    overlap = sum((min(a, b) for a, b in zip(p, q, strict=True)), Fraction(0))
    tv = 1 - overlap
    shared = sum((min(a, b) * (1 + abs(a - b)) for a, b in zip(p, q, strict=True)), Fraction(0)) / (1 + tv)
    assert accepted(Residual(), p, q) == overlap
    assert accepted(Coupled(), p, q) == shared
    assert (1 - tv) / (1 + tv) <= shared <= overlap
    ops = PlainOps([0], len(p), Sampling())
    ours, theirs = (ops.keep([float(share) for share in row]) for row in (p, q))
    assert Residual().acceptance(ours, theirs, ops) == overlap  # type: ignore[arg-type]
    assert Coupled().acceptance(ours, theirs, ops) == pytest.approx(float(shared), rel=1e-15)  # type: ignore[arg-type]


def test_reports_carry_the_prediction_and_no_coin() -> None:
    found = emits(2, ModelDraft(), ConstantPace(3), SAMPLINGS[0], 2)
    judged = [judgement for emit in found for judgement in emit.judgements]  # type: ignore[attr-defined]
    assert {judgement.coin for judgement in judged} == {None}
    assert all((judgement.predicted is None) == (judgement.kind == "bonus") for judgement in judged)
    assert all(judgement.predicted <= 1 - judgement.tv + 1e-12 for judgement in judged if judgement.kind != "bonus")


def test_real_darts_accept_as_often_as_predicted() -> None:
    """A count over many seeds beside its exact mean: off by more than 5.5 deviations once in 2 * 10^7 such suites."""
    p, q = [float(share) for share in PAIRS[3][0]], [float(share) for share in PAIRS[3][1]]
    ops = PlainOps([0], 4, Sampling())
    ours, theirs = ops.keep(p), ops.keep(q)
    runs = 4000
    hits = sum(
        chance.first_dart(ours, 1)[0] == chance.first_dart(theirs, 1)[0]
        for chance in (Chance(ops, Philox(seed)) for seed in range(runs))  # type: ignore[arg-type]
    )
    mean = Coupled().acceptance(ours, theirs, ops)  # type: ignore[arg-type]
    assert abs(hits - runs * mean) < 5.5 * (runs * mean * (1 - mean)) ** 0.5
