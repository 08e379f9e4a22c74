"""Makes recorded.py: `python -m tests.portable.record` rewrites it; a test asserts that it is up to date.

Distributions come from the NumPy ops, generations from CPython, the Philox vectors from Random123.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from journee_deploy.arithmetic import exponential
from journee_deploy.arithmetic.arena import EMPTY
from journee_deploy.arithmetic.sampling import LARGEST, Sampling
from journee_deploy.arithmetic.vector_steps import exponential as fast_exponential
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import RULES, ModelDraft, NgramDraft, NoDraft, Philox, UniformDraft
from tests.arithmetic.cases import FAMILIES, row
from tests.portable.toys import generate, kinds_of, model, tokens_of

FILE = Path(__file__).with_name("recorded.py")
HEAD = '''"""Made by `python -m tests.portable.record`; not to be edited. (m, e) is m * 2^e, None minus infinity."""

# fmt: off
# ruff: noqa: E501
'''

PHILOX = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""


def pair(value: float) -> tuple[int, int] | None:
    """m and e with value = m * 2^e, m odd or 0."""
    if value == -math.inf:
        return None
    m, denominator = float(value).as_integer_ratio()
    e = 1 - denominator.bit_length()
    while m and m % 2 == 0:
        m, e = m // 2, e + 1
    return m, e


def philox() -> list[Any]:
    return [[int(word, 16) for word in line.split()] for line in PHILOX.split("\n")[1:-1]]


def draws() -> list[Any]:
    bounds = (1, 2, 3, 10, 2**31, 2**32, 2**32 + 1, 2**50 - 1, 2**50, 3**40, 2**65 + 1)
    out = []
    for number, n in enumerate(bounds):
        for seed, sample in ((0, 0), (2**64 - 1, 2**32 - 1), (12345678901234567890, 5)):
            key = (number % 4, 2**32 - 1 - number, number**5)
            out.append((seed, sample, key, n, Philox(seed, sample).below(n, key)))
    return out


def exponentials() -> list[Any]:
    random = np.random.default_rng(8)
    z = np.concatenate([random.uniform(-36, 0, 60), -np.exp(random.uniform(-80, 0, 20)), [0.0, -36.0]])
    return [(pair(a), pair(b)) for a, b in zip(z.tolist(), fast_exponential(z).tolist(), strict=True)]


def options(seed: int, size: int) -> dict[str, Any]:
    random = np.random.default_rng([seed, 77])
    pick = random.choice
    every = {
        "temperature": float(pick([0.0, 0.3, 0.7, 1.0, 1.7, 1e-200])),
        "top_k": int(random.integers(0, size + 1)),
        "top_p": float(pick([1e-9, 0.5, 0.9, 0.99, 1.0 - 2.0**-53])),
        "min_p": float(pick([2.0**-49, 0.02, 0.3, 1.0])),
        "repetition_penalty": float(pick([0.01, 0.8, 1.3, 100.0])),
        "frequency_penalty": float(pick([0.1, -0.7, LARGEST])),
        "presence_penalty": float(pick([0.1, -0.3, -LARGEST])),
        "logit_bias": {int(random.integers(size)): float(pick([0.7, -math.inf, LARGEST]))},
        "min_new_tokens": int(random.integers(0, 5)),
    }
    return {name: value for name, value in every.items() if random.random() < 0.4}


def written(chosen: dict[str, Any]) -> dict[str, Any]:
    """Options with every float as a pair."""
    out: dict[str, Any] = {}
    for name, value in chosen.items():
        if name == "logit_bias":
            out[name] = [(token, pair(amount)) for token, amount in value.items()]
        else:
            out[name] = pair(value) if isinstance(value, float) else value
    return out


def distributions() -> list[Any]:
    out = []
    for seed in range(90):
        size = (1, 2, 7, 16)[seed // 23]
        random = np.random.default_rng([seed, 3])
        logits = row(FAMILIES[seed % len(FAMILIES)], int(max(1, size + random.integers(-1, 2))), seed)
        prompt, generated = random.integers(0, size, 2).tolist(), random.integers(0, size, 3).tolist()
        chosen = options(seed, size)
        ends = (size - 1,)
        ops = VectorOps(list(prompt), size, Sampling(**chosen), ends)
        for token in generated:
            ops.push(token)
        handle = ops.distribution(ops.hold("draft", 0, [logits]))
        p = None if handle == EMPTY else [int(value * 2**50) for value in ops.vector(handle)]
        out.append((size, [pair(x) for x in logits.tolist()], written(chosen), prompt, generated, ends, p))
    return out


Setting = tuple[int, int, int, dict[str, Any], tuple[int, ...], int, int, int, str, tuple[int, ...], str]
FIRST: list[tuple[Any, ...]] = [
    (1, 2, 8, {}, (0,), 24, 3, 1, "model", ()),
    (1, 2, 8, {}, (0,), 24, 0, 1, "model", ()),
    (1, 1, 8, {}, (0, 5), 24, 4, 2, "model", ()),
    (3, 4, 5, {}, (7,), 24, 2, 3, "model", ()),
    (3, 4, 8, {}, (7,), 24, 2, 4, "uniform", ()),
    (3, 4, 8, {}, (7, 1, 2), 24, 2, 5, "none", (3,)),
    (5, 6, 8, {"temperature": 0.6, "top_p": 0.9}, (2,), 30, 5, 6, "model", (1,)),
    (5, 6, 8, {"temperature": 0.0}, (2,), 20, 3, 7, "model", ()),
    (7, 8, 8, {"top_k": 3, "repetition_penalty": 1.3}, (2, 2), 30, 3, 8, "model", ()),
    (7, 8, 8, {"min_p": 0.1, "frequency_penalty": 0.4, "presence_penalty": 0.2}, (2, 3), 30, 3, 9, "model", (0,)),
    (9, 10, 3, {"logit_bias": {0: -math.inf, 1: -math.inf, 2: -math.inf}}, (4,), 12, 3, 10, "model", ()),
    (9, 10, 8, {"min_new_tokens": 6}, (4,), 40, 3, 2**64 - 1, "uniform", (5, 6)),
    (11, 12, 8, {"temperature": 0.5}, (4, 5, 4), 40, 3, 11, "ngram", ()),
    (11, 12, 8, {"temperature": 0.0}, (4, 5, 4), 40, 4, 11, "ngram", ()),
]
SETTINGS: list[Setting] = [(*setting, rule) for rule in RULES for setting in FIRST]


def generations() -> list[Any]:
    makers = {"model": ModelDraft, "uniform": UniformDraft, "ngram": NgramDraft, "none": NoDraft}
    out = []
    for setting in SETTINGS:
        target, draft, columns, chosen, prompt, limit, length, seed, maker, ends, rule = setting
        emits = generate(
            model(target, 8),
            model(draft, columns),
            Sampling(**chosen),
            list(prompt),
            8,
            limit,
            length,
            seed,
            makers[maker],
            ends,
            rule=RULES[rule],
        )
        kinds = "".join(kind[0] for kind in kinds_of(emits))
        out.append(((*setting[:3], written(chosen), *setting[4:]), tokens_of(emits), kinds, emits[-1].reason))
    return out


def constants() -> list[Any]:
    return [pair(c) for c in (exponential.LOG2E, exponential.LN2_HIGH, exponential.LN2_LOW, *exponential.COEFFICIENTS)]


def listing(name: str, rows: list[Any]) -> str:
    return f"\n{name} = [\n" + "".join(f"    {row!r},\n" for row in rows) + "]\n"


def render() -> str:
    parts = {
        "PHILOX": philox(),
        "DRAWS": draws(),
        "CONSTANTS": constants(),
        "EXPONENTIALS": exponentials(),
        "DISTRIBUTIONS": distributions(),
        "GENERATIONS": generations(),
    }
    return HEAD + "".join(listing(name, rows) for name, rows in parts.items())


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
