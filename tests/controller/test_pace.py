"""The adaptive pace: a pure function of the history, the best K for what it believes, cheap with a useless draft."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import (
    AdaptivePace,
    Chance,
    ConstantPace,
    NgramDraft,
    Philox,
    Residual,
    Stops,
    speculate,
)
from journee_deploy.controller.pace import ACCEPTED, LONGEST, SHORTEST, VERDICTS
from journee_deploy.protocols import Pace
from tests.portable.toys import Host, drive, model

History = list[tuple[int, int]]

rounds = st.integers(0, 6).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k)))
histories = st.lists(rounds, max_size=60)
costs = st.sampled_from(
    [(0.0, 0.0, 2), (0.1, 0.02, 2), (0.25, 0.07, 2), (0.25, 0.07, 1), (0.55, 0.1, 2.5), (2.0, 0.1, 2)]
)


def pace_of(cost: tuple[float, float, float], most: int = 8) -> AdaptivePace:
    return AdaptivePace(cost[0], cost[1], cost[2], most)


# A pure function of the history.


@given(st.lists(histories, min_size=1, max_size=5), costs, st.randoms(use_true_random=False))
def test_the_same_history_gives_the_same_length_in_any_order(
    several: list[History], cost: tuple[float, float, float], order: random.Random
) -> None:
    questions = [history[:end] for history in several for end in range(len(history) + 1)]
    order.shuffle(questions)
    used = pace_of(cost)
    for history in questions:
        kept = list(history)
        assert used.next_length(history) == pace_of(cost).next_length(history)
        assert used.go_on(history, [1])
        assert history == kept


@given(histories, costs, st.integers(1, 16))
def test_lengths_are_in_range_whatever_happened(history: History, cost: tuple[float, float, float], most: int) -> None:
    assert 0 <= pace_of(cost, most).next_length(history) <= most


def test_a_list_that_grows_in_place_is_followed_and_one_that_changed_is_seen() -> None:
    used = AdaptivePace(0.1, 0.02, 2)
    history: History = []
    for i in range(80):
        assert used.next_length(history) == AdaptivePace(0.1, 0.02, 2).next_length(history)
        history.append((4, i % 5))
    history[3] = (4, 4)
    del history[50:]
    assert used.next_length(history) == AdaptivePace(0.1, 0.02, 2).next_length(history)


# The best K for what is believed.


def best(share: Fraction, draft: Fraction, row: Fraction, free: Fraction, most: int) -> int:
    """By the definition, without rounding: most tokens for the cost, the smallest K of equals."""

    def rate(length: int) -> Fraction:
        cost = 1 + length * draft + max(Fraction(0), length + 1 - free) * row
        return sum((share**i for i in range(length + 1)), Fraction(0)) / cost

    return max(range(most + 1), key=lambda length: (rate(length), -length))


@given(
    st.integers(0, 64),
    st.integers(0, 80),
    st.integers(0, 16),
    st.sampled_from([1.0, 2.0, 2.5, 4.5]),
    st.integers(1, 16),
)
def test_it_asks_for_the_best_length(share: int, draft: int, row: int, free: float, most: int) -> None:
    pace = AdaptivePace(draft / 64, row / 64, free, most)
    found = pace._best_for(share / 64)
    exact = (Fraction(share, 64), Fraction(draft, 64), Fraction(row, 64), Fraction(free), most)
    wanted = best(*exact)
    if found != wanted:  # only where rounding can't tell both apart
        rates = [sum((share / 64) ** i for i in range(k + 1)) / pace.cost(k) for k in (found, wanted)]
        assert rates[0] == pytest.approx(rates[1], rel=1e-12)


@given(costs, st.integers(1, 16))
def test_the_first_round_drafts_by_the_prior(cost: tuple[float, float, float], most: int) -> None:
    exact = [Fraction(part) for part in cost]
    share = Fraction(ACCEPTED) / Fraction(VERDICTS)
    assert pace_of(cost, most).next_length([]) == best(share, exact[0], exact[1], exact[2], most)


def test_all_accepted_leads_to_the_largest_length_and_rejections_to_shorter_ones() -> None:
    pace = AdaptivePace(0.1, 0.02, 2)
    history: History = []
    lengths = []
    for _ in range(20):
        lengths.append(pace.next_length(history))
        history.append((lengths[-1], lengths[-1]))
    assert lengths == sorted(lengths)
    assert lengths[-1] == 8
    for _ in range(60):
        lengths.append(pace.next_length(history))
        history.append((lengths[-1], 0))
    stopped = lengths.index(0)
    assert stopped < 75
    assert lengths[20:stopped] == sorted(lengths[20:stopped], reverse=True)


# Stopping, probing, starting again.


def drafted(pace: Pace, accepted: Callable[[int, int], int], count: int) -> list[int]:
    """K of `count` rounds, of which accepted(round, K) are accepted."""
    history: History = []
    lengths: list[int] = []
    for number in range(count):
        lengths.append(pace.next_length(history))
        history.append((lengths[-1], accepted(number, lengths[-1])))
    return lengths


@pytest.mark.parametrize(("draft", "within"), [(0.1, 12), (0.25, 4), (0.55, 1)])
def test_drafting_stops_after_a_few_rounds_without_acceptance(draft: float, within: int) -> None:
    lengths = drafted(AdaptivePace(draft, 0.05, 2), lambda number, length: 0, within + 1)
    assert lengths[0] > 0
    assert lengths[within] == 0


def test_pauses_double_up_to_the_longest() -> None:
    lengths = drafted(AdaptivePace(0.25, 0.05, 2), lambda number, length: 0, 1000)
    stopped = lengths.index(0)
    probes = [number for number in range(stopped, 1000) if lengths[number]]
    assert all(lengths[number] == 1 for number in probes)
    ends = [stopped - 1, *probes]
    pauses = [end - begin - 1 for begin, end in pairwise(ends)]
    assert pauses[:6] == [SHORTEST, 8, 16, 32, 64, LONGEST]
    assert set(pauses[5:]) == {LONGEST}


def test_a_dear_probe_waits_longer() -> None:
    assert [AdaptivePace(draft, 0.0, 2).pause for draft in (0.0, 0.25, 0.5, 1.0, 100.0)] == [4, 4, 8, 16, 128]
    assert AdaptivePace(0.5, 0.0, 2, pause=1).pause == 1


def test_an_accepted_probe_starts_drafting_again() -> None:
    pace = AdaptivePace(0.25, 0.05, 2)
    lengths = drafted(pace, lambda number, length: length if number > 100 else 0, 200)
    woken = next(number for number in range(101, 200) if lengths[number])
    assert woken <= 100 + 65
    assert lengths[woken] == 1
    assert all(lengths[woken + 1 :])
    assert lengths[-1] == 8


def test_after_an_accepted_probe_the_next_pause_is_the_shortest_again() -> None:
    pace = AdaptivePace(0.9, 0.0, 2, pause=4)  # so dear that one success is not enough
    lengths = drafted(pace, lambda number, length: int(number == 4 + 1 + 8), 40)
    assert [number for number in range(40) if lengths[number]] == [4, 13, 18, 27]


def test_a_draft_that_costs_more_than_it_could_ever_save_is_never_asked() -> None:
    assert set(drafted(AdaptivePace(1.0, 0.0, 2), lambda number, length: length, 600)) == {0}


def test_rounds_with_nothing_to_propose_tell_nothing_and_a_due_probe_stays_due() -> None:
    pace = AdaptivePace(0.1, 0.02, 2)
    first = pace.next_length([])
    assert {pace.next_length([(0, 0)] * n) for n in range(50)} == {first}
    stopped: History = []
    while pace.next_length(stopped):
        stopped.append((1, 0))
    assert [pace.next_length(stopped + [(0, 0)] * n) for n in (3, 4, 5, 50)] == [0, 1, 1, 1]


class Watched(AdaptivePace):
    """Keeps what it was asked with, and what it answered."""

    def __init__(self) -> None:
        super().__init__(0.1, 0.02, 2)
        self.asked: list[History] = []
        self.answered: list[int] = []

    def next_length(self, history: History) -> int:
        self.asked.append(list(history))
        self.answered.append(super().next_length(history))
        return self.answered[-1]


def test_the_controller_tells_what_was_proposed_and_accepted() -> None:
    """Not what was asked for: an n-gram draft often has nothing to propose."""
    pace = Watched()
    ops = PlainOps([1, 2, 1], 4, Sampling())
    host = Host({"target": model(5, 4)}, ops)
    controller = speculate(
        [1, 2, 1],
        ops=ops,  # type: ignore[arg-type]
        chance=Chance(ops, Philox(3)),  # type: ignore[arg-type]
        rule=Residual(),
        draft=NgramDraft(least=2),
        pace=pace,
        stops=Stops(60),
    )
    counts = [emit.round for emit in drive(controller, host)]
    history = [(count.proposed, count.accepted) for count in counts]
    assert pace.asked == [history[:end] for end in range(len(history))]
    assert any(asked > count.proposed for asked, count in zip(pace.answered, counts, strict=True))
    assert any(count.accepted for count in counts)


# What it costs, in plain runs, over 128 tokens with independent verdicts.


def run_costs(pace: Pace, share: float, draft: float, row: float, free: float, seed: int) -> float:
    """Of 128 tokens; each verdict is an acceptance with probability `share`."""
    draw = random.Random(seed)
    history: History = []
    emitted, cost = 0, 0.0
    while emitted < 128:
        length = min(pace.next_length(history), 127 - emitted)
        accepted = 0
        while accepted < length and draw.random() < share:
            accepted += 1
        cost += 1 + length * draft + max(0.0, length + 1 - free) * row
        emitted += accepted + 1
        history.append((length, accepted))
    return cost


MODELS = [(0.1, 0.02), (0.1, 0.07), (0.15, 0.05), (0.25, 0.02), (0.25, 0.07), (0.4, 0.05), (0.55, 0.08), (0.9, 0.05)]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05])
@pytest.mark.parametrize(("draft", "row"), [(0.0, 0.02), (0.0, 0.07), *MODELS])
def test_a_useless_draft_costs_next_to_nothing(draft: float, row: float, share: float) -> None:
    """Seeds are fixed, so this can't fail by chance."""
    found = [run_costs(AdaptivePace(draft, row, 2), share, draft, row, 2, seed) for seed in range(40)]
    assert statistics.fmean(found) <= 1.03 * 128
    assert max(found) <= 1.05 * 128


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8, 0.9, 0.98])
@pytest.mark.parametrize(("draft", "row"), [(0.0, 0.02), (0.0, 0.07), *MODELS[:5]])
def test_a_good_draft_is_used_nearly_as_well_as_by_the_best_constant(draft: float, row: float, share: float) -> None:
    def mean(make: Callable[[], Pace]) -> float:
        return statistics.fmean(run_costs(make(), share, draft, row, 2, seed) for seed in range(40))

    constant = min(mean(lambda length=length: ConstantPace(length)) for length in range(9))  # type: ignore[misc]
    assert mean(lambda: AdaptivePace(draft, row, 2)) <= 1.07 * constant


REFUSED = [
    ((-0.1, 0.0), "cost `draft` is -0.1"),
    ((float("nan"), 0.0), "cost `draft` is nan"),
    ((float("inf"), 0.0), "cost `draft` is inf"),
    ((0.1, -1.0), "cost `row` is -1"),
    ((0.1, 0.0, 0), "0 rows come free"),
    ((0.1, 0.0, float("nan")), "nan rows come free"),
    ((0.1, 0.0, 1, 0), "largest speculation length is 0; it must be from 1 to 16"),
    ((0.1, 0.0, 1, 17), "largest speculation length is 17"),
    ((0.1, 0.0, 1, 8, 0), "shortest pause is 0 rounds"),
]


@pytest.mark.parametrize(("constants", "message"), REFUSED, ids=lambda value: str(value))
def test_constants_out_of_range_are_refused(constants: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AdaptivePace(*constants)  # type: ignore[arg-type]
