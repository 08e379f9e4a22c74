"""What is promised token for token, tried on this machine: rows by their prefix alone, greedy texts, coupled texts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from journee_deploy.checks import first_difference, rows_by_prefix
from journee_deploy.verification.check import Finding
from journee_deploy.verification.effort import Effort
from journee_deploy.verification.models import PROMPTS, Models


def row_rule_finding(models: Models, effort: Effort, seed: int) -> Finding:
    """A rule must be in force, and hold to the bit over random splits of texts that it was not found with."""
    target = models.target
    if target.row_rule is None:
        return Finding(
            False,
            f"no row rule ({target.row_rule_note}): a row may change with the run it is in, so neither greedy and "
            "coupled texts nor the law are promised",
            {"row_rule": None, "note": target.row_rule_note},
        )
    compared = different = 0
    for number, text in enumerate(PROMPTS[: effort.row_texts]):
        found = rows_by_prefix(target, models.prompt(text * 8, 1), effort.row_rounds, seed + number)
        compared += found.compared
        different += found.different
    figures = {"row_rule": str(target.row_rule), "note": target.row_rule_note} | {
        "compared": compared,
        "different": different,
    }
    equal = f"{compared - different} of {compared} rows equal to the bit over random splits"
    return Finding(different == 0, f"{target.row_rule_note}; here, {equal}", figures)


def greedy_finding(models: Models, effort: Effort) -> Finding:
    """At temperature 0 a drafted text is the plain one, for every draft and length."""
    if models.target.row_rule is None:
        return Finding(False, f"not promised: no row rule ({models.target.row_rule_note})")
    options = {"temperature": 0, "max_new_tokens": effort.greedy_tokens}
    compared = 0
    for text in PROMPTS[: effort.greedy_texts]:
        for difference in _differences(models, text, effort.lengths, options):
            if difference:
                return Finding(False, difference, {"texts": compared})
            compared += 1
    figures = {"drafts": list(models.kinds()), "lengths": list(effort.lengths), "texts": compared}
    return Finding(True, f"{compared} speculative texts equal the plain ones ({_drafts(models)})", figures)


def coupled_finding(models: Models, effort: Effort, seed: int) -> Finding:
    """Under `coupled` a seed gives one text, whoever drafts and however far."""
    lengths = effort.lengths[::2]
    compared = 0
    for number, text in product(range(effort.coupled_seeds), (PROMPTS[0], PROMPTS[-1])):
        options = {"rule": "coupled", "seed": seed + number, "max_new_tokens": effort.coupled_tokens}
        for difference in _differences(models, text, lengths, options):
            if difference:
                return Finding(False, f"seed {seed + number}, {difference}", {"texts": compared})
            compared += 1
    figures = {"drafts": list(models.kinds()), "lengths": list(lengths), "seeds": effort.coupled_seeds}
    sentence = f"{compared} drafted texts equal their seeds' plain ones ({_drafts(models)})"
    return Finding(True, sentence, figures | {"texts": compared})


def _differences(models: Models, text: str, lengths: tuple[int, ...], options: dict[str, Any]) -> Iterator[str]:
    """For every draft and length, where its text leaves the plain one; empty where it doesn't."""
    prompt = models.prompt(text, options["max_new_tokens"])
    plain = models.lm("none").generate(prompt, **options)
    for kind, length in product(models.kinds(), lengths):
        fast = models.lm(kind).generate(prompt, speculation_length=length, **options)
        difference = first_difference(fast.tokens, plain.tokens)
        yield difference and f"draft {kind}, length {length}, after {text!r}: {difference}"


def _drafts(models: Models) -> str:
    return f"drafts {', '.join(models.kinds())}"
