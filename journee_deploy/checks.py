"""Facts about a loaded model that can be checked on the spot, on the machine that will serve."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from journee_deploy.language_model import LanguageModel
from journee_deploy.request import Length
from journee_deploy.runtime import Model, Rows, Step

WHOLE, SPLIT = 1 << 30, (1 << 30) + 1  # slots that no generation uses


@dataclass(frozen=True, slots=True)
class RowCheck:
    """How many rows of logits were compared over different splits of a text, and how many differed in any bit."""

    compared: int
    different: int


def rows_by_prefix(model: Model, tokens: Sequence[int], rounds: int = 8, seed: int = 0) -> RowCheck:
    """Run `tokens` whole, then in random splits of 1 to 17 rows after prefills of random length; compare the bits."""
    generator = random.Random(seed)
    length = len(tokens)
    compared = different = 0
    try:
        (whole,) = model.run([Step(WHOLE, tuple(tokens), 0, length)])
        for _ in range(rounds):
            done = 0
            for count in _splits(generator, length):
                (rows,) = model.run([Step(SPLIT, tuple(tokens[done : done + count]), done, count)])
                compared += count
                different += _different(rows, whole[done : done + count])
                done += count
    finally:
        model.release(WHOLE)
        model.release(SPLIT)
    return RowCheck(compared, different)


def _splits(generator: random.Random, length: int) -> list[int]:
    splits = [generator.randint(1, max(length // 2, 1))]
    while sum(splits) < length:
        rows = generator.choice((1, generator.randint(1, 17)))  # one row at a time is what plain decoding asks for
        splits.append(min(rows, length - sum(splits)))
    return splits


def _different(rows: Rows, expected: Rows) -> int:
    return int(np.any(rows.view(np.uint32) != expected.view(np.uint32), axis=1).sum())


@dataclass(frozen=True, slots=True)
class GreedyCheck:
    """Whether speculative text at temperature 0 is the plain text; None with a reason where that isn't promised."""

    identical: bool | None
    note: str


def greedy_identical(
    lm: LanguageModel, prompt: str | Sequence[int], max_new_tokens: int, length: Length
) -> GreedyCheck:
    """Compare both texts token for token. Without a row rule the target promises nothing, so there is no answer."""
    if lm.target.row_rule is None:
        return GreedyCheck(None, f"{lm.target.name} has no row rule: {lm.target.row_rule_note}")
    plain = lm.generate(prompt, max_new_tokens=max_new_tokens, temperature=0, draft=False)
    fast = lm.generate(prompt, max_new_tokens=max_new_tokens, temperature=0, speculation_length=length)
    difference = first_difference(fast.tokens, plain.tokens)
    return GreedyCheck(not difference, difference or f"{len(plain.tokens)} tokens compared")


def first_difference(fast: Sequence[int], plain: Sequence[int]) -> str:
    """Where a drafted text leaves the plain one, in words; empty if it doesn't."""
    for i, (ours, theirs) in enumerate(zip(fast, plain, strict=False)):
        if ours != theirs:
            return f"token {i} is {ours}, and {theirs} in the plain text"
    if len(fast) == len(plain):
        return ""
    return f"the text has {len(fast)} tokens, and {len(plain)} in plain decoding; the rest is the same"
