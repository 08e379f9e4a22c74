"""Rotary tables as transformers computes them: in float32, step by step, so that far positions turn by the same angles.

A frequency's rounding grows with the position: tables computed more finely would be another model at the context's end.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from journee.hugging_face.shape import Rotary


def rotary_tables(rotary: Rotary, head_dim: int, length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines [length, head_dim / 2]."""
    positions = torch.arange(length, dtype=torch.float32, device="cpu")
    angle = positions[:, None] * frequencies(rotary, head_dim)
    return angle.cos() * rotary.amplitude, angle.sin() * rotary.amplitude


def frequencies(rotary: Rotary, head_dim: int) -> Tensor:
    """Radians a token, [head_dim / 2]."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device="cpu") / head_dim
    periods = rotary.theta**exponents
    plain = 1.0 / periods
    if rotary.kind == "linear":
        return plain / rotary.factor
    if rotary.kind == "llama3":
        return _llama3(rotary, plain)
    if rotary.kind == "yarn":
        return _yarn(rotary, periods, head_dim)
    return plain


def _llama3(rotary: Rotary, plain: Tensor) -> Tensor:
    wavelength = 2 * math.pi / plain
    longest, shortest = rotary.original / rotary.low, rotary.original / rotary.high
    scaled = torch.where(wavelength > longest, plain / rotary.factor, plain)
    smooth = (rotary.original / wavelength - rotary.low) / (rotary.high - rotary.low)
    between = (1 - smooth) * scaled / rotary.factor + smooth * scaled
    return torch.where((wavelength >= shortest) & (wavelength <= longest), between, scaled)


def _yarn(rotary: Rotary, periods: Tensor, head_dim: int) -> Tensor:
    low, high = (
        head_dim * math.log(rotary.original / (turns * 2 * math.pi)) / (2 * math.log(rotary.theta))
        for turns in (rotary.fast, rotary.slow)
    )
    if rotary.truncate:
        low, high = math.floor(low), math.ceil(high)
    first, last = max(low, 0), min(high, head_dim - 1)
    if first == last:
        last += 0.001  # transformers' own way out of a division by zero
    ramp = (torch.arange(head_dim // 2, dtype=torch.float32, device="cpu") - first) / (last - first)
    kept = 1 - ramp.clamp(0, 1)
    return 1.0 / (rotary.factor * periods) * (1 - kept) + 1.0 / periods * kept


def yarn_amplitude(factor: float, weight: float = 1.0) -> float:
    """How much yarn scales cosines and sines (equation 21 of its paper)."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0
