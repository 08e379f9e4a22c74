"""The row rule: padding under which a row of logits depends on its prefix alone, bit for bit.

Graph runs are not row-invariant by themselves: a matrix product with one row may add in another order than
one with two, and a softmax over the total length may keep four lanes and a tail ("batch invariance"
elsewhere). A rule is a shape that every run takes, plain decoding and prefill included, so that both ways to
a row are the same way:

- *flexible*: at least `rows` rows a run, and start + rows a multiple of `multiple`; padding comes last;
- *fixed*: every run is one aligned block of exactly `rows` rows; rows before the step's start are run again.

Which rule holds is a fact about a graph on a machine; `journee_deploy.row_self_test` finds it. This module
only says which runs a rule asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

CHUNK = 256
"""Rows of the longest run, so that a long prompt needs bounded memory."""
LARGEST = 32
"""The most a rule may ask for, so that padding stays below 64 rows and within a graph's rotary tables."""


class Piece(NamedTuple):
    """One run of the graph for a part of a step: the text from `start` on, `real` tokens of it, then
    `padding` rows.

    `keep` is how many last rows the graph is asked for, padding included, at least 1. Of those, `take` real
    rows are the caller's: they end where the padding begins.
    """

    start: int
    real: int
    padding: int
    keep: int
    take: int

    @property
    def rows(self) -> int:
        return self.real + self.padding

    @property
    def end(self) -> int:
        """Length of the text after the piece, padding apart."""
        return self.start + self.real


@dataclass(frozen=True, slots=True)
class RowRule:
    """At least `rows` rows a run, and start + rows a multiple of `multiple`; or, `fixed`, aligned blocks of
    `rows` rows.
    """

    rows: int
    multiple: int
    fixed: bool = False

    def __post_init__(self) -> None:
        sound = 1 <= self.rows <= LARGEST and 1 <= self.multiple <= LARGEST
        if not sound or (self.fixed and self.rows != self.multiple):
            raise ValueError(f"no such row rule: rows {self.rows}, multiple {self.multiple}, fixed {self.fixed}")

    def __str__(self) -> str:
        if self.fixed:
            return f"aligned blocks of {self.rows} rows"
        least = f"at least {self.rows} row{'s' if self.rows > 1 else ''} a run"
        return least if self.multiple == 1 else f"{least}, start + rows a multiple of {self.multiple}"

    def padding(self, start: int, count: int) -> int:
        """Rows of padding after `count` rows from `start` on, run as one piece."""
        if self.fixed:
            return -(start + count) % self.multiple
        rows = max(self.rows, count)
        return rows + -(start + rows) % self.multiple - count

    def origin(self, start: int) -> int:
        """The latest place from which a run that covers row `start` may begin."""
        return start - start % self.multiple if self.fixed else start

    def plan(self, start: int, count: int, keep: int, chunk: int = CHUNK) -> tuple[Piece, ...]:
        """The runs for `count` rows from `start` on, of which the last `keep` are wanted.

        The first piece of a fixed rule begins at or before `start`. Chunks end at multiples of the rule, so
        that only the last has padding; a flexible rule's chunk has at most `chunk` rows, which must be at
        least `rows + 2 * multiple`.
        """
        end = start + count
        pieces: list[Piece] = []
        at = self.origin(start)
        while at < end:
            stop = self._stop(at, end, chunk)
            pieces.append(self._piece(at, stop, wanted=max(0, stop - max(at, end - keep))))
            at = stop
        return tuple(pieces)

    def _stop(self, at: int, end: int, chunk: int) -> int:
        if self.fixed:
            return min(end, at + self.rows)
        return end if end - at <= chunk else (at + chunk) // self.multiple * self.multiple

    def _piece(self, at: int, stop: int, wanted: int) -> Piece:
        padding = self.padding(at, stop - at)
        rows = stop - at + padding
        least = self.rows if wanted else 1
        return Piece(at, stop - at, padding, keep=min(rows, max(least, wanted + padding)), take=wanted)


NO_RULE = RowRule(1, 1)
"""What a run looks like where no rule is in force: exactly the rows asked for. It is also the cheapest
candidate.
"""

CANDIDATES = (
    NO_RULE,
    RowRule(2, 1),
    RowRule(1, 4),
    RowRule(2, 4),
    RowRule(2, 8),
    RowRule(2, 16),
    RowRule(8, 8, fixed=True),
    RowRule(16, 16, fixed=True),
)
"""Tried in this order: the cheapest first."""
