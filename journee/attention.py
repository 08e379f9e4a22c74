"""Causal attention with rotary positions, grouped key heads and a concatenated cache.

Two ways to compute the same thing, chosen by `Attention.export_ops`:

- false (default): plain PyTorch, `scaled_dot_product_attention`; this is what trains and what the reference
  runtime runs;
- true: the ONNX operators of opset 23, `torch.onnx.ops.rotary_embedding` and `torch.onnx.ops.attention`,
  which trace to one node each. They work on [batch, rows, heads * head_dim], so no transpose enters the
  graph.

Rotary embedding (Su et al. 2021) in the half-split layout: channel i of a head is paired with channel i +
head_dim / 2. Grouped key heads (Ainslie et al. 2023): query head h reads key head h // (heads / kv_heads).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from journee.config import ModelConfig

ROTARY_PADDING = 64
"""Rotary tables reach this many positions past the context, so that padding rows have positions too."""

Cache = tuple[Tensor, Tensor]
"""Keys and values of one block, each [batch, kv_heads, length, head_dim]; the keys are already rotated."""


def rotary_tables(config: ModelConfig) -> tuple[Tensor, Tensor]:
    """Cosines and sines [context_length + ROTARY_PADDING, head_dim / 2], computed in float64."""
    half = config.head_dim // 2
    frequency = config.rope_theta ** -(torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(config.context_length + ROTARY_PADDING, dtype=torch.float64)[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def visible_keys(attention_mask: Tensor, rows: int) -> Tensor:
    """Which keys each row may read, [batch, 1, rows, total] bool, for `attention_mask` [batch, total].

    Key j is visible to the row at index i of the cache when j <= i and j is not padding. A row always sees
    itself, so that a padding row has something to average; nobody else sees that row.
    """
    total = attention_mask.shape[1]
    key = torch.arange(total, device=attention_mask.device)
    row = torch.arange(total - rows, total, device=attention_mask.device)[:, None]
    readable = (attention_mask != 0)[:, None, None, :]
    return ((key < row) & readable) | (key == row)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate x [batch, heads, rows, head_dim] by cos and sin [batch, 1, rows, head_dim / 2]."""
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


class Attention(nn.Module):
    """Self-attention of one block: [batch, rows, dim] to the same, and the cache grown by those rows."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.heads, config.kv_heads, config.head_dim
        self.query = nn.Linear(config.dim, config.dim, bias=False)
        self.key = nn.Linear(config.dim, config.kv_dim, bias=False)
        self.value = nn.Linear(config.dim, config.kv_dim, bias=False)
        self.output = nn.Linear(config.dim, config.dim, bias=False)
        self.export_ops = False

    def forward(
        self,
        x: Tensor,
        tables: tuple[Tensor, Tensor],
        positions: Tensor,
        visible: Tensor | None,
        past: Cache | None,
    ) -> tuple[Tensor, Cache]:
        """`tables` as from `rotary_tables`, `positions` [batch, rows] int64, `visible` from `visible_keys`.

        Without `past` and `visible` the rows are a whole sequence, and each sees itself and those before it.
        """
        attend = self._attend_onnx if self.export_ops else self._attend
        mixed, present = attend(self.query(x), self.key(x), self.value(x), tables, positions, visible, past)
        return self.output(mixed), present

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        tables: tuple[Tensor, Tensor],
        positions: Tensor,
        visible: Tensor | None,
        past: Cache | None,
    ) -> tuple[Tensor, Cache]:
        cos, sin = (table[positions][:, None] for table in tables)
        query = rotate(self._heads(query, self.heads), cos, sin)
        key, value = rotate(self._heads(key, self.kv_heads), cos, sin), self._heads(value, self.kv_heads)
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        mixed = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=visible,
            is_causal=visible is None,
            enable_gqa=self.heads != self.kv_heads,
        )
        return mixed.transpose(1, 2).flatten(2), (key, value)

    def _attend_onnx(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        tables: tuple[Tensor, Tensor],
        positions: Tensor,
        visible: Tensor | None,
        past: Cache | None,
    ) -> tuple[Tensor, Cache]:
        ops = torch.onnx.ops
        query = ops.rotary_embedding(query, *tables, positions, num_heads=self.heads)
        key = ops.rotary_embedding(key, *tables, positions, num_heads=self.kv_heads)
        past_key, past_value = (None, None) if past is None else past
        mixed, present_key, present_value, _ = ops.attention(
            query,
            key,
            value,
            visible,
            past_key,
            past_value,
            is_causal=visible is None,
            q_num_heads=self.heads,
            kv_num_heads=self.kv_heads,
        )
        return mixed, (present_key, present_value)

    def _heads(self, x: Tensor, heads: int) -> Tensor:
        """[batch, rows, heads * head_dim] to [batch, heads, rows, head_dim]."""
        return x.view(*x.shape[:2], heads, self.head_dim).transpose(1, 2)
