"""Where randomness enters: three questions with a key each, and a fourth by position. Portable Python.

A key is (purpose, position, round): what is drawn, for which position of the text, in which round. Rounds are
in it because a position is visited again after a rejection, and a draw used twice biases the text
(docs/distributions.md). Darts are different: all who ask at a position look at the same ones, and that is the point
(journee_deploy.controller.darts).

Weights pass through the controller untouched; only here are they scaled to whole units and drawn, so the
controller never sees a random integer. The coin goes back as a fraction, for the report alone.
"""

from __future__ import annotations

from journee_deploy.controller.darts import first_dart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from journee_deploy.protocols import Draws, Ops

    Key = tuple[int, int, int]

PROPOSE = 0
JUDGE = 1
RECOVER = 2
BONUS = 3
DART = 4  # with the tier in bits 4 to 7 and the box from bit 8 on; its third word is the window


class Chance:
    """Answers by integer draws. `units` is the denominator that every weight is a multiple of: 2^50, or less
    in tests.
    """

    def __init__(self, ops: Ops, draws: Draws, units: int = 1 << 50) -> None:
        self._ops = ops
        self._draws = draws
        self._units = units

    def accept(self, p: float, q: float, key: Key) -> tuple[bool, float]:
        """True with probability min(1, p / q), for a token drawn with q > 0; and the coin, below q."""
        coin = self._draws.below(self._whole(q), key)
        return coin < self._whole(p), coin / self._units

    def pick(self, handle: int, key: Key) -> tuple[int, float]:
        """A token drawn from a vector's weights over their total, and the coin, below the total."""
        coin = self._draws.below(self._whole(self._ops.total(handle)), key) / self._units
        return self._ops.locate(handle, coin), coin

    def first_dart(self, handle: int, position: int) -> tuple[int, int]:
        """The token that a position's first dart under a distribution falls on, and the window of time it falls in.

        A function of seed, sample, position and the distribution: it may be asked any number of times.
        """

        def curve(token: int) -> int:
            return self._whole(self._ops.weight(handle, token)) if token < self._ops.size else 0

        def streams(window: int) -> list[Iterator[int]]:
            return self._draws.streams([(DART | tier << 4 | box << 8, position, window) for tier, box in opened])

        opened = self._ops.boxes(handle)
        return first_dart(opened, curve, streams, self._units)

    def _whole(self, weight: float) -> int:
        return int(weight * self._units)
