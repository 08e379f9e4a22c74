"""What is exported: a decoder with all that a bundle says of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from journee.checkpoint import Checkpoint, check_pair, check_role, load_checkpoint
from journee.model import Decoder
from journee.tokenizer import END_OF_TEXT, END_OF_TEXT_ID
from journee_deploy.bundle import file_record
from journee_deploy.manifest import Source
from journee_deploy.typed_json import Json
from journee_export.quantize import Precision


@dataclass(frozen=True)
class RoleSource:
    """One role's model. `tokenizer` is the text of tokenizer.json; `end_of_text` its token that ends a text, and its
    id; `precision` of the weights that are written.
    """

    decoder: Decoder
    tokenizer: str
    corpus_hash: str
    origin: Source
    end_of_text: tuple[str, int] = field(default=(END_OF_TEXT, END_OF_TEXT_ID))
    precision: Precision = "float32"


def load_sources(
    target: Path, draft: Path | Precision | None, precision: Precision = "float32"
) -> dict[str, RoleSource]:
    """The roles by name, from checkpoint files; `precision` is the draft's. A draft "int8" or "int4" is the target
    itself, quantized.

    CheckpointError if one is no checkpoint or was trained for the other role, or if the draft is not the target's.
    """
    checkpoint = load_checkpoint(target)
    check_role(checkpoint, "target")
    roles = {"target": _source(checkpoint)}
    if isinstance(draft, Path):
        drafting = load_checkpoint(draft)
        check_pair(checkpoint, drafting)
        roles["draft"] = replace(_source(drafting), precision=precision)
    elif draft is not None:
        roles["draft"] = replace(roles["target"], precision=draft)
    return roles


def _source(checkpoint: Checkpoint) -> RoleSource:
    origin = Source(file_record(Path(checkpoint.source)).sha256, checkpoint.config.to_dict(), _figures(checkpoint))
    return RoleSource(checkpoint.model(), checkpoint.tokenizer, checkpoint.corpus_hash, origin)


def _figures(checkpoint: Checkpoint) -> dict[str, Json]:
    """What the checkpoint says of its training; a figure that is no finite number is left out."""
    figures = {
        "held_out_loss": checkpoint.held_out_loss,
        "bits_per_byte": checkpoint.bits_per_byte,
        "steps": checkpoint.steps,
        "seed": checkpoint.seed,
        **checkpoint.measured,
    }
    return {"interpreter": checkpoint.interpreter} | {
        name: value for name, value in figures.items() if math.isfinite(value)
    }
