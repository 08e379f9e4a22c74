"""Which tokens came before a row: what penalties look at. Portable Python.

Prompt and generated text are kept apart: repetition sees both, frequency and presence the generated text
only. The controller pushes proposals as it drafts and judges them, and truncates on rejection, so row i sees
the prompt, the decided text and the proposals before i, each counted once.
"""

from __future__ import annotations


class History:
    """A token sequence with its counts. `truncate` never reaches into the prompt."""

    def __init__(self, prompt: list[int]) -> None:
        self.prompt_length = len(prompt)
        self._generated: list[int] = []
        self._in_prompt: dict[int, int] = dict.fromkeys(prompt, 1)
        self.counts: dict[int, int] = {}  # of generated tokens; only those with a count above 0

    def __len__(self) -> int:
        return self.prompt_length + len(self._generated)

    @property
    def generated(self) -> int:
        """How many tokens follow the prompt."""
        return len(self._generated)

    def push(self, token: int) -> None:
        self._generated.append(token)
        self.counts[token] = self.counts.get(token, 0) + 1

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        if length < self.prompt_length or length > len(self):
            raise ValueError(
                f"cannot truncate a history of {len(self)} tokens to {length}: its prompt has {self.prompt_length}"
            )
        while len(self) > length:
            token = self._generated.pop()
            if self.counts[token] == 1:
                del self.counts[token]
            else:
                self.counts[token] -= 1

    def seen(self) -> list[int]:
        """Every token of prompt and generated text, once each, in no particular order."""
        prompt = list(self._in_prompt)  # order: irrelevant
        return prompt + [token for token in self.counts if token not in self._in_prompt]  # order: irrelevant
