"""Checkpoints: one file that holds a model, its tokenizer and where both came from.

Rules:

1. written whole or not at all: to a temporary file beside it, then `os.replace`;
2. read with `weights_only=True`: numbers and text, never code;
3. weights are stored in float16, exactly those that were evaluated (rounded before), and loaded into float32;
4. the tokenizer.json is inside, and its hash and the corpus hash say which drafts go with which targets (`check_pair`);
5. a hash over the weights is checked on loading.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile, ZipFile

import torch
from torch import Tensor

from journee.config import ConfigError, ModelConfig
from journee.model import Decoder
from journee.tokenizer import END_OF_TEXT_ID, tokenizer_hash

FORMAT = "journee.checkpoint"
VERSION = 1


class CheckpointError(ValueError):
    """A checkpoint can't be used; the message says which, what was wrong, and what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint file holds. `held_out_loss` is in nats a token; `measured` holds further figures by name."""

    role: str
    config: ModelConfig
    tokenizer: str
    corpus: str
    corpus_hash: str
    interpreter: str
    held_out_loss: float
    bits_per_byte: float
    steps: int
    seed: int
    weights: dict[str, Tensor] = field(repr=False)
    measured: dict[str, float] = field(default_factory=dict[str, float])
    source: str = "a checkpoint"

    @property
    def end_of_sequence(self) -> int:
        """The id that ends a text."""
        return END_OF_TEXT_ID

    @property
    def tokenizer_hash(self) -> str:
        """SHA-256 of the tokenizer.json."""
        return tokenizer_hash(self.tokenizer)

    def model(self) -> Decoder:
        """The decoder with these weights, in float32 and evaluation mode."""
        model = Decoder(self.config)
        try:
            model.load_state_dict(self.weights)
        except RuntimeError as error:
            raise CheckpointError(f"{self.source}: its weights don't fit its own configuration: {error}") from error
        return model.eval()


def rounded(model: Decoder) -> dict[str, Tensor]:
    """The model's weights as float16; a weight beyond its range is refused."""
    weights = {name: value.detach().to(torch.float16) for name, value in model.state_dict().items()}
    broken = [name for name, value in weights.items() if not value.isfinite().all()]
    if broken:
        raise CheckpointError(f"{broken[0]} is not finite in float16; the training diverged: lower its learning rate")
    return weights


def weights_hash(weights: dict[str, Tensor]) -> str:
    """SHA-256 over names, shapes and bytes of the weights, in the order of their names."""
    digest = sha256()
    for name in sorted(weights):
        value = weights[name].contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


def write_atomically(content: object, path: Path) -> None:
    """`torch.save` to a temporary file beside `path`, then replace it; nothing half-written stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write the checkpoint to `path` (rule 1)."""
    content = {name: getattr(checkpoint, name) for name in _PLAIN}
    content |= {
        "format": FORMAT,
        "version": VERSION,
        "config": checkpoint.config.to_dict(),
        "tokenizer_hash": checkpoint.tokenizer_hash,
        "weights_hash": weights_hash(checkpoint.weights),
    }
    write_atomically(content, path)


_PLAIN = (
    "role",
    "tokenizer",
    "corpus",
    "corpus_hash",
    "interpreter",
    "held_out_loss",
    "bits_per_byte",
    "steps",
    "seed",
    "weights",
    "measured",
)
"""Fields that are stored as they are; the others are derived on writing and checked on reading."""


def load_checkpoint(path: Path | str) -> Checkpoint:
    """The checkpoint at `path`; refuses files that are missing, damaged, of another kind or another version."""
    path = Path(path)
    content = read_atomic(path)
    values = cast(dict[str, Any], content if isinstance(content, dict) else {})
    if values.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this project; make one with scripts/train_target.py")
    if values.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has checkpoint version {values.get('version')!r}, this program reads {VERSION}; train it again"
        )
    missing = [name for name in (*_PLAIN, "config", "tokenizer_hash", "weights_hash") if name not in values]
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}; train it again")
    _check_kinds(path, values)
    _check_hash(path, "tokenizer", values["tokenizer_hash"], tokenizer_hash(values["tokenizer"]))
    _check_hash(path, "weights", values["weights_hash"], weights_hash(values["weights"]))
    return Checkpoint(
        config=_config(path, values["config"]), source=str(path), **{name: values[name] for name in _PLAIN}
    )


