"""Records what CPython emits over toy models into recorded.json: `python web/tests/core/record.py`, from the clone's root.

Floats are hexadecimal float64. toys.ts has the same models.
"""

from __future__ import annotations

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
    {"min_p": 0.0625, "repetition_penalty": 1.25, "frequency_penalty": 0.5, "presence_penalty": 0.25, "min_new_tokens": 9},
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
    return [(word >> 25) / 16 + (0 if role == "target" else (extra >> 27) / 16) for word, extra in zip(words, noise)]


def bits(value: float | None) -> str | None:
    return None if value is None else struct.pack(">d", value).hex()


def text(tokens: list[int]) -> str:
    return "".join(chr(97 + token % 26) for token in tokens)


def generation(rule: str, draft: str, options: dict[str, Any], pace: dict[str, Any], seed: int, stop: str) -> list[Emit]:
    ops = VectorOps([1, 2, 1], SIZE, Sampling(**options), [0])
    made = ConstantPace(pace["length"]) if pace["kind"] == "constant" else AdaptivePace(
        pace["draft"], pace["row"], pace["free"], pace["most"]
    )
    wishes = speculate(
        [1, 2, 1],
        ops=ops,
        chance=Chance(ops, Philox(seed, 3)),
        rule=RULES[rule](),
        draft=DRAFTS[draft](),
        pace=made,
        stops=Stops(30, ends=[0], sequences=[[7, 7]], strings=(lambda old, new: stop in text(old + new)) if stop else None),
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


def main() -> None:
    made = []
    number = 0
    for rule in RULES:
        for draft in DRAFTS:
            for options in OPTIONS:
                for pace in PACES:
                    number += 1
                    seed = (1 << 64) - number if number % 3 else number
                    stop = "" if number % 2 else "ab" if number % 4 else "k"
                    emits = generation(rule, draft, options, pace, seed, stop)
                    written = {name: bits(value) if name in ("draft", "row", "free") else value for name, value in pace.items()}
                    made.append(
                        {
                            "rule": rule,
                            "draft": draft,
                            "options": {n: bits(v) if isinstance(v, float) else v for n, v in options.items()},
                            "pace": written,
                            "seed": f"{seed:016x}",
                            "stop": stop,
                            "tokens": [token for emit in emits for token in emit.tokens],
                            "kinds": "".join(kind[0] for emit in emits for kind in emit.kinds),
                            "rounds": [
                                [getattr(emit.round, name) for name in
                                 ("length", "proposed", "judged", "accepted", "emitted", "empty", "rows")]
                                for emit in emits
                            ],
                            "reason": emits[-1].reason,
                            # The last of every generation, so that the file stays small.
                            "judgements": [judgement(it, rule) for it in emits[-1].judgements],
                        }
                    )
    lines = ",\n".join(json.dumps(each) for each in made)
    Path(__file__).with_name("recorded.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
