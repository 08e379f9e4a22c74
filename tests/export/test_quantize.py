"""Quantized drafts: rough, recorded as such, and judged all the same."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from journee.checkpoint import save_checkpoint
from journee_deploy.bundle import Bundle, open_bundle
from journee_deploy.loading import load
from journee_export.command import main
from journee_export.errors import ExportError
from journee_export.graph import build_graph
from journee_export.parity import CASES, ROUGH, measure_rough, require
from journee_export.quantize import BLOCK, Precision, base_name, quantize
from journee_export.session import GraphSession
from journee_export.weights import write_graph
from tests.export.small_models import DRAFT, TARGET, make_checkpoint, make_decoder, tokenizer_text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a pair of checkpoints; row rules are remembered there."""
    folder = tmp_path_factory.mktemp("quantized")
    wide = replace(DRAFT, dim=32)  # heads of 16, so that it gets both graphs
    for role, config in (("target", TARGET), ("draft", wide)):
        save_checkpoint(make_checkpoint(role, config, tokenizer_text()), folder / f"{role}.pt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOURNEE_CACHE", str(folder / "cache"))
        assert export(folder, "int8", "--draft", folder / "draft.pt", "--draft-precision", "int8").exit_code == 0
        assert export(folder, "self", "--draft", "int4").exit_code == 0
    return folder


def export(folder: Path, name: str, *arguments: object) -> Result:
    return CliRunner().invoke(main, [str(folder / "target.pt"), "-o", str(folder / name), *map(str, arguments)])


def test_a_draft_in_int8_is_told_apart(folder: Path) -> None:
    draft = open_bundle(folder / "int8").role("draft").record
    assert [graph.id for graph in draft.graphs] == ["concat-int8", "shared-int8"]
    assert "Pad" not in draft.graphs[1].operators  # a draft needs no row rule
    for graph in draft.graphs:
        assert (graph.precision, graph.accuracy_level) == ("int8", 4)
        assert graph.weights == ("draft/onnx/model_int8.onnx_data",)
        assert graph.operators["com.microsoft::MatMulNBits"] == 8  # seven of the block, and the projection
        assert "MatMul" not in graph.operators
        (rough,) = graph.parity
        assert (rough.case, rough.tolerance) == ("mean TV to float32", ROUGH)
        assert 0 < rough.difference < 0.05
    config = (folder / "int8/draft/config.json").read_text()
    assert '"dtype": "int8"' in config
    assert '"model_int8.onnx": 1' in config


def test_the_target_as_its_own_draft_in_int4(folder: Path) -> None:
    bundle = open_bundle(folder / "self")
    target, draft = bundle.role("target").record, bundle.role("draft").record
    assert draft.source == target.source
    assert [graph.id for graph in draft.graphs] == ["concat-int4", "shared-int4"]
    assert draft.graphs[0].file == "draft/onnx/model_q4.onnx"
    assert draft.graphs[0].router == "function"
    sizes = {name: record.size for name, record in bundle.manifest.files.items()}
    assert sizes["draft/onnx/model_q4.onnx_data"] < sizes["target/onnx/model.onnx_data"]


def test_a_target_is_never_quantized(folder: Path) -> None:
    for name in ("int8", "self"):
        for graph in open_bundle(folder / name).role("target").record.graphs:
            assert (graph.precision, graph.accuracy_level) == ("float32", None)
            assert "com.microsoft::MatMulNBits" not in graph.operators


