"""Parity with PyTorch: the graph, run as a runtime runs it, against each sequence alone and whole in plain
PyTorch.

The table `CASES` says what is run; one runner serves them all. The reference has no cache, no padding and no
exported operator, so that parity speaks of cache, mask, positions, routing and head at once. Padding is
filled with random tokens and random keys. The measure is the largest absolute difference over the logits
asked for and the new keys and values, of the rows that are not padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from journee.causal import CausalDecoder, Shape
from journee_deploy.manifest import Parity
from journee_export.errors import ExportError
from journee_export.trace import POSITIONS, input_names, output_names

Array = NDArray[np.generic]
Floats = NDArray[np.float32]
Graph = Callable[[Mapping[str, Array]], dict[str, Array]]

ROUGH = 0.5
"""The largest mean TV between a quantized draft and itself in float32."""
FAR = 2048
"""Tokens that a case is long at most, but for what a window asks."""
SPARE = 3
LOUD = 1e4
TOLERANCE = 1e-4
"""Largest difference allowed in float32, where logits reach about 20."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the graph, a batch of `len(rows)` sequences.

    `past` and `rows` are tokens a sequence; shorter ones are padded to the longest, the past and the rows at
    their ends. `kept` is fed as `num_logits_to_keep`, None leaves it out. `at_end` puts the last row at the
    context's end.
    """

    name: str
    past: tuple[int, ...]
    rows: tuple[int, ...]
    kept: int | None = None
    at_end: bool = False
    tolerance: float = TOLERANCE


CASES = (
    Case("prefill", past=(0,), rows=(17,)),
    Case("prefill of one token", past=(0,), rows=(1,)),
    Case("one step", past=(16,), rows=(1,)),
    Case("K+1 rows with a past", past=(16,), rows=(9,)),
    Case("batch of 2", past=(11, 11), rows=(5, 5)),
    Case("batch of 2, ragged rows", past=(12, 12), rows=(6, 3)),
    Case("batch of 2, ragged past", past=(13, 4), rows=(4, 4)),
    Case("batch of 3, ragged past and rows", past=(9, 0, 5), rows=(2, 7, 1)),
    Case("last row of a prefill", past=(0,), rows=(17,), kept=1),
    Case("last 3 of 8 rows", past=(6,), rows=(8,), kept=3),
    Case("all rows by 0", past=(6,), rows=(8,), kept=0),
    Case("end of the context", past=(20,), rows=(4,), at_end=True),
)

SHARED_CASES = tuple(case for case in CASES if len(case.rows) == 1 and not case.at_end)
"""What a graph with a shared buffer is run on: one sequence at a time, and positions that follow from the lengths."""


@dataclass(frozen=True, slots=True)
class Alone:
    """One sequence of a case, by itself: token ids, positions, and what PyTorch says: logits, and keys and values a
    layer.
    """

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    logits: Floats
    cache: list[tuple[Floats, Floats]]


def shared_cases(context_length: int) -> tuple[Case, ...]:
    """SHARED_CASES, and a run that ends with the context: after all of it, since positions can't be chosen. In a
    context longer than FAR it ends there: all of it would take longer than anyone waits.
    """
    rows = min(4, context_length)
    name, end = ("end of the context", context_length) if context_length <= FAR else ("far in the context", FAR)
    return (*SHARED_CASES, Case(name, past=(end - rows,), rows=(rows,)))


def window_cases(config: Shape) -> tuple[Case, ...]:
    """Runs that reach further than each window of a model does, and end behind it."""
    windows = sorted(
        {window for window in config.windows if window is not None and window + 8 <= config.context_length}
    )
    return tuple(Case(f"beyond the window of {window}", past=(window + 3,), rows=(5,)) for window in windows)


def as_concat(graph: Graph, layers: int) -> Graph:
    """A graph with a shared buffer, run as one with a concatenated cache: its buffers have some positions to spare,
    filled with what would show if it were read.
    """
    names, outputs = input_names(layers), output_names(layers)

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        total, rows = feeds[names.mask].shape[1], feeds[names.tokens].shape[1]
        given = {name: value for name, value in feeds.items() if name != POSITIONS}
        for name in (*names.past_keys, *names.past_values):
            spare = np.full((*feeds[name].shape[:2], rows + SPARE, feeds[name].shape[3]), LOUD, np.float32)
            given[name] = np.concatenate([feeds[name], spare], axis=2)
        found = graph(given)
        for name in (*outputs.present_keys, *outputs.present_values):
            found[name] = found[name][:, :, :total]
        return found

    return run


def always_kept(graph: Graph, layers: int) -> Graph:
    """A graph whose `num_logits_to_keep` has no default, run as one whose default is 0."""
    name = input_names(layers).rows_kept

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        default: dict[str, Array] = {name: np.array(0, dtype=np.int64)} if name else {}
        return graph({**default, **feeds})

    return run


def measure(decoder: CausalDecoder, graph: Graph, cases: Sequence[Case] = CASES) -> tuple[Parity, ...]:
    """The difference of every case, beside what it may be."""
    return tuple(Parity(case.name, _difference(decoder, graph, case), case.tolerance) for case in cases)


def measure_rough(decoder: CausalDecoder, graph: Graph, cases: Sequence[Case]) -> tuple[Parity, ...]:
    """How far a quantized graph's distributions are from the model's own: the mean TV over the rows of all cases.

    No draft needs to be near; one that is further than ROUGH from itself in float32 was not quantized but broken.
    """
    distances: list[float] = []
    for case in cases:
        sequences, outputs = _run(decoder, graph, case)
        logits = outputs[output_names(decoder.config.layers).logits]
        first = max(case.rows) - (case.kept or max(case.rows))
        for at, (sequence, before, now) in enumerate(zip(sequences, case.past, case.rows, strict=True)):
            distances += _distances(logits[at, : now - first], sequence.logits[before + first :])
    return (Parity("mean TV to float32", math.fsum(distances) / len(distances), ROUGH),)


def _distances(found: Array, expected: Floats) -> list[float]:
    """TV between the distributions of each row."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return [1.0]
    p, q = (_softmax(rows.astype(np.float64)) for rows in (found, expected))
    distances: list[float] = (np.abs(p - q).sum(axis=1) / 2).tolist()
    return distances


