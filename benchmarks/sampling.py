"""What sampling costs outside the graphs: distributions, draws, and whole rounds whose models cost nothing.

    python benchmarks/sampling.py [--sizes 1024,4096,32000,49152 --runs 9]

Rows look like a language model's (normal, standard deviation 3); the draft's are near the target's. Every figure is
microseconds: the median over `runs` means of 16 calls, and lowest to highest. A round has 4 proposals;
its time is all that the engine measures less the time inside the models.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import Chance, ConstantPace, ModelDraft, Residual, Stops, speculate
from journee_deploy.draws import VectorPhilox
from journee_deploy.engine import Engine, Meter
from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import Counters, Rows, Step

OPTIONS = {
    "default": Sampling(),
    "temperature 0": Sampling(temperature=0.0),
    "temperature 0.7": Sampling(temperature=0.7),
    "top_k 50": Sampling(top_k=50),
    "top_p 0.9": Sampling(top_p=0.9),
    "min_p 0.05": Sampling(min_p=0.05),
    "penalties": Sampling(repetition_penalty=1.1, frequency_penalty=0.2, presence_penalty=0.1),
}
LENGTH = 4  # proposals a round
HISTORY = 256  # tokens of the prompt
BANK = 64  # different rows
CALLS = 16


class Instant:
    """A `journee_deploy.runtime.Model` that costs nothing: a row of its bank, chosen by position and last token."""

    def __init__(self, bank: NDArray[np.float32]) -> None:
        self._bank = bank
        self.name = "instant"
        self.vocabulary_size = bank.shape[1]
        self.context_length = 1 << 20
        self.row_rule = RowRule(1, 1)
        self.row_rule_note = ""
        self.counters = Counters()

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        return [self._rows(step) for step in steps]

    def _rows(self, step: Step) -> Rows:
        first = step.start + len(step.tokens) - step.keep
        places = [first + i + token for i, token in enumerate(step.tokens[-step.keep :])]
        return self._bank[np.array(places) % len(self._bank)]

    def held(self, slot: int) -> int:
        return 0

    def release(self, slot: int) -> None:
        pass

    def close(self) -> None:
        pass


def banks(size: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Rows of a target and of a draft near it, [BANK, size] each."""
    random = np.random.default_rng(size)
    target = random.normal(0.0, 3.0, (BANK, size))
    return target.astype(np.float32), (target + random.normal(0.0, 0.5, target.shape)).astype(np.float32)


class Pieces:
    """The steps of a round over rows of these banks: each does what comes before it; returns its own seconds."""

    def __init__(self, size: int, sampling: Sampling) -> None:
        self._rows = banks(size)
        self._ops = VectorOps(list(range(HISTORY)), size, sampling)
        for token in range(0, 2 * HISTORY, 3):
            self._ops.push(token)
        self._chance = Chance(self._ops, VectorPhilox(7))
        self._calls = 0

    def distribution(self) -> float:
        """One row of the draft; handle 0."""
        self._calls += 1
        self._ops.clear()
        for bank in reversed(self._rows):
            self._ops.hold("draft", HISTORY, bank[self._calls % BANK : self._calls % BANK + 1])
        began = perf_counter()
        self._ops.distribution(0)
        return perf_counter() - began

    def pick(self) -> float:
        """A proposal from it."""
        self.distribution()
        began = perf_counter()
        self._chance.pick(0, (0, HISTORY, self._calls))
        return perf_counter() - began

    def accept(self) -> float:
        """A verdict, with both distributions at hand."""
        self.distribution()
        proposal, _ = self._chance.pick(0, (0, HISTORY, self._calls))
        p = self._ops.distribution(1)
        began = perf_counter()
        weights = self._ops.weight(p, proposal), self._ops.weight(0, proposal)
        self._chance.accept(*weights, (1, HISTORY, self._calls))
        return perf_counter() - began

    def recover(self) -> float:
        """A token from the residual; nothing is drawn where there is none."""
        self.distribution()
        p = self._ops.distribution(1)
        began = perf_counter()
        left = self._ops.residual(p, 0)
        if self._ops.total(left):
            self._chance.pick(left, (2, HISTORY, self._calls))
        return perf_counter() - began


def figures(step: Callable[[], float], runs: int) -> list[float]:
    """Microseconds of a step, `runs` times the mean of `CALLS`."""
    step()
    return [statistics.fmean(step() for _ in range(CALLS)) * 1e6 for _ in range(runs)]


def rounds(size: int, sampling: Sampling, limit: int) -> Callable[[], float]:
    """One generation of `limit` tokens a call; microseconds a round outside the models."""
    target, draft = banks(size)
    engine = Engine({"target": Instant(target), "draft": Instant(draft)})

    def generate() -> float:
        prompt = list(range(HISTORY))
        ops = VectorOps(prompt, size, sampling)
        wishes = speculate(
            prompt,
            ops=ops,
            chance=Chance(ops, VectorPhilox(7)),
            rule=Residual(),
            draft=ModelDraft(),
            pace=ConstantPace(LENGTH),
            stops=Stops(limit),
        )
        meter = Meter()
        count = sum(1 for _ in engine.drive(wishes, ops, meter))
        return (meter.total - sum(meter.seconds.values())) / count * 1e6

    generate()
    return generate


def shown(found: Sequence[float]) -> str:
    digits = 1 if max(found) < 20 else 0
    return f"{statistics.median(found):.{digits}f} ({min(found):.{digits}f} to {max(found):.{digits}f})"


def cells(size: int, sampling: Sampling, runs: int) -> list[str]:
    pieces = Pieces(size, sampling)
    steps = pieces.distribution, pieces.pick, pieces.accept, pieces.recover
    generate = rounds(size, sampling, 40 if size > 8192 else 100)
    return [shown(found) for found in (*(figures(step, runs) for step in steps), [generate() for _ in range(runs)])]


@click.command()
@click.option("--sizes", default="1024,4096,32000,49152", show_default=True, help="vocabularies, separated by commas")
@click.option("--only", multiple=True, type=click.Choice(list(OPTIONS)), help="these options; all if not given")
@click.option("--runs", default=9, show_default=True, type=click.IntRange(min=1))
def main(sizes: str, only: tuple[str, ...], runs: int) -> None:
    """Time what a generation does outside its graphs."""
    table = Table(title="microseconds: median (lowest to highest)", title_justify="left")
    for column in ("V", "options", "distribution", "pick", "verdict", "recovery", f"round of {LENGTH} proposals"):
        table.add_column(column, justify="left" if column == "options" else "right")
    for size in (int(size) for size in sizes.split(",")):
        for name, sampling in OPTIONS.items():
            if not only or name in only:
                table.add_row(str(size), name, *cells(size, sampling, runs))
        table.add_section()
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
