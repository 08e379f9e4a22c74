"""Trace files that came to harm: each is refused in words, or reads as what was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import RuntimeFailure, Step
from journee_deploy.trace import Header, Trace, load_trace

ROWS = np.arange(35, dtype=np.float32).reshape(5, 7)
WHOLE = Trace(
    Header("toy", 7, 32, RowRule(2, 1), "a table", "some digest"),
    ((Step(0, (1, 2, 3), 0, 3), ROWS[:3]), (Step(1, (4, 5), 0, 2), ROWS[3:])),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "rows.npz"
    WHOLE.save(written)
    return written


def content(trace: Trace) -> Any:
    return trace.header, [(step, rows.tobytes()) for step, rows in trace.entries]


def test_what_was_written_is_read(file: Path) -> None:
    assert content(load_trace(file)) == content(WHOLE)


def test_harm_anywhere_is_refused_or_changes_nothing(file: Path) -> None:
    whole = file.read_bytes()
    refused = 0
    for place in range(len(whole)):
        for bit in (0, 3, 7):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            try:
                assert content(load_trace(file)) == content(WHOLE)
            except RuntimeFailure:
                refused += 1
    assert refused > len(whole)


def test_any_part_alone_is_refused(file: Path) -> None:
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        with pytest.raises(RuntimeFailure, match="no good trace file"):
            load_trace(file)


def header(**changed: Any) -> dict[str, Any]:
    facts = {"name": "toy", "vocabulary_size": 7, "context_length": 32, "row_rule": None, "row_rule_note": ""}
    return {"format": "journee-trace", "version": 2, **facts, "fingerprint": "some digest", **changed}


def encoded(value: Any) -> dict[str, Any]:
    return {"header": np.frombuffer(json.dumps(value).encode(), np.uint8)}


STEPS = np.array([[0, 0, 3, 3], [1, 0, 2, 2]], np.int64)
TYPES, FACTS = "not of the types and shapes", "its header must have name"
ODD: dict[str, tuple[dict[str, Any], str]] = {
    "another version": (encoded(header(version=1)), "format and version are .*, 1"),
    "a list for a header": (encoded([]), "no JSON object"),
    "a number for a header": (encoded(3), "no JSON object"),
    "no header": ({"header": np.zeros(0, np.uint8)}, "Expecting value"),
    "one fact more": (encoded(header(colour="red")), FACTS),
    "a name that is none": (encoded(header(name=[1])), FACTS),
    "a vocabulary of 7.0": (encoded(header(vocabulary_size=7.0)), FACTS),
    "a rule that is none": (encoded(header(row_rule=3)), "mapping"),
    "a rule out of range": (encoded(header(row_rule={"rows": 99, "multiple": 1})), "no such row rule"),
    "steps in a row": ({"steps": np.arange(4)}, TYPES),
    "steps of three numbers": ({"steps": STEPS[:, :3]}, TYPES),
    "steps in floats": ({"steps": STEPS.astype(float)}, TYPES),
    "tokens in letters": ({"tokens": np.array(list("abcde"))}, TYPES),
    "rows in doubles": ({"rows": ROWS.astype(float)}, TYPES),
    "a step that goes back": ({"steps": STEPS - [0, 1, 0, 0]}, "a negative number"),
    "a step that keeps too much": ({"steps": STEPS - [0, 0, 1, 0]}, "keeps more rows than"),
    "a token too few": ({"tokens": np.arange(4)}, "don't fit each other"),
    "tokens in a table": ({"tokens": np.zeros((5, 1), np.int64)}, "don't fit each other"),
    "a row too few": ({"rows": ROWS[:4]}, "don't fit each other"),
    "narrow rows": ({"rows": ROWS[:, :6]}, "don't fit each other"),
}


@pytest.mark.parametrize(("changed", "message"), ODD.values(), ids=ODD)
def test_odd_parts_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    file = tmp_path / "rows.npz"
    whole = encoded(header()) | {"steps": STEPS, "tokens": np.arange(5), "rows": ROWS}
    save: Callable[..., None] = np.savez
    save(file, **whole)
    assert len(load_trace(file).entries) == 2
    save(file, **(whole | changed))
    with pytest.raises(RuntimeFailure, match=f"no good trace file: .*{message}.*record it again"):
        load_trace(file)
