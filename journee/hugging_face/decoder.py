"""One decoder for the supported architectures: blocks with what their shape asks for, and nothing else.

The graph contract is that of `journee.model`. Attention is computed in two ways, as in `journee.attention`: plain
PyTorch, or the ONNX operators. A layer with a window masks what lies further back and keeps its whole cache, so that
a rewind is naming a smaller start, there as anywhere; the window saves no memory.

Distances are counted in tokens that the mask holds, not in places of the cache: padding among the past moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from journee.attention import ROTARY_PADDING, Cache, rotate, visible_keys
from journee.causal import CausalDecoder
from journee.hugging_face.rotary import rotary_tables
from journee.hugging_face.shape import Activation, ForeignShape

Tables = tuple[Tensor, Tensor]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
}


def make_norm(shape: ForeignShape, width: int) -> nn.Module:
    """RMSNorm (Zhang and Sennrich 2019), or LayerNorm with a bias."""
    kind = nn.RMSNorm if shape.norm == "rms" else nn.LayerNorm
    return kind(width, eps=shape.norm_eps)


def within(visible: Tensor, attention_mask: Tensor, rows: int, window: int) -> Tensor:
    """`visible` less what lies `window` tokens back or further."""
    places = (attention_mask != 0).cumsum(1)
    distance = places[:, None, -rows:, None] - places[:, None, None, :]
    return visible & (distance < window)


class ForeignAttention(nn.Module):
    """Self-attention of one block: [batch, rows, dim] to the same, and the cache grown by those rows."""

    def __init__(self, shape: ForeignShape) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = shape.heads, shape.kv_heads, shape.head_dim
        self.scale = shape.attention_scale
        width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.query = nn.Linear(shape.dim, width, bias=shape.projection_bias)
        self.key = nn.Linear(shape.dim, kv_width, bias=shape.projection_bias)
        self.value = nn.Linear(shape.dim, kv_width, bias=shape.projection_bias)
        self.output = nn.Linear(width, shape.dim, bias=shape.output_bias)
        self.query_norm = make_norm(shape, shape.head_dim) if shape.head_norms else None
        self.key_norm = make_norm(shape, shape.head_dim) if shape.head_norms else None
        self.export_ops = False

    def forward(
        self, x: Tensor, tables: Tables | None, positions: Tensor, visible: Tensor, past: Cache
    ) -> tuple[Tensor, Cache]:
        """`tables` [positions, head_dim / 2] rotate the heads; `visible` is as from `visible_keys`."""
        query = self._normed(self.query(x), self.query_norm)
        key = self._normed(self.key(x), self.key_norm)
        attend = self._attend_onnx if self.export_ops else self._attend
        mixed, present = attend(query, key, self.value(x), tables, positions, visible, past)
        return self.output(mixed), present

    def _normed(self, x: Tensor, norm: nn.Module | None) -> Tensor:
        """Each head of x [batch, rows, heads * head_dim] normed."""
        return x if norm is None else norm(self._heads(x)).flatten(2)

    def _heads(self, x: Tensor) -> Tensor:
        """[batch, rows, heads * head_dim] to [batch, rows, heads, head_dim]."""
        return x.view(*x.shape[:2], -1, self.head_dim)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        tables: Tables | None,
        positions: Tensor,
        visible: Tensor,
        past: Cache,
    ) -> tuple[Tensor, Cache]:
        query, key, value = (self._heads(x).transpose(1, 2) for x in (query, key, value))
        if tables is not None:
            cos, sin = (table[positions][:, None] for table in tables)
            query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=visible, scale=self.scale, enable_gqa=self.heads != self.kv_heads
        )
        return mixed.transpose(1, 2).flatten(2), (key, value)

    def _attend_onnx(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        tables: Tables | None,
        positions: Tensor,
        visible: Tensor,
        past: Cache,
    ) -> tuple[Tensor, Cache]:
        ops = torch.onnx.ops
        if tables is not None:
            query = ops.rotary_embedding(query, *tables, positions, num_heads=self.heads)
            key = ops.rotary_embedding(key, *tables, positions, num_heads=self.kv_heads)
        mixed, present_key, present_value, _ = ops.attention(
            query,
            key,
            value,
            visible,
            *past,
            scale=self.scale,
            q_num_heads=self.heads,
            kv_num_heads=self.kv_heads,
        )
        return mixed, (present_key, present_value)


class ForeignFeedForward(nn.Module):
    """down(act(gate(x)) * up(x)) (Shazeer 2020), or down(act(up(x))) without a gate."""

    def __init__(self, shape: ForeignShape) -> None:
        super().__init__()
        bias = shape.feed_forward_bias
        self.gate = nn.Linear(shape.dim, shape.ffn_dim, bias=bias) if shape.gated else None
        self.up = nn.Linear(shape.dim, shape.ffn_dim, bias=bias)
        self.down = nn.Linear(shape.ffn_dim, shape.dim, bias=bias)
        self.activation = ACTIVATIONS[shape.activation]

    def forward(self, x: Tensor) -> Tensor:
        up: Tensor = self.up(x)
        inner = self.activation(up) if self.gate is None else self.activation(self.gate(x)) * up
        out: Tensor = self.down(inner)
        return out


class ForeignBlock(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)); each sum's new part normed where the shape says so."""

    def __init__(self, shape: ForeignShape) -> None:
        super().__init__()
        self.attention_norm = make_norm(shape, shape.dim)
        self.attention = ForeignAttention(shape)
        self.attention_after = make_norm(shape, shape.dim) if shape.norms_after else nn.Identity()
        self.feed_forward_norm = make_norm(shape, shape.dim)
        self.feed_forward = ForeignFeedForward(shape)
        self.feed_forward_after = make_norm(shape, shape.dim) if shape.norms_after else nn.Identity()

    def forward(
        self, x: Tensor, tables: Tables | None, positions: Tensor, visible: Tensor, past: Cache
    ) -> tuple[Tensor, Cache]:
        mixed, present = self.attention(self.attention_norm(x), tables, positions, visible, past)
        x = x + self.attention_after(mixed)
        fed: Tensor = self.feed_forward_after(self.feed_forward(self.feed_forward_norm(x)))
        return x + fed, present


