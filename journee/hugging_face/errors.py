"""What is wrong with a model folder."""

from __future__ import annotations


class FolderError(ValueError):
    """A Hugging Face folder can't be exported; the message says which file, what was wrong, and what to do."""
