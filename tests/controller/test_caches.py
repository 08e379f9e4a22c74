"""The invariant of caches.py, fuzzed: whatever happens, each cache's valid prefix is decided text.

Drafts of every kind, K of every size, ends and options; the generator is closed at every yield there is, and a new one
goes on from the decided text with the same caches, the same draft and the same host.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import Caches, Chance, Emit, ModelDraft, NoDraft, Philox, Residual, Run, Stops, speculate
from tests.portable.toys import Host, model

SIZE = 5
ROLES = ("target", "draft")


class ScriptedPace:
    """K and go_on from lists of numbers."""

    def __init__(self, lengths: list[int], stops: list[bool]) -> None:
        self.lengths = lengths
        self.stops = stops

    def next_length(self, history: list[tuple[int, int]]) -> int:
        return self.lengths[len(history) % len(self.lengths)]

    def go_on(self, history: list[tuple[int, int]], drafted: list[int]) -> bool:
        return not self.stops[(len(history) + sum(drafted)) % len(self.stops)]


class World:
    """What outlives a generation: the models' caches and what is known of them, the draft, the decided text."""

    def __init__(self, text: list[int], draft: Any, pace: Any, sampling: Sampling, seed: int) -> None:
        self.text = text
        self.draft = draft
        self.pace = pace
        self.sampling = sampling
        self.seed = seed
        self.caches = Caches()
        self.kept: dict[str, list[int]] = {}
        self.models: dict[str, Any] = {"target": model(1, SIZE), "draft": model(2, SIZE - 1)}

    def generate(self, limit: int, patience: int, ends: tuple[int, ...] = (), breaks: bool = False) -> bool:
        """Up to `patience` yields, then close, or break a run half-way; whether the generation ended by itself."""
        ops = PlainOps(list(self.text), SIZE, self.sampling)
        host = Host(self.models, ops)
        host.caches = self.kept
        controller = speculate(
            self.text,
            ops=ops,
            chance=Chance(ops, Philox(self.seed)),
            rule=Residual(),
            draft=self.draft,
            pace=self.pace,
            stops=Stops(limit, ends=ends),
            caches=self.caches,
        )
        prompt = len(self.text)
        wish: Any = None
        answer: Any = None
        for step in range(patience):
            try:
                wish = controller.send(answer)
            except StopIteration:
                break
            if isinstance(wish, Emit):
                assert wish.tokens
                self.text = self.text + wish.tokens
                answer = None
            self.check()
            if not isinstance(wish, Emit) and step < patience - 1:
                assert all(isinstance(run, Run) for run in wish)
                answer = tuple(host.answer(run) for run in wish)
        else:
            if breaks and patience and not isinstance(wish, Emit):
                self.break_off(controller, wish)
            controller.close()
            self.check()
            assert len(ops.history) == len(self.text)
            assert list(ops.history._generated) == self.text[prompt:]
            assert ops._rows == ops._distributions == []
            return False
        self.check()
        assert len(ops.history) == len(self.text)
        return True

    def break_off(self, controller: Any, wish: tuple[Run, ...]) -> None:
        """A run fails after it has spoilt what it was to overwrite."""
        for run in wish:
            cache = self.kept.setdefault(run.role, [])
            cache[run.start :] = [-1] * len(run.tokens)
        with pytest.raises(OSError, match="the device is gone"):
            controller.throw(OSError("the device is gone"))

    def check(self) -> None:
        for role in ROLES:
            valid = self.caches.valid(role)
            assert self.kept.get(role, [])[:valid] == self.text[:valid]
            assert valid <= min(len(self.text), len(self.kept.get(role, [])))


DRAFTS = st.sampled_from([ModelDraft, ModelDraft, NoDraft, lambda: ModelDraft(9), lambda: ModelDraft(3)])
OPTIONS = st.sampled_from(
    [
        Sampling(),
        Sampling(temperature=0.0),
        Sampling(temperature=0.5, top_k=2, repetition_penalty=1.3, frequency_penalty=0.2),
        Sampling(logit_bias={0: -float("inf"), 1: -float("inf"), 2: -float("inf")}, top_p=0.9),
        Sampling(logit_bias={token: -float("inf") for token in range(SIZE - 1)}),  # the draft's rows are empty
    ]
)


@settings(max_examples=250)
@given(
    st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=4),
    DRAFTS,
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=1, max_size=5),
    OPTIONS,
    st.integers(0, 99),
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(0, 14), st.integers(0, 2), st.booleans()), min_size=1, max_size=5
    ),
)
def test_the_invariant_holds_at_every_yield_and_after_every_close(
    prompt: list[int], draft: Any, lengths: list[int], stops: list[bool], sampling: Sampling, seed: int, turns: Any
) -> None:
    world = World(prompt, draft(), ScriptedPace(lengths, stops), sampling, seed)
    for limit, patience, more, breaks in turns:
        world.generate(limit, patience, (3,) if limit % 2 else (), breaks)
        world.text = world.text + [more] * more  # a chat's next turn
        world.check()


