"""`python -m journee.benchmark`: is speculation exact here, and does it pay?

    python -m journee.benchmark --target checkpoints/target.pt --draft checkpoints/draft.pt \\
        --prompt "The proof obligation is" --speculation-length 8 --seed 42
    python -m journee.benchmark --bundle artifacts/tiny

Speeds are medians over pairs of runs, plain and speculative in turn, a new seed a pair; the speed-up is the median of
the pairs' ratios, since a machine's speed drifts. Acceptance and distance come from traced runs of their own, with the
pairs' seeds, since tracing costs time.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table

from journee.checkpoint import CheckpointError, check_pair, load_checkpoint
from journee_deploy.checks import GreedyCheck, greedy_identical
from journee_deploy.commands.failures import plain_failures
from journee_deploy.commands.options import SpeculationLength
from journee_deploy.controller import RULES, Round
from journee_deploy.exactness import exactness_error
from journee_deploy.language_model import DraftKind, LanguageModel
from journee_deploy.loading import load
from journee_deploy.report import Report
from journee_deploy.request import Length, Options
from journee_deploy.runtime import Model, OpenOptions, find_runtime
from journee_deploy.text import Codec

DEFINITIONS = {
    "acceptance_rate": "accepted / all proposals drawn, those discarded after a rejection included",
    "judged_acceptance": "accepted / proposals that got a verdict; predicted_acceptance is its expectation",
    "mean_accepted_run": "mean over rounds with proposals of the tokens accepted before the first rejection",
    "target_calls_per_token": "target runs / tokens emitted; 1 is plain decoding",
    "exactness_error": "largest distance between the law of what the controller emits and the target's, over "
    "enumerated toys; 0 exactly. It speaks of the controller, not of the graphs",
    "tv_distance": "mean total variation distance between p and q over judged positions",
    "tokens_per_second": "tokens emitted / seconds of the whole generation, prompt included",
    "baseline_tokens_per_second": "the same for plain decoding on the same target under the same row rule",
    "speedup": "tokens_per_second / baseline_tokens_per_second, the median over interleaved pairs of runs",
    "greedy_identical": "whether speculative text at temperature 0 equals plain text, token for token; null with a "
    "reason where the target has no row rule",
    "predicted_acceptance": "mean over judged positions of the probability that the rule accepts there: 1 - TV for "
    "residual, sum min(p, q) (1 + |p - q|) / (1 + TV) for coupled",
    "draft": "who proposes: a model, ngram (what followed the last tokens before), uniform (useless, for tests)",
    "pace": "how far rounds draft: a constant length; or adaptive, with what a proposal (draft) and a row of the "
    "target (row) cost in plain runs, how many rows come free, and whether this was measured",
    "row_rule": "the padding under which a row of target logits depends on its prefix alone, found by a self-test",
    "judged": "verdicts behind judged_acceptance and tv_distance",
    "tokens_traced": "tokens of the traced runs that acceptance and distance come from",
}


KINDS: dict[str, Literal["ngram", "uniform"]] = {"ngram": "ngram", "uniform": "uniform"}


@dataclass(frozen=True, slots=True)
class Workload:
    """What is generated, how often."""

    prompt: str
    max_new_tokens: int
    speculation_length: Length
    temperature: float
    seed: int
    pairs: int
    rule: str

    def options(self, pair: int, *, draft: bool = True, trace: bool = False) -> Options:
        return {
            "rule": self.rule,
            "draft": draft,
            "trace": trace,
            "max_new_tokens": self.max_new_tokens,
            "temperature": self.temperature,
            "seed": (self.seed + pair) % (1 << 64),
            "speculation_length": self.speculation_length if draft else None,
        }


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the smallest and the largest."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        return cls(min(values), statistics.median(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens a second, plain and speculative, and their ratio pair by pair."""

    plain: Spread
    speculative: Spread
    speedup: Spread


