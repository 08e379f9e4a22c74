"""A recorded model replays to the bit, and says what it can't answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from journee_deploy import trace as trace_module
from journee_deploy.recording import RecordingModel, ReplayModel
from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import Model, RuntimeFailure, Step
from journee_deploy.trace import Header, Trace, load_trace

STEPS = (
    Step(0, (3, 1, 4, 1, 5), 0, 2),
    Step(0, (9, 2, 6), 5, 3),
    Step(1, (2, 7, 1), 0, 1),
    Step(0, (8, 8), 6, 2),
)


@pytest.fixture
def recorded(model: Model) -> tuple[Trace, list[bytes]]:
    recording = RecordingModel(model)
    rows = [recording.run([step])[0].tobytes() for step in STEPS]
    return recording.trace(), rows


def test_a_recording_is_the_model_to_those_who_use_it(model: Model) -> None:
    recording = RecordingModel(model)
    assert isinstance(recording, Model)
    for name in ("name", "vocabulary_size", "context_length", "row_rule", "row_rule_note", "counters"):
        assert getattr(recording, name) == getattr(model, name)
    (rows,) = recording.run([STEPS[0]])
    rows[:] = 0
    assert recording.trace().entries[0][1].any()
    assert recording.held(0) == 5
    recording.release(0)
    assert model.held(0) == 0
    recording.close()
    with pytest.raises(RuntimeFailure, match="closed"):
        model.run([STEPS[0]])


def test_a_trace_file_gives_the_trace_back(tmp_path: Path, recorded: tuple[Trace, list[bytes]]) -> None:
    trace, _ = recorded
    trace.save(tmp_path / "trace.npz")
    again = load_trace(tmp_path / "trace.npz")
    assert again.header == trace.header
    assert [step for step, _ in again.entries] == list(STEPS)
    assert [rows.tobytes() for _, rows in again.entries] == [rows.tobytes() for _, rows in trace.entries]
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["trace.npz"]


def test_an_empty_trace_can_be_kept(tmp_path: Path, model: Model) -> None:
    RecordingModel(model).trace().save(tmp_path / "trace.npz")
    assert load_trace(tmp_path / "trace.npz").entries == ()


def test_a_replay_answers_to_the_bit(recorded: tuple[Trace, list[bytes]]) -> None:
    trace, rows = recorded
    replay = ReplayModel(trace)
    assert isinstance(replay, Model)
    assert (replay.name, replay.row_rule) == ("bundle target", RowRule(2, 1))
    assert replay.row_rule_note == trace.header.row_rule_note
    assert [replay.run([step])[0].tobytes() for step in STEPS] == rows
    assert replay.counters.padding == 0


def test_a_replay_may_split_and_rewind_otherwise(recorded: tuple[Trace, list[bytes]]) -> None:
    trace, rows = recorded
    replay = ReplayModel(trace)
    replay.run([Step(7, (3, 1, 4, 1), 0, 1)])
    single = [replay.run([Step(7, (token,), at, 1)])[0] for at, token in ((4, 5), (5, 9), (6, 2), (7, 6))]
    assert np.concatenate(single[1:]).tobytes() == rows[1]
    assert replay.run([Step(7, (9, 8, 8), 5, 2)])[0].tobytes() == rows[3]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(0, (3, 1, 4, 1, 6), 0, 1), r"row after these 5 tokens \(ending 3, 1, 4, 1, 6\) was not recorded"),
        (Step(0, (3, 1), 0, 1), "row after these 2 tokens"),
        (Step(0, (3, 1), 1, 1), "start is 1, but the cache holds 0 tokens"),
    ],
)
def test_what_was_not_recorded_is_an_error(recorded: tuple[Trace, list[bytes]], step: Step, message: str) -> None:
    with pytest.raises(RuntimeFailure, match=message):
        ReplayModel(recorded[0]).run([step])


def test_rows_recorded_twice_with_different_bits_are_an_error() -> None:
    rows = np.zeros((1, 4), np.float32)
    entries = ((Step(0, (1,), 0, 1), rows), (Step(1, (1,), 0, 1), rows + 1))
    with pytest.raises(RuntimeFailure, match="recorded with different bits"):
        ReplayModel(Trace(Header("x", 4, 9, None, ""), entries)).run([Step(0, (1,), 0, 1)])


def test_a_replay_looks_for_no_rule(recorded: tuple[Trace, list[bytes]]) -> None:
    with pytest.raises(RuntimeFailure, match="no row rule to look for"):
        ReplayModel(recorded[0]).settle(None)


def test_a_trace_of_another_version_is_refused(
    tmp_path: Path, recorded: tuple[Trace, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "VERSION", 3)
    recorded[0].save(tmp_path / "trace.npz")
    monkeypatch.undo()
    with pytest.raises(RuntimeFailure, match=r"trace\.npz: no good trace file: .*\('journee-trace', 3\), expected"):
        load_trace(tmp_path / "trace.npz")


def test_files_that_are_no_traces_are_refused(tmp_path: Path, recorded: tuple[Trace, list[bytes]]) -> None:
    file = tmp_path / "trace.npz"
    with pytest.raises(RuntimeFailure, match="no good trace file"):
        load_trace(file)
    recorded[0].save(file)
    whole = file.read_bytes()
    for content in (b"", b"nonsense", whole[:-40], whole[:200] + b"\0\0\0\0" + whole[204:]):
        file.write_bytes(content)
        with pytest.raises(RuntimeFailure, match="no good trace file"):
            load_trace(file)


def test_parts_that_do_not_fit_each_other_are_refused(tmp_path: Path, recorded: tuple[Trace, list[bytes]]) -> None:
    file = tmp_path / "trace.npz"
    recorded[0].save(file)
    with np.load(file) as archive:
        arrays = dict(archive)
    arrays["rows"] = arrays["rows"][:-1]
    np.savez(file, **arrays)
    with pytest.raises(RuntimeFailure, match="its parts don't fit each other"):
        load_trace(file)
