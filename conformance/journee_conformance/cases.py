"""Cases on disk: one JSON Lines file a kind, a header first. Refused by file and line if anything is off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journee_conformance import FORMAT, VERSION

PACKAGED = Path(__file__).parent / "cases"


class CasesError(ValueError):
    """Case files that can't be used; the message names file, line and what to do."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a host is asked, and the one right answer."""

    id: str
    kind: str
    input: dict[str, Any]
    answer: dict[str, Any]


def packaged_cases(kinds: tuple[str, ...] = ()) -> list[Case]:
    """The cases that ship with this package."""
    return load(PACKAGED, kinds)


def load(folder: Path, kinds: tuple[str, ...] = ()) -> list[Case]:
    """Every case of a folder, or those of some kinds. None at all is an error: it would pass everything."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise CasesError(f"{folder} has no case files (*.jsonl); name the folder that holds them")
    cases = [case for file in files for case in _read(file)]
    known = {case.kind for case in cases}
    for kind in kinds:
        if kind not in known:
            raise CasesError(f"{folder} has no cases of kind {kind!r}; there are: {', '.join(sorted(known))}")
    if len(names := {case.id for case in cases}) != len(cases):
        raise CasesError(f"{folder}: {len(cases)} cases have {len(names)} ids; make them again")
    return [case for case in cases if not kinds or case.kind in kinds]


def _read(file: Path) -> Iterator[Case]:
    lines = _text(file).splitlines()
    kind, count = _header(file, lines[0] if lines else "")
    if len(lines) - 1 != count or not count:
        raise CasesError(f"{file} has {len(lines) - 1} cases and its header says {count}; make the cases again")
    for number, line in enumerate(lines[1:], 2):
        yield _case(f"{file}, line {number}", kind, _object(f"{file}, line {number}", line))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CasesError(f"{file} can't be read: {error}") from None


def _header(file: Path, line: str) -> tuple[str, int]:
    header = _object(f"{file}, line 1", line)
    if header.get("format") != FORMAT:
        raise CasesError(f"{file} is no case file: its first line lacks format {FORMAT!r}")
    if header.get("version") != VERSION:
        raise CasesError(
            f"{file} has version {header.get('version')!r} and this checker reads {VERSION}; "
            "use the checker that came with these cases"
        )
    kind, count = header.get("kind"), header.get("count")
    if not isinstance(kind, str) or type(count) is not int:
        raise CasesError(f"{file}: the header has kind {kind!r} and count {count!r}; make the cases again")
    return kind, count


def _object(place: str, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CasesError(f"{place} is no JSON: {error}; make the cases again") from None
    if not isinstance(value, dict):
        raise CasesError(f"{place} is no JSON object; make the cases again")
    return value  # pyright: ignore[reportUnknownVariableType]


def _case(place: str, kind: str, value: dict[str, Any]) -> Case:
    right = {"id": str, "input": dict, "answer": dict}
    if set(value) != set(right) or not all(isinstance(value[name], right[name]) for name in right):
        raise CasesError(f"{place} needs a string id and objects input and answer, and no more; make the cases again")
    return Case(value["id"], kind, value["input"], value["answer"])
