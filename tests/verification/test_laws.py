"""Laws by recursion against the enumeration of the rules themselves, as equalities of fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import ConstantPace, NgramDraft
from journee_deploy.enumeration import LawError
from journee_deploy.exactness import Table, Toy, apart, emitted_law, one_hot_table, table, target_law
from journee_deploy.request import Request
from journee_deploy.verification.biases import BIASES, HONEST
from journee_deploy.verification.laws import BundlePlaces, Place, Shape, Text, plain, text_law
from journee_deploy.verification.models import Models
from journee_deploy.verification.sampling_test import Experiment

EVEN, ODD = apart(4)
PAIR = Toy("near", 3, table(3, 1, "p"), draft_table=table(3, 2, "q"), limit=3)
TOYS = [
    PAIR,
    replace(PAIR, name="short", limit=2, pace=ConstantPace(1)),
    replace(PAIR, name="ends", ends=(1,)),
    Toy("others", 3, table(3, 31, "p"), draft_table=table(3, 32, "q"), limit=3),
    Toy("apart", 4, EVEN, draft_table=ODD, limit=3),
    Toy("sure", 3, table(3, 3, "p"), draft_table=one_hot_table(3, 4), limit=3),
]
RULES = [rule for rules in BIASES.values() for rule in rules]


def places(toy: Toy) -> Any:
    def fractions(rows: Table, text: Text) -> list[Fraction]:
        row = list(map(Fraction, rows((*toy.prompt, *text), ())))
        return row + [Fraction(0)] * (toy.size - len(row))

    def place(text: Text) -> Place:
        assert toy.draft_table is not None
        p, q = fractions(toy.target, text), fractions(toy.draft_table, text)
        return Place({t: w for t, w in enumerate(p) if w}, {t: q[t] for t, w in enumerate(p) if w})

    return place


def shape(toy: Toy) -> Shape:
    return Shape(toy.limit, toy.pace.next_length([]), toy.ends)


def texts(law: dict[tuple[Text, str], Fraction]) -> dict[Text, Fraction]:
    return {text: weight for (text, _), weight in law.items()}


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_biased_rule_has_the_law_of_its_kernel(rule: Any, toy: Toy) -> None:
    emitted, _ = emitted_law(toy, rule)
    assert text_law(places(toy), shape(toy), rule.kernel) == texts(emitted)


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
@pytest.mark.parametrize("rule", HONEST, ids=str)
def test_the_shipped_rules_have_the_target_law(rule: str, toy: Toy) -> None:
    made, kernel = HONEST[rule]
    wanted = texts(target_law(toy))
    assert text_law(places(toy), shape(toy), plain) == wanted
    assert text_law(places(toy), shape(toy), kernel) == wanted
    assert texts(emitted_law(toy, made)[0]) == wanted


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_bias_is_one(rule: Any) -> None:
    exact = text_law(places(PAIR), shape(PAIR), plain)
    biased = text_law(places(PAIR), shape(PAIR), rule.kernel)
    assert Experiment((0,), exact, {rule.__name__: biased}).shift(rule) > 0


def test_places_are_what_the_models_say(sound: Models) -> None:
    prompt = sound.prompt("abc", 4)
    found = BundlePlaces(sound, sound.lm().drafting(Request()), prompt, Sampling(top_k=3))
    assert len(found(()).p) == 3
    assert sum(found(()).p.values()) == 1
    first, second = found((5,)), found((6,))
    assert first.p != second.p
    assert first.q is not None
    assert sum(first.q.values()) <= 1
    judged = sound.lm().generate(prompt, max_new_tokens=2, top_k=3, seed=1, trace=True, speculation_length=1)
    judgement = judged.report.judgements[0]
    likeliest = {token: p for token, p in judgement.top if p}
    assert likeliest == {token: float(weight) for token, weight in found(()).p.items()}
    if judgement.proposal in found(()).p and judgement.proposal_q is not None:
        q = found(()).q
        assert q is not None
        assert float(q[judgement.proposal]) == judgement.proposal_q


def test_a_draft_without_a_proposal_leaves_the_target(sound: Models) -> None:
    silent = BundlePlaces(sound, NgramDraft(), (1, 2, 3), Sampling(top_k=3))
    assert silent(()).q is None
    assert silent((1,)).q is not None
    weights = text_law(silent, Shape(2, 1), HONEST["residual"][1])
    assert weights == text_law(silent, Shape(2, 1), plain)


def test_weights_that_do_not_add_up_are_an_error() -> None:
    with pytest.raises(LawError, match="add up to 1/2, not 1"):
        text_law(lambda text: Place({0: Fraction(1, 2)}, None), Shape(1, 1), plain)
