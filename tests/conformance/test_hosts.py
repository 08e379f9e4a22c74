"""Hosts against the cases: those that ship pass, one written from the document alone passes, and wrong ones go red."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from journee_conformance.__main__ import python_host
from journee_conformance.cases import packaged_cases
from journee_conformance.checker import InProcess, Outcome, check
from journee_conformance.command_host import CommandHost
from journee_deploy.arithmetic import plain
from journee_deploy.arithmetic.arena import Arena
from journee_deploy.controller import chance, darts, drafts, philox, residual, stops
from journee_deploy.controller.chance import Chance
from journee_deploy.controller.philox import Philox
from tests.conformance.second_host import SecondHost
from tests.portable.test_suites import node_with_micropython

ROOT = Path(__file__).parents[2]
CASES = packaged_cases()


@pytest.mark.parametrize("ops", ["plain", "vectors"])
def test_the_python_host_conforms(ops: str) -> None:
    outcome = check(InProcess(python_host(ops)), CASES)
    assert outcome.passed, outcome
    assert outcome.cases == len(CASES)


def test_a_host_written_from_the_document_alone_conforms() -> None:
    outcome = check(InProcess(SecondHost()), CASES)
    assert outcome.passed, outcome


def micropython() -> list[str]:
    return [node_with_micropython(), str(ROOT / "conformance" / "micropython.mjs")]


HOSTS: dict[str, Callable[[], list[str]]] = {
    "python": lambda: [sys.executable, "-m", "journee_conformance", "host"],
    "second": lambda: [sys.executable, "-m", "tests.conformance.second_host"],
    "micropython": micropython,
}


@pytest.mark.parametrize("host", HOSTS.values(), ids=list(HOSTS))
@pytest.mark.parametrize("greeting", [{"version": 2}, {"version": 0}, {"format": "something-else"}])
def test_a_host_refuses_a_version_that_it_does_not_know(
    greeting: dict[str, Any], host: Callable[[], list[str]]
) -> None:
    line = json.dumps({"format": "journee-conformance", "version": 1, **greeting}) + "\n"
    done = subprocess.run(host(), input=line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode != 0
    assert done.stdout == ""
    assert line.strip() in done.stderr


def test_micropython_conforms() -> None:
    outcome = check(CommandHost(micropython(), 300), CASES)
    assert outcome.passed, outcome
    assert outcome.host == "micropython"


# Wrong hosts: one mistake each, in the shipped code, and the kinds of case that must show it.


def generous(self: Chance, p: float, q: float, key: Any) -> tuple[bool, float]:
    """Accepts a coin equal to p, so one unit too many."""
    coin = self._draws.below(self._whole(q), key)
    return coin <= self._whole(p), coin / self._units


def certain(self: Chance, p: float, q: float, key: Any) -> tuple[bool, float]:
    """Draws a coarse coin, as from a float32."""
    units = self._whole(q)
    coin = self._draws.below((units >> 26) + 1, key) << 26
    return coin < self._whole(p), coin / self._units


def modulo(n: int, words: Any, size: int = 32, right: Callable[..., int] = philox.uniform) -> int:
    """Takes a remainder where the number should be drawn again."""
    return right(1 << philox.bits(n - 1), words, size) % n if n else right(n, words)


def running(k: list[float]) -> float:
    total = 0.0
    for value in k:
        total += value
    return total


def endless(self: Any, generated: list[int], new: list[int]) -> tuple[int, str]:
    """Overlooks ends and stops; the limit alone ends the text."""
    return len(new), "length" if len(generated) + len(new) >= self._limit else ""


def limited(self: Any, generated: list[int], new: list[int]) -> str:
    """Lets the limit hide a stop at the same token."""
    if len(generated) + len(new) >= self._limit:
        return "length"
    return "end-of-sequence" if new[-1] in self._ends else ""


def reciprocal(x: list[float], best: int, temperature: float, kept: list[bool]) -> list[float]:
    factor = 1 / temperature if 1 / temperature < plain.INFINITY else 1e308
    found = []
    for token, value in enumerate(x):
        z = (value - x[best]) * factor
        found.append(float(int(plain.exponential(z) * plain.SCALE)) if kept[token] and z >= plain.LOWEST else 0.0)
    return found


def early(words: Any) -> int:
    """Duchon and Duvignau with a strict comparison."""
    n, guard, k = 1, 0, 1
    while True:
        i = philox.uniform(n + 1, words)
        if i == n:
            k += 1
        elif i > guard:
            k, guard = k - 1, n + 1
        else:
            return k
        n += 1


def from_p(self: Any, p: int, q: int, proposal: int, position: int, number: int, ops: Any, chances: Any) -> Any:
    key = (chance.JUDGE, position, number)
    kept, coin = chances.accept(ops.weight(p, proposal), ops.weight(q, proposal), key)
    return (proposal if kept else chances.pick(p, (chance.RECOVER, position, number))[0]), kept, coin


def frozen(self: Arena, row: int, right: Callable[[Arena, int], int] = Arena.distribution) -> int:
    """Penalties see decided text alone: what this round's proposals are is forgotten for each row."""
    decided = min(position for _, position, _ in self._rows)
    proposals = self.history._generated[decided - self.history.prompt_length :]
    self.history.truncate(decided)
    try:
        return right(self, row)
    finally:
        for token in proposals:
            self.history.push(token)


