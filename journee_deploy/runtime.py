"""What the engine asks of a runtime, and how runtimes are found.

A runtime opens models and runs them; it knows nothing of drafts, rules, distributions or text. The engine
speaks to it through two protocols:

- `Runtime`: named, found through the entry-point group `journee.runtimes`, opens a model on a provider;
- `Model`: one loaded graph with a cache for each *slot* (one sequence a slot, one slot for one sequence).

Rules every implementation keeps:

1. `start` is declarative: "the cache of this slot holds the first `start` tokens". A smaller `start` than
   what is held rewinds; a larger one is an error; a cache that can't rewind raises.
2. Padding added for the row rule never reaches the caller, and never stays in the cache.
3. Rows come back as float32 copies that the caller owns, shape [keep, vocabulary], bit for bit what the graph
   computed.
4. Nothing falls back silently: an unknown provider, dtype or file is an error that says what there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from journee_deploy.row_rule import RowRule

ENTRY_POINTS = "journee.runtimes"
MOST_THREADS = 1024
EXTRAS = {"onnxruntime": "cpu", "torch": "export"}
"""The extra of journee-deploy that brings what a runtime needs."""

Rows = NDArray[np.float32]


class RuntimeFailure(RuntimeError):  # noqa: N818
    """A runtime could not do what it was asked; the message says what, where, and what to do."""


@dataclass(frozen=True, slots=True)
class Step:
    """Run `tokens` after the first `start` tokens of `slot`; return the logits of the last `keep` of them.

    1 <= keep <= len(tokens); 0 <= start <= tokens held by the slot.
    """

    slot: int
    tokens: tuple[int, ...]
    start: int
    keep: int


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How to open a model. `threads` 0 lets the runtime choose; `row_rule` False skips the self-test, for drafts;
    `verify` False skips the hashes of a bundle's files, for one that was verified already; `graph` is the id of a
    bundle's graph variant, None leaves the choice to the runtime.
    """

    provider: str = "cpu"
    threads: int = 0
    row_rule: bool = True
    verify: bool = True
    graph: str | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.threads, int) and not isinstance(self.threads, bool)
        if not whole or not 0 <= self.threads <= MOST_THREADS:
            raise RuntimeFailure(
                f"threads is {self.threads!r}; it must be a whole number from 1 to {MOST_THREADS}, "
                "or 0 to let the runtime choose"
            )


@dataclass(slots=True)
class Counters:
    """Running totals of one model since it was opened: runs, rows asked for, rows of padding apart, seconds inside its
    graph.
    """

    runs: int = 0
    rows: int = 0
    padding: int = 0
    seconds: float = 0.0


@runtime_checkable
class Model(Protocol):
    """One loaded graph and its caches, a cache a slot."""

    @property
    def name(self) -> str:
        """What messages call it, such as `artifacts/tiny target`."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """Columns of a row of logits."""
        ...

    @property
    def context_length(self) -> int:
        """The largest start + len(tokens) that a step may reach, padding apart."""
        ...

    @property
    def row_rule(self) -> RowRule | None:
        """The rule in force; None if none was looked for or none was found (`row_rule_note` says which)."""
        ...

    @property
    def row_rule_note(self) -> str:
        """One line for reports: where the rule comes from, or why there is none."""
        ...

    @property
    def counters(self) -> Counters: ...

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        """Run a batch of steps for different slots; one sequence is a batch of one. Rows as [keep,
        vocabulary].
        """
        ...

    def held(self, slot: int) -> int:
        """How many tokens the slot's cache holds; 0 for a slot never used or released."""
        ...

    def release(self, slot: int) -> None:
        """Forget the slot's cache."""
        ...

    def close(self) -> None:
        """Free everything; the model can't be used after."""
        ...


class Runtime(Protocol):
    """Opens models. A factory without arguments, registered under `journee.runtimes`."""

    @property
    def name(self) -> str: ...

    def providers(self) -> tuple[str, ...]:
        """Short names of the providers that are there on this machine, such as ("cpu",)."""
        ...

    def opens(self, source: Path) -> bool:
        """Whether `source` (a bundle's role folder, or a checkpoint file) is of the kind this runtime reads."""
        ...

    def open(self, source: Path, role: str, options: OpenOptions) -> Model:
        """Load the model for `role` ("target" or "draft")."""
        ...


def find_runtime(name: str) -> Runtime:
    """The runtime registered under `name`; an error lists those that are installed, or says why it can't be
    loaded.
    """
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise RuntimeFailure(f"no runtime named {name!r}; installed: {known}; install journee-deploy[cpu] or [cuda]")
    try:
        factory = found[name].load()
    except ImportError as error:
        extra = EXTRAS.get(name, name)
        raise RuntimeFailure(f"the runtime {name} can't be loaded: {error}; install journee-deploy[{extra}]") from None
    return factory()  # type: ignore[no-any-return]
