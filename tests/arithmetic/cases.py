"""Rows of logits, options and histories to try the arithmetic with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from journee_deploy.arithmetic.arena import Arena
from journee_deploy.arithmetic.sampling import LARGEST, Sampling

BELOW_ONE = 1.0 - 2.0**-53
TINIEST = 5e-324  # the smallest positive float64

TEMPERATURES = st.sampled_from([0.0, TINIEST, 1e-40, 1e-3, 0.1, 0.7, 1.0, 1.0, 1.3, 10.0, 1e10, 1e308]) | st.floats(
    0.01, 5.0
)
TOP_PS = st.sampled_from([TINIEST, 2.0**-50, 1e-9, 0.1, 0.5, 0.95, 1.0 - 2.0**-50, BELOW_ONE, 1.0, 1.0]) | st.floats(
    TINIEST, 1.0
)
MIN_PS = st.sampled_from([0.0, 0.0, TINIEST, 2.0**-50, 2.0**-49, 0.05, 0.5, BELOW_ONE, 1.0]) | st.floats(0.0, 1.0)
REPETITIONS = st.sampled_from([1.0, 1.0, 0.01, 100.0, 1.3]) | st.floats(0.01, 100.0)
PENALTIES = st.sampled_from([0.0, 0.0, 0.5, -0.7, LARGEST, -LARGEST, TINIEST]) | st.floats(-5.0, 5.0)
BIASES = st.sampled_from([-np.inf, LARGEST, -LARGEST, 0.0, 1.0, TINIEST]) | st.floats(-20.0, 20.0)

FAMILIES = ("random", "flat", "ties", "steep", "extreme", "denormal", "holes", "equal", "close")


def row(family: str, columns: int, seed: int) -> NDArray[np.float32]:
    """A row of float32 logits; every family but "equal" depends on the seed."""
    random = np.random.default_rng([seed, columns])
    if family == "random":
        values = random.normal(0, 3, columns)
    elif family == "flat":
        values = random.normal(0, 1e-3, columns)
    elif family == "ties":
        values = random.integers(-2, 3, columns) / 2
    elif family == "steep":
        values = random.normal(0, 30, columns)
    elif family == "extreme":
        values = random.choice([LARGEST, -LARGEST, 0.0, -0.0, 1.0, 1e-45, -np.inf], columns)
    elif family == "denormal":
        values = random.integers(-3, 4, columns) * 2.0**-149
    elif family == "holes":
        values = np.where(random.random(columns) < 0.5, -np.inf, random.normal(0, 2, columns))
    elif family == "close":
        values = 1.0 + random.integers(0, 4, columns) * 2.0**-23
    else:
        values = np.full(columns, 7.25)
    if not np.any(values > -np.inf):
        values[seed % columns] = 1.5
    return values.astype(np.float32)


@dataclass(frozen=True)
class Case:
    """All that a distribution depends on."""

    size: int
    logits: NDArray[np.float32]
    sampling: Sampling
    prompt: tuple[int, ...]
    pushed: tuple[int, ...]
    ends: tuple[int, ...]

    def ops(self, kind: type[Arena]) -> Any:
        """Ops of this kind that have seen the case's history."""
        ops = kind(list(self.prompt), self.size, self.sampling, self.ends)
        for token in self.pushed:
            ops.push(token)
        return ops


@st.composite
def samplings(draw: st.DrawFn, size: int) -> Sampling:
    """Every option at once, each off in part of the examples."""
    biased = draw(st.sampled_from([0, 0, 1, 3, size]))
    tokens = st.integers(0, size - 1)
    return Sampling(
        temperature=draw(TEMPERATURES),
        top_k=draw(st.sampled_from([0, 0, 1, 2, 3, size // 2, size, size + 3])),
        top_p=draw(TOP_PS),
        min_p=draw(MIN_PS),
        repetition_penalty=draw(REPETITIONS),
        frequency_penalty=draw(PENALTIES),
        presence_penalty=draw(PENALTIES),
        logit_bias=draw(st.dictionaries(tokens, BIASES, max_size=min(biased, 8))),
        min_new_tokens=draw(st.sampled_from([0, 0, 1, 3, 9])),
    )


@st.composite
def cases(draw: st.DrawFn, sizes: tuple[int, ...] = (1, 2, 7)) -> Case:
    """A case over a vocabulary of one of these sizes; its row may be shorter or longer than that."""
    size = draw(st.sampled_from(sizes))
    columns = draw(st.sampled_from([size, size, size, max(1, size - 1), max(1, size // 2), size + 3]))
    tokens = st.lists(st.integers(0, size - 1), max_size=6)
    return Case(
        size,
        row(draw(st.sampled_from(FAMILIES)), columns, draw(st.integers(0, 2**31))),
        draw(samplings(size)),
        tuple(draw(tokens)),
        tuple(draw(tokens)),
        tuple(draw(st.lists(st.integers(0, size), max_size=2))),
    )
