"""The sparse Boolean mixture of experts (design section 6).

    s = W x + b                          five columns: Syntax, Quantity, Relation, Action, Inverter
    g = BooleanRouter(s, 2) and real     hard gates; a padding row has none
    c = sum of g_e E_e(x)
    y = c where the fifth gate is false, -c + C(c) where it is true (C linear)

Three steps, one method each, so that an exporter can replace any of them and keep the others:

- `scores(x)`: the router's linear map;
- `gates(scores, real)`: `journee.router.boolean_router` (the operator `journee::boolean_router`) and the
  padding mask;
- `dispatch(mixture, x, gates)`: from gates to y. `dispatch_sparse` is the default outside training: each
  expert is given the rows whose gate is true, and an expert without rows does nothing; the inverter likewise.
  An exporter sets `mixture.dispatch` to a function of its own that uses `experts[e]` (a module, [..., dim] to
  [..., dim]) and `correction` (a linear map): for instance `If` and `NonZero` around each.

Training computes every expert for every row and multiplies by the straight-through gates, so that gates that
are closed receive a gradient too.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from journee.config import MoEConfig
from journee.feed_forward import FeedForward
from journee.router import boolean_router, straight_through

EXPERTS = ("Syntax", "Quantity", "Relation", "Action")
INVERTER = "Inverter"
COLUMNS = (*EXPERTS, INVERTER)


class SparseMoE(nn.Module):
    """[batch, rows, dim] to [batch, rows, dim]; `real` [batch, rows] bool marks rows that are not padding."""

    def __init__(self, dim: int, config: MoEConfig) -> None:
        super().__init__()
        self.active = config.active
        self.router = nn.Linear(dim, config.experts + 1)
        self.experts = nn.ModuleList(FeedForward(dim, config.expert_dim) for _ in range(config.experts))
        self.correction = nn.Linear(dim, dim, bias=False)
        self.dispatch: Callable[[SparseMoE, Tensor, Tensor], Tensor] = dispatch_sparse

    def scores(self, x: Tensor) -> Tensor:
        """Router scores [batch, rows, experts + 1]."""
        scores: Tensor = self.router(x)
        return scores

    def gates(self, scores: Tensor, real: Tensor | None) -> Tensor:
        """Boolean gates [batch, rows, experts + 1], all false on padding rows."""
        gates = boolean_router(scores, self.active)
        return gates if real is None else gates & real[..., None]

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        scores = self.scores(x)
        if self.training:
            return dispatch_dense(self, x, straight_through(scores, self.active))
        return self.dispatch(self, x, self.gates(scores, real))


def dispatch_dense(mixture: SparseMoE, x: Tensor, gates: Tensor) -> Tensor:
    """Every expert on every row, times its gate (bool, or 0.0 and 1.0): the reference, and what trains."""
    weights = gates.to(x.dtype)
    outputs = [weights[..., e : e + 1] * expert(x) for e, expert in enumerate(mixture.experts)]
    combined = torch.stack(outputs).sum(0)
    invert = weights[..., -1:]
    inverted: Tensor = mixture.correction(combined) - combined
    return (1 - invert) * combined + invert * inverted


def dispatch_sparse(mixture: SparseMoE, x: Tensor, gates: Tensor) -> Tensor:
    """Only the rows whose gate is true go to an expert; an expert without rows is not run."""
    rows, open_gates = x.flatten(0, -2), gates.flatten(0, -2)
    combined = torch.zeros_like(rows)
    for e, expert in enumerate(mixture.experts):
        chosen = open_gates[:, e].nonzero()[:, 0]
        if chosen.numel():
            combined = combined.index_add(0, chosen, expert(rows[chosen]))
    inverted = open_gates[:, -1].nonzero()[:, 0]
    if inverted.numel():
        state = combined[inverted]
        combined = combined.index_copy(0, inverted, mixture.correction(state) - state)
    return combined.view(x.shape)
