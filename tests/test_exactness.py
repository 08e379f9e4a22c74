"""The theorem before any model: the shipped controller's law equals the target's, as equality of fractions.

Every branch of `speculate` is taken over toy models (journee_deploy.exactness): no tolerance, no statistic. The
controls at the end break one thing at a time and must show a distance above 0, so a zero here means something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import RULES, ConstantPace, Coupled, NgramDraft, NoDraft, Residual, UniformDraft
from journee_deploy.controller.chance import JUDGE, PROPOSE, RECOVER
from journee_deploy.enumeration import Branches, Darts, DrawnTwiceError, distance, law
from journee_deploy.exactness import (
    LookingPace,
    Prefix,
    Toy,
    ToyHost,
    apart,
    emitted_law,
    enumerable,
    exactness_error,
    logits,
    one_hot_table,
    remembering,
    table,
    target_law,
    toys,
)
from journee_deploy.protocols import ChanceLike, Ops, Rule


def assert_exact(toy: Toy, rule: Callable[[], Rule] = Residual) -> None:
    emitted, leaves = emitted_law(toy, rule)
    wanted = target_law(toy)
    assert leaves >= len(wanted)
    assert sum(emitted.values()) == 1
    assert emitted == wanted  # the same outcomes with the same fractions, nothing rounded
    assert distance(emitted, wanted) == 0


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize("toy", toys(), ids=lambda toy: toy.name)
def test_the_named_toys_are_exact(toy: Toy, rule: type[Rule]) -> None:
    assert_exact(enumerable(toy, rule), rule)


def test_the_exactness_error_is_zero() -> None:
    assert exactness_error() == Fraction(0)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_size_and_length(size: int, length: int) -> None:
    limit = 5 if size == 2 else 4 if length < 3 or size == 3 else 3
    for seed in range(3 if size == 2 else 1):
        target = table(size, seed, f"p{length}")
        draft = table(size, seed, f"q{length}")
        assert_exact(Toy("pair", size, target, draft_table=draft, pace=ConstantPace(length), limit=limit))


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_every_kind_of_draft(length: int) -> None:
    even, odd = apart(4)
    pace = ConstantPace(length)
    target = table(3, 40, "p")
    assert_exact(Toy("equal", 3, target, draft_table=target, pace=pace))
    assert_exact(Toy("disjoint", 4, even, draft_table=odd, pace=pace, limit=3))
    assert_exact(Toy("one-hot", 3, target, draft_table=one_hot_table(3, length), pace=pace))
    assert_exact(Toy("uniform", 3, target, draft=UniformDraft, pace=pace, limit=3))
    assert_exact(Toy("fewer tokens", 3, target, draft_table=table(2, 41, "q"), pace=pace, limit=3))
    assert_exact(Toy("remembering", 2, table(2, 42, "p"), draft_table=remembering(2, length), pace=pace, limit=5))


def test_no_draft_and_length_zero_are_plain_decoding() -> None:
    target = table(3, 50, "p")
    plain = Toy("none", 3, target, draft=NoDraft, pace=ConstantPace(4))
    zero = Toy("zero", 3, target, draft_table=table(3, 51, "q"), pace=ConstantPace(0))
    assert_exact(plain)
    assert_exact(zero)


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_length_that_looks_at_proposals(most: int) -> None:
    assert_exact(
        Toy(
            "looking",
            2,
            table(2, 60 + most, "p"),
            draft_table=table(2, 61, "q"),
            pace=LookingPace(most),
            limit=6,
        )
    )


@pytest.mark.parametrize("length", [1, 2, 4])
@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_ends_stops_and_limits_inside_a_run(limit: int, length: int) -> None:
    base = Toy("ends", 3, table(3, 70, "p"), draft_table=table(3, 71, "q"), pace=ConstantPace(length), limit=limit)
    assert_exact(replace(base, ends=(2,)))
    assert_exact(replace(base, ends=(0, 2)))
    assert_exact(replace(base, sequences=((1, 1), (0, 2, 0))))
    assert_exact(replace(base, ends=(2,), sequences=((1, 0),)))


OPTIONS = {
    "temperature": Sampling(temperature=0.5),
    "top_k with ties": Sampling(top_k=2),
    "top_p": Sampling(top_p=0.8),
    "min_p": Sampling(min_p=0.3),
    "repetition": Sampling(repetition_penalty=1.7),
    "frequency": Sampling(frequency_penalty=0.9),
    "presence": Sampling(presence_penalty=1.1),
    "bias": Sampling(logit_bias={0: 1.5, 2: -float("inf")}),
    "late ends": Sampling(min_new_tokens=2),
    "greedy with penalties": Sampling(temperature=0, repetition_penalty=1.5, presence_penalty=0.6),
    "all": Sampling(
        temperature=1.4,
        top_k=2,
        top_p=0.95,
        min_p=0.1,
        repetition_penalty=1.2,
        frequency_penalty=0.5,
        min_new_tokens=1,
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_truncation_and_penalties(name: str) -> None:
    toy = Toy(
        "options",
        3,
        logits(3, 80, "p"),
        draft_table=logits(3, 81, "q"),
        sampling=OPTIONS[name],
        ends=(1,),
        pace=ConstantPace(2),
        limit=4,
        prompt=(0, 2),
    )
    assert_exact(toy)


# Controls: each breaks one thing and must be seen.

PAIR = Toy("control", 3, table(3, 1, "p"), draft_table=table(3, 2, "q"))


class Resampling(Residual):
    """After a rejection, draws from p."""

    def judge(
        self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike
    ) -> tuple[int, bool, float | None]:
        kept, coin = chance.accept(ops.weight(p, proposal), ops.weight(q, proposal), (JUDGE, position, number))
        return (proposal, True, coin) if kept else (chance.pick(p, (RECOVER, position, number))[0], False, coin)


class Forgetful(Residual):
    """Keys its draws by position alone."""

    def propose(self, q: int, position: int, number: int, chance: ChanceLike) -> tuple[int, float | None]:
        return chance.pick(q, (PROPOSE, position, 0))


class Lenient(Residual):
    """Judges a proposal by a weight one unit of 1/16 too kind."""

    def judge(
        self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike
    ) -> tuple[int, bool, float | None]:
        weight = min(1.0, ops.weight(p, proposal) + 1 / 16)
        kept, coin = chance.accept(weight, ops.weight(q, proposal), (JUDGE, position, number))
        if kept or ops.total(ops.residual(p, q)) == 0:
            return proposal, True, coin
        return chance.pick(ops.residual(p, q), (RECOVER, position, number))[0], False, coin


@pytest.mark.parametrize("rule", [Resampling, Lenient])
def test_a_biased_rule_is_seen(rule: type[Residual]) -> None:
    emitted, _ = emitted_law(PAIR, rule)
    assert distance(emitted, target_law(PAIR)) > 0
    assert exactness_error(rule) > 0


class LeakyHost(ToyHost):
    """Rows of the target see the last token of their run, as graphs do, by rounding, without a row rule."""

    def row(self, role: str, cache: Prefix, end: int, before: Prefix) -> Sequence[float]:
        row = list(super().row(role, cache, end, before))
        return row[::-1] if role == "target" and end < len(cache) and cache[-1] == 0 else row


def test_rows_that_see_later_rows_break_the_law() -> None:
    """Why a target without a row rule is promised nothing: p must not depend on the proposal it judges."""
    emitted, _ = emitted_law(PAIR, host=LeakyHost)
    assert sum(emitted.values()) == 1
    assert distance(emitted, target_law(PAIR)) > 0


def test_a_draw_used_twice_is_refused_and_its_bias_shows() -> None:
    toy = Toy("twice", 2, table(2, 21, "p"), draft_table=remembering(2, 12), pace=ConstantPace(3), limit=5)
    with pytest.raises(DrawnTwiceError, match="used twice"):
        emitted_law(toy, Forgetful)
    emitted, _ = emitted_law(toy, Forgetful, strict=False)
    assert sum(emitted.values()) == 1
    assert distance(emitted, target_law(toy)) > 0


def test_a_proposal_thrown_away_after_seeing_it_is_seen() -> None:
    class Withdrawing(Residual):
        """Draws again, once, when it dislikes the first draw, but reports the q of one draw."""

        def propose(self, q: int, position: int, number: int, chance: ChanceLike) -> tuple[int, float | None]:
            token, coin = super().propose(q, position, number, chance)
            return (token, coin) if token else chance.pick(q, (9, position, number))

    emitted, _ = emitted_law(PAIR, Withdrawing)
    assert distance(emitted, target_law(PAIR)) > 0


@pytest.mark.parametrize("length", [1, 2, 4])
def test_n_gram_drafts(length: int) -> None:
    pace = ConstantPace(length)
    toy = Toy("n-gram", 3, table(3, 90, "p"), draft=NgramDraft, prompt=(2, 1, 2, 0, 1), pace=pace, limit=4)
    assert_exact(toy)
    assert_exact(replace(toy, limit=3, ends=(1,)), Coupled)


# Controls of the darts.


class Partial(Coupled):
    """Keeps a proposal that the target likes at least as well, and asks its own dart otherwise."""

    def judge(
        self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike
    ) -> tuple[int, bool, float | None]:
        if ops.weight(p, proposal) >= ops.weight(q, proposal):
            return proposal, True, None
        return super().judge(p, q, proposal, position, number, ops, chance)


class Hopeful(Coupled):
    """`residual`'s verdict on a proposal that was the first dart: right if the darts were never seen again."""

    def judge(
        self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike
    ) -> tuple[int, bool, float | None]:
        return Residual().judge(p, q, proposal, position, number, ops, chance)


