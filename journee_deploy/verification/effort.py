"""How much each check does: seconds by default, minutes where asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GTest:
    """The size of one G-test.

    limit, top_k    a text has at most `limit` tokens, and each place about `top_k`: at most top_k^limit cells
    length          proposals a round
    prompts         texts that are tested jointly, those in which the bias is largest
    cap             runs a prompt at most; needing more is a failure
    """

    limit: int
    top_k: int
    length: int
    prompts: int
    cap: int


@dataclass(frozen=True, slots=True)
class Effort:
    """Numbers of texts, splits, seeds, tokens; the toys left out; and the G-tests, which come one after the other."""

    row_texts: int
    row_rounds: int
    greedy_texts: int
    greedy_tokens: int
    lengths: tuple[int, ...]
    coupled_seeds: int
    coupled_tokens: int
    toys_left_out: tuple[str, ...]
    parity_texts: int
    tests: tuple[GTest, ...]


USUAL = Effort(
    row_texts=2,
    row_rounds=4,
    greedy_texts=2,
    greedy_tokens=24,
    lengths=(1, 4, 8),
    coupled_seeds=2,
    coupled_tokens=16,
    toys_left_out=(  # two thirds of the time, and nothing that conformance or the other toys don't touch
        "draft near the target",
        "draft with more tokens",
        "draft that remembers",
        "stop sequence inside a run",
    ),
    parity_texts=4,
    tests=(GTest(limit=3, top_k=2, length=2, prompts=2, cap=600),),
)
THOROUGH = Effort(
    row_texts=8,
    row_rounds=16,
    greedy_texts=4,
    greedy_tokens=64,
    lengths=(1, 2, 3, 4, 8, 16),
    coupled_seeds=4,
    coupled_tokens=48,
    toys_left_out=(),
    parity_texts=8,
    tests=(
        GTest(limit=3, top_k=3, length=2, prompts=3, cap=4000),
        GTest(limit=2, top_k=8, length=1, prompts=4, cap=4000),
        GTest(limit=4, top_k=2, length=3, prompts=4, cap=4000),
    ),
)
