"""ONNX Runtime on real graphs: rows depend on their prefix alone under the rule found, or the claim is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journee_deploy.bundle import file_record, open_bundle
from journee_deploy.row_rule import NO_RULE, RowRule
from journee_deploy.runtime import Model, OpenOptions, Rows, Runtime, RuntimeFailure, Step, find_runtime
from journee_deploy.slots import SlotModel
from journee_runtimes.onnx import OnnxRuntime, check_session_provider, rule_key
from tests.bundle.small_bundle import write_bundle as write_small_bundle
from tests.runtime.tiny_bundle import write_bundle
from tests.runtime.tiny_graph import SMALL

TEXT = tuple(np.random.default_rng(5).integers(0, SMALL.vocabulary, SMALL.context).tolist())


def row_by_row(model: Model, text: tuple[int, ...], slot: int = 90) -> Rows:
    """All rows of `text`, each from a run of its own."""
    model.release(slot)
    return np.concatenate([model.run([Step(slot, (token,), at, 1)])[0] for at, token in enumerate(text)])


splits = st.lists(st.tuples(st.integers(1, 17), st.integers(1, 17), st.integers(0, 6)), min_size=12, max_size=12)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prefill=st.integers(1, 70), steps=splits)
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_agree_bitwise_under_random_splits(
    target: Path, threads: int, prefill: int, steps: list[tuple[int, int, int]]
) -> None:
    """Prefills of 1 to 70 rows, then steps of 1 to 17, with rewinds of up to 6, against plain decoding."""
    model = OnnxRuntime().open(target, "target", OpenOptions(threads=threads))
    assert model.row_rule is not None, model.row_rule_note
    expected = row_by_row(model, TEXT)
    (row,) = model.run([Step(0, TEXT[:prefill], 0, 1)])
    assert row.tobytes() == expected[prefill - 1 : prefill].tobytes()
    at = prefill
    for count, keep, back in steps:
        at = max(0, at - back)
        tokens = TEXT[at : at + count]
        if tokens:
            keep = min(keep, len(tokens))
            (rows,) = model.run([Step(0, tokens, at, keep)])
            at += len(tokens)
            assert rows.tobytes() == expected[at - keep : at].tobytes()


def test_without_a_rule_the_same_rows_differ(target: Path) -> None:
    """The negative control: this graph needs its rule."""
    model = OnnxRuntime().open(target, "target", OpenOptions(threads=1, row_rule=False))
    assert model.row_rule is None
    assert model.row_rule_note == "no row rule was looked for"
    (rows,) = model.run([Step(0, TEXT, 0, len(TEXT))])
    single = row_by_row(model, TEXT)
    assert rows.tobytes() != single.tobytes()
    np.testing.assert_allclose(rows, single, atol=1e-4)


def test_a_graph_whose_rows_depend_on_their_neighbours_has_no_rule_by_name(tmp_path: Path) -> None:
    target = write_bundle(tmp_path / "bundle", replace(SMALL, dynamic_int8=True))
    model = OnnxRuntime().open(target, "target", OpenOptions(threads=1))
    assert model.row_rule is None
    assert model.row_rule_note.startswith("no row rule holds: rows depend on more than their prefix")


def test_a_graph_without_rows_kept_gives_the_same(tmp_path: Path, model: Model) -> None:
    target = write_bundle(tmp_path / "all_rows", replace(SMALL, rows_kept=False))
    every = OnnxRuntime().open(target, "target", OpenOptions(threads=1))
    assert every.row_rule == model.row_rule
    step = Step(0, TEXT[:9], 0, 4)
    assert every.run([step])[0].tobytes() == model.run([step])[0].tobytes()


def test_a_rewound_slot_is_as_good_as_a_fresh_one(model: Model) -> None:
    model.run([Step(0, TEXT[:60], 0, 1)])
    other = tuple(reversed(TEXT[:30]))
    (rewound,) = model.run([Step(0, other, 13, 30)])
    model.run([Step(1, TEXT[:13], 0, 1)])
    (fresh,) = model.run([Step(1, other, 13, 30)])
    assert rewound.tobytes() == fresh.tobytes()


def test_slots_of_a_batch_do_not_see_each_other(model: Model) -> None:
    together = model.run([Step(slot, TEXT[slot : slot + 7], 0, 7) for slot in range(3)])
    alone = [model.run([Step(9, TEXT[slot : slot + 7], 0, 7)])[0] for slot in range(3)]
    assert [rows.tobytes() for rows in together] == [rows.tobytes() for rows in alone]


def test_rows_stay_when_the_model_goes_on_and_goes(model: Model) -> None:
    (rows,) = model.run([Step(0, TEXT[:8], 0, 8)])
    kept = rows.copy()
    model.run([Step(0, TEXT[8:60], 8, 5)])
    model.close()
    assert rows.flags.writeable
    assert np.array_equal(rows, kept)


def test_the_context_can_be_filled(model: Model) -> None:
    (rows,) = model.run([Step(0, TEXT, 0, 1)])
    assert rows.shape == (1, SMALL.vocabulary)
    with pytest.raises(RuntimeFailure, match="97 tokens are longer than the context of 96"):
        model.run([Step(0, (1,), 96, 1)])


def test_the_rule_is_remembered(target: Path, model: Model) -> None:
    assert model.row_rule_note.endswith("(self-test now)")
    again = OnnxRuntime().open(target, "target", OpenOptions(threads=1))
    assert again.row_rule == model.row_rule == RowRule(2, 1)
    assert again.row_rule_note.endswith("(known from an earlier self-test here)")
    elsewhere = OnnxRuntime().open(target, "target", OpenOptions(threads=2))
    assert elsewhere.row_rule_note.endswith("(self-test now)")


def test_a_rule_is_remembered_by_the_weights_too(tmp_path: Path) -> None:
    """With routed experts, how many rows a kernel gets depends on the weights."""
    write_small_bundle(tmp_path / "small")
    role = open_bundle(tmp_path / "small").role("target")
    damaged = {name: replace(record, sha256="0" * 64) for name, record in role.files.items()}
    other = replace(role, files={**damaged, role.graph_record.file: role.files[role.graph_record.file]})
    assert other.graph_sha256 == role.graph_sha256
    assert role.weights_sha256 == file_record(role.weights[0]).sha256
    assert rule_key(role, "cpu", 1) != rule_key(other, "cpu", 1)


def test_threads_are_chosen_when_none_are_asked_for(target: Path) -> None:
    model = OnnxRuntime().open(target, "target", OpenOptions())
    assert model.run([Step(0, TEXT[:3], 0, 1)])[0].shape == (1, SMALL.vocabulary)


def test_a_model_says_what_it_is(target: Path, model: Model) -> None:
    assert (model.name, model.vocabulary_size, model.context_length) == ("bundle target", 61, 96)
    assert isinstance(model, Model)
    runtime: Runtime = find_runtime("onnxruntime")
    assert (runtime.name, "cpu" in runtime.providers()) == ("onnxruntime", True)
    assert runtime.opens(target)
    assert not runtime.opens(target / "onnx" / "model.onnx")


def test_a_rule_that_does_not_hold_shows(target: Path) -> None:
    """Were the cheapest rule put in force, unfounded, plain decoding and prefill would disagree."""
    model = OnnxRuntime().open(target, "target", OpenOptions(threads=1, row_rule=False))
    assert isinstance(model, SlotModel)
    model.adopt(NO_RULE, "unfounded")
    assert model.run([Step(0, TEXT, 0, len(TEXT))])[0].tobytes() != row_by_row(model, TEXT).tobytes()


def test_a_session_elsewhere_than_asked_is_refused() -> None:
    check_session_provider("a graph", "cuda", ["CUDAExecutionProvider", "CPUExecutionProvider"])
    with pytest.raises(RuntimeFailure, match="asked for cuda, but the session runs on CPUExecutionProvider"):
        check_session_provider("a graph", "cuda", ["CPUExecutionProvider"])
    with pytest.raises(RuntimeFailure, match="runs on nothing"):
        check_session_provider("a graph", "cpu", [])
