"""The controller and the arithmetic of this host, apart from any bundle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from journee_deploy.arithmetic.vectors import VectorOps, check_denormals
from journee_deploy.controller import RULES
from journee_deploy.enumeration import distance
from journee_deploy.exactness import emitted_law, enumerable, target_law, toys
from journee_deploy.verification.check import Finding
from journee_deploy.verification.effort import Effort


def exactness_finding(effort: Effort) -> Finding:
    """Every branch of the shipped controller over toys, for each rule: the emitted law is the target's, exactly."""
    chosen = [toy for toy in toys() if toy.name not in effort.toys_left_out]
    branches = 0
    for name, rule in RULES.items():
        for toy in chosen:
            emitted, leaves = emitted_law(short := enumerable(toy, rule), rule)
            branches += leaves
            if error := distance(emitted, target_law(short)):
                return Finding(
                    False, f"rule {name}, toy '{toy.name}': TV {error}, expected 0", _toys(error, 0, branches)
                )
    sentence = f"error 0 as a fraction over {branches} branches of {len(chosen)} of {len(toys())} toys, each rule"
    return Finding(True, sentence, _toys(Fraction(0), len(chosen), branches))


def _toys(error: Fraction, count: int, branches: int) -> dict[str, object]:
    return {"error": str(error), "toys": count, "of": len(toys()), "branches": branches, "rules": list(RULES)}


def conformance_finding() -> Finding:
    """The packaged cases, answered by the arithmetic that serves."""
    from journee_conformance.cases import CasesError, packaged_cases  # noqa: PLC0415  read only where they are asked for
    from journee_conformance.checker import InProcess, check  # noqa: PLC0415
    from journee_conformance.host import Host  # noqa: PLC0415

    check_denormals()
    try:
        outcome = check(InProcess(Host(VectorOps, np.array, "python, vectors")), packaged_cases())
    except CasesError as error:
        return Finding(False, f"the packaged cases are no good: {error}; install journee-deploy again")
    wrong = next((f"{row.kind}: {row.first}" for row in outcome.rows.values() if row.first), outcome.trouble)
    right = f"{outcome.cases - outcome.failed} of {outcome.cases} cases answered to the last digit"
    return Finding(outcome.passed, right + (f"; {wrong}" if wrong else ""), outcome.as_dict())
