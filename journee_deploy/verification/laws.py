"""Exact laws of short texts, from the bundle's own rows: what sampling the target gives, and what a rule makes of it.

A place is a prefix of the generated text with two distributions after it: the target's p, and the draft's q at p's
tokens (None where the draft proposes nothing). A kernel says what a rule does with one judged proposal: how much weight
goes to a token kept, and how much to a token put in its place. Round by round these multiply, as whole fractions; what
comes after an accepted proposal is judged in the same round, what comes after a rejection begins the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import Caches, Run
from journee_deploy.controller.requests import EMPTY
from journee_deploy.enumeration import ONE, ZERO, LawError
from journee_deploy.protocols import Draft
from journee_deploy.runtime import Model, Step
from journee_deploy.verification.models import Models

Text = tuple[int, ...]
Weights = dict[int, Fraction]
Kernel = Callable[[Weights, Weights], tuple[Weights, Weights]]
"""(p, q at p's tokens) -> (weight of each token kept, weight of each token put in a proposal's place)."""

SLOT = 1 << 29  # no generation has so many before it


@dataclass(frozen=True, slots=True)
class Place:
    """p by token, without zeros, and q at the same tokens."""

    p: Weights
    q: Weights | None


Places = Callable[[Text], Place]


@dataclass(frozen=True, slots=True)
class Shape:
    """A text of at most `limit` tokens, drafted `length` at a time, ended by any token of `ends`."""

    limit: int
    length: int
    ends: tuple[int, ...] = ()

    def over(self, text: Text) -> bool:
        return len(text) == self.limit or (bool(text) and text[-1] in self.ends)

    def proposals(self, text: Text) -> int:
        """K of a round that begins after this text: the last token of all is never drafted."""
        return min(self.length, self.limit - len(text) - 1)


def text_law(places: Places, shape: Shape, kernel: Kernel) -> dict[Text, Fraction]:
    """The law of a whole text under a rule; its weights add up to 1, exactly."""
    law: dict[Text, Fraction] = {}
    waiting: list[tuple[Text, int, Fraction]] = [((), shape.proposals(()), ONE)]
    while waiting:
        text, proposals, weight = waiting.pop()
        if shape.over(text):
            law[text] = law.get(text, ZERO) + weight
            continue
        for token, share, kept in _next(places(text), proposals, kernel):
            longer = (*text, token)
            waiting.append((longer, proposals - 1 if kept else shape.proposals(longer), weight * share))
    if (total := sum(law.values(), ZERO)) != ONE:
        raise LawError(f"the weights of a text's law add up to {total}, not 1")
    return law


def _next(place: Place, proposals: int, kernel: Kernel) -> Iterator[tuple[int, Fraction, bool]]:
    """Tokens that may come next, their shares, and whether each is a proposal kept."""
    kept, replaced = kernel(place.p, place.q) if proposals > 0 and place.q is not None else ({}, place.p)
    yield from ((token, share, True) for token, share in kept.items() if share)
    yield from ((token, share, False) for token, share in replaced.items() if share)


def plain(p: Weights, q: Weights) -> tuple[Weights, Weights]:
    """Sampling the target: nothing is proposed."""
    del q
    return {}, p


@dataclass(slots=True)
class BundlePlaces:
    """Places of a bundle after a prompt. Each is found once: one run of the target, and the draft's own."""

    models: Models
    draft: Draft
    prompt: Text
    sampling: Sampling
    _known: dict[Text, Place] = field(default_factory=dict[Text, Place])

    def __call__(self, text: Text) -> Place:
        if text not in self._known:
            self._known[text] = self._place(text)
        return self._known[text]

    def _place(self, text: Text) -> Place:
        ops = VectorOps(list(self.prompt), self.models.codec.size, self.sampling, self.models.ends)
        for token in text:
            ops.push(token)
        whole = (*self.prompt, *text)
        run = Run("target", whole, 0, 1)
        p = ops.vector(ops.distribution(self._answer(self.models.target, run, ops)))
        tokens: list[int] = np.flatnonzero(p).tolist()
        q = self._draft(whole, ops)
        return Place(_at(p, tokens), None if q == EMPTY else _at(ops.vector(q), tokens))

    def _draft(self, whole: Text, ops: VectorOps) -> int:
        """Ask the shipped draft for its next proposal's distribution."""
        asking = self.draft.next(list(whole), [], ops, Caches())
        try:
            runs = next(asking)
            while True:
                runs = asking.send(tuple(self._answer(self.models.drafting(), run, ops) for run in runs))
        except StopIteration as done:
            return int(done.value)

    def _answer(self, model: Model, run: Run, ops: VectorOps) -> int:
        try:
            (rows,) = model.run([Step(SLOT, tuple(run.tokens), run.start, run.keep)])
        finally:
            model.release(SLOT)
        return ops.hold(run.role, run.start + len(run.tokens) - run.keep + 1, rows)


def _at(vector: np.ndarray[tuple[int], np.dtype[np.float64]], tokens: list[int]) -> Weights:
    return {token: Fraction(float(vector[token])) for token in tokens}
