"""The ops the controller works with, less the vector arithmetic: rows, handles, history. Portable Python.

The host hands logits in with `hold` and gets the handle of the first row; row i has handle + i. The
controller turns rows into distributions and gets handles to those; a handle is a small integer and means
nothing after `clear`, which the controller calls at the start of every round. So nothing outlives a round but
numbers.
"""

from __future__ import annotations

from journee_deploy.arithmetic.history import History
from journee_deploy.arithmetic.sampling import Sampling, SamplingError
from journee_deploy.controller.requests import EMPTY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class LogitsError(ValueError):
    """A row of logits can't be turned into a distribution; the message names the role, the position and the
    token.
    """


class Arena:
    """Rows in, distributions out, both by handle. Subclasses do the arithmetic on whole vectors.

    size    how many tokens the tokenizer has; distributions have this length, and columns past it are ignored
    ends    end-of-sequence tokens, banned until `min_new_tokens`
    """

    def __init__(self, prompt: list[int], size: int, sampling: Sampling, ends: Sequence[int] = ()) -> None:
        for token, _ in sampling.logit_bias:
            if token >= size:
                raise SamplingError(f"logit_bias names token {token}; the vocabulary has {size} tokens")
        for token in prompt:
            if not 0 <= token < size:
                raise ValueError(f"the prompt has token {token}; the vocabulary has {size} tokens")
        self.size = size
        self.sampling = sampling
        self.ends = [token for token in ends if token < size]
        self.history = History(prompt)
        self._rows: list[tuple[str, int, Any]] = []
        self._distributions: list[Any] = []

    # Rows: called by the host.

    def hold(self, role: str, position: int, rows: Any) -> int:
        """Keep rows of logits, [count, columns]; the first follows `position` tokens. Returns the first one's
        handle.
        """
        first = len(self._rows)
        for offset, row in enumerate(rows):
            self._rows.append((role, position + offset, row))
        return first

    # Distributions and history: called by the controller and by chance.

    def clear(self) -> None:
        """Forget every row and distribution."""
        self._rows = []
        self._distributions = []

    def push(self, token: int) -> None:
        """Let the rows that come see one more token."""
        self.history.push(token)

    def truncate(self, length: int) -> None:
        """Let the rows that come see the first `length` tokens of the text only."""
        self.history.truncate(length)

    def distribution(self, row: int) -> int:
        """The distribution of a row, under the options and the history as it stands; EMPTY for a masked-out
        draft row.
        """
        role, position, logits = self._rows[row]
        vector = self._distribute(role, position, logits)
        if vector is None:
            if role != "target":
                return EMPTY
            raise LogitsError(
                f"target logits at position {position}: masking leaves no token; relax logit_bias or min_new_tokens"
            )
        return self.keep(vector)

    def vector(self, handle: int) -> Any:
        """The distribution itself, of length `size`; the ops' own, not to be changed."""
        return self._distributions[handle]

    def keep(self, vector: Any) -> int:
        """A handle to a vector of length `size`, the ops' own from now on."""
        self._distributions.append(vector)
        return len(self._distributions) - 1

    def _ending_is_banned(self) -> bool:
        return self.history.generated < self.sampling.min_new_tokens

    if TYPE_CHECKING:  # what a subclass brings

        def _distribute(self, role: str, position: int, logits: Any) -> Any:
            """The distribution of one row as a vector, or None when masking leaves no token."""
            ...