_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("role", "tokenizer", "corpus", "corpus_hash", "interpreter"), str),
    **dict.fromkeys(("tokenizer_hash", "weights_hash"), str),
    **dict.fromkeys(("held_out_loss", "bits_per_byte"), (int, float)),
    **dict.fromkeys(("steps", "seed"), int),
    **dict.fromkeys(("config", "weights", "measured"), dict),
}


def _check_kinds(path: Path, values: dict[str, Any]) -> None:
    wrong = [name for name, kind in _KINDS.items() if not isinstance(values[name], kind)]
    inner: list[tuple[str, type, type | tuple[type, ...]]] = [
        ("weights", str, Tensor),
        ("measured", str, (int, float)),
    ]
    for name, key, kind in inner if not wrong else []:
        if not all(isinstance(k, key) and isinstance(value, kind) for k, value in values[name].items()):
            wrong.append(name)
    if wrong:
        raise CheckpointError(f"{path}: {', '.join(wrong)} in it can't be what was written; train it again")
    for name, weight in values["weights"].items():
        if weight.dtype is not torch.float16 or weight.layout is not torch.strided:
            raise CheckpointError(
                f"{path}: {name} is {weight.dtype}, {weight.layout}; weights are dense float16: train it again"
            )


def _config(path: Path, values: dict[str, Any]) -> ModelConfig:
    try:
        return ModelConfig.from_dict(values)
    except (ConfigError, TypeError) as error:  # TypeError: a text where a number is expected
        raise CheckpointError(f"{path}: its configuration describes no model: {error}; train it again") from error


def check_role(checkpoint: Checkpoint, role: str) -> None:
    """Refuse a checkpoint that was not trained as `role` ("target" or "draft")."""
    if checkpoint.role != role:
        raise CheckpointError(
            f"{checkpoint.source} was trained as a {checkpoint.role}, but is given as the {role}; "
            f"give a checkpoint of scripts/train_{role}.py (are the two swapped?)"
        )


def check_pair(target: Checkpoint, draft: Checkpoint) -> None:
    """Refuse checkpoints of other roles, and a draft whose tokenizer or corpus is not the target's."""
    check_role(target, "target")
    check_role(draft, "draft")
    for what, ours, theirs in (
        ("tokenizer", target.tokenizer_hash, draft.tokenizer_hash),
        ("corpus", target.corpus_hash, draft.corpus_hash),
    ):
        if ours != theirs:
            raise CheckpointError(
                f"{what} mismatch: draft {draft.source} has {theirs[:12]} ({draft.config.vocab_size} tokens, "
                f"{draft.interpreter}), target {target.source} has {ours[:12]} ({target.config.vocab_size} tokens, "
                f"{target.interpreter}); train the draft again on the target's corpus and [tokenizer] settings, "
                "with the same interpreter if the corpus is its standard library"
            )


def read_atomic(path: Path) -> Any:
    """The content of a file that `write_atomically` wrote; refuses one that is missing or damaged."""
    if not path.is_file():
        raise CheckpointError(
            f"checkpoint {path} does not exist; train one with scripts/train_target.py or train_draft.py"
        )
    try:
        with ZipFile(path) as parts:
            damaged = parts.testzip()
        if damaged:
            raise BadZipFile(f"its part {damaged} is damaged")
        return torch.load(path, map_location="cpu", weights_only=True)
    except (BadZipFile, RuntimeError, EOFError, OSError, ValueError, LookupError, pickle.UnpicklingError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(
            f"{path} is no readable checkpoint, or a truncated one ({reason}); get it again"
        ) from error


def _check_hash(path: Path, what: str, expected: str, actual: str) -> None:
    if expected != actual:
        raise CheckpointError(
            f"{path}: the {what} in it has SHA-256 {actual[:12]}, expected {expected[:12]}; damaged, get it again"
        )
