"""Where the text ends: one pure function of the tokens, asked about each as it is decided, before anything is emitted.

Portable Python.

The earliest end wins; at one token, an end-of-sequence or a stop goes before the length. The token that ends
the text is the last one kept.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

END = "end-of-sequence"
STOP = "stop"
LENGTH = "length"
CONTEXT = "context"


class Stops:
    """`cut` for one generation.

    limit      tokens that may be emitted in all, at least 1
    reason     what a text that reaches the limit reports: "length", or "context" where the model's context is
               shorter
    ends       end-of-sequence tokens
    sequences  token sequences that stop the text
    strings    told the generated tokens and the new ones, says whether their text contains a stop string; pure
    """

    def __init__(
        self,
        limit: int,
        *,
        reason: str = LENGTH,
        ends: Sequence[int] = (),
        sequences: Sequence[Sequence[int]] = (),
        strings: Callable[[list[int], list[int]], bool] | None = None,
    ) -> None:
        if limit < 1:
            raise ValueError(f"the limit is {limit} new tokens; it must be at least 1")
        self._limit = limit
        self._reason = reason
        self._ends = list(ends)
        self._sequences = [list(sequence) for sequence in sequences]
        self._strings = strings
        if not all(self._sequences):
            raise ValueError("a stop sequence has no tokens; it would stop every text before it begins")
        self._longest = max([len(sequence) for sequence in self._sequences], default=1)

    def room(self, generated: int) -> int:
        """How many more tokens may be emitted."""
        return self._limit - generated

    def cut(self, generated: list[int], new: list[int]) -> tuple[int, str]:
        """How many of the `new` tokens to keep, and why the text ends after them ("" if it goes on)."""
        for count in range(1, len(new) + 1):
            reason = self._ending(generated, new[:count])
            if reason:
                return count, reason
        return len(new), ""

    def _ending(self, generated: list[int], new: list[int]) -> str:
        if new[-1] in self._ends:
            return END
        recent = generated[-self._longest :] + new
        for sequence in self._sequences:
            if recent[-len(sequence) :] == sequence:
                return STOP
        if self._strings is not None and self._strings(generated, new):
            return STOP
        return self._reason if len(generated) + len(new) >= self._limit else ""
