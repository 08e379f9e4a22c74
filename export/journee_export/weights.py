"""A role's weights beside its graphs, the same bytes whenever the same weights are exported.

Tensors lie one after another in the order of the model's parameters, little-endian, in one file, or in several below
2 GB, which file systems and readers everywhere take. Graph variants of a role share the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import onnx_ir as ir

from journee.causal import CausalDecoder
from journee_export.chunks import cut
from journee_export.graph import weight_values

LARGEST_FILE = 2_000_000_000
"""Bytes of tensors that a file of weights holds at most, unless one tensor has more."""


def write_graph(
    model: ir.Model, decoder: CausalDecoder, folder: Path, graph: str, weights: str, largest: int = LARGEST_FILE
) -> tuple[str, ...]:
    """Write `model` as the file `graph` in `folder`, and its weights as `weights`, `weights`_1, ... of up to `largest`
    bytes, to which `model` then refers; the names of those files.
    """
    names: list[str] = []
    convert = cast(Any, ir.external_data.convert_tensors_to_external)  # pyright: ignore[reportUnknownMemberType]
    for values in cut(weight_values(model, decoder), largest):
        names.append(weights + (f"_{len(names)}" if names else ""))
        tensors = [value.const_value for value in values if value.const_value is not None]
        external: list[ir.ExternalTensor] = convert(tensors, folder, names[-1])
        for value, tensor in zip(values, external, strict=True):
            value.const_value = tensor
    proto = ir.serde.serialize_model(model)
    (folder / graph).write_bytes(proto.SerializeToString(deterministic=True))
    return tuple(names)
