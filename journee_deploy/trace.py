"""Traces: the steps a model ran and the rows they gave, as a value and as a file. See
`journee_deploy.recording`.

A trace file is an .npz archive without pickled objects: `header` (JSON as bytes: format, version, facts of
the model), `steps` int64 [steps, 4] (slot, start, tokens, keep), `tokens` int64 (all steps' tokens in turn),
`rows` float32 [sum of keep, vocabulary].
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import BadZipFile

import numpy as np

from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import Rows, RuntimeFailure, Step

FORMAT = "journee-trace"
VERSION = 2  # 1 had no fingerprint
DAMAGED = (  # what reading an archive raises, whatever became of its bytes
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OverflowError,
    MemoryError,
    BadZipFile,
    zlib.error,
    RuntimeError,  # encrypted, or compressed in a way that isn't known
)


@dataclass(frozen=True, slots=True)
class Header:
    """What a trace says of the model that it was recorded from. `fingerprint` tells models apart, such as the sha256 of
    graph and weights; empty where it wasn't told.
    """

    name: str
    vocabulary_size: int
    context_length: int
    row_rule: RowRule | None
    row_rule_note: str
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """Steps in the order they were run, and the rows each gave, [keep, vocabulary]."""

    header: Header
    entries: tuple[tuple[Step, Rows], ...]

    def save(self, file: Path) -> None:
        """Write the trace file, whole or not at all."""
        part = file.with_name(file.name + ".part")
        try:
            with part.open("wb") as stream:
                self._write(stream)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)

    def _write(self, stream: BinaryIO) -> None:
        header = {"format": FORMAT, "version": VERSION, **asdict(self.header)}
        steps = [(step.slot, step.start, len(step.tokens), step.keep) for step, _ in self.entries]
        tokens = [token for step, _ in self.entries for token in step.tokens]
        empty = np.zeros((0, self.header.vocabulary_size), np.float32)
        np.savez_compressed(
            stream,
            header=np.frombuffer(json.dumps(header).encode(), np.uint8),
            steps=np.array(steps, np.int64).reshape(-1, 4),
            tokens=np.array(tokens, np.int64),
            rows=np.concatenate([empty, *(rows for _, rows in self.entries)]),
        )


def load_trace(file: Path) -> Trace:
    """Read a trace file; RuntimeFailure says what is wrong with it."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ("header", "steps", "tokens", "rows")}
        return _trace(arrays)
    except DAMAGED as error:
        raise RuntimeFailure(f"{file}: no good trace file: {error}; record it again") from None


def _trace(arrays: dict[str, Any]) -> Trace:
    header = _header(json.loads(arrays["header"].tobytes()))
    return Trace(header, _entries(arrays, header.vocabulary_size))


def _header(found: Any) -> Header:
    """The header, if each fact is there and of its own type."""
    facts = {"name": str, "vocabulary_size": int, "context_length": int, "row_rule_note": str, "fingerprint": str}
    if not isinstance(found, dict):
        raise ValueError("its header is no JSON object")
    header = cast(dict[str, Any], found)
    known = (header.pop("format", None), header.pop("version", None))
    if known != (FORMAT, VERSION):
        raise ValueError(f"format and version are {known}, expected {(FORMAT, VERSION)}")
    rule = header.pop("row_rule")
    if {name: type(value) for name, value in header.items()} != facts:
        expected = ", ".join(f"{name} ({kind.__name__})" for name, kind in facts.items())
        raise ValueError(f"its header must have {expected}, and nothing else")
    return Header(**header, row_rule=rule if rule is None else RowRule(**rule))


def _entries(arrays: dict[str, Any], vocabulary: int) -> tuple[tuple[Step, Rows], ...]:
    steps, tokens, rows = arrays["steps"], arrays["tokens"], arrays["rows"]
    if (steps.dtype, tokens.dtype, rows.dtype) != (np.int64, np.int64, np.float32) or steps.shape[1:] != (4,):
        raise ValueError("its parts are not of the types and shapes expected")
    counts, keeps = steps[:, 2], steps[:, 3]
    if steps.min(initial=0) < 0 or np.any(keeps > counts):
        raise ValueError("a step has a negative number or keeps more rows than it has tokens")
    if (*tokens.shape, *rows.shape) != (counts.sum(), keeps.sum(), vocabulary):
        raise ValueError("its parts don't fit each other")
    texts = np.split(tokens, np.cumsum(counts))
    parts = np.split(rows, np.cumsum(keeps))
    return tuple(
        (Step(int(slot), tuple(text.tolist()), int(start), int(keep)), part)
        for (slot, start, _, keep), text, part in zip(steps, texts, parts, strict=False)
    )
