"""What `journee-export` does once PyTorch is there: load, export, show; failures become one message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.status import Status

from journee.checkpoint import CheckpointError
from journee.config import ConfigError
from journee.hugging_face.errors import FolderError
from journee_deploy.bundle import BundleError
from journee_deploy.runtime import RuntimeFailure
from journee_export.bundle import export_bundle
from journee_export.command import ExportFailed
from journee_export.errors import ExportError
from journee_export.page import MEBIBYTE, PageOptions
from journee_export.quantize import Precision
from journee_export.rounding import Storage
from journee_export.source import load_sources
from journee_export.summary import show_summary
from journee_export.whole_folder import check_destination

EXPECTED = (CheckpointError, ConfigError, FolderError, ExportError, BundleError, RuntimeFailure)


def run(
    console: Console,
    target: Path,
    draft: Path | Precision | None,
    destination: Path,
    *,
    precision: Precision,
    inline: bool,
    page: tuple[Storage, float] | None = None,
    force: bool,
) -> None:
    """Export and print the summary; `page` is how weights are stored for one, and MiB a chunk.

    ExportFailed carries the message of whatever stopped it.
    """
    try:
        check_destination(destination, force)
        with console.status("Reading weights") as status:
            roles = load_sources(target, draft, precision)
            options = PageOptions(page[0], int(page[1] * MEBIBYTE)) if page else None
            say = _teller(console, status)
            bundle = export_bundle(roles, destination, inline=inline, page=options, force=force, say=say)
    except EXPECTED as error:
        raise ExportFailed(str(error)) from None
    except OSError as error:
        raise ExportFailed(f"nothing was written: {error}") from None
    show_summary(console, bundle)


def _teller(console: Console, status: Status) -> Callable[[str], None]:
    """Where stages are told: in the moving line of a terminal, or a line each where there is none."""
    return status.update if console.is_terminal else console.print
