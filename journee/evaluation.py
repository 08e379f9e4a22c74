"""Measures on held-out text: loss, bits per byte, and how far a draft and a target overlap.

Text is read in windows of one length without overlap, so a window's first tokens have little to go by, for every model
alike. Bits per byte is the total code length of the tokens, in bits, over the UTF-8 bytes of the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from journee.causal import Shape
from journee.model import Decoder
from journee.tokenizer import Tokens

WINDOWS_A_BATCH = 16
LONGEST_WINDOW = 256


@dataclass(frozen=True, slots=True)
class Score:
    """Mean loss in nats a token, and bits per byte."""

    loss: float
    bits_per_byte: float


def bits_per_byte(total_nats: float, texts: list[str]) -> float:
    """Code length of the texts in bits, over their UTF-8 length."""
    return total_nats / math.log(2) / sum(len(text.encode()) for text in texts)


def evaluation_length(config: Shape) -> int:
    """The length of windows on which a model is judged."""
    return min(LONGEST_WINDOW, config.context_length)


def batches(tokens: Tokens, length: int) -> Iterator[Tensor]:
    """All tokens as int64 batches [windows, up to length + 1]; windows share one token, the last to be predicted."""
    row = torch.tensor(tokens)
    whole = (len(tokens) - 1) // length
    for first in range(0, whole, WINDOWS_A_BATCH):
        starts = torch.arange(first, min(first + WINDOWS_A_BATCH, whole)) * length
        yield row[starts[:, None] + torch.arange(length + 1)]
    if whole * length + 1 < len(tokens):
        yield row[None, whole * length :]


def nats(logits: Tensor, following: Tensor) -> float:
    """Summed cross-entropy of [windows, rows, V] on [windows, rows]."""
    return functional.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="sum").item()


@torch.no_grad()
def score(model: Decoder, tokens: Tokens, texts: list[str], length: int) -> Score:
    """How well the model (in evaluation mode) predicts `tokens`, which encode `texts`, every token after the first."""
    total = sum(nats(model.logits(batch[:, :-1]), batch[:, 1:]) for batch in batches(tokens, length))
    return Score(total / (len(tokens) - 1), bits_per_byte(total, texts))


@torch.no_grad()
def overlap(target: Decoder, draft: Decoder, tokens: Tokens, length: int) -> float:
    """Mean over positions of sum min(p, q) at temperature 1: 1 - TV, the chance that one proposal is accepted."""
    total = 0.0
    for batch in batches(tokens, length):
        p, q = (model.logits(batch[:, :-1]).softmax(-1) for model in (target, draft))
        total += torch.minimum(p, q).sum().item()
    return total / (len(tokens) - 1)
