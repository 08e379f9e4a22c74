"""Plain and speculative text from one bundle, and the facts that make them the same in law, checked here and now.

python examples/demo.py BUNDLE
"""

from __future__ import annotations

import statistics
import sys

from rich.console import Console

import journee_deploy as jd
from journee_deploy.checks import greedy_identical, rows_by_prefix
from journee_deploy.exactness import exactness_error, toys

PROMPT = "The proof obligation is"
TOKENS, SEED, LENGTH = 64, 42, 4


def generate(lm: jd.LanguageModel, seed: int, draft: bool) -> jd.Generation:
    length = LENGTH if draft else None
    return lm.generate(PROMPT, max_new_tokens=TOKENS, seed=seed, draft=draft, speculation_length=length)


def show_texts(console: Console, lm: jd.LanguageModel) -> None:
    for title, draft in (("plain", False), ("speculative", True)):
        console.rule(f"{title} decoding, seed {SEED}", align="left")
        generation = generate(lm, SEED, draft)
        console.print(PROMPT + generation.text, markup=False)
        show_report(console, generation.report)


def show_report(console: Console, report: jd.Report) -> None:
    console.print(f"\nreport: {report.summary()}", markup=False, soft_wrap=True)
    found = report.as_dict()
    names = ("proposed", "judged", "accepted", "target_calls", "target_rows", "padding_rows")
    counts = ", ".join(f"{name} {found[name]}" for name in names)
    seconds = ", ".join(f"{stage} {time:.3f}" for stage, time in report.seconds().items())
    console.print(f"        {counts}\n        seconds: {seconds}", markup=False, style="dim", soft_wrap=True)


def checked_facts(console: Console, lm: jd.LanguageModel) -> bool:
    """Print each fact with what was compared; True if all hold."""
    console.rule("checked just now", align="left")
    greedy = greedy_identical(lm, PROMPT, TOKENS, LENGTH)
    console.print(f"greedy identical: {_answer(greedy.identical)} ({greedy.note})", markup=False)
    rows = rows_by_prefix(lm.target, lm.codec.encode(PROMPT * 16))
    alone = lm.target.row_rule is not None and rows.different == 0
    console.print(
        f"rows depend on their prefix alone: {_answer(alone)} "
        f"({rows.compared - rows.different} of {rows.compared} rows equal to the bit over random splits; "
        f"{lm.target.row_rule_note})",
        markup=False,
        soft_wrap=True,
    )
    error = exactness_error()
    console.print(
        f"exactness error: {error} (the controller's law against the target's, every branch of {len(toys())} toys; "
        "it says nothing of the graphs)",
        markup=False,
        soft_wrap=True,
    )
    return greedy.identical is True and alone and error == 0


def show_speed(console: Console, lm: jd.LanguageModel) -> None:
    ratios: list[float] = []
    for pair in range(5):
        speeds = {
            draft: generate(lm, SEED + pair, draft).report.tokens_per_second or 0.0
            for draft in ((False, True) if pair % 2 else (True, False))
        }
        ratios.append(speeds[True] / speeds[False])
    ratio = statistics.median(ratios)
    verdict = "speculation pays" if ratio > 1 else "speculation is no faster on so small a target"
    console.print(
        f"speed: {ratio:.2f} times plain (median of 5 pairs, {min(ratios):.2f} to {max(ratios):.2f}): {verdict}",
        markup=False,
        soft_wrap=True,
    )


def _answer(fact: bool | None) -> str:
    return "not promised" if fact is None else "yes" if fact else "NO"


def main() -> None:
    console = Console(highlight=False)
    bundle = sys.argv[1] if len(sys.argv) == 2 else sys.exit("usage: python examples/demo.py BUNDLE")
    with jd.load(bundle) as lm:
        show_texts(console, lm)
        holds = checked_facts(console, lm)
        show_speed(console, lm)
    console.print("demo: every fact holds" if holds else "demo: a fact does NOT hold, see above")
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
