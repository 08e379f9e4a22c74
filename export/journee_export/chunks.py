"""A graph whose weights lie in chunk files, cut between tensors: what a page can download, verify and keep one by one.

Tensors lie in the order of the model's parameters, each at a multiple of `ALIGNMENT` bytes. A chunk ends before the
tensor that would make it larger than asked; a tensor that is larger alone has a chunk of its own. Files are named as
transformers.js wants them: model.onnx_data, model.onnx_data_1, ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx_ir as ir

from journee.causal import CausalDecoder
from journee_export.graph import weight_values

ALIGNMENT = 16


def write_chunked(model: ir.Model, decoder: CausalDecoder, folder: Path, graph: str, chunk: int) -> tuple[str, ...]:
    """Write `model` as the file `graph` in `folder`, and its weights beside it in chunks of up to `chunk` bytes; the
    chunks' names.
    """
    names: list[str] = []
    for values in cut(weight_values(model, decoder), chunk):
        names.append(f"{graph}_data" + (f"_{len(names)}" if names else ""))
        _write(folder, names[-1], values)
    proto = ir.serde.serialize_model(model)
    (folder / graph).write_bytes(proto.SerializeToString(deterministic=True))
    return tuple(names)


def cut(values: Sequence[ir.Value], chunk: int) -> Iterator[list[ir.Value]]:
    """The values in order, as many together as `chunk` bytes hold; one that is larger alone, by itself."""
    held: list[ir.Value] = []
    for value in values:
        if held and sum(map(_room, held)) + _room(value) > chunk:
            yield held
            held = []
        held.append(value)
    if held:
        yield held


def _room(value: ir.Value) -> int:
    assert value.const_value is not None
    return -(-value.const_value.nbytes // ALIGNMENT) * ALIGNMENT


def _write(folder: Path, name: str, values: Sequence[ir.Value]) -> None:
    """Write the tensors of `values` to the file, which they refer to afterwards."""
    at = 0
    with (folder / name).open("wb") as file:
        for value in values:
            tensor = value.const_value
            assert tensor is not None
            content = tensor.tobytes()
            file.write(content.ljust(_room(value), b"\0"))
            value.const_value = ir.ExternalTensor(
                name,
                at,
                len(content),
                tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy()),
                name=value.name or "",
                base_dir=folder,
            )
            at += _room(value)
