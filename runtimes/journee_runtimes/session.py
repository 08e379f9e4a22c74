"""The part of ONNX Runtime's session that is used here, as a protocol: the package has no types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray


class Node(Protocol):
    """An input or output of a graph."""

    name: str
    type: str
    shape: list[int | str | None]


class Binding(Protocol):
    """An `onnxruntime.IOBinding`: places of inputs and outputs by address, which must outlive the runs."""

    def bind_input(
        self, name: str, device: str, number: int, kind: Any, shape: Sequence[int], address: int, /
    ) -> None: ...
    def bind_output(
        self, name: str, device: str, number: int, kind: Any, shape: Sequence[int], address: int, /
    ) -> None: ...


class Session(Protocol):
    """An `onnxruntime.InferenceSession`."""

    def run(self, outputs: Sequence[str], feeds: dict[str, NDArray[Any]]) -> Sequence[NDArray[Any]]: ...
    def io_binding(self) -> Binding: ...
    def run_with_iobinding(self, binding: Binding, /) -> None: ...
    def get_inputs(self) -> Sequence[Node]: ...
    def get_outputs(self) -> Sequence[Node]: ...
    def get_overridable_initializers(self) -> Sequence[Node]: ...
    def get_providers(self) -> Sequence[str]: ...
    def disable_fallback(self) -> None: ...


def first_line(error: Exception) -> str:
    """What ONNX Runtime complained of, without the lines that follow."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
