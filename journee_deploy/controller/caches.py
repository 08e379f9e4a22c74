"""What each role's cache is known to hold. Portable Python.

Invariant: for every role, the cache's first `valid(role)` tokens are the first `valid(role)` tokens of the
decided text. It is lowered before a run is asked for and raised only after tokens were decided, so it holds
at every yield, also when the generator is closed there.
"""

from __future__ import annotations


class Caches:
    """The prefix, in tokens, of each role's cache that equals decided text; 0 for a role not yet run."""

    def __init__(self) -> None:
        self._valid: dict[str, int] = {}

    def valid(self, role: str) -> int:
        return self._valid.get(role, 0)

    def lower(self, role: str, length: int) -> None:
        """A run from `length` on is about to overwrite what follows."""
        self._valid[role] = min(self.valid(role), length)

    def decide(self, role: str, length: int) -> None:
        """The cache is now known to hold the first `length` tokens of decided text."""
        self._valid[role] = length
