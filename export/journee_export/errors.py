"""What stops an export."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class ExportError(ValueError):
    """The export stopped and left nothing behind; the message says what was wrong, where, and what to do."""


@contextmanager
def foreign(what: str) -> Generator[None]:
    """Other libraries' errors as an ExportError that says what was being done; the system's own pass through."""
    try:
        yield
    except (ExportError, OSError, MemoryError):
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or ["no message"]
        raise ExportError(
            f"{what} failed: {type(error).__name__}: {lines[0]}. "
            "Check that torch, onnx, onnxscript and onnxruntime are the versions in constraints.txt"
        ) from error
