"""What is exported: a decoder with all that a bundle says of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from journee.checkpoint import Checkpoint, check_pair, check_role, load_checkpoint
from journee.model import Decoder
from journee.tokenizer import END_OF_TEXT, END_OF_TEXT_ID
from journee_deploy.bundle import file_record
from journee_deploy.manifest import Source
from journee_deploy.typed_json import Json


@dataclass(frozen=True)
class RoleSource:
    """One role's model. `tokenizer` is the text of tokenizer.json; `end_of_text` its token that ends a text, and its
    id.
    """

    decoder: Decoder
    tokenizer: str
    corpus_hash: str
    origin: Source
    end_of_text: tuple[str, int] = field(default=(END_OF_TEXT, END_OF_TEXT_ID))


def load_sources(target: Path, draft: Path | None) -> dict[str, RoleSource]:
    """The roles by name, from checkpoint files.

    CheckpointError if one is no checkpoint or was trained for the other role, or if the draft is not the target's.
    """
    checkpoints = {"target": load_checkpoint(target)}
    check_role(checkpoints["target"], "target")
    if draft is not None:
        checkpoints["draft"] = load_checkpoint(draft)
        check_pair(checkpoints["target"], checkpoints["draft"])
    return {name: _source(checkpoint) for name, checkpoint in checkpoints.items()}


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
