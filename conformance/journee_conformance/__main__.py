"""`python -m journee_conformance`: check a host, be a host, make the cases."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from journee_conformance import generate as generator
from journee_conformance.cases import PACKAGED, CasesError, load
from journee_conformance.checker import Outcome
from journee_conformance.checker import check as check_host
from journee_conformance.command_host import CommandHost
from journee_conformance.host import Host, VersionError
from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.vectors import VectorOps


def python_host(ops: str) -> Host:
    """The Python host over one of its two arithmetics."""
    if ops == "plain":
        return Host(PlainOps, list, "python, plain")
    return Host(VectorOps, np.array, "python, vectors")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Conformance cases of JOURNEE deploy: conformance/README.md has the protocol."""


@main.command(context_settings={"ignore_unknown_options": True})
@click.option("--cases", type=click.Path(path_type=Path), default=PACKAGED, help="A folder of case files.")
@click.option("--kind", "kinds", multiple=True, help="Only cases of this kind; may be given several times.")
@click.option("--patience", default=60.0, show_default=True, help="Seconds without an answer before giving up.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def check(cases: Path, kinds: tuple[str, ...], patience: float, as_json: bool, command: tuple[str, ...]) -> None:
    """Run the host COMMAND over the cases. Exit code 0 only if every answer is right.

    Give COMMAND after --, such as: check -- python -m journee_conformance host
    """
    if not patience > 0:
        raise click.UsageError(f"--patience is {patience}; it must be above 0")
    try:
        outcome = check_host(CommandHost(command, patience), load(cases, kinds))
    except CasesError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps(outcome.as_dict()))
    else:
        show(outcome, " ".join(command))
    sys.exit(0 if outcome.passed else 1)


def show(outcome: Outcome, command: str) -> None:
    """The table, and a verdict."""
    console = Console(highlight=False)
    table = Table(title=outcome.host or command, title_justify="left")
    for column in ("kind", "cases", "passed", "failed", "not supported", "not answered"):
        table.add_column(column, overflow="fold", no_wrap=column == "kind")
    for row in outcome.rows.values():
        counts = (row.cases, row.passed, row.failed, row.unsupported, row.unanswered)
        table.add_row(row.kind, *map(str, counts))
    console.print(table)
    for row in outcome.rows.values():
        if row.first:
            console.print(f"first failure of {row.kind}: {row.first}", markup=False, soft_wrap=True)
    if outcome.trouble:
        console.print(outcome.trouble, markup=False, soft_wrap=True)
    verdict = "conforms" if outcome.passed else "does NOT conform"
    console.print(
        f"{outcome.host or command} {verdict}: {outcome.cases - outcome.failed} of {outcome.cases} cases passed",
        markup=False,
        soft_wrap=True,
    )


@main.command()
@click.option("--ops", type=click.Choice(["plain", "vectors"]), default="plain", show_default=True)
def host(ops: str) -> None:
    """Be the Python host: cases on standard input, answers on standard output."""
    answering = python_host(ops)
    try:
        for line in sys.stdin:
            click.echo(answering.line(line))
    except VersionError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@click.option("--check", "checking", is_flag=True, help="Write nothing; fail if a file would change.")
def generate(checking: bool) -> None:
    """Make the cases again, to the byte."""
    try:
        made = generator.files()
    except CasesError as error:
        raise click.ClickException(str(error)) from None
    stale = sorted(name for name, text in made.items() if generator.held(name) != text)
    stray = sorted(file.name for file in PACKAGED.glob("*.jsonl") if file.name not in made)
    if checking and (stale or stray):
        raise click.ClickException(f"not what the generator makes: {', '.join(stale + stray)}; run it without --check")
    if not checking:
        for name in stale:
            (PACKAGED / name).write_text(made[name], encoding="utf-8")
        for name in stray:
            (PACKAGED / name).unlink()
    click.echo(f"{len(made)} files, {'as they should be' if checking else f'{len(stale)} written'}")


if __name__ == "__main__":
    main()
