"""The shape of a decoder, as a value.

One configuration describes the target (with a mixture of experts in its fourth block) and the drafts
(without). It is written into every checkpoint as a plain dictionary, and read from the `[model]` table of a
training TOML, so both directions refuse what they don't know by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

FOURTH_BLOCK = 3


class ConfigError(ValueError):
    """A configuration can't describe a model; the message says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class MoEConfig:
    """The sparse Boolean mixture that replaces one block's feed-forward (design section 6).

    `layer` counts blocks from 0; `active` experts of `experts` take part for each token; `expert_dim` is the
    inner width of one expert. The router always has `experts + 1` columns: the last one is the inverter's.
    """

    expert_dim: int
    layer: int = FOURTH_BLOCK
    experts: int = 4
    active: int = 2

    def __post_init__(self) -> None:
        _check_counts("moe", self, ("expert_dim", "experts", "active"))
        if self.active > self.experts:
            raise ConfigError(f"moe.active is {self.active}; expected at most moe.experts = {self.experts}")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder-only transformer. Widths in channels, lengths in tokens; without a mixture `moe` is None."""

    vocab_size: int
    dim: int
    layers: int
    heads: int
    kv_heads: int
    ffn_dim: int
    context_length: int = 4096
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    moe: MoEConfig | None = None

    def __post_init__(self) -> None:
        counts = ("vocab_size", "dim", "layers", "heads", "kv_heads", "ffn_dim", "context_length")
        _check_counts("model", self, counts)
        if self.dim % (2 * self.heads):
            raise ConfigError(
                f"model.dim is {self.dim} with {self.heads} heads; a head's width must be whole and even: "
                f"make dim a multiple of {2 * self.heads}"
            )
        if self.heads % self.kv_heads:
            raise ConfigError(
                f"model.kv_heads is {self.kv_heads}, which does not divide model.heads = {self.heads}; "
                "choose a divisor so that each key head serves the same number of query heads"
            )
        if self.rope_theta <= 1 or self.norm_eps <= 0:
            raise ConfigError(
                f"model.rope_theta is {self.rope_theta} and model.norm_eps {self.norm_eps}; "
                "expected rope_theta > 1 and norm_eps > 0"
            )
        if self.moe is not None and not 0 <= self.moe.layer < self.layers:
            raise ConfigError(
                f"moe.layer is {self.moe.layer} but the model has blocks 0 to {self.layers - 1}; "
                "add blocks or move the mixture"
            )

    @property
    def head_dim(self) -> int:
        """Channels of one attention head."""
        return self.dim // self.heads

    @property
    def kv_dim(self) -> int:
        """Channels of all key heads together."""
        return self.kv_heads * self.head_dim

    @property
    def attention_scale(self) -> float:
        """What the products of queries and keys are multiplied by."""
        return 1 / math.sqrt(self.head_dim)

    @property
    def windows(self) -> tuple[None, ...]:
        """Every layer sees the whole text before a row."""
        return (None,) * self.layers

    @property
    def learned_positions(self) -> bool:
        """Positions rotate the heads."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and one nested dictionary (or None) under `moe`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelConfig:
        """The inverse of `to_dict`; unknown and missing keys are refused by name."""
        plain = dict(values)
        moe = plain.pop("moe", None)
        _check_keys("model", cls, plain, extra=("moe",))
        if moe is not None:
            _check_keys("moe", MoEConfig, moe)
        return cls(**plain, moe=None if moe is None else MoEConfig(**moe))


def _check_counts(table: str, config: object, names: tuple[str, ...]) -> None:
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{table}.{name} is {value!r}; expected a whole number of at least 1")


def _check_keys(table: str, kind: type, values: object, extra: tuple[str, ...] = ()) -> None:
    if not isinstance(values, Mapping):
        raise ConfigError(f"[{table}] is {values!r}; expected a table of settings")
    known = {field.name for field in fields(kind)} - set(extra)
    unknown = sorted(str(key) for key in values if key not in known)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if unknown:
        raise ConfigError(f"[{table}] has no setting {', '.join(unknown)}; it has {', '.join(sorted(known))}")
    required = (field.name for field in fields(kind) if field.default is MISSING)
    missing = [name for name in required if name not in values]
    if missing:
        raise ConfigError(f"[{table}] lacks {', '.join(missing)}; add it")
