"""`journee profile`: a table of stages that add up, and its refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from journee_deploy.commands.main import main
from journee_deploy.profiling import OUTSIDE, STAGES

TINY = str(Path(__file__).parents[2] / "artifacts" / "tiny")
QUICK = ("--max-new-tokens", "6", "--runs", "2", "--threads", "1")


def test_the_stages_add_up() -> None:
    done = CliRunner().invoke(main, ["profile", TINY, *QUICK, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found["stages"]) == list(STAGES)
    assert found["runs"] == 2
    assert 1 <= found["tokens_a_round"] <= 5
    shares = {name: stage["share"] for name, stage in found["stages"].items()}
    assert all(0 < share < 1 for share in shares.values())
    assert sum(shares.values()) == pytest.approx(1, abs=0.1)  # medians, each its own
    assert 0 < found["outside"]["low"] <= found["outside"]["median"] <= found["outside"]["high"] < 1
    assert sum(shares[name] for name in OUTSIDE) == pytest.approx(found["outside"]["median"], abs=0.1)
    assert found["stages"]["target"]["entries"] == 1


def test_it_prints_a_table() -> None:
    done = CliRunner().invoke(main, ["profile", TINY, *QUICK, "--draft", "none", "--temperature", "0"])
    assert done.exit_code == 0, done.output
    for text in ("inside the target's", "from logits to", "outside the graphs", "for 1.00 tokens"):
        assert text in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--draft", "none", "--speculation-length", "3"), "can't go together"),
        (("--runs", "0"), "0 is not in the range"),
        (("--speculation-length", "0"), "speculation_length is 0"),
        (("--top-p", "2"), "top_p is 2.0"),
        (("--provider", "tpu"), "no provider 'tpu' here"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(main, ["profile", TINY, *QUICK, *arguments])
    assert done.exit_code != 0
    assert message in done.stderr
