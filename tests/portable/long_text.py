"""A text of any length, one wish a call; for measuring memory from outside."""

from __future__ import annotations

import gc

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling
from journee_deploy.controller import Chance, ConstantPace, Emit, ModelDraft, Philox, Residual, Stops, speculate
from tests.portable.toys import model

MODELS = {"target": model(1, 4), "draft": model(2, 4)}


def answer(run):
    """Rows that depend on their last token and position only, so that a long prefix costs nothing."""
    first = len(run.tokens) - run.keep
    rows = [MODELS[run.role]([run.start + i, run.tokens[i]]) for i in range(first, len(run.tokens))]
    return ops.hold(run.role, run.start + first + 1, rows)


ops = PlainOps([1], 4, Sampling(repetition_penalty=1.25))
controller = speculate(
    [1],
    ops=ops,
    chance=Chance(ops, Philox(1)),
    rule=Residual(),
    draft=ModelDraft(),
    pace=ConstantPace(3),
    stops=Stops(1 << 30),
)
state = [next(controller), 0]


def advance():
    """Answer one wish; how many tokens there are."""
    wish = state[0]
    if isinstance(wish, Emit):
        state[1] += len(wish.tokens)
        state[0] = controller.send(None)
    else:
        state[0] = controller.send(tuple([answer(run) for run in wish]))
    return state[1]


def used():
    """Bytes in use, after a collection. (Only MicroPython's gc can tell.)"""
    gc.collect()
    return gc.mem_alloc()
