"""What each role's cache is known to hold.

Portable Python.

Invariant: for every role, the cache's first `valid(role)` tokens are the first `valid(role)` tokens of the
decided text. It is lowered before a run is asked for and raised only after tokens were decided, so it holds at
every yield, also when the generator is closed there.
"""

from __future__ import annotations


class Caches:
    """The prefix, in tokens, of each role's cache that equals decided text; 0 for a role not yet run."""

    def __init__(self) -> None:
        self._valid: dict[str, int] = {}
        self._written: dict[str, int] = {}  # in this round: how far the cache holds text and proposals

    def valid(self, role: str) -> int:
        return self._valid.get(role, 0)

    def begin(self) -> None:
        """A round begins: whatever an abandoned one wrote is not to be counted on."""
        self._written = {}

    def lower(self, role: str, length: int) -> None:
        """A run from `length` on is about to overwrite what follows."""
        self._valid[role] = min(self.valid(role), length)

    def wrote(self, role: str, length: int) -> None:
        """A run was answered: the cache holds text and proposals up to `length` tokens."""
        self._written[role] = length

    def decide(self, length: int) -> None:
        """The first `length` tokens of text and proposals are decided text: so is what the runs wrote of them."""
        for role in self._written:  # order: irrelevant
            self._valid[role] = min(self._written[role], length)
        self._written = {}
