"""The theorem before any model: the shipped controller over toys, every branch, compared with the target's law.

`exactness_error()` is the largest distance, over a named set of toys, between the law of the sequences that the
controller emits and the law of sampling the target token by token. It is 0, exactly, or the controller is wrong. It
speaks of the controller, its rule, its bookkeeping of caches and history and its stops; of the graphs it says nothing:
that is what the row rule and parity are for.

A toy is a pair of tables over a vocabulary of 2 to 4 tokens, whose probabilities are whole multiples of 1/16 (or
logits, where options act on them), and a host with real caches: a run that leans on a stale or padded cache gets a
wrong row.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from journee_deploy.arithmetic.arena import Arena
from journee_deploy.arithmetic.plain import PlainOps, distribute
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import (
    AdaptivePace,
    ConstantPace,
    Coupled,
    Emit,
    ModelDraft,
    NgramDraft,
    NoDraft,
    Residual,
    Run,
    Stops,
    UniformDraft,
    speculate,
)
from journee_deploy.enumeration import ONE, Branches, BranchingChance, distance, law, probabilities
from journee_deploy.protocols import Draft, Pace, Rule

Prefix = tuple[int, ...]
Table = Callable[[Prefix, Prefix], Sequence[float]]
"""(the tokens before, the tokens this model was ever run on) -> a row of probabilities, or of logits."""

Sequence_ = tuple[Prefix, str]
"""What a generation emits: its tokens and why it ended."""

PARTS = 16  # probabilities are multiples of 1/16


class ToyOps(PlainOps):
    """Plain ops whose rows are distributions already."""

    def _distribute(self, role: str, position: int, logits: Sequence[float]) -> list[float]:
        row = list(logits[: self.size])
        return row + [0.0] * (self.size - len(row))

    def uniform(self) -> int:
        equal = distribute([0.0] * self.size, Sampling())
        return self.keep(equal)


@dataclass(frozen=True)
class Toy:
    """A target, a draft and the options of one enumeration.

    size      the tokenizer's vocabulary; the target's rows have this length
    target    its rows; `draft_table` the draft's, of any length
    pace      how far to draft
    limit     tokens a sequence may have; `ends` and `sequences` stop it earlier
    sampling  None: rows are distributions; else rows are logits and go through the whole arithmetic
    """

    name: str
    size: int
    target: Table
    draft: Callable[[], Draft] = ModelDraft
    draft_table: Table | None = None
    pace: Pace = field(default_factory=lambda: ConstantPace(2))
    limit: int = 4
    ends: tuple[int, ...] = ()
    sequences: tuple[Prefix, ...] = ()
    sampling: Sampling | None = None
    prompt: Prefix = (0,)

    def ops(self) -> Arena:
        if self.sampling is None:
            return ToyOps(list(self.prompt), self.size, Sampling(), self.ends)
        return PlainOps(list(self.prompt), self.size, self.sampling, self.ends)

    def stops(self) -> Stops:
        return Stops(self.limit, ends=self.ends, sequences=self.sequences)


class ToyHost:
    """Answers runs from tables through caches that hold what was really run."""

    def __init__(self, tables: dict[str, Table], ops: Arena) -> None:
        self._tables = tables
        self._ops = ops
        self._caches: dict[str, list[int]] = {role: [] for role in tables}
        self._ran: dict[str, list[int]] = {role: [] for role in tables}

    def answer(self, run: Run) -> int:
        cache, ran = self._caches[run.role], self._ran[run.role]
        if run.start > len(cache) or not 1 <= run.keep <= len(run.tokens):
            raise RuntimeError(f"{run!r} does not fit a cache of {len(cache)} tokens")
        before = tuple(ran)
        cache[run.start :] = run.tokens
        ran += run.tokens
        first = len(cache) - run.keep + 1
        rows = [self.row(run.role, tuple(cache), end, before) for end in range(first, len(cache) + 1)]
        return self._ops.hold(run.role, first, rows)

    def row(self, role: str, cache: Prefix, end: int, before: Prefix) -> Sequence[float]:
        """The row after the first `end` tokens of the cache, by them alone."""
        return self._tables[role](cache[:end], before)

    def drive(self, wishes: Generator[tuple[Run, ...] | Emit, Any, None]) -> Sequence_:
        """Run a controller to its end."""
        emitted: list[int] = []
        wish = next(wishes)
        while True:
            if isinstance(wish, Emit):
                emitted += wish.tokens
                if wish.reason:
                    wishes.close()
                    return tuple(emitted), wish.reason
                wish = wishes.send(())
            else:
                wish = wishes.send(tuple(self.answer(run) for run in wish))


def emitted_law(
    toy: Toy, rule: Callable[[], Rule] = Residual, strict: bool = True, host: type[ToyHost] = ToyHost
) -> tuple[dict[Sequence_, Fraction], int]:
    """The law of what the controller emits for a toy, and the number of branches it took."""

    def program(branches: Branches) -> Sequence_:
        ops = toy.ops()
        tables = {"target": toy.target} | ({} if toy.draft_table is None else {"draft": toy.draft_table})
        return host(tables, ops).drive(
            speculate(
                toy.prompt,
                ops=ops,  # type: ignore[arg-type]  # an Arena with its vector arithmetic is Ops
                chance=BranchingChance(ops, toy.size, branches),  # type: ignore[arg-type]
                rule=rule(),
                draft=toy.draft(),
                pace=toy.pace,
                stops=toy.stops(),
            )
        )

    found = law(program, strict)
    return found.weights, found.leaves


def target_law(toy: Toy) -> dict[Sequence_, Fraction]:
    """The law of sampling the target token by token, from its definition: no controller, no rounds, no caches."""
    out: dict[Sequence_, Fraction] = {}

    def extend(generated: Prefix, weight: Fraction) -> None:
        reason = _ending(toy, generated)
        if reason:
            out[generated, reason] = out.get((generated, reason), Fraction(0)) + weight
            return
        for token, p in enumerate(_target_row(toy, generated)):
            if p:
                extend((*generated, token), weight * p)

    extend((), ONE)
    return out


def _target_row(toy: Toy, generated: Prefix) -> list[Fraction]:
    ops = toy.ops()
    for token in generated:
        ops.push(token)
    prefix = toy.prompt + generated
    return probabilities(ops, ops.hold("target", len(prefix), [toy.target(prefix, ())]))


def _ending(toy: Toy, generated: Prefix) -> str:
    if generated and generated[-1] in toy.ends:
        return "end-of-sequence"
    if any(generated[-len(sequence) :] == sequence for sequence in toy.sequences):
        return "stop"
    return "length" if len(generated) == toy.limit else ""


# The named set.


def table(size: int, seed: int, salt: str, see: int = 8, parts: int = PARTS) -> Table:
    """A reproducible table: each prefix (its last `see` tokens) gets multiples of 1/parts, zeros among them."""

    def row(prefix: Prefix, ran: Prefix) -> list[float]:
        generator = random.Random(f"{salt} {size} {seed} {prefix[-see:]}")
        favoured = [*range(size), generator.randrange(size)]
        if generator.random() < 0.25:  # some rows have a token of probability 0
            favoured = [token for token in favoured if token != favoured[-1]]
        units = [0] * size
        for _ in range(parts):
            units[generator.choice(favoured)] += 1
        return [count / parts for count in units]

    return row


def remembering(size: int, seed: int) -> Table:
    """A draft that looks at what it was last run on, discarded proposals included (which needs K of 3 or more)."""
    inner = table(size, seed, "remembering")
    return lambda prefix, ran: inner(prefix + ran[-3:], ())


def one_hot_table(size: int, seed: int) -> Table:
    """A draft that is sure of one token, as an n-gram table is."""

    def row(prefix: Prefix, ran: Prefix) -> list[float]:
        token = random.Random(f"one-hot {seed} {prefix}").randrange(size)
        return [float(index == token) for index in range(size)]

    return row


def apart(size: int) -> tuple[Table, Table]:
    """A target and a draft that never agree: even tokens against odd ones."""

    def half(parity: int) -> Table:
        inside = [index for index in range(size) if index % 2 == parity]
        return lambda prefix, ran: [float(index in inside) / len(inside) for index in range(size)]

    return half(0), half(1)


def logits(size: int, seed: int, salt: str) -> Table:
    """Small whole logits, so that ties and truncation happen."""

    def row(prefix: Prefix, ran: Prefix) -> list[float]:
        generator = random.Random(f"{salt} {size} {seed} {prefix[-2:]}")
        return [float(generator.randint(-2, 2)) for _ in range(size)]

    return row


class LookingPace:
    """K that depends on what was drafted and on what was accepted before."""

    def __init__(self, most: int) -> None:
        self._most = most

    def next_length(self, history: list[tuple[int, int]]) -> int:
        return self._most if not history else (history[-1][1] + 1) % (self._most + 1)

    def go_on(self, history: list[tuple[int, int]], drafted: list[int]) -> bool:
        return drafted[-1] != 0


def toys() -> list[Toy]:
    """The set behind `exactness error`: seconds to enumerate. The tests add to it."""
    near = Toy("draft near the target", 3, table(3, 1, "p"), draft_table=table(3, 2, "q"))
    even, odd = apart(4)
    return [
        near,
        replace(near, name="draft equal to the target", draft_table=near.target),
        Toy("draft disjoint from the target", 4, even, draft_table=odd, limit=3),
        Toy("one-hot draft", 3, table(3, 3, "p"), draft_table=one_hot_table(3, 4), pace=ConstantPace(3)),
        Toy("uniform draft", 3, table(3, 5, "p"), draft=UniformDraft, limit=3),
        Toy("n-gram draft", 3, table(3, 19, "p"), draft=NgramDraft, prompt=(0, 1, 0), limit=5),
        Toy("no draft", 3, table(3, 6, "p"), draft=NoDraft),
        Toy("draft with fewer tokens", 3, table(3, 7, "p"), draft_table=table(2, 8, "q"), limit=3),
        Toy("draft with more tokens", 2, table(2, 9, "p"), draft_table=_padded(table(2, 10, "q")), limit=5),
        Toy(
            "draft that remembers",
            2,
            table(2, 21, "p"),
            draft_table=remembering(2, 12),
            pace=ConstantPace(3),
            limit=5,
        ),
        Toy(
            "length that looks at proposals",
            3,
            table(3, 13, "p"),
            draft_table=table(3, 14, "q"),
            pace=LookingPace(3),
        ),
        Toy(
            "length that adapts",  # an acceptance lengthens it, a rejection stops it, and a round later it probes
            2,
            table(2, 22, "p"),
            draft_table=table(2, 23, "q"),
            pace=AdaptivePace(0.421875, 0.0, pause=1),
            limit=6,
        ),
        replace(near, name="end-of-sequence inside a run", ends=(1,), pace=ConstantPace(4)),
        replace(near, name="stop sequence inside a run", sequences=((1, 0), (0, 0, 1)), pace=ConstantPace(3)),
        Toy(
            "truncation and penalties",
            3,
            logits(3, 15, "p"),
            draft_table=logits(3, 16, "q"),
            limit=4,
            ends=(2,),
            sampling=Sampling(
                temperature=1.7,
                top_k=2,
                top_p=0.95,
                min_p=0.05,
                repetition_penalty=1.3,
                frequency_penalty=0.4,
                presence_penalty=-0.3,
                logit_bias={1: 0.5},
                min_new_tokens=1,
            ),
        ),
        Toy("greedy", 3, logits(3, 17, "p"), draft_table=logits(3, 18, "q"), sampling=Sampling(temperature=0)),
    ]


def _padded(inner: Table) -> Table:
    return lambda prefix, ran: [*inner(prefix, ran), 0.0, 0.0]


def enumerable(toy: Toy, rule: Callable[[], Rule]) -> Toy:
    """The toy with a text short enough to enumerate in about a second: under `coupled` every dart that draft and target
    both look at branches, so a token less.
    """
    return replace(toy, limit=max(toy.limit - 1, 2)) if rule is Coupled else toy


def exactness_error(rule: Callable[[], Rule] = Residual) -> Fraction:
    """The largest distance between emitted and target law over the named toys; 0 if and only if all are equal."""
    worst = Fraction(0)
    for toy in toys():
        emitted, _ = emitted_law(short := enumerable(toy, rule), rule)
        worst = max(worst, distance(emitted, target_law(short)))
    return worst
