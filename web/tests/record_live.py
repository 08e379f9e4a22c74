"""Texts of the trained pair by ONNX Runtime on this machine's CPU, for the page's tests to compare theirs with.

    python web/tests/record_live.py       writes web/tests/live.json

Graphs round differently in WebAssembly, so tokens may part where a decision is close; each token comes with how close
it was: greedy, the distance of the two largest logits; sampled, the token's probability and the coin.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import journee_deploy

HERE = Path(__file__).parent
PROMPTS = ("The proof obligation is", "def read(path):\n", "class Error(Exception):\n    \"\"\"")
RUNS: tuple[dict[str, Any], ...] = (
    {"temperature": 0.0},
    {"temperature": 0.0, "speculation_length": 7},
    {"seed": 42},
    {"seed": 42, "draft": False},
    {"seed": 7, "rule": "coupled", "speculation_length": 3},
    {"seed": 1, "temperature": 0.8, "top_p": 0.9, "top_k": 40},
    {"seed": 2, "repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.25, "min_p": 0.02},
    {"seed": (1 << 64) - 1, "sample": 3, "stop": ["\n\n"], "min_new_tokens": 8},
)


def main() -> None:
    texts: list[dict[str, Any]] = []
    with journee_deploy.load(HERE.parents[1] / "artifacts" / "tiny") as lm:
        for prompt in PROMPTS:
            for options in RUNS:
                found = lm.generate(prompt, max_new_tokens=48, trace=True, **options)
                margins = [judgement.logits[0][1] - judgement.logits[1][1] for judgement in found.report.judgements]
                texts.append(
                    {
                        "prompt": prompt,
                        "options": {name: str(value) if name == "seed" else value for name, value in options.items()},
                        "text": found.text,
                        "tokens": list(found.tokens),
                        "kinds": list(found.kinds),
                        "reason": found.report.reason,
                        "margins": [round(margin, 6) for margin in margins],
                        "p": [judgement.p for judgement in found.report.judgements],
                    }
                )
    (HERE / "live.json").write_text(json.dumps(texts, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
