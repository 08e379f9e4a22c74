"""What a model costs: parameters, and multiply-adds a token."""

from __future__ import annotations

from journee.config import ModelConfig
from journee.model import Decoder


def parameters(model: Decoder) -> int:
    """Trained numbers in the model, all experts included."""
    return sum(parameter.numel() for parameter in model.parameters())


def multiply_adds(config: ModelConfig, past: int = 0) -> int:
    """Multiply-adds of the matrix products for one token after `past` others, output projection included.

    The mixture counts as it runs: its active experts and the router. The inverter's correction, which only some tokens
    take, is left out, so for a target this is a lower bound.
    """
    attention = 2 * config.dim * (config.dim + config.kv_dim) + 2 * config.dim * (past + 1)
    total = config.layers * attention + config.dim * config.vocab_size
    dense_blocks = config.layers
    if config.moe is not None:
        dense_blocks -= 1
        total += config.dim * (config.moe.experts + 1) + 3 * config.dim * config.moe.expert_dim * config.moe.active
    return total + dense_blocks * 3 * config.dim * config.ffn_dim
