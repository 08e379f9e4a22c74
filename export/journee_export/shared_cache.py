"""The variant of a graph whose cache is one buffer, bound as past and as present: no copy a run, and a rewind is a
smaller length.

Made from the finished `concat` graph, whose weights it shares. Each layer's two `RotaryEmbedding` nodes and its
`Attention` become one `com.microsoft::GroupQueryAttention`, which rotates by position, writes the new rows into the
buffer behind the past and attends causally over both:

    input_ids [batch, rows], attention_mask [batch, past + rows]                             int64
    past_key_values.N.key|value, present.N.key|value [batch, kv_heads, capacity, head_dim]   float32
    num_logits_to_keep                                                                       int64 scalar
    logits [batch, rows kept, vocabulary]

capacity is at least past + rows, and past + 2; how many of its positions are past is told by the mask's *length* alone.
Its values tell padding among the rows, which must come last, from what the mixture is to compute. Positions follow
from the lengths, so there is no `position_ids`: neither to rotate by, nor to look up where they are learned. With a
past, ONNX Runtime's CPU kernel takes a batch of one.

A row run alone gets a row of zeros beside it while it attends, since the kernel multiplies by one row in another order
than by two. Where the rest of a graph treats a row alone like a row among others, as ONNX Runtime does with packed
weights, its row rule then asks for no padding: a run of one row is cheaper than one of two by 7 to 28%.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import CheckerPass, RemoveUnusedNodesPass, RemoveUnusedOpsetsPass

from journee.causal import Shape
from journee_deploy.manifest import Inputs
from journee_export.errors import ExportError, foreign
from journee_export.trace import POSITIONS, input_names

DOMAIN = "com.microsoft"
HEAD_MULTIPLE = 16
"""What ONNX Runtime's rotating kernel asks of a head's width."""
CAPACITY = "capacity"
LEAST_ROWS = 2
"""Rows that attention gets, padded with zeros where a run has fewer."""


def shared_input_names(layers: int) -> Inputs:
    """Names of the variant's inputs: those of the `concat` graph without positions."""
    names = input_names(layers)
    return Inputs(names.tokens, names.mask, None, names.past_keys, names.past_values, names.rows_kept)


def why_not_shared(config: Shape) -> str:
    """Why a model can't have this variant; empty if it can."""
    if config.head_dim % HEAD_MULTIPLE:
        return f"its heads are {config.head_dim} wide, and GroupQueryAttention wants a multiple of {HEAD_MULTIPLE}"
    return ""


def share_cache(model: ir.Model, config: Shape, least_rows: int = LEAST_ROWS) -> ir.Model:
    """The variant of a finished `concat` graph; `model` stays as it is.

    `least_rows` is how many rows attention gets at least: 1 leaves a row alone, for a draft, which needs no row rule.
    """
    shared = model.clone()
    graph = shared.graph
    lengths = _lengths(graph, least_rows, config.learned_positions)
    found = [node for node in graph if node.op_type == "Attention"]
    if len(found) != config.layers:
        raise ExportError(
            f"the graph has {len(found)} Attention nodes for {config.layers} layers; "
            "check that torch, onnx and onnxscript are the versions in constraints.txt"
        )
    for node, window in zip(found, config.windows, strict=True):
        _replace(graph, node, lengths, config, window)
    _resize(graph)
    if lengths.positions is not None:
        ir.convenience.replace_all_uses_with(_positions(graph), lengths.positions)
    graph.opset_imports[DOMAIN] = 1
    RemoveUnusedNodesPass()(shared)
    RemoveUnusedOpsetsPass()(shared)
    graph.inputs.remove(_positions(graph))
    with foreign("checking the shared-buffer graph with ONNX"):
        CheckerPass(full_check=False)(shared)  # ONNX has no shapes for com.microsoft
    return shared


@dataclass(frozen=True, slots=True)
class Lengths:
    """What every layer's attention asks of the shapes of mask and tokens; all of them computed once a run."""

    before: ir.Value  # int32 [batch]: positions before the last, padding included
    total: ir.Value  # int32 scalar: past + rows + padding
    padding: ir.Value | None  # int64 [6], of [batch, rows, width]; None where rows are never padded
    positions: ir.Value | None  # int64 [1, rows]; None where they are only rotated by
    rows: ir.Value  # int64 [1]
    first: ir.Value  # int64 [1], 0
    axis: ir.Value  # int64 [1], that of the rows


