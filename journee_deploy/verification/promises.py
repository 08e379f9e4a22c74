"""What is promised token for token, tried on this machine: rows by their prefix alone, greedy texts, coupled texts."""

from __future__ import annotations

from itertools import product

from journee_deploy.checks import greedy_identical, rows_by_prefix
from journee_deploy.language_model import DraftKind
from journee_deploy.verification.check import Finding
from journee_deploy.verification.effort import Effort
from journee_deploy.verification.models import PROMPTS, Models


def row_rule_finding(models: Models, effort: Effort, seed: int) -> Finding:
    """A rule must be in force, and hold to the bit over random splits of texts that it was not found with."""
    target = models.target
    if target.row_rule is None:
        return Finding(
            False,
            f"no row rule ({target.row_rule_note}): a row may change with the run it is in, so greedy and coupled "
            "texts are not promised, and the law holds relative to the rows as computed",
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
    return Finding(different == 0, f"{target.row_rule} ({target.row_rule_note}); {equal}", figures)


def greedy_finding(models: Models, effort: Effort) -> Finding:
    """At temperature 0 a drafted text is the plain one, for every draft and length."""
    compared = 0
    for kind, text, length in product(models.kinds(), PROMPTS[: effort.greedy_texts], effort.lengths):
        prompt = models.prompt(text, effort.greedy_tokens)
        found = greedy_identical(models.lm(kind), prompt, effort.greedy_tokens, length)
        if not found.identical:
            what = f"draft {kind}, length {length}, after {text!r}"
            return Finding(False, f"{what}: {found.note}", {"texts": compared})
        compared += 1
    figures = {"drafts": list(models.kinds()), "lengths": list(effort.lengths), "texts": compared}
    return Finding(True, f"{compared} speculative texts equal the plain ones ({_drafts(models)})", figures)


def coupled_finding(models: Models, effort: Effort, seed: int) -> Finding:
    """Under `coupled` a seed gives one text, whoever drafts and however far."""
    compared = 0
    for number, text in product(range(effort.coupled_seeds), (PROMPTS[0], PROMPTS[-1])):
        prompt = models.prompt(text, effort.coupled_tokens)
        plain = _coupled(models, "none", prompt, effort.coupled_tokens, seed + number, None)
        for kind, length in product(models.kinds(), effort.lengths[::2]):
            fast = _coupled(models, kind, prompt, effort.coupled_tokens, seed + number, length)
            compared += 1
            if fast != plain:
                what = f"seed {seed + number}, draft {kind}, length {length}"
                at = next(
                    (i for i, pair in enumerate(zip(fast, plain, strict=False)) if pair[0] != pair[1]), len(plain)
                )
                return Finding(False, f"{what}: the text differs from the plain one at token {at}", {"texts": compared})
    figures = {"drafts": list(models.kinds()), "seeds": effort.coupled_seeds, "texts": compared}
    return Finding(True, f"{compared} drafted texts equal their seeds' plain ones ({_drafts(models)})", figures)


def _coupled(
    models: Models, kind: DraftKind, prompt: tuple[int, ...], count: int, seed: int, length: int | None
) -> tuple[int, ...]:
    lm = models.lm(kind)
    text = lm.generate(prompt, rule="coupled", max_new_tokens=count, seed=seed, speculation_length=length)
    return tuple(text.tokens)


def _drafts(models: Models) -> str:
    return f"drafts {', '.join(models.kinds())}"
