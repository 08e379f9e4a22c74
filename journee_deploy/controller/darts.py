"""Darts: a random process that every distribution at a position shares. Portable Python.

Picture the plane over the tokens, one column of width 1 a token, heights in units. Darts fall on it in the course of
time, a Poisson process of rate 1 per area of one distribution (2^50 units). The first dart under the curve p is a
token with exactly the law p, since it falls evenly on the area; and two curves that mostly overlap mostly have the
same first dart (Daliri, Musco, Suresh 2024).

Darts thrown at the whole plane, one by one, would mostly miss. So it is cut into boxes of one area each, in tiers: wide
and low ones near the ground, narrow and tall ones above, and a box is looked into only where some token rises above
the tier's floor. In a window (one unit of time) a box has Poisson(1) darts, drawn from words that depend on the box,
the position and the window alone; what is in a box does not depend on who looks.

    tier 0   width 1       heights from 2^46 to 2^50 units
    tier 1   width 16      heights from 2^42 to 2^46
    tier 2   width 256     heights from 2^38 to 2^42
    tier 3   width 4096    heights from 2^34 to 2^38
    tier 4   width 65536   heights from 0 to 2^34

A box reaches from the ground to its ceiling, so that its area is one, and darts below its floor are void: those heights
belong to the tier below it. docs/distributions.md, section 7, is the specification.
"""

from __future__ import annotations

from journee_deploy.controller.philox import uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTHS = (1, 16, 256, 4096, 65536)  # tokens a box, by tier
STEP = 16  # from a tier's ceiling to its floor
LARGEST = 1 << 24  # tokens: a box's number has 24 bits of the counter


def floor(tier: int) -> float:
    """Where a tier's heights begin, as a probability: its ceiling is 1 / WIDTHS[tier]."""
    return 0.0 if tier == len(WIDTHS) - 1 else 1 / (WIDTHS[tier] * STEP)


def poisson(words: Iterator[int]) -> int:
    """How many darts: exactly Poisson(1), from uniform whole numbers alone (Duchon and Duvignau 2016, Algorithm 1)."""
    n = 1
    guard = 0
    k = 1
    while True:
        i = uniform(n + 1, words)
        if i == n:
            k += 1
        elif i >= guard:
            k -= 1
            guard = n + 1
        else:
            return k
        n += 1


def first_dart(opened: list[tuple[int, int]], curve: Curve, streams: Streams, units: int) -> tuple[int, int]:
    """The token that the first dart under a curve falls on, and its window.

    opened  the boxes (tier, number) where the curve rises above the tier's floor, and no matter which others
    curve   a token's height in units, 0 past the vocabulary; heights add up to `units`, 2^50, or less in tests
    streams for a window, the endless 32-bit words of each opened box
    """
    window = 0
    while True:
        token = _first_in_window(opened, curve, streams(window), units)
        if token >= 0:
            return token, window
        window += 1


def _first_in_window(opened: list[tuple[int, int]], curve: Curve, streams: list[Iterator[int]], units: int) -> int:
    """The same in one window, or -1: there is none, or the two first ones fell at the same time."""
    first = -1
    found = -1
    for place, stream in enumerate(streams):
        tier, box = opened[place]
        width = WIDTHS[tier]
        ceiling = units // width
        ground = 0 if tier == len(WIDTHS) - 1 else ceiling // STEP
        for _ in range(poisson(stream)):
            time = next(stream) << 32 | next(stream)
            token = box * width + uniform(width, stream)
            height = uniform(ceiling, stream)
            if ground <= height < curve(token):
                if first < 0 or time < first:
                    first = time
                    found = token
                elif time == first:
                    found = -1
    return found


if TYPE_CHECKING:
    from collections.abc import Callable

    Curve = Callable[[int], int]
    Streams = Callable[[int], list[Iterator[int]]]
