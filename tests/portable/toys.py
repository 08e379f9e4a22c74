"""Toy models and a host with real caches, in portable Python: MicroPython runs this file too."""

from __future__ import annotations

from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.controller import Chance, ConstantPace, Emit, ModelDraft, Philox, Residual, Stops, speculate


def hashed(salt, prefix):
    """A number below 2^24 that depends on every token of the prefix; a fixed walk of small whole numbers."""
    state = salt + 1
    for token in prefix:
        state = (state * 69069 + token * 7919 + 12345) % 16777216
    return state


def model(salt, columns, spread=64):
    """A function from a prefix to logits: whole multiples of 1/64, the same in every language."""

    def logits(prefix):
        state = hashed(salt, prefix)
        row = []
        for _ in range(columns):
            state = (state * 69069 + 1) % 16777216
            row.append((state // 1024 % (4 * spread) - 2 * spread) / 64)
        return row

    return logits


class Host:
    """Answers runs from caches that keep what was run, rejected proposals too, until a run overwrites it."""

    def __init__(self, models, ops):
        self.models = models
        self.ops = ops
        self.caches = {}
        self.runs = []

    def answer(self, run):
        cache = self.caches.setdefault(run.role, [])
        if not (0 <= run.start <= len(cache) and 1 <= run.keep <= len(run.tokens)):
            raise RuntimeError(repr(run) + " does not fit a cache of " + str(len(cache)) + " tokens")
        del cache[run.start :]
        cache.extend(run.tokens)
        self.runs.append(run)
        first = len(cache) - run.keep
        rows = [self.models[run.role](cache[: first + i + 1]) for i in range(run.keep)]
        return self.ops.hold(run.role, first + 1, rows)


def drive(controller, host):
    """Run a controller to its end; its Emits."""
    emits = []
    wish = next(controller)
    while True:
        if isinstance(wish, Emit):
            emits.append(wish)
            answer = None
        else:
            answer = tuple([host.answer(run) for run in wish])
        try:
            wish = controller.send(answer)
        except StopIteration:
            return emits


def generate(
    target,
    draft,
    sampling,
    prompt,
    size,
    limit,
    length,
    seed,
    maker=ModelDraft,
    ends=(),
    trace=False,
    rule=Residual,
    pace=None,
):
    """The Emits of one generation over plain ops and Philox; `length` counts where no pace is given."""
    ops = PlainOps(list(prompt), size, sampling, ends)
    host = Host({"target": target, "draft": draft}, ops)
    controller = speculate(
        prompt,
        ops=ops,
        chance=Chance(ops, Philox(seed)),
        rule=rule(),
        draft=maker(),
        pace=ConstantPace(length) if pace is None else pace,
        stops=Stops(limit, ends=ends),
        trace=trace,
    )
    return drive(controller, host)


def tokens_of(emits):
    return [token for emit in emits for token in emit.tokens]


def kinds_of(emits):
    return [kind for emit in emits for kind in emit.kinds]


def refusal(kind, make):
    """What an error of this kind says when `make` is called; "" if there is none."""
    try:
        make()
    except kind as error:
        return str(error) or "refused"
    return ""
