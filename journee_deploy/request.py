"""What a caller may ask of a generation, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from journee_deploy.arithmetic.sampling import Sampling

RULES = ("residual",)
DEFAULT_LENGTH = 4


class RequestError(ValueError):
    """An option that can't be honoured; the message gives its value and what it may be."""


class Options(TypedDict, total=False):
    """The keyword arguments of `generate` and `stream`; `Request` gives their meaning and defaults."""

    max_new_tokens: int
    seed: int | None
    sample: int
    rule: str
    draft: bool
    speculation_length: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
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
    rule                how a round decides: "residual"
    draft               False is plain decoding
    speculation_length  K, at least 1: proposals a round
    temperature … repetition_penalty   see journee_deploy.arithmetic.sampling.Sampling
    stop                a string, or several: the text ends where the first one begins
    stop_tokens         tokens, or sequences of tokens, that end the text and are not in it
    special             the text of special tokens in the prompt becomes those tokens; otherwise it is plain text
    trace               the report holds p, q, the coin, the distance and the likeliest tokens for every token
    """

    max_new_tokens: int = 64
    seed: int | None = None
    sample: int = 0
    rule: str = "residual"
    draft: bool = True
    speculation_length: int = DEFAULT_LENGTH
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    stop: str | Sequence[str] = ()
    stop_tokens: Sequence[int | Sequence[int]] = ()
    special: bool = False
    trace: bool = False

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise RequestError(f"max_new_tokens is {self.max_new_tokens}; it must be at least 1")
        if self.speculation_length < 1:
            raise RequestError(
                f"speculation_length is {self.speculation_length}; at least 1, and plain decoding is draft=False"
            )
        if self.rule not in RULES:
            raise RequestError(f"there is no rule {self.rule!r}; there is: {', '.join(RULES)}")
        if self.seed is not None and not 0 <= self.seed < 1 << 64:
            raise RequestError(f"seed is {self.seed}; it must be from 0 to 2^64 - 1")
        if not 0 <= self.sample < 1 << 32:
            raise RequestError(f"sample is {self.sample}; it must be from 0 to 2^32 - 1")
        self.sampling()

    def sampling(self) -> Sampling:
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
        )

    def stop_strings(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    def stop_sequences(self) -> list[list[int]]:
        return [[stop] if isinstance(stop, int) else list(stop) for stop in self.stop_tokens]
