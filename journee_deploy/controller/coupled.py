"""Rule `coupled`: draft and target look at the same darts, and a proposal is accepted if they see the same one first.

Portable Python.

Daliri, Musco, Suresh 2024 ("Coupling without communication and drafter-invariant speculative decoding"), with darts
in whole units (journee_deploy.controller.darts). The token at a position is always the target's first dart, a function
of seed, sample, position and p; so the text is the same with any draft, any K, or none, and has the target's law
because the first dart under p has. A draft only guesses the token, and it guesses right with probability exactly

    sum min(p, q) (1 + |p - q|) / (1 + TV)   >=   (1 - TV) / (1 + TV)

No coupling of p and q can do better than 1 - TV, which is what `residual` accepts. The paper's Gumbel protocol accepts
somewhat more often than darts do, but needs logarithms, so its law is not exact; darts need whole numbers alone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from journee_deploy.protocols import ChanceLike, Ops


class Coupled:
    """How a round decides. `position` is the index in the text of the token in question; rounds play no part."""

    name = "coupled"

    def propose(self, q: int, position: int, number: int, chance: ChanceLike) -> tuple[int, float | None]:
        """Guess: the first dart under q."""
        return chance.first_dart(q, position)[0], None

    def judge(
        self, p: int, q: int, proposal: int, position: int, number: int, ops: Ops, chance: ChanceLike
    ) -> tuple[int, bool, float | None]:
        """The token at this position, whether it is the proposal, and no coin: nothing is tossed."""
        token, _ = chance.first_dart(p, position)
        return token, token == proposal, None

    def bonus(self, p: int, position: int, number: int, chance: ChanceLike) -> tuple[int, float | None]:
        """The first dart under p, with nothing proposed."""
        return chance.first_dart(p, position)[0], None

    def acceptance(self, p: int, q: int, ops: Ops) -> float:
        """The probability that both see the same dart's token first."""
        return ops.agreement(p, q)
