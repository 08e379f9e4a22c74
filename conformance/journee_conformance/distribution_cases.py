"""Cases of rows of logits becoming distributions: every option alone and together, ties, extremes, refusals."""

from __future__ import annotations

import math
from typing import Any

from journee_conformance.notation import Die, float32, float64

Input = dict[str, Any]
Options = dict[str, Any]

HUGE = float.fromhex("0x1.fffffep+127")  # float32's largest
TINY = 2.0**-149  # and its smallest
INFINITY = math.inf


def written(options: Options) -> Options:
    """Options as a case writes them."""
    found: Options = {}
    for name, value in options.items():
        if name == "logit_bias":
            found[name] = [[token, float64(amount)] for token, amount in sorted(value.items())]
        else:
            found[name] = value if isinstance(value, int) else float64(value)
    return found


def case(logits: list[float], options: Options | None = None, **others: Any) -> Input:
    found: Input = {
        "role": "target",
        "size": len(logits),
        "ends": [],
        "options": written(options or {}),
        "prompt": [0],
        "generated": [],
        "logits": float32(logits),
    }
    return {**found, **others}


ALONE: list[Options] = [
    *({"temperature": value} for value in (0.0, 0.1, 0.5, 0.7, 1.0, 1.5, 3.0, 100.0, 1e-300, 1e300)),
    *({"top_k": value} for value in (0, 1, 2, 5, 1000)),
    *({"top_p": value} for value in (1e-12, 0.1, 0.5, 0.9, 0.95, 1 - 2.0**-53, 1.0)),
    *({"min_p": value} for value in (0.0, 0.01, 0.1, 0.5, 1.0)),
    *({"repetition_penalty": value} for value in (0.01, 0.5, 1.1, 1.3, 100.0)),
    *({"frequency_penalty": value} for value in (-1.0, 0.1, 0.7, 2.0)),
    *({"presence_penalty": value} for value in (-1.0, 0.1, 0.7, 2.0)),
    {"logit_bias": {0: 1.5, 3: -0.25}},
    {"logit_bias": {1: -INFINITY, 2: 3.0}},
    {"min_new_tokens": 1},
    {"min_new_tokens": 9},
]
TOGETHER: list[Options] = [
    {"temperature": 0.8, "top_k": 40, "top_p": 0.95},
    {"temperature": 0.7, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.1},
    {"temperature": 0.0, "repetition_penalty": 1.5, "frequency_penalty": 0.5},
    {"temperature": 1.3, "top_k": 7, "presence_penalty": 0.6, "frequency_penalty": 0.3, "logit_bias": {2: 2.0}},
    {
        "temperature": 0.75,
        "top_k": 6,
        "top_p": 0.97,
        "min_p": 0.04,
        "repetition_penalty": 1.25,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.25,
        "logit_bias": {4: 0.75, 0: -INFINITY},
        "min_new_tokens": 8,
    },
]


def _options() -> list[Input]:
    """Each set of options on rows of some sizes, with a history in which tokens repeat."""
    die = Die("options")
    found: list[Input] = []
    for number, options in enumerate(ALONE + TOGETHER):
        for size in (6, 24 + number % 5):
            prompt, generated = die.tokens(3, size), die.tokens(4, size)
            ends = sorted({die.below(size), size - 1})
            history = {"prompt": prompt, "generated": [*generated, generated[0]], "ends": ends}
            found.append(case(die.logits(size), options, **history))
            found.append(case(die.logits(size, 1), options, role="draft", **history))
    return found


def _ties() -> list[Input]:
    """Equal logits: who is best, who stays, where the missing units go; and cuts that fall inside a tie."""
    rows = [[0.0] * 3, [1.0, 2.0, 2.0, 1.0, 2.0], [5.0] * 7, [-1.0, -1.0, -2.0, -2.0, -2.0], [0.0, -0.0, 0.0]]
    options: list[Options] = [
        {},
        {"temperature": 0.0},
        {"top_k": 1},
        {"top_k": 2},
        {"top_k": 4},
        {"top_p": 0.3},
        {"top_p": 0.5},
        {"top_k": 3, "top_p": 0.6},
    ]
    found = [case(row, chosen) for row in rows for chosen in options]
    halves = [case([1.0] * size, {"top_p": 1 / part}) for size in (2, 4, 8) for part in (2, 4, 8)]  # mass met exactly
    near = -(2.0**-60)  # below the best, and as probable
    return found + halves + [case([near] * (size - 1) + [0.0], {"top_p": 1 / size}) for size in (2, 4, 8)]


def _counts() -> list[Input]:
    """Tokens that occur many times: a penalty times its count is rounded once."""
    die = Die("counts")
    found: list[Input] = []
    for factor in (0.1, 0.3, 0.7, -0.2):
        for size in (12, 40):
            generated = [token for token in range(8) for _ in range(2 + die.below(9))]
            found.append(case(die.logits(size, 2), {"frequency_penalty": factor}, generated=generated))
    return found


