"""Answers that come from the formal side: cases as questions to the compiled Agda program, and what it answered.

`formal.jsonl` has its answers, recorded by `python formal/check.py --record`, each with a hash of what was asked, so
that the cases can be made without Agda. `make proofs` asks the program again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RECORD = "python formal/check.py --record"
RECORDED = Path(__file__).parent / "formal.jsonl"

KINDS = ("accepted", "recovered", "bonus")


def question(kind: str, asked: dict[str, Any]) -> str | None:
    """A line of numbers; None for a case that the program doesn't answer (another kind or rule, a refusal)."""
    if asked.get("rule", "residual") != "residual":
        return None
    numbers = _numbers(kind, asked)
    if numbers is None or any(number < 0 for number in numbers):
        return None
    return " ".join(map(str, numbers))


def _numbers(kind: str, asked: dict[str, Any]) -> list[int] | None:
    if kind == "philox":
        return [0, *asked["counter"], *asked["key"]]
    if kind == "pick":
        return [2, asked["coin"], len(asked["units"]) - 1, *asked["units"]]
    if kind not in ("below", "verdict", "round"):
        return None
    seed, sample = int(asked["seed"], 16), asked["sample"]
    if kind == "below":
        return [1, seed, sample, *asked["key"], asked["n"]] if asked["n"] and sample < 1 << 32 else None
    if kind == "verdict":
        shared = [asked["position"], asked["round"], asked["proposal"], len(asked["p"]) - 1]
        return [3, seed, sample, *shared, *asked["p"], *asked["q"]]
    return _round(seed, sample, asked)


def _round(seed: int, sample: int, asked: dict[str, Any]) -> list[int]:
    """An empty distribution ends the drafting: the rows behind it are not looked at."""
    q = asked["q"][: asked["q"].index(None)] if None in asked["q"] else asked["q"]
    p = asked["p"][: len(q) + 1]
    units = [unit for row in (*q, *p) for unit in row]
    return [4, seed, sample, asked["position"], len(q), len(p[0]) - 1, *units]


def answer(kind: str, line: str) -> dict[str, Any]:
    """The program's line as a case's answer."""
    numbers = [int(word) for word in line.split()]
    if not numbers:
        raise ValueError("the program had no answer: the question was not one, or its words ran out")
    if kind == "philox":
        return {"words": numbers}
    if kind == "below":
        return {"value": numbers[0]}
    if kind == "pick":
        return {"token": numbers[0]}
    if kind == "verdict":
        return {"accepted": KINDS[numbers[0]] == "accepted", "token": numbers[1]}
    proposed, emitted, rest = numbers[0], numbers[1], numbers[2:]
    tokens = rest[proposed : proposed + emitted]
    kinds = [KINDS[number] for number in rest[proposed + emitted :]]
    return {"proposals": rest[:proposed], "tokens": tokens, "kinds": kinds}


def asked_hash(kind: str, asked: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps([kind, asked], separators=(",", ":")).encode()).hexdigest()


def render(said: Iterable[tuple[str, dict[str, Any], dict[str, Any]]]) -> str:
    """The recorded file: kind, input and answer of each case; equal inputs once."""
    found = {asked_hash(kind, asked): answer for kind, asked, answer in said}
    return "".join(
        json.dumps({"asked": asked, "answer": answer}, separators=(",", ":")) + "\n" for asked, answer in found.items()
    )


def recorded() -> dict[str, dict[str, Any]]:
    """What the program answered, by the hash of what was asked."""
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    return {entry["asked"]: entry["answer"] for entry in map(json.loads, lines)}
