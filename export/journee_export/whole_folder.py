"""A folder that appears whole or not at all.

It is filled under a temporary name beside its destination, flushed to disk, and renamed. Whatever goes wrong
before (an error, Ctrl-C, a request to end, a full disk), the temporary folder is removed, with the folders above it
that were made for it, and the destination is as it was.
Replacing moves the old folder aside, renames, and puts the old one back if that fails; it is deleted last.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from journee_deploy.manifest import MANIFEST
from journee_export.errors import ExportError


@contextmanager
def whole_folder(destination: Path, replace: bool = False) -> Generator[Path]:
    """Yield an empty folder that becomes `destination` when the block ends well.

    ExportError if `destination` exists; with `replace`, only if it is something other than a bundle or an
    empty folder.
    """
    place = Path(os.path.realpath(destination))
    check_destination(destination, replace)
    missing = [folder for folder in place.parents if not folder.exists()]
    partial = _beside(place, "partial")
    try:
        partial.mkdir(parents=True)
        yield partial
        _flush(partial)
        check_destination(destination, replace)
        _move(partial, place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):  # a folder that isn't empty stays
            for folder in missing:
                folder.rmdir()


def check_destination(destination: Path, replace: bool) -> None:
    """ExportError unless a bundle may be written to `destination`."""
    if not destination.exists():
        return
    if not replace:
        raise ExportError(f"{destination} exists; choose another destination, or replace it with --force")
    if not destination.is_dir() or not ((destination / MANIFEST).is_file() or not any(destination.iterdir())):
        raise ExportError(
            f"{destination} is no bundle (it has no {MANIFEST}), so --force does not replace it; "
            "choose another destination, or remove it yourself"
        )


def _move(partial: Path, place: Path) -> None:
    if not place.exists():
        os.rename(partial, place)
        return
    old = _beside(place, "old")
    os.rename(place, old)
    try:
        os.rename(partial, place)
    except BaseException:
        os.rename(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _beside(place: Path, what: str) -> Path:
    return place.with_name(f".{place.name}.{secrets.token_hex(4)}.{what}")


def _flush(folder: Path) -> None:
    """Have the system write every file to disk; what a full disk refuses is refused here at the latest."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
