"""The Python host: answers cases with the shipped controller and arithmetic. Portable Python.

There is no second implementation of anything here: a case is translated, the shipped code is run, its result is
translated back. MicroPython runs this file too (conformance/micropython.mjs).
"""

from __future__ import annotations

import binascii
import json
import struct

from journee_deploy.arithmetic.arena import LogitsError
from journee_deploy.arithmetic.plain import PlainOps
from journee_deploy.arithmetic.sampling import Sampling, SamplingError
from journee_deploy.controller import (
    RULES,
    Chance,
    ConstantPace,
    Emit,
    ModelDraft,
    NgramDraft,
    NoDraft,
    Philox,
    Stops,
    UniformDraft,
    darts,
    speculate,
)
from journee_deploy.controller.philox import philox
from journee_deploy.controller.requests import EMPTY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any

    Case = dict[str, Any]
    Answer = dict[str, Any]

FORMAT = "journee-conformance"
VERSION = 1
UNITS = 1 << 50


class Refused(Exception):  # noqa: N818  not an error of the host: an answer
    """The input is refused; `code` is the answer's."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class VersionError(Exception):
    """A greeting of a format or a version that this host doesn't know."""


class NoRowError(Exception):
    """A case of a generation lacks a row that the run asked for: a right host doesn't ask for it."""


