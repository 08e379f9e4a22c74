"""The generator: rounds of draft, verify, judge, emit. Portable Python; the package's opening says what it yields.

Where things are at the start of a round, with base = len(text) - 1:

    the target's cache holds at least min(valid, base) tokens of the text; its run carries the rest and the
    proposals, and its last K + 1 rows judge them: row i is what follows text + proposals[:i]; after deciding
    a of K, the target's cache is valid to base + 1 + a, the draft's to base + 1 + min(a, K - 1).

The history behind the ops follows: proposals are pushed while drafting, taken back, pushed again as they are
accepted.
"""

from __future__ import annotations

from journee_deploy.controller.caches import Caches
from journee_deploy.controller.requests import ACCEPTED, BONUS, EMPTY, RECOVERED, Emit, Judgement, Round, Run

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
    text = list(prompt)
    return _Speculation(text, ops, chance, rule, draft, pace, stops, caches or Caches(), trace).rounds()


class _Speculation:
    """One generation: its collaborators and the text as it is decided."""

    def __init__(
        self,
        text: list[int],
        ops: Ops,
        chance: ChanceLike,
        rule: Rule,
        draft: Draft,
        pace: Pace,
        stops: CutLike,
        caches: Caches,
        trace: bool,
    ) -> None:
        self.text = text
        self.ops = ops
        self.chance = chance
        self.rule = rule
        self.draft = draft
        self.pace = pace
        self.stops = stops
        self.caches = caches
        self.trace = trace
        self.generated: list[int] = []
        self.history: list[tuple[int, int]] = []

    def rounds(self) -> Generator[tuple[Run, ...] | Emit, tuple[int, ...], None]:
        try:
            reason = ""
            while not reason:
                emit = yield from self._round()
                reason = emit.reason
                yield emit
        finally:
            self.ops.truncate(len(self.text))
            self.ops.clear()

    def _round(self) -> Generator[tuple[Run, ...], tuple[int, ...], Emit]:
        self.ops.clear()
        self.caches.begin()
        current = _Round(len(self.history), len(self.text), self._length())
        yield from self._propose(current)
        self.ops.truncate(len(self.text))
        run = self._verification(current)
        self.caches.lower(TARGET, run.start)
        (first,) = yield (run,)
        self.caches.wrote(TARGET, run.start + len(run.tokens))
        self._judge(current, first)
        self.history.append((len(current.proposals), current.accepted))
        self.caches.decide(len(self.text) + current.accepted)  # how far text and proposals agree
        self.text += current.tokens
        return Emit(current.tokens, current.kinds, current.counts(len(run.tokens)), current.reason, current.judgements)

    def _length(self) -> int:
        """K as the pace wants it, at most what is left beside the round's own token and what the draft can do."""
        wanted = self.pace.next_length(self.history)
        if wanted < 0:
            raise ValueError(f"the pace asks for {wanted} proposals in round {len(self.history)}; K is at least 0")
        able = self.draft.room(len(self.text))
        left = self.stops.room(len(self.generated)) - 1
        return min(wanted, left if able is None else min(left, able))

    def _propose(self, current: _Round) -> Generator[tuple[Run, ...], tuple[int, ...], None]:
        while len(current.proposals) < current.length:
            if current.proposals and not self.pace.go_on(self.history, current.proposals):
                return
            q = yield from self.draft.next(self.text, current.proposals, self.ops, self.caches)
            if q == EMPTY:
                current.empty = 1
                return
            position = current.position + len(current.proposals)
            token, _ = self.rule.propose(q, position, current.number, self.chance)
            current.proposals.append(token)
            current.distributions.append(q)
            self.ops.push(token)

    def _verification(self, current: _Round) -> Run:
        """The target's run: the text it doesn't hold yet, and the proposals; the last rows judge them."""
        start = min(self.caches.valid(TARGET), len(self.text) - 1)
        return Run(TARGET, self.text[start:] + current.proposals, start, len(current.proposals) + 1)

    def _judge(self, current: _Round, first: int) -> None:
        """Decide in order until the first rejection or the text's end; with neither, the bonus. Rows that come after
        are never looked at, so what is in them can't matter: plain decoding would not have run them.
        """
        for i, proposal in enumerate(current.proposals):
            q = current.distributions[i]
            p = self.ops.distribution(first + i)
            position = current.position + i
            token, kept, coin = self.rule.judge(p, q, proposal, position, current.number, self.ops, self.chance)
            if kept:
                current.accepted += 1
            self._decide(current, token, ACCEPTED if kept else RECOVERED, coin, first + i, p, q, proposal)
            if not kept or current.reason:
                return
        i = len(current.proposals)
        p = self.ops.distribution(first + i)
        token, coin = self.rule.bonus(p, current.position + i, current.number, self.chance)
        self._decide(current, token, BONUS, coin, first + i, p, None, None)

    def _decide(
        self,
        current: _Round,
        token: int,
        kind: str,
        coin: float | None,
        row: int,
        p: int,
        q: int | None,
        proposal: int | None,
    ) -> None:
        current.tokens.append(token)
        current.kinds.append(kind)
        if self.trace:
            current.judgements.append(self._judgement(token, kind, coin, row, p, q, proposal))
        self.ops.push(token)
        _, current.reason = self.stops.cut(self.generated, [token])
        self.generated.append(token)

    def _judgement(
        self, token: int, kind: str, coin: float | None, row: int, p: int, q: int | None, proposal: int | None
    ) -> Judgement:
        ops = self.ops
        ours = theirs = distance = predicted = None
        if q is not None and proposal is not None:
            ours, theirs, distance = ops.weight(p, proposal), ops.weight(q, proposal), 1.0 - ops.overlap(p, q)
            predicted = self.rule.acceptance(p, q, ops)
        return Judgement(
            token=token,
            kind=kind,
            p=ops.weight(p, token),
            proposal=proposal,
            proposal_p=ours,
            proposal_q=theirs,
            coin=coin,
            tv=distance,
            predicted=predicted,
            top=ops.top(p, SHOWN),
            logits=ops.top_logits(row, SHOWN),
        )


class _Round:
    """What one round drafted and decided. `number` is its own, `position` that of its first token in the text."""

    def __init__(self, number: int, position: int, length: int) -> None:
        self.number = number
        self.position = position
        self.length = length
        self.proposals: list[int] = []
        self.distributions: list[int] = []  # the handle that each proposal was drawn from
        self.empty = 0
        self.tokens: list[int] = []
        self.kinds: list[str] = []
        self.judgements: list[Judgement] = []
        self.accepted = 0
        self.reason = ""  # why the text ends with the last token, if it does

    def counts(self, rows: int) -> Round:
        accepted = self.kinds.count(ACCEPTED)
        judged = accepted + self.kinds.count(RECOVERED)
        return Round(self.length, len(self.proposals), judged, accepted, len(self.kinds), self.empty, rows)
