"""The promise on a graph as `journee-export` writes it, sparse experts included."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from journee.config import ModelConfig, MoEConfig
from journee.model import Decoder
from journee.tokenizer import train_tokenizer
from journee_deploy.manifest import Source
from journee_deploy.runtime import OpenOptions, Step
from journee_export.bundle import export_bundle
from journee_export.source import RoleSource
from journee_runtimes.onnx import OnnxRuntime

CONFIG = ModelConfig(
    vocab_size=270, dim=48, layers=4, heads=4, kv_heads=2, ffn_dim=96, context_length=700, moe=MoEConfig(expert_dim=48)
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of an untrained target whose inverter does something."""
    torch.manual_seed(1)
    decoder = Decoder(CONFIG).eval()
    assert decoder.mixture is not None
    torch.nn.init.normal_(decoder.mixture.correction.weight, std=0.1)
    tokenizer = train_tokenizer(["the rows of a run depend on their prefix alone " * 9], CONFIG.vocab_size)
    source = RoleSource(decoder, tokenizer, "0" * 64, Source("0" * 64, CONFIG.to_dict(), {}))
    folder = tmp_path_factory.mktemp("exported") / "bundle"
    export_bundle({"target": source}, folder)
    return folder / "target"


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_agree_bitwise_under_random_splits_or_the_claim_is_refused_by_name(exported: Path, threads: int) -> None:
    """Against one long run: prefills of 1 to 600 tokens, then steps of 1 to 17 rows, with rewinds."""
    model = OnnxRuntime().open(exported, "target", OpenOptions(threads=threads))
    if model.row_rule is None:
        assert model.row_rule_note.startswith("no row rule holds")
        return
    chance = random.Random(threads)
    text = tuple(chance.randrange(CONFIG.vocab_size) for _ in range(CONFIG.context_length))
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
            at = min(at - chance.choice((0, 0, 3)), len(text) - 1)
