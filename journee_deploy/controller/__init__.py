"""The speculative controller: pure Python that does no I/O. Portable Python: CPython, Pyodide and MicroPython
run these files.

Theory of operation. `speculate` is a generator. It yields what it needs and what it has decided, and is sent
answers:

    yields (Run, …)   run models; answered with the handle of each run's first row of logits
    yields Emit       tokens that are final; answered with None

A round drafts K proposals, runs the target once over K + 1 rows, judges the proposals in order and emits 1 to
K + 1 tokens (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2). The words, from those
papers:

    accepted    a proposal kept
    recovered   sampled from the residual max(p - q, 0) after a rejection
    bonus       sampled from p after every proposal was accepted (with K = 0 that is plain decoding)

It never sees a logit: vectors live behind *ops* handles, randomness behind *chance*. Both are injected, so
the very same code runs over real models, over recorded logits, and over every branch of an enumerated toy
(journee_deploy.exactness).
"""

from __future__ import annotations

from journee_deploy.controller.caches import Caches
from journee_deploy.controller.chance import BONUS, DART, JUDGE, PROPOSE, RECOVER, Chance
from journee_deploy.controller.coupled import Coupled
from journee_deploy.controller.drafts import ModelDraft, NgramDraft, NoDraft, UniformDraft
from journee_deploy.controller.pace import AdaptivePace, ConstantPace
from journee_deploy.controller.philox import Philox
from journee_deploy.controller.requests import Emit, Judgement, Round, Run
from journee_deploy.controller.residual import Residual
from journee_deploy.controller.speculate import speculate
from journee_deploy.controller.stops import Stops

RULES = {rule.name: rule for rule in (Residual, Coupled)}

__all__ = [
    "BONUS",
    "DART",
    "JUDGE",
    "PROPOSE",
    "RECOVER",
    "RULES",
    "AdaptivePace",
    "Caches",
    "Chance",
    "ConstantPace",
    "Coupled",
    "Emit",
    "Judgement",
    "ModelDraft",
    "NgramDraft",
    "NoDraft",
    "Philox",
    "Residual",
    "Round",
    "Run",
    "Stops",
    "UniformDraft",
    "speculate",
]
