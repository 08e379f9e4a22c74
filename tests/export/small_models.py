"""Models small enough to trace in seconds: a target with the mixture in its second block, and a dense draft, whose
heads are too narrow for a graph with a shared cache.
"""

from __future__ import annotations

from pathlib import Path

import torch

from journee.checkpoint import Checkpoint, rounded, save_checkpoint
from journee.config import ModelConfig, MoEConfig
from journee.model import Decoder
from journee.tokenizer import train_tokenizer

TARGET = ModelConfig(
    vocab_size=260,
    dim=64,
    layers=2,
    heads=4,
    kv_heads=2,
    ffn_dim=48,
    context_length=96,
    moe=MoEConfig(expert_dim=24, layer=1),
)
DRAFT = ModelConfig(vocab_size=260, dim=16, layers=1, heads=2, kv_heads=1, ffn_dim=24, context_length=96)
CORPUS = "a" * 64


def make_decoder(config: ModelConfig, seed: int = 1) -> Decoder:
    """Random weights, all of them different, so that none is mistaken for another; the inverter corrects too."""
    torch.manual_seed(seed)
    decoder = Decoder(config).eval()
    for name, parameter in decoder.named_parameters():
        if "norm" in name or name.endswith("bias"):
            torch.nn.init.normal_(parameter, mean=float("norm" in name), std=0.1)
    if decoder.mixture:
        torch.nn.init.normal_(decoder.mixture.correction.weight, std=0.1)
    return decoder


def tokenizer_text(extra: str = "") -> str:
    return train_tokenizer(["the proof obligation is small, the rest is left " * 9 + extra], 260)


def make_checkpoint(role: str, config: ModelConfig, tokenizer: str, corpus_hash: str = CORPUS) -> Checkpoint:
    return Checkpoint(
        role=role,
        config=config,
        tokenizer=tokenizer,
        corpus="a corpus",
        corpus_hash=corpus_hash,
        interpreter="CPython 3.11",
        held_out_loss=float("nan"),
        bits_per_byte=2.5,
        steps=10,
        seed=1,
        weights=rounded(make_decoder(config)),
        measured={"acceptance": 0.5},
    )


def write_checkpoints(folder: Path) -> tuple[Path, Path]:
    """Checkpoint files of a target and its draft."""
    tokenizer = tokenizer_text()
    for role, config in (("target", TARGET), ("draft", DRAFT)):
        save_checkpoint(make_checkpoint(role, config, tokenizer), folder / f"{role}.pt")
    return folder / "target.pt", folder / "draft.pt"
