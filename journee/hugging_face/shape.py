"""The shape of a foreign decoder, as a value: what tells one supported architecture from another.

A `model_type` and its config.json become a `ForeignShape` (`architectures.py`); the decoder knows shapes only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Norm = Literal["rms", "layer"]
Activation = Literal["silu", "gelu", "gelu_tanh"]


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary frequencies: `kind` is how they are scaled, from the base `theta`, by the other numbers.

    "linear" divides them by `factor`; "llama3" only the low ones, between which and the others lie `low` and `high`;
    "yarn" (Peng et al. 2023) those that turn less than `slow` times in `original` tokens, and leaves those that turn
    more than `fast` times. `amplitude` multiplies cosines and sines.
    """

    kind: Literal["default", "linear", "llama3", "yarn"] = "default"
    theta: float = 10000.0
    factor: float = 1.0
    original: int = 0
    low: float = 1.0
    high: float = 4.0
    fast: float = 32.0
    slow: float = 1.0
    truncate: bool = True
    amplitude: float = 1.0


@dataclass(frozen=True, slots=True)
class ForeignShape:
    """A decoder-only transformer of pre-norm blocks. Widths in channels, lengths in tokens.

    gated              the feed-forward is down(act(gate(x)) * up(x)); otherwise down(act(up(x)))
    head_norms         queries and keys are normed a head, before they are rotated
    norms_after        what attention and feed-forward give is normed before it joins the residual stream
    unit_norms         norms multiply by 1 + weight
    tied               the head is the embedding
    rotary             the kinds of rotation, and `rotary_of` the one of each layer; none: positions are learned
    windows            how many tokens back each layer sees, the row's own included; None for all
    """

    vocab_size: int
    dim: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_dim: int
    context_length: int
    attention_scale: float
    windows: tuple[int | None, ...]
    norm: Norm = "rms"
    norm_eps: float = 1e-6
    activation: Activation = "silu"
    gated: bool = True
    projection_bias: bool = False
    output_bias: bool = False
    feed_forward_bias: bool = False
    head_norms: bool = False
    norms_after: bool = False
    unit_norms: bool = False
    tied: bool = False
    embedding_scale: float = 1.0
    rotary: tuple[Rotary, ...] = ()
    rotary_of: tuple[int, ...] = ()

    @property
    def learned_positions(self) -> bool:
        """Whether positions are added to the embeddings, and heads are not rotated."""
        return not self.rotary
