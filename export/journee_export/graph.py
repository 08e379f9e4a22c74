"""From the traced graph to the one that ships.

- Initializers that hold the model's parameters get the parameters' names; a matrix that the graph holds
  transposed, as MatMul wants it, is called `NAME.transposed`.
- `num_logits_to_keep` gets its default: an initializer, 0, so that a caller need not feed it.
- The router's body is added as a local function, or, inlined, replaces its node.
- Traces of the exporter's machine (stack traces, file names) are dropped.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.passes.common import CheckerPass, ClearMetadataAndDocStringPass, InlinePass

from journee.causal import CausalDecoder
from journee_export.errors import ExportError, foreign
from journee_export.quantize import base_name
from journee_export.router_op import DOMAIN, NAME, add_router
from journee_export.trace import input_names, trace

LARGEST_CONSTANT = 256
"""Bytes of a tensor in the graph that is no parameter."""

IR_VERSION = 12
"""The oldest ONNX file version that has opset 24."""

Router = Literal["function", "inlined", "none"]


def build_graph(decoder: CausalDecoder, inline: bool = False) -> ir.Model:
    """The ONNX model of `decoder`, weights in memory; `inline` leaves no custom op."""
    return finish(trace(decoder), decoder, inline)


def finish(model: ir.Model, decoder: CausalDecoder, inline: bool = False) -> ir.Model:
    """Make the graph that ships of the one that `trace` gave for `decoder`; `model` itself is changed and returned."""
    ClearMetadataAndDocStringPass()(model)
    _name_weights(model, decoder)
    _default_rows_kept(model, input_names(decoder.config.layers).rows_kept)
    _settle_router(model, inline)
    model.ir_version, model.graph.name = IR_VERSION, "journee"
    model.producer_name, model.producer_version = "journee-export", version("journee-deploy")
    with foreign("checking the graph with ONNX"):
        CheckerPass(full_check=True)(model)
    return model


def router_kind(model: ir.Model) -> Router:
    """How the router is in `model`: as a function, inlined, or not at all."""
    if any(node.domain == DOMAIN for node in model.graph.all_nodes()):
        return "function"
    return "inlined" if any(node.op_type == "If" for node in model.graph.all_nodes()) else "none"


def count_operators(model: ir.Model) -> dict[str, int]:
    """Nodes by type, subgraphs included, a function's body not; the most frequent first, then by name."""
    names = (f"{node.domain}::{node.op_type}" if node.domain else node.op_type for node in model.graph.all_nodes())
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


def weight_values(model: ir.Model, decoder: CausalDecoder) -> list[ir.Value]:
    """The initializers that hold parameters, in the parameters' order: the same for every variant of a role."""
    order = {name: at for at, name in enumerate(_names(decoder))}
    found = [value for name, value in model.graph.initializers.items() if base_name(name) in order]
    return sorted(found, key=lambda value: (order[base_name(value.name or "")], value.name or ""))


def _names(decoder: CausalDecoder) -> list[str]:
    return [name for parameter in _parameters(decoder) for name in (parameter, f"{parameter}.transposed")]


def _parameters(decoder: CausalDecoder) -> dict[str, NDArray[Any]]:
    tensors = {**dict(decoder.named_parameters()), **dict(decoder.named_buffers())}
    return {name: tensor.detach().numpy() for name, tensor in tensors.items()}


def _name_weights(model: ir.Model, decoder: CausalDecoder) -> None:
    known: dict[str, list[str]] = {}  # equal parameters, such as biases of zeros, each have a name of their own
    for name, array in _parameters(decoder).items():
        known.setdefault(_content(array), []).append(name)
        if array.ndim == 2:
            known.setdefault(_content(array.T), []).append(f"{name}.transposed")
    for value in list(model.graph.initializers.values()):
        assert value.const_value is not None
        array = value.const_value.numpy()
        if found := known.get(_content(array)):
            value.name = found.pop(0)
        elif array.nbytes > LARGEST_CONSTANT:
            raise ExportError(
                f"the graph holds {value.name} {array.shape}, which is no parameter of the model; "
                "check that torch, onnx and onnxscript are the versions in constraints.txt"
            )


def _content(array: NDArray[Any]) -> str:
    return f"{array.shape} {array.dtype} {sha256(array.tobytes()).hexdigest()}"


def _default_rows_kept(model: ir.Model, name: str | None) -> None:
    (value,) = [value for value in model.graph.inputs if value.name == name]
    value.const_value = ir.tensor(np.array(0, dtype=np.int64), name=name)
    model.graph.register_initializer(value)


def _settle_router(model: ir.Model, inline: bool) -> None:
    if all(node.op_type != NAME for node in model.graph.all_nodes()):
        model.graph.opset_imports.pop(DOMAIN, None)
        return
    add_router(model)
    if inline:
        InlinePass()(model)
        model.graph.opset_imports.pop(DOMAIN, None)
