"""Weights of whole numbers for drafts: each constant matrix in blocks of 32, symmetric, by `MatMulNBits`.

A draft may be rough: what it proposes is judged, and only speed is at stake. Targets are never quantized here. The
accuracy level says what the kernel computes in, and is pinned: 4 rounds activations to 8 bits, block by block, which
makes a step two to three times cheaper on CPU.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from journee_export.errors import foreign
from journee_export.session import block_quantizer

Precision = Literal["float32", "int8", "int4"]
BITS = {"int8": 8, "int4": 4}
SUFFIXES = {"float32": "", "int8": "_int8", "int4": "_q4"}
"""Of file names, as transformers.js spells them."""
BLOCK = 32
ACCURACY_LEVEL = 4


def quantize(model: ir.Model, precision: Precision) -> ir.Model:
    """The graph with quantized matrices; `model` stays as it is, and at float32 is given back."""
    if precision == "float32":
        return model
    model = _with_own_head(model)
    proto = ir.serde.serialize_model(model)
    with foreign("quantizing the draft with ONNX Runtime"):
        quantizer: Any = block_quantizer(
            proto, bits=BITS[precision], block_size=BLOCK, is_symmetric=True, accuracy_level=ACCURACY_LEVEL
        )
        quantizer.process()
    return ir.serde.deserialize_model(quantizer.model.model)


def _with_own_head(model: ir.Model) -> ir.Model:
    """A head that is the embedding transposed as a matrix of its own, which is what can be quantized."""
    changed = model.clone()
    graph = changed.graph
    for node in [node for node in graph if node.op_type == "Transpose"]:
        (source,), (result,) = node.inputs, node.outputs
        if source is None or source.const_value is None or result.is_graph_output():
            continue
        matrix = np.ascontiguousarray(source.const_value.numpy().T)
        name = f"{source.name}.transposed"
        value = ir.Value(
            name=name,
            const_value=ir.tensor(matrix, name=name),
            type=source.type,
            shape=ir.Shape(matrix.shape),
        )
        graph.register_initializer(value)
        ir.convenience.replace_all_uses_with(result, value)
        graph.remove(node, safe=True)
    return changed


def base_name(name: str) -> str:
    """The parameter that an initializer comes from, quantized or rounded for storage."""
    for suffix in ("_Q8", "_Q4", "_scales", "_fp16", "_int8"):
        name = name.removesuffix(suffix)
    return name
