"""`ai.journee::BooleanRouter` against the PyTorch function: as a function of the model and inlined, in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx_ir.passes.common import InlinePass

from journee.router import boolean_router
from journee_export.router_op import DOMAIN, NAME, VERSION, add_router
from journee_export.session import GraphSession

Gates = Callable[[NDArray[np.float32]], NDArray[np.bool_]]

TABLE = [
    # name, k, scores, gates
    ("the two largest", 2, [0.1, 0.4, 0.3, 0.2, -1.0], [0, 1, 1, 0, 0]),
    ("all equal: the lowest columns", 2, [1.0, 1.0, 1.0, 1.0, -1.0], [1, 1, 0, 0, 0]),
    ("a tie for the second place", 2, [0.0, 3.0, 1.0, 1.0, -1.0], [0, 1, 1, 0, 0]),
    ("a tie across the cut, the last column", 2, [1.0, 2.0, 0.0, 1.0, -1.0], [1, 1, 0, 0, 0]),
    ("three tie for the first place", 2, [0.0, 5.0, 5.0, 5.0, -1.0], [0, 1, 1, 0, 0]),
    ("0.0 and -0.0 tie", 2, [-0.0, 0.0, -0.0, 0.0, -1.0], [1, 1, 0, 0, 0]),
    ("0.0 does not beat -0.0", 1, [-0.0, 0.0, -1.0, -1.0, -1.0], [1, 0, 0, 0, 0]),
    ("negative scores", 2, [-4.0, -1.0, -3.0, -2.0, -1.0], [0, 1, 0, 1, 0]),
    ("infinities", 2, [-np.inf, np.inf, 0.0, np.inf, np.inf], [0, 1, 0, 1, 1]),
    ("minus infinity ties", 2, [-np.inf] * 5, [1, 1, 0, 0, 0]),
    ("neighbouring floats", 1, [1.0, np.nextafter(np.float32(1), np.float32(2)), 0, 0, 0.0], [0, 1, 0, 0, 0]),
    ("a denormal beats 0", 1, [0.0, 1e-45, 0.0, 0.0, 1e-45], [0, 1, 0, 0, 1]),
    ("the inverter above 0", 2, [4.0, 3.0, 2.0, 1.0, 0.5], [1, 1, 0, 0, 1]),
    ("the inverter at 0", 2, [4.0, 3.0, 2.0, 1.0, 0.0], [1, 1, 0, 0, 0]),
    ("the inverter at -0.0", 2, [4.0, 3.0, 2.0, 1.0, -0.0], [1, 1, 0, 0, 0]),
    ("k = 1", 1, [1.0, 2.0, 2.0, 0.0, 1.0], [0, 1, 0, 0, 1]),
    ("k = all", 4, [1.0, 2.0, 2.0, 0.0, -1.0], [1, 1, 1, 1, 0]),
    ("one expert", 1, [-3.0, 1.0], [1, 1]),
    ("eight experts", 3, [0, 7, 1, 6, 2, 5, 3, 4, -1], [0, 1, 0, 1, 0, 1, 0, 0, 0]),
]


def build(path: Path, k: int, inline: bool) -> Gates:
    """A model of one node, run by ONNX Runtime."""
    scores = onnx.helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["batch", "rows", "columns"])
    gates = onnx.helper.make_tensor_value_info("gates", onnx.TensorProto.BOOL, ["batch", "rows", "columns"])
    node = onnx.helper.make_node(NAME, ["scores"], ["gates"], domain=DOMAIN, k=k)
    opsets = [onnx.helper.make_opsetid("", 24), onnx.helper.make_opsetid(DOMAIN, VERSION)]
    graph = onnx.helper.make_graph([node], "router", [scores], [gates])
    model = ir.from_proto(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=12))
    add_router(model)
    if inline:
        InlinePass()(model)
        assert not model.functions
    ir.save(model, path)
    session = GraphSession(path)
    return lambda scores: session({"scores": scores})["gates"].astype(np.bool_)


@pytest.fixture(scope="module", params=["function", "inlined"])
def routers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Gates]:
    """By k."""
    folder = tmp_path_factory.mktemp(request.param)
    return {k: build(folder / f"{k}.onnx", k, request.param == "inlined") for k in (1, 2, 3, 4)}


@pytest.mark.parametrize(("k", "scores", "gates"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_table(routers: dict[int, Gates], k: int, scores: list[float], gates: list[int]) -> None:
    row = np.array([[scores]], dtype=np.float32)
    assert routers[k](row).astype(int).tolist() == [[gates]]
    assert boolean_router(torch.tensor(row), k).int().tolist() == [[gates]]


SCORES = st.sampled_from([-1.0, -0.0, 0.0, 1e-45, 1.0, 2.0]) | st.floats(-4, 4, width=32)


@given(
    rows=st.lists(st.lists(SCORES, min_size=5, max_size=5), min_size=1, max_size=6),
    k=st.integers(1, 4),
)
def test_any_scores(routers: dict[int, Gates], rows: list[list[float]], k: int) -> None:
    scores = np.array([rows, rows[::-1]], dtype=np.float32)
    found = routers[k](scores)
    assert found.tolist() == boolean_router(torch.tensor(scores), k).tolist()
    assert (found[..., :4].sum(-1) == k).all()


def test_the_op_is_one_node(tmp_path: Path) -> None:
    build(tmp_path / "router.onnx", 2, inline=False)
    model = onnx.load(tmp_path / "router.onnx")
    assert [(node.domain, node.op_type) for node in model.graph.node] == [("ai.journee", "BooleanRouter")]
    (function,) = model.functions
    assert (function.domain, function.name, list(function.attribute)) == ("ai.journee", "BooleanRouter", ["k"])
    onnx.checker.check_model(model, full_check=True)
