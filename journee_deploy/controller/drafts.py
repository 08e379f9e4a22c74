"""Who proposes. A draft answers "from which distribution is the next proposal drawn?" with a handle.

Portable Python.

`next` is a sub-generator: it may yield runs before it answers. It sees the decided text and the proposals so
far, never the target's rows. EMPTY (-1) ends the drafting of this round. `settle` tells it after each round
what was decided.
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

    def settle(self, base: int, accepted: int, length: int, caches: Caches) -> None:
        pass


class UniformDraft(NoDraft):
    """Proposes from what equal logits give: a useless draft, which must cost speed but never exactness."""

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

    def __init__(self) -> None:
        self._runs = 0

    def next(
        self, text: list[int], proposals: list[int], ops: Ops, caches: Caches
    ) -> Generator[tuple[Run, ...], tuple[int, ...], int]:
        base = len(text) - 1
        if proposals:
            start, tokens = base + len(proposals), proposals[-1:]
        else:
            self._runs = 0
            start = min(caches.valid(self.role), base)
            tokens = text[start:]
        caches.lower(self.role, start)
        (row,) = yield (Run(self.role, tokens, start, 1),)
        self._runs += 1
        return ops.distribution(row)

    def settle(self, base: int, accepted: int, length: int, caches: Caches) -> None:
        """The runs of this round wrote text[base] and all proposals but the last; the accepted ones are now
        text.
        """
        if self._runs:
            caches.decide(self.role, min(base + 1 + min(accepted, self._runs - 1), length))
            self._runs = 0
