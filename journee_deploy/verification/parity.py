"""This machine's rows of the target against others: another provider's, or a trace recorded elsewhere.

Bounds. The bundle records by how much logits may differ from PyTorch's (its parity tolerance, t; 1e-3 where it records
none). Two machines that both keep to it differ by at most 2t in each logit. Then

    TV(p, p') <= tanh(t) <= t      (shifting logits by at most s moves a softmax by at most tanh(s / 2): the worst case
                                   is two halves shifted apart)
    an argmax flips only where the largest logit leads the other by at most 4t in either row

so more than that is a failure, of the machine or of the graph on it. Distributions are those of temperature 1, each of
which is within 2 * vocabulary * 2^-50 of the real softmax (docs/distributions.md, section 8).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.bundle import BundleRole
from journee_deploy.recording import RecordingModel
from journee_deploy.runtime import Model, Rows, RuntimeFailure, Step
from journee_deploy.trace import Trace, load_trace
from journee_deploy.verification.check import Figures, Finding
from journee_deploy.verification.models import PROMPTS, Models

ASSUMED = 1e-3  # logits' tolerance where a bundle records no parity
SLOTS = 1 << 28  # no generation has so many before it
NOT_ASKED = "not asked for: --against PROVIDER, or --trace FILE with one written elsewhere by --record FILE"


def tolerance(role: BundleRole) -> float:
    """The largest difference in logits from PyTorch that the bundle was exported under."""
    return max((parity.tolerance for parity in role.graph_record.parity), default=ASSUMED)


def fingerprint(role: BundleRole) -> str:
    """What tells models apart: the sha256 of the graph and of its weights files."""
    return f"{role.graph_sha256} {role.weights_sha256}".strip()


def record(models: Models, role: BundleRole, texts: int) -> Trace:
    """The target's rows over the check texts, as a trace that says whose they are."""
    recording = RecordingModel(models.target, fingerprint(role))
    for number, text in enumerate(PROMPTS[:texts]):
        tokens = models.prompt(text, 1)
        try:
            recording.run([Step(SLOTS + number, tokens, 0, len(tokens))])
        finally:
            recording.release(SLOTS + number)
    return recording.trace()


def read(file: Path, models: Models, role: BundleRole) -> Trace:
    """A trace of this very model, or RuntimeFailure."""
    trace = load_trace(file)
    if trace.header.vocabulary_size != models.target.vocabulary_size:
        raise RuntimeFailure(
            f"{file}: rows of {trace.header.vocabulary_size} tokens, {models.target.name} has "
            f"{models.target.vocabulary_size}; record a trace of this bundle with --record"
        )
    if trace.header.fingerprint != fingerprint(role):
        whose = f"of {trace.header.name!r}, another model" if trace.header.fingerprint else "of a model it doesn't tell"
        raise RuntimeFailure(f"{file}: a trace {whose}; record one of this bundle with --record")
    if not sum(step.keep for step, _ in trace.entries):
        raise RuntimeFailure(f"{file}: a trace without rows, which any model would agree with; record it again")
    return trace


@dataclass(slots=True)
class Tally:
    """Rows compared so far. `flips` holds the margins of both rows, largest logit less the second, where the argmax
    differs.
    """

    size: int
    rows: int = 0
    equal: int = 0
    distances: list[float] = field(default_factory=list[float])
    flips: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def add(self, ours: Rows, theirs: Rows) -> None:
        for mine, other in zip(ours, theirs, strict=True):
            self.rows += 1
            self.equal += mine.tobytes() == other.tobytes()
            self.distances.append(_tv(mine, other, self.size))
            if int(np.argmax(mine[: self.size])) != int(np.argmax(other[: self.size])):
                self.flips.append((_margin(mine[: self.size]), _margin(other[: self.size])))

    def finding(self, against: str, allowed: float) -> Finding:
        """Whether all is within what two machines may differ by, at a tolerance in logits."""
        worst, mean = max(self.distances), math.fsum(self.distances) / self.rows
        bound, near = math.tanh(allowed) + 4 * self.size * 2.0**-50, 4 * allowed
        far = sum(1 for margins in self.flips if max(margins) > near)
        sentence = (
            f"against {against}: {self.equal} of {self.rows} rows equal to the bit; TV at most {worst:.1e}, mean "
            f"{mean:.1e}, allowed {bound:.1e}; {len(self.flips)} argmax flips, {far} of them beyond a near tie of "
            f"{near:.0e}"
        )
        return Finding(worst <= bound and not far, sentence, self._figures(against, worst, mean, bound, near))

    def _figures(self, against: str, worst: float, mean: float, bound: float, near: float) -> Figures:
        figures: dict[str, Any] = {"against": against, "rows": self.rows, "equal": self.equal}
        figures |= {"largest_tv": worst, "mean_tv": mean, "tv_allowed": bound, "near_tie": near}
        return figures | {"flips": [list(margins) for margins in self.flips]}


def compare(trace: Trace, model: Model, size: int, against: str, allowed: float) -> Finding:
    """Run a trace's steps on a model of this machine and compare row by row."""
    tally = Tally(size)
    slots = sorted({step.slot for step, _ in trace.entries})
    try:
        for step, theirs in trace.entries:
            mine = Step(SLOTS + slots.index(step.slot), step.tokens, step.start, step.keep)
            (ours,) = model.run([mine])
            tally.add(ours, theirs)
    finally:
        for number in range(len(slots)):
            model.release(SLOTS + number)
    return tally.finding(against, allowed)


def together(findings: Iterable[Finding]) -> Finding:
    """One finding of several comparisons."""
    made = list(findings)
    if not made:
        return Finding(None, NOT_ASKED)
    sentence = "; ".join(found.sentence for found in made)
    return Finding(all(found.holds for found in made), sentence, {"comparisons": [found.figures for found in made]})


def _tv(mine: Rows, other: Rows, size: int) -> float:
    ops = VectorOps([0], size, Sampling())
    first = ops.hold("target", 1, [mine, other])
    return 1.0 - ops.overlap(ops.distribution(first), ops.distribution(first + 1))


def _margin(row: Rows) -> float:
    if len(row) < 2:
        return math.inf
    second, first = np.sort(row.astype(np.float64))[-2:]
    return float(first - second)
