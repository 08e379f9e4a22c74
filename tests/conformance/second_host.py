"""A second host, written from docs/distributions.md alone, in whole numbers: it shares no code with the one that ships.

It has the draws, both rules, the rounds and whole generations; distributions come from the fractions of
tests/arithmetic/oracle.py. `python -m tests.conformance.second_host` speaks the protocol.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.arithmetic import oracle
from tests.arithmetic.oracle import UNITS

M = 2**32
Case = dict[str, Any]


class Refused(Exception):  # noqa: N818
    pass


# Section 5.


def philox(counter: list[int], key: list[int]) -> list[int]:
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        one, two = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = two // M ^ b ^ k, two % M, one // M ^ d ^ m, one % M
        k, m = (k + 0x9E3779B9) % M, (m + 0xBB67AE85) % M
    return [a, b, c, d]


def words(case: Case, key: tuple[int, int, int]) -> Iterator[int]:
    seed = int(case["seed"], 16)
    mine = philox([case["sample"], 0, 0, M - 1], [seed % M, seed // M])[:2]
    block = 0
    while True:
        yield from philox([block, key[1], key[2], key[0]], mine)
        block += 1


def uniform(stream: Iterator[int], n: int) -> int:
    bits = len(f"{n - 1:b}") if n > 1 else 0
    count = math.ceil(bits / 32)
    while True:
        number = 0
        for _ in range(count):
            number = number * M + next(stream)
        if (value := number // 2 ** (32 * count - bits)) < n:
            return value


def pick(weights: list[int], coin: int) -> int:
    for token in range(len(weights)):
        if sum(weights[: token + 1]) > coin:
            return token
    raise AssertionError("the coin is not below the total")


# Section 7.


def poisson(stream: Iterator[int]) -> int:
    n, guard, k = 1, 0, 1
    while True:
        i = uniform(stream, n + 1)
        if i == n:
            k += 1
        elif i >= guard:
            k, guard = k - 1, n + 1
        else:
            return k
        n += 1


def dart(case: Case, units: list[int], position: int) -> tuple[int, int]:
    window = 0
    while True:
        hits = sorted(hit for tier in range(5) for hit in _hits(case, units, position, window, tier))
        if hits and (len(hits) == 1 or hits[0][0] < hits[1][0]):
            return hits[0][1], window
        window += 1


def _hits(case: Case, units: list[int], position: int, window: int, tier: int) -> Iterator[tuple[int, int]]:
    width, ceiling = 16**tier, UNITS // 16**tier
    low = ceiling // 16 if tier < 4 else 0
    for box in range(math.ceil(len(units) / width)):
        if max(units[box * width : (box + 1) * width]) <= low:
            continue
        stream = words(case, (4 + 16 * tier + 256 * box, position, window))
        for _ in range(poisson(stream)):
            time = next(stream) * M + next(stream)
            token, height = box * width + uniform(stream, width), uniform(stream, ceiling)
            if token < len(units) and low <= height < units[token]:
                yield time, token


# Section 6. A draw's purposes: propose 0, judge 1, recover 2, bonus 3.


def drawn(case: Case, units: list[int], purpose: int, position: int, number: int) -> int:
    if case["rule"] == "coupled":
        return dart(case, units, position)[0]
    return pick(units, uniform(words(case, (purpose, position, number)), sum(units)))


def judged(case: Case, p: list[int], q: list[int], x: int, position: int, number: int) -> tuple[bool, int]:
    if case["rule"] == "coupled":
        token = dart(case, p, position)[0]
        return token == x, token
    if uniform(words(case, (1, position, number)), q[x]) < p[x]:
        return True, x
    return False, drawn(case, [max(a - b, 0) for a, b in zip(p, q, strict=True)], 2, position, number)


Row = Callable[[str, list[int]], list[int] | None]
"""Role, and the proposals so far -> units."""


def drafted(case: Case, row: Row, n: int, number: int, k: int) -> tuple[list[int], list[list[int]]]:
    """Proposals, and what each was drawn from."""
    proposals: list[int] = []
    qs: list[list[int]] = []
    while len(proposals) < k and (q := row("draft", proposals)) is not None:
        qs.append(q)
        proposals.append(drawn(case, q, 0, n + len(proposals), number))
    return proposals, qs


def decided(
    case: Case, row: Row, n: int, number: int, proposals: list[int], qs: list[list[int]]
) -> Iterator[tuple[int, str]]:
    """Token and kind, one at a time: who stops asking looks at no row behind."""
    for i, x in enumerate(proposals):
        p = row("target", proposals[:i])
        assert p is not None
        kept, token = judged(case, p, qs[i], x, n + i, number)
        yield token, "accepted" if kept else "recovered"
        if not kept:
            return
    p = row("target", proposals)
    assert p is not None
    yield drawn(case, p, 3, n + len(proposals), number), "bonus"


# Sections 2 and 3.

RANGES: dict[str, Callable[[float], bool]] = {
    "temperature": lambda value: 0 <= value < math.inf,
    "top_k": lambda value: value >= 0,
    "top_p": lambda value: 0 < value <= 1,
    "min_p": lambda value: 0 <= value <= 1,
    "repetition_penalty": lambda value: 0.01 <= value <= 100,
    "frequency_penalty": lambda value: abs(value) <= 2.0**128 - 2.0**104,
    "presence_penalty": lambda value: abs(value) <= 2.0**128 - 2.0**104,
    "min_new_tokens": lambda value: value >= 0,
}


class Options:
    """With the fields that the oracle reads."""

    temperature = 1.0
    top_k = 0
    top_p = 1.0
    min_p = 0.0
    repetition_penalty = 1.0
    frequency_penalty = 0.0
    presence_penalty = 0.0
    min_new_tokens = 0
    logit_bias: tuple[tuple[int, float], ...] = ()

    def __init__(self, case: Case) -> None:
        for name, value in case["options"].items():
            if name == "logit_bias":
                self.logit_bias = tuple((token, double(amount)) for token, amount in value)
                continue
            number = double(value) if isinstance(value, str) else value
            if not RANGES[name](number):
                raise Refused(name)
            setattr(self, name, number)
        for token, amount in self.logit_bias:
            if not 0 <= token < case["size"] or not (amount == -math.inf or abs(amount) <= 2.0**128 - 2.0**104):
                raise Refused("logit_bias")


def double(text: str) -> float:
    return float(struct.unpack(">d", bytes.fromhex(text))[0])


def distribution(case: Case, role: str, generated: list[int], logits: str) -> list[int] | None:
    row = list(struct.unpack(f">{len(logits) // 8}f", bytes.fromhex(logits)))
    if any(math.isnan(value) or value == math.inf for value in row) or max(row) == -math.inf:
        raise Refused("logits")
    options: Any = Options(case)
    ends = [token for token in case["ends"] if token < case["size"]]
    x = oracle.processed(row, case["size"], options, tuple(case["prompt"]), tuple(generated), ends)
    units = oracle.distribution(x, options)
    if units is None and role == "target":
        raise Refused("masked")
    return units


# Whole generations.


def generation(case: Case) -> Case:
    known = {(row["role"], tuple(row["after"])): row["logits"] for row in case["rows"]}
    out: list[int] = []
    kinds: list[str] = []
    rounds: list[list[int]] = []
    reason = ""
    while not reason:
        n = len(case["prompt"]) + len(out)
        k = clamped(case, n, len(out))
        row = partial(a_row, case, known, list(out))
        proposals, qs = drafted(case, row, n, len(rounds), k)
        before = len(out)
        for token, kind in decided(case, row, n, len(rounds), proposals, qs):
            out.append(token)
            kinds.append(kind)
            reason = ending(case, out)
            if reason:
                break
        theirs = kinds[before:]
        accepted = theirs.count("accepted")
        judgements = accepted + theirs.count("recovered")
        rounds.append([k, len(proposals), judgements, accepted, len(theirs), int(len(proposals) < k)])
    return {"tokens": out, "kinds": kinds, "reason": reason, "rounds": rounds}


def a_row(
    case: Case, known: dict[tuple[str, tuple[int, ...]], str], out: list[int], role: str, proposals: list[int]
) -> list[int] | None:
    after = out + proposals
    if role == "draft" and case["draft"] != "model":
        return free_draft(case, after)
    return distribution(case, role, after, known[role, tuple(after)])


def clamped(case: Case, n: int, g: int) -> int:
    k = min(case["length"], case["limit"] - g - 1)
    if case["draft"] == "none":
        return 0
    if case["draft"] == "model" and case["draft_context"]:
        return max(min(k, case["draft_context"] + 1 - n), 0)
    return k


def free_draft(case: Case, after: list[int]) -> list[int] | None:
    if case["draft"] == "uniform":
        return distribution(case, "draft", after, "00000000" * case["size"])
    tokens = case["prompt"] + after
    for n in range(4, 0, -1):
        for e in range(len(tokens) - 1, n - 1, -1):
            if tokens[e - n : e] == tokens[-n:]:
                return [UNITS * (token == tokens[e]) for token in range(case["size"])]
    return None


def ending(case: Case, out: list[int]) -> str:
    """Why the text ends with its last token, if it does."""
    if out[-1] in case["ends"]:
        return "end-of-sequence"
    if any(out[-len(stop) :] == stop for stop in case["stops"]):
        return "stop"
    return "length" if len(out) == case["limit"] else ""


# The protocol.


def check_start(case: Case) -> None:
    Options(case)
    if not 0 <= case["sample"] < M:
        raise Refused("sample")
    if not case["prompt"] or not all(0 <= token < case["size"] for token in case["prompt"]):
        raise Refused("prompt")


def answer(kind: str, case: Case) -> Case:
    if kind == "philox":
        return {"words": philox(case["counter"], case["key"])}
    if kind == "below":
        if case["n"] == 0 or not 0 <= case["sample"] < M:
            raise Refused("sample" if case["n"] else "n")
        return {"value": uniform(words(case, tuple(case["key"])), case["n"])}
    if kind == "pick":
        return {"token": pick(case["units"], case["coin"])}
    if kind == "poisson":
        stream = iter(case["words"])
        return {"darts": poisson(stream), "words": len(case["words"]) - len(list(stream))}
    if kind == "dart":
        return dict(zip(("token", "window"), dart(case, case["units"], case["position"]), strict=True))
    if kind == "verdict":
        kept, token = judged(case, case["p"], case["q"], case["proposal"], case["position"], case["round"])
        return {"accepted": kept, "token": token}
    if kind == "round":
        rows = {"draft": case["q"], "target": case["p"]}

        def row(role: str, given: list[int]) -> list[int]:
            return rows[role][len(given)]

        proposals, qs = drafted(case, row, case["position"], 0, len(case["q"]))
        outcome = list(decided(case, row, case["position"], 0, proposals, qs))
        return {
            "proposals": proposals,
            "tokens": [token for token, _ in outcome],
            "kinds": [kind for _, kind in outcome],
        }
    check_start({"sample": 0, **case})
    if kind == "refusal":
        return {"accepted": True}
    if kind == "generation":
        return generation(case)
    assert kind == "distribution"
    units = distribution(case, case["role"], case["generated"], case["logits"])
    return {"empty": True} if units is None else {"units": units}


class SecondHost:
    """For a checker in this process."""

    def line(self, text: str) -> str:
        asked = json.loads(text)
        if "format" in asked:
            if (asked["format"], asked["version"]) != ("journee-conformance", 1):
                sys.exit(f"unknown version: {text}")
            return json.dumps({**asked, "host": "second"})
        try:
            return json.dumps({"id": asked["id"], "answer": answer(asked["kind"], asked["input"])})
        except Refused as refused:
            return json.dumps({"id": asked["id"], "answer": {"refused": str(refused)}})


if __name__ == "__main__":
    for line in sys.stdin:
        print(SecondHost().line(line), flush=True)
