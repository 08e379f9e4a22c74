"""A folder that is written whole or not at all, whatever interrupts it, and never in place of something else."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from journee_export.errors import ExportError
from journee_export.whole_folder import whole_folder


def fill(folder: Path, text: str = "new") -> None:
    (folder / "target").mkdir()
    (folder / "target" / "model").write_text(text)
    (folder / "journee.json").write_text(text)


def bundle(path: Path) -> Path:
    """A folder that looks like a bundle."""
    path.mkdir()
    fill(path, "old")
    return path


def content(path: Path) -> str:
    return (path / "target" / "model").read_text()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_appears_when_the_block_ends(tmp_path: Path) -> None:
    destination = tmp_path / "deep" / "bundle"
    with whole_folder(destination) as folder:
        assert folder.parent == destination.parent
        fill(folder)
        assert not destination.exists()
    assert content(destination) == "new"
    assert names(tmp_path / "deep") == ["bundle"]


def test_its_permissions_are_those_of_any_new_folder(tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    with whole_folder(tmp_path / "bundle") as folder:
        fill(folder)
    assert (tmp_path / "bundle").stat().st_mode == (tmp_path / "usual").stat().st_mode


def write(destination: Path, then: Callable[[], object], replace: bool = False) -> None:
    """Fill a new folder for `destination`, then do something more before the block ends."""
    with whole_folder(destination, replace) as folder:
        fill(folder)
        then()


def test_folders_made_for_it_go_with_it(tmp_path: Path) -> None:
    def halt() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        write(tmp_path / "new" / "deeper" / "bundle", halt)
    assert names(tmp_path) == []
    write(tmp_path / "new" / "deeper" / "bundle", lambda: None)
    assert names(tmp_path / "new" / "deeper") == ["bundle"]


STOPS = [ValueError("bad"), KeyboardInterrupt(), SystemExit(1), OSError(errno.ENOSPC, "No space left on device")]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: type(stop).__name__)
@pytest.mark.parametrize("there", [False, True])
def test_whatever_stops_it_leaves_things_as_they_were(tmp_path: Path, stop: BaseException, there: bool) -> None:
    destination = bundle(tmp_path / "bundle") if there else tmp_path / "bundle"

    def halt() -> None:
        raise stop

    with pytest.raises(type(stop)):
        write(destination, halt, replace=there)
    assert names(tmp_path) == (["bundle"] if there else [])
    assert not there or content(destination) == "old"


def test_what_is_there_is_refused(tmp_path: Path) -> None:
    for destination in (bundle(tmp_path / "bundle"), tmp_path / "empty", tmp_path / "file"):
        if destination.name == "empty":
            destination.mkdir()
        if destination.name == "file":
            destination.write_text("x")
        with (
            pytest.raises(ExportError, match="exists; choose another destination, or replace it with --force"),
            whole_folder(destination),
        ):
            raise AssertionError("never entered")
    assert content(tmp_path / "bundle") == "old"


def test_replacing(tmp_path: Path) -> None:
    destination = bundle(tmp_path / "bundle")
    with whole_folder(destination, replace=True) as folder:
        fill(folder)
        assert content(destination) == "old"
    assert content(destination) == "new"
    assert names(tmp_path) == ["bundle"]


def test_replacing_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    with whole_folder(tmp_path / "bundle", replace=True) as folder:
        fill(folder)
    assert content(tmp_path / "bundle") == "new"


def test_replacing_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters.txt").write_text("dear")
    (tmp_path / "file").write_text("x")
    for destination in (tmp_path / "home", tmp_path / "file"):
        with pytest.raises(ExportError, match="is no bundle"), whole_folder(destination, replace=True):
            raise AssertionError("never entered")
    assert (tmp_path / "home" / "letters.txt").read_text() == "dear"


def test_one_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    destination = tmp_path / "bundle"
    with pytest.raises(ExportError, match="exists"):
        write(destination, lambda: bundle(destination))
    assert content(destination) == "old"
    assert names(tmp_path) == ["bundle"]


@pytest.mark.parametrize("stop", [OSError("no"), KeyboardInterrupt()])
def test_a_rename_that_fails_puts_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    destination = bundle(tmp_path / "bundle")
    rename, calls = os.rename, []

    def second_fails(source: Path, place: Path) -> None:
        calls.append(place)
        if len(calls) == 2:
            raise stop
        rename(source, place)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(type(stop)), whole_folder(destination, replace=True) as folder:
        fill(folder)
    assert content(destination) == "old"
    assert names(tmp_path) == ["bundle"]


def test_a_link_to_a_bundle_stays_a_link(tmp_path: Path) -> None:
    bundle(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    with whole_folder(tmp_path / "link", replace=True) as folder:
        fill(folder)
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "real") == "new"
    assert names(tmp_path) == ["link", "real"]


def test_a_destination_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="file"), whole_folder(tmp_path / "file" / "bundle"):
        raise AssertionError("never entered")