def _extremes() -> list[Input]:
    """float32's limits, denormals that decide, minus infinities, differences at the -36 where counts end."""
    below = [0.0, -35.999, -36.0, -36.00001, -40.0, -1000.0]
    rows = [
        [HUGE, -HUGE, 0.0],
        [HUGE, HUGE * (1 - 2.0**-23), HUGE],
        [-INFINITY, 1.0, -INFINITY, 0.5],
        [-HUGE, -INFINITY],
        below,
        [TINY, 0.0, -TINY, 3 * TINY],
        [0.0, TINY],
        [1.0, 1.0 + 2.0**-23],
    ]
    options: list[Options] = [{}, {"temperature": 0.0}, {"temperature": 1e-45}, {"temperature": 2.0}, {"min_p": 1e-15}]
    return [case(row, chosen) for row in rows for chosen in options]


def _sizes() -> list[Input]:
    """Vocabularies of one token and of thousands; rows wider and narrower than the vocabulary."""
    die = Die("sizes")
    found = [case(die.logits(size), options) for size in (1, 2, 257) for options in ({}, {"top_p": 0.9})]
    found += [case([0.0] * size) for size in (3000, 1234)]
    found += [case(die.logits(size, 2)) for size in (2000, 1001)]
    wide = die.logits(9)
    found += [case([*wide[:6], HUGE, 9.0, -INFINITY], size=6, role=role) for role in ("target", "draft")]
    found += [case(wide[:5], options, size=8, prompt=[7], generated=[6, 6]) for options in (ALONE[8], TOGETHER[0])]
    return found


def _refused() -> list[Input]:
    """Rows that are broken, in either role and also past the vocabulary; rows that masking empties."""
    nan = math.nan
    rows = [[1.0, nan], [INFINITY, 0.0], [-INFINITY, -INFINITY], [nan], [0.0, -INFINITY, INFINITY]]
    found = [case(row, role=role) for row in rows for role in ("target", "draft")]
    found += [case([0.0, 1.0, broken], size=2) for broken in (nan, INFINITY)]
    found += [case([0.0] * place + [broken] + [0.0] * 3) for place in (3, 7, 20) for broken in (nan, INFINITY)]
    found += [case([0.0] * 12 + [broken], size=5) for broken in (nan, INFINITY)]
    banned = {"logit_bias": {0: -INFINITY, 1: -INFINITY}}
    for role in ("target", "draft"):
        found.append(case([0.0, 1.0], banned, role=role))
        found.append(case([0.0, 1.0, -INFINITY], {"min_new_tokens": 1}, role=role, ends=[0, 1]))
        found.append(case([0.0, 1.0, 2.0], banned, role=role))
        found.append(case([-INFINITY, -INFINITY, 2.0], size=2, role=role))
    return found


def _close() -> list[Input]:
    """Many logits near the best one: there a quotient or a sum that is off in its last bit shows in the units."""
    die = Die("close")
    options: list[Options] = [{}, *({"temperature": value} for value in (0.6, 0.7, 0.9, 1.1, 1.3))]
    return [case(die.logits(600, 1), chosen) for chosen in options]


def _steps() -> list[Input]:
    """Top-p before min-p, where the order matters; counts of 1 and 0, which only W shows; ends that are no tokens."""
    steep = [1.375, 1.125, 0.6875, 0.0]
    found = [case(steep, {"top_p": mass, "min_p": least}) for mass in (0.5, 0.75) for least in (0.3, 0.6)]
    found += [case([0.0, -0.6875, *[edge] * 300]) for edge in (-34.625, -34.6875)]  # exp * 2^50 is 1.03, then 0.97
    found += [case(steep, {"min_new_tokens": 1}, ends=ends) for ends in ([4], [0, 9], [])]
    return found


def distributions() -> list[Input]:
    return _options() + _counts() + _ties() + _extremes() + _sizes() + _refused() + _close() + _steps()


OUTSIDE: dict[str, list[Any]] = {
    "temperature": [-0.5, INFINITY, math.nan],
    "top_k": [-1],
    "top_p": [0.0, -0.1, 1.0000000000000002, math.nan],
    "min_p": [-0.01, 1.0000000000000002],
    "repetition_penalty": [0.0, 0.009, 100.1, -1.0, math.nan],
    "frequency_penalty": [INFINITY, 2.0**128, math.nan],
    "presence_penalty": [-INFINITY, -(2.0**128)],
    "logit_bias": [{0: INFINITY}, {1: math.nan}, {4: 1.0}, {-1: 0.0}],
    "min_new_tokens": [-1],
}
INSIDE: list[Options] = [
    {},
    {"temperature": 0.0},
    {"temperature": 5e-324},
    {"top_p": 5e-324},
    {"min_p": 1.0},
    {"repetition_penalty": 0.01},
    {"repetition_penalty": 100.0},
    {"frequency_penalty": -HUGE},
    {"presence_penalty": HUGE},
    {"logit_bias": {3: -INFINITY, 0: HUGE}},
    {"top_k": 1 << 40, "min_new_tokens": 1 << 40},
]


def refusals() -> list[Input]:
    """What is out of range, a value at a time, and what is just inside."""
    start: Input = {"size": 4, "ends": [3], "options": {}, "prompt": [0, 3], "seed": "0" * 16, "sample": 0}
    outside = [{name: value} for name, values in OUTSIDE.items() for value in values]
    found = [{**start, "options": written(options)} for options in outside + INSIDE]
    found += [{**start, "prompt": prompt} for prompt in ([], [4], [0, -1], [1, 2, 3])]
    found += [{**start, "sample": sample} for sample in (-1, 1 << 32, (1 << 32) - 1)]
    return [*found, {**start, "seed": "f" * 16}, {**start, "ends": [9]}]
