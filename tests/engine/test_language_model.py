"""Language models over a table: promises, options, refusals, early ends. No framework is needed for any of it."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journee_deploy.arithmetic.arena import LogitsError
from journee_deploy.arithmetic.sampling import SamplingError
from journee_deploy.checks import greedy_identical, rows_by_prefix
from journee_deploy.language_model import LanguageModel
from journee_deploy.request import Options, Request, RequestError
from journee_deploy.runtime import Rows, Step
from journee_deploy.text import Codec, TextError
from tests.engine.prefix_model import PrefixModel, hashed

shared_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@shared_fixtures
@given(st.integers(1, 9), st.integers(1, 40), st.sampled_from([{}, {"repetition_penalty": 1.5}]))
def test_greedy_text_is_the_plain_greedy_text(lm: LanguageModel, length: int, limit: int, options: Options) -> None:
    plain = lm.generate("the proof", max_new_tokens=limit, temperature=0, draft=False, **options)
    fast = lm.generate("the proof", max_new_tokens=limit, temperature=0, speculation_length=length, **options)
    assert fast.tokens == plain.tokens
    assert fast.text == plain.text
    assert len(fast.report.rounds) <= len(plain.report.rounds)


@shared_fixtures
@given(st.integers(0, 2**64 - 1), st.integers(1, 6))
def test_a_seed_gives_the_same_text_again_and_samples_differ(lm: LanguageModel, seed: int, length: int) -> None:
    options: Options = {"max_new_tokens": 24, "seed": seed, "speculation_length": length}
    first = lm.generate("the proof", **options)
    assert lm.generate("the proof", **options).tokens == first.tokens
    assert lm.generate("the proof", **{**options, "sample": 1}).tokens != first.tokens


def test_without_a_seed_one_is_drawn_and_told(lm: LanguageModel) -> None:
    first = lm.generate("the proof", max_new_tokens=24)
    again = lm.generate("the proof", max_new_tokens=24, seed=first.report.seed)
    assert again.tokens == first.tokens
    assert lm.generate("the proof", max_new_tokens=24).report.seed != first.report.seed


def test_a_stream_joined_is_the_text_and_gives_its_slots_back(lm: LanguageModel) -> None:
    stream = lm.stream("the proof", max_new_tokens=40, seed=3)
    text = "".join(stream)
    generation = stream.generation()
    assert text == generation.text == lm.generate("the proof", max_new_tokens=40, seed=3).text
    assert len(generation.kinds) == len(generation.tokens)
    for model in lm.engine.models.values():
        assert model.held(0) == 0
        assert not model.slots  # type: ignore[attr-defined]


@pytest.mark.parametrize("pieces", [0, 1, 5])
def test_a_stream_closed_early_gives_its_slots_back(lm: LanguageModel, pieces: int) -> None:
    with lm.stream("the proof", max_new_tokens=40, seed=3) as stream:
        read = "".join(next(stream) for _ in range(pieces))
    assert stream.generation().text == read
    assert list(stream) == []
    for model in lm.engine.models.values():
        assert not model.slots  # type: ignore[attr-defined]


def test_generations_interleave_and_run_in_threads(lm: LanguageModel) -> None:
    alone = [lm.generate("the proof", max_new_tokens=30, seed=seed).tokens for seed in range(4)]
    streams = [lm.stream("the proof", max_new_tokens=30, seed=seed) for seed in range(4)]
    while any([next(stream, None) is not None for stream in streams]):  # noqa: C419  # every stream advances
        pass
    assert [stream.generation().tokens for stream in streams] == alone
    found: dict[int, tuple[int, ...]] = {}

    def work(seed: int) -> None:
        found[seed] = tuple(lm.generate("the proof", max_new_tokens=30, seed=seed).tokens)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in range(4)] == alone


def test_an_abandoned_stream_that_the_collector_ends_inside_a_run_does_not_hang(codec: Codec) -> None:
    class Collecting(PrefixModel):
        def run(self, steps: Sequence[Step]) -> list[Rows]:
            gc.collect()
            return super().run(steps)

    lm = LanguageModel("toy", Collecting(hashed(codec.size, 1), codec.size), codec)
    abandoned: list[object] = [lm.stream("the proof", max_new_tokens=30, seed=1)]
    next(abandoned[0])  # type: ignore[call-overload]
    abandoned.append(abandoned)  # a cycle: only the collector frees it
    del abandoned
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(len(lm.generate("the proof", seed=2).tokens)), daemon=True)
    thread.start()
    thread.join(60)
    assert done == [64]
    assert not lm.target.slots  # type: ignore[attr-defined]


def test_the_report_adds_up(lm: LanguageModel) -> None:
    generation = lm.generate("the proof", max_new_tokens=60, seed=5, trace=True, speculation_length=5)
    report = generation.report
    kinds = list(generation.kinds)
    assert report.emitted == len(generation.tokens)
    assert report.accepted == kinds.count("accepted")
    assert report.judged == report.accepted + kinds.count("recovered")
    assert report.judged <= report.proposed
    assert len(report.rounds) == report.meter.runs["target"]
    assert sum(round_.rows for round_ in report.rounds) == lm.target.counters.rows
    assert [judgement.token for judgement in report.judgements] == list(generation.tokens)
    for judgement in report.judgements:
        assert judgement.p > 0
        if judgement.proposal_p is not None:
            assert judgement.coin is not None
            assert judgement.coin < (judgement.proposal_q or 0)
            assert (judgement.coin < judgement.proposal_p) == (judgement.kind == "accepted")
        if judgement.kind == "accepted":
            assert judgement.token == judgement.proposal
        if judgement.kind == "recovered":
            assert judgement.proposal != judgement.token
        assert dict(judgement.top)[judgement.top[0][0]] >= judgement.p
    assert 0 < (report.judged_acceptance or 0) < 1
    assert set(json.loads(json.dumps(generation.as_dict()))) == {"text", "tokens", "kinds", "report"}
    seconds = report.seconds()
    assert seconds["total"] >= seconds["target"] + seconds["draft"]


def test_judged_acceptance_is_what_the_distance_predicts(lm: LanguageModel) -> None:
    """Within 5 standard errors over some 1,500 verdicts: a false alarm once in 1.7 million, a bias of 0.07 seen."""
    judged = accepted = 0
    distances: list[float] = []
    for seed in range(20):
        report = lm.generate("the proof", max_new_tokens=100, seed=seed, trace=True).report
        judged += report.judged
        accepted += report.accepted
        distances += [judgement.tv for judgement in report.judgements if judgement.tv is not None]
    predicted = 1 - sum(distances) / len(distances)
    assert judged == len(distances) > 1000
    assert abs(accepted / judged - predicted) < 5 * (0.25 / judged) ** 0.5


def test_the_context_ends_the_text_before_the_limit(codec: Codec) -> None:
    model = PrefixModel(hashed(codec.size, 1), codec.size, context=20)
    lm = LanguageModel("toy", model, codec, draft=PrefixModel(hashed(codec.size, 1), codec.size, context=12))
    tokens = codec.encode("the proof")
    generation = lm.generate(tokens, max_new_tokens=100, seed=1)
    assert len(tokens) + len(generation.tokens) == 20
    assert generation.report.reason == "context"
    with pytest.raises(RequestError, match=r"has 20 tokens .* context of 20; shorten it to at most 19"):
        lm.generate([1] * 20)


def test_a_uniform_draft_and_none(codec: Codec) -> None:
    target = PrefixModel(hashed(codec.size, 1), codec.size)
    useless = LanguageModel("toy", target, codec, draft="uniform").generate("the proof", seed=1)
    assert useless.report.draft == "uniform"
    assert useless.report.proposed > 0
    plain = LanguageModel("toy", target, codec).generate("the proof", seed=1)
    assert plain.report.draft == "none"
    assert plain.report.proposed == 0
    assert set(plain.kinds) == {"bonus"}
    assert plain.report.acceptance_rate is None


def test_stops_end_the_text(lm: LanguageModel) -> None:
    whole = lm.generate("the proof", max_new_tokens=40, seed=7)
    start = next(i for i in range(8, 40) if "\ufffd" not in whole.text[i : i + 3])
    stop = whole.text[start : start + 3]
    cut = lm.generate("the proof", max_new_tokens=40, seed=7, stop=stop)
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.report.reason == "stop"
    token = whole.tokens[12]
    cut = lm.generate("the proof", max_new_tokens=40, seed=7, stop_tokens=[token])
    assert list(cut.tokens) == list(whole.tokens[: whole.tokens.index(token) + 1])
    assert cut.text == lm.codec.decode(cut.tokens[:-1])
    pair = list(whole.tokens[8:10])
    cut = lm.generate("the proof", max_new_tokens=40, seed=7, stop_tokens=[pair])
    assert list(cut.tokens[-2:]) == pair


def test_an_end_of_sequence_is_in_the_tokens_only(codec: Codec) -> None:
    def table(prefix: tuple[int, ...]) -> list[float]:
        end = len(prefix) == 6
        return [10.0 if token == (0 if end else 80) else -10.0 for token in range(codec.size)]

    model = PrefixModel(table, codec.size)
    lm = LanguageModel("toy", model, codec, draft=PrefixModel(table, codec.size), ends=(0,))
    generation = lm.generate([81, 82], temperature=0, speculation_length=8)
    assert list(generation.tokens) == [80, 80, 80, 80, 0]
    assert generation.text == codec.decode([80] * 4)
    assert generation.report.reason == "end-of-sequence"
    assert generation.report.accepted == 5
    assert generation.report.judged == 5


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"max_new_tokens": 0}, RequestError, "max_new_tokens is 0; it must be a whole number, at least 1"),
    ({"max_new_tokens": 2.5}, RequestError, "max_new_tokens is 2.5"),
    ({"max_new_tokens": "5"}, RequestError, "max_new_tokens is '5'"),
    ({"max_new_tokens": True}, RequestError, "max_new_tokens is True"),
    ({"speculation_length": 0}, RequestError, "speculation_length is 0.*draft=False"),
    ({"speculation_length": -1}, RequestError, "speculation_length is -1"),
    ({"speculation_length": 1.5}, RequestError, "speculation_length is 1.5"),
    ({"speculation_length": "auto", "draft": False}, RequestError, "speculation_length goes with a draft"),
    ({"speculation_length": "fast"}, RequestError, "speculation_length is 'fast'.*\"auto\""),
    ({"speculation_length": 2, "draft": False}, RequestError, "speculation_length goes with a draft"),
    ({"draft": "model"}, RequestError, "draft is 'model'"),
    ({"seed": -1}, RequestError, "seed is -1"),
    ({"seed": 1 << 64}, RequestError, f"from 0 to {2**64 - 1}"),
    ({"seed": 1.5}, RequestError, "seed is 1.5"),
    ({"sample": 1 << 32}, RequestError, "sample is"),
    ({"rule": "blok"}, RequestError, "no rule 'blok'; there is: residual"),
    ({"temperature": -0.1}, SamplingError, "temperature is -0.1"),
    ({"temperature": float("nan")}, SamplingError, "temperature is nan"),
    ({"temperature": float("inf")}, SamplingError, "temperature is inf"),
    ({"temperature": True}, RequestError, "temperature is True"),
    ({"temperature": 10**400}, SamplingError, "temperature is 1000"),
    ({"logit_bias": {5: 10**400}}, SamplingError, "logit_bias for token 5 is 1000"),
    ({"temperature": "hot"}, RequestError, "temperature is 'hot'"),
    ({"top_p": 0.0}, SamplingError, "top_p is 0"),
    ({"top_p": 1.1}, SamplingError, "top_p is 1.1"),
    ({"top_p": -0.1}, SamplingError, "top_p is -0.1"),
    ({"top_k": -1}, SamplingError, "top_k is -1"),
    ({"top_k": 1.5}, SamplingError, "top_k is 1.5"),
    ({"min_p": 1.5}, SamplingError, "min_p is 1.5"),
    ({"repetition_penalty": 0.0}, SamplingError, "repetition_penalty is 0"),
    ({"frequency_penalty": float("inf")}, SamplingError, "frequency_penalty is inf"),
    ({"presence_penalty": None}, RequestError, "presence_penalty is None"),
    ({"logit_bias": {99999: 1.0}}, SamplingError, "logit_bias names token 99999"),
    ({"min_new_tokens": -1}, SamplingError, "min_new_tokens is -1"),
    ({"stop": ""}, TextError, "stop string ''"),
    ({"stop": None}, RequestError, "stop is None; give a list"),
    ({"stop": [5]}, RequestError, "stop has 5"),
    ({"stop_tokens": [[]]}, RequestError, "stop_tokens has an empty sequence"),
    ({"stop_tokens": 5}, RequestError, "stop_tokens is 5; give a list"),
    ({"stop_tokens": [-1]}, RequestError, "a token of stop_tokens is -1"),
    ({"stop_tokens": [99999]}, TextError, "token 99999 is outside"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED, ids=lambda value: str(value))
def test_bad_options_are_refused_before_anything_runs(
    lm: LanguageModel, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lm.stream("the proof", **options)
    assert lm.target.counters.runs == 0


def test_an_unknown_option_is_refused(lm: LanguageModel) -> None:
    with pytest.raises(TypeError, match="top_q"):
        lm.generate("the proof", top_q=0.5)  # type: ignore[call-arg]


def test_options_and_request_name_the_same_things() -> None:
    assert set(Options.__annotations__) == set(Request.__dataclass_fields__)


@shared_fixtures
@given(st.integers(0, 2**64 - 1), st.integers(1, 6), st.sampled_from([{}, {"top_p": 0.8, "repetition_penalty": 1.3}]))
def test_coupled_text_is_the_seeds_alone(lm: LanguageModel, seed: int, length: int, options: Options) -> None:
    shared: Options = {"max_new_tokens": 16, "seed": seed, "rule": "coupled", "sample": 2, **options}
    plain = lm.generate("the proof", draft=False, **shared)
    texts = {plain.tokens}
    for draft in (lm.engine.models["draft"], "ngram", "uniform"):
        other = LanguageModel("toy", lm.target, lm.codec, draft=draft, ends=lm.ends)
        found = other.generate("the proof", speculation_length=length, trace=True, **shared)
        texts.add(found.tokens)
        if found.report.judged:
            assert 0 <= (found.report.predicted_acceptance or 0) <= 1 - (found.report.tv_distance or 0) + 1e-12
    assert texts == {plain.tokens}
    assert len(plain.report.rounds) == len(plain.tokens)


def test_an_ngram_draft_speeds_up_a_text_that_repeats(codec: Codec) -> None:
    """With no second model: a greedy loop is found in the text itself, and takes fewer target runs."""
    table = hashed(codec.size, 1)
    model = PrefixModel(lambda prefix: table(prefix[-1:]), codec.size)  # looks one token back, so it soon repeats
    lm = LanguageModel("toy", model, codec, draft="ngram")
    plain = lm.generate([70, 71], max_new_tokens=200, temperature=0, draft=False)
    fast = lm.generate([70, 71], max_new_tokens=200, temperature=0)
    assert fast.tokens == plain.tokens
    assert fast.report.draft == "ngram"
    assert len(fast.report.rounds) < len(plain.report.rounds) / 2
    assert "draft" not in lm.engine.models


def test_coupled_needs_a_row_rule(codec: Codec) -> None:
    lm = LanguageModel("toy", PrefixModel(hashed(codec.size, 1), codec.size, rule=None), codec, draft="ngram")
    with pytest.raises(RequestError, match=r"rows of toy may change .* no row rule \(switched off for a test\)"):
        lm.stream("the proof", rule="coupled")
    assert lm.generate("the proof", rule="residual", max_new_tokens=3).report.row_rule is None


def test_coupled_refuses_a_vocabulary_that_its_boxes_cannot_number(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm = LanguageModel("toy", PrefixModel(hashed(codec.size, 1), codec.size), codec)
    monkeypatch.setattr("journee_deploy.language_model.LARGEST", codec.size)
    lm.stream("the proof", rule="coupled").close()
    monkeypatch.setattr("journee_deploy.language_model.LARGEST", codec.size - 1)
    with pytest.raises(RequestError, match="darts for"):
        lm.stream("the proof", rule="coupled")


def test_a_length_without_a_draft_is_refused(codec: Codec) -> None:
    lm = LanguageModel("toy", PrefixModel(hashed(codec.size, 1), codec.size), codec)
    with pytest.raises(RequestError, match="speculation_length is 3 and toy has no draft"):
        lm.stream("the proof", speculation_length=3)
    with pytest.raises(RequestError, match="speculation_length is auto and toy has no draft"):
        lm.stream("the proof", speculation_length="auto")


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.uint8])
def test_integers_of_any_kind_give_the_same_text(lm: LanguageModel, kind: type[Any]) -> None:
    wanted = lm.generate([70, 71], max_new_tokens=12, seed=7, sample=3, stop_tokens=[5])
    found = lm.generate(
        np.array([70, 71], kind), max_new_tokens=kind(12), seed=kind(7), sample=kind(3), stop_tokens=[kind(5)]
    )
    assert found.tokens == wanted.tokens
    json.dumps(found.as_dict())


@pytest.mark.parametrize("prompt", ["a\ud800", "\udcff"])
def test_text_that_is_no_unicode_is_refused(lm: LanguageModel, prompt: str) -> None:
    with pytest.raises(TextError, match="the prompt is no Unicode text at character"):
        lm.generate(prompt)
    with pytest.raises(TextError, match="a stop string is no Unicode text at character"):
        lm.generate("a", stop=prompt)


@pytest.mark.parametrize("prompt", [None, 5, [1.5], ["a"], [True], b"abc", {5, 6}])
def test_a_prompt_that_is_no_text_or_tokens_is_refused(lm: LanguageModel, prompt: Any) -> None:
    with pytest.raises((RequestError, TextError), match=r"prompt|token"):
        lm.generate(prompt)


def test_penalties_and_biases_reach_the_distributions(lm: LanguageModel) -> None:
    first = lm.generate("the proof", temperature=0, max_new_tokens=20)
    banned = lm.generate("the proof", temperature=0, max_new_tokens=20, logit_bias={first.tokens[0]: -float("inf")})
    assert first.tokens[0] not in banned.tokens
    options: Options = {"temperature": 0, "max_new_tokens": 20, "min_new_tokens": 20}
    once = lm.generate("the proof", **options, presence_penalty=1e6)
    assert len(set(once.tokens)) == 20
    assert lm.generate("the proof", **options, frequency_penalty=1e6).tokens == once.tokens


def test_min_new_tokens_holds_the_end_back(codec: Codec) -> None:
    model = PrefixModel(lambda prefix: [5.0] + [0.0] * (codec.size - 1), codec.size)
    lm = LanguageModel("toy", model, codec, draft="uniform", ends=(0,))
    assert len(lm.generate([1], temperature=0, max_new_tokens=20).tokens) == 1
    late = lm.generate([1], temperature=0, max_new_tokens=20, min_new_tokens=7)
    assert late.tokens.index(0) == 7


@pytest.mark.parametrize("prompt", ["", []])
def test_an_empty_prompt_is_refused(lm: LanguageModel, prompt: str | list[int]) -> None:
    with pytest.raises(RequestError, match="prompt is empty"):
        lm.generate(prompt)


def test_prompt_tokens_outside_the_vocabulary_are_refused(lm: LanguageModel) -> None:
    with pytest.raises(TextError, match="outside the vocabulary"):
        lm.generate([5, 100_000])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("role", ["target", "draft"])
def test_broken_logits_stop_the_text_and_give_the_slots_back(codec: Codec, role: str, value: float) -> None:
    good = hashed(codec.size, 1)

    def broken(prefix: tuple[int, ...]) -> list[float]:
        row = list(good(prefix))
        if len(prefix) > 9:
            row[5] = value
        return row

    models = {"target": PrefixModel(good, codec.size), "draft": PrefixModel(good, codec.size)}
    models[role] = PrefixModel(broken, codec.size)
    lm = LanguageModel("toy", models["target"], codec, draft=models["draft"])
    with pytest.raises(LogitsError, match=rf"{role} logits at position \d+: token 5 is"):
        lm.generate("the proof", seed=1)
    assert not models["target"].slots
    assert not models["draft"].slots


def test_a_tokenizer_larger_than_a_model_is_refused(codec: Codec) -> None:
    good = PrefixModel(hashed(codec.size, 1), codec.size)
    with pytest.raises(RequestError, match="gives 10 logits a row"):
        LanguageModel("toy", good, codec, draft=PrefixModel(hashed(10, 1), 10))
    with pytest.raises(RequestError, match=f"gives 10 logits a row, the tokenizer has {codec.size}"):
        LanguageModel("toy", PrefixModel(hashed(10, 1), 10), codec)


def test_without_a_row_rule_only_the_law_is_promised(codec: Codec) -> None:
    lm = LanguageModel("toy", PrefixModel(hashed(codec.size, 1), codec.size, rule=None), codec, draft="uniform")
    report = lm.generate("the proof", seed=1, temperature=0).report
    assert report.row_rule is None
    assert report.row_rule_note == "switched off for a test"
    check = greedy_identical(lm, "the proof", 16, 4)
    assert check.identical is None
    assert "no row rule: switched off" in check.note


def test_the_checks_see_a_model_whose_rows_depend_on_the_split(lm: LanguageModel, codec: Codec) -> None:
    tokens = codec.encode("the proof obligation is naïve " * 4)
    fine = rows_by_prefix(lm.target, tokens)
    assert fine.different == 0
    assert fine.compared == 8 * len(tokens)

    class Split(PrefixModel):
        def run(self, steps: Sequence[Step]) -> list[Rows]:
            rows = super().run(steps)
            return [part + np.float32(len(step.tokens) % 3 * 1e-3) for part, step in zip(rows, steps, strict=True)]

    assert rows_by_prefix(Split(hashed(codec.size, 1), codec.size), tokens).different > 0
    crooked = LanguageModel("toy", lm.target, codec, draft="uniform")
    assert greedy_identical(crooked, "the proof", 16, 4).identical is True

    class Drifting(PrefixModel):
        """Rows that say something else when several are asked for."""

        def run(self, steps: Sequence[Step]) -> list[Rows]:
            rows = super().run(steps)
            return [part[:, ::-1] if step.keep > 1 else part for part, step in zip(rows, steps, strict=True)]

    drifting = LanguageModel("toy", Drifting(hashed(codec.size, 1), codec.size), codec, draft="uniform")
    check = greedy_identical(drifting, "the proof", 16, 4)
    assert check.identical is False
    assert "token 0 is" in check.note


def test_a_greedy_text_that_goes_on_too_long_is_told(codec: Codec) -> None:
    class Endless(PrefixModel):
        """Its end-of-sequence never comes when several rows are asked for."""

        def run(self, steps: Sequence[Step]) -> list[Rows]:
            rows = super().run(steps)
            for part, step in zip(rows, steps, strict=True):
                if step.keep > 1:
                    part[:, 0] = -9.0
            return rows

    table = [1.0, 0.5] + [0.0] * (codec.size - 2)
    model = Endless(lambda prefix: table if len(prefix) > 5 else table[::-1], codec.size)
    check = greedy_identical(LanguageModel("toy", model, codec, draft="uniform", ends=(0,)), "the proof", 16, 4)
    assert check.identical is False
    assert "token" in check.note


def test_the_first_token_has_the_target_law(lm: LanguageModel, codec: Codec) -> None:
    """A G-like check of the whole stack on one token: 4,000 seeds, the likeliest token's count within 5.5 sigma."""
    probe = lm.generate("the proof", max_new_tokens=1, seed=0, trace=True).report.judgements[0]
    token, p = probe.top[0]
    prompt = codec.encode("the proof")
    counts = sum(lm.generate(prompt, max_new_tokens=2, seed=seed).tokens[0] == token for seed in range(4000))
    sigma = (4000 * p * (1 - p)) ** 0.5
    assert abs(counts - 4000 * Fraction(p)) < 5.5 * sigma
