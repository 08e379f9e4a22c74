"""Routing with real sparsity: an expert runs on the rows whose gate is true, and an expert without rows runs
nothing.

The same sums as `journee.moe.dispatch_sparse`, in a form that traces: one `If` an expert; inside, NonZero
finds its rows, Gather takes them, ScatterND adds what comes out to the combined state. `If` and NonZero beat
gathering weights and computing everything, at one row and at five hundred (design section 7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from journee.moe import SparseMoE

cond = cast(Any, torch.cond)  # pyright: ignore[reportUnknownMemberType]


def dispatch_with_if(mixture: SparseMoE, x: Tensor, gates: Tensor) -> Tensor:
    """x [batch, rows, dim] and bool gates [batch, rows, experts + 1] to the mixture's output [batch, rows,
    dim].
    """
    rows, open_gates = x.flatten(0, -2), gates.flatten(0, -2)
    needed = open_gates.any(0)
    state = torch.zeros_like(rows)
    for column, expert in enumerate(mixture.experts):
        state = _where_open(needed, open_gates, column, state, _added(expert, rows))
    state = _where_open(needed, open_gates, -1, state, _inverted(mixture.correction))
    return state.reshape(x.shape)


def _where_open(
    needed: Tensor, gates: Tensor, column: int, state: Tensor, change: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """`change(state, chosen)` for the rows that the column's gate chooses if there are any, else `state`."""

    def some(gates: Tensor, state: Tensor) -> Tensor:
        return change(state, gates[:, column].nonzero().squeeze(1))

    def none(gates: Tensor, state: Tensor) -> Tensor:
        return state.clone()

    changed: Tensor = cond(needed[column], some, none, (gates, state))
    return changed


def _added(expert: torch.nn.Module, rows: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    def change(state: Tensor, chosen: Tensor) -> Tensor:
        return state.index_put((chosen,), _apply(expert, rows, chosen), accumulate=True)

    return change


def _inverted(correction: torch.nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    def change(state: Tensor, chosen: Tensor) -> Tensor:
        return state.index_put((chosen,), _apply(correction, state, chosen) - state.index_select(0, chosen))

    return change


def _apply(module: torch.nn.Module, rows: Tensor, chosen: Tensor) -> Tensor:
    """`module` on the chosen rows, as a batch of one: linear maps of 3-D tensors trace to MatMul, of 2-D to
    Gemm.
    """
    out: Tensor = module(rows[None].index_select(1, chosen))
    return out.squeeze(0)
