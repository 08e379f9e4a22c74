"""What the exporter, parity and runtimes ask of a decoder, whatever its architecture.

`journee.model.Decoder` is the one that this project trains; `journee.hugging_face.decoder.ForeignDecoder` is read from
others' folders. Shapes are those of `journee.model`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from journee.attention import Cache
from journee.moe import SparseMoE


class Shape(Protocol):
    """The shape of a decoder, as far as its graph shows it. Widths in channels, lengths in tokens."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def layers(self) -> int: ...

    @property
    def heads(self) -> int: ...

    @property
    def kv_heads(self) -> int: ...

    @property
    def head_dim(self) -> int: ...

    @property
    def context_length(self) -> int: ...

    @property
    def attention_scale(self) -> float:
        """What the products of queries and keys are multiplied by."""
        ...

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many tokens back each layer sees, the row's own included; None for all."""
        ...

    @property
    def learned_positions(self) -> bool:
        """Whether positions are added to the embeddings, and heads are not rotated."""
        ...


class CausalDecoder(nn.Module):
    """Tokens to logits, with a cache a layer."""

    @property
    @abstractmethod
    def config(self) -> Shape:
        """The shape."""

    @property
    def mixture(self) -> SparseMoE | None:
        """The mixture of experts, if the model has one."""
        return None

    @abstractmethod
    def use_export_ops(self, chosen: bool = True) -> None:
        """Compute attention by the ONNX operators (for tracing), or by plain PyTorch again."""

    @abstractmethod
    def hidden(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, past: Sequence[Cache]
    ) -> tuple[Tensor, list[Cache]]:
        """Final-normed states [B, S, dim] and the grown cache."""

    @abstractmethod
    def head(self, states: Tensor) -> Tensor:
        """Logits [B, rows, V] of final-normed states [B, rows, dim]."""

    def empty_cache(self, batch: int = 1) -> list[Cache]:
        """A past of length 0."""
        shape = (batch, self.config.kv_heads, 0, self.config.head_dim)
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in range(self.config.layers)]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, past: Sequence[Cache]
    ) -> tuple[Tensor, list[Cache]]:
        """Logits of every row, and the cache grown by them."""
        states, present = self.hidden(input_ids, attention_mask, position_ids, past)
        return self.head(states), present

    def logits(self, input_ids: Tensor) -> Tensor:
        """Logits [B, S, V] of whole sequences without padding or cache."""
        positions = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
        return self(input_ids, torch.ones_like(input_ids), positions, self.empty_cache(input_ids.shape[0]))[0]  # type: ignore[no-any-return]
