"""The text that models learn from, split into training and held-out documents.

By default it is the source text of the running interpreter's standard library, without its tests: there on every
machine, offline, in English and Python. A user's file or folder takes its place by `corpus` in the training TOML.

Rules, so that the same text gives the same tokenizer and the same split everywhere:

1. documents are ordered by their relative path, written with `/`;
2. a document is held out when the first four bytes of the SHA-256 of its path, as a fraction, fall below `HELD_OUT`;
3. the corpus hash covers every path and every byte. Two checkpoints may work as a pair only when it agrees.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

HELD_OUT = 0.06
"""The expected share of documents that are held out."""

PIECE = 1 << 14
"""A corpus of one file is cut, at line ends, into documents of about this many characters."""

SKIPPED_FOLDERS = frozenset({"test", "tests", "idle_test", "encodings", "site-packages", "__pycache__", "pydoc_data"})
SKIPPED_PREFIXES = ("_sysconfigdata", "config-")


class CorpusError(ValueError):
    """A corpus can't be read or used; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text and the relative path that names it."""

    path: str
    text: str

    @property
    def held_out(self) -> bool:
        """Whether it is kept from training (rule 2)."""
        return int.from_bytes(sha256(self.path.encode()).digest()[:4], "big") < HELD_OUT * 2**32


@dataclass(frozen=True)
class Corpus:
    """Documents in order, and where they came from."""

    origin: str
    documents: tuple[Document, ...]

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all paths and texts, in hexadecimal."""
        digest = sha256()
        for document in self.documents:
            for part in (document.path.encode(), document.text.encode()):
                digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    @property
    def training(self) -> list[str]:
        """Texts to learn from."""
        return [document.text for document in self.documents if not document.held_out]

    @property
    def held_out(self) -> list[str]:
        """Texts to judge by."""
        return [document.text for document in self.documents if document.held_out]


def standard_library() -> Corpus:
    """The running interpreter's standard library, without tests, character tables and pydoc's stored topics."""
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    documents = (_read(root, path) for path in paths if not _skipped(path))
    return _checked(Corpus("the standard library", tuple(document for document in documents if document)))


def read_corpus(source: Path | None) -> Corpus:
    """The corpus at `source` (a text file, or a folder of them), or the standard library for None."""
    if source is None:
        return standard_library()
    if source.is_file():
        document = _read(source.parent, source.name)
        return _checked(Corpus(str(source), tuple(_cut(document)) if document else ()))
    if not source.is_dir():
        raise CorpusError(f"corpus {source} does not exist; name a text file or a folder, or leave `corpus` out")
    paths = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
    documents = (_read(source, path) for path in paths if not path.startswith(".") and "/." not in path)
    return _checked(Corpus(str(source), tuple(document for document in documents if document)))


def _checked(corpus: Corpus) -> Corpus:
    if not corpus.documents:
        raise CorpusError(f"corpus {corpus.origin} has no UTF-8 text; name a file or folder that has")
    if not corpus.held_out or not corpus.training:
        raise CorpusError(
            f"corpus {corpus.origin} has {len(corpus.documents)} documents, of which {len(corpus.held_out)} fall to "
            "the held-out part; both parts need at least one, so add files (or give one longer file)"
        )
    return corpus


def _skipped(path: str) -> bool:
    parts = path.split("/")
    return any(part in SKIPPED_FOLDERS or part.startswith(SKIPPED_PREFIXES) for part in parts)


def _read(root: Path, path: str) -> Document | None:
    """The document, or None if it is empty or no UTF-8 text."""
    try:
        text = (root / path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
    return Document(path, text) if text and "\0" not in text else None


def _cut(document: Document) -> Iterator[Document]:
    """Pieces of about `PIECE` characters, whole lines each, named by their number."""
    lines, size, number = list[str](), 0, 0
    for line in document.text.splitlines(keepends=True):
        lines.append(line)
        size += len(line)
        if size >= PIECE:
            yield Document(f"{document.path}#{number}", "".join(lines))
            lines, size, number = [], 0, number + 1
    if lines:
        yield Document(f"{document.path}#{number}", "".join(lines))
