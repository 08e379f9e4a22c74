"""Records the rows of real generations into cases/recorded.jsonl: `python conformance/record.py artifacts/tiny`.

Rows are what the graphs computed on the machine that recorded them; answers follow from rows, on any machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import journee_deploy as jd
from journee_conformance.cases import PACKAGED
from journee_conformance.distribution_cases import written
from journee_conformance.generate import RECORDED, render
from journee_conformance.generation_cases import Rows, case, record
from journee_deploy.language_model import LanguageModel
from journee_deploy.runtime import Step

PROMPT = "def __init__(self"
RUNS = [
    ("residual", "model", {"temperature": 0.9, "top_p": 0.95}),
    ("coupled", "model", {"temperature": 0.8, "repetition_penalty": 1.2}),
    ("residual", "ngram", {"temperature": 0.0}),
]


def rows_of(lm: LanguageModel, role: str, prompt: Sequence[int]) -> Rows:
    """A real model as a function of the text."""
    model = lm.engine.models[role]

    def row(after: tuple[int, ...]) -> list[float]:
        (found,) = model.run([Step(0, (*prompt, *after), 0, 1)])
        model.release(0)
        return [float(value) for value in found[0]]

    return row


def main(bundle: str) -> None:
    with jd.load(bundle) as lm:
        prompt = lm.codec.encode(PROMPT, False)
        models = {role: rows_of(lm, role, prompt) for role in ("target", "draft")}
        made = [
            record(
                case(
                    rule=rule,
                    draft=draft,
                    size=lm.codec.size,
                    prompt=prompt,
                    options=written(options),
                    ends=list(lm.ends),
                    seed=f"{number:016x}",
                    limit=8,
                ),
                models,
            )
            for number, (rule, draft, options) in enumerate(RUNS)
        ]
    (PACKAGED / RECORDED).write_text(render("generation", "recorded", made), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
