"""Each check passes on sound models and catches what it is for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_conformance.host import Host
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import Coupled, Residual
from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import Rows, RuntimeFailure, Step
from journee_deploy.text import Codec
from journee_deploy.verification import biases, parity, sampling_test
from journee_deploy.verification.check import Finding, attempt
from journee_deploy.verification.controller import conformance_finding, exactness_finding
from journee_deploy.verification.models import Models
from journee_deploy.verification.promises import coupled_finding, greedy_finding, row_rule_finding
from journee_deploy.verification.sampling_test import make_plan, sampling_finding
from tests.engine.prefix_model import ANY, PrefixModel, hashed
from tests.verification.conftest import SIZE, SMALL, models_of

TEST = SMALL.tests[0]


class Neighbourly(PrefixModel):
    """Rows that say something else when several are kept: what a broken row rule does, only louder."""

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        rows = super().run(steps)
        return [part[:, ::-1] if step.keep > 1 else part for part, step in zip(rows, steps, strict=True)]


class Rounding(PrefixModel):
    """Rows that differ in their last bits with the number of tokens run."""

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        rows = super().run(steps)
        return [part + np.float32(len(step.tokens) % 3 * 1e-6) for part, step in zip(rows, steps, strict=True)]


def broken(codec: Codec, kind: type[PrefixModel] = Neighbourly, rule: RowRule | None = ANY) -> Models:
    return models_of(codec, kind(hashed(SIZE, 1), SIZE, rule=rule))


# Promises.


def test_sound_models_keep_them(sound: Models) -> None:
    rows = row_rule_finding(sound, SMALL, 0)
    assert rows.holds
    assert rows.figures["different"] == 0
    assert rows.figures["compared"] > 100
    assert greedy_finding(sound, SMALL).figures == {
        "drafts": ["model", "ngram", "uniform"],
        "lengths": [1, 4],
        "texts": 6,
    }
    assert coupled_finding(sound, SMALL, 0).holds


@pytest.mark.parametrize("kind", [Neighbourly, Rounding])
def test_a_row_rule_that_does_not_hold_is_caught(codec: Codec, kind: type[PrefixModel]) -> None:
    found = row_rule_finding(broken(codec, kind), SMALL, 0)
    assert found.holds is False
    assert found.figures["different"] > 0


def test_rows_that_see_their_neighbours_change_texts(codec: Codec) -> None:
    models = broken(codec)
    assert "token 0 is" in greedy_finding(models, SMALL).sentence
    assert greedy_finding(models, SMALL).holds is False
    assert coupled_finding(models, SMALL, 0).holds is False
    assert coupled_finding(models, SMALL, 0).sentence.startswith("seed 0, draft model, length 1, after 'The proof")


def test_no_row_rule_fails_by_name(codec: Codec) -> None:
    models = broken(codec, PrefixModel, None)
    found = row_rule_finding(models, SMALL, 0)
    assert found.holds is False
    assert "no row rule (switched off for a test)" in found.sentence
    greedy = greedy_finding(models, SMALL)
    assert greedy.holds is False
    assert "not promised: no row rule" in greedy.sentence
    refused = attempt("coupled", lambda: coupled_finding(models, SMALL, 0))
    assert refused.status == "failed"
    assert "has no row rule" in refused.sentence
    assert "nor the law" in found.sentence  # though these rows happen to be of their prefix alone:
    assert sampling_finding(models, "residual", TEST, 0).holds


# The G-test.


@pytest.mark.parametrize("kind", ["model", "ngram", "uniform"])
@pytest.mark.parametrize("rule", ["residual", "coupled"])
def test_sound_models_have_the_law(codec: Codec, rule: str, kind: Any) -> None:
    models = models_of(codec, PrefixModel(hashed(SIZE, 1), SIZE), kind)
    found = sampling_finding(models, rule, TEST, 0)
    assert found.holds, found.sentence
    figures = found.figures
    assert figures["false_alarms"] <= 1e-6
    assert figures["power"] >= 0.999
    assert figures["statistic"] < figures["threshold"] <= figures["control"]


def test_a_text_may_end_early(codec: Codec) -> None:
    target = PrefixModel(hashed(SIZE, 1), SIZE)
    models = models_of(codec, target)
    plan = make_plan(models, "residual", TEST, 0)
    token = max(plan.experiments[0].exact, key=lambda text: plan.experiments[0].exact[text])[0]
    ending = models_of(codec, target, ends=(token,))
    assert (token,) in make_plan(ending, "residual", TEST, 0).experiments[0].exact
    assert sampling_finding(ending, "residual", TEST, 0).holds


@pytest.mark.parametrize(
    ("rule", "shipped", "mistake"),
    [("residual", Residual, biases.FromTarget), ("coupled", Coupled, biases.Stubborn)],
)
def test_a_biased_rule_is_caught(
    sound: Models, monkeypatch: pytest.MonkeyPatch, rule: str, shipped: Any, mistake: Any
) -> None:
    judge = shipped.judge
    if rule == "residual":
        monkeypatch.setattr(shipped, "judge", mistake.judge)
    else:

        def stubborn(
            self: Any, p: int, q: int, proposal: int, position: int, number: int, ops: Any, chance: Any
        ) -> Any:
            token, kept, coin = judge(self, p, q, proposal, position, number, ops, chance)
            return (token, kept, coin) if kept else (ops.top(ops.residual(p, q), 1)[0][0], False, coin)

        monkeypatch.setattr(shipped, "judge", stubborn)
    found = sampling_finding(sound, rule, TEST, 0)
    assert found.holds is False
    assert "do NOT have the target's law" in found.sentence
    assert exactness_finding(SMALL).holds is False
    assert conformance_finding().holds is False


@pytest.mark.parametrize(
    ("statistics", "holds", "tries"), [([0.0, 99.0], True, 1), ([0.0, 1.0, 99.0], True, 2), ([0.0, 1.0, 1.0], False, 2)]
)
def test_a_control_that_shows_nothing_is_tried_once_more_with_other_seeds(
    sound: Models, monkeypatch: pytest.MonkeyPatch, statistics: list[float], holds: bool, tries: int
) -> None:
    """A power of 0.999 means that one sound bundle in a thousand would fail otherwise."""
    seeds: list[int] = []
    left = iter(statistics)

    def counted(lm: Any, plan: Any, rule: str, size: Any, seed: int) -> float:
        seeds.append(seed)
        return next(left)

    monkeypatch.setattr(sampling_test, "statistic", counted)
    found = sampling_finding(sound, "residual", TEST, 7)
    assert found.holds is holds
    assert found.figures["control_tries"] == tries
    runs = found.figures["runs"] // found.figures["prompts"]
    assert seeds == [7, 7, 7 + runs][: tries + 1]
    assert next(left, None) is None


def test_rows_that_see_the_proposals_are_caught(codec: Codec) -> None:
    assert sampling_finding(broken(codec), "residual", TEST, 0).holds is False


def test_a_test_that_cannot_see_fails(sound: Models) -> None:
    found = sampling_finding(sound, "residual", replace(TEST, limit=2, length=1, cap=50, prompts=1), 0)
    assert found.holds is False
    assert found.sentence.startswith("can't see: 50 runs a prompt")
    assert found.figures["power"] < 0.999


def test_a_control_that_is_not_flagged_fails(sound: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(biases.FromTarget, "judge", Residual.judge)
    found = sampling_finding(sound, "residual", TEST, 0)
    assert found.holds is False
    assert "NOT flagged" in found.sentence


# The controller and the host.


def test_the_shipped_controller_is_exact_and_conforms() -> None:
    found = exactness_finding(SMALL)
    assert found.holds
    assert found.figures["error"] == "0"
    cases = conformance_finding()
    assert cases.holds
    assert cases.figures["cases"] > 500


def test_a_host_that_breaks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(self: Host, case: Any) -> Any:
        raise ZeroDivisionError("a fault of the host's own")

    monkeypatch.setattr(Host, "below", breaking)
    found = conformance_finding()
    assert found.holds is False
    assert "a fault of the host's own" in found.sentence


def test_arithmetic_that_is_wrong_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(self: VectorOps, p: int, q: int) -> int:
        return residual(self, q, p) if self.total(residual(self, q, p)) else residual(self, p, q)

    residual = VectorOps.residual
    monkeypatch.setattr(VectorOps, "residual", moved)
    found = conformance_finding()
    assert found.holds is False
    assert found.figures["cases"] > sum(row["passed"] for row in found.figures["kinds"]) > 0


# Parity.


@given(st.lists(st.tuples(st.floats(-8, 8), st.floats(-1, 1)), min_size=2, max_size=12), st.floats(1e-3, 0.5))
def test_logits_that_differ_by_2t_move_a_distribution_by_tanh_t(pairs: list[tuple[float, float]], t: float) -> None:
    row = np.array([x for x, _ in pairs], np.float64)
    other = row + 2 * t * np.array([d for _, d in pairs])
    tally = parity.Tally(len(row))
    tally.add(row[None], other[None])  # type: ignore[arg-type]
    assert tally.distances[0] <= math.tanh(t) + 1e-12
    assert all(max(margins) <= 4 * t + 1e-12 for margins in tally.flips)


def test_the_bound_is_reached() -> None:
    t = 0.25
    tally = parity.Tally(2)
    tally.add(np.array([[t, -t]]), np.array([[-t, t]]))  # type: ignore[arg-type]
    assert tally.distances[0] == pytest.approx(math.tanh(t))
    assert tally.flips == [(2 * t, 2 * t)]


@pytest.mark.parametrize(("moved", "holds"), [(0.0, True), (1e-5, True), (1e-2, False)])
def test_rows_are_compared_by_distance(moved: float, holds: bool) -> None:
    rows = np.random.default_rng(0).standard_normal((20, 9)).astype(np.float32)
    other = rows + np.float32(moved) * (np.arange(9) % 2).astype(np.float32)
    tally = parity.Tally(9)
    tally.add(rows, other)
    found = tally.finding("x", 1e-4)
    assert found.holds is holds
    assert found.figures["equal"] == (20 if moved == 0 else 0)


def test_a_flip_beyond_a_near_tie_fails_whatever_the_distance() -> None:
    tally = parity.Tally(3)
    tally.add(np.array([[0.01, 0.0, -9.0]], np.float32), np.array([[0.0, 0.01, -9.0]], np.float32))
    assert len(tally.flips) == 1
    found = replace_distances(tally).finding("x", 1e-3)
    assert found.holds is False
    assert "1 argmax flips, 1 of them beyond a near tie" in found.sentence
    assert replace_distances(tally).finding("x", 1e-2).holds


def replace_distances(tally: parity.Tally) -> parity.Tally:
    return replace(tally, distances=[0.0])


def test_nothing_asked_counts_neither_way() -> None:
    assert parity.together([]).holds is None
    assert attempt("parity", lambda: parity.together([])).status == "not asked"
    assert parity.together([Finding(True, "a"), Finding(False, "b")]).holds is False


def test_an_error_on_purpose_is_a_failure_in_its_own_words() -> None:
    def refuse() -> Finding:
        raise RuntimeFailure("no such thing; get one")

    assert attempt("x", refuse).sentence == "no such thing; get one"
    with pytest.raises(KeyError):
        attempt("x", lambda: {}["bug"])
