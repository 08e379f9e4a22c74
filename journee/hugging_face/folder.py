"""A Hugging Face folder: config.json, safetensors and tokenizer.json, read whole and checked before anything is traced.

Rules:

1. nothing in the folder is run: no pickle is loaded, no code of the folder's own, and nothing is fetched;
2. weights are float32 in memory, widened exactly from what the files hold (float32, float16 or bfloat16);
3. the vocabulary is the tokenizer's: rows of embedding and head past it belong to no token, and are dropped;
4. generation_config.json says which tokens end a text where there is one, or else config.json, as transformers has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import torch
from tokenizers import Tokenizer

from journee.hugging_face.architectures import read_architecture
from journee.hugging_face.decoder import ForeignDecoder
from journee.hugging_face.errors import FolderError
from journee.hugging_face.settings import Settings, read_json
from journee.hugging_face.weights import WeightFiles, load_weights, open_weights
from journee_deploy.bundle import file_record
from journee_deploy.manifest import LONGEST_CONTEXT

LARGEST_PADDING = 1024
"""Rows that a vocabulary may be padded by; more say that the tokenizer is another model's."""
PRIVATE = ("_name_or_path",)
"""Settings that hold a path of the machine that wrote them."""
TEMPLATE = "chat_template.jinja"


@dataclass(frozen=True)
class ModelFolder:
    """A model read from a folder.

    tokenizer   the text of tokenizer.json
    ends        tokens that end a text, maybe none
    config      config.json as it was, less what only its writer's machine knows
    files       what goes into the bundle beside graph and tokenizer, by name: JSON objects, or text
    stored      the type of the weights in the files
    sha256      of the weights: of the one file, or of the list of shards with theirs
    """

    decoder: ForeignDecoder
    tokenizer: str
    ends: tuple[int, ...]
    config: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any] | str]
    stored: str
    sha256: str


def read_folder(folder: Path) -> ModelFolder:
    """The model in `folder`; FolderError says what is wrong with it and what to do."""
    if not (folder / "config.json").is_file():
        raise FolderError(f"{folder} has no config.json; give a folder of a Hugging Face model, or a checkpoint file")
    settings = Settings(str(folder / "config.json"), read_json(folder / "config.json"))
    architecture = read_architecture(settings)
    shape = architecture.shape(settings)
    if shape.context_length > LONGEST_CONTEXT:
        raise settings.wrong("max_position_embeddings", f"at most {LONGEST_CONTEXT}, which bundles can say")
    weights = open_weights(folder)
    tokenizer, size = _read_tokenizer(folder, shape.vocab_size, architecture.rowless)
    config = {name: value for name, value in settings.values.items() if name not in PRIVATE}
    generation = _optional(folder / "generation_config.json")
    ends = _ends(folder, settings.values if generation is None else generation, size)
    files = _files(folder, config, generation, size, shape.context_length)
    with torch.device("meta"):  # without drawing weights that are replaced
        decoder = ForeignDecoder(replace(shape, vocab_size=size))
    load_weights(decoder, architecture, weights, shape.vocab_size)
    return ModelFolder(decoder.eval(), tokenizer, ends, config, files, weights.stored(), _hash(weights))


def same_tokenizer(ours: str, theirs: str) -> bool:
    """Whether two tokenizer.json encode and decode alike. How they cut and pad may differ: it is never asked for."""
    first, second = (cast(dict[str, Any], json.loads(text)) for text in (ours, theirs))
    return all(
        first.get(name) == second.get(name)
        for name in {*first, *second}
        if name not in ("version", "truncation", "padding")
    )


