"""`LanguageModel`: a target, perhaps a draft, and a tokenizer, ready to generate.

    lm = journee_deploy.load("artifacts/tiny")
    print(lm.generate("The proof obligation is", max_new_tokens=64, seed=42).text)

It puts together what the other modules do: options (request), tokens (text), distributions (arithmetic), decisions
(controller), runs (engine), counts (report).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Unpack

import numpy as np

from journee_deploy.arithmetic.vectors import VectorOps, check_denormals
from journee_deploy.controller import (
    RULES,
    Chance,
    ConstantPace,
    Emit,
    ModelDraft,
    NgramDraft,
    NoDraft,
    Stops,
    UniformDraft,
    speculate,
)
from journee_deploy.controller.darts import LARGEST
from journee_deploy.controller.stops import CONTEXT, LENGTH
from journee_deploy.costs import CostMeter, Costs
from journee_deploy.draws import VectorPhilox
from journee_deploy.engine import Engine, Meter
from journee_deploy.protocols import Draft, Pace, Rule
from journee_deploy.report import Generation, Report
from journee_deploy.request import Options, Request, RequestError
from journee_deploy.runtime import Model
from journee_deploy.text import Codec, Piece, Pieces, StopStrings


@dataclass(frozen=True, slots=True)
class Instruments:
    """What a generation computes with; a profile puts timed ones in their place."""

    ops: type[VectorOps] = VectorOps
    chance: type[Chance] = Chance


DraftKind = Literal["model", "ngram", "uniform", "none"]


class LanguageModel:
    """Generates text with exactly the target's distribution, drafting ahead where there is a draft.

    name    what messages call it
    models  "target", and "draft" where a model drafts
    draft   who proposes: the draft model, what followed the last tokens earlier in the text ("ngram"), equal chances
            ("uniform": useless, for tests), or nobody
    ends    end-of-sequence tokens
    costs   what drafting costs, for speculation_length="auto"; None measures it when that is first asked for
    """

    def __init__(
        self,
        name: str,
        target: Model,
        codec: Codec,
        *,
        draft: Model | DraftKind = "none",
        ends: Sequence[int] = (),
        costs: Costs | None = None,
    ) -> None:
        self.name = name
        self.codec = codec
        self.target = target
        self.ends = tuple(ends)
        models = {"target": target}
        if not isinstance(draft, str):
            models["draft"] = draft
        self.draft: DraftKind = draft if isinstance(draft, str) else "model"
        self.engine = Engine(models)
        self.instruments = Instruments()
        self._costs = CostMeter(target, models.get("draft"), codec.size, costs)
        for model in models.values():
            if model.vocabulary_size < codec.size:
                raise RequestError(
                    f"{model.name} gives {model.vocabulary_size} logits a row, the tokenizer has {codec.size} tokens; "
                    "export the model again with its own tokenizer"
                )
        codec.check(self.ends)

    def generate(self, prompt: str | Sequence[int], **options: Unpack[Options]) -> Generation:
        """The whole text after `prompt`, with its tokens, their kinds and the report. Options:
        journee_deploy.Request.
        """
        stream = self.stream(prompt, **options)
        for _ in stream:
            pass
        return stream.generation()

    def stream(self, prompt: str | Sequence[int], **options: Unpack[Options]) -> Stream:
        """The text after `prompt` in pieces as they become final, none of which splits a character.

        Refusals come here, before anything runs. Stop early by `close()` or by leaving a `with` block; a text cut by
        its reader has not the target's law.
        """
        return Stream(self, prompt, Request(**options))

    def drafting(self, request: Request) -> Draft:
        """Who proposes in a generation."""
        if request.draft and self.draft == "none" and request.speculation_length is not None:
            raise RequestError(
                f"speculation_length is {request.speculation_length} and {self.name} has no draft; "
                "load it with a draft, or leave the length out for plain decoding"
            )
        if not request.draft or self.draft == "none":
            return NoDraft()
        if self.draft == "ngram":
            return NgramDraft()
        if self.draft == "uniform":
            return UniformDraft()
        return ModelDraft(self.engine.models["draft"].context_length)

    def pace(self, request: Request, draft: Draft, rule: Rule) -> tuple[Pace, dict[str, Any]]:
        """How far a generation drafts, and that in the report's words. Costs that aren't known yet are measured."""
        length = 0 if isinstance(draft, NoDraft) and draft.name == "none" else request.length()
        if not isinstance(length, str):
            return ConstantPace(length), {"kind": "constant", "length": length}
        with self.engine.idle():
            costs, source = self._costs.costs(draft, rule, greedy=request.temperature == 0)
        return costs.pace(), {"kind": "adaptive", "source": source, **costs.as_dict()}

    def rule(self, request: Request) -> Rule:
        """How rounds decide, refused where the rule can't keep its promise."""
        if request.rule == "coupled":
            if self.target.row_rule is None:
                raise RequestError(
                    "rule coupled promises the same text with any draft, and rows of "
                    f"{self.name} may change with the run they are in, since it has no row rule "
                    f'({self.target.row_rule_note}); use rule="residual"'
                )
            if self.codec.size > LARGEST:
                raise RequestError(
                    f"rule coupled has darts for {LARGEST} tokens and {self.name} has {self.codec.size}; "
                    'use rule="residual"'
                )
        return RULES[request.rule]()

    def close(self) -> None:
        """Free the models."""
        self.engine.close()

    def __enter__(self) -> LanguageModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Stream(Iterator[Piece]):
    """One generation under way: iterate for pieces of text; `generation()` is what there is so far, or in all."""

    def __init__(self, lm: LanguageModel, prompt: str | Sequence[int], request: Request) -> None:
        tokens = _tokens(lm, prompt, request.special)
        limit = min(request.max_new_tokens, lm.target.context_length - len(tokens))
        strings = StopStrings(lm.codec, request.stop_strings())
        sequences = request.stop_sequences()
        for sequence in sequences:
            lm.codec.check(sequence)
        draft = lm.drafting(request)
        rule = lm.rule(request)
        seed = secrets.randbits(64) if request.seed is None else request.seed
        ops = lm.instruments.ops(tokens, lm.codec.size, request.sampling(), lm.ends)
        pace, told = lm.pace(request, draft, rule)  # last, since it may measure: nothing runs before all is checked
        controller = speculate(
            tokens,
            ops=ops,
            chance=lm.instruments.chance(ops, VectorPhilox(seed, request.sample)),
            rule=rule,
            draft=draft,
            pace=pace,
            stops=Stops(
                limit,
                reason=LENGTH if limit == request.max_new_tokens else CONTEXT,
                ends=lm.ends,
                sequences=sequences,
                strings=strings if strings.strings else None,
            ),
            trace=request.trace,
        )
        row_rule = lm.target.row_rule
        self._report = Report(
            rule=request.rule,
            draft=draft.name,
            seed=seed,
            sample=request.sample,
            prompt_tokens=len(tokens),
            row_rule=None if row_rule is None else str(row_rule),
            row_rule_note=lm.target.row_rule_note,
            pace=told,
            meter=Meter(),
        )
        self._tokens: list[int] = []
        self._kinds: list[str] = []
        self._text: list[Piece] = []
        self._ready: list[Piece] = []
        self._pieces = Pieces(lm.codec, strings.strings, sequences)
        self._emits = lm.engine.drive(controller, ops, self._report.meter)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Piece:
        while not self._ready:
            check_denormals()  # a flag of the thread that samples, which may be another one each time
            self._take(next(self._emits))
        piece = self._ready.pop(0)
        self._text.append(piece)
        return piece

    def _take(self, emit: Emit) -> None:
        self._tokens += emit.tokens
        self._kinds += emit.kinds
        self._report.rounds.append(emit.round)
        self._report.judgements += emit.judgements
        self._report.reason = emit.reason
        self._ready += self._pieces.feed(emit.tokens, emit.kinds, emit.reason)

    def generation(self) -> Generation:
        """What was generated so far; the text holds the pieces that were read."""
        return Generation("".join(self._text), tuple(self._tokens), tuple(self._kinds), self._report)

    def close(self) -> None:
        """End the generation early and give its caches back; pieces not read yet are dropped."""
        self._ready.clear()
        self._emits.close()  # type: ignore[attr-defined]  # a generator

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _tokens(lm: LanguageModel, prompt: str | Sequence[int], special: bool) -> list[int]:
    """The prompt's tokens, refused where there are none or too many."""
    tokens = lm.codec.encode(prompt, special) if isinstance(prompt, str) else _given(lm, prompt)
    if not tokens:
        raise RequestError("the prompt is empty; give at least one character or token")
    if len(tokens) >= lm.target.context_length:
        raise RequestError(
            f"the prompt has {len(tokens)} tokens and {lm.target.name} has a context of {lm.target.context_length}; "
            f"shorten it to at most {lm.target.context_length - 1}"
        )
    return tokens


def _given(lm: LanguageModel, prompt: Sequence[int]) -> list[int]:
    if isinstance(prompt, bytes | bytearray) or not isinstance(prompt, Sequence | np.ndarray):
        raise RequestError(f"the prompt is {prompt!r}; give a text or a list of tokens")
    lm.codec.check(prompt)
    return [int(token) for token in prompt]
