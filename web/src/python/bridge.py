"""The bridge between a page and the controller: one generation a key, driven a step at a time. Portable Python.

Little may cross, for MicroPython passes whole numbers as 32 bits, cuts strings at NUL and is ruined by an exception of
JavaScript's: fractions from 0 to 1, whole numbers below 2^31, and strings. No None crosses (Pyodide has two kinds), no
object and no generator. An op that failed answers FAILED and keeps its error: Python unwinds, and the page throws the
error when Python is back. What the page made and Python need not look into, such as the most probable tokens for a
report, stays in the page and has a number here.
"""

from __future__ import annotations

import binascii
import gc
import json
import struct
import sys

from journee_deploy.controller import (
    RULES,
    AdaptivePace,
    Chance,
    ConstantPace,
    Emit,
    ModelDraft,
    NgramDraft,
    NoDraft,
    Philox,
    Residual,
    Stops,
    UniformDraft,
    speculate,
)
from journee_deploy.controller.chance import JUDGE, RECOVER

UNITS = 1 << 50
FAILED = -2
DRAFTS = {"none": NoDraft, "uniform": UniformDraft, "ngram": NgramDraft}

_live = {}
_page = {}


class OpError(Exception):
    """An op failed; the page has the error."""


def _answer(value):
    if value == FAILED:
        raise OpError("an op failed")
    return value


class Functions:
    """The page's functions. Each is looked up once: a look-up makes a proxy."""

    def __init__(self, page):
        self.clear = page.clear
        self.push = page.push
        self.truncate = page.truncate
        self.distribution = page.distribution
        self.oneHot = page.oneHot
        self.uniform = page.uniform
        self.weight = page.weight
        self.total = page.total
        self.locate = page.locate
        self.residual = page.residual
        self.boxes = page.boxes
        self.overlap = page.overlap
        self.agreement = page.agreement
        self.top = page.top
        self.topLogits = page.topLogits
        self.below = page.below
        self.firstDart = page.firstDart
        self.strings = page.strings


class PageOps:
    """`journee_deploy.protocols.Ops` in the page, of one generation."""

    def __init__(self, page, size):
        self._clear = page.clear
        self._push = page.push
        self._truncate = page.truncate
        self._distribution = page.distribution
        self._one_hot = page.oneHot
        self._uniform = page.uniform
        self._weight = page.weight
        self._total = page.total
        self._locate = page.locate
        self._residual = page.residual
        self._boxes = page.boxes
        self._overlap = page.overlap
        self._agreement = page.agreement
        self._top = page.top
        self._top_logits = page.topLogits
        self.size = size

    def clear(self):
        _answer(self._clear())

    def push(self, token):
        _answer(self._push(token))

    def truncate(self, length):
        _answer(self._truncate(length))

    def distribution(self, row):
        return _answer(self._distribution(row))

    def one_hot(self, token):
        return _answer(self._one_hot(token))

    def uniform(self):
        return _answer(self._uniform())

    def weight(self, handle, token):
        return _answer(self._weight(handle, token))

    def total(self, handle):
        return _answer(self._total(handle))

    def locate(self, handle, fraction):
        return _answer(self._locate(handle, fraction))

    def residual(self, p, q):
        return _answer(self._residual(p, q))

    def boxes(self, handle):
        numbers = _numbers(_text(self._boxes(handle)))
        return [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]

    def overlap(self, p, q):
        return _answer(self._overlap(p, q))

    def agreement(self, p, q):
        return _answer(self._agreement(p, q))

    def top(self, handle, count):
        return _answer(self._top(handle, count))

    def top_logits(self, row, count):
        return _answer(self._top_logits(row, count))


class PageDraws:
    """Philox in the page: bounds and values cross as fractions, exactly."""

    def __init__(self, page):
        self._below = page.below

    def below(self, n, key):
        purpose, position, round_ = key
        return int(_answer(self._below(n / UNITS, purpose, position, round_)) * UNITS)


class PageChance(Chance):
    """The shipped questions, over the page's draws. Darts are thrown in the page: hundreds of words a position."""

    def __init__(self, ops, page):
        super().__init__(ops, PageDraws(page))
        self._dart = page.firstDart

    def first_dart(self, handle, position):
        return _answer(self._dart(handle, position)), 0  # the window concerns nobody