def measure_speeds(lm: LanguageModel, work: Workload) -> Speeds:
    """Interleaved pairs of runs, the order swapped from pair to pair; one pair first that isn't counted."""
    plain: list[float] = []
    fast: list[float] = []
    for pair in range(-1, work.pairs):
        order = (False, True) if pair % 2 else (True, False)
        speeds = {draft: _speed(lm, work, max(pair, 0), draft) for draft in order}
        if pair >= 0:
            plain.append(speeds[False])
            fast.append(speeds[True])
    return Speeds(Spread.of(plain), Spread.of(fast), Spread.of([b / a for a, b in zip(plain, fast, strict=True)]))


def _speed(lm: LanguageModel, work: Workload, pair: int, draft: bool) -> float:
    report = lm.generate(work.prompt, **work.options(pair, draft=draft)).report
    return report.emitted / report.meter.total


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Counts of the traced runs of all pairs, added up, and the distances at judged positions."""

    reports: list[Report]

    def total(self, name: str) -> int:
        return sum(getattr(report, name) for report in self.reports)

    def ratio(self, part: str, whole: str) -> float | None:
        return self.total(part) / self.total(whole) if self.total(whole) else None

    @property
    def rounds(self) -> list[Round]:
        return [round_ for report in self.reports for round_ in report.rounds]

    def mean(self, name: str) -> float | None:
        """Of a judgement's figure, over judged positions."""
        told = (getattr(judgement, name) for report in self.reports for judgement in report.judgements)
        found = [value for value in told if value is not None]
        return statistics.fmean(found) if found else None


def traced(lm: LanguageModel, work: Workload) -> Acceptance:
    """One traced run a pair, with the pair's seed."""
    return Acceptance([lm.generate(work.prompt, **work.options(pair, trace=True)).report for pair in range(work.pairs)])


def results(lm: LanguageModel, work: Workload) -> dict[str, Any]:
    """Every figure by its name; journee_deploy.report.DEFINITIONS says what each is."""
    seen = traced(lm, work)
    drafting = [round_ for round_ in seen.rounds if round_.proposed]
    greedy: GreedyCheck = greedy_identical(lm, work.prompt, work.max_new_tokens, work.speculation_length)
    speeds = measure_speeds(lm, work)
    error = exactness_error(RULES[work.rule])
    return {
        "acceptance_rate": seen.ratio("accepted", "proposed"),
        "judged_acceptance": seen.ratio("accepted", "judged"),
        "predicted_acceptance": seen.mean("predicted"),
        "tv_distance": seen.mean("tv"),
        "mean_accepted_run": seen.total("accepted") / len(drafting) if drafting else None,
        "target_calls_per_token": len(seen.rounds) / seen.total("emitted"),
        "exactness_error": int(error) if error.denominator == 1 else float(error),
        "tokens_per_second": speeds.speculative.median,
        "baseline_tokens_per_second": speeds.plain.median,
        "speedup": speeds.speedup.median,
        "greedy_identical": greedy.identical,
        "greedy_identical_note": greedy.note,
        "spread": {
            "tokens_per_second": [speeds.speculative.low, speeds.speculative.high],
            "baseline_tokens_per_second": [speeds.plain.low, speeds.plain.high],
            "speedup": [speeds.speedup.low, speeds.speedup.high],
        },
        "workload": {name: getattr(work, name) for name in Workload.__slots__},
        "model": lm.name,
        "draft": lm.draft,
        "pace": seen.reports[0].pace,
        "row_rule": None if lm.target.row_rule is None else str(lm.target.row_rule),
        "row_rule_note": lm.target.row_rule_note,
        "judged": seen.total("judged"),
        "tokens_traced": seen.total("emitted"),
    }


def open_checkpoints(target: Path, draft: Path | DraftKind, threads: int) -> LanguageModel:
    """A language model on the PyTorch reference runtime, straight from checkpoints."""
    loaded = load_checkpoint(target)
    if isinstance(draft, Path):
        check_pair(loaded, load_checkpoint(draft))
    codec = Codec.from_text(loaded.tokenizer, f"the tokenizer in {target}")
    runtime = find_runtime("torch")
    with ExitStack() as opened:
        model = runtime.open(target, "target", OpenOptions(threads=threads))
        opened.callback(model.close)
        drafting: Model | DraftKind = "none" if isinstance(draft, Path) else draft
        if isinstance(draft, Path):
            drafting = runtime.open(draft, "draft", OpenOptions(threads=threads, row_rule=False))
            opened.callback(drafting.close)
        lm = LanguageModel(str(target), model, codec, draft=drafting, ends=(loaded.end_of_sequence,))
        opened.pop_all()  # they are the language model's now
        return lm


