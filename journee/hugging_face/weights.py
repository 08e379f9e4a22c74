"""Safetensors files to a decoder's parameters, widened exactly to float32.

Pickled weights are refused, not read: reading them runs what they hold. A tensor that the decoder lacks is refused too,
since a model that leaves it out would be another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from journee.hugging_face.architectures import PART, Architecture
from journee.hugging_face.decoder import ForeignDecoder
from journee.hugging_face.errors import FolderError
from journee.hugging_face.settings import read_json

safetensors: Any = import_module("safetensors")

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
FLOATS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""Types that are read, as the files spell them: those that float32 holds exactly."""
BUFFERS = re.compile(r"(.*\.)?(rotary_emb\.inv_freq|attn\.(bias|masked_bias))")
"""Tensors of older files that hold no weights."""


@dataclass(frozen=True)
class WeightFiles:
    """The open files of one model: where each tensor is."""

    folder: Path
    files: tuple[Path, ...]
    tensors: dict[str, tuple[Any, str]]

    def read(self, name: str) -> Tensor:
        """One tensor in float32."""
        file, _ = self.tensors[name]
        tensor: Tensor = file.get_tensor(name)
        return tensor.to(torch.float32)

    def stored(self) -> str:
        """The types of the weights, the most frequent first."""
        kinds = [FLOATS[kind] for name, (_, kind) in self.tensors.items() if not BUFFERS.fullmatch(name)]
        return " and ".join(sorted(set(kinds), key=lambda kind: (-kinds.count(kind), kind)))


