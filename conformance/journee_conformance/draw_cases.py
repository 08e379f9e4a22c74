"""Cases of draws and decisions: Philox, below, pick, verdict, Poisson, darts, rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from journee_conformance.notation import UNITS, Die, hexadecimal
from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import DART, Philox
from journee_deploy.controller.darts import first_dart

Input = dict[str, Any]
TOP = (1 << 32) - 1


def philox() -> list[Input]:
    """The Random123 vectors, and others."""
    die = Die("philox")
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    known = [[0] * 6, [TOP] * 6, pi]
    words = known + [[die.below(1 << 32) for _ in range(6)] for _ in range(9)]
    return [{"counter": six[:4], "key": six[4:]} for six in words]


def below() -> list[Input]:
    """Bounds of every width, those that often draw again among them, keys at their limits, samples apart."""
    die = Die("below")
    bounds = [1, 2, 3, 5, 10, 17, 1 << 16, (1 << 31) + 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1]
    bounds += [(1 << 33) + 1, 3 << 40, (1 << 49) + 1, (1 << 50) - 1, UNITS]
    keys = [[0, 0, 0], [3, TOP, TOP], [TOP - 1, 1, 2]]
    found = [
        {"seed": die.seed(), "sample": sample, "key": keys[number % 3], "n": n}
        for number, n in enumerate(bounds)
        for sample in (0, 1, TOP)
    ]
    edges = [{"seed": hexadecimal(seed), "sample": 0, "key": [1, 2, 3], "n": UNITS} for seed in (0, (1 << 64) - 1)]
    many = [
        {"seed": hexadecimal(7), "sample": 0, "key": [die.below(4), position, die.below(9)], "n": (1 << 49) + 1}
        for position in range(24)
    ]
    refused = [{"seed": hexadecimal(1), "sample": 0, "key": [0, 0, 0], "n": 0}]
    return found + edges + many + refused + [{**edges[0], "sample": sample} for sample in (-1, TOP + 1)]


def pick() -> list[Input]:
    """At the borders of every cell: first and last coin of each token, zeros skipped, totals below 2^50 too."""
    die = Die("pick")
    vectors = [
        [UNITS],
        [0, UNITS, 0],
        [1, 0, UNITS - 1],
        [0, 0, 5, 0, 3],
        [UNITS // 2] * 2,
        die.units(9),
        die.units(40, 7),
    ]
    found: list[Input] = []
    for units in vectors:
        reached = 0
        for unit in units:
            if unit:
                found += [{"units": units, "coin": coin} for coin in sorted({reached, reached + unit - 1})]
            reached += unit
    return found


def _pairs() -> list[tuple[list[int], list[int]]]:
    die = Die("pairs")
    half = UNITS // 2
    pairs = [
        ([half, half], [UNITS, 0]),
        ([0, UNITS], [1, UNITS - 1]),
        ([half, half, 0], [0, half, half]),
        ([UNITS - 1, 1], [1, UNITS - 1]),
        ([1, UNITS - 1], [2, UNITS - 2]),  # few units: a coin is often equal to p
        ([2, UNITS - 2], [3, UNITS - 3]),
    ]
    pairs += [(die.units(size), die.units(size)) for size in (2, 3, 5, 8, 20)]
    return pairs + [(die.units(12, 4), die.units(12, 6)) for _ in range(4)] + [(p := die.units(6), p)]


def verdict() -> list[Input]:
    """Every proposal that q can give, under both rules, in rounds of their own."""
    die = Die("verdict")
    fair = Die("even")
    even = [(fair.even(size), fair.even(size)) for size in (2, 4, 7, 16)]
    return _judged(die, _pairs()) + _judged(die, even)


def _judged(die: Die, pairs: list[tuple[list[int], list[int]]]) -> list[Input]:
    return [
        {
            "rule": rule,
            "p": p,
            "q": q,
            "proposal": proposal,
            "seed": die.seed(),
            "sample": die.below(3),
            "position": 1 + die.below(500),
            "round": die.below(100),
        }
        for rule in ("residual", "coupled")
        for p, q in pairs
        for proposal in [token for token, unit in enumerate(q) if unit][:6]
        for _ in range(2)
    ]


def poisson() -> list[Input]:
    """Words that lead every way: none, some and many darts, answers that are drawn again."""
    die = Die("poisson")
    top = 1 << 31
    scripts = [[0, 0], [top, 0, 0], [top, top, 0, 0], [top, top + (1 << 30), TOP, TOP, top, 0, 0], [0, TOP, 0, 0, 0]]
    random = [[die.below(1 << 32) for _ in range(4)] for _ in range(40)]
    return [{"words": script + [0] * 12} for script in scripts + random]


def dart() -> list[Input]:
    """One token, a few, box borders at 16, 256 and 4096, low curves that only the low tiers hold, many seeds."""
    die = Die("dart")
    low = [UNITS // 4096] * 4096
    curves = [[UNITS], [0, UNITS], [UNITS // 2] * 2, [UNITS - 1, 1]]
    curves += [die.units(size) for size in (3, 15, 16, 17, 33, 256, 257)] + [die.units(300, 30)]
    found = [
        {"units": units, "seed": die.seed(), "sample": die.below(2), "position": die.below(1000)}
        for units in curves
        for _ in range(4)
    ]
    shared = {"seed": hexadecimal(99), "sample": 0, "position": 12}
    found += [{"units": die.units(8), **shared} for _ in range(12)]  # the same darts under many curves
    found += [_decided_by(tier, [UNITS // 300 + (token < UNITS % 300) for token in range(300)]) for tier in (2, 3, 4)]
    found += [_decided_by(tier, die.units(20)) for tier in (0, 1, 2)]
    found += [{"units": low, **shared, "position": TOP}, {"units": die.units(5000, 600), **shared}]
    far = [0] * 300
    far[20] = far[276] = UNITS // 2  # boxes 20 and 276 of tier 0: their numbers agree in the last eight bits
    return found + [{"units": far, "seed": hexadecimal(seed), "sample": 0, "position": 77} for seed in range(6)]


def _decided_by(tier: int, units: list[int]) -> Input:
    """A seed under which the first dart lies in this tier: a host that never opens its boxes answers otherwise."""
    ops = PlainOps([0], len(units), Sampling())
    handle = ops.keep([unit / UNITS for unit in units])
    position, seed = 40 + tier, 0
    while True:
        answers: list[tuple[int, int]] = []
        for skipped in (-1, tier):
            opened = [box for box in ops.boxes(handle) if box[0] != skipped]
            answers.append(_first(opened, units, seed, position))
        if answers[0] != answers[1]:
            return {"units": units, "seed": hexadecimal(seed), "sample": 0, "position": position}
        seed += 1


def _first(opened: list[tuple[int, int]], units: list[int], seed: int, position: int) -> tuple[int, int]:
    draws = Philox(seed)

    def streams(window: int) -> list[Iterator[int]]:
        return draws.streams([(DART | tier << 4 | box << 8, position, window) for tier, box in opened])

    return first_dart(opened, lambda token: units[token] if token < len(units) else 0, streams, UNITS)


def rounds() -> list[Input]:
    """The first round after a text: K from 0 to 4, drafts near, far, sure and empty, under both rules."""
    die = Die("rounds")
    found: list[Input] = []
    for rule in ("residual", "coupled"):
        for length in range(5):
            for kept in (0, 0, 3, 1):
                size = 2 + die.below(6)
                p = [die.units(size, kept) for _ in range(length + 1)]
                q: list[list[int] | None] = [die.units(size, min(kept, 2)) for _ in range(length)]
                if kept == 0 and length and die.below(2):
                    q = [*p[:length]]  # a draft that is right
                if kept == 3 and length:
                    q[-1] = None
                shared = {"seed": die.seed(), "sample": die.below(2), "position": 1 + die.below(40)}
                found.append({"rule": rule, **shared, "q": q, "p": p})
    return found + _even_rounds()


def _even_rounds() -> list[Input]:
    """Rounds in which acceptance and rejection are both likely at every place."""
    die = Die("fair")
    return [
        {
            "rule": rule,
            "seed": die.seed(),
            "sample": die.below(2),
            "position": 1 + die.below(40),
            "q": [die.even(size) for _ in range(length)],
            "p": [die.even(size) for _ in range(length + 1)],
        }
        for rule in ("residual", "coupled")
        for length in (1, 2, 3, 4)
        for size in (2, 3, 5, 9)
    ]
