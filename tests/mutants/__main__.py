"""`python -m tests.mutants`: every mistake and the test that sees it, as a table; names choose some of them.

`--all` runs all quick tests on each and lists every one that sees it: about a minute a mutant.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.mutants.mutants import ABSENT, MUTANTS
from tests.mutants.runner import KILLED, Copy

QUICK = (
    "tests/arithmetic",
    "tests/controller",
    "tests/conformance",
    "tests/test_exactness.py",
    "tests/engine",
    "tests/bundle",
    "tests/runtime",
)
"""What --all runs: not what trains or exports models, and not the commands."""


def main(arguments: list[str]) -> int:
    every = "--all" in arguments
    names = {argument for argument in arguments if argument != "--all"}
    if unknown := names - {mutant.name for mutant in MUTANTS}:
        print(f"there is no mutant {', '.join(sorted(unknown))}")
        return 2
    table = Table(title="mistakes, and the tests that see them", title_justify="left")
    for column in ("mistake (design section 9)", "mutant", "part", "killer", "verdict"):
        table.add_column(column, overflow="fold")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder).resolve())
        for mutant in MUTANTS:
            if names and mutant.name not in names:
                continue
            verdict = copy.verdict(mutant)
            failures += verdict != KILLED
            killers = copy.killers(mutant, QUICK) if every else [mutant.killer]
            table.add_row(mutant.mistake, mutant.name, mutant.part, "\n".join(killers), verdict)
            print(f"{mutant.name}: {verdict}", file=sys.stderr)
    for mistake, reason in ABSENT.items():
        table.add_row(mistake, "", "", reason, "not there yet")
    Console(highlight=False, width=None if sys.stdout.isatty() else 200).print(table)
    print(f"{failures} not killed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
