"""The variant of a graph whose cache is one buffer, bound as past and as present: no copy a run, and a rewind is a
smaller length.

Made from the finished `concat` graph, whose weights it shares. Each layer's two `RotaryEmbedding` nodes and its
`Attention` become one `com.microsoft::GroupQueryAttention`, which rotates by position, writes the new rows into the
buffer behind the past and attends causally over both:

    input_ids [batch, rows], attention_mask [batch, past + rows]                             int64
    past_key_values.N.key|value, present.N.key|value [batch, kv_heads, capacity, head_dim]   float32
    num_logits_to_keep                                                                       int64 scalar
    logits [batch, rows kept, vocabulary]

capacity is at least past + rows; how many of its positions are past is told by the mask's *length* alone. Its values
tell padding among the rows, which must come last, from what the mixture is to compute. Positions follow from the
lengths, so there is no `position_ids`. With a past and more than one row, ONNX Runtime's CPU kernel takes a batch of
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx_ir as ir
from onnx_ir.passes.common import CheckerPass, RemoveUnusedNodesPass, RemoveUnusedOpsetsPass

from journee.config import ModelConfig
from journee_deploy.manifest import Inputs
from journee_export.errors import ExportError, foreign
from journee_export.trace import POSITIONS, input_names

DOMAIN = "com.microsoft"
HEAD_MULTIPLE = 16
"""What ONNX Runtime's rotating kernel asks of a head's width."""
CAPACITY = "capacity"


def shared_input_names(layers: int) -> Inputs:
    """Names of the variant's inputs: those of the `concat` graph without positions."""
    names = input_names(layers)
    return Inputs(names.tokens, names.mask, None, names.past_keys, names.past_values, names.rows_kept)


def why_not_shared(config: ModelConfig) -> str:
    """Why a model can't have this variant; empty if it can."""
    if config.head_dim % HEAD_MULTIPLE:
        return f"its heads are {config.head_dim} wide, and GroupQueryAttention wants a multiple of {HEAD_MULTIPLE}"
    return ""


def share_cache(model: ir.Model, config: ModelConfig) -> ir.Model:
    """The variant of a finished `concat` graph; `model` stays as it is."""
    shared = model.clone()
    graph = shared.graph
    lengths = _lengths(graph)
    found = [node for node in graph if node.op_type == "Attention"]
    if len(found) != config.layers:
        raise ExportError(
            f"the graph has {len(found)} Attention nodes for {config.layers} layers; "
            "check that torch, onnx and onnxscript are the versions in constraints.txt"
        )
    for node in found:
        _replace(graph, node, lengths, config)
    _resize(graph)
    graph.opset_imports[DOMAIN] = 1
    RemoveUnusedNodesPass()(shared)
    RemoveUnusedOpsetsPass()(shared)
    _drop_positions(graph)
    with foreign("checking the shared-buffer graph with ONNX"):
        CheckerPass(full_check=False)(shared)  # ONNX has no shapes for com.microsoft
    return shared


def _lengths(graph: ir.Graph) -> tuple[ir.Value, ir.Value]:
    """(positions before the last, int32 [batch]; past + rows, int32 scalar), from the shapes of mask and tokens."""
    mask, tokens = (
        next(value for value in graph.inputs if value.name == name) for name in ("attention_mask", "input_ids")
    )
    one = _constant("one", ir.tensor([1], dtype=ir.DataType.INT64))
    none = _constant("no_axis", ir.tensor([], dtype=ir.DataType.INT64))
    total = ir.node("Shape", [mask], {"start": 1, "end": 2})
    batch = ir.node("Shape", [tokens], {"start": 0, "end": 1})
    last = ir.node("Sub", [total.outputs[0], one.outputs[0]])
    lasts = ir.node("Expand", [last.outputs[0], batch.outputs[0]])
    before = ir.node("Cast", [lasts.outputs[0]], {"to": ir.DataType.INT32})
    scalar = ir.node("Reshape", [total.outputs[0], none.outputs[0]])
    length = ir.node("Cast", [scalar.outputs[0]], {"to": ir.DataType.INT32})
    nodes = [one, none, total, batch, last, lasts, before, scalar, length]
    for number, node in enumerate(nodes):
        node.outputs[0].name = node.outputs[0].name or f"lengths_{number}"
    graph.insert_before(graph[0], nodes)
    return before.outputs[0], length.outputs[0]


def _constant(name: str, tensor: ir.TensorProtocol) -> ir.Node:
    node = ir.node("Constant", [], {"value": tensor})
    node.outputs[0].name = name
    return node


def _replace(graph: ir.Graph, node: ir.Node, lengths: tuple[ir.Value, ir.Value], config: ModelConfig) -> None:
    query, key, value, _, past_key, past_value = node.inputs[:6]
    query, cos, sin = _unrotated(query)
    key, _, _ = _unrotated(key)
    attention = ir.node(
        "GroupQueryAttention",
        [query, key, value, past_key, past_value, *lengths, cos, sin],
        {
            "num_heads": config.heads,
            "kv_num_heads": config.kv_heads,
            "scale": 1 / math.sqrt(config.head_dim),
            "do_rotary": 1,
            "rotary_interleaved": 0,
        },
        domain=DOMAIN,
        num_outputs=3,
    )
    for old, new in zip(node.outputs, attention.outputs, strict=False):
        new.name, new.type, new.shape = old.name, old.type, old.shape
    ir.convenience.replace_nodes_and_values(graph, node, [node], [attention], node.outputs[:3], attention.outputs)


def _unrotated(value: ir.Value | None) -> tuple[ir.Value | None, ir.Value | None, ir.Value | None]:
    """What is rotated, and the tables of cosines and sines."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "RotaryEmbedding":
        raise ExportError("a head is not rotated by RotaryEmbedding, which a shared cache needs; this is a fault here")
    return node.inputs[0], node.inputs[1], node.inputs[2]


def _resize(graph: ir.Graph) -> None:
    """The caches' third dimension is the buffer's."""
    for value in _caches(graph):
        sizes = list(value.shape or ())
        value.shape = ir.Shape([*sizes[:2], CAPACITY, *sizes[3:]])


def _caches(graph: ir.Graph) -> Iterator[ir.Value]:
    for value in (*graph.inputs, *graph.outputs):
        if (value.name or "").startswith(("past_key_values.", "present.")):
            yield value


def _drop_positions(graph: ir.Graph) -> None:
    (positions,) = (value for value in graph.inputs if value.name == POSITIONS)
    graph.inputs.remove(positions)