class ForeignDecoder(CausalDecoder):
    """A decoder with the shape that a config.json describes; parameters in float32.

    Tables, and learned positions, reach ROTARY_PADDING past the context, so that padding rows have positions too.
    """

    def __init__(self, shape: ForeignShape) -> None:
        super().__init__()
        self._shape = shape
        length = shape.context_length + ROTARY_PADDING
        self.embedding = nn.Embedding(shape.vocab_size, shape.dim)
        self.positions = nn.Embedding(length, shape.dim) if shape.learned_positions else None
        self.blocks = nn.ModuleList(ForeignBlock(shape) for _ in range(shape.layers))
        self.norm = make_norm(shape, shape.dim)
        self.projection = None if shape.tied else nn.Linear(shape.dim, shape.vocab_size, bias=False)
        for number, rotary in enumerate(shape.rotary):
            cos, sin = rotary_tables(rotary, shape.head_dim, length)
            self.register_buffer(f"rotary_cos_{number}", cos, persistent=False)
            self.register_buffer(f"rotary_sin_{number}", sin, persistent=False)

    @property
    def config(self) -> ForeignShape:
        """The shape."""
        return self._shape

    def use_export_ops(self, chosen: bool = True) -> None:
        for module in self.modules():
            if isinstance(module, ForeignAttention):
                module.export_ops = chosen

    def hidden(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, past: Sequence[Cache]
    ) -> tuple[Tensor, list[Cache]]:
        shape = self._shape
        x: Tensor = self.embedding(input_ids)
        if shape.embedding_scale != 1:
            x = x * shape.embedding_scale
        if self.positions is not None:
            x = x + self.positions(position_ids)
        visible = self._visible(attention_mask, input_ids.shape[1])
        present: list[Cache] = []
        for layer, (block, held) in enumerate(zip(self.blocks, past, strict=True)):
            x, grown = block(x, self._tables(layer), position_ids, visible[shape.windows[layer]], held)
            present.append(grown)
        states: Tensor = self.norm(x)
        return states, present

    def head(self, states: Tensor) -> Tensor:
        weight = self.embedding.weight if self.projection is None else self.projection.weight
        return functional.linear(states, weight)

    def _visible(self, attention_mask: Tensor, rows: int) -> dict[int | None, Tensor]:
        """What rows may read, by window."""
        everything = visible_keys(attention_mask, rows)
        return {
            window: everything if window is None else within(everything, attention_mask, rows, window)
            for window in dict.fromkeys(self._shape.windows)
        }

    def _tables(self, layer: int) -> Tables | None:
        if not self._shape.rotary:
            return None
        number = self._shape.rotary_of[layer]
        return self.get_buffer(f"rotary_cos_{number}"), self.get_buffer(f"rotary_sin_{number}")