def floats(text: str) -> list[float]:
    """Float32 numbers, exactly, from eight hexadecimal digits each."""
    return list(struct.unpack(">" + str(len(text) // 8) + "f", binascii.unhexlify(text)))


def double(text: str) -> float:
    """A float64 from sixteen hexadecimal digits."""
    (value,) = struct.unpack(">d", binascii.unhexlify(text))
    return float(value)


def vector(units: Sequence[int]) -> list[float]:
    return [unit / UNITS for unit in units]


def units_of(values: Sequence[float]) -> list[int]:
    return [int(value * UNITS) for value in values]


def options(given: dict[str, Any]) -> dict[str, Any]:
    """A case's options as `Sampling` takes them."""
    found: dict[str, Any] = {}
    for name in sorted(given):
        value = given[name]
        if name == "logit_bias":
            found[name] = {token: double(amount) for token, amount in value}
        else:
            found[name] = double(value) if isinstance(value, str) else value
    return found


def sampling(given: dict[str, Any]) -> Sampling:
    """The options, or the name of the first one, in alphabetic order, that is out of its range."""
    chosen = options(given)
    for name in sorted(chosen):
        try:
            Sampling(**{name: chosen[name]})
        except SamplingError:
            raise Refused(name) from None
    return Sampling(**chosen)


def draws(case: Case) -> Philox:
    try:
        return Philox(int(case["seed"], 16), case["sample"])
    except ValueError:
        raise Refused("sample") from None


class Host:
    """Answers by kind. `ops` is a class of vector arithmetic, and `rows` makes of a list what it computes with."""

    def __init__(self, ops: Any = PlainOps, rows: Callable[[list[float]], Any] = list, name: str = "python") -> None:
        self.name = name
        self._ops = ops
        self._rows = rows
        self._answers = {
            "philox": self.philox,
            "below": self.below,
            "distribution": self.distribution,
            "pick": self.pick,
            "verdict": self.verdict,
            "poisson": self.poisson,
            "dart": self.dart,
            "round": self.round,
            "generation": self.generation,
            "refusal": self.refusal,
        }

    def line(self, text: str) -> str:
        """One line of the protocol in, one out. Another version raises VersionError: end the host."""
        asked = json.loads(text)
        if "format" in asked:
            if asked["format"] != FORMAT or asked["version"] != VERSION:
                raise VersionError("this host knows " + FORMAT + " " + str(VERSION) + ", not " + text.strip())
            return json.dumps({"format": FORMAT, "version": VERSION, "host": self.name})
        if asked["kind"] not in self._answers:
            return json.dumps({"id": asked["id"], "unsupported": True})
        try:
            return json.dumps({"id": asked["id"], "answer": self.answer(asked["kind"], asked["input"])})
        except NoRowError as error:
            return json.dumps({"id": asked["id"], "error": str(error)})

    def answer(self, kind: str, case: Case) -> Answer:
        try:
            return self._answers[kind](case)
        except Refused as refused:
            return {"refused": refused.code}

    # Draws.

    def philox(self, case: Case) -> Answer:
        return {"words": list(philox(case["counter"], case["key"]))}

    def below(self, case: Case) -> Answer:
        try:
            return {"value": draws(case).below(case["n"], tuple(case["key"]))}
        except ValueError:
            raise Refused("n") from None

    def poisson(self, case: Case) -> Answer:
        words = list(case["words"])
        stream = iter(words)
        count = darts.poisson(stream)
        return {"darts": count, "words": len(words) - len(list(stream))}

    # Distributions.

    def _arena(self, case: Case, chosen: Sampling) -> Any:
        try:
            ops = self._ops(list(case["prompt"]), case["size"], chosen, case.get("ends", []))
        except SamplingError:
            raise Refused("logit_bias") from None
        except ValueError:
            raise Refused("prompt") from None
        if not case["prompt"]:
            raise Refused("prompt")
        return ops

    def distribution(self, case: Case) -> Answer:
        chosen = sampling(case["options"])
        ops = self._arena(case, chosen)
        for token in case["generated"]:
            ops.push(token)
        handle = self._distribution(ops, case)
        return {"empty": True} if handle == EMPTY else {"units": units_of(ops.vector(handle))}

    def _distribution(self, ops: Any, case: Case) -> int:
        row = [self._rows(floats(case["logits"]))]
        position = len(case["prompt"]) + len(case["generated"])
        try:
            return int(ops.distribution(ops.hold(case["role"], position, row)))
        except LogitsError:
            code = "logits"
        try:  # with every option off, only the logits can be at fault
            bare = self._ops(list(case["prompt"]), case["size"], Sampling(), [])
            bare.distribution(bare.hold("draft", position, row))
            code = "masked"
        except LogitsError:
            pass
        raise Refused(code)

    def refusal(self, case: Case) -> Answer:
        """Whether a generation with these options would begin at all."""
        draws(case)
        self._arena(case, sampling(case["options"]))
        return {"accepted": True}

    # Decisions, from distributions as given.

    def _given(self, size: int, length: int = 1) -> Any:
        """Ops, after a text of some length, whose rows are distributions already; None is one that masking emptied."""

        class Given(self._ops):  # type: ignore[name-defined, misc]
            def _distribute(self, role: str, position: int, logits: Any) -> Any:
                return logits

        return Given([0] * length, size, Sampling(), [])

    def pick(self, case: Case) -> Answer:
        ops = self._given(len(case["units"]))
        handle = ops.keep(self._rows(vector(case["units"])))
        return {"token": ops.locate(handle, case["coin"] / UNITS)}

    def verdict(self, case: Case) -> Answer:
        ops = self._given(len(case["p"]))
        p, q = (ops.keep(self._rows(vector(case[name]))) for name in ("p", "q"))
        chance = Chance(ops, draws(case))
        rule = RULES[case["rule"]]()
        token, kept, _ = rule.judge(p, q, case["proposal"], case["position"], case["round"], ops, chance)
        return {"accepted": kept, "token": token}

    def dart(self, case: Case) -> Answer:
        ops = self._given(len(case["units"]))
        handle = ops.keep(self._rows(vector(case["units"])))
        token, window = Chance(ops, draws(case)).first_dart(handle, case["position"])
        return {"token": token, "window": window}

    def round(self, case: Case) -> Answer:
        """The first round after a prompt of `position` tokens."""
        position = case["position"]
        ops = self._given(len(case["p"][0]), position)
        proposals: list[int] = []

        def rows(role: str, before: list[int], keep: int) -> int:
            first = len(before) - keep + 1
            proposals[:] = before[position:]
            held = case["q" if role == "draft" else "p"][first - position :][:keep]
            row = [None if units is None else self._rows(vector(units)) for units in held]
            return int(ops.hold(role, first, row))

        controller = self._controller(case, [0] * position, ops, len(case["q"]), ModelDraft(), Stops(1 << 20))
        (emit,) = _drive(controller, rows, 1)
        return {"proposals": list(proposals), "tokens": list(emit.tokens), "kinds": list(emit.kinds)}

    # Generations, from rows of logits by the text before them.

    def generation(self, case: Case) -> Answer:
        draws(case)
        ops = self._arena(case, sampling(case["options"]))
        prompt = list(case["prompt"])
        logits = self.recorded(case)

        def rows(role: str, before: list[int], keep: int) -> int:
            first = len(before) - keep + 1
            texts = [tuple(before[len(prompt) : first + i]) for i in range(keep)]
            return int(ops.hold(role, first, [self._rows(floats(logits(role, text))) for text in texts]))

        draft = _draft(case["draft"], case["draft_context"])
        stops = Stops(case["limit"], ends=case["ends"], sequences=case["stops"])
        controller = self._controller(case, prompt, ops, case["length"], draft, stops)
        emits = _drive(controller, rows, -1)
        return {
            "tokens": [token for emit in emits for token in emit.tokens],
            "kinds": [kind for emit in emits for kind in emit.kinds],
            "reason": emits[-1].reason,
            "rounds": [_counts(emit) for emit in emits],
        }

    def recorded(self, case: Case) -> Callable[[str, tuple[int, ...]], str]:
        """A role's row after so many generated tokens and proposals, as float32 digits."""
        known: dict[tuple[str, tuple[int, ...]], str] = {
            (row["role"], tuple(row["after"])): row["logits"] for row in case["rows"]
        }

        def row(role: str, after: tuple[int, ...]) -> str:
            if (role, after) not in known:
                raise NoRowError("no row of the " + role + " after " + str(list(after)))
            return known[role, after]

        return row

    def _controller(self, case: Case, prompt: list[int], ops: Any, length: int, draft: Any, stops: Stops) -> Any:
        return speculate(
            prompt,
            ops=ops,
            chance=Chance(ops, draws(case)),
            rule=RULES[case["rule"]](),
            draft=draft,
            pace=ConstantPace(length),
            stops=stops,
        )


def _draft(kind: str, context: int) -> Any:
    if kind == "model":
        return ModelDraft(context)
    return {"ngram": NgramDraft, "uniform": UniformDraft, "none": NoDraft}[kind]()


def _counts(emit: Emit) -> list[int]:
    counts = emit.round
    return [counts.length, counts.proposed, counts.judged, counts.accepted, counts.emitted, counts.empty]


def _drive(controller: Generator[Any, Any, None], rows: Callable[[str, list[int], int], int], most: int) -> list[Emit]:
    """Run a controller over caches of texts, to its end or for so many rounds."""
    emits: list[Emit] = []
    caches: dict[str, list[int]] = {}
    wish = next(controller)
    while True:
        answer = None
        if isinstance(wish, Emit):
            emits.append(wish)
            if wish.reason or len(emits) == most:
                controller.close()
                return emits
        else:
            answer = tuple([_answer(caches, run, rows) for run in wish])
        wish = controller.send(answer)


def _answer(caches: dict[str, list[int]], run: Any, rows: Callable[[str, list[int], int], int]) -> int:
    text = caches.get(run.role, [])[: run.start] + list(run.tokens)
    if len(text) != run.start + len(run.tokens):
        raise RuntimeError(repr(run) + " starts past what the cache holds")
    caches[run.role] = text
    return rows(run.role, text, run.keep)
