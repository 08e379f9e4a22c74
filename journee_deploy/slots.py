"""`SlotModel`: a `journee_deploy.runtime.Model` over any framework's `Forward`. It checks steps, keeps slots
and counters, and has the row rule in force; `journee_deploy.slot_runner` does the running.

A batch is run slot after slot: one sequence a run keeps a row's neighbours out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from journee_deploy.forward import Cache, Forward
from journee_deploy.row_rule import CHUNK, NO_RULE, RowRule
from journee_deploy.row_rule_cache import RuleKey, remembered
from journee_deploy.row_self_test import find_row_rule
from journee_deploy.runtime import Counters, Rows, RuntimeFailure, Step
from journee_deploy.slot_runner import Facts, Runner, Slot


class SlotModel(Generic[Cache]):
    """A `journee_deploy.runtime.Model` over a `Forward`."""

    def __init__(self, forward: Forward[Cache], facts: Facts, chunk: int = CHUNK) -> None:
        self._runner: Runner[Cache] | None = Runner(forward, facts, chunk)
        self._facts = facts
        self._slots: dict[int, Slot[Cache]] = {}
        self._rule: RowRule | None = None
        self._note = "no row rule was looked for"
        self._counters = Counters()

    @property
    def name(self) -> str:
        return self._facts.name

    @property
    def vocabulary_size(self) -> int:
        return self._facts.vocabulary_size

    @property
    def context_length(self) -> int:
        return self._facts.context_length

    @property
    def row_rule(self) -> RowRule | None:
        return self._rule

    @property
    def row_rule_note(self) -> str:
        return self._note

    @property
    def counters(self) -> Counters:
        return self._counters

    def adopt(self, rule: RowRule | None, note: str) -> None:
        """Put `rule` in force, or none; all slots are forgotten, for their caches came from other runs."""
        self._rule, self._note = rule, note
        self._forget()

    def settle(self, key: RuleKey | None) -> None:
        """Put the rule in force that is remembered under `key`, or that the self-test finds."""
        runner = self._opened()
        self.adopt(*remembered(key, lambda: find_row_rule(runner)))

    def run(self, steps: Sequence[Step]) -> list[Rows]:
        runner = self._opened()
        self._check_batch(steps)
        return [self._step(runner, step) for step in steps]

    def held(self, slot: int) -> int:
        return len(self._slots[slot].tokens) if slot in self._slots else 0

    def release(self, slot: int) -> None:
        if (held := self._slots.pop(slot, None)) is not None and self._runner is not None:
            self._runner.forward.free(held.after.cache)

    def _forget(self) -> None:
        for slot in list(self._slots):
            self.release(slot)

    def close(self) -> None:
        self._forget()
        if self._runner is not None:
            self._runner.forward.close()
        self._runner = None

    def _opened(self) -> Runner[Cache]:
        if self._runner is None:
            raise RuntimeFailure(f"{self.name} is closed; open it again")
        return self._runner

    def _check_batch(self, steps: Sequence[Step]) -> None:
        seen: set[int] = set()
        for step in steps:
            if step.slot in seen:
                raise RuntimeFailure(
                    f"{self.name}: slot {step.slot} twice in one batch; run its steps one after the other"
                )
            seen.add(step.slot)
            self._check_step(step)

    def _check_step(self, step: Step) -> None:
        if problem := self._problem(step, len(step.tokens), self.held(step.slot)):
            raise RuntimeFailure(f"{self.name}, slot {step.slot}: {problem}")

    def _problem(self, step: Step, count: int, held: int) -> str | None:
        if not count:
            return "a step without tokens; give at least one"
        if not 1 <= step.keep <= count:
            return f"keep is {step.keep}, expected 1 to {count}, the number of tokens"
        if not 0 <= step.start <= held:
            return f"start is {step.start}, but the cache holds {held} tokens; run the tokens between first"
        if step.start + count > self.context_length:
            length = self.context_length
            return f"{step.start + count} tokens are longer than the context of {length}; shorten the text"
        if bad := [token for token in step.tokens if not 0 <= token < self.vocabulary_size]:
            return f"token {bad[0]} is not in the vocabulary of {self.vocabulary_size}"
        return None

    def _step(self, runner: Runner[Cache], step: Step) -> Rows:
        if step.slot not in self._slots:
            self._slots[step.slot] = runner.fresh()
        return runner.step(self._slots[step.slot], step, self._rule or NO_RULE, self._counters)