def roundless(self: Philox, n: int, key: Any, right: Callable[[Philox, int, Any], int] = Philox.below) -> int:
    """Draws by purpose and position alone."""
    return right(self, n, (*key[:2], 0))


def earliest(self: drafts.NgramDraft, tokens: list[int]) -> int:
    """The longest match, but the first one of several."""

    def length(end: int) -> int:
        agree = [tokens[end - 1 - n] == tokens[-1 - n] for n in range(min(end, 4))]
        return [*agree, False].index(False)

    best = max(range(1, len(tokens)), key=length, default=0)
    return best if best and length(best) else -1


WRONG: list[tuple[str, Any, str, Callable[..., Any], set[str]]] = [
    ("accepts a coin equal to p", Chance, "accept", generous, {"verdict"}),
    ("draws a coarse coin", Chance, "accept", certain, {"verdict", "generation"}),
    ("draws by remainder", philox, "uniform", modulo, {"below", "generation"}),
    ("draws the same in every round", Philox, "below", roundless, {"below", "verdict", "generation"}),
    ("freezes penalties during a round", Arena, "distribution", frozen, {"generation"}),
    ("adds from left to right", plain, "sum_once", running, {"distribution"}),
    ("recovers from p", residual.Residual, "judge", from_p, {"verdict", "round", "generation"}),
    ("overlooks ends", stops.Stops, "cut", endless, {"generation"}),
    ("lets the limit hide an end", stops.Stops, "_ending", limited, {"generation"}),
    ("multiplies by 1 / T", plain, "weigh", reciprocal, {"distribution"}),
    ("compares strictly in Poisson's loop", darts, "poisson", early, {"poisson", "dart", "generation"}),
    ("opens no low box", plain, "floor", lambda tier: 1.0 if tier == 4 else darts.floor(tier), {"dart"}),
    ("forgets min-p", plain, "min_p", lambda k, least: k, {"distribution", "generation"}),
    ("forgets top-p", plain, "top_p", lambda k, best, mass: k, {"distribution", "generation"}),
    ("keeps one of a tie", plain, "top_k", lambda x, k: [i < (k or 99) for i in range(len(x))], {"distribution"}),
    ("proposes the earliest match", drafts.NgramDraft, "_follows", earliest, {"generation"}),
    ("gives a one-hot q for a uniform one", plain.PlainOps, "uniform", lambda self: self.one_hot(0), {"generation"}),
]


@pytest.mark.parametrize(("name", "owner", "attribute", "wrong", "kinds"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_host_goes_red(
    name: str, owner: Any, attribute: str, wrong: Any, kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, attribute, wrong)
    outcome = check(InProcess(python_host("plain")), CASES)
    assert not outcome.passed, name
    assert kinds <= red(outcome), (name, red(outcome))


def red(outcome: Outcome) -> set[str]:
    """Kinds with a wrong answer; what a host that died wasn't asked doesn't count."""
    return {row.kind for row in outcome.rows.values() if row.failed}
