"""formal/ without Agda and Lean: the scan for holes, how checks fail, recorded answers, the names in the table."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from journee_conformance import formal
from journee_conformance.cases import packaged_cases

ROOT = Path(__file__).parents[2]
FORMAL = ROOT / "formal"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("formal_check", FORMAL / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


def test_the_sources_have_no_holes(check: ModuleType) -> None:
    assert check.scan().endswith("files")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("A.agda", "module A where\n"),
        ("A.agda", "{-# OPTIONS --safe --without-K #-}\npostulate a : Set\n"),
        ("A.agda", "{-# OPTIONS --safe --without-K #-}\na : Set\na = {! !}\n"),
        ("A.agda", "{-# OPTIONS --safe --without-K #-}\na : Set\na = ?\n"),
        ("A.agda", "{-# OPTIONS --safe --without-K #-}\n{-# TERMINATING #-}\n"),
        ("A.lean", "theorem a : False := sorry\n"),
        ("A.lean", "axiom a : False\n"),
        ("A.lean", "/- a -/ axiom a : False\n"),
    ],
)
def test_a_hole_is_seen(check: ModuleType, name: str, text: str) -> None:
    assert list(check.holes(name, text))


def test_words_in_comments_are_no_holes(check: ModuleType) -> None:
    assert not list(check.holes("A.agda", check.SAFE + "\n-- a postulate?\n"))
    assert not list(check.holes("A.lean", "-- no axiom\n/- sorry -/\n#print axioms a\n"))


def test_what_is_missing_is_told(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check.shutil, "which", lambda name: None)
    with pytest.raises(check.CheckError, match=r"no apt-get here.*agda-bin and agda-stdlib"):
        check.install_agda()
    monkeypatch.setattr(check.shutil, "which", lambda name: None if name == "agda" else "/usr/bin/" + name)
    monkeypatch.setattr(check.os, "geteuid", lambda: 1000)
    with pytest.raises(check.CheckError, match="apt-get needs root"):
        check.install_agda()


def test_a_command_that_fails_is_an_error(check: ModuleType) -> None:
    with pytest.raises(check.CheckError, match="ended with 3, expected"):
        check.command(sys.executable, "-c", "raise SystemExit(3)")
    with pytest.raises(check.CheckError, match="not installed"):
        check.command("no-such-command-anywhere")


@pytest.mark.parametrize(
    ("code", "said"),
    [(0, "q x"), (42, "another error in False.agda")],
)
def test_a_false_statement_must_fail_for_its_reason(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, said: str
) -> None:
    file = tmp_path / "False.agda"
    file.write_text("-- Rejected: p x != q x\n")

    def agda(*words: object, expected: tuple[int, ...]) -> str:
        if code not in expected:
            raise check.CheckError("ended well")
        return said

    monkeypatch.setattr(check, "agda", agda)
    with pytest.raises(check.CheckError):
        check.reject(file)


def test_every_false_statement_says_why(check: ModuleType) -> None:
    files = [*FORMAL.glob("false/*.agda"), *FORMAL.glob("false/*.lean")]
    assert len(files) >= 8
    for file in files:
        assert check.reason(file.read_text("utf-8"), "--")


def test_recorded_answers_are_the_cases_answers(check: ModuleType) -> None:
    cases = [case for case in packaged_cases() if formal.question(case.kind, case.input) is not None]
    recorded = formal.recorded()
    answers: dict[str, str] = {}
    for case in cases:
        asked = formal.question(case.kind, case.input)
        assert asked is not None
        answers[asked] = recorded[formal.digest(asked)]
    check.compare(cases, recorded, answers)
    assert len(recorded) == len(answers) == 312
    with pytest.raises(check.CheckError, match="one is wrong"):
        check.compare(cases, recorded, dict.fromkeys(answers, "7 7 7"))
    with pytest.raises(check.CheckError, match="record again"):
        check.compare(cases, {}, answers)


def test_a_case_that_the_shipped_code_decides_otherwise_is_not_made() -> None:
    case = next(case for case in packaged_cases(("verdict",)) if case.input["rule"] == "residual")
    wrong = {**case.answer, "accepted": not case.answer["accepted"]}
    assert formal.settle("verdict", [(case.id, case.input, case.answer)]) == [case.answer]
    with pytest.raises(formal.FormalError, match="one of them is wrong"):
        formal.settle("verdict", [(case.id, case.input, wrong)])
    with pytest.raises(formal.FormalError, match="has no recorded answer"):
        formal.settle("verdict", [(case.id, {**case.input, "position": 1 << 31}, case.answer)])


def table() -> list[list[str]]:
    text = (ROOT / "docs" / "exactness.md").read_text(encoding="utf-8").split("## 9. ")[1]
    rows = [line.strip("|").split("|") for line in text.split("\n\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_table_names_what_exists() -> None:
    """Theorems by file and name, case groups by kind, lines of code by module and symbol."""
    kinds = {case.kind for case in packaged_cases()}
    rows = table()
    assert len(rows) >= 7
    for _, theorems, groups, code in rows:
        for file, name in re.findall(r"`([\w/]+\.(?:agda|lean)): ([^`]+)`", theorems):
            text = (FORMAL / file).read_text(encoding="utf-8")
            declared = rf"^ *{re.escape(name)} :" if file.endswith("agda") else rf"^theorem {re.escape(name)}\b"
            assert re.search(declared, text, re.MULTILINE), f"{file} has no {name}"
        assert re.search(r"`[\w/]+\.(?:agda|lean): ", theorems)
        assert set(re.findall(r"`([^`]+)`", groups)) <= kinds
        for module, symbol in re.findall(r"`([\w.]+): ([\w.]+)`", code):
            found: object = importlib.import_module("journee_deploy." + module)
            for part in symbol.split("."):
                found = getattr(found, part)
