"""Optimizers and the learning-rate schedule.

The matrices inside the blocks are trained by Muon (Jordan et al. 2024): momentum, then the update is replaced by the
nearest semi-orthogonal matrix, found by a few Newton-Schulz steps. The router, embedding, projection and norms
are trained by AdamW, with weight decay on none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from journee.model import Decoder

NEWTON_SCHULZ = (
    (4.0848, -6.8946, 2.9270),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
)
"""Coefficients (a, b, c) of X <- a X + b (X X^T) X + c (X X^T)^2 X, one triple a step (Cesista et al. 2025)."""


def orthogonalize(matrices: Tensor) -> Tensor:
    """Near-orthogonal matrices with the singular vectors of [n, rows, columns]; singular values end close to 1."""
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.transpose(-2, -1) if tall else matrices
    x = x / (x.square().sum((-2, -1), keepdim=True).sqrt() * 1.02 + 1e-7)
    for a, b, c in NEWTON_SCHULZ:
        gram = x @ x.transpose(-2, -1)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.transpose(-2, -1) if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum whose updates are orthogonalized, for matrices; equal shapes are handled together.

    The update is scaled by 0.2 sqrt(max(rows, columns)), so that its entries have the size of AdamW's (Liu et al. 2025)
    and both optimizers share one learning rate and weight decay.
    """

    def __init__(
        self, matrices: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    by_shape.setdefault(matrix.shape, []).append(matrix)
            for shape, matrices in by_shape.items():
                updates = orthogonalize(torch.stack([self._momentum(m, group["momentum"]) for m in matrices]))
                scale = 0.2 * math.sqrt(max(shape))
                for matrix, update in zip(matrices, updates, strict=True):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"] * scale)

    def _momentum(self, matrix: Tensor, momentum: float) -> Tensor:
        """Nesterov's look-ahead of the running gradient."""
        assert matrix.grad is not None
        running: Tensor = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
        running.lerp_(matrix.grad, 1 - momentum)
        return matrix.grad.lerp(running, momentum)


def split_parameters(model: Decoder) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The blocks' matrices (for Muon), and everything else."""
    matrices, others = list[nn.Parameter](), list[nn.Parameter]()
    for name, parameter in model.named_parameters():
        inside = name.startswith("blocks.") and parameter.dim() == 2 and ".router." not in name
        (matrices if inside else others).append(parameter)
    return matrices, others


DECAY = 0.4
"""The last part of a run, in which the learning rate falls."""


def decay_start(steps: int) -> int:
    """The step from which a run of `steps` lowers its learning rate; until then it is the same for every length."""
    return round(steps * (1 - DECAY))


def learning_rate(step: int, steps: int, warmup: int) -> float:
    """The factor at `step`: a linear warm-up, a plateau, a linear fall towards 0 (Hagele et al. 2024)."""
    rise = (step + 1) / warmup if step < warmup else 1.0
    fall = (steps - step) / (steps - decay_start(steps)) if step > decay_start(steps) else 1.0
    return min(rise, fall)
