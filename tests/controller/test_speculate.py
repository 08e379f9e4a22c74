"""The generator's protocol, its counts and its trace, over toy models."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journee_deploy.arithmetic.arena import LogitsError
from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.arithmetic.vectors import VectorOps
from journee_deploy.controller import (
    RULES,
    Caches,
    Chance,
    ConstantPace,
    Emit,
    ModelDraft,
    NoDraft,
    Philox,
    Residual,
    Stops,
    UniformDraft,
    speculate,
)
from journee_deploy.protocols import Rule
from tests.portable.toys import Host, drive, generate, kinds_of, model, tokens_of

TARGET, DRAFT = model(3, 6), model(4, 6, spread=80)


class Setting:
    """A controller with its host, all parts at hand."""

    def __init__(self, prompt: list[int] | None = None, **changes: Any) -> None:
        self.prompt = prompt or [1, 2, 3]
        self.sampling = changes.pop("sampling", Sampling())
        self.ops = PlainOps(list(self.prompt), 6, self.sampling, changes.pop("banned", ()))
        self.host = Host(
            {"target": changes.pop("target", TARGET), "draft": changes.pop("draft_model", DRAFT)}, self.ops
        )
        self.caches = Caches()
        self.draws: Any = changes.pop("draws", None) or Philox(changes.pop("seed", 1))
        parts: dict[str, Any] = {
            "ops": self.ops,
            "chance": Chance(self.ops, self.draws),  # type: ignore[arg-type]
            "rule": Residual(),
            "draft": ModelDraft(),
            "pace": ConstantPace(3),
            "stops": Stops(12),
            "caches": self.caches,
        }
        self.controller = speculate(self.prompt, **(parts | changes))

    def emits(self) -> list[Any]:
        return drive(self.controller, self.host)


class Recording:
    """Philox, with its keys and bounds written down."""

    def __init__(self, seed: int) -> None:
        self._philox = Philox(seed)
        self.keys: list[tuple[int, int, int]] = []

    def below(self, n: int, key: tuple[int, int, int]) -> int:
        self.keys.append(key)
        return self._philox.below(n, key)


# Runs.


def test_the_first_round_asks_for_the_prompt_and_then_for_k_plus_one_rows() -> None:
    setting = Setting()
    setting.emits()
    first = setting.host.runs[:4]
    assert [(run.role, run.start, run.keep, len(run.tokens)) for run in first] == [
        ("draft", 0, 1, 3),
        ("draft", 3, 1, 1),
        ("draft", 4, 1, 1),
        ("target", 0, 4, 6),
    ]
    assert first[3].tokens[:3] == [1, 2, 3]
    assert first[3].tokens[3:5] == [first[1].tokens[0], first[2].tokens[0]]
    assert repr(first[1]) == f"Run('draft', {first[1].tokens}, start=3, keep=1)"


def test_later_runs_carry_only_what_the_caches_lack() -> None:
    setting = Setting(stops=Stops(40))
    rounds = [emit.round for emit in setting.emits()]
    targets = [run for run in setting.host.runs if run.role == "target"]
    assert [run.keep for run in targets] == [counts.proposed + 1 for counts in rounds]
    assert [len(run.tokens) for run in targets] == [counts.rows for counts in rounds]
    assert all(len(run.tokens) == run.keep for run in targets[1:])  # one undecided row and the proposals
    opening = [run for run in setting.host.runs if run.role == "draft" and len(run.tokens) == 2]
    accepted_all = [counts.accepted == counts.proposed == 3 for counts in rounds]
    assert len(opening) == sum(accepted_all[:-1]) > 0  # full acceptance makes the next draft run two tokens


def test_an_idle_draft_catches_up_in_one_run() -> None:
    class Pauses:
        def next_length(self, history: list[tuple[int, int]]) -> int:
            return 0 if 0 < len(history) < 5 else 2

        def go_on(self, history: list[tuple[int, int]], drafted: list[int]) -> bool:
            return True

    setting = Setting(pace=Pauses())
    setting.emits()
    lengths = [len(run.tokens) for run in setting.host.runs if run.role == "draft"]
    assert lengths[0] == 3
    assert max(lengths[2:]) >= 5


def test_no_run_needs_a_draft_where_there_is_none() -> None:
    for draft in (NoDraft(), UniformDraft()):
        setting = Setting(draft=draft)
        setting.emits()
        assert {run.role for run in setting.host.runs} == {"target"}


def test_prompts_without_tokens_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="the prompt has no tokens"):
        speculate([], **dict.fromkeys(("ops", "chance", "rule", "draft", "pace", "stops")))  # type: ignore[arg-type]


def test_a_prompt_is_copied() -> None:
    prompt = [1, 2]
    setting = Setting(prompt)
    setting.emits()
    assert prompt == [1, 2]


# Text.


@settings(max_examples=60)
@given(st.integers(0, 2**20), st.integers(1, 6), st.integers(1, 25), st.sampled_from([ModelDraft, UniformDraft]))
def test_greedy_text_is_the_same_for_every_k_and_draft(salt: int, length: int, limit: int, draft: Any) -> None:
    target, drafted = model(salt, 6), model(salt // 2 * 2, 6)  # the draft is the target for even salts
    greedy = Sampling(temperature=0.0, repetition_penalty=1.2, presence_penalty=0.1)

    def text(length: int, maker: Any) -> list[int]:
        return tokens_of(generate(target, drafted, greedy, [5, 0], 6, limit, length, 7, maker))

    assert text(length, draft) == text(0, NoDraft) == text(0, ModelDraft)


def test_greedy_text_is_the_argmax_of_each_row() -> None:
    text = [2, 2]
    for token in tokens_of(generate(TARGET, DRAFT, Sampling(temperature=0.0), text, 6, 20, 4, 1)):
        row = TARGET(text)
        assert token == row.index(max(row))
        text = [*text, token]


def test_one_seed_gives_one_text() -> None:
    texts = [tokens_of(generate(TARGET, DRAFT, Sampling(), [1], 6, 30, 3, seed)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_numpy_and_plain_ops_give_the_same_text() -> None:
    options = Sampling(temperature=0.8, top_p=0.95, top_k=5, repetition_penalty=1.1)
    for seed in range(10):
        setting = Setting(seed=seed, sampling=options, stops=Stops(30))
        wanted = setting.emits()
        ops = VectorOps([1, 2, 3], 6, options)
        host = Host({"target": _arrays(TARGET), "draft": _arrays(DRAFT)}, ops)
        controller = speculate(
            [1, 2, 3],
            ops=ops,
            chance=Chance(ops, Philox(seed)),
            rule=Residual(),
            draft=ModelDraft(),
            pace=ConstantPace(3),
            stops=Stops(30),
        )
        got = drive(controller, host)
        assert tokens_of(got) == tokens_of(wanted)
        assert kinds_of(got) == kinds_of(wanted)


def _arrays(logits: Any) -> Any:
    numpy = pytest.importorskip("numpy")
    return lambda prefix: numpy.array(logits(prefix), numpy.float32)


# Length.


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_k_is_clamped_to_what_is_left(limit: int) -> None:
    setting = Setting(pace=ConstantPace(8), stops=Stops(limit))
    emits = setting.emits()
    left = limit
    for emit in emits:
        assert emit.round.length == min(8, left - 1)
        assert emit.round.proposed <= left - 1
        left -= len(emit.tokens)
    assert left == 0
    assert [emit.reason for emit in emits] == [""] * (len(emits) - 1) + ["length"]


def test_a_pace_may_not_ask_for_less_than_nothing() -> None:
    class Backwards(ConstantPace):
        def next_length(self, history: list[tuple[int, int]]) -> int:
            return -1

    with pytest.raises(ValueError, match="speculation length is -1; it must be at least 0"):
        ConstantPace(-1)
    with pytest.raises(ValueError, match="the pace asks for -1 proposals in round 0"):
        Setting(pace=Backwards(0)).emits()


def test_go_on_is_asked_before_every_proposal_but_the_first_and_ends_the_drafting() -> None:
    asked: list[tuple[list[tuple[int, int]], list[int]]] = []

    class Asks(ConstantPace):
        def go_on(self, history: list[tuple[int, int]], drafted: list[int]) -> bool:
            asked.append((list(history), list(drafted)))
            return len(drafted) < 2

    emits = Setting(pace=Asks(5), stops=Stops(6)).emits()
    assert emits[0].round.proposed == 2
    assert emits[0].round.length == 5
    assert emits[0].round.empty == 0
    assert [len(drafted) for _, drafted in asked[:2]] == [1, 2]
    assert asked[0][0] == []
    assert asked[2][0] == [(2, emits[0].round.accepted)]


# Ends.


def test_nothing_after_an_accepted_end_is_emitted_or_counted() -> None:
    """Draft and target agree on 0, 1, 2, 3, …; 2 ends the text inside the run of accepted proposals."""

    def counting(prefix: list[int]) -> list[float]:
        return [float(token == (prefix[-1] + 1) % 6) * 99 for token in range(6)]

    setting = Setting(
        [5], target=counting, draft_model=counting, pace=ConstantPace(5), stops=Stops(50, ends=(2,)), trace=True
    )
    (emit,) = setting.emits()
    assert emit.tokens == [0, 1, 2]
    assert emit.kinds == ["accepted"] * 3
    assert emit.reason == "end-of-sequence"
    assert len(emit.judgements) == 3
    assert (emit.round.proposed, emit.round.judged, emit.round.accepted, emit.round.emitted) == (5, 3, 3, 3)
    assert (setting.caches.valid("target"), setting.caches.valid("draft")) == (4, 4)
    assert len(setting.ops.history) == 4


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
@pytest.mark.parametrize("length", [0, 1, 2, 5])
@pytest.mark.parametrize("rejecting", [False, True])
def test_rows_behind_the_end_or_a_rejection_are_never_looked_at(rejecting: bool, length: int, rule: type[Rule]) -> None:
    """Plain decoding does not run them: so a broken one, which would be an error, must not matter to a draft either."""

    def target(prefix: list[int]) -> list[float]:
        wrong = [a for a, b in zip(prefix[1:], prefix[:-1], strict=True) if a != (b + 1) % 6]
        behind = 2 in prefix[1:] or (rejecting and wrong)
        return [float("nan") if behind else 99.0 * (token == (prefix[-1] + 1) % 6) for token in range(6)]

    def draft(prefix: list[int]) -> list[float]:
        return [99.0 * (token == (prefix[-1] + (2 if rejecting else 1)) % 6) for token in range(6)]

    setting = Setting(
        [4], target=target, draft_model=draft, pace=ConstantPace(length), stops=Stops(9, ends=(2,)), rule=rule()
    )
    emits = setting.emits()
    assert tokens_of(emits) == [5, 0, 1, 2]
    assert emits[-1].reason == "end-of-sequence"


def test_an_end_may_be_the_recovered_or_the_bonus_token() -> None:
    seen = set()
    for seed in range(60):
        emits = Setting(seed=seed, stops=Stops(30, ends=(2,))).emits()
        text = tokens_of(emits)
        assert 2 not in text[:-1]
        assert (text[-1] == 2) == (emits[-1].reason == "end-of-sequence")
        if text[-1] == 2:
            seen.add(emits[-1].kinds[-1])
    assert seen == {"accepted", "recovered", "bonus"}


# Counts.


@settings(max_examples=80)
@given(st.integers(0, 999), st.integers(0, 5), st.integers(1, 30), st.booleans())
def test_a_rounds_counts_are_those_of_its_kinds(seed: int, length: int, limit: int, ends: bool) -> None:
    setting = Setting(seed=seed, pace=ConstantPace(length), stops=Stops(limit, ends=(3,) if ends else ()), trace=True)
    emits = setting.emits()
    for emit in emits:
        counts = emit.round
        assert counts.emitted == len(emit.tokens) == len(emit.kinds) == len(emit.judgements) >= 1
        assert counts.accepted == emit.kinds.count("accepted")
        assert counts.judged == counts.accepted + emit.kinds.count("recovered")
        assert counts.accepted <= counts.judged <= counts.proposed <= counts.length <= length
        assert emit.kinds[:-1] == ["accepted"] * (len(emit.kinds) - 1)
        if emit.kinds[-1] == "bonus":
            assert counts.accepted == counts.proposed
    assert all(not emit.reason for emit in emits[:-1])
    assert emits[-1].reason
    assert len(tokens_of(emits)) <= limit


# Draws.


@settings(max_examples=40)
@given(st.integers(0, 999), st.integers(0, 5))
def test_no_draw_is_used_twice(seed: int, length: int) -> None:
    recording = Recording(seed)
    setting = Setting(draws=recording, pace=ConstantPace(length), stops=Stops(40))
    emits = setting.emits()
    assert len(set(recording.keys)) == len(recording.keys)
    for purpose, position, number in recording.keys:
        assert purpose in range(4)
        assert number < len(emits)
        assert position >= len(setting.prompt)


# The trace.


@settings(max_examples=40)
@given(
    st.integers(0, 999),
    st.sampled_from([ModelDraft, UniformDraft, NoDraft]),
    st.sampled_from([Sampling(), Sampling(temperature=0.7, top_k=4, repetition_penalty=1.5, frequency_penalty=0.3)]),
)
def test_judgements_say_what_happened(seed: int, draft: Any, sampling: Sampling) -> None:
    """Each judgement against distributions made afresh from the text before the token."""
    setting = Setting(seed=seed, sampling=sampling, draft=draft(), stops=Stops(20), trace=True)
    generated: list[int] = []

    def fresh(role: str) -> tuple[Any, list[float]]:
        ops = PlainOps(list(setting.prompt), 6, sampling)
        for token in generated:
            ops.push(token)
        logits = [0.0] * 6 if role == "uniform" else setting.host.models[role](setting.prompt + generated)
        return ops, ops.vector(ops.distribution(ops.hold(role, 0, [logits])))

    for emit in setting.emits():
        for token, kind, judgement in zip(emit.tokens, emit.kinds, emit.judgements, strict=True):
            ops, p = fresh("target")
            q = fresh("draft" if draft is ModelDraft else "uniform")[1]
            assert (judgement.token, judgement.kind, judgement.p) == (token, kind, p[token])
            assert judgement.top == ops.top(0, 5)
            assert judgement.logits == ops.top_logits(0, 5)
            assert 0.0 <= judgement.coin < 1.0
            if kind == "bonus":
                assert judgement.proposal_q is judgement.proposal_p is judgement.proposal is judgement.tv is None
                assert sum(p[:token]) <= judgement.coin < sum(p[: token + 1])
            else:
                assert judgement.proposal_q == q[judgement.proposal] > 0.0
                assert judgement.coin < judgement.proposal_q
                assert judgement.tv == sum(max(a - b, 0.0) for a, b in zip(p, q, strict=True))
                assert (kind == "accepted") == (judgement.coin < p[judgement.proposal])
                assert kind == "recovered" or judgement.proposal == token
                assert kind == "accepted" or p[token] > q[token]
            generated.append(token)


def test_without_a_trace_there_are_no_judgements() -> None:
    assert all(emit.judgements == [] for emit in Setting().emits())


# What goes wrong.


def test_an_empty_draft_row_ends_the_drafting_and_is_counted() -> None:
    """The draft knows tokens 0 and 1 only, and 0 and 1 are banned."""
    banned = Sampling(logit_bias={0: -math.inf, 1: -math.inf})
    setting = Setting([2], sampling=banned, draft_model=model(9, 2), stops=Stops(4))
    emits = setting.emits()
    assert [emit.round.empty for emit in emits] == [1, 1, 1, 0]  # in the last round K is 0
    assert [emit.round.proposed for emit in emits] == [0] * 4
    assert kinds_of(emits) == ["bonus"] * 4
    assert {0, 1}.isdisjoint(tokens_of(emits))
    assert Setting([2], sampling=banned, draft=UniformDraft()).emits()[0].round.proposed == 3


def test_a_draft_row_may_run_empty_after_proposals() -> None:
    """The draft's only token is an end, allowed from the second generated token on; the penalty sees proposals."""
    setting = Setting(
        [2], sampling=Sampling(min_new_tokens=1), banned=(0,), draft_model=lambda prefix: [1.0], stops=Stops(4)
    )
    emits = setting.emits()
    assert emits[0].round.empty == 1
    assert emits[1].round.proposed > 0


