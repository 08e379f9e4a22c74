"""What sparse routing saves: the mixture of experts as it is exported, against the same with every expert on every row.

    python benchmarks/sparse_moe.py [--dim 192 --expert-dim 192 --runs 9]

Both graphs hold the same weights and give the same outputs (checked first). For each number of rows, pairs of timings
in turn on one thread; the ratio sparse / dense of each pair, its median and spread. Below 1, routing saves time.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from journee.config import MoEConfig
from journee.moe import SparseMoE, dispatch_dense
from journee_export.router_op import add_router
from journee_export.session import Array, GraphSession
from journee_export.sparse_dispatch import dispatch_with_if
from journee_export.trace import OPSET, TRANSLATIONS, quiet

ROWS = (1, 2, 5, 64, 512)


class Block(nn.Module):
    """The mixture alone, with the padding mask as an input, as the decoder calls it."""

    def __init__(self, mixture: SparseMoE) -> None:
        super().__init__()
        self.mixture = mixture

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        out: Tensor = self.mixture(x, real)
        return out


def build(mixture: SparseMoE, dispatch: Callable[[SparseMoE, Tensor, Tensor], Tensor], path: Path) -> GraphSession:
    """The mixture with that dispatch as a graph, loaded."""
    mixture.dispatch = dispatch
    dim = mixture.correction.in_features
    example = torch.randn(1, 7, dim), torch.ones(1, 7, dtype=torch.bool)
    rows = {1: "rows"}
    with quiet(), torch.no_grad():
        program: Any = torch.onnx.export(  # pyright: ignore[reportUnknownMemberType]
            Block(mixture).eval(),
            example,
            dynamo=True,
            opset_version=OPSET,
            input_names=["x", "real"],
            output_names=["y"],
            dynamic_shapes=(rows, rows),
            custom_translation_table=TRANSLATIONS,
            verbose=False,
        )
    add_router(program.model)
    program.save(str(path))
    return GraphSession(path)


def check_equal(sparse: GraphSession, dense: GraphSession, feeds: dict[str, Array]) -> None:
    """Both graphs compute the same, to rounding."""
    difference = np.abs(np.subtract(sparse(feeds)["y"], dense(feeds)["y"])).max()
    if not difference < 1e-4:
        raise click.ClickException(f"the two graphs differ by {difference}; their timings can't be compared")


def seconds(session: GraphSession, feeds: dict[str, Array], repeat: int) -> float:
    """Time of `repeat` runs."""
    began = perf_counter()
    for _ in range(repeat):
        session(feeds)
    return perf_counter() - began


def ratios(sparse: GraphSession, dense: GraphSession, feeds: dict[str, Array], runs: int) -> tuple[list[float], float]:
    """The ratio of each pair, and microseconds of one dense run."""
    repeat = max(1, int(0.05 / (seconds(dense, feeds, 3) / 3)))
    found: list[float] = []
    costs: list[float] = []
    for pair in range(runs):
        first, second = (sparse, dense) if pair % 2 else (dense, sparse)
        times = {id(session): seconds(session, feeds, repeat) for session in (first, second)}
        found.append(times[id(sparse)] / times[id(dense)])
        costs.append(times[id(dense)] / repeat * 1e6)
    return found, statistics.median(costs)


@click.command()
@click.option("--dim", default=192, show_default=True)
@click.option("--expert-dim", default=192, show_default=True)
@click.option("--runs", default=9, show_default=True, type=click.IntRange(min=1))
def main(dim: int, expert_dim: int, runs: int) -> None:
    """Time the mixture sparse and dense."""
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    mixture = SparseMoE(dim, MoEConfig(expert_dim=expert_dim)).eval()
    table = Table(title=f"mixture of 4 experts, 2 a row; dim {dim}, expert dim {expert_dim}", title_justify="left")
    for column in ("rows", "real rows", "dense, µs", "sparse / dense, median", "lowest to highest"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        sparse = build(mixture, dispatch_with_if, Path(folder) / "sparse.onnx")
        dense = build(mixture, dispatch_dense, Path(folder) / "dense.onnx")
        generator = np.random.default_rng(0)
        for rows, real in [(rows, rows) for rows in ROWS] + [(2, 1)]:
            feeds: dict[str, Array] = {
                "x": generator.standard_normal((1, rows, dim), dtype=np.float32),
                "real": np.arange(rows)[None] < real,
            }
            check_equal(sparse, dense, feeds)
            found, cost = ratios(sparse, dense, feeds, runs)
            spread = f"{min(found):.2f} to {max(found):.2f}"
            table.add_row(str(rows), str(real), f"{cost:.0f}", f"{statistics.median(found):.2f}", spread)
    Console().print(table)


if __name__ == "__main__":
    main()
