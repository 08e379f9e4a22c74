"""The controller end to end over toy models, against what CPython emitted, in any Python: asserts only."""

from __future__ import annotations

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.controller import (
    RULES,
    AdaptivePace,
    Caches,
    Chance,
    ConstantPace,
    Emit,
    ModelDraft,
    NgramDraft,
    NoDraft,
    Philox,
    Residual,
    Stops,
    UniformDraft,
    speculate,
)
from tests.portable import recorded
from tests.portable.suite_arithmetic import sampling
from tests.portable.toys import Host, generate, kinds_of, model, tokens_of

MAKERS = {"model": ModelDraft, "uniform": UniformDraft, "ngram": NgramDraft, "none": NoDraft}


def emits_of(setting, trace=False, pace=None):
    target, draft, columns, options, prompt, limit, length, seed, maker, ends, rule = setting
    return generate(
        model(target, 8),
        model(draft, columns),
        sampling(options),
        list(prompt),
        8,
        limit,
        length,
        seed,
        MAKERS[maker],
        ends,
        trace,
        RULES[rule],
        pace,
    )


def test_recorded_generations():
    for setting, tokens, kinds, reason in recorded.GENERATIONS:
        emits = emits_of(setting)
        assert tokens_of(emits) == list(tokens)
        assert "".join([kind[0] for kind in kinds_of(emits)]) == kinds
        assert emits[-1].reason == reason


def test_greedy_text_does_not_depend_on_the_draft():
    for target in range(6):
        texts = []
        for maker, length in (("none", 0), ("model", 1), ("model", 5), ("uniform", 3)):
            setting = (target, target + 1, 8, {"temperature": (0, 0)}, (1, 2), 14, length, 3, maker, (), "residual")
            texts.append(tokens_of(emits_of(setting)))
        assert texts == [texts[0]] * 4


def test_coupled_text_does_not_depend_on_the_draft():
    for seed in range(6):
        texts = []
        for maker, length in (("none", 0), ("model", 1), ("model", 5), ("uniform", 3), ("ngram", 4)):
            texts.append(tokens_of(emits_of((1, 2, 8, {}, (1, 2), 14, length, seed, maker, (), "coupled"))))
        assert texts == [texts[0]] * 5


def adaptive():
    return AdaptivePace(0.25, 0.0625, 2, 6, 2)


# K of each round where the number of accepted proposals goes round in a circle: some, none for long, all.
CIRCLE = (9, 1, 9) + 24 * (0,) + 13 * (9,)
LENGTHS = (
    1,
    2,
    1,
    2,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    0,
    0,
    1,
    0,
    0,
    0,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    1,
    1,
    1,
    2,
    2,
    3,
    4,
    6,
    6,
    6,
    6,
    6,
    6,
    6,
    6,
    6,
    6,
    4,
    3,
    3,
    2,
    2,
    2,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    1,
    0,
    0,
    1,
    0,
    0,
    0,
    0,
    1,
    1,
    1,
    2,
    3,
    4,
    5,
    6,
    6,
)


def test_an_adaptive_pace_gives_the_same_lengths_in_every_python():
    used = adaptive()
    history = []
    lengths = []
    for number in range(2 * len(CIRCLE)):
        lengths.append(used.next_length(history))
        assert lengths[-1] == adaptive().next_length(history)
        history.append((lengths[-1], min(lengths[-1], CIRCLE[number % len(CIRCLE)])))
    assert tuple(lengths) == LENGTHS
    assert [used.next_length(history[:n]) for n in range(len(history))] == lengths


def test_text_under_an_adaptive_pace():
    """Coupled and greedy texts are what they are without a draft; the history is what the rounds did."""
    seen = set()
    for target in range(4):
        for rule, options in (("coupled", {}), ("residual", {"temperature": (0, 0)})):
            for draft in (target, target + 1):
                plain = (target, draft, 8, options, (1, 2), 40, 0, 3, "none", (), rule)
                drafted = (target, draft, 8, options, (1, 2), 40, 0, 3, "model", (), rule)
                emits = emits_of(drafted, False, adaptive())
                assert tokens_of(emits) == tokens_of(emits_of(plain))
                history = []
                for emit in emits[:-1]:
                    assert emit.round.length == adaptive().next_length(history)
                    history.append((emit.round.proposed, emit.round.accepted))
                    seen.add(emit.round.length)
    assert sorted(seen)[:2] == [0, 1]
    assert len(seen) > 3


def test_counts_and_trace():
    for setting, _, _, _ in recorded.GENERATIONS:
        for emit in emits_of(setting, True):
            counts = emit.round
            assert counts.accepted == emit.kinds.count("accepted")
            assert counts.judged == counts.accepted + emit.kinds.count("recovered")
            assert counts.accepted <= counts.judged <= counts.proposed <= counts.length
            for judgement in emit.judgements:
                if judgement.kind == "bonus":
                    assert judgement.proposal_q is None
                elif setting[-1] == "coupled":
                    assert judgement.coin is None
                    assert judgement.predicted <= 1 - judgement.tv + 1 / (1 << 40)
                else:
                    assert judgement.predicted == 1 - judgement.tv
                    ours = int(judgement.coin * 1125899906842624)
                    assert ours < int(judgement.proposal_q * 1125899906842624)
                    if judgement.kind == "accepted":
                        assert judgement.coin < judgement.p


def controller_of(text, caches, host, ops, limit):
    return speculate(
        text,
        ops=ops,
        chance=Chance(ops, Philox(4)),
        rule=Residual(),
        draft=ModelDraft(),
        pace=ConstantPace(3),
        stops=Stops(limit),
        caches=caches,
    )


def test_closing_at_every_yield_leaves_caches_true():
    for patience in range(16):
        text = [1, 2, 3]
        caches = Caches()
        held = {}
        for _ in range(3):
            ops = PlainOps(list(text), 8, sampling({}))
            host = Host({"target": model(1, 8), "draft": model(2, 8)}, ops)
            host.caches = held
            controller = controller_of(list(text), caches, host, ops, 30)
            answer = None
            for _ in range(patience):
                wish = controller.send(answer)
                if isinstance(wish, Emit):
                    text = text + wish.tokens
                    answer = None
                else:
                    answer = tuple([host.answer(run) for run in wish])
            controller.close()
            if patience:
                assert len(ops.history) == len(text)
            for role in ("target", "draft"):
                valid = caches.valid(role)
                assert held.get(role, [])[:valid] == text[:valid]


def test_an_error_thrown_in_passes_through_and_leaves_the_history_true():
    ops = PlainOps([1, 2], 8, sampling({}))
    host = Host({"target": model(1, 8), "draft": model(2, 8)}, ops)
    controller = controller_of([1, 2], Caches(), host, ops, 30)
    host_answer = tuple([host.answer(run) for run in next(controller)])
    controller.send(host_answer)
    try:
        controller.throw(OSError("gone"))
        raise AssertionError("swallowed")
    except OSError:
        pass
    assert len(ops.history) == 2


def test_stops():
    stops = Stops(4, ends=(9,), sequences=((1, 2),), strings=lambda old, new: new[-1] == 5)
    assert stops.cut([], [0, 1, 2, 9]) == (3, "stop")
    assert stops.cut([1], [2, 9]) == (1, "stop")
    assert stops.cut([], [0, 9, 1]) == (2, "end-of-sequence")
    assert stops.cut([0, 0], [5]) == (1, "stop")
    assert stops.cut([0, 0], [0, 0, 0]) == (2, "length")
