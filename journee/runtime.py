"""The PyTorch reference runtime: opens checkpoints behind the protocol of `journee_deploy.runtime`.

It is what ONNX graphs are compared with, and what `python -m journee.benchmark` runs before anything is
exported. Its row rule is looked for like any other's, and may well be none: PyTorch picks kernels by shape.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from journee.attention import Cache
from journee.checkpoint import load_checkpoint, weights_hash
from journee.model import Decoder
from journee_deploy.forward import Ids
from journee_deploy.processor import processor_name, usable_threads
from journee_deploy.row_rule import CHUNK
from journee_deploy.row_rule_cache import RuleKey
from journee_deploy.runtime import Model, OpenOptions, Rows, RuntimeFailure
from journee_deploy.slot_runner import Facts
from journee_deploy.slots import SlotModel


class TorchRuntime:
    """The runtime `torch`."""

    @property
    def name(self) -> str:
        return "torch"

    def providers(self) -> tuple[str, ...]:
        return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)

    def opens(self, source: Path) -> bool:
        """A file; `open` says whether it is a checkpoint."""
        return source.is_file()

    def open(self, source: Path, role: str, options: OpenOptions) -> Model:
        if options.provider not in self.providers():
            known = ", ".join(self.providers())
            raise RuntimeFailure(f"no provider {options.provider!r} here; there are: {known}; choose one of those")
        if options.graph is not None:
            raise RuntimeFailure(f"{source}: a checkpoint has no graph {options.graph!r}; leave it out")
        decoder = load_checkpoint(source).model()
        return open_decoder(decoder, f"{source.name} {role}", options)


def open_decoder(decoder: Decoder, name: str, options: OpenOptions) -> Model:
    """A model of a decoder in memory; it is moved to the provider."""
    threads = options.threads or usable_threads()
    config = decoder.config
    forward = TorchForward(decoder.eval().to(options.provider), options.provider, threads)
    model = SlotModel(forward, Facts(name, config.vocab_size, config.context_length))
    if options.row_rule:
        model.settle(rule_key(decoder, options.provider, threads))
    return model


def rule_key(decoder: Decoder, provider: str, threads: int) -> RuleKey | None:
    """What a row rule is remembered by, on CPU alone."""
    if provider != "cpu":
        return None
    shape = json.dumps(decoder.config.to_dict(), sort_keys=True)
    return RuleKey(
        graph=hashlib.sha256(shape.encode()).hexdigest(),
        weights=weights_hash(decoder.state_dict()),
        variant=f"concat, rows kept True, chunk {CHUNK}",
        runtime=f"torch {torch.__version__}",
        provider=provider,
        options=torch.backends.cpu.get_cpu_capability(),
        processor=processor_name(),
        threads=threads,
    )


class TorchForward:
    """A `journee_deploy.forward.Forward` over a decoder. PyTorch has one thread count a process: each run sets it."""

    def __init__(self, decoder: Decoder, device: str, threads: int) -> None:
        self._decoder = decoder
        self._device = device
        self._threads = threads

    def empty(self) -> list[Cache]:
        return [(key.to(self._device), value.to(self._device)) for key, value in self._decoder.empty_cache()]

    def run(self, past: list[Cache], tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, list[Cache]]:
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        with torch.inference_mode():
            ids, real, places = (self._tensor(part) for part in (tokens, mask, positions))
            states, present = self._decoder.hidden(ids, real, places, past)
            logits = self._decoder.head(states[:, -keep:])
        return np.array(logits[0].cpu().numpy(), np.float32), present

    @property
    def in_place(self) -> bool:
        return False

    def free(self, cache: list[Cache]) -> None:
        """Tensors go with their last reference."""

    def trim(self, cache: list[Cache], length: int) -> list[Cache]:
        return [(_first(key, length), _first(value, length)) for key, value in cache]

    def invent(self, length: int, seed: int) -> list[Cache]:
        """Normal values."""
        chance = torch.Generator().manual_seed(seed)
        shapes = [(key.shape[1], key.shape[3]) for key, _ in self._decoder.empty_cache()]
        return [
            (self._normal(heads, length, width, chance), self._normal(heads, length, width, chance))
            for heads, width in shapes
        ]

    def close(self) -> None:
        """The decoder goes with this object."""

    def _tensor(self, part: Ids) -> Tensor:
        return torch.as_tensor(part, device=self._device)[None]

    def _normal(self, heads: int, length: int, width: int, chance: torch.Generator) -> Tensor:
        return torch.randn((1, heads, length, width), generator=chance).to(self._device)


def _first(part: Tensor, length: int) -> Tensor:
    return part[:, :, :length].clone()
