"""Runs a host over cases and compares its answers, to the last digit. Whatever isn't the right answer is a failure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from journee_conformance import FORMAT, VERSION
from journee_conformance.cases import Case, CasesError

SHOWN = 160  # characters of an answer in a table


class HostError(RuntimeError):
    """The host died, hung or said what is no answer; nothing after that can be asked."""


class Talker(Protocol):
    """A host, however it runs: asked by lines, it answers by lines, in order."""

    def answers(self, lines: Sequence[str]) -> Iterable[str]: ...


class InProcess:
    """A host in this very process, such as journee_conformance.host.Host."""

    def __init__(self, host: Any) -> None:
        self._host = host

    def answers(self, lines: Sequence[str]) -> Iterable[str]:
        for line in lines:
            try:
                yield self._host.line(line)
            except Exception as error:
                raise HostError(f"the host raised {type(error).__name__}: {error}") from error


@dataclass(slots=True)
class Row:
    """How one kind of case went."""

    kind: str
    passed: int = 0
    failed: int = 0
    unsupported: int = 0
    unanswered: int = 0
    first: str = ""

    @property
    def cases(self) -> int:
        return self.passed + self.failed + self.unsupported + self.unanswered


@dataclass(slots=True)
class Outcome:
    """The whole table, and what ended it early, if anything did."""

    host: str = ""
    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    trouble: str = ""

    @property
    def cases(self) -> int:
        return sum(row.cases for row in self.rows.values())

    @property
    def failed(self) -> int:
        return sum(row.cases - row.passed for row in self.rows.values())

    @property
    def passed(self) -> bool:
        """Every case was answered rightly, and there was at least one."""
        return self.cases > 0 and self.failed == 0 and not self.trouble

    def as_dict(self) -> dict[str, Any]:
        names = ("kind", "passed", "failed", "unsupported", "unanswered", "first")
        rows = [{name: getattr(row, name) for name in names} for row in self.rows.values()]
        return {"host": self.host, "passed": self.passed, "cases": self.cases, "trouble": self.trouble, "kinds": rows}


def check(talker: Talker, cases: Sequence[Case]) -> Outcome:
    """Ask a host every case."""
    if not cases:
        raise CasesError("there are no cases to check; an empty list would pass any host")
    outcome = Outcome(rows={case.kind: Row(case.kind) for case in cases})
    pending = list(cases)
    try:
        answers = iter(talker.answers([_greeting(), *map(_asked, cases)]))
        outcome.host = _welcome(next(answers, None))
        while pending:
            _judge(outcome.rows[pending[0].kind], pending[0], next(answers, None))
            pending.pop(0)
        if (more := next(answers, None)) is not None:
            raise HostError(f"the host said more than it was asked: {_short(more)}")
    except HostError as error:
        outcome.trouble = str(error)
        for case in pending:
            outcome.rows[case.kind].unanswered += 1
    return outcome


def _greeting() -> str:
    return json.dumps({"format": FORMAT, "version": VERSION})


def _asked(case: Case) -> str:
    return json.dumps({"id": case.id, "kind": case.kind, "input": case.input})


def _welcome(line: str | None) -> str:
    said = _said(line, "a greeting")
    if said.get("format") != FORMAT or said.get("version") != VERSION or not isinstance(said.get("host"), str):
        raise HostError(
            f"the host greets with {_short(line)}; expected format {FORMAT!r}, version {VERSION} and its name"
        )
    return str(said["host"])


def _said(line: str | None, what: str) -> dict[str, Any]:
    if line is None:
        raise HostError(f"the host ended where {what} was expected")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise HostError(f"the host said {_short(line)} where {what}, a JSON object on a line, was expected")
    return value  # pyright: ignore[reportUnknownVariableType]


def _judge(row: Row, case: Case, line: str | None) -> None:
    said = _said(line, f"the answer to case {case.id}")
    if said.get("id") != case.id:
        raise HostError(f"the host answered {_short(line)} where case {case.id} was next")
    if said.get("unsupported") is True:
        row.unsupported += 1
        row.first = row.first or f"{case.id}: not supported"
    elif set(said) == {"id", "answer"} and _same(said["answer"], case.answer):
        row.passed += 1
    else:
        row.failed += 1
        got = said.get("answer", said)
        row.first = row.first or f"{case.id}: expected {_short(case.answer)}, got {_short(got)}"


def _same(found: Any, wanted: Any) -> bool:
    """Equal as JSON, where 1, 1.0 and true are three things."""
    return json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
