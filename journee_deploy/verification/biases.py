"""Wrong rules, and the exact law of each: what the G-test must be able to see on this bundle.

Each is a shipped rule with one mistake. Its kernel (laws.Kernel) is the weight it gives to tokens kept and replaced;
tests compare the kernels with the enumeration of the rules themselves. Z is the chance of a rejection under `residual`,
which is TV(p, q).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

from journee_deploy.controller import Coupled, Residual
from journee_deploy.controller.chance import JUDGE, RECOVER
from journee_deploy.enumeration import ONE, ZERO
from journee_deploy.protocols import ChanceLike, Ops, Rule
from journee_deploy.verification.laws import Kernel, Weights

Judged = tuple[int, bool, float | None]


def common(p: Weights, q: Weights) -> Weights:
    """min(p, q): what `residual` keeps."""
    return {token: min(weight, q[token]) for token, weight in p.items()}


def above(p: Weights, q: Weights) -> Weights:
    """max(p - q, 0): the residual."""
    return {token: max(weight - q[token], ZERO) for token, weight in p.items()}


def agreed(p: Weights, q: Weights) -> Weights:
    """Where both see the same dart's token first: min(p, q) (1 + |p - q|) / (1 + TV)."""
    spread = ONE + _lost(p, q)
    return {token: min(a, q[token]) * (ONE + abs(a - q[token])) / spread for token, a in p.items()}


def _lost(p: Weights, q: Weights) -> Fraction:
    """TV(p, q), from q at p's tokens alone: 1 - sum of min(p, q)."""
    return ONE - sum(common(p, q).values(), ZERO)


def _rest(kept: Weights) -> Fraction:
    return ONE - sum(kept.values(), ZERO)


def _likeliest(residual: Weights) -> int:
    return min(residual, key=lambda token: (-residual[token], token))


def residual_kernel(p: Weights, q: Weights) -> tuple[Weights, Weights]:
    """The rule as it should be."""
    return common(p, q), above(p, q)


def coupled_kernel(p: Weights, q: Weights) -> tuple[Weights, Weights]:
    """The rule as it should be."""
    kept = agreed(p, q)
    return kept, {token: weight - kept[token] for token, weight in p.items()}


class FromTarget(Residual):
    """The mistake that shipped most: after a rejection the token is drawn from p, not from the residual."""

    sentence: ClassVar[str] = "after a rejection the token is drawn from p instead of the residual"

    def judge(self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike) -> Judged:
        kept, coin = chance.accept(ops.weight(p, proposal), ops.weight(q, proposal), (JUDGE, position, number))
        return (proposal, True, coin) if kept else (chance.pick(p, (RECOVER, position, number))[0], False, coin)

    @staticmethod
    def kernel(p: Weights, q: Weights) -> tuple[Weights, Weights]:
        kept = common(p, q)
        return kept, {token: _rest(kept) * weight for token, weight in p.items()}


class Likeliest(Residual):
    """After a rejection, no draw: the residual's likeliest token, the lowest one among equals."""

    sentence: ClassVar[str] = "after a rejection the residual's likeliest token is taken instead of drawing one"

    def judge(self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike) -> Judged:
        kept, coin = chance.accept(ops.weight(p, proposal), ops.weight(q, proposal), (JUDGE, position, number))
        return (proposal, True, coin) if kept else (ops.top(ops.residual(p, q), 1)[0][0], False, coin)

    @staticmethod
    def kernel(p: Weights, q: Weights) -> tuple[Weights, Weights]:
        kept = common(p, q)
        return kept, {_likeliest(above(p, q)): _rest(kept)}


class Indulgent(Coupled):
    """Keeps a proposal that the target likes at least as well as the draft does, without a look at the darts.

    Its law: with x the draft's first dart and y the target's,

        P(x, y) = [min(p, q)(x) 1(x = y) + max(q - p, 0)(x) p(y) + q(x) max(p - q, 0)(y)] / (1 + TV)

    since the first dart under either curve is under both, or under one; then the other's is still to come.
    """

    sentence: ClassVar[str] = "a proposal with p >= q is kept whatever the target's dart says"

    def judge(self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike) -> Judged:
        if ops.weight(p, proposal) >= ops.weight(q, proposal):
            return proposal, True, None
        return super().judge(p, q, proposal, position, number, ops, chance)

    @staticmethod
    def kernel(p: Weights, q: Weights) -> tuple[Weights, Weights]:
        tv = _lost(p, q)
        liked = {token: q[token] if weight >= q[token] else ZERO for token, weight in p.items()}
        disliked, residual = _rest(liked), above(p, q)
        kept, replaced = dict(liked), dict.fromkeys(p, ZERO)
        for y, weight in p.items():
            same = weight if weight < q[y] else ZERO
            excess = max(q[y] - weight, ZERO)
            kept[y] += (same + excess * weight) / (ONE + tv)
            replaced[y] = ((tv - excess) * weight + disliked * residual[y]) / (ONE + tv)
        return kept, replaced


class Stubborn(Coupled):
    """After a disagreement, the residual's likeliest token, as if p were left there."""

    sentence: ClassVar[str] = "after a disagreement the residual's likeliest token is taken instead of the dart's"

    def judge(self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike) -> Judged:
        token, kept, coin = super().judge(p, q, proposal, position, number, ops, chance)
        return (token, True, coin) if kept else (ops.top(ops.residual(p, q), 1)[0][0], False, coin)

    @staticmethod
    def kernel(p: Weights, q: Weights) -> tuple[Weights, Weights]:
        kept = agreed(p, q)
        return kept, {_likeliest(above(p, q)): _rest(kept)}


Bias = type[FromTarget] | type[Likeliest] | type[Indulgent] | type[Stubborn]

HONEST: dict[str, tuple[Callable[[], Rule], Kernel]] = {
    "residual": (Residual, residual_kernel),
    "coupled": (Coupled, coupled_kernel),
}
BIASES: dict[str, tuple[Bias, ...]] = {"residual": (FromTarget, Likeliest), "coupled": (Indulgent, Stubborn)}
"""By rule, in the order of preference: the mistake that is likely to be made first."""