def test_a_draft_whose_context_is_full_proposes_no_more() -> None:
    setting = Setting(draft=ModelDraft(5), pace=ConstantPace(4))
    emits = setting.emits()
    assert emits[0].round.proposed == emits[0].round.length == 3  # after 3, 4 and 5 tokens
    assert all(len(run.tokens) + run.start <= 5 for run in setting.host.runs if run.role == "draft")
    assert emits[-1].round.proposed == 0


def test_a_target_row_without_a_token_is_an_error_and_leaves_caches_true() -> None:
    setting = Setting(sampling=Sampling(logit_bias=dict.fromkeys(range(6), -math.inf)), draft=NoDraft())
    with pytest.raises(LogitsError, match="target logits at position 3: masking leaves no token"):
        setting.emits()
    assert setting.caches.valid("target") == 0
    assert len(setting.ops.history) == 3


@pytest.mark.parametrize("role", ["target", "draft"])
def test_broken_logits_stop_a_generation_by_name(role: str) -> None:
    def broken(prefix: list[int]) -> list[float]:
        return [0.0, math.nan, 0.0, 0.0, 0.0, 0.0] if len(prefix) == 7 else TARGET(prefix)

    setting = Setting(stops=Stops(20), **{"target" if role == "target" else "draft_model": broken})
    with pytest.raises(LogitsError, match=f"{role} logits at position 7: token 1 is NaN"):
        setting.emits()
    for name in ("target", "draft"):
        valid = setting.caches.valid(name)
        assert valid <= 7
    assert setting.ops._rows == []


