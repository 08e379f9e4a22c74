"""Makes the case files, to the byte: inputs from a die that rolls the same everywhere, answers from the shipped code.

Decisions have the answers of the programs that are proved (`formal.py`); if the shipped code decides otherwise, no file
is made.

The one input that isn't made here is `recorded.jsonl`: generations of a real model, whose rows were recorded once
(conformance/record.py) and are read back from the file; their answers are made again like all others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from journee_conformance import FORMAT, VERSION
from journee_conformance.cases import PACKAGED, CasesError, load
from journee_conformance.distribution_cases import distributions, refusals
from journee_conformance.draw_cases import below, dart, philox, pick, poisson, rounds, verdict
from journee_conformance.formal import settle
from journee_conformance.generation_cases import generations
from journee_conformance.host import Host

RECORDED = "recorded.jsonl"
MADE_BY = "python -m journee_conformance generate"

MAKERS = {
    "philox": philox,
    "below": below,
    "distribution": distributions,
    "pick": pick,
    "verdict": verdict,
    "poisson": poisson,
    "dart": dart,
    "round": rounds,
    "generation": generations,
    "refusal": refusals,
}


def files() -> dict[str, str]:
    """Every file's text by its name."""
    made = {f"{kind}.jsonl": render(kind, kind, make()) for kind, make in MAKERS.items()}
    if held(RECORDED) is None:
        raise CasesError(
            f"{PACKAGED / RECORDED} is missing; record it again: python conformance/record.py artifacts/tiny"
        )
    inputs = [case.input for case in load(PACKAGED) if case.id.startswith("recorded-")]
    return {**made, RECORDED: render("generation", "recorded", inputs)}


def held(name: str) -> str | None:
    """What the file has now."""
    file = PACKAGED / name
    return file.read_text(encoding="utf-8") if file.exists() else None


def render(kind: str, stem: str, inputs: Iterable[dict[str, Any]]) -> str:
    """A case file: a header, then a case a line."""
    host = Host()
    made = [(f"{stem}-{number:03}", asked, host.answer(kind, asked)) for number, asked in enumerate(inputs, 1)]
    answers = settle(kind, made)
    cases = [
        {"id": name, "input": asked, "answer": answer} for (name, asked, _), answer in zip(made, answers, strict=True)
    ]
    header = {"format": FORMAT, "version": VERSION, "kind": kind, "count": len(cases), "made": MADE_BY}
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in (header, *cases))
