"""What stops an export."""

from __future__ import annotations


class ExportError(ValueError):
    """The export stopped and left nothing behind; the message says what was wrong, where, and what to do."""
