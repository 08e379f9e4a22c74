"""A host that is wrong in one place: it recovers from p, not from the residual. `make conformance` must see it fail."""

from __future__ import annotations

import sys
from typing import Any

from journee_conformance.host import Host
from journee_deploy.controller import RECOVER, Residual
from journee_deploy.controller.chance import JUDGE


def judge(
    self: Residual, p: int, q: int, proposal: int, position: int, number: int, ops: Any, chance: Any
) -> tuple[int, bool, float | None]:
    """`Residual.judge`, but for where a recovered token comes from."""
    kept, coin = chance.accept(ops.weight(p, proposal), ops.weight(q, proposal), (JUDGE, position, number))
    return (proposal, True, coin) if kept else (chance.pick(p, (RECOVER, position, number))[0], False, coin)


if __name__ == "__main__":
    Residual.judge = judge  # type: ignore[method-assign]
    wrong = Host(name="a wrong host")
    for line in sys.stdin:
        print(wrong.line(line), flush=True)
