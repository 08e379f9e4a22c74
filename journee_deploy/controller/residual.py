"""Rule `residual`: accept a proposal with probability min(1, p / q), else draw from max(p - q, 0).

Portable Python.

Leviathan, Kalman, Matias 2023 (Theorem 1) and Chen et al. 2023, on distributions of whole units: with x drawn
from q,

    P[emit = x] = min(p, q)(x) + P[reject] * max(p - q, 0)(x) / Z,   P[reject] = Z,

so the emitted token has the law p exactly. A rejection implies Z > 0. Later proposals of the round are
discarded unseen.
"""

from __future__ import annotations

from journee_deploy.controller.chance import BONUS, JUDGE, PROPOSE, RECOVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from journee_deploy.protocols import ChanceLike, Ops


class Residual:
    """How a round decides. `position` is the index in the text of the token in question."""

    name = "residual"

    def propose(self, q: int, position: int, number: int, chance: ChanceLike) -> tuple[int, float | None]:
        """Draw a proposal from q."""
        return chance.pick(q, (PROPOSE, position, number))

    def judge(
        self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike
    ) -> tuple[int, bool, float | None]:
        """The token at this position, whether it is the proposal kept, and the coin that decided."""
        kept, coin = chance.accept(ops.weight(p, proposal), ops.weight(q, proposal), (JUDGE, position, number))
        if kept:
            return proposal, True, coin
        token, _ = chance.pick(ops.residual(p, q), (RECOVER, position, number))
        return token, False, coin

    def bonus(self, p: int, position: int, number: int, chance: ChanceLike) -> tuple[int, float | None]:
        """Draw a token from p, with nothing proposed."""
        return chance.pick(p, (BONUS, position, number))

    def acceptance(self, p: int, q: int, ops: Ops) -> float:
        """The probability that a proposal drawn from q is accepted: 1 - TV."""
        return ops.overlap(p, q)
