"""Graphs with a shared buffer, on the shipped bundle: rows by their prefix alone, whatever the buffer held before."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journee_deploy.bundle import BundleError, role_of
from journee_deploy.runtime import Model, OpenOptions, Rows, RuntimeFailure, Step
from journee_deploy.slots import SlotModel
from journee_runtimes.onnx import OnnxRuntime, chosen_role
from journee_runtimes.shared import FIRST, SPARE, Buffer, SharedForward
from tests.runtime.test_onnx import row_by_row

TARGET = Path(__file__).parents[2] / "artifacts" / "tiny" / "target"
TEXT = tuple(np.random.default_rng(11).integers(0, 1024, 3 * FIRST).tolist())


def opened(graph: str | None = None, row_rule: bool = True) -> Model:
    return OnnxRuntime().open(TARGET, "target", OpenOptions(threads=1, row_rule=row_rule, verify=False, graph=graph))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Model:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOURNEE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return opened()


@pytest.fixture(scope="module")
def expected(shared: Model) -> Rows:
    return row_by_row(shared, TEXT)


@pytest.fixture(scope="module")
def concatenated() -> Rows:
    """The same rows by the other graph, within rounding."""
    (rows,) = opened("concat-fp32", row_rule=False).run([Step(0, TEXT, 0, len(TEXT))])
    return rows


def forward_of(model: Model) -> SharedForward:
    assert isinstance(model, SlotModel)
    runner = model._runner
    assert runner is not None
    assert isinstance(runner.forward, SharedForward)
    return runner.forward


steps = st.lists(st.tuples(st.integers(1, 17), st.integers(1, 17), st.integers(0, 6)), min_size=12, max_size=12)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prefill=st.integers(1, 2 * FIRST), moves=steps)
def test_rows_agree_bitwise_under_random_splits(
    shared: Model, expected: Rows, prefill: int, moves: list[tuple[int, int, int]]
) -> None:
    """Prefills across the sizes at which the buffer grows, steps of 1 to 17 rows, rewinds."""
    assert shared.row_rule is not None, shared.row_rule_note
    (row,) = shared.run([Step(0, TEXT[:prefill], 0, 1)])
    assert row.tobytes() == expected[prefill - 1 : prefill].tobytes()
    at = prefill
    for count, keep, back in moves:
        at = max(0, at - back)
        tokens = TEXT[at : at + count]
        keep = min(keep, len(tokens))
        (rows,) = shared.run([Step(0, tokens, at, keep)])
        at += len(tokens)
        assert rows.tobytes() == expected[at - keep : at].tobytes()


def test_it_computes_what_the_concatenated_cache_does(expected: Rows, concatenated: Rows) -> None:
    np.testing.assert_allclose(concatenated, expected, atol=1e-4)


@pytest.mark.parametrize("keeps_all", [True, False])
def test_runs_of_any_rows_follow_each_other(concatenated: Rows, keeps_all: bool) -> None:
    """Tokens and logits are bound again where their number changes."""
    model = opened(row_rule=False)
    at = 0
    for count in (3, 1, 5, 5, 2, 70, 70, 1, 66, 3):
        keep = count if keeps_all else 1
        (rows,) = model.run([Step(0, TEXT[at : at + count], at, keep)])
        at += count
        np.testing.assert_allclose(rows, concatenated[at - keep : at], atol=1e-4)


def test_what_a_buffer_held_before_is_never_read(shared: Model, expected: Rows) -> None:
    """Whatever lies behind the past, in a buffer used again or in one rewound, would show at once."""
    forward = forward_of(shared)
    shared.run([Step(7, TEXT[:300], 0, 1)])
    shared.release(7)
    for buffer in forward._spare:
        for array in buffer.arrays:
            array.fill(np.nan)
    (rows,) = shared.run([Step(8, TEXT[:40], 0, 40)])
    assert rows.tobytes() == expected[:40].tobytes()
    (rows,) = shared.run([Step(8, TEXT[20:25], 20, 5)])
    assert rows.tobytes() == expected[20:25].tobytes()


def test_slots_have_buffers_of_their_own(shared: Model) -> None:
    """New ones, and those that were released before, each with a text of its own."""
    texts = [TEXT[first : first + 60] for first in range(3)]
    alone: list[Rows] = []
    for slot, text in enumerate(texts, 17):
        alone += shared.run([Step(slot, text, 0, len(text))])
        shared.release(slot)
    for _ in range(2):
        for at in range(0, 60, 3):
            for slot, (text, rows_alone) in enumerate(zip(texts, alone, strict=True), 20):
                (rows,) = shared.run([Step(slot, text[at : at + 3], at, 3)])
                assert rows.tobytes() == rows_alone[at : at + 3].tobytes()
        for slot in (20, 21, 22):
            shared.release(slot)


def test_rows_stay_when_the_model_goes_on(shared: Model) -> None:
    (rows,) = shared.run([Step(30, TEXT[:8], 0, 8)])
    kept = rows.copy()
    shared.run([Step(30, TEXT[8:16], 8, 8)])
    assert np.array_equal(rows, kept)


def test_buffers_are_used_again_and_few_are_kept(shared: Model) -> None:
    forward = forward_of(shared)
    for slot in range(40, 40 + SPARE + 3):
        shared.run([Step(slot, TEXT[:4], 0, 1)])
    for slot in range(40, 40 + SPARE + 3):
        shared.release(slot)
    assert len(forward._spare) == SPARE
    before = {id(buffer) for buffer in forward._spare}
    shared.run([Step(99, TEXT[:4], 0, 1)])
    shared.release(99)
    assert {id(buffer) for buffer in forward._spare} == before


def test_a_buffer_doubles_up_to_the_context(shared: Model) -> None:
    forward = forward_of(shared)
    sizes = {length: forward._room(length) for length in (1, FIRST, FIRST + 1, 3 * FIRST, 4096, 4100)}
    assert sizes == {1: 256, 256: 256, 257: 512, 768: 1024, 4096: 4096, 4100: 4160}
    buffer = forward.invent(FIRST, seed=3)
    assert isinstance(buffer, Buffer)
    before = [array.copy() for array in buffer.arrays]
    forward._grow(buffer, FIRST + 1, FIRST)
    assert buffer.capacity == 2 * FIRST
    for old, new in zip(before, buffer.arrays, strict=True):
        assert new.shape[2] == 2 * FIRST
        assert new[:, :, :FIRST].tobytes() == old.tobytes()


def test_a_long_generation_allocates_nothing_more(shared: Model) -> None:
    """The same arrays serve every run once the buffer is as large as the text."""
    shared.run([Step(50, TEXT[: FIRST + 1], 0, 1)])
    forward = forward_of(shared)
    assert isinstance(shared, SlotModel)
    buffer = shared._slots[50].after.cache
    assert isinstance(buffer, Buffer)
    arrays, places = [id(array) for array in buffer.arrays], dict(forward._logits)
    for at in range(FIRST + 1, 2 * FIRST - 2):
        shared.run([Step(50, TEXT[at : at + 1], at, 1)])
    assert [id(array) for array in buffer.arrays] == arrays
    assert forward._logits.keys() == places.keys()


def test_a_closed_model_keeps_nothing() -> None:
    model = opened(row_rule=False)
    forward = forward_of(model)
    model.run([Step(0, TEXT[:4], 0, 1)])
    model.close()
    assert not forward._spare
    with pytest.raises(RuntimeFailure, match="is closed"):
        model.run([Step(0, TEXT[:4], 0, 1)])


# Which graph.


def test_cpu_takes_the_shared_graph_and_other_providers_the_first() -> None:
    role = role_of(TARGET, verify=False)
    assert chosen_role(role, OpenOptions("cpu")).variant == "shared-fp32"
    assert chosen_role(role, OpenOptions("cuda")).variant == "concat-fp32"
    assert chosen_role(role, OpenOptions("cpu", graph="concat-fp32")).variant == "concat-fp32"


def test_a_graph_that_is_not_there_is_refused() -> None:
    role = role_of(TARGET, verify=False)
    with pytest.raises(BundleError, match="target has no graph 'other'; there are: concat-fp32, shared-fp32"):
        chosen_role(role, OpenOptions("cpu", graph="other"))
    with pytest.raises(RuntimeFailure, match="graph shared-fp32 has a shared buffer, which runs on cpu only so far"):
        chosen_role(role, OpenOptions("cuda", graph="shared-fp32"))


def test_a_bundle_of_the_first_version_still_opens(tmp_path: Path) -> None:
    """It had one graph a role, with a concatenated cache."""
    shutil.copytree(TARGET.parent, tmp_path / "old")
    manifest = tmp_path / "old" / "journee.json"
    text = manifest.read_text()
    assert '"version": 2' in text
    manifest.write_text(text.replace('"version": 2', '"version": 1'))
    assert role_of(tmp_path / "old" / "target").variant == "concat-fp32"


@pytest.mark.parametrize("row_rule", [True, False])
def test_single_rows_up_to_the_end_of_a_buffer(row_rule: bool, concatenated: Rows) -> None:
    """A row run alone has one more written behind it, for which there must be room."""
    model = opened(row_rule=row_rule)
    model.run([Step(0, TEXT[: FIRST - 3], 0, 1)])
    for at in range(FIRST - 3, FIRST + 2):
        (row,) = model.run([Step(0, TEXT[at : at + 1], at, 1)])
        np.testing.assert_allclose(row, concatenated[at : at + 1], atol=1e-4)
