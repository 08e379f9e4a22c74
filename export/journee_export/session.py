"""A graph, loaded and run as it stands: what parity is measured through; and ONNX Runtime's quantizer. The one file
here that imports onnxruntime.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray

from journee_export.errors import foreign

Array = NDArray[np.generic]

ort = cast(Any, onnxruntime)


class GraphSession:
    """The graph in the file `path` on ONNX Runtime's CPU provider, with one thread."""

    def __init__(self, path: Path) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        with foreign(f"opening {path.name} with ONNX Runtime"):
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.outputs: tuple[str, ...] = tuple(output.name for output in self._session.get_outputs())

    def __call__(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs by name."""
        with foreign("running the graph with ONNX Runtime"):
            return dict(zip(self.outputs, self._session.run(None, dict(feeds)), strict=True))


def block_quantizer(proto: Any, **options: Any) -> Any:
    """ONNX Runtime's `MatMulNBitsQuantizer`, which is imported here: it takes a second."""
    from onnxruntime.quantization.matmul_nbits_quantizer import (  # type: ignore[import-untyped]  # noqa: PLC0415
        MatMulNBitsQuantizer,
    )

    logging.getLogger(MatMulNBitsQuantizer.__module__).setLevel(logging.WARNING)  # it tells of every matrix
    return MatMulNBitsQuantizer(proto, **options)
