"""A role's weights in one file beside its graphs, the same bytes whenever the same weights are exported.

Tensors lie one after another in the order of the model's parameters, little-endian, without padding. Graph
variants of a role share the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import onnx_ir as ir

from journee.model import Decoder
from journee_export.graph import weight_values


def write_graph(model: ir.Model, decoder: Decoder, folder: Path, graph: str, weights: str) -> None:
    """Write `model` as the files `graph` and `weights` in `folder`; `model` then refers to the weights file."""
    values = weight_values(model, decoder)
    tensors = [value.const_value for value in values if value.const_value is not None]
    convert = cast(Any, ir.external_data.convert_tensors_to_external)  # pyright: ignore[reportUnknownMemberType]
    external: list[ir.ExternalTensor] = convert(tensors, folder, weights)
    for value, tensor in zip(values, external, strict=True):
        value.const_value = tensor
    proto = ir.serde.serialize_model(model)
    (folder / graph).write_bytes(proto.SerializeToString(deterministic=True))
