"""Models for tests: one that records every step of another, and one that answers from such a record.

A record of a target's and a draft's steps replays a whole generation without weights or a runtime, on any
machine and for any host. A replay looks rows up by the text they depend on, so it may split, batch and rewind
otherwise than the recording did, where the row rule makes such rows agree. What was never recorded, or was
recorded twice with different bits, is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from journee_deploy.forward import Ids
from journee_deploy.row_rule import RowRule
from journee_deploy.row_rule_cache import RuleKey
from journee_deploy.runtime import Counters, Model, Rows, RuntimeFailure, Step
from journee_deploy.slot_runner import Facts
from journee_deploy.slots import SlotModel
from journee_deploy.trace import Header, Trace

Text = tuple[int, ...]


class RecordingModel:
    """Runs another model's steps and remembers them; `trace()` gives the record so far, with the fingerprint given."""

    def __init__(self, model: Model, fingerprint: str = "") -> None:
        self._model = model
        self._fingerprint = fingerprint
        self._entries: list[tuple[Step, Rows]] = []

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def vocabulary_size(self) -> int:
        return self._model.vocabulary_size

    @property
    def context_length(self) -> int:
        return self._model.context_length

    @property
    def row_rule(self) -> RowRule | None:
        return self._model.row_rule

    @property
    def row_rule_note(self) -> str:
        return self._model.row_rule_note

    @property
    def counters(self) -> Counters:
        return self._model.counters

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        found = self._model.run(steps)
        self._entries += [(step, rows.copy()) for step, rows in zip(steps, found, strict=True)]
        return found

    def held(self, slot: int) -> int:
        return self._model.held(slot)

    def release(self, slot: int) -> None:
        self._model.release(slot)

    def close(self) -> None:
        self._model.close()

    def trace(self) -> Trace:
        """The steps run through this model since it was made."""
        model = self._model
        facts = (model.name, model.vocabulary_size, model.context_length, model.row_rule, model.row_rule_note)
        return Trace(Header(*facts, self._fingerprint), tuple(self._entries))


class ReplayModel(SlotModel[Text]):
    """Answers from a trace. It reports the recorded row rule and pads nothing."""

    def __init__(self, trace: Trace) -> None:
        facts = trace.header
        super().__init__(
            ReplayForward(trace),
            Facts(facts.name, facts.vocabulary_size, facts.context_length),
            chunk=facts.context_length,
        )
        self._header = facts

    def settle(self, key: RuleKey | None) -> None:
        raise RuntimeFailure(f"a trace of {self.name} has no row rule to look for; the recorded one holds")

    @property
    def row_rule(self) -> RowRule | None:
        return self._header.row_rule

    @property
    def row_rule_note(self) -> str:
        return self._header.row_rule_note


class ReplayForward:
    """A `journee_deploy.forward.Forward` whose cache is the text itself."""

    def __init__(self, trace: Trace) -> None:
        self._name = trace.header.name
        self._rows = _rows_by_text(trace)

    def empty(self) -> Text:
        return ()

    def run(self, past: Text, tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, Text]:
        del mask, positions  # a replay is neither padded nor moved
        text = (*past, *tokens.tolist())
        return np.stack([self._row(text[:end]) for end in range(len(text) - keep + 1, len(text) + 1)]), text

    @property
    def in_place(self) -> bool:
        return False

    def free(self, cache: Text) -> None:
        """A text costs nothing."""

    def trim(self, cache: Text, length: int) -> Text:
        return cache[:length]

    def invent(self, length: int, seed: int) -> Text:
        del seed
        return (0,) * length

    def close(self) -> None:
        self._rows = {}

    def _row(self, text: Text) -> Rows:
        found = self._rows.get(_digest(text), [])
        if len(found) == 1:
            return found[0]
        problem = "was recorded with different bits" if found else "was not recorded"
        end = ", ".join(map(str, text[-8:]))
        raise RuntimeFailure(
            f"trace of {self._name}: the row after these {len(text)} tokens (ending {end}) {problem}; "
            "record the same generation again"
        )


def _rows_by_text(trace: Trace) -> dict[bytes, list[Rows]]:
    """Each recorded row under its text; two where recordings of it differ."""
    held: dict[int, Text] = {}
    rows: dict[bytes, list[Rows]] = {}
    for step, found in trace.entries:
        text = held[step.slot] = held.get(step.slot, ())[: step.start] + step.tokens
        for back, row in enumerate(reversed(found)):
            known = rows.setdefault(_digest(text[: len(text) - back]), [])
            if not any(row.tobytes() == other.tobytes() for other in known):
                known.append(row)
    return rows


def _digest(text: Text) -> bytes:
    return hashlib.sha256(np.array(text, np.int64).tobytes()).digest()
