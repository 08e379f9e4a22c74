"""The last rows of the final states, so that the head computes only the logits that are asked for.

    kept = last_rows(states, count)      states [batch, rows, dim], count int64 scalar, kept [batch, count or
    rows, dim]

`count` 0 means all rows, and so does any count beyond them. In the graph it is one Slice from -count on: a
Slice from -0 takes everything, so that 0 needs no branch.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from onnxscript import FLOAT, INT64
from onnxscript.onnx_opset import opset24
from torch import Tensor

op: Any = opset24
"""Its methods build nodes here, but are typed as if they computed."""


@torch.library.custom_op("journee::last_rows", mutates_args=())
def last_rows(states: Tensor, count: Tensor) -> Tensor:
    """See the module."""
    return states[:, -int(count) :].clone()


@last_rows.register_fake  # pyright: ignore[reportUnknownMemberType]
def _shape(states: Tensor, count: Tensor) -> Tensor:
    context = cast(Any, torch.library.get_ctx())  # pyright: ignore[reportUnknownMemberType]
    rows: int = context.new_dynamic_size()
    return states.new_empty(states.shape[0], rows, states.shape[2])


def last_rows_node(states: FLOAT, count: INT64) -> Any:
    """What the trace emits for `torch.ops.journee.last_rows`."""
    one = op.Constant(value_ints=[1])
    return op.Slice(states, op.Reshape(op.Neg(count), one), op.Constant(value_ints=[2**63 - 1]), one)
