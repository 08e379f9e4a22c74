"""Slots over a fake: what is asked comes back, whatever was held before, and the cache never keeps padding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journee_deploy.forward import Ids
from journee_deploy.row_rule import CANDIDATES, RowRule
from journee_deploy.runtime import Model, Rows, RuntimeFailure, Step
from journee_deploy.slot_runner import Facts
from journee_deploy.slots import SlotModel
from tests.runtime.fake_forward import VOCABULARY, FakeForward, Text, expected

TEXT = tuple(np.random.default_rng(3).integers(0, VOCABULARY, 400).tolist())


def fake_model(rule: RowRule | None = None, context: int = 400, chunk: int = 40) -> tuple[SlotModel[Text], FakeForward]:
    forward = FakeForward()
    model = SlotModel(forward, Facts("a fake", VOCABULARY, context), chunk)
    model.adopt(rule, "given by the test")
    return model, forward


def rows_of(text: Text, keep: int) -> Rows:
    return np.stack([expected(text[:end]) for end in range(len(text) - keep + 1, len(text) + 1)])


places = st.one_of(st.just(1.0), st.floats(0, 1))  # of what is held: often all of it, as when a text goes on
moves = st.tuples(st.integers(0, 1), places, st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=90))


@settings(max_examples=200)
@given(st.sampled_from((None, *CANDIDATES)), st.lists(st.tuples(moves, st.integers(1, 90)), max_size=12))
def test_every_step_gives_the_rows_of_its_text(
    rule: RowRule | None, steps: list[tuple[tuple[int, float, list[int]], int]]
) -> None:
    """Any rewind or advance on either of two slots, under any rule; the fake checks mask, positions and caches."""
    model, _ = fake_model(rule, context=2000)
    held: dict[int, Text] = {0: (), 1: ()}
    for (slot, where, tokens), keep in steps:
        start = round(where * len(held[slot]))
        held[slot] = held[slot][:start] + tuple(tokens)
        keep = min(keep, len(tokens))
        (rows,) = model.run([Step(slot, tuple(tokens), start, keep)])
        assert rows.tobytes() == rows_of(held[slot], keep).tobytes()
        assert rows.dtype == np.float32
        assert model.held(slot) == len(held[slot])


def test_rows_belong_to_the_caller() -> None:
    model, _ = fake_model(RowRule(2, 1))
    (first,) = model.run([Step(0, TEXT[:5], 0, 3)])
    kept = first.copy()
    model.run([Step(0, TEXT[5:9], 5, 4)])
    assert np.array_equal(first, kept)
    first[:] = 0


def test_a_batch_of_slots_is_each_alone() -> None:
    model, _ = fake_model()
    rows = model.run([Step(slot, TEXT[slot : slot + 4], 0, 2) for slot in range(3)])
    assert [part.tobytes() for part in rows] == [rows_of(TEXT[slot : slot + 4], 2).tobytes() for slot in range(3)]


def test_plain_decoding_at_two_rows_a_run_copies_no_cache() -> None:
    model, forward = fake_model(RowRule(2, 1))
    for at in range(50):
        model.run([Step(0, (TEXT[at],), at, 1)])
    assert forward.trims == []


def test_rewinding_copies_once() -> None:
    model, forward = fake_model()
    model.run([Step(0, TEXT[:30], 0, 1)])
    model.run([Step(0, TEXT[20:25], 20, 1)])
    assert forward.trims == [20]


def test_a_long_prompt_runs_in_chunks() -> None:
    model, forward = fake_model(chunk=40)
    model.run([Step(0, TEXT[:100], 0, 1)])
    assert forward.runs == 3


def test_counters_and_masks_tell_padding_from_rows_asked_for() -> None:
    model, forward = fake_model(RowRule(2, 4))
    model.run([Step(0, TEXT[:5], 0, 1)])
    model.run([Step(0, TEXT[5:6], 5, 1)])
    counters = model.counters
    assert (counters.runs, counters.rows, counters.padding) == (2, 6, 3 + 2)
    assert forward.padding == counters.padding
    assert counters.seconds > 0


def test_released_slots_hold_nothing() -> None:
    model, _ = fake_model()
    model.run([Step(4, TEXT[:9], 0, 1)])
    model.release(4)
    model.release(5)
    assert model.held(4) == model.held(5) == 0


def test_a_model_says_what_it_is() -> None:
    model, _ = fake_model(RowRule(2, 1))
    facts = (model.name, model.vocabulary_size, model.context_length, model.row_rule, model.row_rule_note)
    assert facts == ("a fake", VOCABULARY, 400, RowRule(2, 1), "given by the test")
    assert isinstance(model, Model)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(0, (), 3, 1), "a step without tokens"),
        (Step(0, (1, 2), 3, 0), "keep is 0, expected 1 to 2"),
        (Step(0, (1, 2), 3, 3), "keep is 3, expected 1 to 2"),
        (Step(0, (1,), -1, 1), "start is -1, but the cache holds 3 tokens"),
        (Step(0, (1,), 4, 1), "start is 4, but the cache holds 3 tokens"),
        (Step(0, (1,) * 398, 3, 1), "401 tokens are longer than the context of 400"),
        (Step(0, (1, VOCABULARY), 3, 1), "token 7 is not in the vocabulary of 7"),
        (Step(0, (-1,), 3, 1), "token -1 is not in the vocabulary"),
    ],
)
def test_unsound_steps_are_refused_and_change_nothing(step: Step, message: str) -> None:
    model, forward = fake_model()
    model.run([Step(0, TEXT[:3], 0, 1)])
    with pytest.raises(RuntimeFailure, match=f"a fake, slot 0: {message}"):
        model.run([Step(1, (1,), 0, 1), step])
    assert (model.held(0), model.held(1), forward.runs) == (3, 0, 1)


def test_one_slot_twice_in_a_batch_is_refused() -> None:
    model, _ = fake_model()
    with pytest.raises(RuntimeFailure, match="slot 2 twice in one batch"):
        model.run([Step(2, (1,), 0, 1), Step(2, (1,), 0, 1)])


def test_the_context_can_be_filled_to_its_last_token_padding_apart() -> None:
    model, _ = fake_model(RowRule(2, 16), context=17)
    (rows,) = model.run([Step(0, TEXT[:17], 0, 17)])
    assert rows.tobytes() == rows_of(TEXT[:17], 17).tobytes()


def test_a_closed_model_refuses_to_run() -> None:
    model, forward = fake_model()
    model.close()
    model.close()
    assert forward.closed
    with pytest.raises(RuntimeFailure, match="a fake is closed; open it again"):
        model.run([Step(0, (1,), 0, 1)])


@dataclass
class Breaking(FakeForward):
    """Fails in run number `breaks`."""

    breaks: int = 3

    def run(self, past: Text, tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, Text]:
        if self.runs + 1 == self.breaks:
            self.breaks = 0
            raise RuntimeFailure("broken")
        return super().run(past, tokens, mask, positions, keep)


@pytest.mark.parametrize("breaks", [1, 2, 3])
def test_a_failed_step_leaves_what_was_run(breaks: int) -> None:
    model = SlotModel(Breaking(breaks=breaks), Facts("a fake", VOCABULARY, 400), chunk=40)
    model.adopt(RowRule(2, 4), "")
    with pytest.raises(RuntimeFailure, match="broken"):
        model.run([Step(0, TEXT[:101], 0, 1)])
    held = model.held(0)
    assert held == 40 * (breaks - 1)
    (rows,) = model.run([Step(0, TEXT[held:101], held, 5)])
    assert rows.tobytes() == rows_of(TEXT[:101], 5).tobytes()


@dataclass
class Misshapen(FakeForward):
    """Gives float64 logits, or a column too few."""

    columns: int = VOCABULARY

    def run(self, past: Text, tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, Text]:
        rows, cache = super().run(past, tokens, mask, positions, keep)
        wrong = rows[:, : self.columns] if self.columns < VOCABULARY else rows.astype(np.float64)
        return wrong, cache  # type: ignore[return-value]


@pytest.mark.parametrize(("columns", "found"), [(VOCABULARY, r"float64 \[1, 7\]"), (6, r"float32 \[1, 6\]")])
def test_logits_of_another_type_or_shape_are_refused(columns: int, found: str) -> None:
    model = SlotModel(Misshapen(columns=columns), Facts("a fake", VOCABULARY, 400))
    with pytest.raises(RuntimeFailure, match=rf"logits are {found}, expected float32 \[1, 7\]"):
        model.run([Step(0, (1,), 0, 1)])
