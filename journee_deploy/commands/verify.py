"""`journee verify`: whether a bundle keeps its promises on this machine."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journee_deploy.loading import DRAFTS
from journee_deploy.verification.check import Check
from journee_deploy.verification.suite import Settings, Suite

STYLES = {"passed": "green", "failed": "bold red", "not run": "bold red", "not asked": "dim"}


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--provider", default="cpu", show_default=True, help="Where the models run: cpu, cuda.")
@click.option("--threads", default=0, show_default=True, help="Threads a model; 0 lets the runtime choose.")
@click.option(
    "--draft",
    type=click.Choice([choice for choice in DRAFTS if choice != "none"]),
    default="auto",
    show_default=True,
    help="Which draft is verified. auto is the bundle's model, or n-grams where there is none.",
)
@click.option("--against", metavar="PROVIDER", default=None, help="Compare the target's rows with this provider's.")
@click.option("--trace", type=click.Path(path_type=Path), default=None, help="Compare them with those recorded here.")
@click.option(
    "--record", type=click.Path(path_type=Path), default=None, help="Record them here, for --trace elsewhere."
)
@click.option("--thorough", is_flag=True, help="More texts, longer texts, more runs: minutes instead of seconds.")
@click.option("--seed", type=click.IntRange(0, 1 << 32), default=0, show_default=True, help="Of every draw and choice.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every figure.")
def verify(as_json: bool, **options: Any) -> None:
    """Check on this machine that the bundle in BUNDLE does what it promises.

    Files, the row rule, greedy and coupled texts token for token, the controller's law, conformance, the law of real
    speculative runs, and parity with another machine if asked for. Ends with 0 if every check passed, else with 1.
    """
    settings = Settings(**options)
    checks = _made(settings)
    good = not any(check.counts_against for check in checks)
    if as_json:
        facts = {"bundle": str(settings.bundle), "provider": settings.provider, "threads": settings.threads}
        facts |= {"thorough": settings.thorough, "seed": settings.seed, "passed": good}
        click.echo(json.dumps({**facts, "checks": [check.as_dict() for check in checks]}, allow_nan=False))
    else:
        _show(settings, checks, good)
    raise SystemExit(0 if good else 1)


def _made(settings: Settings) -> list[Check]:
    """All checks, with a word on standard error about each that is under way."""
    console = Console(stderr=True, highlight=False)
    began = time.monotonic()
    with console.status(f"verifying {settings.bundle}") as status:
        suite = Suite(settings, lambda name: status.update(f"verifying {settings.bundle}: {name}"))
        checks: list[Check] = []
        for check in suite.checks():
            checks.append(check)
            console.print(f"{time.monotonic() - began:6.1f} s  {check.name}: {check.status}", markup=False)
    return checks


def _show(settings: Settings, checks: list[Check], good: bool) -> None:
    console = Console(highlight=False)
    table = Table(title=f"{settings.bundle}, verified on {settings.provider}", title_justify="left", show_lines=True)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("found", overflow="fold")
    table.add_column("target runs", justify="right")
    for check in checks:
        runs = check.figures.get("target_runs", "")
        status = Text(check.status, style=STYLES[check.status])
        table.add_row(check.name, status, Text(check.sentence), f"{runs:,}" if runs else "")
    console.print(table)
    failed = [check.name for check in checks if check.counts_against]
    verdict = "every check passed" if good else f"NOT verified: {', '.join(failed)}"
    console.print(f"verify: {verdict}", markup=False, soft_wrap=True)
