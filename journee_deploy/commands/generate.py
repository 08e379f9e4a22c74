"""`journee generate`: text from a bundle, streamed as it becomes final."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

import click
from rich.console import Console
from rich.text import Text

from journee_deploy.commands.options import SpeculationLength
from journee_deploy.controller import RULES
from journee_deploy.costs import Costs
from journee_deploy.language_model import LanguageModel
from journee_deploy.loading import DRAFTS, DraftChoice, load
from journee_deploy.request import AUTO, DEFAULT_LENGTH, Length, Options
from journee_deploy.text import Piece

STYLES = {"accepted": "green", "recovered": "bold red", "bonus": "bold blue"}
MARKS = {"accepted": ("", ""), "recovered": ("[", "]"), "bonus": ("<", ">")}


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--prompt", required=True, help="The text to go on from; - reads it from standard input.")
@click.option("--max-new-tokens", default=64, show_default=True, help="End after so many tokens.")
@click.option(
    "--draft",
    type=click.Choice(DRAFTS),
    default="auto",
    show_default=True,
    help="Who proposes: the bundle's model, the text before (ngram), equal chances (uniform, for tests), or nobody. "
    "auto is the model if there is one, else nobody.",
)
@click.option(
    "--rule",
    type=click.Choice(list(RULES)),
    default="residual",
    show_default=True,
    help="How proposals are judged. Under coupled, a seed gives the same text with any draft.",
)
@click.option(
    "--speculation-length",
    type=SpeculationLength(),
    default=None,
    help="Proposals a round, at least 1; auto is as many as pay, none where drafting costs more than it saves.  "
    f"[default: {DEFAULT_LENGTH}]",
)
@click.option(
    "--costs",
    type=(float, float, float),
    default=None,
    metavar="DRAFT ROW FREE",
    help="For --speculation-length auto, instead of measuring: what a proposal and a further row cost, in plain runs "
    "of the target, and how many rows come free. With those of a report, a seed gives its text again.",
)
@click.option("--temperature", default=1.0, show_default=True, help="0 is greedy.")
@click.option("--top-k", default=0, show_default=True, help="Keep the k likeliest tokens, ties kept; 0 is off.")
@click.option("--top-p", default=1.0, show_default=True, help="Keep the likeliest tokens up to this mass; 1 is off.")
@click.option("--min-p", default=0.0, show_default=True, help="Keep tokens this likely beside the likeliest; 0 is off.")
@click.option("--repetition-penalty", default=1.0, show_default=True, help="Over prompt and text; 1 is off.")
@click.option("--stop", multiple=True, help="End where this string begins; may be given several times.")
@click.option("--seed", type=int, default=None, help="0 to 2^64 - 1; without it, one is drawn and reported.")
@click.option("--special", is_flag=True, help="The text of special tokens in the prompt becomes those tokens.")
@click.option("--provider", default="cpu", show_default=True, help="Where the models run: cpu, cuda.")
@click.option("--threads", default=0, show_default=True, help="Threads a model; 0 lets the runtime choose.")
@click.option("--show", is_flag=True, help="Mark accepted, recovered and bonus tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: text, tokens, kinds, report.")
def generate(
    bundle: Path,
    prompt: str,
    draft: DraftChoice,
    speculation_length: Length | None,
    costs: tuple[float, float, float] | None,
    provider: str,
    threads: int,
    show: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Generate text after a prompt with the model in BUNDLE.

    The text goes to standard output as it becomes final; a line of figures follows on standard error.
    """
    if show and as_json:
        raise click.UsageError("--show and --json can't go together: the JSON has the kinds")
    if draft == "none" and speculation_length is not None:
        raise click.UsageError("--draft none and --speculation-length can't go together: plain decoding drafts nothing")
    if costs is not None and speculation_length != AUTO:
        raise click.UsageError("--costs goes with --speculation-length auto: a constant length needs none")
    known = None if costs is None else Costs(*costs)
    options["speculation_length"] = speculation_length
    text = _standard_input() if prompt == "-" else prompt
    with _loaded(bundle, draft=draft, provider=provider, threads=threads, costs=known) as lm:
        if as_json:
            click.echo(json.dumps({"prompt": text, **lm.generate(text, trace=True, **options).as_dict()}))
            return
        _stream(lm, text, show, **options)


def _standard_input() -> str:
    if sys.stdin is None:
        raise click.UsageError("--prompt - reads standard input, and there is none")
    return sys.stdin.read()


def _loaded(bundle: Path, draft: DraftChoice, provider: str, threads: int, costs: Costs | None) -> LanguageModel:
    """The bundle's model; a word on the terminal meanwhile, since the first time the row rule is looked for."""
    with Console(stderr=True).status(f"opening {bundle}"):
        return load(bundle, draft=draft, provider=provider, threads=threads, costs=costs)


def _stream(lm: LanguageModel, prompt: str, show: bool, **options: Unpack[Options]) -> None:
    with lm.stream(prompt, **options) as stream:
        if show:
            _show(prompt, stream)
        else:
            click.echo(prompt, nl=False)
            for piece in stream:
                click.echo(piece, nl=False)  # which flushes
            click.echo()
        click.echo(stream.generation().report.summary(), err=True)


def _show(prompt: str, pieces: Iterable[Piece]) -> None:
    """Colours where the terminal has them, brackets where not; a legend first."""
    console = Console(highlight=False, soft_wrap=True)
    plain = console.color_system is None
    legend = Text.assemble(*(part for kind in STYLES for part in (_marked(kind, kind, plain), "  ")))
    console.print(legend)
    console.print(Text(prompt, style="dim"), end="")
    for piece in pieces:
        console.print(_marked(str(piece), piece.kind, plain), end="")
    console.print()


def _marked(text: str, kind: str, plain: bool) -> Text:
    before, after = MARKS[kind] if plain else ("", "")
    return Text(f"{before}{text}{after}", style=STYLES[kind])
