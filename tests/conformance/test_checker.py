"""The checker against hosts that die, hang, lie, babble or lack a kind; and its command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from journee_conformance import command_host
from journee_conformance.__main__ import main
from journee_conformance.cases import CasesError, packaged_cases
from journee_conformance.checker import InProcess, Outcome, Row, check
from journee_conformance.command_host import CommandHost
from journee_conformance.host import Host
from tests.conformance.wrong_host import verdict

ROOT = Path(__file__).parents[2]
FEW = packaged_cases(("philox",))

GREET = """
import json, sys, os, time
def say(value):
    sys.stdout.write((value if isinstance(value, str) else json.dumps(value)) + "\\n"); sys.stdout.flush()
sys.stdin.readline(); say({"format": "journee-conformance", "version": 1, "host": "a test's"})
"""
RIGHT = """
sys.path.insert(0, "conformance")
from journee_conformance.host import Host
host = Host()
"""
EACH = "for number, line in enumerate(sys.stdin):\n    "


def run(code: str, patience: float = 30.0) -> Outcome:
    return check(CommandHost([sys.executable, "-c", code], patience), FEW)


def test_a_right_host_passes() -> None:
    outcome = run(GREET + RIGHT + EACH + "say(host.line(line))")
    assert outcome.passed, outcome
    assert outcome.host == "a test's"


TROUBLE = [
    ("", "the host ended where a greeting was expected|exit code"),
    ("import sys; sys.exit(3)", "ended with exit code 3"),
    ("import sys; sys.exit('no such library')", "ended with exit code 1; it said: no such library"),
    ("print('hello')", "the host said hello where a greeting"),
    ('import json; print(json.dumps({"format": "journee-conformance", "version": 2, "host": "new"}))', "greets with"),
    (GREET + "say('{')", "the host said { where the answer to case philox-001"),
    (GREET + "say('[]')", r"the host said \[\] where"),
    (GREET + "say({'id': 'philox-002', 'answer': {}})", "answered .*philox-002.* where case philox-001 was next"),
    (GREET + "sys.stdout.buffer.write(b'\\xff\\n')", "no UTF-8"),
    (GREET + "os.abort()", "exit code -6"),
    (GREET + "raise RuntimeError('out of luck')", "exit code 1; it said: (?s:.*)out of luck"),
    (GREET + RIGHT + EACH + "number < 5 and say(host.line(line))", "ended where the answer to case philox-006"),
    (GREET + RIGHT + EACH + "say(host.line(line))\nsay({})", "said more than it was asked"),
    (GREET + RIGHT + EACH + "say(host.line(line))\nsys.exit(9)", "exit code 9"),
    (GREET + "say('x' * (1 << 25))", "more than 16,777,216 bytes"),
]


@pytest.mark.parametrize(("code", "message"), TROUBLE, ids=[message[:40] for _, message in TROUBLE])
def test_trouble_is_told_and_never_passes(code: str, message: str) -> None:
    outcome = run(code)
    assert not outcome.passed
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(outcome.trouble)
    assert outcome.cases == len(FEW)


HANGING = [
    "import time; time.sleep(600)",
    GREET + "time.sleep(600)",
    GREET + "import subprocess; subprocess.run(['sleep', '600'])",
    GREET + "os.close(1); time.sleep(600)",
]


@pytest.mark.parametrize("code", HANGING)
def test_a_host_that_hangs_is_stopped(code: str) -> None:
    outcome = run(code, patience=1.0)
    assert not outcome.passed
    assert "stopped" in outcome.trouble or "ended where" in outcome.trouble


def test_a_process_that_left_the_host_s_group_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_host, "GRACE", 0.1)
    asleep = "import time; time.sleep(60)"
    leave = f"import subprocess; left = subprocess.Popen([sys.executable, '-c', '{asleep}'], start_new_session=True)\n"
    outcome = run(GREET + leave + "say({'left': left.pid})", patience=1.0)
    assert not outcome.passed
    (pid,) = map(int, re.findall(r'"left": (\d+)', outcome.trouble))
    reading = [thread for thread in threading.enumerate() if "_read" in thread.name]
    assert reading  # from a pipe that is still open
    os.kill(pid, signal.SIGKILL)
    for thread in reading:
        thread.join()


def test_a_host_that_cannot_be_started() -> None:
    outcome = check(CommandHost(["./no-such-host"]), FEW)
    assert "'./no-such-host' can't be started" in outcome.trouble


def test_a_wrong_answer_and_a_kind_that_is_not_there_fail_their_cases_alone() -> None:
    wrong = "say({'id': json.loads(line)['id'], 'unsupported': True} if number == 2 else "
    outcome = run(GREET + RIGHT + EACH + wrong + "host.line(line.replace('0, 0, 0, 0', '0, 0, 0, 1')))")
    row = outcome.rows["philox"]
    assert (row.passed, row.failed, row.unsupported, row.unanswered) == (len(FEW) - 2, 1, 1, 0)
    assert row.first.startswith("philox-001: expected {")
    assert not outcome.passed


@pytest.mark.parametrize("answer", ['{"words": [true]}', '{"words": [1.0]}', '{"words": [1], "more": 2}', "null", "[]"])
def test_equal_means_equal_as_json(answer: str) -> None:
    class Fixed:
        def line(self, text: str) -> str:
            asked = json.loads(text)
            if "format" in asked:
                return json.dumps({**asked, "host": "fixed"})
            return '{"id": "a", "answer": ' + answer + "}"

    case = type(FEW[0])("a", "philox", {}, {"words": [1]})
    assert not check(InProcess(Fixed()), [case]).passed


def test_answers_are_never_sent() -> None:
    sent: list[str] = []

    class Spy:
        def line(self, text: str) -> str:
            sent.append(text)
            raise OSError("seen enough") if len(sent) > 1 else ValueError("at once")

    outcome = check(InProcess(Spy()), FEW)
    assert outcome.trouble == "the host raised ValueError: at once"
    assert all("answer" not in text for text in sent)


def test_no_cases_at_all_is_an_error() -> None:
    with pytest.raises(CasesError, match="an empty list would pass any host"):
        check(InProcess(None), [])
    assert not Outcome().passed


# The command.


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


HOST = (sys.executable, "-m", "journee_conformance", "host")


def test_the_command_prints_a_table_and_exits_by_it() -> None:
    done = command("check", "--kind", "philox", "--kind", "below", "--", *HOST)
    assert done.exit_code == 0, done.output
    assert "python, plain conforms: 89 of 89 cases passed" in done.stdout
    bad = command("check", "--kind", "philox", "--", sys.executable, "-c", "print('hello')")
    assert bad.exit_code == 1
    assert "does NOT conform: 0 of 12" in bad.stdout
    wrong = command("check", "--kind", "round", "--", sys.executable, "-m", "tests.conformance.wrong_host")
    assert wrong.exit_code == 1
    assert re.search(r"^first failure of round: round-\d+: expected .*, got ", wrong.stdout, re.MULTILINE)


def test_only_wrong_answers_show_a_wrong_host() -> None:
    """A host that died or can't start is no proof that the cases are strong enough."""
    right = check(InProcess(Host()), FEW)
    assert "too weak" in verdict(right)
    assert "every case" in verdict(check(CommandHost([sys.executable, "-c", "pass"], 60), FEW))
    partly = {case.kind: Row(case.kind, failed=1, unsupported=index) for index, case in enumerate(packaged_cases())}
    assert "unanswered" in verdict(Outcome(rows=partly))
    assert not verdict(Outcome(rows={"round": Row("round", passed=2, failed=1)}))


