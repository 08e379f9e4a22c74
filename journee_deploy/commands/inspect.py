"""`journee inspect`: what is in a bundle, and whether it is whole."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from journee_deploy.bundle import Bundle, open_bundle
from journee_deploy.manifest import GraphRecord, RoleRecord
from journee_deploy.typed_json import Json, is_object, plain


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as one JSON object.")
def inspect(bundle: Path, as_json: bool) -> None:
    """Verify every file of BUNDLE and show its roles, graphs, parity and provenance."""
    opened = open_bundle(bundle)
    if as_json:
        click.echo(json.dumps(plain(opened.manifest)))
        return
    console = Console(highlight=False)
    for name in opened.roles:
        console.print(_role_table(name, opened.manifest.roles[name]))
        console.print(_parity_table(name, opened.manifest.roles[name]))
    console.print(_files_table(opened))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(opened.manifest.versions.items()))
    console.print(f"written by {versions}", soft_wrap=True)
    console.print(f"{bundle}: {len(opened.manifest.files)} files, sizes and hashes verified", soft_wrap=True)


def _role_table(name: str, role: RoleRecord) -> Table:
    table = _table(name, "fact", "value")
    table.add_row("parameters", f"{role.parameters:,}")
    table.add_row("vocabulary", f"{role.vocabulary_size:,} tokens")
    table.add_row("context", f"{role.context_length:,} tokens")
    table.add_row("layers", f"{role.layers}, {role.kv_heads} key-value heads of {role.head_dim}")
    table.add_row("logits and cache", role.dtype)
    for graph in role.graphs:
        table.add_row(f"graph {graph.id}", _graph(graph))
        if stored := graph.stored:
            cost = f"logits {stored.logits:.2g}, TV {stored.mean_tv:.2g} in the mean, {stored.max_tv:.2g} at most"
            table.add_row("rounding moved p by", f"{cost}, over {stored.rows} tokens")
    for figure, value in role.source.figures.items():
        table.add_row(figure.replace("_", " "), _figure(value))
    table.add_row("checkpoint", f"sha256 {role.source.checkpoint_sha256[:16]}...")
    return table


def _graph(graph: GraphRecord) -> str:
    rule = graph.row_rule
    found = "none" if rule is None else f"{rule.rule} ({rule.where})"
    stored = f" (weights stored in {graph.stored.precision})" if graph.stored else ""
    return (
        f"opset {graph.opset}, {graph.precision}{stored}, cache {graph.cache}, router {graph.router}, "
        f"{sum(graph.operators.values())} nodes; exporter's row rule: {found}"
    )


def _figure(value: Json) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if is_object(value):
        return ", ".join(f"{key} {_figure(part)}" for key, part in value.items())
    return str(value)


def _parity_table(name: str, role: RoleRecord) -> Table:
    table = _table(f"{name}: parity with PyTorch", "graph", "case", "largest difference", "tolerance")
    for graph in role.graphs:
        for parity in graph.parity:
            table.add_row(graph.id, parity.case, f"{parity.difference:.1e}", f"{parity.tolerance:.1e}")
    return table


def _files_table(bundle: Bundle) -> Table:
    table = _table("files", "file", "bytes", "sha256")
    for name, record in sorted(bundle.manifest.files.items()):
        table.add_row(name, f"{record.size:,}", f"{record.sha256[:16]}...")
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
