"""Bundles: the folders that `journee-export` writes and every runtime reads. The format is in `manifest`.

Opening checks the manifest, that every path stays in the folder, that the roles' folders hold nothing that it doesn't
list, and every file's size and sha256, before anything is loaded. No torch, no onnx, no runtime is needed.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from journee_deploy.manifest import (
    MANIFEST,
    FileRecord,
    GraphRecord,
    Inputs,
    Manifest,
    Outputs,
    RoleRecord,
    inside,
    read_manifest,
)
from journee_deploy.typed_json import JsonError

LARGEST_MANIFEST = 2**24
"""Bytes of journee.json that are read at most."""


class BundleError(ValueError):
    """A folder that is no good bundle; the message says what, where, and what to do."""


@dataclass(frozen=True, slots=True)
class BundleRole:
    """One role of an opened bundle, with the graph variant chosen. `root` is the bundle's folder, `files` its files."""

    root: Path
    name: str
    record: RoleRecord
    graph_record: GraphRecord
    files: Mapping[str, FileRecord]

    def __str__(self) -> str:
        return f"{self.root.name} {self.name}"

    def with_graph(self, variant: str) -> BundleRole:
        """The same role with the graph variant of that id."""
        graphs = {graph.id: graph for graph in self.record.graphs}
        if variant not in graphs:
            raise BundleError(f"{self.root}: {self.name} has no graph {variant!r}; there are: {', '.join(graphs)}")
        return replace(self, graph_record=graphs[variant])

    @property
    def graph_sha256(self) -> str:
        return self.files[self.graph_record.file].sha256

    @property
    def weights_sha256(self) -> str:
        """Those of the graph's weights files, in their order, separated by spaces."""
        return " ".join(self.files[file].sha256 for file in self.graph_record.weights)

    @property
    def folder(self) -> Path:
        """The role's model folder."""
        return self.root / self.name

    @property
    def graph(self) -> Path:
        """The .onnx file; its weights are beside it."""
        return self.root / self.graph_record.file

    @property
    def weights(self) -> tuple[Path, ...]:
        return tuple(self.root / name for name in self.graph_record.weights)

    @property
    def tokenizer(self) -> Path:
        return self.root / self.record.tokenizer

    @property
    def variant(self) -> str:
        """The id of the graph variant."""
        return self.graph_record.id

    @property
    def inputs(self) -> Inputs:
        return self.graph_record.inputs

    @property
    def outputs(self) -> Outputs:
        return self.graph_record.outputs

    @property
    def vocabulary_size(self) -> int:
        return self.record.vocabulary_size

    @property
    def context_length(self) -> int:
        return self.record.context_length

    @property
    def layers(self) -> int:
        return self.record.layers

    @property
    def kv_heads(self) -> int:
        return self.record.kv_heads

    @property
    def head_dim(self) -> int:
        return self.record.head_dim

    @property
    def dtype(self) -> str:
        """Of logits and cache, such as "float32"."""
        return self.record.dtype

    @property
    def end_of_sequence(self) -> tuple[int, ...]:
        """Token ids that end a text; maybe none."""
        return self.record.end_of_sequence


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened bundle: the folder and its manifest."""

    root: Path
    manifest: Manifest

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the roles that are there, the target first."""
        return tuple(sorted(self.manifest.roles, reverse=True))

    def role(self, name: str, variant: str | None = None) -> BundleRole:
        """The role `name` with the graph variant of that id, by default the first."""
        record = self.manifest.roles.get(name)
        if record is None:
            raise BundleError(f"{self.root}: no role {name!r}; this bundle has: {', '.join(self.roles)}")
        role = BundleRole(self.root, name, record, record.graphs[0], self.manifest.files)
        return role if variant is None else role.with_graph(variant)


def open_bundle(path: str | Path, verify: bool = True) -> Bundle:
    """Open the bundle in the folder `path`; BundleError says what is wrong with it.

    `verify` False skips the hashes (sizes are always checked), for a folder that was verified already.
    """
    root = Path(path)
    manifest = _read_manifest(root)
    for name, record in manifest.files.items():
        _check_file(root, name, record, verify)
    for role in manifest.roles:
        _check_all_listed(root, role, manifest)
    return Bundle(root, manifest)


