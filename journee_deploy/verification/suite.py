"""The checks in their order, and what they need. Each failure leaves the rest to go on, where they can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from journee_deploy.bundle import Bundle, open_bundle
from journee_deploy.controller import RULES
from journee_deploy.loading import DraftChoice, load
from journee_deploy.runtime import OpenOptions, find_runtime
from journee_deploy.verification import parity
from journee_deploy.verification.check import Check, Finding, attempt
from journee_deploy.verification.controller import conformance_finding, exactness_finding
from journee_deploy.verification.effort import THOROUGH, USUAL, Effort, GTest
from journee_deploy.verification.models import Models
from journee_deploy.verification.promises import coupled_finding, greedy_finding, row_rule_finding
from journee_deploy.verification.sampling_test import RATE, sampling_finding

RUNTIME = "onnxruntime"

Ask = Callable[[], Finding]


@dataclass(frozen=True, slots=True)
class Settings:
    """What to verify, where, and how much of it. `against`: a provider, `trace`: a file, each None if not asked for;
    `record`: where to write this machine's rows.
    """

    bundle: Path
    provider: str = "cpu"
    threads: int = 0
    draft: DraftChoice = "auto"
    against: str | None = None
    trace: Path | None = None
    record: Path | None = None
    thorough: bool = False
    seed: int = 0

    @property
    def effort(self) -> Effort:
        return THOROUGH if self.thorough else USUAL


class Suite:
    """One verification. `checks` opens the bundle, then the models, then asks the rest in order.

    `progress` is told the name of each check before it is made.
    """

    def __init__(self, settings: Settings, progress: Callable[[str], None] = lambda name: None) -> None:
        self.settings = settings
        self._progress = progress
        self._bundle: Bundle | None = None
        self._models: Models | None = None

    def checks(self) -> Iterator[Check]:
        """Every check, as it is made. The models are closed at the end, or when the iterator is."""
        with ExitStack() as opened:
            for name, ask in (("files", self._files), ("models", lambda: self._open(opened))):
                check = self._attempt(name, ask)
                yield check
                if check.counts_against:
                    rest = [*(["models"] if name == "files" else []), *self._questions()]
                    yield from (Check(left, "not run", f"not run: {name} failed") for left in rest)
                    return
            for name, ask in self._questions().items():
                yield self._counted(name, ask)

    def _questions(self) -> dict[str, Ask]:
        effort, seed = self.settings.effort, self.settings.seed
        questions: dict[str, Ask] = {
            "row rule": lambda: row_rule_finding(self.models, effort, seed),
            "greedy": lambda: greedy_finding(self.models, effort),
            "coupled": lambda: coupled_finding(self.models, effort, seed),
            "controller": lambda: exactness_finding(effort),
            "conformance": conformance_finding,
        }
        for rule in RULES:
            for size in effort.tests:
                name = f"law of {rule}" + (f", {size.limit} tokens" if len(effort.tests) > 1 else "")
                questions[name] = self._law(rule, size)
        questions["parity"] = self._parity
        if self.settings.record is not None:
            questions["record"] = self._record
        return questions

    def _law(self, rule: str, size: GTest) -> Ask:
        share = RATE / (len(RULES) * len(self.settings.effort.tests))
        return lambda: sampling_finding(self.models, rule, size, self.settings.seed, share)

    def _attempt(self, name: str, ask: Ask) -> Check:
        self._progress(name)
        return attempt(name, ask)

    def _counted(self, name: str, ask: Ask) -> Check:
        """A check with the number of target runs it cost."""
        before = self.models.target.counters.runs
        check = self._attempt(name, ask)
        runs = self.models.target.counters.runs - before
        return Check(check.name, check.status, check.sentence, {**check.figures, "target_runs": runs})

    @property
    def bundle(self) -> Bundle:
        if self._bundle is None:
            raise RuntimeError("the bundle was not opened")
        return self._bundle

    @property
    def models(self) -> Models:
        if self._models is None:
            raise RuntimeError("the models were not opened")
        return self._models

    def _files(self) -> Finding:
        self._bundle = open_bundle(self.settings.bundle)
        records = self._bundle.manifest.files.values()
        size = sum(file.size for file in records)
        sentence = f"{len(records)} files, {size:,} bytes, sizes and sha256 as in the manifest"
        return Finding(True, sentence, {"files": len(records), "bytes": size})

    def _open(self, opened: ExitStack) -> Finding:
        settings = self.settings
        lm = opened.enter_context(
            load(
                settings.bundle,
                draft=settings.draft,
                runtime=RUNTIME,
                provider=settings.provider,
                threads=settings.threads,
                verify=False,
            )
        )
        self._models = models = Models.of(lm)
        threads = f"{settings.threads} threads" if settings.threads else "threads as the runtime chooses"
        figures = {"provider": settings.provider, "threads": settings.threads, "draft": models.kind}
        return Finding(True, f"opened on {settings.provider}, {threads}; draft: {models.kind}", figures)

    def _parity(self) -> Finding:
        return parity.together(self._comparisons())

    def _comparisons(self) -> Iterator[Finding]:
        role = self.bundle.role("target")
        allowed, size = parity.tolerance(role), self.models.codec.size
        if self.settings.trace is not None:
            trace = parity.read(self.settings.trace, self.models, role)
            yield parity.compare(trace, self.models.target, size, str(self.settings.trace), allowed)
        if self.settings.against is not None:
            options = OpenOptions(self.settings.against, self.settings.threads, verify=False)
            other = find_runtime(RUNTIME).open(role.folder, "target", options)
            try:
                trace = parity.record(self.models, role, self.settings.effort.parity_texts)
                yield parity.compare(trace, other, size, self.settings.against, allowed)
            finally:
                other.close()

    def _record(self) -> Finding:
        file = self.settings.record
        if file is None:
            raise RuntimeError("no record was asked for")
        trace = parity.record(self.models, self.bundle.role("target"), self.settings.effort.parity_texts)
        trace.save(file)
        rows = sum(step.keep for step, _ in trace.entries)
        return Finding(True, f"{rows} rows of the target written to {file}", {"file": str(file), "rows": rows})
