"""What was written, as tables for a terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table

from journee_deploy.bundle import Bundle
from journee_deploy.manifest import MANIFEST, RoleRecord

COMMON = 10
"""Operators listed by name; the others are counted together."""


def show_summary(console: Console, bundle: Bundle) -> None:
    """Files with their sizes, models, operators, parity, and a line that says what happened."""
    console.print(_files(bundle), _models(bundle), _operators(bundle), _parity(bundle))
    roles = " and ".join(bundle.roles)
    size = sum(record.size for record in bundle.manifest.files.values())
    worst = max(found.difference for role in bundle.roles for found in bundle.manifest.roles[role].graphs[0].parity)
    console.print(
        f"Wrote {bundle.root}: {roles}, {_megabytes(size)}; every graph within {worst:.1e} of PyTorch.",
        soft_wrap=True,
        highlight=False,
    )


def _files(bundle: Bundle) -> Table:
    table = Table("file", title="Files", title_justify="left")
    table.add_column("bytes", justify="right")
    table.add_column("sha256")
    table.add_row(MANIFEST, f"{(bundle.root / MANIFEST).stat().st_size:,}", "")
    for name, record in bundle.manifest.files.items():
        table.add_row(name, f"{record.size:,}", record.sha256[:12])
    return table


def _models(bundle: Bundle) -> Table:
    table = Table("", title="Models", title_justify="left")
    for role in bundle.roles:
        table.add_column(role)
    records = [bundle.manifest.roles[role] for role in bundle.roles]
    table.add_row("parameters", *(f"{record.parameters:,}" for record in records))
    table.add_row("blocks, key heads, width", *(_shape(record) for record in records))
    table.add_row("vocabulary, context", *(f"{r.vocabulary_size:,}, {r.context_length:,}" for r in records))
    table.add_row("router", *(record.graphs[0].router for record in records))
    table.add_row("nodes", *(f"{sum(record.graphs[0].operators.values()):,}" for record in records))
    table.add_row("row rule here", *(_row_rule(record) for record in records))
    return table


def _shape(record: RoleRecord) -> str:
    return f"{record.layers}, {record.kv_heads}, {record.head_dim}"


def _operators(bundle: Bundle) -> Table:
    """Nodes by type: our own op, then the most frequent ones, then all others together."""
    table = Table("operator", title="Operators", title_justify="left")
    counts = [bundle.manifest.roles[role].graphs[0].operators for role in bundle.roles]
    total = sum(map(Counter, counts), Counter[str]())
    shown = sorted(total, key=lambda name: ("::" not in name, -total[name], name))[:COMMON]
    for role in bundle.roles:
        table.add_column(role, justify="right")
    for name in shown:
        table.add_row(name, *(str(count.get(name, 0)) for count in counts))
    others = (sum(count for name, count in found.items() if name not in shown) for found in counts)
    table.add_row("others", *map(str, others))
    return table


def _row_rule(record: RoleRecord) -> str:
    found = record.graphs[0].row_rule
    return str(found.rule) if found else "none looked for or found"


def _parity(bundle: Bundle) -> Table:
    """A case a row; the cases are the same for every role."""
    table = Table("largest difference from PyTorch", title="Parity", title_justify="left")
    columns = [bundle.manifest.roles[role].graphs[0].parity for role in bundle.roles]
    for role in (*bundle.roles, "allowed"):
        table.add_column(role, justify="right")
    for cases in zip(*columns, strict=True):
        table.add_row(cases[0].case, *(f"{found.difference:.1e}" for found in cases), f"{cases[0].tolerance:.0e}")
    return table


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB"
