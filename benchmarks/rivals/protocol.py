"""Between `run.py` and its workers: a JSON object a line. Standard library alone, since every environment reads it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Job:
    """One generation. `length`: proposals a round, 0 is plain, or "auto"; `model`: which of the engine's models."""

    model: str
    length: Any
    sampled: bool
    seed: int


@dataclass(frozen=True)
class Result:
    """`tokens` emitted in `seconds`, prompt included."""

    tokens: int
    seconds: float
    facts: dict[str, Any]


class Engine(Protocol):
    def run(self, job: Job) -> Result: ...


def serve(make: Callable[[dict[str, Any]], Engine]) -> None:
    """Be a worker: settings on the first line, then a job a line; an answer each. All else goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    engine = make(json.loads(sys.stdin.readline()))
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(asdict(engine.run(Job(**json.loads(line))))), file=answers, flush=True)
