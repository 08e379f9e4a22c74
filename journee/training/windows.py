"""Batches as a function of (seed, step), so that a resumed run sees what an unbroken one would have seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from journee.tokenizer import Tokens


@dataclass(frozen=True)
class Windows:
    """Windows of `length` + 1 tokens over one row of tokens.

    An epoch cuts the row at a random offset into windows and visits each once, in random order.
    """

    tokens: Tokens
    length: int
    batch: int
    seed: int

    def __post_init__(self) -> None:
        if self.batches_an_epoch < 1:
            raise ValueError(
                f"the training text has {len(self.tokens)} tokens, too few for a batch of {self.batch} windows of "
                f"{self.length}; lower training.batch or training.sequence, or give more text"
            )

    @property
    def batches_an_epoch(self) -> int:
        """Whole batches in one visit of the text."""
        return (len(self.tokens) // self.length - 1) // self.batch

    def at(self, step: int) -> Tensor:
        """The batch of `step` (from 0), int64 [batch, length + 1]."""
        epoch, turn = divmod(step, self.batches_an_epoch)
        chance = np.random.default_rng((self.seed, epoch))
        offset = int(chance.integers(self.length))
        order = chance.permutation(len(self.tokens) // self.length - 1)
        starts = offset + self.length * order[turn * self.batch : (turn + 1) * self.batch]
        return torch.tensor(self.tokens[starts[:, None] + np.arange(self.length + 1)])
