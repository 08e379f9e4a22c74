"""A host that is wrong in one place: it recovers from p, not from the residual.

`python -m tests.conformance.wrong_host` is that host; with `--check` it is put before the checker, as a command, and
exit code 0 means that it was seen: it answered every case, and some of them wrongly.
"""

from __future__ import annotations

import sys
from typing import Any

from journee_conformance.cases import packaged_cases
from journee_conformance.checker import Outcome, check
from journee_conformance.command_host import CommandHost
from journee_conformance.host import Host
from journee_deploy.controller import RECOVER, Residual
from journee_deploy.controller.chance import JUDGE


def judge(
    self: Residual, p: int, q: int, proposal: int, position: int, number: int, ops: Any, chance: Any
) -> tuple[int, bool, float | None]:
    """`Residual.judge`, but for where a recovered token comes from."""
    kept, coin = chance.accept(ops.weight(p, proposal), ops.weight(q, proposal), (JUDGE, position, number))
    return (proposal, True, coin) if kept else (chance.pick(p, (RECOVER, position, number))[0], False, coin)


def verdict(outcome: Outcome) -> str:
    """Empty if the checker saw what is wrong with this host, and nothing else."""
    wrong = sum(row.failed for row in outcome.rows.values())
    if outcome.trouble or wrong != outcome.failed:
        return f"the wrong host was to answer every case: {outcome.trouble or 'some went unanswered'}"
    return "" if wrong else "a wrong host passed: the cases are too weak"


def be() -> None:
    Residual.judge = judge  # type: ignore[method-assign]
    wrong = Host(name="a wrong host")
    for line in sys.stdin:
        print(wrong.line(line), flush=True)


def seen() -> None:
    outcome = check(CommandHost((sys.executable, "-m", "tests.conformance.wrong_host"), 60.0), packaged_cases())
    if trouble := verdict(outcome):
        sys.exit(trouble)
    print(f"{outcome.host}: {outcome.failed} of {outcome.cases} cases answered wrongly, as it must be")


if __name__ == "__main__":
    seen() if sys.argv[1:] == ["--check"] else be()