def test_a_host_that_fails_leaves_caches_and_history_true() -> None:
    setting = Setting()
    next(setting.controller)
    with pytest.raises(OSError, match="the device is gone"):
        setting.controller.throw(OSError("the device is gone"))
    assert setting.caches.valid("draft") == 0
    assert len(setting.ops.history) == 3
    with pytest.raises(StopIteration):
        next(setting.controller)


def test_nothing_outlives_a_round_but_numbers() -> None:
    """Rows and distributions are cleared as a round begins: memory does not grow with the text."""
    setting = Setting(stops=Stops(40), pace=ConstantPace(0))
    began = 0
    wish: Any = next(setting.controller)
    while not (isinstance(wish, Emit) and wish.reason):
        if isinstance(wish, Emit):
            wish = next(setting.controller)
        else:
            assert setting.ops._rows == setting.ops._distributions == []
            began += 1
            wish = setting.controller.send(tuple(setting.host.answer(run) for run in wish))
    assert began == 40


def test_a_generation_ends_after_its_last_emit() -> None:
    setting = Setting(stops=Stops(1))
    wish: Any = next(setting.controller)
    while not isinstance(wish, Emit):
        wish = setting.controller.send(tuple(setting.host.answer(run) for run in wish))
    assert wish.reason == "length"
    with pytest.raises(StopIteration):
        setting.controller.send(())