def _read_tokenizer(folder: Path, vocabulary: int, rowless: tuple[str, ...]) -> tuple[str, int]:
    """The text of tokenizer.json and the number of its tokens; FolderError unless they are the model's. Tokens
    `rowless` that the model has no row for are taken out.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise FolderError(
            f"{folder} has no tokenizer.json; where it has a tokenizer of another kind, convert it, with transformers: "
            "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
        )
    try:
        text = _with_rows(path.read_text(encoding="utf-8"), vocabulary, rowless)
        tokenizer: Any = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise FolderError(f"{path} is no tokenizer.json: {error}; get it again") from error
    size = int(tokenizer.get_vocab_size(with_added_tokens=True))
    ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    if max(ids.values(), default=-1) != size - 1:
        raise FolderError(f"{path}: {size} tokens have ids up to {max(ids.values(), default=-1)}; expected no gaps")
    if not vocabulary - LARGEST_PADDING <= size <= vocabulary:
        raise FolderError(
            f"{path} has {size} tokens and config.json says vocab_size {vocabulary}; expected as many, or fewer by "
            f"up to {LARGEST_PADDING} that pad: is it the tokenizer of another model?"
        )
    _check_names(folder, ids)
    return text, size


def _with_rows(text: str, vocabulary: int, rowless: tuple[str, ...]) -> str:
    """A tokenizer.json without those of the tokens `rowless` that the vocabulary ends before; else as it is."""
    if not any(token in text for token in rowless):
        return text
    value = cast(dict[str, Any], json.loads(text))
    added = cast(list[dict[str, Any]], value["added_tokens"])
    kept = [token for token in added if token["content"] not in rowless or token["id"] < vocabulary]
    if len(kept) == len(added):
        return text
    return json.dumps(value | {"added_tokens": kept}, ensure_ascii=False, indent=2)


def _check_names(folder: Path, ids: Mapping[str, int]) -> None:
    """Refuse a tokenizer that lacks the tokens its own settings name."""
    settings = _optional(folder / "tokenizer_config.json") or {}
    for name in ("bos_token", "eos_token"):
        token: Any = settings.get(name)
        content = cast(dict[str, Any], token).get("content") if isinstance(token, dict) else token
        if isinstance(content, str) and content not in ids:
            raise FolderError(
                f"{folder}: tokenizer_config.json has {name} {content!r}, which tokenizer.json lacks; "
                "is it the tokenizer of another model?"
            )


def _ends(folder: Path, settings: Mapping[str, Any], size: int) -> tuple[int, ...]:
    given: Any = settings.get("eos_token_id")
    ends: list[Any] = [] if given is None else [given]
    if isinstance(given, list):
        ends = given  # pyright: ignore[reportUnknownVariableType]
    for end in ends:
        if not isinstance(end, int) or isinstance(end, bool) or not 0 <= end < size:
            raise FolderError(
                f"{folder}: eos_token_id is {given!r}, and tokenizer.json has tokens 0 to {size - 1}; "
                "is it the tokenizer of another model?"
            )
    return tuple(dict.fromkeys(ends))


def _files(
    folder: Path, config: dict[str, Any], generation: dict[str, Any] | None, size: int, context_length: int
) -> dict[str, Mapping[str, Any] | str]:
    """What the bundle's folder holds beside graph and tokenizer: the model's own files, true to the graph."""
    named = {name: config[name] for name in ("bos_token_id", "eos_token_id") if config.get(name) is not None}
    dtype = "dtype" if "dtype" in config else "torch_dtype"
    files: dict[str, Mapping[str, Any] | str] = {
        "config.json": config | {"vocab_size": size, dtype: "float32"},
        "generation_config.json": named if generation is None else generation,
        "tokenizer_config.json": _optional(folder / "tokenizer_config.json")
        or {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": context_length},
    }
    if (folder / TEMPLATE).is_file():
        files[TEMPLATE] = (folder / TEMPLATE).read_text(encoding="utf-8")
    return files


def _optional(path: Path) -> dict[str, Any] | None:
    return read_json(path) if path.is_file() else None


def _hash(weights: WeightFiles) -> str:
    hashes = {path.name: file_record(path).sha256 for path in weights.files}
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    return sha256("".join(f"{found}  {name}\n" for name, found in hashes.items()).encode()).hexdigest()
