"""The Boolean router: hard gates from scores, in one place.

    gates = BooleanRouter(s, k)        s [..., E + 1] float, gates [..., E + 1] bool

- for the first E columns, true for the k largest scores; equal scores are taken in the order of their
  columns;
- for the last column (the inverter), true where s > 0.

So exactly k of the first E gates are true, whatever the scores. The function is a PyTorch operator,
`torch.ops.journee.boolean_router`, so that a traced graph holds one node which the exporter maps to the ONNX
function `ai.journee::BooleanRouter`. It has no gradient; training wraps it in `straight_through`.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _gates(scores: Tensor, k: int) -> Tensor:
    """A gate is true when fewer than k columns come before its own: larger scores, or equal to its left."""
    experts = scores[..., :-1]
    columns = torch.arange(experts.shape[-1], device=scores.device)
    larger = experts[..., None, :] > experts[..., :, None]
    equal = experts[..., None, :] == experts[..., :, None]
    before = (larger | (equal & (columns[None, :] < columns[:, None]))).sum(-1)
    return torch.cat([before < k, scores[..., -1:] > 0], dim=-1)


@torch.library.custom_op("journee::boolean_router", mutates_args=())
def boolean_router_op(scores: Tensor, k: int) -> Tensor:
    """The operator itself, for tracing; call `boolean_router`."""
    return _gates(scores, k)


@boolean_router_op.register_fake  # pyright: ignore[reportUnknownMemberType]
def _shape_of_gates(scores: Tensor, k: int) -> Tensor:  # pyright: ignore[reportUnusedFunction]
    return torch.empty(scores.shape, dtype=torch.bool, device=scores.device)


def boolean_router(scores: Tensor, k: int) -> Tensor:
    """Boolean gates [..., E + 1] from scores [..., E + 1]; see the module's rules. 1 <= k <= E."""
    if not 1 <= k < scores.shape[-1]:
        experts = scores.shape[-1] - 1
        raise ValueError(f"the router was asked for {k} of {experts} experts; k must be 1 to {experts}")
    gates: Tensor = boolean_router_op(scores, k)
    return gates


def straight_through(scores: Tensor, k: int) -> Tensor:
    """The same gates as 0.0 and 1.0, with the gradient of sigmoid(scores) (Bengio et al. 2013)."""
    soft = torch.sigmoid(scores)
    hard = _gates(scores.detach(), k).to(soft.dtype)
    return hard + (soft - soft.detach())
