"""Weights rounded for storage: small on the way to a page, float32 again once they are loaded.

`rounded_weights` says what of a model is rounded and to what, `with_weights` gives the model that the rounded weights
are, and `shrink` puts them into its graph:

- float16: every matrix. A checkpoint of `journee` holds float16, and then nothing changes.
- int8: every matrix, symmetric, a scale a row of the parameter (a token of the embedding, an output of a linear map);
  the tables of cosines and sines in float16, which adds less error than a tenth of the matrices'.
- What has one dimension stays, and so does the router, whose gates would flip.

In the graph a rounded weight is a Cast, and for int8 a Mul by its scales. Both have constant inputs, so ONNX Runtime
computes them once, when it makes a session, and runs the same nodes on the same bits as the graph with the rounded
weights in float32. DequantizeLinear is not used: ONNX Runtime makes a MatMulNBits of it and its MatMul, which is other
arithmetic, unless a session says otherwise.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray
from onnx_ir.passes.common import CheckerPass

from journee.causal import CausalDecoder
from journee_export.errors import ExportError, foreign

Storage = Literal["float16", "int8"]
SUFFIXES: dict[Storage, str] = {"float16": "_fp16", "int8": "_int8"}
"""Of file names, as transformers.js spells them."""
LARGEST_INT8 = 127
ROUTER = ".router."
TRANSPOSED = ".transposed"


@dataclass(frozen=True)
class Rounded:
    """A parameter as it is stored: float16, or int8 with a scale a row in float32."""

    values: NDArray[Any]
    scales: NDArray[np.float32] | None = None

    def widened(self) -> NDArray[np.float32]:
        """In float32, computed as the graph computes it."""
        wide = self.values.astype(np.float32)
        return wide if self.scales is None else wide * self.scales[:, None]

    def transposed(self, scales: bool) -> NDArray[Any]:
        """Values or scales as a graph wants them that holds the parameter transposed."""
        assert self.scales is not None or not scales
        return self.scales[None, :] if scales and self.scales is not None else np.ascontiguousarray(self.values.T)


def rounded_weights(decoder: CausalDecoder, storage: Storage) -> dict[str, Rounded]:
    """What is rounded, by parameter or buffer; ExportError for weights that float16 can't hold."""
    found: dict[str, Rounded] = {}
    for name, parameter in decoder.named_parameters():
        if parameter.dim() == 2 and ROUTER not in name:
            array = parameter.detach().numpy()
            found[name] = _half(name, array) if storage == "float16" else _whole(name, array)
    if storage == "int8":
        found |= {name: _half(name, table.numpy()) for name, table in decoder.named_buffers()}
    return found


def with_weights(decoder: CausalDecoder, rounded: Mapping[str, Rounded]) -> CausalDecoder:
    """The model that the rounded weights are; `decoder` stays as it is."""
    changed = copy.deepcopy(decoder)
    tensors = {**dict(changed.named_parameters()), **dict(changed.named_buffers())}
    with torch.no_grad():
        for name, weight in rounded.items():
            tensors[name].copy_(torch.tensor(weight.widened()))
    return changed


def shrink(model: ir.Model, rounded: Mapping[str, Rounded]) -> None:
    """Store the weights of `model`, the graph of `with_weights(decoder, rounded)`, as they were rounded."""
    nodes: list[ir.Node] = []
    graph = model.graph
    for name, value in list(graph.initializers.items()):
        parameter = name.removesuffix(TRANSPOSED)
        if weight := rounded.get(parameter):
            nodes += _widen(graph, value, weight, transposed=name != parameter)
    graph.insert_before(graph[0], nodes)
    with foreign("checking the graph for pages with ONNX"):
        CheckerPass(full_check=True)(model)


def demand_rows_kept(model: ir.Model, name: str | None) -> None:
    """Take the default of `num_logits_to_keep` away: onnxruntime-web can't feed an input that has one."""
    (value,) = [value for value in model.graph.inputs if value.name == name]
    del model.graph.initializers[value.name or ""]
    value.const_value = None


def _half(name: str, array: NDArray[np.float32]) -> Rounded:
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    _check_finite(name, half, "float16")
    return Rounded(half)


def _whole(name: str, array: NDArray[np.float32]) -> Rounded:
    largest = np.abs(array).max(axis=1)
    _check_finite(name, largest, "int8")
    scales = (np.where(largest > 0, largest, 1) / np.float32(LARGEST_INT8)).astype(np.float32)
    scales = np.maximum(scales, np.finfo(np.float32).tiny)
    steps = np.rint(array / scales[:, None]).clip(-LARGEST_INT8, LARGEST_INT8)
    return Rounded(steps.astype(np.int8), scales)


def _check_finite(name: str, array: NDArray[Any], storage: Storage) -> None:
    if not np.isfinite(array).all():
        other = "; --weights int8 can" if storage == "float16" else ""
        raise ExportError(f"{name} holds a weight that {storage} can't{other}")


def _widen(graph: ir.Graph, value: ir.Value, weight: Rounded, transposed: bool) -> list[ir.Node]:
    """The nodes that give `value`, an initializer, out of a smaller one that takes its place."""
    name = value.name or ""
    values = weight.transposed(scales=False) if transposed else weight.values
    small = _initializer(graph, name + ("_fp16" if weight.scales is None else "_int8"), values)
    nodes = [ir.node("Cast", [small], {"to": ir.DataType.FLOAT})]
    if weight.scales is not None:
        column = weight.transposed(scales=True) if transposed else weight.scales[:, None]
        nodes[0].outputs[0].name = f"{name}_steps"
        nodes.append(ir.node("Mul", [nodes[0].outputs[0], _initializer(graph, f"{name}_scales", column)]))
    wide = nodes[-1].outputs[0]
    wide.type, wide.shape = value.type, value.shape
    ir.convenience.replace_all_uses_with(value, wide)
    del graph.initializers[name]
    wide.name = name
    return nodes


def _initializer(graph: ir.Graph, name: str, array: NDArray[Any]) -> ir.Value:
    tensor = ir.tensor(np.ascontiguousarray(array), name=name)
    value = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
    graph.register_initializer(value)
    return value
