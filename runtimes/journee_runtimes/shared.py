"""Runs a `shared` graph on the CPU provider: one buffer a layer and side, bound as past and as present.

A run copies nothing but its tokens and logits, and rewinding is naming a smaller length. What a buffer binds stays
bound; a run rebinds the mask and, where their number of rows has changed, tokens and logits. Buffers double when a
text outgrows them, up to the context and its padding, and are used again once their slot is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journee_deploy.bundle import BundleRole
from journee_deploy.forward import Ids
from journee_deploy.runtime import Rows, RuntimeFailure
from journee_deploy.slot_runner import LARGEST_PADDING
from journee_runtimes.session import Binding, Session, first_line

FIRST = 256
"""Tokens that a new buffer has room for."""
LEAST_ROWS = 2
"""Rows behind the past that a run may write, however few it has: a graph may pad a single one for its attention."""
KEPT = 64
"""Numbers of rows whose tokens, and logits, get a place of their own; more are rare, and as many as a prompt has."""
SPARE = 4
"""Released buffers that are kept for the next texts."""

Floats = NDArray[Any]


@dataclass(slots=True)
class Buffer:
    """Keys and values of one text, [1, kv_heads, capacity, head_dim] each, and the binding that holds them."""

    arrays: list[Floats]
    capacity: int
    binding: Binding
    rows: int = 0  # the number of rows that the tokens are bound for; 0 for none that lasts
    kept: int = 0  # the number of rows that the logits are bound for; 0 for none yet


class SharedForward:
    """A `journee_deploy.forward.Forward` over a session of a `shared` graph."""

    def __init__(self, session: Session, role: BundleRole, cache_type: str) -> None:
        self._session: Session | None = session
        self._place = str(role.graph)
        names, outputs = role.inputs, role.outputs
        self._names = names
        self._logits_name = outputs.logits
        pairs = zip(names.past_keys, names.past_values, outputs.present_keys, outputs.present_values, strict=True)
        self._bound = [place for key, value, *present in pairs for place in ((key, present[0]), (value, present[1]))]
        self._shape = (role.kv_heads, role.head_dim)
        self._type = np.float16 if cache_type == "tensor(float16)" else np.float32
        self._longest = role.context_length + LARGEST_PADDING
        self._vocabulary = role.vocabulary_size
        self._tokens: dict[int, Ids] = {}
        self._logits: dict[int, tuple[Floats, NDArray[np.int64]]] = {}
        self._spare: list[Buffer] = []

    @property
    def in_place(self) -> bool:
        return True

    def empty(self) -> Buffer:
        return self._spare.pop() if self._spare else self._buffer(min(FIRST, self._longest))

    def run(self, past: Buffer, tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, Buffer]:
        del positions  # they follow from the lengths
        held = len(mask) - len(tokens)
        if (needed := max(len(mask), held + LEAST_ROWS)) > past.capacity:
            self._grow(past, needed, held)
        logits = self._bind(past, tokens, mask, keep)
        try:
            self._opened().run_with_iobinding(past.binding)
        except Exception as error:  # noqa: BLE001  (ONNX Runtime raises a class of its own a status)
            raise RuntimeFailure(f"{self._place}: the run failed: {first_line(error)}") from None
        return np.array(logits[0], np.float32), past

    def trim(self, cache: Buffer, length: int) -> Buffer:
        del length
        return cache

    def free(self, cache: Buffer) -> None:
        if self._session is not None and len(self._spare) < SPARE:
            self._spare.append(cache)

    def invent(self, length: int, seed: int) -> Buffer:
        """Normal values, 64 tokens of them repeated."""
        chance = np.random.default_rng(seed)
        buffer = self._buffer(self._room(length))
        heads, width = self._shape
        for array in buffer.arrays:
            block = chance.standard_normal((1, heads, min(64, length), width), np.float32).astype(self._type)
            array[:, :, :length] = np.tile(block, (1, 1, -(-length // 64), 1))[:, :, :length]
        return buffer

    def close(self) -> None:
        self._session = None
        self._spare.clear()
        self._tokens.clear()
        self._logits.clear()

    def _opened(self) -> Session:
        assert self._session is not None
        return self._session

    def _room(self, length: int) -> int:
        """The capacity for so many tokens: doubled from FIRST on, at most what the graph has positions for."""
        room = FIRST
        while room < length:
            room *= 2
        return max(length, min(room, self._longest))

    def _buffer(self, capacity: int) -> Buffer:
        heads, width = self._shape
        arrays = [np.zeros((1, heads, capacity, width), self._type) for _ in self._bound]
        buffer = Buffer(arrays, capacity, self._opened().io_binding())
        self._bind_cache(buffer)
        return buffer

    def _grow(self, buffer: Buffer, length: int, held: int) -> None:
        """Room for `length` tokens; the first `held` stay."""
        larger = self._buffer(self._room(length))
        for old, new in zip(buffer.arrays, larger.arrays, strict=True):
            new[:, :, :held] = old[:, :, :held]
        buffer.arrays, buffer.capacity, buffer.binding = larger.arrays, larger.capacity, larger.binding
        buffer.rows = buffer.kept = 0

    def _bind_cache(self, buffer: Buffer) -> None:
        for (past, present), array in zip(self._bound, buffer.arrays, strict=True):
            place = (self._type, array.shape, array.ctypes.data)
            buffer.binding.bind_input(past, "cpu", 0, *place)
            buffer.binding.bind_output(present, "cpu", 0, *place)

    def _bind(self, buffer: Buffer, tokens: Ids, mask: Ids, keep: int) -> Floats:
        """Bind what a run changes; where the logits will be. The arrays outlive the run: their callers hold them."""
        self._bind_tokens(buffer, tokens)
        buffer.binding.bind_input(self._names.mask, "cpu", 0, np.int64, (1, len(mask)), mask.ctypes.data)
        rows = keep if self._names.rows_kept else len(tokens)
        logits, count = self._place_of(rows)
        if buffer.kept != rows or rows > KEPT:
            buffer.binding.bind_output(self._logits_name, "cpu", 0, np.float32, logits.shape, logits.ctypes.data)
            if self._names.rows_kept:
                buffer.binding.bind_input(self._names.rows_kept, "cpu", 0, np.int64, (), count.ctypes.data)
            buffer.kept = rows
        return logits[:, rows - keep :]

    def _bind_tokens(self, buffer: Buffer, tokens: Ids) -> None:
        """Few rows have a place that stays bound from run to run; more are bound where they are."""
        rows = len(tokens)
        if rows <= KEPT:
            if (place := self._tokens.get(rows)) is None:
                place = self._tokens[rows] = np.zeros(rows, np.int64)
            place[:] = tokens
            if buffer.rows == rows:
                return
            tokens = place
        buffer.binding.bind_input(self._names.tokens, "cpu", 0, np.int64, (1, rows), tokens.ctypes.data)
        buffer.rows = rows if rows <= KEPT else 0

    def _place_of(self, rows: int) -> tuple[Floats, NDArray[np.int64]]:
        """Where the logits of so many rows go, and their number as the graph takes it."""
        if (found := self._logits.get(rows)) is not None:
            return found
        made = np.zeros((1, rows, self._vocabulary), np.float32), np.array(rows, np.int64)
        if rows <= KEPT:
            self._logits[rows] = made
        else:
            self._large = made  # alive until the next one
        return made
