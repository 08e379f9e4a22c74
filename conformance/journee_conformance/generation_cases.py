"""Cases of whole generations: the rows that a run asked for are in the case, by role and text."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from journee_conformance.distribution_cases import written
from journee_conformance.host import Host
from journee_conformance.notation import Die, float32

Input = dict[str, Any]
Rows = Callable[[tuple[int, ...]], list[float]]
"""The tokens after the prompt -> a row of logits."""


def walk(salt: int, columns: int, see: int = 2, spread: int = 128) -> Rows:
    """Rows that look random, depend on the last few tokens, and are whole multiples of 1/64."""

    def row(after: tuple[int, ...]) -> list[float]:
        state = salt * 7919 + 1
        for token in after[-see:]:
            state = (state * 69069 + token * 7919 + 12345) % (1 << 24)
        found: list[float] = []
        for _ in range(columns):
            state = (state * 69069 + 1) % (1 << 24)
            found.append((state // 1024 % (2 * spread) - spread) / 64)
        return found

    return row


class Recorder(Host):
    """Runs a generation on functions instead of rows, and writes down the rows that it asked for."""

    def __init__(self, models: dict[str, Rows]) -> None:
        super().__init__()
        self._models = models
        self.rows: list[dict[str, Any]] = []

    def recorded(self, case: dict[str, Any]) -> Callable[[str, tuple[int, ...]], str]:
        known: dict[tuple[str, tuple[int, ...]], str] = {}

        def row(role: str, after: tuple[int, ...]) -> str:
            if (role, after) not in known:
                known[role, after] = float32(self._models[role](after))
                self.rows.append({"role": role, "after": list(after), "logits": known[role, after]})
            return known[role, after]

        return row


def record(case: Input, models: dict[str, Rows]) -> Input:
    """The case with the rows that its run asks for."""
    recorder = Recorder(models)
    recorder.answer("generation", {**case, "rows": []})
    return {**case, "rows": recorder.rows}


def case(**given: Any) -> Input:
    return {
        "rule": "residual",
        "draft": "model",
        "draft_context": 0,
        "length": 3,
        "seed": "0" * 16,
        "sample": 0,
        "size": 6,
        "prompt": [1, 2],
        "options": {},
        "ends": [],
        "stops": [],
        "limit": 12,
        **given,
    }


OPTIONS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.0},
    {"temperature": 0.7, "top_k": 4, "top_p": 0.9},
    {"temperature": 1.4, "min_p": 0.2, "min_new_tokens": 5},
    {"repetition_penalty": 1.4, "frequency_penalty": 0.4, "presence_penalty": 0.3},
    {"temperature": 0.0, "repetition_penalty": 1.8, "presence_penalty": 0.5},
    {"logit_bias": {0: 2.0, 1: -float("inf")}},
]


def generations() -> list[Input]:
    return _drafts() + _endings() + _stretched() + _lengths() + _matches() + _behind()


def _drafts() -> list[Input]:
    """Every rule, draft and set of options; draft models near (another walk on half of the texts), narrow and wide."""
    die = Die("drafts")
    found: list[Input] = []
    for rule in ("residual", "coupled"):
        for draft in ("model", "ngram", "uniform", "none"):
            for number, options in enumerate(OPTIONS):
                size = 4 + die.below(5)
                target, other = walk(number, size, 1 + number % 3), walk(number + 50, size + die.below(3) - 1)

                def near(after: tuple[int, ...], target: Rows = target, other: Rows = other) -> list[float]:
                    return target(after) if sum(after) % 3 else other(after)

                shared = {"rule": rule, "draft": draft, "seed": die.seed(), "sample": die.below(2), "size": size}
                prompt = die.tokens(1 + die.below(4), size)
                made = case(
                    **shared,
                    prompt=prompt,
                    options=written(options),
                    length=1 + die.below(4),
                    ends=[size - 1] * (number % 2),
                )
                found.append(record(made, {"target": target, "draft": near}))
    return found


def _endings() -> list[Input]:
    """Ends, stop sequences and limits at every place of a round, several at one token among them."""
    die = Die("endings")
    found: list[Input] = []
    for number in range(24):
        target = walk(100 + number, 4, 1)
        rule = ("residual", "coupled")[number % 2]
        models = {"target": target, "draft": walk(200 + number, 4, 1, 64) if number % 3 else target}
        made = case(
            rule=rule,
            size=4,
            seed=die.seed(),
            ends=[[], [3], [0, 2], [9]][number % 4],
            stops=[[], [[1, 2]], [[0, 1, 0], [2]], [[3, 3], [1]]][number // 4 % 4],
            limit=1 + number % 9,
            length=1 + number % 5,
        )
        found.append(record(made, models))
    return found


def _stretched() -> list[Input]:
    """Stop sequences that begin rounds before they end, and one whose beginning is only in the prompt."""
    counting: dict[str, Rows] = {"target": lambda after: [9.0 * (token == len(after) % 5) for token in range(5)]}
    stops = ([[1, 2, 3, 4]], [[0, 1, 2, 3, 4, 0, 1]], [[4, 0]], [[2, 0, 1], [3, 4]], [[4, 4, 0, 1], [1, 2, 3]])
    return [
        record(
            case(size=5, draft=draft, rule=rule, prompt=[2, 4, 4], stops=stop, options=written({"temperature": 0.0})),
            counting,
        )
        for stop in stops
        for draft in ("none", "ngram")
        for rule in ("residual", "coupled")
    ]


def _matches() -> list[Input]:
    """Prompts in which the longest match, the latest, and the four tokens that count at most say different things."""
    prompts = (
        [0, 1, 2, 3, 4, 7, 6, 1, 2, 3, 4, 8, 0, 1, 2, 3, 4],  # five would match: four count, and the latest place
        [1, 2, 3, 4, 7, 6, 2, 3, 4, 8, 1, 2, 3, 4],  # four against three
        [2, 3, 4, 7, 6, 3, 4, 8, 2, 3, 4],
        [3, 4, 7, 6, 4, 8, 3, 4],
        [4, 7, 6, 5, 4],
        [4, 7, 4, 8, 4],
        [5, 6, 7],
    )
    found: list[Input] = []
    for prompt in prompts:
        for sure in (7, 8):  # which of them the target likes
            made = case(size=9, draft="ngram", prompt=prompt, length=2, limit=3, seed=f"{sure:016x}")
            found.append(record(made, {"target": _liking(sure)}))
    return found


def _liking(sure: int) -> Rows:
    """Rows that favour one token of nine, whatever came before."""
    return lambda after: [6.0 * (token == sure) for token in range(9)]


def _lengths() -> list[Input]:
    """K of 0 and beyond the limit, a draft whose context is short, one that masking empties, a long n-gram loop."""
    target, other = walk(300, 5, 1), walk(301, 5)
    models = {"target": target, "draft": other}
    banned = written({"logit_bias": {0: -float("inf"), 1: -float("inf"), 2: -float("inf")}})
    found = [
        case(size=5, length=length, limit=limit, seed=f"{length:016x}") for length in (0, 7, 40) for limit in (1, 2, 9)
    ]
    found += [case(size=5, draft_context=context, seed="00000000000000aa") for context in (1, 2, 4, 7)]
    made = [record(one, models) for one in found]
    narrow = {"target": target, "draft": walk(302, 3)}
    made += [record(case(size=5, options=banned, rule=rule), narrow) for rule in ("residual", "coupled")]
    loop: dict[str, Rows] = {"target": lambda after: [8.0 * (token == len(after) % 3) for token in range(5)]}
    return made + [
        record(case(size=5, draft="ngram", rule=rule, length=4, limit=24, seed="0" * 15 + "7"), loop)
        for rule in ("residual", "coupled")
    ]


def _behind() -> list[Input]:
    """The target's rows behind an end, or behind a rejected proposal, are broken: nobody may look at them."""

    def counting(step: int) -> Rows:
        return lambda after: [9.0 * (token == ((after or (0,))[-1] + step) % 6) for token in range(6)]

    def target(after: tuple[int, ...]) -> list[float]:
        right = tuple((1 + place) % 6 for place in range(len(after)))
        return counting(1)(after) if after == right and 4 not in after else [math.nan] * 6

    return [
        record(case(rule=rule, prompt=[0], ends=[4], options=written({"temperature": 0.0}), length=length), models)
        for rule in ("residual", "coupled")
        for models in ({"target": target, "draft": counting(1)}, {"target": target, "draft": counting(2)})
        for length in (1, 3, 5)
    ]
