"""`journee-export TARGET [--draft DRAFT] -o BUNDLE`: PyTorch checkpoints to a bundle of ONNX graphs."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click
from rich.console import Console


class ExportFailed(click.ClickException):
    """Ends the command with a message and exit code 1."""


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--draft", type=click.Path(path_type=Path), help="Checkpoint of the draft, trained on the same corpus.")
@click.option("-o", "--output", "bundle", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@click.option("--inline", is_flag=True, help="Leave no custom op: put the router's standard ops in its place.")
@click.option("--force", is_flag=True, help="Replace the bundle that is at BUNDLE.")
def main(target: Path, draft: Path | None, bundle: Path, inline: bool, force: bool) -> None:
    """Export the checkpoint TARGET, and maybe a draft, to ONNX.

    The graphs are compared with PyTorch before anything is kept; the bundle is written whole or not at all.
    """
    console = Console()
    before = signal.signal(
        signal.SIGTERM, lambda number, frame: sys.exit(128 + number)
    )  # so that nothing is left behind
    try:
        _export(console, target, draft, bundle, inline=inline, force=force)
    finally:
        signal.signal(signal.SIGTERM, before)


def _export(console: Console, target: Path, draft: Path | None, bundle: Path, *, inline: bool, force: bool) -> None:
    with console.status("Loading PyTorch"):
        try:
            from journee_export.run import run  # noqa: PLC0415  (torch takes seconds; --help needn't wait for it)
        except ModuleNotFoundError as error:
            raise ExportFailed(f"{error}; install what exporting needs: pip install 'journee-deploy[export]'") from None
    run(console, target, draft, bundle, inline=inline, force=force)
