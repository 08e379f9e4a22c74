"""Writing a bundle: every role's folder, the manifest, and a last look by the reader that every runtime uses."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from journee_deploy.bundle import Bundle, file_record, open_bundle
from journee_deploy.manifest import MANIFEST, TARGET, VERSION, Manifest, RoleRecord
from journee_deploy.typed_json import dump
from journee_export.page import PageOptions
from journee_export.role import Say, write_role
from journee_export.row_rule import with_row_rules
from journee_export.source import RoleSource
from journee_export.whole_folder import whole_folder

BEFORE_STORED: Final = 2
"""The version of a bundle without `stored`: older readers take it."""
SOFTWARE = ("journee-deploy", "torch", "onnx", "onnxscript", "onnxruntime")


def export_bundle(
    roles: Mapping[str, RoleSource],
    destination: Path,
    *,
    inline: bool = False,
    page: PageOptions | None = None,
    force: bool = False,
    say: Say = lambda line: None,
) -> Bundle:
    """Write the roles ("target", maybe "draft") as a bundle to `destination`, whole or not at all, and open
    it.

    `inline` leaves no custom op in the graphs; `page` makes it a bundle for pages; `force` replaces a bundle that is
    there; `say` hears what is being done. ExportError, BundleError, RuntimeFailure or OSError leave `destination` as it
    was.
    """
    with whole_folder(destination, force) as folder:
        records = {name: write_role(folder, name, source, inline, say, page) for name, source in roles.items()}
        _write_manifest(folder, records)
        open_bundle(folder)
        say("Looking for the row rule")
        records[TARGET] = with_row_rules(records[TARGET], folder / TARGET)
        _write_manifest(folder, records)
        open_bundle(folder)
    return Bundle(destination, open_bundle(destination, verify=False).manifest)


def _write_manifest(folder: Path, records: Mapping[str, RoleRecord]) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    files = {path.relative_to(folder).as_posix(): file_record(path) for path in paths}
    versions = {"python": platform.python_version()} | {name: version(name) for name in SOFTWARE}
    stored = any(graph.stored for record in records.values() for graph in record.graphs)
    manifest = Manifest("journee-bundle", VERSION if stored else BEFORE_STORED, dict(records), files, versions)
    (folder / MANIFEST).write_bytes(dump(manifest).encode())
