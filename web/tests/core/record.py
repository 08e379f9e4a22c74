"""Records what CPython emits over toy models into recorded.json: `python web/tests/core/record.py`.

Floats are hexadecimal float64. toys.ts has the same models.
"""

from __future__ import annotations

import itertools
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import (
    RULES,
    AdaptivePace,
    Chance,
    ConstantPace,
    Emit,
    ModelDraft,
    NgramDraft,
    NoDraft,
    Philox,
    Stops,
    UniformDraft,
    speculate,
)

WORD = 0xFFFFFFFF
SIZE = 40
SALTS = {"target": 1, "draft": 2}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.0},
    {"temperature": 0.5, "top_k": 12, "top_p": 0.875},
    {
        "min_p": 0.0625,
        "repetition_penalty": 1.25,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.25,
        "min_new_tokens": 9,
    },
]
PACES: list[dict[str, Any]] = [
    {"kind": "constant", "length": 3},
    {"kind": "adaptive", "draft": 0.1, "row": 0.05, "free": 4, "most": 6},
    {"kind": "adaptive", "draft": 0.3, "row": 0.7, "free": 1.3, "most": 3},
]
DRAFTS = {"model": ModelDraft, "ngram": NgramDraft, "uniform": UniformDraft, "none": NoDraft}


def mixed(word: int) -> int:
    """A 32-bit word that looks like no other (the finalizer of MurmurHash3)."""
    word = ((word ^ word >> 16) * 0x85EBCA6B) & WORD
    word = ((word ^ word >> 13) * 0xC2B2AE35) & WORD
    return word ^ word >> 16


def row(role: str, before: list[int]) -> list[float]:
    """Logits in sixteenths by the last two tokens; the draft's are the target's, disturbed."""
    words = [mixed(before[-1] * 64 + (before[-2] if len(before) > 1 else 0) + 4096 * token) for token in range(SIZE)]
    noise = [mixed(word ^ SALTS[role]) for word in words]
    return [
        (word >> 25) / 16 + (0 if role == "target" else (extra >> 27) / 16)
        for word, extra in zip(words, noise, strict=True)
    ]


def bits(value: float | None) -> str | None:
    return None if value is None else struct.pack(">d", value).hex()


def text(tokens: list[int]) -> str:
    return "".join(chr(97 + token % 26) for token in tokens)


def pace_of(pace: dict[str, Any]) -> ConstantPace | AdaptivePace:
    if pace["kind"] == "constant":
        return ConstantPace(pace["length"])
    return AdaptivePace(pace["draft"], pace["row"], pace["free"], pace["most"])


def generation(
    rule: str, draft: str, options: dict[str, Any], pace: dict[str, Any], seed: int, stop: str
) -> list[Emit]:
    """Every emit of one generation, from caches that hold what was really run."""
    ops = VectorOps([1, 2, 1], SIZE, Sampling(**options), [0])
    strings = (lambda old, new: stop in text(old + new)) if stop else None
    wishes = speculate(
        [1, 2, 1],
        ops=ops,
        chance=Chance(ops, Philox(seed, 3)),
        rule=RULES[rule](),
        draft=DRAFTS[draft](),
        pace=pace_of(pace),
        stops=Stops(30, ends=[0], sequences=[[7, 7]], strings=strings),
        trace=True,
    )
    caches: dict[str, list[int]] = {}
    emits: list[Emit] = []
    answer = None
    for _ in range(1000):
        try:
            wish = wishes.send(answer)
        except StopIteration:
            return emits
        answer = None
        if isinstance(wish, Emit):
            emits.append(wish)
            continue
        firsts = []
        for run in wish:
            held = caches.get(run.role, [])[: run.start] + list(run.tokens)
            caches[run.role] = held
            first = len(held) - run.keep + 1
            rows = [row(run.role, held[: first + i]) for i in range(run.keep)]
            firsts.append(ops.hold(run.role, first, np.array(rows, np.float32)))
        answer = tuple(firsts)
    raise RuntimeError("it does not end")


def judgement(it: Any, rule: str) -> list[Any]:
    # What rule `coupled` predicts is a rounded sum, and hosts add in different orders.
    predicted = None if rule == "coupled" else bits(it.predicted)
    floats = [bits(it.p), bits(it.proposal_p), bits(it.proposal_q), bits(it.coin), bits(it.tv), predicted]
    pairs = [[[token, bits(value)] for token, value in found] for found in (it.top, it.logits)]
    return [it.token, it.kind, it.proposal, *floats, *pairs]


COUNTS = ("length", "proposed", "judged", "accepted", "emitted", "empty", "rows")


def exact(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: bits(value) if name in names else value for name, value in values.items()}


def case(number: int, rule: str, draft: str, options: dict[str, Any], pace: dict[str, Any]) -> dict[str, Any]:
    """One recorded generation; judgements are those of its last round, so that the file stays small."""
    seed = (1 << 64) - number if number % 3 else number
    stop = "" if number % 2 else "ab" if number % 4 else "k"
    emits = generation(rule, draft, options, pace, seed, stop)
    return {
        "rule": rule,
        "draft": draft,
        "options": exact(options, tuple(name for name in options if isinstance(options[name], float))),
        "pace": exact(pace, ("draft", "row", "free")),
        "seed": f"{seed:016x}",
        "stop": stop,
        "tokens": [token for emit in emits for token in emit.tokens],
        "kinds": "".join(kind[0] for emit in emits for kind in emit.kinds),
        "rounds": [[getattr(emit.round, name) for name in COUNTS] for emit in emits],
        "reason": emits[-1].reason,
        "judgements": [judgement(it, rule) for it in emits[-1].judgements],
    }


def main() -> None:
    every = itertools.product(RULES, DRAFTS, OPTIONS, PACES)
    lines = ",\n".join(json.dumps(case(number, *each)) for number, each in enumerate(every, 1))
    Path(__file__).with_name("recorded.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
