"""Makes a mistake in a copy of the sources and runs the test that must see it, in a process that imports the copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.mutants import Mutant

ROOT = Path(__file__).parents[2]
COPIED = ("journee", "journee_deploy", "conformance", "export", "runtimes", "tests", "docs", "pyproject.toml")
LINKED = ("artifacts", "checkpoints")
SOURCES = (".", "conformance", "export", "runtimes")
SKIPPED = shutil.ignore_patterns("__pycache__", "node_modules")

KILLED = "killed"
SURVIVED = "SURVIVED"
BROKEN = "no kill: the tests did not run"


class MutantError(AssertionError):
    """A row of the list that can't be tried; the message says what to do."""


class Copy:
    """A copy of the repository, in which one mistake at a time is made and undone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=SKIPPED)
            else:
                shutil.copy(source, folder / name)
        for name in LINKED:
            (folder / name).symlink_to(ROOT / name)
        self._check_imports()

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """The copy with the mistake in it."""
        file = self.folder / mutant.file
        before = file.read_text(encoding="utf-8")
        file.write_text(mutated_text(mutant, before), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(before, encoding="utf-8")

    def run(self, tests: Sequence[str], *, stop: bool = True) -> tuple[int, list[str]]:
        """pytest's exit code, and which tests failed (not those that could not be set up)."""
        options = ["-q", "-rf", "--tb=no", "-p", "no:cacheprovider", "--no-header", *(["-x"] if stop else [])]
        done = self._python("-m", "pytest", *options, *tests)
        return done.returncode, re.findall(r"^FAILED (\S+?)(?:\[.*)?(?: - .*)?$", done.stdout, re.MULTILINE)

    def verdict(self, mutant: Mutant) -> str:
        """Whether the named test sees the mistake."""
        with self.mutated(mutant):
            code, failed = self.run([mutant.killer])
        if code == 0:
            return SURVIVED
        return KILLED if code == 1 and set(failed) == {mutant.killer} else BROKEN

    def killers(self, mutant: Mutant, tests: Sequence[str]) -> list[str]:
        """Every test of these that sees the mistake."""
        with self.mutated(mutant):
            return sorted(set(self.run(tests, stop=False)[1]))

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(self.folder / name) for name in SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "JOURNEE_HYPOTHESIS": "unshrunk",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / ".hypothesis"),
        }
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def _check_imports(self) -> None:
        """What is installed must not be imported instead."""
        code = (
            "import journee_deploy as a, journee_runtimes as b, tests as c; print(a.__file__, b.__file__, c.__file__)"
        )
        done = self._python("-c", code)
        files = done.stdout.split()
        if len(files) != 3 or not all(Path(file).is_relative_to(self.folder) for file in files):
            raise MutantError(f"the copy in {self.folder} is not what Python imports: {done.stdout}{done.stderr}")


def mutated_text(mutant: Mutant, text: str) -> str:
    """The file's text with the mistake; refused where the list no longer fits the source."""
    for find, put in mutant.edits:
        if (times := text.count(find)) != 1:
            raise MutantError(f"mutant {mutant.name}: {mutant.file} has {find!r} {times} times, not once; mend its row")
        text = text.replace(find, put)
    if not mutant.edits:
        raise MutantError(f"mutant {mutant.name} changes nothing; give it edits")
    return text
