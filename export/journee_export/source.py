"""What is exported: a decoder with all that a bundle says of it, from a checkpoint file of this project or from a
Hugging Face folder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from journee.causal import CausalDecoder
from journee.checkpoint import Checkpoint, check_pair, check_role, load_checkpoint
from journee.hugging_face.errors import FolderError
from journee.hugging_face.folder import read_folder, same_tokenizer
from journee.tokenizer import END_OF_TEXT, END_OF_TEXT_ID
from journee_deploy.bundle import file_record
from journee_deploy.manifest import Source
from journee_deploy.typed_json import Json
from journee_export.quantize import Precision

COMPUTED = "float32"
NO_CORPUS = "0" * 64
"""The corpus hash of a model whose corpus is not known."""


@dataclass(frozen=True)
class RoleSource:
    """One role's model. `tokenizer` is the text of tokenizer.json; `end_of_text` its token that ends a text, and its
    id; `precision` of the weights that are written. Of a foreign model, `ends` are the tokens that end a text, and
    `files` what its folder in the bundle holds beside graph and tokenizer.
    """

    decoder: CausalDecoder
    tokenizer: str
    corpus_hash: str
    origin: Source
    end_of_text: tuple[str, int] = field(default=(END_OF_TEXT, END_OF_TEXT_ID))
    precision: Precision = "float32"
    ends: tuple[int, ...] = (END_OF_TEXT_ID,)
    files: Mapping[str, Mapping[str, Json] | str] | None = None


def load_sources(
    target: Path, draft: Path | Precision | None, precision: Precision = "float32"
) -> dict[str, RoleSource]:
    """The roles by name, from two checkpoint files or two folders; `precision` is the draft's. A draft "int8" or "int4"
    is the target itself, quantized.

    CheckpointError if one is no checkpoint or was trained for the other role, FolderError if one is no folder that can
    be exported, and either if the draft is not the target's.
    """
    if isinstance(draft, Path):
        return _load_pair(target, draft, precision)
    roles = {"target": _foreign(target) if target.is_dir() else _checked(target)}
    if draft is not None:
        roles["draft"] = replace(roles["target"], precision=draft)
    return roles


def _load_pair(target: Path, draft: Path, precision: Precision) -> dict[str, RoleSource]:
    if target.is_dir() and draft.is_dir():
        first, second = _foreign(target), _foreign(draft)
        if not same_tokenizer(first.tokenizer, second.tokenizer):
            raise FolderError(
                f"tokenizer mismatch: {draft / 'tokenizer.json'} differs from {target / 'tokenizer.json'}; "
                "give a draft of the target's family, or --draft int8, or none and load the bundle with an ngram draft"
            )
        return {"target": first, "draft": replace(second, tokenizer=first.tokenizer, precision=precision)}
    if (target.is_dir() and draft.is_file()) or (target.is_file() and draft.is_dir()):
        raise FolderError(f"{target} and {draft} are a folder and a checkpoint file; give two of a kind")
    checkpoint = load_checkpoint(target)
    check_role(checkpoint, "target")
    drafting = load_checkpoint(draft)
    check_pair(checkpoint, drafting)
    return {"target": _source(checkpoint), "draft": replace(_source(drafting), precision=precision)}


def _checked(target: Path) -> RoleSource:
    checkpoint = load_checkpoint(target)
    check_role(checkpoint, "target")
    return _source(checkpoint)


def _foreign(folder: Path) -> RoleSource:
    found = read_folder(folder)
    figures: dict[str, Json] = {"weights_in_the_folder": found.stored, "computed_in": COMPUTED}
    origin = Source(found.sha256, dict(found.config), figures)
    return RoleSource(found.decoder, found.tokenizer, NO_CORPUS, origin, ends=found.ends, files=found.files)


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
