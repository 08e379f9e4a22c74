"""Decisions answered by the formal side: formal/agda, compiled, the programs that its theorems are about.

`formal_answers.jsonl` has what it answered, by the input's hash, so that making the cases needs no Agda: their answers
to decisions are these, and the shipped code must give the same. `make proofs` runs the program again.

The program reads a case a line, numbers in decimal, and answers with a line of numbers (formal/agda/Answers.agda).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from journee_conformance.cases import CasesError

Case = dict[str, Any]

RECORDED = Path(__file__).parent / "formal_answers.jsonl"
AGAIN = "python formal/check.py --record"
KINDS = ("accepted", "recovered", "bonus")
WORD = 0xFFFFFFFF


class FormalError(CasesError):
    """A decision's answer is missing, or the shipped code decides otherwise."""


def question(kind: str, case: Case) -> str | None:
    """The line that asks the program this case; None for what it doesn't answer."""
    numbers = _numbers(kind, case)
    return None if numbers is None else " ".join(map(str, numbers))


def _numbers(kind: str, case: Case) -> list[int] | None:
    if kind == "philox":
        return [0, *case["counter"], *case["key"]]
    if kind == "pick":
        return [2, case["coin"], len(case["units"]), *case["units"]]
    if kind not in ("below", "verdict", "round") or case.get("rule", "residual") != "residual":
        return None
    if not 0 <= case["sample"] <= WORD:
        return None  # who makes the key refuses it, before anything is drawn
    seed = int(case["seed"], 16)
    draws = [seed & WORD, seed >> 32, case["sample"]]
    if kind == "below":
        return [1, *draws, *case["key"], case["n"]]
    size = len(case["p"] if kind == "verdict" else case["p"][0])
    if kind == "verdict":
        return [3, *draws, case["position"], case["round"], case["proposal"], size, *case["p"], *case["q"]]
    p, q = case["p"], [units for units in case["q"] if units is not None]
    return [4, *draws, case["position"], len(q), len(p), size, *(unit for units in [*p, *q] for unit in units)]


def answer(kind: str, line: str) -> Case:
    """The program's line as a case's answer."""
    if line == "?":
        return {"refused": "n"} if kind == "below" else {"none": True}
    numbers = [int(number) for number in line.split()]
    if kind == "philox":
        return {"words": numbers}
    if kind == "verdict":
        return {"accepted": numbers[0] == 1, "token": numbers[1]}
    if kind == "round":
        drawn = 1 + numbers[0]
        emitted = (len(numbers) - drawn) // 2
        kinds = [KINDS[number] for number in numbers[drawn + emitted :]]
        return {"proposals": numbers[1:drawn], "tokens": numbers[drawn : drawn + emitted], "kinds": kinds}
    return {"value" if kind == "below" else "token": numbers[0]}


def digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()[:32]


def recorded() -> dict[str, str]:
    """Every recorded line of the program, by the hash of what it was asked."""
    rows = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    return {row["asked"]: row["answered"] for row in rows}


def render(lines: dict[str, str]) -> str:
    """The recorded file's text: questions in their order, with what was answered."""
    rows = [{"asked": digest(asked), "answered": answered} for asked, answered in lines.items()]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def settle(kind: str, cases: Iterable[tuple[str, Case, Case]]) -> list[Case]:
    """The answers that cases get, given id, input and the shipped code's answer: the formal side's, where it has one.
    Another of the shipped code is an error.
    """
    known = recorded()
    return [_settled(known, kind, name, case, ours) for name, case, ours in cases]


def _settled(known: dict[str, str], kind: str, name: str, case: Case, ours: Case) -> Case:
    asked = question(kind, case)
    if asked is None:
        return ours
    if digest(asked) not in known:
        raise FormalError(f"{name} has no recorded answer of formal/: {AGAIN}")
    theirs = answer(kind, known[digest(asked)])
    if theirs != ours:
        raise FormalError(f"{name}: the shipped code says {ours}, formal/ says {theirs}; one of them is wrong")
    return theirs
