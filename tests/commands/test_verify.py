"""`journee verify` from the shell, on the bundle that ships and on what is wrong."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from journee_deploy.commands.main import main
from journee_deploy.trace import Trace, load_trace
from journee_deploy.verification import suite
from journee_deploy.verification.check import Finding
from tests.verification.conftest import SMALL

TINY = Path(__file__).parents[2] / "artifacts" / "tiny"
NAMES = [
    "files",
    "models",
    "row rule",
    "greedy",
    "coupled",
    "controller",
    "conformance",
    "law of residual",
    "law of coupled",
    "parity",
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of everything."""
    monkeypatch.setattr(suite, "USUAL", SMALL)


@pytest.fixture
def parity_alone(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No check between opening the models and parity does anything."""
    monkeypatch.setattr(suite, "RULES", {})
    for name in ("row_rule", "greedy", "coupled", "exactness", "conformance"):
        monkeypatch.setattr(suite, f"{name}_finding", lambda *given: Finding(True, "left out"))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


def checks(done: Result) -> dict[str, Any]:
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_the_shipped_bundle_is_verified() -> None:
    """With its usual effort, as a process: a table, a verdict, an exit code, and progress apart from them."""
    program = "from journee_deploy.commands.main import main; main()"
    command = [sys.executable, "-c", program, "verify", str(TINY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("verify: every check passed")
    for name in NAMES:
        assert name in done.stdout
        assert f"{name}: " in done.stderr
    assert "verify:" not in done.stderr


@pytest.mark.usefixtures("small")
def test_json_has_every_figure() -> None:
    done = run(TINY, "--json", "--threads", "1", "--seed", "5")
    assert done.exit_code == 0, done.stdout
    found = json.loads(done.stdout)
    assert (found["passed"], found["provider"], found["threads"], found["seed"]) == (True, "cpu", 1, 5)
    made = checks(done)
    assert list(made) == NAMES
    assert {check["status"] for name, check in made.items() if name != "parity"} == {"passed"}
    assert made["parity"]["status"] == "not asked"
    law = made["law of residual"]["figures"]
    assert law["statistic"] < law["threshold"] <= law["control"]
    assert 0.9e-6 < sum(made[f"law of {rule}"]["figures"]["false_alarms"] for rule in suite.RULES) <= 1e-6
    assert law["power"] >= 0.999
    assert law["target_runs"] > 2 * law["runs"]


@pytest.mark.usefixtures("parity_alone")
def test_a_recorded_trace_is_compared_with(tmp_path: Path) -> None:
    file = tmp_path / "rows.npz"
    done = run(TINY, "--json", "--record", file)
    assert checks(done)["record"]["status"] == "passed"
    done = run(TINY, "--json", "--trace", file, "--against", "cpu")
    assert done.exit_code == 0
    for compared in checks(done)["parity"]["figures"]["comparisons"]:
        assert compared["rows"] == compared["equal"] > 0
        assert compared["largest_tv"] == 0
    whole = load_trace(file)
    moved = tuple((step, rows + np.float32(0.1) * np.sin(rows * 99)) for step, rows in whole.entries)
    Trace(whole.header, moved).save(file)
    done = run(TINY, "--json", "--trace", file)
    assert done.exit_code == 1
    assert checks(done)["parity"]["status"] == "failed"
    assert checks(done)["parity"]["figures"]["comparisons"][0]["largest_tv"] > 1e-3


@pytest.mark.usefixtures("parity_alone")
def test_traces_that_are_not_of_this_model_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.npz"
    assert run(TINY, "--record", file).exit_code == 0
    whole = load_trace(file)
    header = {name: getattr(whole.header, name) for name in whole.header.__slots__}
    for changed, entries, message in [
        ({"fingerprint": "0" * 64}, whole.entries, "another model"),
        ({"fingerprint": ""}, whole.entries, "of a model it doesn't tell"),
        ({}, (), "a trace without rows"),
    ]:
        Trace(type(whole.header)(**(header | changed)), entries).save(file)
        parity = checks(run(TINY, "--json", "--trace", file))["parity"]
        assert parity["status"] == "failed"
        assert message in parity["sentence"]
    narrow = tuple((step, rows[:, :9]) for step, rows in whole.entries)
    Trace(type(whole.header)(**(header | {"vocabulary_size": 9})), narrow).save(file)
    assert "rows of 9 tokens" in checks(run(TINY, "--json", "--trace", file))["parity"]["sentence"]
    missing = checks(run(TINY, "--json", "--trace", tmp_path / "none.npz"))["parity"]
    assert "no good trace file" in missing["sentence"]


@pytest.mark.usefixtures("small")
def test_one_failure_leaves_the_rest_to_go_on(tmp_path: Path) -> None:
    done = run(TINY, "--json", "--against", "tpu", "--record", tmp_path / "nowhere" / "rows.npz")
    assert done.exit_code == 1
    made = checks(done)
    assert "no provider 'tpu'" in made["parity"]["sentence"]
    assert made["record"]["status"] == "failed"
    assert made["law of coupled"]["status"] == "passed"


def test_a_flipped_byte_ends_it(tmp_path: Path) -> None:
    broken = tmp_path / "tiny"
    shutil.copytree(TINY, broken)
    weights = broken / "target" / "onnx" / "model.onnx_data"
    content = bytearray(weights.read_bytes())
    content[1000] ^= 1
    weights.write_bytes(content)
    done = run(broken, "--json")
    assert done.exit_code == 1
    made = checks(done)
    assert list(made) == NAMES
    assert "damaged: sha256" in made["files"]["sentence"]
    assert {made[name]["status"] for name in NAMES[1:]} == {"not run"}
    shown = run(broken)
    assert shown.exit_code == 1
    assert "verify: NOT verified: files, models" in shown.stdout
    assert "Traceback" not in shown.stderr


def test_what_cannot_be_opened_is_told() -> None:
    made = checks(run(TINY, "--json", "--provider", "tpu"))
    assert made["files"]["status"] == "passed"
    assert "no provider 'tpu' here; there are: cpu" in made["models"]["sentence"]
    assert made["greedy"]["status"] == "not run"
    assert "threads is -2" in checks(run(TINY, "--json", "--threads", "-2"))["models"]["sentence"]
    assert "does not exist" in checks(run("nowhere", "--json"))["files"]["sentence"]
    assert run(TINY, "--draft", "none").exit_code == 2
    assert run(TINY, "--seed", "-1").exit_code == 2


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("draft", ["auto", "uniform"])
def test_a_bundle_without_a_draft_is_verified(tmp_path: Path, draft: str) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(TINY, alone)
    shutil.rmtree(alone / "draft")
    manifest = json.loads((alone / "journee.json").read_text())
    del manifest["roles"]["draft"]
    manifest["files"] = {name: file for name, file in manifest["files"].items() if not name.startswith("draft/")}
    (alone / "journee.json").write_text(json.dumps(manifest))
    done = run(alone, "--json", "--draft", draft)
    assert done.exit_code == 0, done.stdout
    assert checks(done)["law of residual"]["figures"]["draft"] == ("ngram" if draft == "auto" else draft)
    assert "has no draft" in checks(run(alone, "--json", "--draft", "model"))["models"]["sentence"]


@pytest.mark.usefixtures("small")
def test_an_interrupt_ends_it_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(suite, "conformance_finding", interrupted)
    done = run(TINY, "--json")
    assert done.exit_code == 1
    assert done.stdout.strip() == ""
    assert "Aborted!" in done.stderr