@pytest.mark.parametrize("name", ["int8", "self"])
def test_greedy_and_coupled_texts_are_the_plain_ones(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEE_CACHE", str(folder / "cache"))
    with load(folder / name, threads=1) as lm:
        for options in ({"temperature": 0}, {"rule": "coupled", "seed": 5}):
            fast = lm.generate("the proof", max_new_tokens=24, speculation_length=3, **options)
            plain = lm.generate("the proof", max_new_tokens=24, draft=False, **options)
            assert fast.tokens == plain.tokens
            assert fast.report.proposed > 0


def test_the_same_weights_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    """Both graphs refer to one weights file, which is written twice over: the same bytes, in the model's order."""
    first = files(open_bundle(folder / "int8"))
    (tmp_path / "target.pt").write_bytes((folder / "target.pt").read_bytes())
    done = export(tmp_path, "again", "--draft", folder / "draft.pt", "--draft-precision", "int8")
    assert done.exit_code == 0, done.output
    assert files(open_bundle(tmp_path / "again")) == first


def files(bundle: Bundle) -> dict[str, str]:
    return {name: record.sha256 for name, record in bundle.manifest.files.items() if "onnx" in name}


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_matrices_are_rounded_block_by_block(precision: Precision) -> None:
    """Each of 32 weights is within half a step of what is kept, a step being a 127th, or a 7th, of the largest."""
    decoder = make_decoder(DRAFT)
    model = quantize(build_graph(decoder), precision)
    held = {name: value.const_value for name, value in model.graph.initializers.items()}
    bits, name = (8, "Q8") if precision == "int8" else (4, "Q4")
    weight = decoder.projection.weight.detach().numpy()  # [vocabulary, dim]: a block is a row's, since dim < 32
    packed, scales = (held[f"projection.weight.transposed_{part}"] for part in (name, "scales"))
    assert packed is not None
    assert scales is not None
    whole = packed.numpy()[:, 0, :].astype(np.int64)
    if bits == 4:
        whole = np.stack([whole & 15, whole >> 4], axis=2).reshape(len(whole), BLOCK)
    values = (whole - (1 << bits - 1)) * scales.numpy().reshape(-1, 1)
    error = np.abs(values[:, : weight.shape[1]] - weight)
    assert (error <= np.abs(scales.numpy().reshape(-1, 1)) * 1.01).all()
    assert error.mean() < np.abs(weight).mean() / (50 if bits == 8 else 4)


def test_names_lead_back_to_parameters() -> None:
    assert base_name("blocks.0.attention.key.weight.transposed_Q8") == "blocks.0.attention.key.weight.transposed"
    assert base_name("projection.weight.transposed_scales") == "projection.weight.transposed"
    assert base_name("norm.weight") == "norm.weight"


def test_float32_is_left_alone() -> None:
    model = build_graph(make_decoder(DRAFT))
    assert quantize(model, "float32") is model


def test_a_draft_that_is_broken_and_not_only_rough_is_refused(tmp_path: Path) -> None:
    decoder = make_decoder(DRAFT)
    model = quantize(build_graph(decoder), "int8")
    write_graph(model, decoder, tmp_path, "model.onnx", "model.onnx_data")
    session = GraphSession(tmp_path / "model.onnx")
    require(measure_rough(decoder, session, CASES))
    other = make_decoder(DRAFT, seed=2)
    other.projection.weight.data *= 60  # sure of something else
    with pytest.raises(ExportError, match=r"mean TV to float32: 0\.\d+ \(allowed 0\.5\)"):
        require(measure_rough(other, session, CASES))
    found = measure_rough(decoder, lambda feeds: {"logits": np.full((9, 9, 9), np.nan, np.float32)}, CASES)
    assert found[0].difference == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--draft-precision", "int8"), "--draft-precision int8 goes with --draft CHECKPOINT; there is no draft"),
        (("--draft", "int4", "--draft-precision", "int8"), "there is --draft int4"),
        (("--draft", "int8", "--draft-precision", "int2"), "'int2' is not one of 'float32', 'int8', 'int4'"),
        (("--draft", "int3"), "int3 does not exist; train one"),
    ],
)
def test_refusals(folder: Path, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "target.pt").write_bytes((folder / "target.pt").read_bytes())
    done = export(tmp_path, "new", *arguments)
    assert done.exit_code != 0
    assert message in re.sub(r"[\s│]+", " ", done.output)
    assert not (tmp_path / "new").exists()
