"""`journee-export TARGET [--draft DRAFT] -o BUNDLE`: PyTorch checkpoints to a bundle of ONNX graphs."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

if TYPE_CHECKING:
    from journee_export.quantize import Precision
    from journee_export.rounding import Storage


class ExportFailed(click.ClickException):
    """Ends the command with a message and exit code 1."""


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--draft",
    help="Checkpoint of the draft, trained on the same corpus; or int8 or int4: the target itself, quantized.",
)
@click.option(
    "--draft-precision",
    type=click.Choice(["float32", "int8", "int4"]),
    default="float32",
    show_default=True,
    help="Of the draft's weights. int8 is the fastest on CPU; in a page, float32 is.",
)
@click.option("-o", "--output", "bundle", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["web"]),
    help="web: a bundle for pages, with small weights in chunks and only the graph that a page can run.",
)
@click.option(
    "--weights",
    type=click.Choice(["float16", "int8"]),
    help="With --for web: how weights are stored; arithmetic stays float32.  [default: float16]",
)
@click.option(
    "--chunk-size",
    type=click.FloatRange(0, 1024, min_open=True),
    metavar="MIB",
    help="With --for web: the size of a file of weights at most, unless one matrix is larger.  [default: 8]",
)
@click.option("--inline", is_flag=True, help="Leave no custom op: put the router's standard ops in its place.")
@click.option("--force", is_flag=True, help="Replace the bundle that is at BUNDLE.")
def main(
    target: Path,
    draft: str | None,
    draft_precision: Precision,
    bundle: Path,
    purpose: str | None,
    weights: Storage | None,
    chunk_size: float | None,
    inline: bool,
    force: bool,
) -> None:
    """Export the checkpoint TARGET, and maybe a draft, to ONNX.

    With --for web, the model is the one with the rounded weights; the manifest says how far it is from TARGET.
    The graphs are compared with PyTorch before anything is kept; the bundle is written whole or not at all.
    """
    drafting = _drafting(draft, draft_precision)
    page = _page(purpose, weights, chunk_size, drafting, draft_precision)
    console = Console()
    before = signal.signal(
        signal.SIGTERM, lambda number, frame: sys.exit(128 + number)
    )  # so that nothing is left behind
    try:
        _export(console, target, drafting, bundle, precision=draft_precision, inline=inline, page=page, force=force)
    finally:
        signal.signal(signal.SIGTERM, before)


def _drafting(draft: str | None, precision: Precision) -> Path | Precision | None:
    """A checkpoint, or how the target is to be quantized; a precision without a checkpoint to quantize is refused."""
    named: dict[str | None, Precision | None] = {None: None, "int8": "int8", "int4": "int4"}
    if draft is not None and draft not in named:
        return Path(draft)
    if precision != "float32":
        given = f"--draft {draft}" if draft else "no draft"
        raise click.UsageError(f"--draft-precision {precision} goes with --draft CHECKPOINT; there is {given}")
    return named[draft]


def _page(
    purpose: str | None,
    weights: Storage | None,
    chunk_size: float | None,
    draft: Path | Precision | None,
    precision: Precision,
) -> tuple[Storage, float] | None:
    """How weights are stored for a page, and MiB a chunk; None for another bundle."""
    if purpose is None:
        for name, value in (("--weights", weights), ("--chunk-size", chunk_size)):
            if value is not None:
                raise click.UsageError(f"{name} {value} goes with --for web")
        return None
    if precision != "float32" or isinstance(draft, str):
        given = f"--draft {draft}" if isinstance(draft, str) else f"--draft-precision {precision}"
        raise click.UsageError(
            f"{given} does not go with --for web: its MatMulNBits is about ten times slower in a page than float32; "
            "give --draft CHECKPOINT, whose weights --weights makes small"
        )
    return weights or "float16", chunk_size or 8


def _export(
    console: Console,
    target: Path,
    draft: Path | Precision | None,
    bundle: Path,
    *,
    precision: Precision,
    inline: bool,
    page: tuple[Storage, float] | None,
    force: bool,
) -> None:
    with console.status("Loading PyTorch"):
        try:
            from journee_export.run import run  # noqa: PLC0415  (torch takes seconds; --help needn't wait for it)
        except ModuleNotFoundError as error:
            raise ExportFailed(f"{error}; install what exporting needs: pip install 'journee-deploy[export]'") from None
    run(console, target, draft, bundle, precision=precision, inline=inline, page=page, force=force)
