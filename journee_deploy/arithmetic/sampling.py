"""The options that turn logits into a distribution, checked when they are made. Portable Python.

Names and meanings are those of Hugging Face's and OpenAI's samplers; the order in which they act, and every
rounding, is in docs/distributions.md. An option at its default does nothing at all, to the bit.
"""

from __future__ import annotations

LARGEST = float((1 << 128) - (1 << 104))  # float32's largest: keeps every sum and product below finite in float64


class SamplingError(ValueError):
    """An option is outside its range; the message gives the option, what it was, and what it may be."""


class Sampling:
    """How a row of logits becomes a distribution.

    temperature         0 takes the largest logit (lowest index on ties); otherwise positive and finite
    top_k               keep logits >= the k-th largest, ties kept; 0 is off
    top_p               keep the most probable tokens until their mass reaches it; in (0, 1], 1 is off
    min_p               keep tokens at least this probable relative to the most probable one; in [0, 1], 0 is
                        off
    repetition_penalty  in [0.01, 100], over prompt and generated text; 1 is off
    frequency_penalty   times the count in generated text, subtracted; 0 is off
    presence_penalty    subtracted once for a token in generated text; 0 is off
    logit_bias          {token: amount added}; minus infinity bans a token
    min_new_tokens      tokens before which end-of-sequence has probability 0
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        logit_bias: dict[int, float] | None = None,
        min_new_tokens: int = 0,
    ) -> None:
        self.temperature = _number("temperature", temperature, 0.0, None, "0 for greedy, or positive and finite")
        self.top_k = _whole("top_k", top_k)
        self.top_p = _number("top_p", top_p, 0.0, 1.0, "above 0 and at most 1 (1 is off)")
        if self.top_p == 0.0:
            raise SamplingError("top_p is 0; it must be above 0 and at most 1 (1 is off)")
        self.min_p = _number("min_p", min_p, 0.0, 1.0, "from 0 (off) to 1")
        self.repetition_penalty = _number(
            "repetition_penalty", repetition_penalty, 1 / 100, 100.0, "from 0.01 to 100 (1 is off)"
        )
        finite = "a number within float32's range (0 is off)"
        self.frequency_penalty = _number("frequency_penalty", frequency_penalty, -LARGEST, LARGEST, finite)
        self.presence_penalty = _number("presence_penalty", presence_penalty, -LARGEST, LARGEST, finite)
        self.logit_bias = _biases(logit_bias or {})
        self.min_new_tokens = _whole("min_new_tokens", min_new_tokens)


def _number(name: str, value: float, low: float, high: float | None, allowed: str) -> float:
    number = _float(name, value, allowed)
    if not (number >= low and number - number == 0.0 and (high is None or number <= high)):
        raise SamplingError(f"{name} is {value}; it must be {allowed}")
    return number


def _float(name: str, value: float, allowed: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise SamplingError(f"{name} is {value!r}; it must be a number, {allowed}") from None


def _whole(name: str, value: int) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number != value or number < 0:
        raise SamplingError(f"{name} is {value!r}; it must be a whole number, at least 0")
    return number


def _biases(biases: dict[int, float]) -> tuple[tuple[int, float], ...]:
    allowed = "within float32's range, or minus infinity"
    checked: list[tuple[int, float]] = []
    for token in biases:  # order: irrelevant
        name = f"the amount of logit_bias for token {token!r}"
        amount = _float(name, biases[token], allowed)
        if not (-LARGEST <= amount <= LARGEST or amount == -float("inf")):
            raise SamplingError(f"{name} is {amount}; it must be {allowed}")
        checked.append((_whole("a token of logit_bias", token), amount))
    return tuple(sorted(checked))
