"""How far to draft: two pure functions of the history, so a report holds all it takes to replay a run.
Portable Python.

`next_length(history) -> K` opens a round; `go_on(history, drafted) -> bool` is asked before every proposal
but the first and may look at what was drafted. A proposal that was drawn is always judged: throwing one away
after seeing it biases the text. The history is a list of (proposed, accepted), a round each.
"""

from __future__ import annotations


class ConstantPace:
    """The same K every round; 0 is plain decoding."""

    def __init__(self, length: int) -> None:
        if length < 0:
            raise ValueError(f"speculation length is {length}; it must be at least 0")
        self.length = length

    def next_length(self, history: list[tuple[int, int]]) -> int:
        return self.length

    def go_on(self, history: list[tuple[int, int]], drafted: list[int]) -> bool:
        return True
