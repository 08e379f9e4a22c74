"""Graphs traced once a session: tracing takes seconds, whatever the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir
import pytest
import torch
from click.testing import CliRunner, Result

from journee.model import Decoder
from journee_export.command import main
from journee_export.graph import finish
from journee_export.session import GraphSession
from journee_export.trace import trace
from journee_export.weights import write_graph
from tests.export.small_models import DRAFT, TARGET, make_decoder, write_checkpoints


@dataclass(frozen=True)
class Exported:
    """A graph and where it was written."""

    decoder: Decoder
    model: ir.Model
    folder: Path
    session: GraphSession


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors on several threads wait for each other longer than they compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def decoder() -> Decoder:
    return make_decoder(TARGET)


@pytest.fixture(scope="session")
def traced(decoder: Decoder) -> ir.Model:
    return trace(decoder)


@pytest.fixture(scope="session", params=["function", "inlined"])
def exported(
    request: pytest.FixtureRequest, decoder: Decoder, traced: ir.Model, tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    """The target, with the router as a function and inlined."""
    model = finish(traced.clone(), decoder, inline=request.param == "inlined")
    return write(decoder, model, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def draft(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A model without a mixture."""
    decoder = make_decoder(DRAFT)
    return write(decoder, finish(trace(decoder), decoder), tmp_path_factory.mktemp("draft"))


def write(decoder: Decoder, model: ir.Model, folder: Path) -> Exported:
    write_graph(model, decoder, folder, "model.onnx", "model.onnx_data")
    return Exported(decoder, model, folder, GraphSession(folder / "model.onnx"))


@dataclass(frozen=True)
class Run:
    """A finished run of the command: the checkpoints it was given, the bundle it wrote, what it printed."""

    target: Path
    draft: Path
    bundle: Path
    result: Result


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """`journee-export` on a target and a draft, with a rule cache of its own."""
    folder = tmp_path_factory.mktemp("run")
    target, draft = write_checkpoints(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOURNEE_CACHE", str(folder / "cache"))
        patch.setenv("COLUMNS", "120")
        result = CliRunner().invoke(main, [str(target), "--draft", str(draft), "-o", str(folder / "bundle")])
        yield Run(target, draft, folder / "bundle", result)
