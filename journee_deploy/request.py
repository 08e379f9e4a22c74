"""What a caller may ask of a generation, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Literal, TypedDict, TypeVar

from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import RULES

DEFAULT_LENGTH = 4

AUTO: Literal["auto"] = "auto"
Length = int | Literal["auto"]
"""K, or that the pace adapts it."""


class RequestError(ValueError):
    """An option that can't be honoured; the message gives its value and what it may be."""


class Options(TypedDict, total=False):
    """The keyword arguments of `generate` and `stream`; `Request` gives their meaning and defaults."""

    max_new_tokens: int
    seed: int | None
    sample: int
    rule: str
    draft: bool
    speculation_length: Length | None
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    logit_bias: Mapping[int, float]
    min_new_tokens: int
    stop: str | Sequence[str]
    stop_tokens: Sequence[int | Sequence[int]]
    special: bool
    trace: bool


@dataclass(frozen=True, slots=True)
class Request:
    """One generation's options.

    max_new_tokens      at least 1; the text may end earlier, also where the model's context is full
    seed                0 to 2^64 - 1; None draws one from the system, and the report tells it
    sample              0 to 2^32 - 1: independent streams of one seed
    rule                how a round decides: "residual"; or "coupled", under which a seed gives the same text with any
                        draft or none, and which needs a target with a row rule
    draft               False is plain decoding
    speculation_length  K, at least 1: proposals a round; None is 4; "auto" is as many as pay, by what was accepted so
                        far and what drafting costs here (journee_deploy.costs). Refused where there is no draft to use
                        it. Under rule residual a seed's text depends on how far rounds drafted: for "auto" to give it
                        again, give the LanguageModel the same `costs`
    temperature to min_new_tokens   see journee_deploy.arithmetic.sampling.Sampling
    stop                a string, or several: the text ends where the first one begins
    stop_tokens         tokens, or sequences of tokens, that end the text and are not in it
    special             the text of special tokens in the prompt becomes those tokens; otherwise it is plain text
    trace               the report tells how each token came to be (controller.Judgement)
    """

    max_new_tokens: int = 64
    seed: int | None = None
    sample: int = 0
    rule: str = "residual"
    draft: bool = True
    speculation_length: Length | None = None
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict[int, float])
    min_new_tokens: int = 0
    stop: str | Sequence[str] = ()
    stop_tokens: Sequence[int | Sequence[int]] = ()
    special: bool = False
    trace: bool = False

    def __post_init__(self) -> None:
        self._settle("max_new_tokens", 1)
        self._settle("sample", 0, (1 << 32) - 1)
        if self.seed is not None:
            self._settle("seed", 0, (1 << 64) - 1)
        if self.speculation_length is not None:
            if not self.draft:
                raise RequestError("speculation_length goes with a draft: leave it out, or leave out draft=False")
            if not isinstance(self.speculation_length, str) or self.speculation_length != AUTO:
                self._settle("speculation_length", 1, advice=', or "auto"; plain decoding is draft=False')
        if not isinstance(self.rule, str) or self.rule not in RULES:
            raise RequestError(f"there is no rule {self.rule!r}; there is: {', '.join(RULES)}")
        for name in ("draft", "special", "trace"):
            if not isinstance(getattr(self, name), bool):
                raise RequestError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        self.sampling()
        self.stop_strings()
        self.stop_sequences()

    def _settle(self, name: str, least: int, most: int | None = None, advice: str = "") -> None:
        """Check a whole number, and keep it as Python's own int: NumPy's would overflow where seeds are mixed."""
        object.__setattr__(self, name, _whole(name, getattr(self, name), least, most, advice))

    def length(self) -> Length:
        """K, where there is a draft, or "auto"."""
        return DEFAULT_LENGTH if self.speculation_length is None else self.speculation_length

    def sampling(self) -> Sampling:
        """The options that make distributions."""
        for name in NUMBERS:
            if isinstance(value := getattr(self, name), bool) or not isinstance(value, Real):
                raise RequestError(f"{name} is {value!r}; it must be a number")
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            logit_bias=dict(self.logit_bias),
            min_new_tokens=self.min_new_tokens,
        )

    def stop_strings(self) -> tuple[str, ...]:
        """The strings of `stop`."""
        strings = (self.stop,) if isinstance(self.stop, str) else _listed("stop", self.stop)
        for string in strings:
            if not isinstance(string, str):
                raise RequestError(f"stop has {string!r}; give a string, or several")
        return strings

    def stop_sequences(self) -> list[list[int]]:
        """The sequences of `stop_tokens`, a single token being one of length 1."""
        sequences: list[list[int]] = []
        for stop in _listed("stop_tokens", self.stop_tokens):
            sequence = list(_listed("stop_tokens", stop)) if isinstance(stop, Sequence) else [stop]
            if not sequence:
                raise RequestError("stop_tokens has an empty sequence; it would stop every text before it begins")
            sequences.append([_whole("a token of stop_tokens", token, 0) for token in sequence])
        return sequences


NUMBERS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "min_new_tokens",
)

Item = TypeVar("Item")


def _whole(name: str, value: int, least: int, most: int | None = None, advice: str = "") -> int:
    """The number as int; refuses what is no whole number in the range, and a bool or a float is none."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most}"
        raise RequestError(f"{name} is {value!r}; it must be a whole number, {allowed}{advice}")
    return int(value)


def _listed(name: str, values: Sequence[Item]) -> tuple[Item, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise RequestError(f"{name} is {values!r}; give a list")
    return tuple(values)