def open_weights(folder: Path) -> WeightFiles:
    """The weights of a folder; FolderError if there are none, or not all, or none that may be read."""
    files, expected = _files(folder)
    tensors: dict[str, tuple[Any, str]] = {}
    for path in files:
        try:
            file = safetensors.safe_open(path, framework="pt")
            kinds = {name: str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118  (no mapping)
        except (OSError, safetensors.SafetensorError) as error:
            raise FolderError(f"{path} is no readable safetensors file ({error}); get it again") from error
        for name, kind in kinds.items():
            if kind not in FLOATS and not BUFFERS.fullmatch(name):
                raise FolderError(
                    f"{path}: {name} is stored as {kind}; expected one of {', '.join(FLOATS)}: "
                    "give the folder with float weights that it was made from"
                )
            tensors[name] = file, kind
    if missing := sorted(expected.difference(tensors)):
        raise FolderError(f"{folder / INDEX} names {missing[0]}, which no file holds; get the folder again")
    return WeightFiles(folder, tuple(files), tensors)


def _files(folder: Path) -> tuple[list[Path], set[str]]:
    """The files, and the tensors that an index says are there."""
    if (folder / WHOLE).is_file():
        return [folder / WHOLE], set()
    if (folder / INDEX).is_file():
        return _shards(folder)
    if (folder / "adapter_config.json").is_file():
        raise FolderError(f"{folder} holds an adapter, not a model; merge it into its model and give that folder")
    if found := sorted(path.name for path in folder.glob("*.safetensors")):
        raise FolderError(f"{folder} has {found[0]} but neither {WHOLE} nor {INDEX}; get the whole folder")
    if found := sorted(path.name for kind in PICKLED for path in folder.glob(kind)):
        raise FolderError(
            f"{folder} has pickled weights ({found[0]}), which are not read: loading a pickle runs the code in it; "
            f"convert them where you trust them, with transformers: "
            f"AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(OTHER, safe_serialization=True)"
        )
    raise FolderError(f"{folder} has no weights; expected {WHOLE}, or shards with {INDEX}")


def _shards(folder: Path) -> tuple[list[Path], set[str]]:
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise FolderError(f"{folder / INDEX} has no weight_map; get the folder again")
    names = sorted({str(place) for place in places.values()})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise FolderError(f"{folder / INDEX} names the file {json.dumps(name)}; expected safetensors beside it")
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise FolderError(
            f"{folder} lacks {', '.join(missing)} of the {len(names)} files that {INDEX} names; get what is missing"
        )
    return [folder / name for name in names], {str(name) for name in places}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def load_weights(decoder: ForeignDecoder, architecture: Architecture, files: WeightFiles, vocabulary: int) -> None:
    """Give `decoder` its parameters. The files' embedding has `vocabulary` rows; the decoder has those or fewer."""
    reader = _Reader(decoder, architecture, files, vocabulary)
    state = dict(reader.parameters())
    reader.check_nothing_left()
    decoder.load_state_dict(state, assign=True)


class _Reader:
    """Takes the tensors one by one, and knows which were not taken."""

    def __init__(
        self, decoder: ForeignDecoder, architecture: Architecture, files: WeightFiles, vocabulary: int
    ) -> None:
        self.shape = decoder.config
        self.expected = {name: tuple(parameter.shape) for name, parameter in decoder.named_parameters()}
        self.architecture = architecture
        self.files = files
        self.folder = files.folder
        self.vocabulary = vocabulary
        embedding = architecture.prefix + architecture.outer["embedding"]
        self.prefix = architecture.prefix if f"{embedding}.weight" in files.tensors else ""
        self.left = {name for name in files.tensors if not BUFFERS.fullmatch(name)}

    def parameters(self) -> Iterator[tuple[str, Tensor]]:
        for name in self.expected:
            module, _, kind = name.rpartition(".")
            value = self._value(module, kind)
            if self.shape.unit_norms and module.endswith(("norm", "_after")):
                value = 1 + value
            yield name, self._fitted(name, value)

    def check_nothing_left(self) -> None:
        head = "lm_head.weight"
        if self.shape.tied and head in self.left:
            embedding = f"{self.prefix}{self.architecture.outer['embedding']}.weight"
            if not torch.equal(self.files.read(head), self.files.read(embedding)):
                raise FolderError(
                    f"{self.folder}: {head} differs from {embedding}, and config.json has tie_word_embeddings "
                    "true; set it to false if the head is its own"
                )
            self.left.remove(head)
        if self.left:
            raise FolderError(
                f"{self.folder} holds {min(self.left)}, which a model of this type has no place for; "
                "is config.json of another model?"
            )

    def _value(self, module: str, kind: str) -> Tensor:
        if module == "projection":
            return self._take(f"lm_head.{kind}")
        if not module.startswith("blocks."):
            return self._take(f"{self.prefix}{self.architecture.outer[module]}.{kind}")
        _, layer, inner = module.split(".", 2)
        theirs, _, part = self.architecture.block[inner].partition(PART)
        tensor = self._take(f"{self.prefix}{self.architecture.blocks}.{layer}.{theirs}.{kind}")
        if self.architecture.transposed and tensor.dim() == 2:
            tensor = tensor.T
        return tensor.chunk(3)[int(part)] if part else tensor

    def _take(self, name: str) -> Tensor:
        if name not in self.files.tensors:
            hint = "set tie_word_embeddings if the head is the embedding" if name == "lm_head.weight" else ""
            raise FolderError(f"{self.folder}: no file holds {name}; {hint or 'is config.json of another model?'}")
        self.left.discard(name)
        tensor = self.files.read(name)
        if not tensor.isfinite().all():
            raise FolderError(f"{self.folder}: {name} holds a weight that is not finite; get the file again")
        return tensor

    def _fitted(self, name: str, tensor: Tensor) -> Tensor:
        """As the parameter `name`: without rows past the decoder's vocabulary."""
        expected = self.expected[name]
        if name in ("embedding.weight", "projection.weight") and tensor.shape[0] == self.vocabulary:
            tensor = tensor[: self.shape.vocab_size]
        elif name == "positions.weight" and tensor.shape[0] == self.shape.context_length:
            tensor = functional.pad(tensor, (0, 0, 0, expected[0] - tensor.shape[0]))  # for rows of padding
        if tuple(tensor.shape) != expected:
            raise FolderError(
                f"{self.folder}: the weights of {name} are {list(tensor.shape)}, and config.json "
                f"asks for {list(expected)}; is it of another model?"
            )
        return tensor.contiguous()
