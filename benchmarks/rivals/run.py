"""Our speed beside the rivals', interleaved: every engine in a process and an environment of its own, one at a time.

    python benchmarks/rivals/run.py PAIR --genai PYTHON --openvino PYTHON --json FILE

README.md, in this folder, says how PAIR and the environments are made. Each repetition runs every setting once, in an
order that rotates, sampled ones with a new seed; the figures are medians over repetitions with the smallest and the
largest. Ratios are taken within a repetition, where the machine was nearly the same.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from protocol import Job, Result
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

HERE = Path(__file__).parent
PROMPT = (
    'def read(self, size=-1):\n    """Read and return up to size bytes, with at most one raw read.\n\n'
    '    If the argument is omitted, None, or negative, read until EOF.\n    """\n'
)
TRIES = 4
BASE = "ours plain, unpadded"


@dataclass(frozen=True, slots=True)
class Setting:
    """What is run: an engine, one of its models, proposals a round (0 is plain), sampled or greedy."""

    name: str
    engine: str
    model: str
    length: Any
    sampled: bool

    @property
    def label(self) -> str:
        return f"{self.name}, {'sampled' if self.sampled else 'greedy'}"


@dataclass(slots=True)
class Figures:
    """Tokens a second, a repetition each, and what the engine told of its runs."""

    speeds: list[float] = field(default_factory=list[float])
    facts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class Worker:
    """An engine in a process of its own."""

    def __init__(self, name: str, python: str, settings: dict[str, Any]) -> None:
        self.name = name
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS")}
        self._process = subprocess.Popen(
            [python, str(HERE / f"worker_{name}.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "HF_HUB_OFFLINE": "1"},
        )
        self._ask(settings)

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise click.ClickException(f"{self.name} ended with {process.wait()}; what it said is above")
        return dict(json.loads(answer))

    def run(self, job: Job) -> Result:
        return Result(**self._ask(asdict(job)))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def settings_of(engines: list[str], bundles: list[str], ours: list[Any], theirs: list[int]) -> list[Setting]:
    """All that is run, plain decoding first."""
    found: list[Setting] = []
    for sampled in (False, True):
        found.append(Setting(BASE, "ours", "unpadded", 0, sampled))
        found.append(Setting("ours plain", "ours", "fp32", 0, sampled))
        for bundle in bundles:
            found += [Setting(f"ours {bundle} K={length}", "ours", bundle, length, sampled) for length in ours]
        found.append(Setting("ours uniform K=auto", "ours", "fp32:uniform", "auto", sampled))
        for engine in engines:
            found += [Setting(f"{engine} plain", engine, "", 0, sampled)]
            found += [Setting(f"{engine} K={length}", engine, "", length, sampled) for length in theirs]
    return found


@contextmanager
def started(pythons: dict[str, str], settings: dict[str, Any]) -> Generator[dict[str, Worker]]:
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for name, python in pythons.items():
            workers[name] = Worker(name, python, settings)
            stack.callback(workers[name].close)
        yield workers


def measure(workers: dict[str, Worker], settings: list[Setting], repetitions: int, tokens: int) -> dict[str, Figures]:
    """Figures by label; one repetition first that isn't counted."""
    found = {setting.label: Figures() for setting in settings}
    for repetition in range(-1, repetitions):
        first = (repetition + 1) * 5 % len(settings)
        for setting in settings[first:] + settings[:first]:
            result = whole(workers[setting.engine], setting, repetition + 1, tokens)
            if repetition >= 0:
                found[setting.label].speeds.append(tokens / result.seconds)
                found[setting.label].facts.append(result.facts)
    return found


def whole(worker: Worker, setting: Setting, seed: int, tokens: int) -> Result:
    """A run that was not ended early by an end-of-sequence token, which any of a few seeds gives."""
    found: list[int] = []
    while len(found) < TRIES:
        result = worker.run(Job(setting.model, setting.length, setting.sampled, seed + len(found) * 1_000_000))
        if result.tokens == tokens:
            return result
        found.append(result.tokens)
    raise click.ClickException(f"{setting.label}: {found} tokens in {TRIES} runs, expected {tokens}")


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios, repetition by repetition."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def show(found: dict[str, Figures], settings: list[Setting], repetitions: int) -> None:
    console = Console(highlight=False)
    for sampled in (False, True):
        chosen = [setting for setting in settings if setting.sampled == sampled]
        base = found[next(setting.label for setting in chosen if setting.name == BASE)].speeds
        rivals = [setting for setting in chosen if setting.engine != "ours"]
        best = max(rivals, key=lambda setting: statistics.median(found[setting.label].speeds), default=None)
        title = f"{'sampled' if sampled else 'greedy'}, medians of {repetitions}"
        table = Table(title=title, title_justify="left")
        table.add_column("setting", no_wrap=True)
        columns = ("tokens/s", "low", "high", "to plain", f"to {best.name if best else 'the best rival'}")
        for column in (*columns, "acceptance", "outside the graphs"):
            table.add_column(column, justify="right")
        for setting in chosen:
            figures = found[setting.label]
            speeds = figures.speeds
            to_best = f"{ratio(speeds, found[best.label].speeds):.2f}" if best else "not run"
            median = f"{statistics.median(speeds):.1f}"
            spread = (f"{min(speeds):.1f}", f"{max(speeds):.1f}")
            told = (_mean(figures, "judged_acceptance", ".2f"), _mean(figures, "outside", ".1%"))
            table.add_row(setting.name, median, *spread, f"{ratio(speeds, base):.2f}", to_best, *told)
        console.print(table)


def _mean(figures: Figures, name: str, form: str) -> str:
    values = [facts[name] for facts in figures.facts if facts.get(name) is not None]
    return format(statistics.mean(values), form) if values else ""


@click.command()
@click.argument("pair", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--genai", metavar="PYTHON", help="The interpreter of an environment with onnxruntime-genai.")
@click.option("--openvino", metavar="PYTHON", help="The interpreter of an environment with openvino-genai.")
@click.option("--repetitions", type=click.IntRange(1), default=5, show_default=True, help="Counted ones.")
@click.option("--tokens", type=click.IntRange(1), default=128, show_default=True, help="New tokens a run.")
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True, help="Of each model.")
@click.option("--lengths", default="3,4,6,auto", show_default=True, help="Our proposals a round.")
@click.option("--their-lengths", default="2,4,8", show_default=True, help="The rivals' proposals a round.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write every figure there.")
def main(
    pair: Path,
    genai: str | None,
    openvino: str | None,
    repetitions: int,
    tokens: int,
    threads: int,
    lengths: str,
    their_lengths: str,
    file: Path | None,
) -> None:
    """Run the pair in the folder PAIR on every engine and print speeds and ratios."""
    bundles = {name: str(pair / name) for name in ("fp32", "int8") if (pair / name).is_dir()}
    if "fp32" not in bundles:
        raise click.ClickException(f"{pair} has no bundle fp32; README.md says how to make it")
    given = {"ours": sys.executable, "genai": genai, "openvino": openvino}
    pythons = {name: python for name, python in given.items() if python}
    for name in sorted(set(given) - set(pythons)):
        click.echo(f"{name}: not run, no --{name}", err=True)
    prompt = Tokenizer.from_file(str(pair / "hf" / "target" / "tokenizer.json")).encode(PROMPT).ids
    told = {
        "prompt": prompt,
        "tokens": tokens,
        "threads": threads,
        "bundles": bundles,
        "genai": str(pair / "genai"),
        "openvino": str(pair / "openvino"),
    }
    ours: list[Any] = [length if length == "auto" else int(length) for length in lengths.split(",")]
    theirs = [int(length) for length in their_lengths.split(",")]
    settings = settings_of([name for name in pythons if name != "ours"], list(bundles), ours, theirs)
    with started(pythons, told) as workers:
        found = measure(workers, settings, repetitions, tokens)
    show(found, settings, repetitions)
    if file is not None:
        figures = {label: asdict(figures) for label, figures in found.items()}
        file.write_text(json.dumps({"settings": told, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