def role_of(folder: str | Path, verify: bool = True, variant: str | None = None) -> BundleRole:
    """The role whose model folder is `folder`, such as artifacts/tiny/target; its bundle is opened."""
    folder = Path(folder)
    place = folder.resolve()
    if not (place.parent / MANIFEST).is_file():
        raise BundleError(f"{folder}: no role's folder: no {MANIFEST} beside it; give BUNDLE/target or BUNDLE/draft")
    return open_bundle(place.parent, verify).role(place.name, variant)


def is_role_folder(folder: str | Path) -> bool:
    """Whether `folder` looks like a role's folder of a bundle; nothing is checked further."""
    place = Path(folder).resolve()
    return place.is_dir() and (place.parent / MANIFEST).is_file()


def file_record(path: Path) -> FileRecord:
    """Size and sha256 of a file."""
    digest = hashlib.sha256()
    size = 0
    for chunk in _chunks(path):
        digest.update(chunk)
        size += len(chunk)
    return FileRecord(size, digest.hexdigest())


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            yield chunk


def _read_manifest(root: Path) -> Manifest:
    file = root / MANIFEST
    try:
        _check_folder(root)
        _check_inside(root, MANIFEST)
        return read_manifest(_text(file))
    except JsonError as problem:
        raise BundleError(f"{file}: {problem}") from None
    except OSError as error:
        raise BundleError(f"{file}: cannot be read: {error.strerror}") from None


def _check_folder(root: Path) -> None:
    if not stat.S_ISDIR(_mode(root)):
        what = "is a file" if _mode(root) else "does not exist"
        raise BundleError(f"{root}: {what}; a bundle is the folder that `journee-export` writes")
    if not stat.S_ISREG(_mode(root / MANIFEST)):
        raise BundleError(f"{root}: no {MANIFEST} in it, so it is no bundle; write one with `journee-export`")


def _mode(path: Path) -> int:
    """What kind of thing is at `path`, 0 for nothing; OSError where that can't be told."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _text(file: Path) -> str:
    if file.stat().st_size > LARGEST_MANIFEST:
        raise JsonError(f"larger than {LARGEST_MANIFEST} bytes, so it is no manifest")
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"byte {error.start}: not UTF-8") from None


def _check_file(root: Path, name: str, record: FileRecord, verify: bool) -> None:
    _check_inside(root, name)
    path = root / name
    again = "copy or download the bundle again, or export it again"
    try:
        if not path.is_file():
            raise BundleError(f"{path}: missing, though {MANIFEST} lists it; {again}")
        size = path.stat().st_size
        if size != record.size:
            what = "truncated" if size < record.size else "too long"
            raise BundleError(f"{path}: {what}: {size} bytes, expected {record.size}; {again}")
        if verify and (found := file_record(path).sha256) != record.sha256:
            raise BundleError(f"{path}: damaged: sha256 {found}, expected {record.sha256}; {again}")
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from None


def _check_all_listed(root: Path, role: str, manifest: Manifest) -> None:
    """Refuse files of a role's folder that the manifest doesn't list: a graph could load them unverified."""
    try:
        paths = sorted(path for path in (root / role).rglob("*") if path.is_symlink() or not path.is_dir())
    except OSError as error:
        raise BundleError(f"{root / role}: cannot be read: {error.strerror}") from None
    for path in paths:
        if path.relative_to(root).as_posix() not in manifest.files:
            raise BundleError(
                f"{path}: not listed in {MANIFEST}, so it can't be verified; "
                "remove it, or copy or download the bundle again, or export it again"
            )


def _check_inside(root: Path, name: str) -> None:
    """Raise unless `name`, links followed, is in `root`."""
    try:
        leaves = inside(name) is not None or not (root / name).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a name no file can have
        raise BundleError(f"{root / name}: cannot be resolved: {error}") from None
    if leaves:
        raise BundleError(f"{root / name}: leaves the bundle's folder; its files must be in it, links included")
