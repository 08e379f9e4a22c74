"""Who proposes. A draft answers "from which distribution is the next proposal drawn?" with a handle.

Portable Python.

`next` is a sub-generator: it may yield runs before it answers, and tells `caches` what they write. It sees the
decided text and the proposals so far, never the target's rows. EMPTY (-1) ends the drafting of this round. A
draft keeps no state between calls: a generator may be closed at any yield, and one draft may serve several.
"""

from __future__ import annotations

from journee_deploy.controller.requests import EMPTY, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from journee_deploy.controller.caches import Caches
    from journee_deploy.protocols import Ops


class NoDraft:
    """Plain decoding: proposes nothing."""

    name = "none"

    def room(self, length: int) -> int | None:
        return 0

    def next(
        self, text: list[int], proposals: list[int], ops: Ops, caches: Caches
    ) -> Generator[tuple[Run, ...], tuple[int, ...], int]:
        return EMPTY
        yield ()  # makes this a generator


class UniformDraft(NoDraft):
    """Proposes from what equal logits give: a useless draft, which costs speed but never exactness."""

    name = "uniform"

    def room(self, length: int) -> int | None:
        return None

    def next(
        self, text: list[int], proposals: list[int], ops: Ops, caches: Caches
    ) -> Generator[tuple[Run, ...], tuple[int, ...], int]:
        return ops.uniform()
        yield ()


class ModelDraft:
    """Proposes from a model run ahead, one token at a time, with a cache of its own under the role "draft".

    context    how many tokens the model can hold; 0 for no bound
    """

    name = "model"
    role = "draft"

    def __init__(self, context: int = 0) -> None:
        self._context = context

    def room(self, length: int) -> int | None:
        return max(self._context + 1 - length, 0) if self._context else None

    def next(
        self, text: list[int], proposals: list[int], ops: Ops, caches: Caches
    ) -> Generator[tuple[Run, ...], tuple[int, ...], int]:
        base = len(text) - 1
        if proposals:
            start, tokens = base + len(proposals), proposals[-1:]
        else:
            start = min(caches.valid(self.role), base)
            tokens = text[start:]
        caches.lower(self.role, start)
        (row,) = yield (Run(self.role, tokens, start, 1),)
        caches.wrote(self.role, start + len(tokens))
        return ops.distribution(row)


class NgramDraft(NoDraft):
    """Prompt lookup: what followed the last few tokens when they stood in the text before. No second model.

    Of all earlier places where the longest run of last tokens stood, `least` to `most` of them, the latest one counts,
    and the token after it is proposed with q = 1. Saxena 2023, "Prompt lookup decoding".
    """

    name = "ngram"

    def __init__(self, least: int = 1, most: int = 4) -> None:
        if not 1 <= least <= most:
            raise ValueError(f"an n-gram draft matches {least} to {most} tokens; it must be at least 1, least first")
        self._least = least
        self._most = most

    def room(self, length: int) -> int | None:
        return None

    def next(
        self, text: list[int], proposals: list[int], ops: Ops, caches: Caches
    ) -> Generator[tuple[Run, ...], tuple[int, ...], int]:
        tokens = text + proposals
        place = self._follows(tokens)
        return EMPTY if place < 0 else ops.one_hot(tokens[place])
        yield ()

    def _follows(self, tokens: list[int]) -> int:
        """Where the token stands that followed the longest earlier match, the latest of them; -1 if there is none."""
        best = self._least - 1
        place = -1
        last = tokens[-1]
        for end in range(len(tokens) - 1, 0, -1):  # the match would be tokens[end - n : end]
            if tokens[end - 1] != last:
                continue
            n = 1
            while n < self._most and n < end and tokens[end - 1 - n] == tokens[-1 - n]:
                n += 1
            if n > best:
                best = n
                place = end
                if n == self._most:
                    break
        return place
