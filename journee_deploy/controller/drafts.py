"""Who proposes. A draft answers "from which distribution is the next proposal drawn?" with a handle.

Portable Python.

`next` is a sub-generator: it may yield runs before it answers. It sees the decided text and the proposals so
far, never the target's rows. EMPTY (-1) ends the drafting of this round. `settle` tells it after each round
how often it was asked and what was decided. It keeps no state of its own: a generator may be closed at any
yield, and one draft may serve several.
"""

from __future__ import annotations

from journee_deploy.controller.requests import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from journee_deploy.controller.caches import Caches
    from journee_deploy.protocols import Ops


class NoDraft:
    """Plain decoding: proposes nothing."""

    name = "none"

    def next(
        self, text: list[int], proposals: list[int], ops: Ops, caches: Caches
    ) -> Generator[tuple[Run, ...], tuple[int, ...], int]:
        return -1
        yield ()  # makes this a generator

    def settle(self, base: int, asked: int, accepted: int, length: int, caches: Caches) -> None:
        pass


class UniformDraft(NoDraft):
    """Proposes from what equal logits give: a useless draft, which costs speed but never exactness."""

    name = "uniform"

    def next(
        self, text: list[int], proposals: list[int], ops: Ops, caches: Caches
    ) -> Generator[tuple[Run, ...], tuple[int, ...], int]:
        return ops.uniform()
        yield ()


class ModelDraft:
    """Proposes from a model run ahead, one token at a time, with a cache of its own under the role "draft"."""

    name = "model"
    role = "draft"

    def next(
        self, text: list[int], proposals: list[int], ops: Ops, caches: Caches
    ) -> Generator[tuple[Run, ...], tuple[int, ...], int]:
        base = len(text) - 1
        if proposals:
            start, tokens = base + len(proposals), proposals[-1:]
        else:
            start = min(caches.valid(self.role), base)
            tokens = text[start:]
        if self._context and start + len(tokens) > self._context:
            return -1
        caches.lower(self.role, start)
        (row,) = yield (Run(self.role, tokens, start, 1),)
        return ops.distribution(row)

    def settle(self, base: int, asked: int, accepted: int, length: int, caches: Caches) -> None:
        """The runs of this round wrote the text to its base and the first `asked` - 1 proposals; the accepted
        ones among them are now text.
        """
        if asked:
            caches.decide(self.role, min(base + 1 + min(accepted, asked - 1), length))
