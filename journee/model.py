"""The decoder: token embedding, pre-norm blocks, final norm, output projection.

The graph contract (design section 8), batch B, rows S >= 1, past P >= 0:

    input_ids [B, S], attention_mask [B, P + S], position_ids [B, S]      int64
    past: a (key, value) per block, each [B, kv_heads, P, head_dim]       float32
    logits [B, S, V], present: a (key, value) per block, [B, kv_heads, P + S, head_dim]

`attention_mask` is 0 at padding, in the past or among the rows. A padding row is computed (its logits mean
nothing), is read by no other row, and opens no gate of the mixture.

`hidden` and `head` are the two halves of `forward`: a graph that returns the last few rows slices between
them. Linear layers are given 3-D inputs throughout, so that they export as MatMul.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from journee.attention import Attention, Cache, rotary_tables, visible_keys
from journee.causal import CausalDecoder
from journee.config import ModelConfig
from journee.feed_forward import FeedForward
from journee.moe import SparseMoE

FIXED_SCALES = {"embedding.weight": 1.0, "projection.weight": 0.02}
"""Initial standard deviations that don't follow a layer's width; small logits start near the uniform distribution."""


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)), which in one block is the mixture."""

    def __init__(self, config: ModelConfig, index: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.dim, eps=config.norm_eps)
        self.attention = Attention(config)
        self.feed_forward_norm = nn.RMSNorm(config.dim, eps=config.norm_eps)
        self.mixture = SparseMoE(config.dim, config.moe) if config.moe and config.moe.layer == index else None
        self.feed_forward = None if self.mixture else FeedForward(config.dim, config.ffn_dim)

    def forward(
        self,
        x: Tensor,
        tables: tuple[Tensor, Tensor],
        positions: Tensor,
        visible: Tensor | None,
        real: Tensor | None,
        past: Cache | None,
    ) -> tuple[Tensor, Cache]:
        """x [B, S, dim]; `real` [B, S] bool is false at padding rows; the rest as in `Attention.forward`."""
        mixed, present = self.attention(self.attention_norm(x), tables, positions, visible, past)
        x = x + mixed
        return x + self._feed(self.feed_forward_norm(x), real), present

    def _feed(self, x: Tensor, real: Tensor | None) -> Tensor:
        fed: Tensor
        if self.mixture is not None:
            fed = self.mixture(x, real)
        else:
            assert self.feed_forward is not None
            fed = self.feed_forward(x)
        return fed


class Decoder(CausalDecoder):
    """A decoder-only transformer with the shape that `config` describes; parameters in float32."""

    rotary_cos: Tensor
    rotary_sin: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self._config = config
        self.embedding = nn.Embedding(config.vocab_size, config.dim)
        self.blocks = nn.ModuleList(Block(config, index) for index in range(config.layers))
        self.norm = nn.RMSNorm(config.dim, eps=config.norm_eps)
        self.projection = nn.Linear(config.dim, config.vocab_size, bias=False)
        cos, sin = rotary_tables(config)
        self.register_buffer("rotary_cos", cos, persistent=False)
        self.register_buffer("rotary_sin", sin, persistent=False)
        self._initialize()

    @property
    def config(self) -> ModelConfig:
        """The shape."""
        return self._config

    @property
    def mixture(self) -> SparseMoE | None:
        """The mixture of experts, if the model has one."""
        return next((module for module in self.modules() if isinstance(module, SparseMoE)), None)

    def use_export_ops(self, chosen: bool = True) -> None:
        """Compute attention by the ONNX operators (for tracing), or by plain PyTorch again."""
        for module in self.modules():
            if isinstance(module, Attention):
                module.export_ops = chosen

    def hidden(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, past: Sequence[Cache]
    ) -> tuple[Tensor, list[Cache]]:
        """Final-normed states [B, S, dim] and the grown cache."""
        rows = input_ids.shape[1]
        visible = visible_keys(attention_mask, rows)
        real = attention_mask[:, -rows:] != 0
        return self._run(input_ids, position_ids, visible, real, past)

    def head(self, states: Tensor) -> Tensor:
        """Logits [B, rows, V] of final-normed states [B, rows, dim]."""
        logits: Tensor = self.projection(states)
        return logits

    def logits(self, input_ids: Tensor) -> Tensor:
        """Logits [B, S, V] of whole sequences without padding or cache: what training and evaluation call."""
        positions = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
        states, _ = self._run(input_ids, positions, None, None, [None] * self.config.layers)
        return self.head(states)

    def _run(
        self,
        input_ids: Tensor,
        positions: Tensor,
        visible: Tensor | None,
        real: Tensor | None,
        past: Sequence[Cache | None],
    ) -> tuple[Tensor, list[Cache]]:
        x: Tensor = self.embedding(input_ids)
        present: list[Cache] = []
        for block, held in zip(self.blocks, past, strict=True):
            x, grown = block(x, (self.rotary_cos, self.rotary_sin), positions, visible, real, held)
            present.append(grown)
        states: Tensor = self.norm(x)
        return states, present

    def _initialize(self) -> None:
        """Normal weights of variance 1 / fan-in, less for what joins the residual stream."""
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            scale = FIXED_SCALES.get(name, 1 / math.sqrt(parameter.shape[1]))
            if name.endswith(("output.weight", "down.weight")):
                scale /= math.sqrt(2 * self.config.layers)
            nn.init.normal_(parameter, std=scale)
        if self.mixture is not None:
            nn.init.zeros_(self.mixture.router.bias)
            nn.init.zeros_(self.mixture.correction.weight)
