"""What Python can see of the proofs: names in documents exist, holes are found, failures told, answers the cases'."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from journee_conformance import formal, generate
from journee_conformance.cases import CasesError, packaged_cases
from journee_conformance.host import Host

ROOT = Path(__file__).parents[2]
FORMAL = ROOT / "formal"


def load_check() -> Any:
    spec = importlib.util.spec_from_file_location("formal_check", FORMAL / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = load_check()


def test_no_source_has_a_hole() -> None:
    assert "sources" in check.scan(FORMAL)


@pytest.mark.parametrize(
    "line",
    [
        "postulate wrong : Set",
        "open import Agda.Builtin.TrustMe",
        "x = primTrustMe",
        "{-# TERMINATING #-}",
        "x = {! !}",
        "x = f ?",
        "{-# FOREIGN GHC x #-}",
    ],
)
def test_a_hole_in_agda_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "agda").mkdir()
    (tmp_path / "agda" / "Bad.agda").write_text(f"{{-# OPTIONS --safe #-}}\nmodule Bad where\n{line}\n")
    with pytest.raises(check.CheckError, match="Bad"):
        check.scan(tmp_path)


@pytest.mark.parametrize("line", ["theorem t : True := sorry", "axiom a : False", "unsafe def x := 1"])
def test_a_hole_in_lean_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "lean").mkdir()
    (tmp_path / "lean" / "Bad.lean").write_text(f"prelude\n{line}\n")
    with pytest.raises(check.CheckError, match="Bad"):
        check.scan(tmp_path)


def test_a_module_that_is_not_safe_and_one_that_imports_the_shell_are_found(tmp_path: Path) -> None:
    (tmp_path / "agda").mkdir()
    file = tmp_path / "agda" / "Bad.agda"
    file.write_text("module Bad where\n")
    with pytest.raises(check.CheckError, match="no --safe"):
        check.scan(tmp_path)
    file.write_text("{-# OPTIONS --safe #-}\nmodule Bad where\nimport Shell\n")
    with pytest.raises(check.CheckError, match="imports the shell"):
        check.scan(tmp_path)


def test_a_word_in_a_comment_is_no_hole(tmp_path: Path) -> None:
    (tmp_path / "agda").mkdir()
    text = "{-# OPTIONS --safe #-}\n-- no postulate here\n{- nor a sorry -}\nmodule Good where\n"
    (tmp_path / "agda" / "Good.agda").write_text(text)
    assert check.scan(tmp_path) == "1 sources"


def test_nothing_to_check_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(check.CheckError, match="no sources"):
        check.scan(tmp_path)


def test_a_false_statement_must_fail_for_its_own_reason(tmp_path: Path) -> None:
    file = tmp_path / "False.lean"
    file.write_text("-- rejected: type mismatch\n")
    check.rejected(file, 1, "error: type\n  mismatch")
    with pytest.raises(check.CheckError, match="accepted"):
        check.rejected(file, 0, "")
    with pytest.raises(check.CheckError, match="another reason"):
        check.rejected(file, 1, "no such file")
    file.write_text("nothing\n")
    with pytest.raises(check.CheckError, match="does not say"):
        check.rejected(file, 1, "error")


def test_every_false_statement_says_its_reason() -> None:
    files = sorted((FORMAL / "false").iterdir())
    assert {file.suffix for file in files} == {".agda", ".lean"}
    for file in files:
        assert check.expected(file)


@pytest.mark.parametrize(("apt", "user", "told"), [(None, 0, "no apt-get"), ("/usr/bin/apt-get", 1000, "run as root")])
def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, apt: str | None, user: int, told: str) -> None:
    monkeypatch.setattr(check.shutil, "which", lambda tool: apt if tool == "apt-get" else None)
    monkeypatch.setattr(check.os, "geteuid", lambda: user)
    with pytest.raises(check.CheckError, match=told):
        check.tools()


def test_an_unknown_argument_is_refused() -> None:
    done = subprocess.run([sys.executable, str(FORMAL / "check.py"), "--fast"], capture_output=True, check=False)
    assert done.returncode == 2


def test_recorded_answers_are_the_cases() -> None:
    recorded = formal.recorded()
    asked = [case for case in packaged_cases() if formal.question(case.kind, case.input)]
    assert {case.kind for case in asked} == {"philox", "below", "pick", "verdict", "round"}
    for case in asked:
        assert recorded[formal.asked_hash(case.kind, case.input)] == case.answer, case.id
    assert len(recorded) == len({formal.asked_hash(case.kind, case.input) for case in asked})


def test_the_generator_refuses_another_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"units": [1, 2], "coin": 0}
    monkeypatch.setattr(formal, "recorded", lambda: {formal.asked_hash("pick", asked): {"token": 1}})
    with pytest.raises(CasesError, match="proved program"):
        generate.render("pick", "pick", [asked])
    monkeypatch.setattr(formal, "recorded", dict)
    with pytest.raises(CasesError, match="no recorded"):
        generate.render("pick", "pick", [asked])
    assert Host().answer("pick", asked) == {"token": 0}


def table() -> list[list[str]]:
    text = (ROOT / "docs" / "exactness.md").read_text(encoding="utf-8")
    section = text[text.index("## 9. Proofs") : text.index("## What is not claimed")]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def test_what_the_table_of_proofs_names_is_there() -> None:
    kinds = {case.kind for case in packaged_cases()}
    assert len(table()) >= 5
    for _claim, theorems, groups, code in table():
        for file, name in re.findall(r"`([A-Z]\w*\.(?:agda|lean)): ([\w-]+)`", theorems):
            folder = FORMAL / ("agda" if file.endswith("agda") else "lean")
            assert re.search(rf"^\s*(?:theorem )?{re.escape(name)}\s", (folder / file).read_text(), re.MULTILINE), name
        assert re.search(r"`[A-Z]\w*\.(agda|lean): ", theorems)
        for kind in re.findall(r"`(\w+)`", groups):
            assert kind in kinds
        named = re.findall(r"`([\w/]+\.py): (\w+)`", code)
        assert named
        for file, name in named:
            assert re.search(rf"^\s*(def|class) {name}\b", (ROOT / "journee_deploy" / file).read_text(), re.MULTILINE)
