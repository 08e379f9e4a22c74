"""What a cache costs: a rewind early and late in a text, and memory while a long text grows.

    python benchmarks/cache.py [BUNDLE --graph shared-fp32 --graph concat-fp32]

A rewind is a step that begins two tokens before what the cache holds, as after the third of four proposals is
rejected, against a step of as many rows at the end; both in turn, the extra milliseconds of each pair. Memory is the
process's own (resident set), taken after the first text of 2,000 tokens and after each further one: flat means that
nothing is kept from text to text.
"""

from __future__ import annotations

import gc
import os
import statistics
from pathlib import Path
from time import perf_counter

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from journee_deploy.runtime import Model, OpenOptions, Step, find_runtime

RUN, BACK = 5, 2
ROWS = 2
TEXT = 2000


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def rewinds(model: Model, tokens: tuple[int, ...], past: int, pairs: int) -> tuple[list[float], list[float]]:
    """Milliseconds of steps that go on, and of steps of as many rows that rewind first."""
    on: list[float] = []
    back: list[float] = []
    model.run([Step(0, tokens[:past], 0, 1)])
    for _ in range(pairs):
        for start, times in ((past, on), (past - BACK, back)):
            model.run([Step(0, tokens[past - RUN : past], past - RUN, 1)])
            began = perf_counter()
            model.run([Step(0, tokens[start : start + ROWS], start, ROWS)])
            times.append((perf_counter() - began) * 1e3)
    model.release(0)
    return on, back


def growth(model: Model, tokens: tuple[int, ...], texts: int) -> list[float]:
    """Megabytes resident after each text of TEXT tokens, two rows a step, less those after the first."""
    held: list[float] = []
    for slot in range(texts + 1):
        model.run([Step(slot, tokens[:16], 0, 1)])
        for at in range(16, TEXT, ROWS):
            model.run([Step(slot, tokens[at : at + ROWS], at, ROWS)])
        model.release(slot)
        gc.collect()
        held.append(resident() / 1e6)
    return [after - held[0] for after in held[1:]]


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path, exists=True), default=Path("artifacts/tiny"))
@click.option("--graph", "graphs", multiple=True, default=("shared-fp32", "concat-fp32"), show_default=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--pairs", type=click.IntRange(1), default=41, show_default=True, help="Pairs of steps at each length.")
@click.option("--texts", type=click.IntRange(1), default=4, show_default=True, help="Long texts after the first.")
def main(bundle: Path, graphs: tuple[str, ...], threads: int, pairs: int, texts: int) -> None:
    """Measure the caches of the target in BUNDLE."""
    console = Console(highlight=False)
    table = Table(title=f"{bundle}: {ROWS} rows, in ms, medians of {pairs} pairs", title_justify="left")
    for column in ("graph", "past", "going on", "rewound", "a rewind costs"):
        table.add_column(column, justify="left" if column == "graph" else "right")
    memory: list[str] = []
    for graph in graphs:
        options = OpenOptions(threads=threads, row_rule=False, verify=False, graph=graph)
        model = find_runtime("onnxruntime").open(bundle / "target", "target", options)
        chance = np.random.default_rng(0)
        tokens: tuple[int, ...] = tuple(chance.integers(0, model.vocabulary_size, TEXT + 64).tolist())
        for past in (64, TEXT):
            on, back = rewinds(model, tokens, past, pairs)
            extra = [b - a for a, b in zip(on, back, strict=True)]
            figures = (statistics.median(on), statistics.median(back), statistics.median(extra))
            table.add_row(graph, str(past), *(f"{figure:.3f}" for figure in figures))
        grown = ", ".join(f"{more:+.1f}" for more in growth(model, tokens, texts))
        memory.append(f"{graph}: memory after {TEXT} tokens, MB beside the first text: {grown}")
        model.close()
    console.print(table)
    for line in memory:
        console.print(line, soft_wrap=True)


if __name__ == "__main__":
    main()
