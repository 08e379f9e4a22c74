"""What each option does, by hand; what each refuses, by name; and the history that penalties look at."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journee_deploy.arithmetic.history import History
from journee_deploy.arithmetic.plain import PlainOps, process
from journee_deploy.arithmetic.sampling import LARGEST, Sampling, SamplingError

INF = math.inf


def kept(logits: list[float], **options: Any) -> list[int]:
    """The tokens that these options leave a probability."""
    ops = PlainOps([0], len(logits), Sampling(**options))
    p = ops.vector(ops.distribution(ops.hold("target", 1, [logits])))
    return [token for token, weight in enumerate(p) if weight > 0.0]


def test_greedy_takes_the_lowest_of_the_largest() -> None:
    assert kept([1.0, 3.0, 3.0], temperature=0) == [1]
    assert kept([1.0, 3.0, 3.0], temperature=0, top_p=0.1, top_k=3, min_p=1.0) == [1]
    assert kept([1.0, 3.0, 3.0], temperature=5e-324) == [1, 2]  # tiny is not zero: ties share


def test_top_k_keeps_ties() -> None:
    logits = [2.0, 1.0, 2.0, 0.0, 1.0]
    assert [kept(logits, top_k=k) for k in range(6)] == [
        [0, 1, 2, 3, 4],
        [0, 2],
        [0, 2],
        [0, 1, 2, 4],
        [0, 1, 2, 4],
        [0, 1, 2, 3, 4],
    ]


def test_top_k_is_decided_on_logits_even_where_their_probabilities_are_equal() -> None:
    """Both have 2^50 units in step 6, but one is the larger logit."""
    assert kept([0.0, 2.0**-60], top_k=1) == [1]


def test_top_p_stops_once_the_mass_before_reaches_it() -> None:
    equal = [0.0] * 4  # 1/4 each, exactly
    assert kept(equal, top_p=5e-324) == [0]
    assert kept(equal, top_p=0.25) == [0]
    assert kept(equal, top_p=0.25 + 2.0**-54) == [0, 1]
    assert kept(equal, top_p=0.75) == [0, 1, 2]
    assert kept(equal, top_p=1.0 - 2.0**-53) == [0, 1, 2, 3]


def test_top_p_takes_the_best_token_first_among_equal_probabilities() -> None:
    """The larger logit is at 1; its probability is one half too, and 0 has the lower index."""
    assert kept([0.0, 2.0**-60]) == [0, 1]
    assert kept([0.0, 2.0**-60], top_p=0.5) == [1]


def test_min_p_is_relative_to_the_best_and_includes_equality() -> None:
    half = math.log(0.5)
    assert kept([0.0, 0.0, half - 1e-9], min_p=0.5) == [0, 1]
    assert kept([0.0, 0.0, half + 1e-9], min_p=0.5) == [0, 1, 2]
    assert kept([0.0, 0.0, half], min_p=1.0) == [0, 1]


def test_truncations_act_in_the_order_top_k_top_p_min_p() -> None:
    logits = [math.log(weight) for weight in (0.5, 0.2, 0.15, 0.1, 0.05)]
    assert kept(logits, top_p=0.8) == [0, 1, 2]
    assert kept(logits, top_p=0.8, top_k=3) == [0, 1]  # of three, 0.59 and 0.24 are enough
    assert kept(logits, top_p=0.8, min_p=0.35) == [0, 1]
    assert kept(logits, min_p=0.15) == [0, 1, 2, 3]


def processed(logits: list[float], prompt: list[int], generated: list[int], **options: Any) -> list[float]:
    history = History(prompt)
    for token in generated:
        history.push(token)
    return process(logits, len(logits), Sampling(**options), history, [])


def test_penalties_see_what_they_should() -> None:
    logits = [2.0, -2.0, 2.0, -2.0, 0.0]
    prompt, generated = [0, 1, 0], [2, 2, 3]
    assert processed(logits, prompt, generated, repetition_penalty=2.0) == [1.0, -4.0, 1.0, -4.0, 0.0]
    assert processed(logits, prompt, generated, frequency_penalty=0.5) == [2.0, -2.0, 1.0, -2.5, 0.0]
    assert processed(logits, prompt, generated, presence_penalty=0.5) == [2.0, -2.0, 1.5, -2.5, 0.0]
    assert processed(logits, [2], [2], repetition_penalty=2.0)[2] == 1.0  # once, however often seen


def test_bias_acts_before_repetition_and_repetition_before_the_subtractions() -> None:
    assert processed([-1.0], [0], [0], logit_bias={0: 3.0}, repetition_penalty=2.0, presence_penalty=0.25) == [0.75]


def test_options_at_their_defaults_do_nothing() -> None:
    logits = [0.1, -3.4e38, 1e-45, -INF]
    assert processed(logits, [0, 1, 2, 3], [0, 0, 3]) == logits


def test_ends_are_banned_until_enough_was_generated() -> None:
    ops = PlainOps([1, 1, 1], 2, Sampling(min_new_tokens=2), ends=[0, 7])  # 7 is past the vocabulary
    seen = []
    for _ in range(4):
        p = ops.vector(ops.distribution(ops.hold("draft", 3, [[0.0, 0.0]])))
        seen.append(p[0] > 0.0)
        ops.push(1)
    assert seen == [False, False, True, True]


REFUSED = [
    ("temperature", -1e-9),
    ("temperature", INF),
    ("temperature", math.nan),
    ("temperature", "warm"),
    ("temperature", None),
    ("top_k", -1),
    ("top_k", 1.5),
    ("top_k", INF),
    ("top_k", math.nan),
    ("top_k", "5"),
    ("top_k", None),
    ("top_p", 0.0),
    ("top_p", -0.1),
    ("top_p", 1.0000000000000002),
    ("top_p", math.nan),
    ("min_p", -5e-324),
    ("min_p", 1.0000000000000002),
    ("min_p", math.nan),
    ("repetition_penalty", 0.0),
    ("repetition_penalty", 0.00999),
    ("repetition_penalty", 100.1),
    ("repetition_penalty", math.nan),
    ("frequency_penalty", INF),
    ("frequency_penalty", -1e39),
    ("frequency_penalty", math.nan),
    ("presence_penalty", -INF),
    ("presence_penalty", 1e39),
    ("logit_bias", {-1: 0.0}),
    ("logit_bias", {1.5: 0.0}),
    ("logit_bias", {"a": 0.0}),
    ("logit_bias", {0: INF}),
    ("logit_bias", {0: math.nan}),
    ("logit_bias", {0: 1e39}),
    ("logit_bias", {0: "much"}),
    ("min_new_tokens", -1),
    ("min_new_tokens", 0.5),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=str)
def test_values_outside_their_range_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(SamplingError, match=name):
        Sampling(**{name: value})


def test_edges_of_the_ranges_are_allowed() -> None:
    Sampling(temperature=5e-324, top_k=10**9, top_p=5e-324, min_p=1, repetition_penalty=0.01, frequency_penalty=LARGEST)
    Sampling(temperature=1e308, top_p=1, repetition_penalty=100, presence_penalty=-LARGEST, min_new_tokens=10**6)
    assert Sampling(logit_bias={3: -INF, 1: LARGEST}).logit_bias == ((1, LARGEST), (3, -INF))


@given(st.lists(st.integers(0, 4), max_size=5), st.lists(st.integers(-6, 4), max_size=30))
def test_a_history_is_what_its_pushes_and_truncations_leave(prompt: list[int], moves: list[int]) -> None:
    """A negative move truncates so many tokens (as far as the prompt), others are pushed."""
    history = History(prompt)
    generated: list[int] = []
    for move in moves:
        if move < 0:
            generated = generated[: max(0, len(generated) + move)]
            history.truncate(len(prompt) + len(generated))
        else:
            generated.append(move)
            history.push(move)
        assert history.generated == len(generated)
        assert len(history) == len(prompt) + len(generated)
        assert history.counts == {token: generated.count(token) for token in set(generated)}
        assert sorted(history.seen()) == sorted(set(prompt) | set(generated))


def test_a_history_is_not_truncated_into_its_prompt_or_past_its_end() -> None:
    history = History([1, 2])
    history.push(3)
    for length in (1, 4):
        with pytest.raises(ValueError, match=f"cannot truncate a history of 3 tokens to {length}: its prompt has 2"):
            history.truncate(length)
