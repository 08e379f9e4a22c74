"""The worked examples of docs/distributions.md, as the code computes them.

`python -m tests.arithmetic.worked_examples` prints them; a test asserts that the document has them word for word.
"""

from __future__ import annotations

import struct
from typing import Any

from journee_deploy.arithmetic.exponential import COEFFICIENTS, LN2_HIGH, LN2_LOW, LOG2E
from journee_deploy.arithmetic.plain import PlainOps, largest, min_p, process, sum_once, top_k, top_p, weigh
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import Chance, ConstantPace, Emit, ModelDraft, Philox, Residual, Stops, speculate
from journee_deploy.controller.darts import WIDTHS, floor, poisson
from journee_deploy.controller.philox import philox, uniform

PURPOSES = ("propose", "judge", "recover", "bonus")


def bits(value: float) -> str:
    return struct.pack(">d", value).hex().upper()


def units(vector: list[float]) -> list[int]:
    return [int(value * (1 << 50)) for value in vector]


def constants() -> str:
    lines = [f"LOG2E    {bits(LOG2E)}", f"LN2_HIGH {bits(LN2_HIGH)}", f"LN2_LOW  {bits(LN2_LOW)}"]
    names = [f"c{i}" for i in range(13, -1, -1)]
    return "\n".join(lines + [f"{name:<8} {bits(value)}" for name, value in zip(names, COEFFICIENTS, strict=True)])


LOGITS = (2.0, 1.0, 2.5, -1.0, 0.5, 2.5, 0.0)
SAMPLING = Sampling(
    temperature=0.75,
    top_k=5,
    top_p=0.97,
    min_p=0.04,
    repetition_penalty=1.25,
    frequency_penalty=0.5,
    presence_penalty=0.25,
    logit_bias={4: 0.75},
    min_new_tokens=3,
)
PROMPT, GENERATED, ENDS = (0, 1), (1, 4), (5,)


def distribution() -> str:
    ops = PlainOps(list(PROMPT), len(LOGITS), SAMPLING, ENDS)
    for token in GENERATED:
        ops.push(token)
    x = process(LOGITS, len(LOGITS), SAMPLING, ops.history, ENDS)
    best = largest(x)
    k = weigh(x, best, SAMPLING.temperature, top_k(x, SAMPLING.top_k))
    cut = min_p(top_p(k, best, SAMPLING.top_p), SAMPLING.min_p)
    p = ops.vector(ops.distribution(ops.hold("target", 4, [list(LOGITS)])))
    lines = ["token  x after step 3    z of step 6       k after step 6    k after step 9   p * 2^50"]
    for token, value in enumerate(x):
        z = bits((value - x[best]) / SAMPLING.temperature)
        lines.append(f"{token}      {bits(value)}  {z}  {int(k[token]):<16}  {int(cut[token]):<15}  {units(p)[token]}")
    lines.append(f"b = {best}; W of step 10 = {bits(sum_once(cut))}")
    return "\n".join(lines)


def draws() -> str:
    seed, sample, key = 0x0123456789ABCDEF, 7, (2, 300, 11)
    words = philox((sample, 0, 0, 0xFFFFFFFF), (seed & 0xFFFFFFFF, seed >> 32))
    block = philox((0, key[1], key[2], key[0]), words[:2])
    generator = Philox(seed, sample)
    lines = [
        f"seed {seed:016X}, sample {sample}",
        f"key of the sample: {words[0]:08X} {words[1]:08X}",
        f"key (purpose, position, round) = {key}; its block 0: " + " ".join(f"{word:08X}" for word in block),
    ]
    bounds = (1, 2, 10, 1 << 32, (1 << 32) + 1, 3 << 48, 1 << 50)
    return "\n".join(lines + [f"below({n}) = {generator.below(n, key)}" for n in bounds])


