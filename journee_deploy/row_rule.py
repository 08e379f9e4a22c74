"""The row rule: padding under which a row of logits depends on its prefix alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowRule:
    """At least `rows` rows a run, and start + rows a multiple of `multiple`."""

    rows: int
    multiple: int
