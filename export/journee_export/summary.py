"""What was written, as tables for a terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table

from journee_deploy.bundle import Bundle
from journee_deploy.manifest import MANIFEST, GraphRecord, RoleRecord

COMMON = 10
"""Operators listed by name; the others are counted together."""


def show_summary(console: Console, bundle: Bundle) -> None:
    """Files with their sizes, models, operators, parity, and a line that says what happened."""
    console.print(_files(bundle), _models(bundle), _operators(bundle), _parity(bundle))
    roles = " and ".join(bundle.roles)
    size = sum(record.size for record in bundle.manifest.files.values())
    exact = [graph for _, graph in _graphs(bundle) if graph.precision == "float32"]
    worst = max(found.difference for graph in exact for found in graph.parity)
    console.print(
        f"Wrote {bundle.root}: {roles}, {_megabytes(size)}; every float32 graph within {worst:.1e} of PyTorch.",
        soft_wrap=True,
        highlight=False,
    )
    for name, graph in _graphs(bundle):
        if stored := graph.stored:
            console.print(
                f"{name}: weights stored in {stored.precision}, which moved its logits by {stored.logits:.2g} at most "
                f"and its distributions by a TV of {stored.mean_tv:.2g} in the mean, {stored.max_tv:.2g} at most, over "
                f"{stored.rows} tokens of a sample text.",
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
    for name, fact in (("graphs", _identity), ("nodes", _nodes), ("row rule here", _row_rule)):
        table.add_row(name, *("\n".join(map(fact, record.graphs)) for record in records))
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


def _identity(graph: GraphRecord) -> str:
    return graph.id


def _nodes(graph: GraphRecord) -> str:
    return f"{sum(graph.operators.values()):,}"


def _row_rule(graph: GraphRecord) -> str:
    return str(graph.row_rule.rule) if graph.row_rule else "none looked for or found"


def _parity(bundle: Bundle) -> Table:
    """A case a row, a graph a column; graphs differ in the cases that they can be run on."""
    table = Table("largest difference from PyTorch", title="Parity", title_justify="left")
    columns = {name: {found.case: found for found in graph.parity} for name, graph in _graphs(bundle)}
    for name in columns:
        table.add_column(name, justify="right")
    table.add_column("allowed", justify="right")
    for case in dict.fromkeys(case for column in columns.values() for case in column):
        found = [column.get(case) for column in columns.values()]
        allowed = max(parity.tolerance for parity in found if parity)
        table.add_row(case, *(f"{parity.difference:.1e}" if parity else "" for parity in found), f"{allowed:.0e}")
    return table


def _graphs(bundle: Bundle) -> list[tuple[str, GraphRecord]]:
    """Every graph, by role and id."""
    roles = bundle.manifest.roles
    return [(f"{role} {graph.id}", graph) for role in bundle.roles for graph in roles[role].graphs]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB"
