"""The portable suite in CPython, a test a function, and in MicroPython under Node, all at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.portable import record, runner

HERE = Path(__file__).parent
PACKAGE = HERE / "node_modules" / "@micropython" / "micropython-webassembly-pyscript"


@pytest.mark.parametrize("test", [pytest.param(test, id=name) for name, test in runner.TESTS])
def test_in_cpython(test: Callable[[], None]) -> None:
    test()


def test_the_recorded_cases_are_what_the_code_gives() -> None:
    assert record.FILE.read_text(encoding="utf-8") == record.render(), "python -m tests.portable.record"


def not_run(reason: str) -> None:
    """Reported, not hidden; and a failure in CI, where it must run."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; in CI these tests must run")
    pytest.skip(f"not run: {reason}")


def node_with_micropython() -> str:
    """The path of Node.js, where MicroPython is installed beside it."""
    node = shutil.which("node")
    if node is None:
        not_run("Node.js is not installed")
    if not PACKAGE.is_dir():
        not_run("MicroPython is not installed (npm ci --prefix tests/portable)")
    return str(node)


def test_in_micropython() -> None:
    """The shipped files in the interpreter that pages use: every test of the suite says ok, none is missing."""
    command = [node_with_micropython(), str(HERE / "micropython.mjs")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert said == ["long_text.memory_stays_flat", *(name for name, _ in runner.TESTS)]
    assert done.stdout.endswith("\n0 failed\n")


@pytest.mark.parametrize("in_ci", [True, False])
def test_what_is_not_run_is_reported_and_fails_in_ci(in_ci: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true" if in_ci else "")
    with pytest.raises(pytest.fail.Exception if in_ci else pytest.skip.Exception, match="no Node"):
        not_run("no Node")


def test_the_interpreters_version_is_pinned_and_no_host_is_named() -> None:
    package, lock = ((HERE / name).read_text(encoding="utf-8") for name in ("package.json", "package-lock.json"))
    assert '"@micropython/micropython-webassembly-pyscript": "1.27.0"' in package
    assert '"version": "1.27.0"' in lock
    assert "sha512-" in lock
    assert "://" not in lock
