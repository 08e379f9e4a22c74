"""The generator: rounds of draft, verify, judge, cut, emit. Portable Python; the package's opening says what
it yields.

Where things are at the start of a round, with base = len(text) - 1:

    the target's cache holds at least min(valid, base) tokens of the text; its run carries the rest and the
    proposals, and its last K + 1 rows judge them: row i is what follows text + proposals[:i]; after deciding
    a of K, the target's cache is valid to base + 1 + a, the draft's to base + 1 + min(a, K - 1).

The history behind the ops follows: proposals are pushed while drafting, taken back, pushed again as they are
accepted.
"""

from __future__ import annotations

from journee_deploy.controller.caches import Caches
from journee_deploy.controller.requests import ACCEPTED, BONUS, RECOVERED, Emit, Judgement, Round, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from journee_deploy.protocols import ChanceLike, CutLike, Draft, Ops, Pace, Rule

    Wishes = Generator[tuple[Run, ...], tuple[int, ...], int]

TARGET = "target"
SHOWN = 5  # how many of the most probable tokens a judgement lists


def speculate(
    prompt: Sequence[int],
    *,
    ops: Ops,
    chance: ChanceLike,
    rule: Rule,
    draft: Draft,
    pace: Pace,
    stops: CutLike,
    caches: Caches | None = None,
    trace: bool = False,
) -> Generator[tuple[Run, ...] | Emit, tuple[int, ...], None]:
    """Generate after `prompt` (at least one token) until `stops` ends the text.

    `caches` says what the models' caches hold of the prompt already, and is kept true as the text grows. With
    `trace`, each Emit carries a Judgement a token. Close the generator to stop early: caches and ops are left
    consistent.
    """
    if not prompt:
        raise ValueError("the prompt has no tokens; give at least one (a begin-of-text token will do)")
    return _rounds(list(prompt), ops, chance, rule, draft, pace, stops, caches or Caches(), trace)


def _rounds(
    text: list[int],
    ops: Ops,
    chance: ChanceLike,
    rule: Rule,
    draft: Draft,
    pace: Pace,
    stops: CutLike,
    caches: Caches,
    trace: bool,
) -> Generator[tuple[Run, ...] | Emit, tuple[int, ...], None]:
    generated: list[int] = []
    history: list[tuple[int, int]] = []
    try:
        reason = ""
        while not reason:
            number = len(history)
            base = len(text) - 1
            ops.clear()
            caches.begin()
            drafting = _Drafting(_length(pace, history, stops.room(len(generated)) - 1, draft.room(len(text))))
            yield from drafting.run(text, number, ops, chance, rule, draft, pace, history, caches)
            ops.truncate(len(text))
            start = min(caches.valid(TARGET), base)
            caches.lower(TARGET, start)
            tokens = text[start:] + drafting.proposals
            (first,) = yield (Run(TARGET, tokens, start, len(drafting.proposals) + 1),)
            caches.wrote(TARGET, start + len(tokens))
            judging = _Judging(first, len(text), number, trace)
            judging.run(drafting, ops, chance, rule)
            kept, reason = stops.cut(generated, judging.tokens)
            history.append((len(drafting.proposals), judging.accepted))
            del judging.tokens[kept:], judging.kinds[kept:], judging.judgements[kept:]
            text += judging.tokens
            generated += judging.tokens
            caches.decide(min(base + 1 + judging.accepted, len(text)))
            ops.truncate(len(text))
            yield Emit(
                judging.tokens,
                judging.kinds,
                _count(drafting, judging, len(tokens)),
                reason,
                judging.judgements,
            )
    finally:
        ops.truncate(len(text))
        ops.clear()


def _length(pace: Pace, history: list[tuple[int, int]], left: int, able: int | None) -> int:
    """K as the pace wants it, at most what is left beside the round's own token and what the draft can do."""
    wanted = pace.next_length(history)
    if wanted < 0:
        raise ValueError(f"the pace asks for {wanted} proposals in round {len(history)}; K is at least 0")
    return min(wanted, left if able is None else min(left, able))


class _Drafting:
    """The proposals of a round, each with the handle of the distribution that it was drawn from."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.proposals: list[int] = []
        self.distributions: list[int] = []
        self.empty = 0

    def run(
        self,
        text: list[int],
        number: int,
        ops: Ops,
        chance: ChanceLike,
        rule: Rule,
        draft: Draft,
        pace: Pace,
        history: list[tuple[int, int]],
        caches: Caches,
    ) -> Generator[tuple[Run, ...], tuple[int, ...], None]:
        while len(self.proposals) < self.length:
            if self.proposals and not pace.go_on(history, self.proposals):
                return
            q = yield from draft.next(text, self.proposals, ops, caches)
            if q < 0:
                self.empty = 1
                return
            token, _ = rule.propose(q, len(text) + len(self.proposals), number, chance)
            self.proposals.append(token)
            self.distributions.append(q)
            ops.push(token)


class _Judging:
    """The tokens of a round, decided in order until the first rejection."""

    def __init__(self, first: int, position: int, number: int, trace: bool) -> None:
        self.first = first
        self.position = position
        self.number = number
        self.trace = trace
        self.tokens: list[int] = []
        self.kinds: list[str] = []
        self.judgements: list[Judgement] = []
        self.accepted = 0

    def run(self, drafting: _Drafting, ops: Ops, chance: ChanceLike, rule: Rule) -> None:
        for i, proposal in enumerate(drafting.proposals):
            q = drafting.distributions[i]
            p = ops.distribution(self.first + i)
            token, kept, coin = rule.judge(p, q, proposal, self.position + i, self.number, ops, chance)
            self._decide(token, ACCEPTED if kept else RECOVERED, p, q, proposal, coin, ops)
            if not kept:
                return
            self.accepted += 1
        i = len(drafting.proposals)
        p = ops.distribution(self.first + i)
        token, coin = rule.bonus(p, self.position + i, self.number, chance)
        self._decide(token, BONUS, p, None, None, coin, ops)

    def _decide(
        self, token: int, kind: str, p: int, q: int | None, proposal: int | None, coin: float | None, ops: Ops
    ) -> None:
        if self.trace:
            row = self.first + len(self.tokens)
            self.judgements.append(
                Judgement(
                    token,
                    kind,
                    ops.weight(p, token),
                    None if q is None or proposal is None else ops.weight(q, proposal),
                    proposal,
                    coin,
                    None if q is None else 1.0 - ops.overlap(p, q),
                    ops.top(p, SHOWN),
                    ops.top_logits(row, SHOWN),
                )
            )
        self.tokens.append(token)
        self.kinds.append(kind)
        ops.push(token)


def _count(drafting: _Drafting, judging: _Judging, rows: int) -> Round:
    kinds = judging.kinds
    accepted = kinds.count(ACCEPTED)
    judged = accepted + kinds.count(RECOVERED)
    return Round(drafting.length, len(drafting.proposals), judged, accepted, len(kinds), drafting.empty, rows)