def _lengths(graph: ir.Graph, least_rows: int, learned_positions: bool) -> Lengths:
    mask, tokens = (
        next(value for value in graph.inputs if value.name == name) for name in ("attention_mask", "input_ids")
    )
    nodes: list[ir.Node] = []

    def add(operator: str, inputs: list[ir.Value], attributes: dict[str, Any] | None = None) -> ir.Value:
        node = ir.node(operator, inputs, attributes or {})
        node.outputs[0].name = f"lengths_{len(nodes)}"
        nodes.append(node)
        return node.outputs[0]

    def constant(*values: int) -> ir.Value:
        return add("Constant", [], {"value": ir.tensor(values, dtype=ir.DataType.INT64)})

    length = add("Shape", [mask], {"start": 1, "end": 2})
    batch, rows = (add("Shape", [tokens], {"start": axis, "end": axis + 1}) for axis in (0, 1))
    missing = add("Sub", [add("Max", [rows, constant(least_rows)]), rows])
    padding = add("Concat", [constant(0, 0, 0, 0), missing, constant(0)], {"axis": 0})
    total = add("Add", [length, missing])
    last = add("Expand", [add("Sub", [total, constant(1)]), batch])
    before = add("Cast", [last], {"to": ir.DataType.INT32})
    scalar = add("Cast", [add("Reshape", [total, constant()])], {"to": ir.DataType.INT32})
    zero, one = constant(0), constant(1)
    positions = None
    if learned_positions:
        first, end = (add("Reshape", [value, constant()]) for value in (add("Sub", [length, rows]), length))
        positions = add("Unsqueeze", [add("Range", [first, end, add("Reshape", [one, constant()])]), zero])
    graph.insert_before(graph[0], nodes)
    return Lengths(before, scalar, padding if least_rows > 1 else None, positions, rows, zero, one)


def _replace(graph: ir.Graph, node: ir.Node, lengths: Lengths, config: Shape, window: int | None) -> None:
    query, key, value, _, past_key, past_value = node.inputs[:6]
    cos = sin = None
    if not config.learned_positions:
        query, cos, sin = _unrotated(query)
        key, _, _ = _unrotated(key)
    before = [_padded(rows, lengths) for rows in (query, key, value)] if lengths.padding is not None else []
    attended = [pad.outputs[0] for pad in before] if before else [query, key, value]
    attention = ir.node(
        "GroupQueryAttention",
        [*attended, past_key, past_value, lengths.before, lengths.total, cos, sin],
        {
            "num_heads": config.heads,
            "kv_num_heads": config.kv_heads,
            "scale": config.attention_scale,
            "do_rotary": int(not config.learned_positions),
            "rotary_interleaved": 0,
            **({"local_window_size": window} if window else {}),
        },
        domain=DOMAIN,
        num_outputs=3,
    )
    after = [_cut(attention.outputs[0], node.outputs[0], lengths)] if before else []
    results = [after[0].outputs[0] if after else attention.outputs[0], *attention.outputs[1:]]
    for old, new in zip(node.outputs, results, strict=False):
        new.name, new.type, new.shape = old.name, old.type, old.shape
    nodes = [*before, attention, *after]
    ir.convenience.replace_nodes_and_values(graph, node, [node], nodes, node.outputs[:3], results)


def _padded(rows: ir.Value | None, lengths: Lengths) -> ir.Node:
    assert rows is not None
    node = ir.node("Pad", [rows, lengths.padding])
    node.outputs[0].name = f"{rows.name}_padded"
    return node


def _cut(rows: ir.Value, result: ir.Value, lengths: Lengths) -> ir.Node:
    rows.name = f"{result.name}_padded"
    return ir.node("Slice", [rows, lengths.first, lengths.rows, lengths.axis])


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


def _positions(graph: ir.Graph) -> ir.Value:
    (positions,) = (value for value in graph.inputs if value.name == POSITIONS)
    return positions
