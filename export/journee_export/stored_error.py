"""How far rounded weights take a model from the one that was trained: logits and distributions over a sample text.

The text is fixed, and nothing is trained on it, so that two exports of the same checkpoint say the same. It is English
and Python, as journee's own corpus is; for a model of other text the figures say less.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from journee.causal import CausalDecoder
from journee.evaluation import evaluation_length
from journee.tokenizer import load_tokenizer
from journee_deploy.manifest import Stored
from journee_export.rounding import Storage

SAMPLE = '''\
The harbour was quiet before sunrise. Two boats had come in during the night, and nobody on the quay could say from
where: their papers named a port that no chart shows. The older of the two clerks counted forty crates, wrote down
thirty-nine, and went to look for the missing one. It was not in the shed, nor under the crane; it had never left the
second boat, because its label had been read upside down. "If a label can be read both ways," said the clerk, "then
someone will read it both ways." They changed the form that morning, and since then every crate has an arrow on it.

    import bisect
    from collections import deque


    class Window:
        """The last `size` values of a stream, and their median."""

        def __init__(self, size: int) -> None:
            if size < 1:
                raise ValueError(f"size must be at least 1, not {size}")
            self.values = deque(maxlen=size)
            self.ordered = []

        def add(self, value: float) -> float:
            if len(self.values) == self.values.maxlen:
                oldest = self.values[0]
                del self.ordered[bisect.bisect_left(self.ordered, oldest)]
            self.values.append(value)
            bisect.insort(self.ordered, value)
            return self.median()

        def median(self) -> float:
            middle = len(self.ordered) // 2
            if len(self.ordered) % 2:
                return self.ordered[middle]
            return (self.ordered[middle - 1] + self.ordered[middle]) / 2


    def smooth(readings, size=5):
        """Replace each reading by the median of those around it; None is skipped, and not counted.

        >>> list(smooth([1, 9, 2, None, 3], size=3))
        [1, 5.0, 2, 3]
        """
        window = Window(size)
        for reading in readings:
            if reading is not None:
                yield window.add(reading)

Return the number of bytes written, which is always the length of the buffer unless the device is full. If the argument
is omitted or None, the default encoding is used; it does not raise an exception for characters that can't be encoded,
but replaces them. Changed in version 3: the function accepts any object that has a method close().
'''


@torch.inference_mode()
def stored_error(original: CausalDecoder, rounded: CausalDecoder, tokenizer: str, storage: Storage) -> Stored:
    """The figures of the manifest."""
    ids: list[int] = load_tokenizer(tokenizer).encode(SAMPLE).ids
    length = evaluation_length(original.config)
    differences: list[float] = []
    distances: list[float] = []
    for start in range(0, len(ids), length):
        tokens = torch.tensor([ids[start : start + length]])
        before, after = (model.logits(tokens)[0].double().numpy() for model in (original, rounded))
        differences.append(float(np.abs(before - after).max()))
        distances += (np.abs(_softmax(before) - _softmax(after)).sum(axis=1) / 2).tolist()
    mean = math.fsum(distances) / len(distances)
    return Stored(storage, len(ids), max(differences), mean, max(distances))


def _softmax(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(rows - rows.max(axis=1, keepdims=True))
    found: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return found
