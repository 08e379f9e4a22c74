"""`journee profile`: where the time of a round goes, as a table."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from journee_deploy.commands.options import SpeculationLength
from journee_deploy.controller import RULES
from journee_deploy.language_model import LanguageModel
from journee_deploy.loading import DRAFTS, DraftChoice, load
from journee_deploy.profiling import OUTSIDE, STAGES, profile
from journee_deploy.request import DEFAULT_LENGTH

PROMPT = "The proof obligation is"
MEANINGS = {
    "target": "inside the target's graph",
    "draft": "inside the draft's graph",
    "around": "around the graphs: slots, padding, copies",
    "distributions": "from logits to distributions",
    "draws": "random numbers, verdicts, residuals",
    "rest": "controller, stops, text",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """Medians over runs: milliseconds a round, share of the whole, entries a round."""

    name: str
    milliseconds: float
    share: float
    entries: float


@dataclass(frozen=True, slots=True)
class Profile:
    """What was found. `outside`: median and spread of the share of time that is spent in no graph."""

    stages: tuple[Stage, ...]
    round_milliseconds: float
    outside: tuple[float, float, float]
    tokens_a_round: float
    runs: int

    def as_dict(self) -> dict[str, Any]:
        stages = {
            stage.name: {"milliseconds": stage.milliseconds, "share": stage.share, "entries": stage.entries}
            for stage in self.stages
        }
        low, median, high = self.outside
        return {
            "round_milliseconds": self.round_milliseconds,
            "tokens_a_round": self.tokens_a_round,
            "runs": self.runs,
            "stages": stages,
            "outside": {"median": median, "low": low, "high": high},
        }


@click.command("profile")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--prompt", default=PROMPT, show_default=True, help="The text to go on from.")
@click.option("--max-new-tokens", default=128, show_default=True, help="End after so many tokens.")
@click.option("--draft", type=click.Choice(DRAFTS), default="auto", show_default=True, help="Who proposes.")
@click.option(
    "--rule", type=click.Choice(list(RULES)), default="residual", show_default=True, help="How they are judged."
)
@click.option(
    "--speculation-length",
    type=SpeculationLength(),
    default=None,
    help=f"Proposals a round, at least 1; or auto: as many as pay here.  [default: {DEFAULT_LENGTH}]",
)
@click.option("--temperature", default=1.0, show_default=True, help="0 is greedy.")
@click.option("--top-k", default=0, show_default=True, help="Keep the k likeliest tokens, ties kept; 0 is off.")
@click.option("--top-p", default=1.0, show_default=True, help="Keep the likeliest tokens up to this mass; 1 is off.")
@click.option(
    "--runs", type=click.IntRange(1), default=5, show_default=True, help="Counted runs, after one to warm up."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 1 << 62),
    default=0,
    show_default=True,
    help="Of the first run; the next one a run.",
)
@click.option("--provider", default="cpu", show_default=True, help="Where the models run: cpu, cuda.")
@click.option("--threads", default=0, show_default=True, help="Threads a model; 0 lets the runtime choose.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def profile_command(
    bundle: Path, draft: DraftChoice, provider: str, threads: int, as_json: bool, runs: int, seed: int, **options: Any
) -> None:
    """Show where the time of a round goes when the model in BUNDLE generates."""
    if draft == "none" and options["speculation_length"] is not None:
        raise click.UsageError("--draft none and --speculation-length can't go together: plain decoding drafts nothing")
    with (
        Console(stderr=True).status(f"profiling {bundle}"),
        load(bundle, draft=draft, provider=provider, threads=threads) as lm,
    ):
        found = measure(lm, options.pop("prompt"), runs, seed, options)
    if as_json:
        click.echo(json.dumps({"bundle": str(bundle), "draft": draft, **options, **found.as_dict()}))
    else:
        show(found, bundle)


def measure(lm: LanguageModel, prompt: str, runs: int, seed: int, options: dict[str, Any]) -> Profile:
    """Profiles of several runs, a seed each; the first run warms up and isn't counted."""
    rounds: list[float] = []
    tokens: list[float] = []
    outside: list[float] = []
    stages: dict[str, list[tuple[float, float, float]]] = {name: [] for name in STAGES}
    for run in range(-1, runs):
        text, watch = profile(lm, prompt, seed=seed + max(run, 0), **options)
        if run < 0:
            continue
        total, count = sum(watch.seconds.values()), len(text.report.rounds)
        rounds.append(total / count * 1e3)
        tokens.append(len(text.tokens) / count)
        outside.append(sum(watch.seconds[name] for name in OUTSIDE) / total)
        for name in STAGES:
            seconds = watch.seconds[name]
            stages[name].append((seconds / count * 1e3, seconds / total, watch.entries[name] / count))
    made = tuple(Stage(name, *(statistics.median(part) for part in zip(*stages[name], strict=True))) for name in STAGES)
    spread = (min(outside), statistics.median(outside), max(outside))
    return Profile(made, statistics.median(rounds), spread, statistics.median(tokens), runs)


def show(found: Profile, bundle: Path) -> None:
    console = Console(highlight=False)
    table = Table(title=f"{bundle}: a round, medians of {found.runs} runs", title_justify="left")
    table.add_column("stage", no_wrap=True)
    for column in ("ms a round", "share", "times a round"):
        table.add_column(column, justify="right")
    table.add_column("what", overflow="fold")
    for stage in found.stages:
        figures = (f"{stage.milliseconds:.3f}", f"{stage.share:.1%}", f"{stage.entries:.2f}")
        table.add_row(stage.name, *figures, MEANINGS[stage.name])
    console.print(table)
    low, median, high = found.outside
    console.print(
        f"a round: {found.round_milliseconds:.3f} ms for {found.tokens_a_round:.2f} tokens; "
        f"outside the graphs {median:.1%} ({low:.1%} to {high:.1%})",
        soft_wrap=True,
    )