@contextmanager
def _opened(target: Path | None, draft: str | None, bundle: Path | None, threads: int) -> Generator[LanguageModel]:
    if (target is None) == (bundle is None):
        raise click.UsageError("give either --target (and --draft) or --bundle")
    kind = KINDS.get(draft or "")
    if bundle is not None:
        if draft is not None and kind is None:
            raise click.UsageError(
                "--draft PATH goes with --target; a bundle has its own draft, or takes ngram or uniform"
            )
        lm = load(bundle, draft=kind or "auto", threads=threads)
    else:
        assert target is not None
        lm = open_checkpoints(target, kind or ("none" if draft is None else Path(draft)), threads)
    with lm:
        if lm.draft == "none":
            raise click.UsageError(f"{lm.name} has no draft to measure; give --draft, or a bundle with one")
        yield lm


def _print(console: Console, found: dict[str, Any]) -> None:
    table = Table(title=f"{found['model']}: {found['workload']['pairs']} pairs of runs", title_justify="left")
    for column in ("figure", "value", "lowest to highest"):
        table.add_column(column, overflow="fold")
    for name, value in found.items():
        if name in ("spread", "workload", "model", "row_rule_note", "greedy_identical_note"):
            continue
        spread = found["spread"].get(name)
        table.add_row(name, _shown(value), "" if spread is None else f"{spread[0]:.4g} to {spread[1]:.4g}")
    console.print(table)
    console.print(f"row rule: {found['row_rule_note']}; greedy: {found['greedy_identical_note']}", soft_wrap=True)
    console.print("exactness_error speaks of the controller, enumerated over toys, not of the graphs", soft_wrap=True)
    console.print(_verdict(found), soft_wrap=True)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _verdict(found: dict[str, Any]) -> str:
    speedup = found["speedup"]
    if speedup > 1:
        return f"speculation is {speedup:.2f} times as fast as plain decoding here"
    return f"speculation does not pay here: {speedup:.2f} times the speed of plain decoding"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--target", type=click.Path(path_type=Path), help="A target's checkpoint, run by PyTorch.")
@click.option("--draft", help="A draft's checkpoint; or ngram or uniform, also for a bundle.")
@click.option("--bundle", type=click.Path(path_type=Path), help="An exported bundle, run by ONNX Runtime.")
@click.option("--prompt", default="The proof obligation is", show_default=True)
@click.option(
    "--speculation-length",
    default=4,
    show_default=True,
    type=SpeculationLength(min=1),
    help="Proposals a round; auto is as many as pay.",
)
@click.option("--rule", type=click.Choice(list(RULES)), default="residual", show_default=True)
@click.option("--seed", default=42, show_default=True, help="Of the first pair; pair i takes seed + i.")
@click.option("--max-new-tokens", default=128, show_default=True, type=click.IntRange(min=1))
@click.option("--temperature", default=1.0, show_default=True)
@click.option("--pairs", default=5, show_default=True, type=click.IntRange(min=1), help="Pairs of runs.")
@click.option("--threads", default=0, show_default=True, help="Threads a model; 0 lets the runtime choose.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--explain", is_flag=True, help="Print what each figure means, and end.")
def main(
    target: Path | None,
    draft: str | None,
    bundle: Path | None,
    threads: int,
    as_json: bool,
    explain: bool,
    **work: Any,
) -> None:
    """Measure speculative against plain decoding: exactness, acceptance, speed."""
    console = Console(highlight=False)
    if explain:
        for name, meaning in DEFINITIONS.items():
            console.print(f"{name}: {meaning}", soft_wrap=True)
        return
    with _failures(), _opened(target, draft, bundle, threads) as lm:
        found = results(lm, Workload(**work))
    if as_json:
        click.echo(json.dumps(found))
    else:
        _print(console, found)


@contextmanager
def _failures() -> Generator[None]:
    try:
        with plain_failures():
            yield
    except CheckpointError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
