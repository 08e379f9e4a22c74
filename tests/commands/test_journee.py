"""`journee` from the shell, on the bundle that ships."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import journee_deploy as jd
from journee_deploy.bundle import file_record
from journee_deploy.commands.main import main

TINY = Path(__file__).parents[2] / "artifacts" / "tiny"
PROMPT = "The proof obligation is"


def run(*arguments: str | Path, text: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


def generate(*arguments: str | Path, text: str | None = None) -> Result:
    return run("generate", TINY, "--max-new-tokens", "12", *arguments, text=text)


def test_the_text_streams_to_stdout_and_the_figures_to_stderr() -> None:
    done = generate("--prompt", PROMPT, "--seed", "42")
    assert done.exit_code == 0, done.stderr
    with jd.load(TINY) as lm:
        generation = lm.generate(PROMPT, max_new_tokens=12, seed=42)
    assert done.stdout == PROMPT + generation.text + "\n"
    assert done.stderr.startswith("12 tokens, ended by length; ")
    assert done.stderr.rstrip().endswith("seed 42")


def test_json_is_one_object_with_everything() -> None:
    options = ("--seed", "7", "--json", "--temperature", "0.8", "--top-k", "40", "--top-p", "0.9")
    found = json.loads(generate("--prompt", PROMPT, *options).stdout)
    assert found["prompt"] == PROMPT
    assert len(found["tokens"]) == len(found["kinds"]) == len(found["report"]["judgements"]) == 12
    assert found["report"]["seed"] == 7
    assert json.loads(generate("--prompt", PROMPT, *options).stdout)["tokens"] == found["tokens"]


def test_options_reach_the_model() -> None:
    greedy = json.loads(generate("--prompt", PROMPT, "--json", "--temperature", "0").stdout)
    plain = json.loads(generate("--prompt", PROMPT, "--json", "--temperature", "0", "--draft", "none").stdout)
    assert greedy["tokens"] == plain["tokens"]
    assert plain["report"]["proposed"] == 0
    one = json.loads(generate("--prompt", PROMPT, "--json", "--temperature", "0", "--speculation-length", "1").stdout)
    assert max(round_["proposed"] for round_ in one["report"]["rounds"]) == 1
    stop = greedy["text"][4:6]
    stopped = json.loads(generate("--prompt", PROMPT, "--json", "--temperature", "0", "--stop", stop).stdout)
    assert stopped["text"] == greedy["text"][: greedy["text"].index(stop)]
    assert stopped["report"]["reason"] == "stop"
    with_penalty = json.loads(
        generate("--prompt", PROMPT, "--json", "--temperature", "0", "--repetition-penalty", "100").stdout
    )
    assert len(set(with_penalty["tokens"])) == len(with_penalty["tokens"])
    top = json.loads(generate("--prompt", PROMPT, "--json", "--seed", "1", "--min-p", "1").stdout)
    assert top["tokens"] == greedy["tokens"]


def test_a_rule_and_a_draft_can_be_chosen() -> None:
    shared = ("--prompt", PROMPT, "--json", "--rule", "coupled", "--seed", "5")
    texts = []
    for draft in ("auto", "model", "ngram", "uniform", "none"):
        found = json.loads(generate(*shared, "--draft", draft).stdout)
        assert found["report"]["rule"] == "coupled"
        assert found["report"]["draft"] == ("model" if draft == "auto" else draft)
        texts.append(found["tokens"])
    assert texts == [texts[0]] * 5


def test_a_prompt_from_standard_input() -> None:
    assert generate("--prompt", "-", "--seed", "1", text=PROMPT).stdout.startswith(PROMPT)


def test_auto_measures_and_its_costs_give_the_text_again() -> None:
    arguments = ("--prompt", PROMPT, "--seed", "5", "--json", "--speculation-length", "auto")
    first = json.loads(generate(*arguments).stdout)
    pace = first["report"]["pace"]
    assert (pace["kind"], pace["source"], pace["most"]) == ("adaptive", "measured", 8)
    costs = [str(pace[name]) for name in ("draft", "row", "free")]
    again = json.loads(generate(*arguments, "--costs", *costs).stdout)
    assert again["report"]["pace"] == {**pace, "source": "given"}
    assert (again["tokens"], again["kinds"]) == (first["tokens"], first["kinds"])


def test_show_marks_kinds_with_a_legend() -> None:
    done = generate("--prompt", PROMPT, "--seed", "3", "--show")
    assert done.exit_code == 0
    legend, rest = done.stdout.split("\n", 1)
    assert legend.split() == ["accepted", "[recovered]", "<bonus>"]
    assert rest.startswith(PROMPT)
    assert "<" in rest


REFUSED = [
    (["--prompt", ""], "the prompt is empty"),
    (["--prompt", "a " * 5000], "has a context of"),
    (["--prompt", "a", "--speculation-length", "0"], "speculation_length is 0"),
    (["--prompt", "a", "--speculation-length", "fast"], "'fast' is neither a whole number nor auto"),
    (["--prompt", "a", "--draft", "none", "--speculation-length", "auto"], "can't go together"),
    (["--prompt", "a", "--costs", "0.2", "0.1", "2"], "--costs goes with --speculation-length auto"),
    (["--prompt", "a", "--speculation-length", "auto", "--costs", "0.2", "-1", "2"], "costs: the cost `row` is -1"),
    (["--prompt", "a", "--max-new-tokens", "0"], "max_new_tokens is 0"),
    (["--prompt", "a", "--temperature", "-1"], "temperature is -1"),
    (["--prompt", "a", "--temperature", "nan"], "temperature is nan"),
    (["--prompt", "a", "--top-p", "0"], "top_p is 0"),
    (["--prompt", "a", "--top-p", "1.5"], "top_p is 1.5"),
    (["--prompt", "a", "--seed", "-3"], "seed is -3"),
    (["--prompt", "a", "--stop", ""], "stop string"),
    (["--prompt", "a", "--provider", "tpu"], "no provider 'tpu' here; there are: cpu"),
    (["--prompt", "a", "--provider", "cuda"], "no provider 'cuda' here; there are: cpu"),
    (["--prompt", "a", "--threads", "-2"], "threads is -2"),
    (["--prompt", "a", "--threads", "2147483648"], "threads is 2147483648"),
    (["--prompt", "a\udcff"], "no Unicode text"),
    (["--prompt", "a", "--stop", "\udcff"], "no Unicode text"),
    (["--prompt", "a", "--show", "--json"], "can't go together"),
    (["--prompt", "a", "--draft", "none", "--speculation-length", "3"], "can't go together"),
    (["--prompt", "a", "--rule", "lossless"], "'residual', 'coupled'"),
    (["--prompt", "a", "--draft", "magic"], "'ngram'"),
    ([], "--prompt"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals_say_what_to_do_and_exit_with_an_error(arguments: list[str], message: str) -> None:
    done = generate(*arguments)
    assert done.exit_code != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_inspect_shows_and_verifies() -> None:
    done = run("inspect", TINY)
    assert done.exit_code == 0, done.stderr
    for word in ("target", "draft", "prefill", "verified", "opset 24"):
        assert word in done.stdout
    manifest = json.loads(run("inspect", TINY, "--json").stdout)
    assert set(manifest["roles"]) == {"target", "draft"}


def test_a_broken_bundle_is_refused_by_every_command(tmp_path: Path) -> None:
    broken = tmp_path / "tiny"
    shutil.copytree(TINY, broken)
    weights = broken / "target" / "onnx" / "model.onnx_data"
    content = bytearray(weights.read_bytes())
    content[1000] ^= 1
    weights.write_bytes(content)
    for command in (["inspect", broken], ["generate", broken, "--prompt", "a"]):
        done = run(*command)
        assert done.exit_code == 1
        assert "target/onnx/model.onnx_data" in done.stderr
        assert "sha256" in done.stderr
    weights.write_bytes(content[:-1])
    assert "model.onnx_data: truncated: " in run("inspect", broken).stderr
    weights.unlink()
    assert "model.onnx_data" in run("inspect", broken).stderr
    assert run("inspect", tmp_path / "nowhere").exit_code == 1


def test_a_weight_that_is_no_number_is_refused_by_role_position_and_token(tmp_path: Path) -> None:
    """The damaged weights have a good hash, so it is the logits of the real graph that give them away."""
    broken = tmp_path / "tiny"
    shutil.copytree(TINY, broken)
    name = "target/onnx/model.onnx_data"
    manifest = json.loads((broken / "journee.json").read_text())
    config = manifest["roles"]["target"]["source"]["config"]
    content = bytearray((broken / name).read_bytes())
    for token in range(config["vocab_size"]):  # the embedding comes first: one number of each token's
        struct.pack_into("<f", content, 4 * token * config["dim"], math.nan)
    (broken / name).write_bytes(content)
    manifest["files"][name]["sha256"] = file_record(broken / name).sha256
    (broken / "journee.json").write_text(json.dumps(manifest))
    done = run("generate", broken, "--prompt", PROMPT, "--max-new-tokens", "3")
    assert done.exit_code == 1
    assert re.search(r"target logits at position \d+.*token \d+", done.stderr)
    assert "Traceback" not in done.stderr


def test_a_path_that_cannot_be_examined_is_refused() -> None:
    for command in (["inspect", "b" * 300], ["generate", "b" * 300, "--prompt", "a"]):
        done = run(*command)
        assert done.exit_code == 1
        assert "b" * 300 in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_told_in_a_line() -> None:
    program = "from journee_deploy.commands.main import main; main()"
    arguments = [sys.executable, "-c", program, "generate", str(TINY), "--prompt", "a", "--seed", "1"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "reading or writing failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_inspect_prints_to_any_terminal() -> None:
    program = "from journee_deploy.commands.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "inspect", str(TINY)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_help_and_version() -> None:
    assert "generate" in run("--help").stdout
    assert run("--version").exit_code == 0
