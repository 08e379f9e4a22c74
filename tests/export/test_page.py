"""`journee-export --for web`: small weights in chunks, the arithmetic of float32, and what the rounding cost."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx_ir as ir
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from journee.checkpoint import load_checkpoint
from journee.model import Decoder
from journee_deploy.bundle import Bundle, BundleError, open_bundle
from journee_deploy.loading import load
from journee_deploy.manifest import GraphRecord, read_manifest
from journee_deploy.typed_json import JsonError, dump, parse, read
from journee_export.chunks import ALIGNMENT
from journee_export.command import main
from journee_export.errors import ExportError
from journee_export.graph import build_graph
from journee_export.parity import CASES
from journee_export.rounding import LARGEST_INT8, SUFFIXES, Storage, rounded_weights, with_weights
from journee_export.session import GraphSession
from journee_export.stored_error import stored_error
from journee_export.weights import write_graph
from tests.export.conftest import Run
from tests.export.small_models import TARGET, make_decoder, tokenizer_text, write_checkpoints

WEB = Path(__file__).parents[2] / "web"
CHUNK_MIB = 0.015625
CHUNK = int(CHUNK_MIB * 2**20)


@dataclass(frozen=True)
class Page:
    """A bundle for pages and the checkpoints it came from."""

    storage: Storage
    folder: Path
    result: Result

    @property
    def bundle(self) -> Bundle:
        return open_bundle(self.folder / "page")

    def graph(self, role: str = "target") -> GraphRecord:
        (graph,) = self.bundle.manifest.roles[role].graphs
        return graph


def export(folder: Path, name: str, *arguments: object) -> Result:
    given = [folder / "target.pt", "--draft", folder / "draft.pt", "-o", folder / name, *arguments]
    return CliRunner().invoke(main, list(map(str, given)))


@pytest.fixture(scope="module", params=["float16", "int8"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp(request.param)
    write_checkpoints(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOURNEE_CACHE", str(folder / "cache"))
        patch.setenv("COLUMNS", "120")
        result = export(folder, "page", "--for", "web", "--weights", request.param, "--chunk-size", CHUNK_MIB)
    return Page(request.param, folder, result)


def test_it_says_what_the_rounding_cost(page: Page) -> None:
    assert page.result.exit_code == 0, page.result.output
    said = re.sub(r"\s+", " ", page.result.output)
    assert (
        f"target page{SUFFIXES[page.storage].replace('_', '-')}: weights stored in {page.storage}, which moved" in said
    )
    assert f"Rounding the weights of the draft to {page.storage}" in said


def test_there_is_one_graph_a_role_that_a_page_can_run(page: Page) -> None:
    manifest = page.bundle.manifest
    assert manifest.version == 3
    for name, record in manifest.roles.items():
        (graph,) = record.graphs
        assert (graph.cache, graph.precision, graph.accuracy_level) == ("concat", "float32", None)
        assert graph.file == f"{name}/onnx/model{SUFFIXES[page.storage]}.onnx"
        assert graph.stored is not None
        assert graph.stored.precision == page.storage
        assert [found.case for found in graph.parity] == [case.name for case in CASES]
        assert all(found.difference <= found.tolerance for found in graph.parity)
        assert not {"DequantizeLinear", "MatMulNBits"} & {operator.split("::")[-1] for operator in graph.operators}
        config = json.loads((page.folder / "page" / name / "config.json").read_text())
        assert config["transformers.js_config"] == {
            "dtype": SUFFIXES[page.storage][1:],
            "use_external_data_format": {Path(graph.file).name: len(graph.weights)},
        }
    assert not [file for file in manifest.files if "shared" in file]


def test_chunks_are_cut_between_tensors(page: Page) -> None:
    """Together they are the tensors, none in two files, and no two neighbours would have fitted in one."""
    graph = page.graph()
    files = page.bundle.manifest.files
    assert len(graph.weights) > 3
    assert [Path(name).name for name in graph.weights[:2]] == [
        f"{Path(graph.file).name}_data", f"{Path(graph.file).name}_data_1",
    ]  # fmt: skip
    tensors: dict[str, list[ir.ExternalTensor]] = {}
    for value in ir.load(page.folder / "page" / graph.file).graph.initializers.values():
        if isinstance(value.const_value, ir.ExternalTensor):
            tensors.setdefault(str(value.const_value.location), []).append(value.const_value)
    assert {f"target/onnx/{name}" for name in tensors} == set(graph.weights)
    sizes = [files[name].size for name in graph.weights]
    for name, size in zip(graph.weights, sizes, strict=True):
        held = tensors[Path(name).name]
        assert size <= CHUNK or len(held) == 1
        assert all((tensor.offset or 0) % ALIGNMENT == 0 for tensor in held)
        assert sum(-(-tensor.nbytes // ALIGNMENT) * ALIGNMENT for tensor in held) == size
    first = [max(tensors[Path(name).name], key=lambda t: -(t.offset or 0)).nbytes for name in graph.weights]
    assert all(size + following > CHUNK for size, following in zip(sizes, first[1:], strict=False))


def test_weights_are_smaller(page: Page, run: Run) -> None:
    small, whole = (
        sum(record.size for name, record in bundle.manifest.files.items() if "_data" in name)
        for bundle in (page.bundle, open_bundle(run.bundle))
    )
    assert small < whole * (0.75 if page.storage == "float16" else 0.5)


def feeds(page: Page, rows: int = 5, past: int = 3, kept: int = 2) -> dict[str, NDArray[Any]]:
    chance = np.random.default_rng(0)
    names = page.graph().inputs
    shape = (1, TARGET.kv_heads, past, TARGET.head_dim)
    held = {name: chance.standard_normal(shape).astype(np.float32) for name in names.past_keys + names.past_values}
    assert names.positions
    assert names.rows_kept
    return held | {
        names.tokens: chance.integers(0, TARGET.vocab_size, (1, rows)),
        names.mask: np.ones((1, past + rows), np.int64),
        names.positions: np.arange(past, past + rows)[None],
        names.rows_kept: np.array(kept, np.int64),
    }


def rounded(page: Page) -> Decoder:
    decoder = load_checkpoint(page.folder / "target.pt").model()
    return with_weights(decoder, rounded_weights(decoder, page.storage))


def test_the_arithmetic_is_that_of_float32_to_the_bit(page: Page, tmp_path: Path) -> None:
    """The graph gives the bits of the ordinary float32 graph of the model with rounded weights."""
    decoder = rounded(page)
    write_graph(build_graph(decoder), decoder, tmp_path, "model.onnx", "model.onnx_data")
    expected = GraphSession(tmp_path / "model.onnx")(feeds(page))
    found = GraphSession(page.folder / "page" / page.graph().file)(feeds(page))
    for name, value in expected.items():
        assert np.array_equal(found[name].view(np.uint32), value.view(np.uint32)), name


def test_it_is_so_in_onnxruntime_web(page: Page, tmp_path: Path) -> None:
    """The same comparison in WebAssembly, which feeds the number of rows kept."""
    if not shutil.which("node") or not (WEB / "node_modules/onnxruntime-web").is_dir():
        missing = "needs Node.js and `npm ci` in web/"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    decoder = rounded(page)
    model = build_graph(decoder)
    rows_kept = page.graph().inputs.rows_kept
    assert rows_kept
    (value,) = [value for value in model.graph.inputs if value.name == rows_kept]
    del model.graph.initializers[rows_kept]
    value.const_value = None
    write_graph(model, decoder, tmp_path, "model.onnx", "model.onnx_data")
    expected = in_web(tmp_path / "model.onnx", feeds(page))
    found = in_web(page.folder / "page" / page.graph().file, feeds(page))
    assert found["dims"] == [1, 2, TARGET.vocab_size]
    assert found == expected
    here = GraphSession(page.folder / "page" / page.graph().file)(feeds(page))["logits"]
    assert np.abs(np.array(found["logits"]) - here.ravel()).max() < 1e-4


def in_web(graph: Path, given: dict[str, NDArray[Any]]) -> dict[str, Any]:
    types = {np.dtype(np.int64): "int64", np.dtype(np.float32): "float32"}
    plain = {name: [types[value.dtype], value.shape, value.ravel().tolist()] for name, value in given.items()}
    text = json.dumps({"graph": str(graph), "feeds": plain})
    done = subprocess.run(
        ["node", str(WEB / "tests/delivery/run_graph.mjs")], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return cast("dict[str, Any]", json.loads(done.stdout))


def test_the_number_of_rows_kept_is_an_input_like_any_other(page: Page) -> None:
    model = ir.load(page.folder / "page" / page.graph().file)
    inputs = {value.name for value in model.graph.inputs}
    assert page.graph().inputs.rows_kept in inputs
    assert not inputs & set(model.graph.initializers)


def test_the_runtime_loads_it_and_keeps_the_promises(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEE_CACHE", str(page.folder / "cache"))
    with load(page.folder / "page", threads=1) as lm:
        for options in ({"temperature": 0}, {"rule": "coupled", "seed": 5}):
            fast = lm.generate("the proof", max_new_tokens=24, speculation_length=3, **options)
            plain = lm.generate("the proof", max_new_tokens=24, draft=False, **options)
            assert fast.tokens == plain.tokens
            assert fast.report.proposed > 0


def test_a_damaged_chunk_is_refused(page: Page, tmp_path: Path) -> None:
    shutil.copytree(page.folder / "page", tmp_path / "page")
    chunk = tmp_path / "page" / page.graph().weights[2]
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(BundleError, match=f"{re.escape(chunk.name)}: damaged: sha256 "):
        open_bundle(tmp_path / "page")


def test_the_same_checkpoint_gives_the_same_files(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEE_CACHE", str(page.folder / "cache"))
    done = export(page.folder, "again", "--for", "web", "--weights", page.storage, "--chunk-size", CHUNK_MIB)
    assert done.exit_code == 0, done.output
    assert open_bundle(page.folder / "again").manifest == page.bundle.manifest


def test_what_float16_holds_already_costs_nothing(page: Page) -> None:
    """Checkpoints hold float16; int8 does cost something, and the manifest says the same as a second look."""
    stored = page.graph().stored
    assert stored is not None
    if page.storage == "float16":
        assert (stored.logits, stored.mean_tv, stored.max_tv) == (0, 0, 0)
    else:
        assert 0 < stored.mean_tv < stored.max_tv < 0.5
        assert 0 < stored.logits < 5
    decoder = load_checkpoint(page.folder / "target.pt").model()
    assert stored_error(decoder, rounded(page), tokenizer_text(), page.storage) == stored


@pytest.mark.parametrize("storage", ["float16", "int8"])
def test_matrices_are_rounded_to_the_nearest(storage: Storage) -> None:
    decoder = make_decoder(TARGET)
    weights = rounded_weights(decoder, storage)
    parameters = dict(decoder.named_parameters())
    changed = dict(with_weights(decoder, weights).named_parameters())
    for name, parameter in parameters.items():
        before, after = parameter.detach().numpy(), changed[name].detach().numpy()
        if before.ndim == 1 or ".router." in name:
            assert name not in weights
            assert np.array_equal(before, after)
        elif storage == "float16":
            assert np.array_equal(before.astype(np.float16), after)
        else:
            step = np.abs(before).max(axis=1, keepdims=True) / LARGEST_INT8
            assert (np.abs(before - after) <= step * 0.5001).all()
    assert ("rotary_cos" in weights) == (storage == "int8")


def test_a_row_of_zeros_stays_zero() -> None:
    decoder = make_decoder(TARGET)
    decoder.embedding.weight.data[3] = 0
    changed = with_weights(decoder, rounded_weights(decoder, "int8"))
    assert not changed.embedding.weight[3].detach().numpy().any()


def test_weights_that_float16_cannot_hold_are_refused() -> None:
    decoder = make_decoder(TARGET)
    decoder.projection.weight.data[0, 0] = 1e6
    with pytest.raises(ExportError, match=r"projection\.weight holds a weight that float16 can't; --weights int8 can"):
        rounded_weights(decoder, "float16")
    rounded_weights(decoder, "int8")


def test_other_bundles_are_what_they_were(run: Run) -> None:
    text = (run.bundle / "journee.json").read_text()
    assert json.loads(text)["version"] == 2
    assert "stored" not in text


def test_an_older_manifest_has_no_stored_weights(page: Page) -> None:
    text = (page.folder / "page/journee.json").read_text()
    assert read_manifest(text).version == 3
    with pytest.raises(JsonError, match=r"graphs\[0\]\.stored: version 2 has no such field"):
        read_manifest(text.replace('"version": 3', '"version": 2'))
    with pytest.raises(JsonError, match=r"stored\.logits: expected a number of at least 0, found -1"):
        read_manifest(re.sub(r'("stored": \{[^}]*"logits": )[^,]*', r"\g<1>-1", text))


def test_a_default_is_left_out_and_read_back(page: Page) -> None:
    assert '"stored": {' in dump(page.graph())
    assert read_manifest(dump(page.bundle.manifest)) == page.bundle.manifest
    without = replace(page.graph(), stored=None)
    assert "stored" not in dump(without)
    assert read(GraphRecord, parse(dump(without))) == without


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--weights", "int8"), "--weights int8 goes with --for web"),
        (("--chunk-size", "4"), "--chunk-size 4.0 goes with --for web"),
        (("--for", "web", "--weights", "int4"), "'int4' is not one of 'float16', 'int8'"),
        (("--for", "web", "--chunk-size", "0"), "0.0 is not in the range 0<x<=1024"),
        (("--for", "tv"), "'tv' is not 'web'"),
        (
            ("--for", "web", "--draft-precision", "int8"),
            "--draft-precision int8 does not go with --for web: its MatMulNBits is about ten times slower in a page",
        ),
        (("--for", "web", "--draft", "int4"), "--draft int4 does not go with --for web"),
    ],
)
def test_refusals(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    write_checkpoints(tmp_path)
    done = export(tmp_path, "new", *arguments)
    assert done.exit_code == 2
    assert message in re.sub(r"[\s│]+", " ", done.output)
    assert not (tmp_path / "new").exists()
