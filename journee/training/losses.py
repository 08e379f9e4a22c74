"""Losses beside cross-entropy: routing of the mixture, distillation of a draft."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from journee.router import boolean_router


def routing_prior(scores: Tensor, classes: Tensor, active: int, margin: float = 1.0) -> Tensor:
    """A hinge that wants each class's tokens at its own expert, and is silent once they are there by `margin`.

    scores [tokens, E + 1], classes [tokens] (a column, or -1 for none). An expert is reached when its score beats the
    `active`-th largest of the others; the inverter when its score is above 0. Every class weighs the same, and what a
    token's other places go to is left free.
    """
    losses = [scores.new_zeros(())]
    experts = scores.shape[-1] - 1
    for column in range(scores.shape[-1]):
        of_class = scores[classes == column]
        if not len(of_class):
            continue
        bar = torch.zeros(())
        if column < experts:
            others = torch.cat([of_class[:, :column], of_class[:, column + 1 : experts]], dim=1)
            bar = others.topk(active, dim=1).values[:, -1]
        losses.append(functional.relu(margin - (of_class[:, column] - bar)).mean())
    return torch.stack(losses).sum()


def load_balance(scores: Tensor, active: int) -> Tensor:
    """Switch-style balance (Fedus et al. 2021) over the experts, and the same pressure on the inverter.

    sum over experts of (share of tokens) * (mean softmax) * E / active is 1 when all are equal. The inverter adds its
    share times its mean sigmoid.
    """
    share = boolean_router(scores.detach(), active).float().mean(0)
    soft = torch.cat([scores[:, :-1].softmax(-1), scores[:, -1:].sigmoid()], dim=-1).mean(0)
    experts = scores.shape[-1] - 1
    return (share[:-1] * soft[:-1]).sum() * experts / active + share[-1] * soft[-1]


def distillation(draft_logits: Tensor, target_logits: Tensor) -> Tensor:
    """Cross-entropy of the draft under the target's distribution, both [tokens, V], in nats a token."""
    return functional.cross_entropy(draft_logits, target_logits.softmax(-1))
