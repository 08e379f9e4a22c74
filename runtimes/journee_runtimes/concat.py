"""Runs a `concat` graph: the cache goes in, and comes out grown by the rows that were run.

The cache is kept as host arrays, which the CPU provider takes without a copy. On CUDA that copies it to the
device and back in each run: right, but not fast, and not yet tried on a device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from journee_deploy.bundle import BundleRole
from journee_deploy.forward import Ids
from journee_deploy.runtime import Rows, RuntimeFailure
from journee_runtimes.session import Session, first_line

Arrays = tuple[NDArray[Any], ...]
"""A cache: key and value of each layer in turn, [1, kv_heads, tokens, head_dim]."""


class ConcatForward:
    """A `journee_deploy.forward.Forward` over a session of a `concat` graph."""

    def __init__(self, session: Session, role: BundleRole, cache_type: str) -> None:
        self._session: Session | None = session
        self._place = str(role.graph)
        self._inputs = role.inputs
        self._outputs = role.outputs.names()
        pairs = zip(role.inputs.past_keys, role.inputs.past_values, strict=True)
        self._past = tuple(name for pair in pairs for name in pair)
        self._shape = (role.kv_heads, role.head_dim)
        self._type = np.float16 if cache_type == "tensor(float16)" else np.float32

    def empty(self) -> Arrays:
        return tuple(np.zeros(self._size(0), self._type) for _ in self._past)

    def run(self, past: Arrays, tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, Arrays]:
        names = self._inputs
        feeds: dict[str, NDArray[Any]] = dict(zip(self._past, past, strict=True))
        feeds |= {names.tokens: tokens[None], names.mask: mask[None]}
        if names.positions:
            feeds[names.positions] = positions[None]
        if names.rows_kept:
            feeds[names.rows_kept] = np.array(keep, np.int64)
        logits, *present = self._answers(feeds)
        if logits.ndim != 3 or logits.shape[0] != 1:
            raise RuntimeFailure(
                f"{self._place}: logits have shape {list(logits.shape)}, expected [1, rows, vocabulary]"
            )
        return np.array(logits[0, -keep:], np.float32), tuple(present)

    def _answers(self, feeds: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        assert self._session is not None
        try:
            return list(self._session.run(self._outputs, feeds))
        except Exception as error:  # noqa: BLE001  (ONNX Runtime raises a class of its own a status)
            raise RuntimeFailure(f"{self._place}: the run failed: {first_line(error)}") from None

    @property
    def in_place(self) -> bool:
        return False

    def free(self, cache: Arrays) -> None:
        """Arrays go with their last reference."""

    def trim(self, cache: Arrays, length: int) -> Arrays:
        return tuple(np.ascontiguousarray(part[:, :, :length]) for part in cache)

    def invent(self, length: int, seed: int) -> Arrays:
        """Normal values, 64 tokens of them repeated."""
        chance = np.random.default_rng(seed)
        made: list[NDArray[Any]] = []
        for _ in self._past:
            block = chance.standard_normal(self._size(min(64, length)), np.float32).astype(self._type)
            made.append(np.tile(block, (1, 1, -(-length // 64), 1))[:, :, :length].copy())
        return tuple(made)

    def close(self) -> None:
        self._session = None

    def _size(self, length: int) -> tuple[int, int, int, int]:
        heads, width = self._shape
        return 1, heads, length, width
