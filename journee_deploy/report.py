"""What a generation reports: how it was asked for, what every round did, where time went, and the rates that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from journee_deploy.controller import Judgement, Round
from journee_deploy.engine import Meter


@dataclass(slots=True)
class Report:
    """One generation.

    rounds       what each did, in order: with the seed, enough to replay the run
    judgements   a record a token, if asked for
    row_rule     under which the target ran, or None: then `row_rule_note` says why, and no promise holds exactly, since
                 rows of one run may change each other by rounding
    pace         how far it drafted: {"kind": "constant", "length": K}; or "adaptive", with the constants of
                 journee_deploy.costs and whether they were given, measured or typical
    seconds      by stage: inside the graphs of target and draft, the rest of the loop (runtime, controller,
                 distributions, text), total, and until the first tokens
    """

    rule: str
    draft: str
    seed: int
    sample: int
    prompt_tokens: int
    row_rule: str | None
    row_rule_note: str
    pace: dict[str, Any] = field(default_factory=dict[str, Any])
    reason: str = ""
    rounds: list[Round] = field(default_factory=list[Round])
    judgements: list[Judgement] = field(default_factory=list[Judgement])
    meter: Meter = field(default_factory=Meter)

    def _sum(self, name: str) -> int:
        return sum(getattr(round_, name) for round_ in self.rounds)

    @property
    def emitted(self) -> int:
        return self._sum("emitted")

    @property
    def proposed(self) -> int:
        return self._sum("proposed")

    @property
    def judged(self) -> int:
        return self._sum("judged")

    @property
    def accepted(self) -> int:
        return self._sum("accepted")

    @property
    def acceptance_rate(self) -> float | None:
        return _ratio(self.accepted, self.proposed)

    @property
    def judged_acceptance(self) -> float | None:
        return _ratio(self.accepted, self.judged)

    @property
    def mean_accepted_run(self) -> float | None:
        return _ratio(self.accepted, sum(1 for round_ in self.rounds if round_.proposed))

    @property
    def target_calls_per_token(self) -> float | None:
        return _ratio(len(self.rounds), self.emitted)

    @property
    def tv_distance(self) -> float | None:
        """Mean over judged positions; needs the trace."""
        distances = [judgement.tv for judgement in self.judgements if judgement.tv is not None]
        return _ratio(math.fsum(distances), len(distances))

    @property
    def predicted_acceptance(self) -> float | None:
        """Mean over judged positions of the probability that the rule accepts there, which `judged_acceptance`
        comes near to in the long run. Needs the trace.
        """
        chances = [judgement.predicted for judgement in self.judgements if judgement.predicted is not None]
        return _ratio(math.fsum(chances), len(chances))

    @property
    def tokens_per_second(self) -> float | None:
        return _ratio(self.emitted, self.meter.total)

    def seconds(self) -> dict[str, float]:
        target, draft = (self.meter.seconds.get(role, 0.0) for role in ("target", "draft"))
        return {
            "target": target,
            "draft": draft,
            "rest": self.meter.total - target - draft,
            "total": self.meter.total,
            "until_first": self.meter.first,
        }

    def summary(self) -> str:
        """One line: how much, why it ended, how fast, by which seed."""
        parts = [f"{self.emitted} tokens, ended by {self.reason or 'its reader'}"]
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:.0f} tokens/s")
        if self.proposed:
            parts.append(f"{self.accepted} of {self.proposed} proposals accepted in {len(self.rounds)} target runs")
        parts.append(f"seed {self.seed}")
        if self.row_rule is None:
            parts.append(
                f"NO ROW RULE ({self.row_rule_note}): rows may change each other by rounding, nothing is exact"
            )
        return "; ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON's types."""
        return {
            "rule": self.rule,
            "draft": self.draft,
            "pace": self.pace,
            "seed": self.seed,
            "sample": self.sample,
            "row_rule": self.row_rule,
            "row_rule_note": self.row_rule_note,
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.emitted,
            "reason": self.reason,
            "proposed": self.proposed,
            "judged": self.judged,
            "accepted": self.accepted,
            "acceptance_rate": self.acceptance_rate,
            "judged_acceptance": self.judged_acceptance,
            "mean_accepted_run": self.mean_accepted_run,
            "target_calls": len(self.rounds),
            "target_calls_per_token": self.target_calls_per_token,
            "target_rows": self._sum("rows"),
            "padding_rows": self.meter.padding.get("target", 0),
            "tv_distance": self.tv_distance,
            "predicted_acceptance": self.predicted_acceptance,
            "tokens_per_second": self.tokens_per_second,
            "seconds": self.seconds(),
            "rounds": [{name: getattr(round_, name) for name in Round.__slots__} for round_ in self.rounds],
            "judgements": [judgement_dict(judgement) for judgement in self.judgements],
        }


def judgement_dict(judgement: Judgement) -> dict[str, Any]:
    """One token's record; log_p is the natural logarithm of p."""
    record: dict[str, Any] = {name: getattr(judgement, name) for name in Judgement.__slots__}
    record["log_p"] = math.log(judgement.p)
    return record


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class Generation:
    """A finished text.

    text     what follows the prompt, without the token or string that ended it
    tokens   all that was emitted, the ending included
    kinds    accepted, recovered or bonus, a token each
    """

    text: str
    tokens: Sequence[int]
    kinds: Sequence[str]
    report: Report

    def as_dict(self) -> dict[str, Any]:
        """The generation as JSON's types."""
        return {
            "text": self.text,
            "tokens": list(self.tokens),
            "kinds": list(self.kinds),
            "report": self.report.as_dict(),
        }