class PageStrings:
    """Asks the page whether a stop string is complete; tells it only what it was not told before."""

    def __init__(self, page):
        self._told = 0
        self._contains = page.strings

    def __call__(self, generated, new):
        start = min(self._told, len(generated))
        self._told = len(generated)
        return bool(_answer(self._contains(start, _joined(generated[start:]), _joined(new))))


class Wrong(Residual):
    """A mistake on purpose, to show what it does: a rejected proposal's place is taken by a draw from p."""

    def judge(self, p, q, proposal, position, number, ops, chance):
        kept, coin = chance.accept(ops.weight(p, proposal), ops.weight(q, proposal), (JUDGE, position, number))
        if kept:
            return proposal, True, coin
        token, _ = chance.pick(p, (RECOVER, position, number))
        return token, False, coin


def attach(page):
    """Take the page's functions. They answer for whichever generation is being stepped."""
    _page["functions"] = Functions(page)


def begin(key, spec):
    """Make a generation from its description (JSON); nothing runs yet."""
    asked = json.loads(spec)
    page = _page["functions"]
    ops = PageOps(page, asked["size"])
    seed = int(asked["seed"])
    stops = Stops(
        asked["limit"],
        reason=asked["reason"],
        ends=asked["ends"],
        sequences=asked["sequences"],
        strings=PageStrings(page) if asked["strings"] else None,
    )
    python = asked["draws"] == "python"
    _live[key] = speculate(
        asked["prompt"],
        ops=ops,
        chance=Chance(ops, Philox(seed, int(asked["sample"]))) if python else PageChance(ops, page),
        rule=Wrong() if asked["rule"] == "wrong" else RULES[asked["rule"]](),
        draft=_draft(asked["draft"]),
        pace=_pace(asked["pace"]),
        stops=stops,
        trace=asked["trace"],
    )


def _draft(asked):
    return ModelDraft(asked["context"]) if asked["kind"] == "model" else DRAFTS[asked["kind"]]()


def _pace(asked):
    if asked["kind"] == "constant":
        return ConstantPace(asked["length"])
    return AdaptivePace(_double(asked["draft"]), _double(asked["row"]), _double(asked["free"]), asked["most"])


def step(key, answer):
    """Send the handles of the rows asked for, or "", and say what is wanted next; "" at the end."""
    generation = _live[key]
    try:
        wish = generation.send(tuple(_numbers(answer)) if answer else None)
    except StopIteration:
        del _live[key]
        return ""
    except:
        del _live[key]
        raise
    return _emit(wish) if isinstance(wish, Emit) else "r|" + ";".join([_run(run) for run in wish])


def end(key):
    """Close the generation, so that its `finally` blocks run. Any number of times."""
    if key in _live:
        _live.pop(key).close()


def version():
    """The interpreter's, as 1.2.3."""
    return ".".join([str(part) for part in tuple(sys.implementation.version)[:3]])


def live():
    """How many generations are under way."""
    return len(_live)


def used():
    """Bytes in use after a collection; 0 where the interpreter can't tell."""
    gc.collect()
    return gc.mem_alloc() if hasattr(gc, "mem_alloc") else 0


def _run(run):
    return run.role + " " + str(run.start) + " " + str(run.keep) + " " + _joined(run.tokens)


def _emit(emit):
    counts = emit.round
    numbers = (
        counts.length,
        counts.proposed,
        counts.judged,
        counts.accepted,
        counts.emitted,
        counts.empty,
        counts.rows,
    )
    parts = (
        "e",
        _joined(emit.tokens),
        ",".join(emit.kinds),
        _joined(numbers),
        emit.reason,
        ";".join([_judgement(judgement) for judgement in emit.judgements]),
    )
    return "|".join(parts)


def _judgement(it):
    floats = (it.p, it.proposal_p, it.proposal_q, it.coin, it.tv, it.predicted)
    proposal = "" if it.proposal is None else str(it.proposal)
    return " ".join(
        [str(it.token), it.kind, proposal] + [_bits(value) for value in floats] + [str(it.top), str(it.logits)]
    )


def _bits(value):
    """A float64 as sixteen hexadecimal digits, "" for None: decimals are not read alike everywhere."""
    return "" if value is None else binascii.hexlify(struct.pack(">d", value)).decode()


def _double(digits):
    return struct.unpack(">d", binascii.unhexlify(digits))[0]


def _joined(numbers):
    return ",".join([str(number) for number in numbers])


def _numbers(text):
    return [int(number) for number in text.split(",")] if text else []


def _text(value):
    if value == "!":
        raise OpError("an op failed")
    return value
