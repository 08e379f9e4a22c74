"""A small decoder as an ONNX graph with seeded weights: embedding, rotary `Attention` with a concatenated
cache, a head.

It has the inputs and outputs of design section 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Shape:
    """Sizes of the decoder. Hidden size is heads * head_dim."""

    vocabulary: int = 61
    layers: int = 2
    heads: int = 2
    head_dim: int = 16
    context: int = 96
    dynamic_int8: bool = False
    rows_kept: bool = True

    @property
    def hidden(self) -> int:
        return self.heads * self.head_dim


SMALL = Shape()


class Graph:
    """Nodes, initializers and fresh names."""

    def __init__(self, shape: Shape, seed: int = 7) -> None:
        self.shape = shape
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(seed)

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weight(self, *sizes: int) -> str:
        scale = 1 / np.sqrt(sizes[0])
        return self.constant((self.random.standard_normal(sizes) * scale).astype(np.float32))

    def op(self, kind: str, *inputs: str, outputs: tuple[str, ...] = (), domain: str = "", **attributes: object) -> str:
        outputs = outputs or (f"{kind}_{len(self.nodes)}",)
        self.nodes.append(helper.make_node(kind, list(inputs), list(outputs), domain=domain, **attributes))
        return outputs[0]

    def linear(self, value: str, into: int, out: int) -> str:
        if self.shape.dynamic_int8:
            return self._dynamic(value, into, out)
        return self.op("MatMul", value, self.weight(into, out))

    def _dynamic(self, value: str, into: int, out: int) -> str:
        """A product of int8 weights and values quantized with one scale for all rows of the run: it breaks
        every rule.
        """
        weight = self.constant(self.random.integers(0, 255, (into, out)).astype(np.uint8))
        n = len(self.nodes)
        self.op("DynamicQuantizeLinear", value, outputs=(f"q{n}", f"s{n}", f"z{n}"))
        product = self.op("MatMulInteger", f"q{n}", weight, f"z{n}", self.constant(np.array(128, np.uint8)))
        scale = self.op("Mul", f"s{n}", self.constant(np.array(1 / 74 / np.sqrt(into), np.float32)))
        return self.op("Mul", self.op("Cast", product, to=TensorProto.FLOAT), scale)


def rotary(context: int, head_dim: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosines and sines [positions, head_dim / 2]."""
    frequency = 10_000.0 ** (-np.arange(0, head_dim, 2) / head_dim)
    angle = np.arange(context)[:, None] * frequency
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def build(shape: Shape = SMALL) -> onnx.ModelProto:
    """The decoder as a model."""
    graph = Graph(shape)
    cos, sin = (graph.constant(table) for table in rotary(shape.context + 32, shape.head_dim))
    rows = graph.op("Cast", graph.op("Unsqueeze", "attention_mask", graph.ints(1, 2)), to=TensorProto.BOOL)
    total = graph.op("Range", zero(graph), length(graph, "attention_mask"), one(graph))
    causal = graph.op("LessOrEqual", total, graph.op("Unsqueeze", "position_ids", graph.ints(1, 3)))
    mask = graph.op("And", rows, causal)
    state = graph.op("Gather", graph.weight(shape.vocabulary, shape.hidden), "input_ids")
    for layer in range(shape.layers):
        state = block(graph, state, layer, mask, (cos, sin))
    if shape.rows_kept:
        state = last_rows(graph, state)
    graph.op("Identity", graph.linear(state, shape.hidden, shape.vocabulary), outputs=("logits",))
    return model(graph)


def zero(graph: Graph) -> str:
    return graph.constant(np.array(0, np.int64))


def one(graph: Graph) -> str:
    return graph.constant(np.array(1, np.int64))


def length(graph: Graph, value: str) -> str:
    """Size of the last dimension, a scalar."""
    return graph.op("Gather", graph.op("Shape", value), graph.constant(np.array(-1, np.int64)))


def block(graph: Graph, state: str, layer: int, mask: str, tables: tuple[str, str]) -> str:
    size = graph.shape.hidden
    normal = graph.op("RMSNormalization", state, graph.constant(np.ones(size, np.float32)), axis=-1)
    heads = graph.shape.heads
    query, key, value = (graph.linear(normal, size, size) for _ in range(3))
    query, key = (graph.op("RotaryEmbedding", part, *tables, "position_ids", num_heads=heads) for part in (query, key))
    attended = graph.op(
        "Attention", query, key, value, mask, f"past_key_values.{layer}.key", f"past_key_values.{layer}.value",
        outputs=(f"attended_{layer}", f"present.{layer}.key", f"present.{layer}.value"),
        q_num_heads=heads, kv_num_heads=heads,
    )  # fmt: skip
    state = graph.op("Add", state, graph.linear(attended, size, size))
    hidden = graph.op("Sigmoid", graph.linear(state, size, 3 * size))
    return graph.op("Add", state, graph.linear(hidden, 3 * size, size))


def last_rows(graph: Graph, state: str) -> str:
    """state[:, -num_logits_to_keep:]; 0 keeps all."""
    first = graph.op("Neg", graph.op("Unsqueeze", "num_logits_to_keep", graph.ints(0)))
    return graph.op("Slice", state, first, graph.ints(2**31 - 1), graph.ints(1))


def model(graph: Graph) -> onnx.ModelProto:
    shape = graph.shape

    def info(name: str, kind: int, *sizes: int | str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, list(sizes))

    def cache(prefix: str, size: str) -> list[onnx.ValueInfoProto]:
        sizes = ("batch", shape.heads, size, shape.head_dim)
        names = [f"{prefix}.{layer}.{part}" for layer in range(shape.layers) for part in ("key", "value")]
        return [info(name, TensorProto.FLOAT, *sizes) for name in names]

    inputs = [
        info("input_ids", TensorProto.INT64, "batch", "rows"),
        info("attention_mask", TensorProto.INT64, "batch", "total"),
        info("position_ids", TensorProto.INT64, "batch", "rows"),
        *cache("past_key_values", "past"),
    ]
    if shape.rows_kept:
        inputs.append(info("num_logits_to_keep", TensorProto.INT64))
        graph.initializers.append(numpy_helper.from_array(np.array(0, np.int64), "num_logits_to_keep"))
    logits = info("logits", TensorProto.FLOAT, "batch", "kept", shape.vocabulary)
    made = helper.make_graph(graph.nodes, "tiny", inputs, [logits, *cache("present", "total")], graph.initializers)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
