"""What the controller asks for and what it reports: small values, never changed after they are made.

Portable Python.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ACCEPTED = "accepted"
RECOVERED = "recovered"
BONUS = "bonus"

EMPTY = -1  # instead of a distribution's handle: masking left a draft's row without a token, or there is no proposal


class Run:
    """A wish: the cache of `role` holds the first `start` tokens; run `tokens` after them; keep the last
    `keep` rows.

    A smaller `start` than what the cache holds is the rewind. 1 <= keep <= len(tokens).
    """

    __slots__ = ("keep", "role", "start", "tokens")

    def __init__(self, role: str, tokens: Sequence[int], start: int, keep: int) -> None:
        self.role = role
        self.tokens = tokens
        self.start = start
        self.keep = keep

    def __repr__(self) -> str:
        return f"Run({self.role!r}, {list(self.tokens)}, start={self.start}, keep={self.keep})"


class Judgement:
    """How one token came to be: what the report shows of it on request.

    kind        accepted, recovered or bonus
    p           the emitted token's probability under the target's distribution
    proposal    the token that was judged: the emitted one if accepted; None for a bonus, as are the next two
    proposal_p  its probability under the target's distribution
    proposal_q  its probability under the draft's, from which it was drawn
    coin        the fraction that decided, as drawn, None if not told. For a verdict it is below proposal_q, and the
                proposal is accepted if and only if it is below proposal_p; for a bonus it is below 1. Rule `coupled`
                tosses none
    tv          distance between both distributions, or None
    predicted   the probability with which a proposal from this q was to be accepted under the rule, or None
    top         the most probable tokens under p, [(token, p), …]
    logits      the largest raw logits of the target's row, [(token, logit), …]
    """

    __slots__ = (
        "coin",
        "kind",
        "logits",
        "p",
        "predicted",
        "proposal",
        "proposal_p",
        "proposal_q",
        "token",
        "top",
        "tv",
    )

    def __init__(
        self,
        *,
        token: int,
        kind: str,
        p: float,
        proposal: int | None,
        proposal_p: float | None,
        proposal_q: float | None,
        coin: float | None,
        tv: float | None,
        predicted: float | None,
        top: list[tuple[int, float]],
        logits: list[tuple[int, float]],
    ) -> None:
        self.token = token
        self.kind = kind
        self.p = p
        self.proposal = proposal
        self.proposal_p = proposal_p
        self.proposal_q = proposal_q
        self.coin = coin
        self.tv = tv
        self.predicted = predicted
        self.top = top
        self.logits = logits


class Round:
    """Counts of one round. Nothing is judged past the text's end; proposals drawn and rows run there are counted.

    length     K as the pace asked for it, clamped to what is left
    proposed   proposals drawn; fewer than `length` when `go_on` said no or a draft row was empty
    judged     proposals that got a verdict
    accepted   proposals kept
    emitted    tokens emitted
    empty      1 if the draft had nothing to propose before K was reached
    rows       target rows asked for, padding apart
    """

    __slots__ = ("accepted", "emitted", "empty", "judged", "length", "proposed", "rows")

    def __init__(
        self, length: int, proposed: int, judged: int, accepted: int, emitted: int, empty: int, rows: int
    ) -> None:
        self.length = length
        self.proposed = proposed
        self.judged = judged
        self.accepted = accepted
        self.emitted = emitted
        self.empty = empty
        self.rows = rows


class Emit:
    """Tokens that are final, their kinds, the round they came from, and why the text ends here ("" if it goes
    on).
    """

    __slots__ = ("judgements", "kinds", "reason", "round", "tokens")

    def __init__(
        self,
        tokens: list[int],
        kinds: list[str],
        counts: Round,
        reason: str,
        judgements: list[Judgement],
    ) -> None:
        self.tokens = tokens
        self.kinds = kinds
        self.round = counts
        self.reason = reason
        self.judgements = judgements