@pytest.mark.parametrize("draft", [ModelDraft, NoDraft])
@pytest.mark.parametrize("length", [0, 1, 3])
def test_closing_at_each_yield_in_turn_does_not_change_the_greedy_text(draft: Any, length: int) -> None:
    """The same text, though the generation was broken off at yield 0, 1, 2, …, and taken up again."""
    pace = ScriptedPace([length], [False])
    whole = World([1, 2], draft(), pace, Sampling(temperature=0.0), 0)
    assert whole.generate(16, 1000)
    for patience in range(1, 12):
        broken = World([1, 2], draft(), pace, Sampling(temperature=0.0), 0)
        for _ in range(200):
            done = broken.generate(18 - len(broken.text), patience)
            if done or len(broken.text) == 18:
                break
            patience += 1  # or a generation broken off before its first Emit would never get on
        assert broken.text == whole.text


def test_a_generation_broken_off_leaves_nothing_that_the_next_one_counts_on() -> None:
    """Closed after the draft ran; the next generation drafts nothing and must not trust the draft's cache."""
    world = World([1, 2, 3], ModelDraft(), ScriptedPace([3], [False]), Sampling(), 1)
    world.generate(8, 3)  # three draft runs asked for, two answered
    assert world.caches.valid("draft") < 3
    world.pace = ScriptedPace([0], [False])
    assert world.generate(1, 100)
    assert world.caches.valid("draft") < 3
    assert world.caches.valid("target") == 3


def test_a_text_whose_end_was_accepted_can_be_taken_up_again() -> None:
    """Both caches then hold the whole text; its last token is run once more. A run that breaks there is not trusted."""
    world = World([0], ModelDraft(), ScriptedPace([4], [False]), Sampling(temperature=0.0), 0)
    world.models = {"target": counting, "draft": counting}
    assert world.generate(50, 100, ends=(2,))
    assert world.text == [0, 1, 2]
    assert world.caches.valid("target") == world.caches.valid("draft") == 3
    world.generate(50, 1, breaks=True)
    assert world.caches.valid("draft") == 2
    assert world.generate(2, 100)
    assert world.text == [0, 1, 2, 3, 4]


def test_a_target_run_that_breaks_where_a_whole_text_was_held_is_not_trusted() -> None:
    """Its last token is run once more, with no draft's run before: a cache that lost it there must not count it."""
    world = World([0], ModelDraft(), ScriptedPace([4], [False]), Sampling(temperature=0.0), 0)
    world.models = {"target": counting, "draft": counting}
    assert world.generate(50, 100, ends=(2,))
    assert world.caches.valid("target") == 3
    world.draft = NoDraft()
    world.generate(50, 1, breaks=True)
    assert world.caches.valid("target") == 2
    assert world.generate(2, 100)
    assert world.text == [0, 1, 2, 3, 4]


def counting(prefix: list[int]) -> list[float]:
    return [float(token == (prefix[-1] + 1) % SIZE) for token in range(SIZE)]


def valid_after(accepting: bool, length: int, limit: int = 50) -> tuple[int, int, int]:
    """Valid prefixes after the first round, and the text's length, with a draft that is always or never right."""
    text = [0, 1]
    ops = PlainOps(text, 2, Sampling(temperature=0.0))
    host = Host(
        {"target": lambda prefix: [0.0, 1.0], "draft": lambda prefix: [0.0, 1.0] if accepting else [1.0, 0.0]}, ops
    )
    caches = Caches()
    controller = speculate(
        text,
        ops=ops,
        chance=Chance(ops, Philox(0)),
        rule=Residual(),
        draft=ModelDraft(),
        pace=ScriptedPace([length], [False]),
        stops=Stops(limit),
        caches=caches,
    )
    wish: Any = next(controller)
    while not isinstance(wish, Emit):
        wish = controller.send(tuple(host.answer(run) for run in wish))
    return caches.valid("target"), caches.valid("draft"), 2 + len(wish.tokens)


def test_what_is_valid_after_a_round() -> None:
    """Target: base + 1 + a; draft: base + 1 + min(a, K - 1); both clamped by a cut. base = 1."""
    assert valid_after(accepting=False, length=3) == (2, 2, 3)
    assert valid_after(accepting=True, length=3) == (5, 4, 6)
    assert valid_after(accepting=True, length=1) == (3, 2, 4)
    assert valid_after(accepting=True, length=0) == (2, 0, 3)
