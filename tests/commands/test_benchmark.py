"""`python -m journee.benchmark`: its figures add up, on bundles and on checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from journee.benchmark import DEFINITIONS, main

ROOT = Path(__file__).parents[2]
TINY = ROOT / "artifacts" / "tiny"
TARGET, DRAFT = ROOT / "checkpoints" / "target.pt", ROOT / "checkpoints" / "draft.pt"
SMALL = ("--max-new-tokens", "16", "--pairs", "2")
KEYS = {
    "acceptance_rate",
    "judged_acceptance",
    "mean_accepted_run",
    "target_calls_per_token",
    "exactness_error",
    "tv_distance",
    "tokens_per_second",
    "baseline_tokens_per_second",
    "speedup",
    "greedy_identical",
}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def check(found: dict[str, float | None]) -> None:
    assert set(found) >= KEYS
    assert found["exactness_error"] == 0
    assert 0 < (found["acceptance_rate"] or 0) <= (found["judged_acceptance"] or 0) <= 1
    assert 0 < (found["tv_distance"] or 0) < 1
    assert found["predicted_acceptance"] == pytest.approx(1 - (found["tv_distance"] or 0))
    assert 0 < (found["target_calls_per_token"] or 0) <= 1
    assert (found["tokens_per_second"] or 0) > 0


def test_a_bundle() -> None:
    found = json.loads(run("--bundle", TINY, "--json", *SMALL).stdout)
    check(found)
    assert found["greedy_identical"] is True


def test_another_rule_and_a_draft_without_a_model() -> None:
    found = json.loads(run("--bundle", TINY, "--json", "--rule", "coupled", "--draft", "ngram", *SMALL).stdout)
    assert found["exactness_error"] == 0
    assert (found["draft"], found["workload"]["rule"]) == ("ngram", "coupled")
    assert found["tokens_traced"] == 32


def test_an_adaptive_length() -> None:
    found = json.loads(run("--bundle", TINY, "--json", "--speculation-length", "auto", *SMALL).stdout)
    assert found["workload"]["speculation_length"] == "auto"
    assert (found["pace"]["kind"], found["pace"]["source"]) == ("adaptive", "measured")
    assert found["greedy_identical"] is True


def test_checkpoints() -> None:
    found = json.loads(run("--target", TARGET, "--draft", DRAFT, "--json", "--speculation-length", "8", *SMALL).stdout)
    check(found)
    assert found["greedy_identical"] is (True if found["row_rule"] else None)


def test_the_table_names_every_figure() -> None:
    done = run("--bundle", TINY, *SMALL)
    assert done.exit_code == 0, done.output
    for key in KEYS - {"exactness_error"}:
        assert key in done.stdout
    assert "speculation" in done.stdout.splitlines()[-1]


def test_explain_defines_every_figure() -> None:
    assert set(DEFINITIONS) >= KEYS
    done = run("--explain")
    shown = json.loads(run("--bundle", TINY, "--json", *SMALL).stdout)
    apart = {"spread", "workload", "model", "row_rule_note", "greedy_identical_note"}
    for key in set(shown) - apart:
        assert f"{key}: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --target"),
        (("--bundle", TINY, "--target", TARGET), "give either --target"),
        (("--bundle", TINY, "--draft", DRAFT), "--draft PATH goes with --target"),
        (("--target", TARGET), "no draft to measure"),
        (("--target", ROOT / "README.md", "--draft", DRAFT), "README.md"),
        (("--target", ROOT / "missing.pt", "--draft", DRAFT), "missing.pt"),
        (("--bundle", ROOT / "missing"), "missing"),
        (("--bundle", TINY, "--speculation-length", "0"), "speculation-length"),
        (("--bundle", TINY, "--speculation-length", "fast"), "'fast' is neither a whole number nor auto"),
        (("--bundle", TINY, "--temperature", "-1", *SMALL), "temperature is -1"),
        (("--bundle", TINY, "--prompt", "", *SMALL), "prompt is empty"),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_refusals(arguments: tuple[str | Path, ...], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
