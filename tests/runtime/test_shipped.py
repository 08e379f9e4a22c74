"""The promise on the target that ships, as `journee-export` wrote it, sparse experts included."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from journee_deploy.runtime import OpenOptions, Step
from journee_runtimes.onnx import OnnxRuntime

TARGET = Path(__file__).parents[2] / "artifacts" / "tiny" / "target"
LENGTH = 620


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_agree_bitwise_under_random_splits_or_the_claim_is_refused_by_name(threads: int) -> None:
    """Against one long run: prefills of 1 to 600 tokens, then steps of 1 to 17 rows, with rewinds."""
    model = OnnxRuntime().open(TARGET, "target", OpenOptions(threads=threads))
    if model.row_rule is None:
        assert model.row_rule_note.startswith("no row rule holds")
        return
    chance = random.Random(threads)
    text = tuple(chance.randrange(model.vocabulary_size) for _ in range(LENGTH))
    (expected,) = model.run([Step(0, text, 0, len(text))])
    for prefill in (1, 2, 31, 255, 256, 257, 600):
        model.run([Step(1, text[:prefill], 0, 1)])
        at = prefill
        for _ in range(20):
            tokens = text[at : at + chance.randint(1, 17)]
            keep = chance.randint(1, len(tokens))
            (rows,) = model.run([Step(1, tokens, at, keep)])
            at += len(tokens)
            assert rows.tobytes() == expected[at - keep : at].tobytes(), (prefill, at, len(tokens), keep)
            at = min(at - chance.choice((0, 0, 3)), LENGTH - 1)
