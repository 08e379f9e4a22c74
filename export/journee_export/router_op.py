"""`ai.journee::BooleanRouter`: the router as one op of the graph, an ONNX local function of standard ops.

    gates = BooleanRouter <k: int> (scores)      scores [..., E + 1] float, gates [..., E + 1] bool

- For the first E columns, true for the k largest scores; equal scores (0.0 and -0.0 are equal) are taken in
  the order of their columns.
- For the last column, true where the score is above 0.

Equivalent PyTorch: `journee.router.boolean_router`, traced as `torch.ops.journee.boolean_router`. PyTorch's
exporter inlines the functions it is given, so the trace emits a plain node (`router_node`), and the
function's body is added to the finished model (`add_router`). Any ONNX runtime runs it, without a native
library.
"""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
from onnx.defs import OpSchema
from onnxscript import BOOL, FLOAT, INT64, script
from onnxscript.onnx_opset import opset24
from onnxscript.values import Op, Opset

DOMAIN = "ai.journee"
VERSION = 1
NAME = "BooleanRouter"

journee = Opset(DOMAIN, VERSION)
op: Any = opset24
"""Its methods build nodes here, but are typed as if they computed."""


@script(journee, default_opset=op)
def BooleanRouter(scores: FLOAT[...], k: int) -> BOOL[...]:  # type: ignore[misc, type-arg]  # noqa: N802
    """A gate is true when fewer than k columns come before its own: larger scores, or equal ones to its left."""
    zero, one, last = op.Constant(value_ints=[0]), op.Constant(value_ints=[1]), op.Constant(value_ints=[-1])
    experts = op.Slice(scores, zero, last, last)
    inverter = op.Slice(scores, last, op.Constant(value_ints=[9223372036854775807]), last)
    count = op.Squeeze(op.Shape(experts, start=-1))
    columns = op.Range(op.Constant(value_int=0), count, op.Constant(value_int=1))
    left = op.Less(op.Unsqueeze(columns, zero), op.Unsqueeze(columns, one))
    theirs, own = op.Unsqueeze(experts, op.Constant(value_ints=[-2])), op.Unsqueeze(experts, last)
    before = op.Or(op.Greater(theirs, own), op.And(op.Equal(theirs, own), left))
    place = op.ReduceSum(op.Cast(before, to=INT64.dtype), last, keepdims=0)
    chosen = op.Less(place, op.Constant(value_int=k))
    return op.Concat(chosen, op.Greater(inverter, op.Constant(value_float=0.0)), axis=-1)  # type: ignore[no-any-return]


SCHEMA = OpSchema(
    NAME,
    DOMAIN,
    VERSION,
    doc="See journee_export.router_op.",
    inputs=[OpSchema.FormalParameter("scores", "tensor(float)")],
    outputs=[OpSchema.FormalParameter("gates", "tensor(bool)")],
    attributes=[OpSchema.Attribute("k", OpSchema.AttrType.INT, "How many of the first E gates are true.")],
)

_node: Any = Op(journee, NAME, SCHEMA)


def router_node(scores: FLOAT, k: int) -> Any:
    """The node that the trace emits for `torch.ops.journee.boolean_router`."""
    return _node(scores, k=k)


def router_function() -> onnx.FunctionProto:
    """The body of the op."""
    return BooleanRouter.to_function_proto()


def add_router(model: ir.Model) -> None:
    """Give `model` the body of the op."""
    function = ir.serde.deserialize_function(router_function())
    model.functions[function.identifier()] = function
