"""How far to draft: two pure functions of the history, so a report holds all it takes to replay a run.
Portable Python.

`next_length(history) -> K` opens a round; `go_on(history, drafted) -> bool` is asked before every proposal
but the first and may look at what was drafted. A proposal that was drawn is always judged: throwing one away
after seeing it biases the text. The history is a list of (proposed, accepted), a round each, all of them decided:
a pace knows nothing of the round that it opens.
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


KEEP = 0.9375  # what a verdict still counts after the next one: 15/16, so about the last 16 matter
ACCEPTED, VERDICTS = 1.5, 2.5  # where the counts begin: 0.6 of the proposals accepted, believed like 2.5 verdicts
DOUBT = 2.0  # verdicts that still count once drafting stopped: one success may then start it again
SHORTEST, LONGEST = 4, 128  # rounds between probes
THRIFT = 16  # the first pause has at least so many rounds for each plain run that a probe costs
MOST = 16  # the largest K that may be asked for


class AdaptivePace:
    """The K that has emitted the most tokens for the time, by what was accepted lately; 0 where drafting doesn't pay.

    Costs are in plain runs: runs of the target that judge nothing, with their padding.

    draft   what drawing one proposal costs
    row     what a row of the target costs, beyond those that come free
    free    rows that a plain run has anyway, padded by the row rule: at least 1, a fraction if it varies
    most    the largest K, 1 to 16
    pause   rounds from the first time that drafting stops to the first probe; None takes it from the costs

    With the share a of proposals accepted, a round of K emits 1 + a + … + a^K tokens. a is counted over the last
    verdicts: those accepted, and one more where a round accepted fewer than it proposed. While no K pays, rounds go
    without proposals for a pause, then one has a single proposal, to probe; the next pause is twice as long if it was
    rejected, and as at first if it was accepted. A round that had nothing to propose tells nothing, and a probe that
    was due stays due.

    The same history gives the same K, whatever was asked before: what is remembered is checked against it.
    """

    def __init__(self, draft: float, row: float, free: float = 1, most: int = 8, pause: int | None = None) -> None:
        for name, cost in (("draft", draft), ("row", row)):
            if not (cost >= 0 and cost - cost == 0):  # not a number, or infinite
                raise ValueError(f"the cost `{name}` is {cost}; it must be a number of plain runs, at least 0")
        if not (free >= 1 and free - free == 0):
            raise ValueError(f"{free} rows come free; it must be at least 1")
        if not 1 <= most <= MOST:
            raise ValueError(f"the largest speculation length is {most}; it must be from 1 to {MOST}")
        if pause is not None and pause < 1:
            raise ValueError(f"the shortest pause is {pause} rounds; it must be at least 1")
        self.draft = draft
        self.row = row
        self.free = free
        self.most = most
        self.pause = self._first_pause() if pause is None else pause
        self._hope = self._best_for(1.0)  # 0: not even a draft that is always right would pay
        self._begin()

    def next_length(self, history: list[tuple[int, int]]) -> int:
        self._follow(history)
        if self._best:
            return self._best
        return 1 if self._waited >= self._pause and self._hope else 0

    def go_on(self, history: list[tuple[int, int]], drafted: list[int]) -> bool:
        return True

    def cost(self, length: int) -> float:
        """A round of K proposals, in plain runs."""
        return 1.0 + length * self.draft + max(0.0, length + 1 - self.free) * self.row

    def _first_pause(self) -> int:
        rounds = SHORTEST
        while rounds < LONGEST and rounds < THRIFT * (self.cost(1) - 1.0):
            rounds *= 2
        return rounds

    def _begin(self) -> None:
        self._seen: list[tuple[int, int]] = []
        self._accepted = ACCEPTED
        self._verdicts = VERDICTS
        self._best = self._best_for(ACCEPTED / VERDICTS)
        self._pause = self.pause
        self._waited = 0

    def _follow(self, history: list[tuple[int, int]]) -> None:
        """Take in the rounds not seen yet; all of them, if this is another history."""
        if history[: len(self._seen)] != self._seen:
            self._begin()
        for i in range(len(self._seen), len(history)):
            self._learn(history[i][0], history[i][1])
            self._seen.append(history[i])

    def _learn(self, proposed: int, accepted: int) -> None:
        if not proposed:
            self._waited += 1
            return
        if not self._best:  # it was a probe
            self._pause = self.pause if accepted else max(self.pause, min(2 * self._pause, LONGEST))
        self._waited = 0
        for i in range(min(accepted + 1, proposed)):
            self._accepted = KEEP * self._accepted + (1.0 if i < accepted else 0.0)
            self._verdicts = KEEP * self._verdicts + 1.0
        self._best = self._best_for(self._accepted / self._verdicts)
        if not self._best and self._verdicts > DOUBT:
            self._accepted = self._accepted * DOUBT / self._verdicts
            self._verdicts = DOUBT

    def _best_for(self, share: float) -> int:
        """The K with the most tokens for its cost, the smallest of equals."""
        best, tokens, cost = 0, 1.0, 1.0
        power = emitted = 1.0
        for length in range(1, self.most + 1):
            power *= share
            emitted += power
            if emitted * cost > tokens * self.cost(length):
                best, tokens, cost = length, emitted, self.cost(length)
        return best