TWICE = Toy("twice", 2, table(2, 21, "p"), draft_table=remembering(2, 12), pace=ConstantPace(3), limit=4)


@pytest.mark.parametrize(("rule", "toy"), [(Partial, replace(PAIR, limit=3)), (Hopeful, TWICE)])
def test_a_biased_use_of_darts_is_seen(rule: type[Coupled], toy: Toy) -> None:
    emitted, _ = emitted_law(toy, rule)
    assert sum(emitted.values()) == 1
    assert distance(emitted, target_law(toy)) > 0


def test_the_darts_of_a_position_are_one_process() -> None:
    """Three questions, one of them twice: what each curve's first dart is alone has its law, and answers agree."""
    thirds = [Fraction(1, 3)] * 3
    curves = (thirds, [Fraction(1, 2), Fraction(1, 2), Fraction(0)], [Fraction(0), Fraction(1, 4), Fraction(3, 4)])

    def program(branches: Branches) -> tuple[int, ...]:
        asked = iter(range(100))
        darts = Darts(lambda weights: branches.choose((4, 0, next(asked)), weights))
        found = [darts.first(curve) for curve in (*curves, *curves)]
        assert found[:3] == found[3:]
        return tuple(found[:3])

    found = law(program).weights
    for place, curve in enumerate(curves):
        for token, share in enumerate(curve):
            assert sum(weight for outcome, weight in found.items() if outcome[place] == token) == share
    both = sum(weight for outcome, weight in found.items() if outcome[0] == outcome[1])
    tv = Fraction(1, 3)
    assert both == sum(min(a, b) * (1 + abs(a - b)) for a, b in zip(*curves[:2], strict=True)) / (1 + tv)


def test_the_enumerator_refines_one_number_a_key() -> None:
    def program(branches: Branches) -> tuple[int, int]:
        half, quarter = [Fraction(1, 2)] * 2, [Fraction(1, 4)] * 4
        return branches.choose((0, 0, 0), half), branches.choose((0, 0, 0), quarter)

    found = law(program, strict=False)
    assert found.weights == {
        (0, 0): Fraction(1, 4),
        (0, 1): Fraction(1, 4),
        (1, 2): Fraction(1, 4),
        (1, 3): Fraction(1, 4),
    }
    with pytest.raises(DrawnTwiceError):
        law(program)