def test_the_command_speaks_json() -> None:
    found = json.loads(command("check", "--kind", "poisson", "--json", "--", *HOST, "--ops", "vectors").stdout)
    assert found["passed"] is True
    assert found["kinds"][0]["passed"] == found["cases"] == 45


REFUSED = [
    (("check",), "COMMAND"),
    (("check", "--kind", "none", "--", "true"), "no cases of kind 'none'"),
    (("check", "--patience", "0", "--", "true"), "--patience is 0"),
    (("check", "--patience", "nan", "--", "true"), "--patience is nan"),
    (("check", "--cases", "README.md", "--", "true"), "has no case files"),
    (("host", "--ops", "fast"), "'vectors'"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_the_command_refuses(arguments: tuple[str, ...], message: str) -> None:
    done = command(*arguments)
    assert done.exit_code != 0
    assert message in done.stderr


def test_generate_checks_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("generate", "--check").stdout == "11 files, as they should be\n"
    for file in (ROOT / "conformance" / "journee_conformance" / "cases").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    for name in ("journee_conformance.generate.PACKAGED", "journee_conformance.__main__.PACKAGED"):
        monkeypatch.setattr(name, tmp_path)
    (tmp_path / "philox.jsonl").write_text((tmp_path / "philox.jsonl").read_text().replace("1713891541", "1713891542"))
    (tmp_path / "old.jsonl").write_text((tmp_path / "pick.jsonl").read_text().replace("pick-", "old-"))
    done = command("generate", "--check")
    assert done.exit_code == 1
    assert "philox.jsonl, old.jsonl" in done.stderr
    assert command("generate").exit_code == 0
    assert command("generate", "--check").exit_code == 0
    (tmp_path / "recorded.jsonl").unlink()
    assert "recorded.jsonl is missing; record it again" in command("generate", "--check").stderr


def test_the_module_runs_as_a_host() -> None:
    """Line for line, flushed, and a clean end."""
    lines = '{"format": "journee-conformance", "version": 1}\n{"id": "a", "kind": "tea", "input": {}}\n'
    done = subprocess.run(HOST, input=lines, capture_output=True, text=True, check=True, cwd=ROOT)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"format": "journee-conformance", "version": 1, "host": "python, plain"},
        {"id": "a", "unsupported": True},
    ]
