"""What the ONNX runtime refuses to open, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from journee_deploy import runtime
from journee_deploy.bundle import BundleError
from journee_deploy.runtime import OpenOptions, RuntimeFailure, Step, find_runtime
from journee_runtimes import builds
from journee_runtimes.builds import check_builds, installed_builds
from journee_runtimes.onnx import OnnxRuntime
from tests.runtime.tiny_bundle import write_bundle
from tests.runtime.tiny_graph import SMALL, build

ONE_THREAD = OpenOptions(threads=1, row_rule=False)


@pytest.mark.parametrize("provider", ["tpu", "CPU", "", "CPUExecutionProvider"])
def test_an_unknown_provider_lists_those_that_are_there(target: Path, provider: str) -> None:
    with pytest.raises(RuntimeFailure, match=rf"no provider '{provider}' here; there are: .*cpu"):
        OnnxRuntime().open(target, "target", OpenOptions(provider))


def test_cuda_where_there_is_none_says_what_to_install(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OnnxRuntime, "providers", lambda self: ("cpu",))
    with pytest.raises(RuntimeFailure, match=r"there are: cpu; install journee-deploy\[cuda\]"):
        OnnxRuntime().open(target, "target", OpenOptions("cuda"))


def test_both_builds_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_builds(["onnxruntime"])
    check_builds([])
    message = r"onnxruntime and onnxruntime-gpu are installed together.*pip uninstall onnxruntime onnxruntime-gpu"
    with pytest.raises(RuntimeFailure, match=message):
        check_builds(["onnxruntime", "onnxruntime-gpu"])
    monkeypatch.setattr(builds, "version", lambda name: "1.30.0")
    assert len(installed_builds()) > 2
    with pytest.raises(RuntimeFailure, match=r"onnxruntime and onnxruntime-gpu and .* are installed together"):
        OnnxRuntime()


def test_builds_are_found() -> None:
    assert len(installed_builds()) == 1


def test_an_unknown_runtime_lists_those_that_are_there() -> None:
    with pytest.raises(RuntimeFailure, match=r"no runtime named 'tensorrt'; installed: onnxruntime, torch"):
        find_runtime("tensorrt")


def test_a_runtime_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("onnxruntime", "journee_runtimes.not_there:OnnxRuntime", runtime.ENTRY_POINTS)
    monkeypatch.setattr(runtime, "entry_points", lambda group: [broken])
    with pytest.raises(RuntimeFailure, match=r"onnxruntime can't be loaded: .*install journee-deploy\[cpu\]"):
        find_runtime("onnxruntime")


def test_a_folder_that_is_no_role_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no role's folder"):
        OnnxRuntime().open(tmp_path, "target", ONE_THREAD)


def test_a_flipped_bit_in_a_graph_names_its_hash(target: Path) -> None:
    graph = target / "onnx" / "model.onnx"
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(content)
    with pytest.raises(BundleError, match=r"model\.onnx: damaged: sha256"):
        OnnxRuntime().open(target, "target", ONE_THREAD)


def test_hashes_are_left_out_for_a_bundle_verified_already(target: Path) -> None:
    (target / "tokenizer.json").write_text("[]")
    with pytest.raises(BundleError, match="damaged"):
        OnnxRuntime().open(target, "target", ONE_THREAD)
    OnnxRuntime().open(target, "target", replace(ONE_THREAD, verify=False)).close()


def test_a_graph_that_onnxruntime_cannot_load_is_named(tmp_path: Path) -> None:
    model = build()
    model.graph.node[0].op_type = "NoSuchOperator"
    target = write_bundle(tmp_path / "bundle", model=model)
    with pytest.raises(RuntimeFailure, match=r"model\.onnx: ONNX Runtime can't load it: .*NoSuchOperator"):
        OnnxRuntime().open(target, "target", ONE_THREAD)


def rename(model: onnx.ModelProto, old: str, new: str) -> None:
    """Rename a value wherever it occurs."""
    for value in [*model.graph.input, *model.graph.output]:
        value.name = new if value.name == old else value.name
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]


def input_ids_renamed(model: onnx.ModelProto) -> None:
    rename(model, "input_ids", "tokens")


def past_renamed(model: onnx.ModelProto) -> None:
    rename(model, "past_key_values.1.key", "past.1.key")


def present_missing(model: onnx.ModelProto) -> None:
    del model.graph.output[-1]


def logits_renamed(model: onnx.ModelProto) -> None:
    rename(model, "logits", "scores")


def rows_kept_missing(model: onnx.ModelProto) -> None:
    (at,) = [at for at, value in enumerate(model.graph.input) if value.name == "num_logits_to_keep"]
    del model.graph.input[at]


def one_input_more(model: onnx.ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("extra", TensorProto.FLOAT, [1]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (input_ids_renamed, "its inputs are not those of the manifest: no input_ids; unexpected tokens"),
        (past_renamed, r"no past_key_values\.1\.key; unexpected past\.1\.key"),
        (present_missing, r"its outputs are not those of the manifest: no present\.1\.value; export"),
        (logits_renamed, "no logits; unexpected scores"),
        (rows_kept_missing, "no num_logits_to_keep"),
        (one_input_more, "unexpected extra"),
    ],
)
def test_graphs_with_other_inputs_or_outputs_are_refused_by_name(
    tmp_path: Path, change: Callable[[onnx.ModelProto], None], message: str
) -> None:
    model = build()
    change(model)
    target = write_bundle(tmp_path / "bundle", model=model)
    with pytest.raises(RuntimeFailure, match=message):
        OnnxRuntime().open(target, "target", ONE_THREAD)


def test_a_graph_of_other_sizes_than_its_manifest_says_is_refused(tmp_path: Path) -> None:
    for change, message in (
        ({"heads": 4, "head_dim": 8}, r"past_key_values\.0\.key is tensor\(float\) .*, expected .*'any', 4, 'any', 8"),
        ({"vocabulary": 60}, r"logits is tensor\(float\) .*, expected .*'any', 'any', 60"),
    ):
        target = write_bundle(tmp_path / str(len(change)), replace(SMALL, **change), build())
        with pytest.raises(RuntimeFailure, match=message):
            OnnxRuntime().open(target, "target", ONE_THREAD)


def test_a_run_that_fails_inside_names_the_graph(tmp_path: Path) -> None:
    """The manifest promises a longer context than the graph's rotary tables reach."""
    target = write_bundle(tmp_path / "bundle", replace(SMALL, context=500), build())
    model = OnnxRuntime().open(target, "target", ONE_THREAD)
    with pytest.raises(RuntimeFailure, match=r"model\.onnx: the run failed: "):
        model.run([Step(0, (1,) * 400, 0, 1)])
    assert model.run([Step(0, (1, 2), 0, 1)])[0].shape == (1, SMALL.vocabulary)


def test_a_folder_of_another_role(target: Path) -> None:
    with pytest.raises(RuntimeFailure, match=r"is the target of its bundle, not its draft; give BUNDLE/draft"):
        OnnxRuntime().open(target, "draft", ONE_THREAD)


@pytest.mark.parametrize("threads", [-1, 1025, 2**31, 1.5, "2", True])
def test_thread_counts_out_of_bounds_are_refused(threads: object) -> None:
    with pytest.raises(RuntimeFailure, match=r"threads is .*; it must be a whole number from 1 to 1024, or 0"):
        OpenOptions(threads=threads)  # type: ignore[arg-type]


def test_an_incomplete_onnxruntime_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("journee_runtimes.onnx.ORT", object())
    with pytest.raises(RuntimeFailure, match=r"files are incomplete.*pip uninstall"):
        OnnxRuntime()