def _softmax(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(rows - rows.max(axis=1, keepdims=True))
    found: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return found


def require(parity: Sequence[Parity]) -> None:
    """ExportError unless every case is within its tolerance (a difference that is no number isn't)."""
    failed = [found for found in parity if not found.difference <= found.tolerance]
    if failed:
        table = "; ".join(f"{found.case}: {found.difference:.3g} (allowed {found.tolerance:.3g})" for found in failed)
        raise ExportError(
            f"the graph does not compute what the PyTorch model computes, so nothing was written. {table}. "
            "Check that torch, onnx, onnxscript and onnxruntime are the versions in constraints.txt"
        )


def _difference(decoder: CausalDecoder, graph: Graph, case: Case) -> float:
    sequences, outputs = _run(decoder, graph, case)
    return max(_differences(decoder, case, sequences, outputs))


def _run(decoder: CausalDecoder, graph: Graph, case: Case) -> tuple[list[Alone], dict[str, Array]]:
    """Each sequence of a case by itself, and what the graph makes of them together."""
    chance = np.random.default_rng(0)
    sequences = [
        _reference(decoder, chance, past + rows, case.at_end) for past, rows in zip(case.past, case.rows, strict=True)
    ]
    return sequences, graph(_feeds(decoder, chance, case, sequences))


def _reference(decoder: CausalDecoder, chance: np.random.Generator, length: int, at_end: bool) -> Alone:
    first = decoder.config.context_length - length if at_end else 0
    tokens = chance.integers(0, decoder.config.vocab_size, length)
    positions = np.arange(first, first + length)
    ids = torch.tensor(tokens)[None]
    with torch.inference_mode():
        logits, cache = decoder(ids, torch.ones_like(ids), torch.tensor(positions)[None], decoder.empty_cache())
    held = [(key[0].numpy(), value[0].numpy()) for key, value in cache]
    return Alone(tokens, positions, logits[0].numpy(), held)


def _feeds(
    decoder: CausalDecoder, chance: np.random.Generator, case: Case, sequences: Sequence[Alone]
) -> dict[str, Array]:
    config, names = decoder.config, input_names(decoder.config.layers)
    batch, past, rows = len(sequences), max(case.past), max(case.rows)
    tokens = chance.integers(0, config.vocab_size, (batch, rows))
    mask = np.zeros((batch, past + rows), dtype=np.int64)
    positions = np.zeros((batch, rows), dtype=np.int64)
    shape = (2, config.layers, batch, config.kv_heads, past, config.head_dim)
    held = chance.standard_normal(shape).astype(np.float32)
    for at, (sequence, before, now) in enumerate(zip(sequences, case.past, case.rows, strict=True)):
        tokens[at, :now], positions[at, :now] = sequence.tokens[before:], sequence.positions[before:]
        mask[at, :before] = mask[at, past : past + now] = 1
        for layer, (key, value) in enumerate(sequence.cache):
            held[0, layer, at, :, :before], held[1, layer, at, :, :before] = key[:, :before], value[:, :before]
    feeds: dict[str, Array] = {names.tokens: tokens, names.mask: mask, POSITIONS: positions}
    feeds |= dict(zip(names.past_keys, held[0], strict=True)) | dict(zip(names.past_values, held[1], strict=True))
    if case.kept is not None and names.rows_kept is not None:
        feeds[names.rows_kept] = np.array(case.kept, dtype=np.int64)
    return feeds


def _differences(
    decoder: CausalDecoder, case: Case, sequences: Sequence[Alone], outputs: Mapping[str, Array]
) -> list[float]:
    names = output_names(decoder.config.layers)
    past, rows = max(case.past), max(case.rows)
    kept = case.kept or rows
    batches = {outputs[name].shape[0] for name in outputs}
    totals = {outputs[name].shape[2] for name in (*names.present_keys, *names.present_values)}
    if (batches, totals, outputs[names.logits].shape[1]) != ({len(sequences)}, {past + rows}, kept):
        return [float("inf")]
    found: list[float] = []
    for at, (sequence, before, now) in enumerate(zip(sequences, case.past, case.rows, strict=True)):
        first = rows - kept
        found.append(_largest(outputs[names.logits][at, : now - first], sequence.logits[before + first :]))
        for side, layers in enumerate((names.present_keys, names.present_values)):
            for layer, name in enumerate(layers):
                expected = sequence.cache[layer][side]
                found.append(_largest(outputs[name][at, :, past : past + now], expected[:, before:]))
                found.append(_largest(outputs[name][at, :, :before], expected[:, :before]))
    return found


def _largest(found: Array, expected: Floats) -> float:
    """The largest absolute difference; infinite if the shapes differ or a value is not finite."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found.astype(np.float64) - expected).max(initial=0.0))