class Recorded:
    """Philox that writes down what it was asked."""

    def __init__(self, seed: int) -> None:
        self._philox = Philox(seed)
        self.lines: list[str] = []

    def below(self, n: int, key: tuple[int, int, int]) -> int:
        value = self._philox.below(n, key)
        purpose, position, number = key
        self.lines.append(f"  {PURPOSES[purpose]:<8} position {position}, round {number}: below({n}) = {value}")
        return value


DRAFT = ((0.5, 0.0, 0.25, -1.0), (1.0, 0.0, 0.0, 0.0))
TARGET = ((0.0, 1.0, 0.25, -0.5), (-1.0, 0.75, 0.0, 0.5))


def logits(role: str, length: int) -> list[float]:
    """What follows `length` tokens: nothing but the parity of the length matters in this example."""
    return list((TARGET if role == "target" else DRAFT)[length % 2])


def rounds(seed: int = 28) -> str:
    ops = PlainOps([0], 4, Sampling())
    recorded = Recorded(seed)
    run: Any = speculate(
        [0],
        ops=ops,
        chance=Chance(ops, recorded),
        rule=Residual(),
        draft=ModelDraft(),
        pace=ConstantPace(2),
        stops=Stops(5),
    )
    lines = []
    for name, rows in (("p", "target"), ("q", "draft")):
        for length in (1, 2):
            vector = ops.vector(ops.distribution(ops.hold(rows, length, [logits(rows, length)])))
            lines.append(f"{name} after {'an odd' if length % 2 else 'an even'} count: {units(vector)}")
    wish = next(run)
    while True:
        if isinstance(wish, Emit):
            lines += recorded.lines
            reason = f" ({wish.reason})" if wish.reason else ""
            lines.append(f"emitted {wish.tokens}: {', '.join(wish.kinds)}{reason}")
            recorded.lines.clear()
            if wish.reason:
                return "\n".join(lines)
            wish = run.send(())
        else:
            wish = run.send(tuple(_answer(ops, one) for one in wish))


def _answer(ops: PlainOps, run: Any) -> int:
    first = run.start + len(run.tokens) - run.keep + 1
    return ops.hold(run.role, first, [logits(run.role, first + i) for i in range(run.keep)])


CURVE = [1 << 44, 0, 3 << 48, 1 << 40, (1 << 48) - (1 << 44) - (1 << 40)]


def darts(seed: int = 17, position: int = 9) -> str:
    """The darts that a curve's boxes hold, window by window, until one has a first hit."""
    ops = PlainOps([0], len(CURVE), Sampling())
    handle = ops.keep([height / (1 << 50) for height in CURVE])
    wanted, last = Chance(ops, Philox(seed)).first_dart(handle, position)
    lines = [f"seed {seed}, sample 0, position {position}; p * 2^50 = {CURVE}"]
    hits: list[tuple[int, int]] = []
    for window in range(last + 1):
        for tier, box in ops.boxes(handle):
            lines += _box(Philox(seed), position, window, tier, box, hits)
    lines.append(f"first dart: token {wanted}, in window {last}")
    assert min(hits)[1] == wanted
    return "\n".join(lines)


def _box(draws_: Philox, position: int, window: int, tier: int, box: int, hits: list[tuple[int, int]]) -> list[str]:
    stream = draws_.words((4 | tier << 4 | box << 8, position, window))
    count = poisson(stream)
    lines = [f"  window {window}, tier {tier}, box {box}: {count} darts"]
    for _ in range(count):
        time = next(stream) << 32 | next(stream)
        token = box * WIDTHS[tier] + uniform(WIDTHS[tier], stream)
        height = uniform((1 << 50) // WIDTHS[tier], stream)
        hit = token < len(CURVE) and int(floor(tier) * (1 << 50)) <= height < CURVE[token]
        hits += [(time, token)] if hit else []
        lines.append(f"    time {time:016X}, token {token}, height {height}: {'hit' if hit else 'no hit'}")
    return lines


def blocks() -> list[str]:
    return [constants(), distribution(), draws(), darts(), rounds()]


if __name__ == "__main__":
    print("\n\n".join(blocks()))
