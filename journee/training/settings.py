"""What a training run is told, read from a TOML file; everything it doesn't know is refused by name.

    seed = 1
    out = "checkpoints/target.pt"
    corpus = "my/texts"          # optional: a file or folder; the standard library without it
    [tokenizer]
    vocab_size = 1024            # the same for target and draft
    [model]                      # journee.config.ModelConfig without vocab_size
    [model.moe]                  # a target's mixture
    [training]                   # TrainingSettings
    [routing]                    # RoutingSettings, with [model.moe]
    [distill]                    # DistillSettings, optional, for a draft

Paths are relative to the folder in which the command runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from journee.config import ConfigError, ModelConfig

Kind = TypeVar("Kind")


class SettingsError(ConfigError):
    """A TOML file can't configure a run; the message names the setting."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Steps of `batch` windows of `sequence` tokens; lengths in steps, `save_every` in seconds."""

    steps: int
    batch: int
    sequence: int
    learning_rate: float
    warmup: int = 50
    weight_decay: float = 0.1
    clip: float = 1.0
    save_every: float = 60.0


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    """Weights of the routing losses beside cross-entropy, and the margin of the prior's hinge."""

    prior: float = 0.05
    balance: float = 0.02
    margin: float = 1.0


@dataclass(frozen=True, slots=True)
class DistillSettings:
    """A trained target to learn from, and the share of the loss that it gets (the rest is the text's own)."""

    target: str
    weight: float = 0.9


@dataclass(frozen=True, slots=True)
class Settings:
    """One run. `role` is "target" or "draft"; `corpus` None is the standard library."""

    role: str
    seed: int
    out: Path
    corpus: Path | None
    model: ModelConfig
    training: TrainingSettings
    routing: RoutingSettings | None
    distill: DistillSettings | None

    def fingerprint(self) -> dict[str, Any]:
        """What a resumed run must share with the broken one, as plain values; its length is judged apart."""
        plain = asdict(self)
        del plain["out"], plain["training"]["save_every"], plain["training"]["steps"]
        return plain | {"corpus": None if self.corpus is None else str(self.corpus)}


TABLES = ("tokenizer", "model", "training", "routing", "distill")
TOP = ("seed", "out", "corpus", *TABLES)


def read_settings(path: Path, role: str) -> Settings:
    """The settings in the TOML file at `path`."""
    if not path.is_file():
        raise SettingsError(
            f"configuration {path} does not exist; the tiny ones are configs/tiny_target.toml and tiny_draft.toml"
        )
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from error
    try:
        return parse_settings(values, role)
    except ConfigError as error:
        raise SettingsError(f"{path}: {error}") from error


def parse_settings(values: Mapping[str, Any], role: str) -> Settings:
    """The settings in a parsed TOML document."""
    _known("the file", values, TOP)
    for name in ("tokenizer", "model", "training"):
        if name not in values:
            raise SettingsError(f"the table [{name}] is missing; add it")
    for name, kind in (("seed", int), ("out", str), ("corpus", str)):
        if name in values and type(values[name]) is not kind:
            raise SettingsError(f"{name} is {values[name]!r}; expected {kind.__name__}")
    tokenizer = values["tokenizer"]
    _known("[tokenizer]", tokenizer, ("vocab_size",))
    if "vocab_size" in values["model"]:
        raise SettingsError("[model] has no setting vocab_size; set it in [tokenizer]")
    model = ModelConfig.from_dict({**values["model"], "vocab_size": tokenizer.get("vocab_size", 1024)})
    routing = _table("routing", RoutingSettings, values.get("routing", {})) if model.moe else None
    if "routing" in values and routing is None:
        raise SettingsError("[routing] needs a mixture; add [model.moe] or take [routing] out")
    training = _training(values["training"])
    if training.sequence > model.context_length:
        raise SettingsError(
            f"training.sequence is {training.sequence}, more than model.context_length = {model.context_length}; "
            "lower the one or raise the other"
        )
    distill = _table("distill", DistillSettings, values["distill"]) if "distill" in values else None
    return Settings(
        role=role,
        seed=values.get("seed", 1),
        out=Path(values.get("out", f"checkpoints/{role}.pt")),
        corpus=Path(values["corpus"]) if "corpus" in values else None,
        model=model,
        training=training,
        routing=routing,
        distill=distill,
    )


def _training(values: Mapping[str, Any]) -> TrainingSettings:
    settings = _table("training", TrainingSettings, values)
    for name in ("steps", "batch", "sequence"):
        if getattr(settings, name) < 1:
            raise SettingsError(f"training.{name} is {getattr(settings, name)}; expected at least 1")
    if settings.learning_rate <= 0 or settings.clip <= 0:
        raise SettingsError("training.learning_rate and training.clip must be above 0")
    return settings


def _table(name: str, kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """A dataclass from its table: names, presence and types checked."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    _known(f"[{name}]", values, tuple(known))
    missing = [field.name for field in known.values() if field.default is MISSING and field.name not in values]
    if missing:
        raise SettingsError(f"[{name}] lacks {', '.join(missing)}; add it")
    for key, value in values.items():
        wanted = {"int": (int,), "float": (int, float), "str": (str,)}[str(known[key].type)]
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise SettingsError(f"{name}.{key} is {value!r}; expected {known[key].type}")
    return kind(**values)


def _known(where: str, values: object, known: tuple[str, ...]) -> None:
    if not isinstance(values, Mapping):
        raise SettingsError(f"{where} is {values!r}; expected a table of settings")
    unknown = sorted(str(key) for key in values if key not in known)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if unknown:
        raise SettingsError(f"{where} has no setting {', '.join(unknown)}; it has {', '.join(known)}")
