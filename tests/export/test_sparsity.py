"""Experts without tokens do nothing: a broken one is harmless, and the profile shows that none of its nodes ran.

Two proofs. An expert whose weights are NaN, never chosen, leaves every logit finite, where a product with a closed gate
would make NaN of all. And the nodes that ONNX Runtime says it ran are those of the chosen experts, no others.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from journee.model import Decoder
from tests.export.conftest import Exported

Feeds = dict[str, NDArray[Any]]
MIXTURE = "blocks.1.mixture"


def with_weights(exported: Exported, path: Path, chosen: tuple[int, ...], invert: bool, broken: bool) -> Path:
    """The graph with a router that always chooses `chosen`; `broken` makes NaN of every other expert's weights."""
    model = onnx.load(exported.folder / "model.onnx")
    bias = np.array([1e4 if column in chosen else -1e4 for column in range(4)] + [1e4 if invert else -1e4])
    for value in model.graph.initializer:
        if value.name == f"{MIXTURE}.router.bias":
            value.CopyFrom(onnx.numpy_helper.from_array(bias.astype(np.float32), value.name))
        elif broken and unused(value.name, chosen, invert):
            array = np.full(tuple(value.dims), np.nan, dtype=np.float32)
            value.CopyFrom(onnx.numpy_helper.from_array(array, value.name))
    onnx.save(model, path)
    return path


def unused(name: str, chosen: tuple[int, ...], invert: bool) -> bool:
    experts = [column for column in range(4) if column not in chosen]
    return any(f"{MIXTURE}.experts.{column}." in name for column in experts) or (
        not invert and f"{MIXTURE}.correction" in name
    )


def feeds(decoder: Decoder, rows: int, real: int) -> Feeds:
    config = decoder.config
    past = np.zeros((1, config.kv_heads, 0, config.head_dim), dtype=np.float32)
    given: Feeds = {
        "input_ids": np.arange(1, rows + 1)[None],
        "attention_mask": (np.arange(rows) < real).astype(np.int64)[None],
        "position_ids": np.arange(rows)[None],
    }
    for layer in range(config.layers):
        given |= {f"past_key_values.{layer}.key": past, f"past_key_values.{layer}.value": past}
    return given


def logits(path: Path, given: Feeds) -> NDArray[Any]:
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found: NDArray[Any] = session.run(["logits"], given)[0]
    return found


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize(("chosen", "invert"), [((0, 1), True), ((1, 3), False), ((2, 3), True)])
def test_experts_that_are_not_chosen_may_be_broken(
    exported: Exported, tmp_path: Path, chosen: tuple[int, ...], invert: bool, rows: int
) -> None:
    given = feeds(exported.decoder, rows, rows)
    whole = with_weights(exported, tmp_path / "whole.onnx", chosen, invert, broken=False)
    broken = with_weights(exported, tmp_path / "broken.onnx", chosen, invert, broken=True)
    found = logits(broken, given)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, logits(whole, given))


def test_the_control_a_broken_expert_that_is_chosen_breaks_the_logits(exported: Exported, tmp_path: Path) -> None:
    path = with_weights(exported, tmp_path / "broken.onnx", (0, 1), invert=False, broken=True)
    model = onnx.load(path)
    for value in model.graph.initializer:
        if value.name == f"{MIXTURE}.router.bias":
            bias = np.array([-1e4, -1e4, 1e4, 1e4, -1e4], dtype=np.float32)
            value.CopyFrom(onnx.numpy_helper.from_array(bias, value.name))
    onnx.save(model, path)
    assert np.isnan(logits(path, feeds(exported.decoder, 2, 2))).all()


def executed(path: Path, given: Feeds) -> Counter[str]:
    """How many nodes of each type ran, those of `If` branches included, without optimization."""
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(path.with_suffix(""))
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    session.run(["logits"], given)
    events = json.loads(Path(session.end_profiling()).read_text())
    ran = [event["args"]["op_name"] for event in events if event["name"].endswith("_kernel_time")]
    return Counter(ran)


ALWAYS = 4 * 2 + 3 + 1 + 1
"""Matrix products of attention, the dense block, the router and the head."""


@pytest.mark.parametrize(
    ("chosen", "invert", "real", "products"),
    [
        ((0, 1), False, 3, 2 * 3),
        ((1, 3), True, 3, 2 * 3 + 1),
        ((1, 3), True, 1, 2 * 3 + 1),
        ((1, 3), True, 0, 0),
    ],
    ids=["two experts", "two experts and the inverter", "one real row, two of padding", "padding alone"],
)
def test_only_the_chosen_experts_run(
    exported: Exported, tmp_path: Path, chosen: tuple[int, ...], invert: bool, real: int, products: int
) -> None:
    path = with_weights(exported, tmp_path / "graph.onnx", chosen, invert, broken=False)
    ran = executed(path, feeds(exported.decoder, 3, real))
    assert ran["MatMul"] == ALWAYS + products
    assert ran["ScatterND"] == (len(chosen) + invert if real else 0)
