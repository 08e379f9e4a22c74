"""The bundle's models, opened once, and language models over them with any draft."""

from __future__ import annotations

from dataclasses import dataclass

from journee_deploy.language_model import DraftKind, LanguageModel
from journee_deploy.protocols import Rule
from journee_deploy.request import Request, RequestError
from journee_deploy.runtime import Model
from journee_deploy.text import Codec

PROMPTS = (
    "The proof obligation is",
    "Once upon a time there was a king who had",
    "def add(a, b):\n    return",
    "1, 2, 3, 4, 5,",
    "She said: ",
    "No one has ever seen",
    "the cat and the dog and the cat and the dog and",
    "A, B, A, B, A,",
)
"""Plain ASCII, which every tokenizer has tokens for. The last two repeat themselves, for n-gram drafts."""

MOST_TOKENS = 96


@dataclass(frozen=True, slots=True)
class Models:
    """A target, perhaps a draft model, a tokenizer, and which draft is to be verified."""

    name: str
    target: Model
    draft: Model | None
    codec: Codec
    ends: tuple[int, ...]
    kind: DraftKind

    @classmethod
    def of(cls, lm: LanguageModel) -> Models:
        """Those of a loaded bundle. Without a draft of its own, n-gram proposals are what is verified."""
        kind: DraftKind = "ngram" if lm.draft == "none" else lm.draft
        return cls(lm.name, lm.target, lm.engine.models.get("draft"), lm.codec, lm.ends, kind)

    def lm(self, kind: DraftKind | None = None, rule: type[Rule] | None = None) -> LanguageModel:
        """A language model over the same models; `rule` is one that no request can ask for."""
        chosen = kind or self.kind
        draft = self.drafting() if chosen == "model" else chosen
        if rule is None:
            return LanguageModel(self.name, self.target, self.codec, draft=draft, ends=self.ends)
        return _Ruled(self.name, self.target, self.codec, draft=draft, ends=self.ends, rule=rule)

    def drafting(self) -> Model:
        """The draft model."""
        if self.draft is None:
            raise RequestError(f"{self.name} has no draft model")
        return self.draft

    def kinds(self) -> tuple[DraftKind, ...]:
        """Every draft that can be had here, the one to be verified first."""
        others: tuple[DraftKind, ...] = ("model", "ngram", "uniform")
        return (self.kind, *(k for k in others if k != self.kind and (k != "model" or self.draft is not None)))

    def prompt(self, text: str, room: int) -> tuple[int, ...]:
        """A text's tokens, at most so many that `room` more fit into the context."""
        tokens = self.codec.encode(text) or [0]
        return tuple(tokens[: max(min(MOST_TOKENS, self.target.context_length - room), 1)])


class _Ruled(LanguageModel):
    """Decides by a rule of its own, whatever is asked for: for controls."""

    def __init__(
        self,
        name: str,
        target: Model,
        codec: Codec,
        *,
        draft: Model | DraftKind,
        ends: tuple[int, ...],
        rule: type[Rule],
    ) -> None:
        super().__init__(name, target, codec, draft=draft, ends=ends)
        self._rule = rule

    def rule(self, request: Request) -> Rule:
        super().rule(request)
        return self._rule()
