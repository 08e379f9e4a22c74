"""Opening good bundles: what is told of them, and the ways to name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from journee_deploy.bundle import BundleError, file_record, is_role_folder, open_bundle, role_of
from journee_deploy.row_rule import RowRule
from tests.bundle.small_bundle import CONTENT, write_bundle


def test_a_role_tells_where_its_files_are_and_what_the_model_is(root: Path) -> None:
    role = open_bundle(root).role("target")
    assert role.folder == root / "target"
    assert role.graph == root / "target/onnx/model.onnx"
    assert role.weights == (root / "target/onnx/model.onnx_data",)
    assert role.tokenizer == root / "target/tokenizer.json"
    assert (role.vocabulary_size, role.context_length, role.layers, role.kv_heads, role.head_dim) == (300, 64, 2, 1, 8)
    assert (role.dtype, role.end_of_sequence, role.variant, str(role)) == (
        "float32",
        (0,),
        "concat-fp32",
        "small target",
    )
    assert role.graph_sha256 == file_record(role.graph).sha256
    assert role.inputs.names() == (
        "input_ids", "attention_mask", "position_ids", "k0", "v0", "k1", "v1", "num_logits_to_keep",
    )  # fmt: skip
    assert role.outputs.names() == ("logits", "K0", "V0", "K1", "V1")
    found = role.graph_record.row_rule
    assert found is not None
    assert found.rule == RowRule(2, 1)


def test_roles_are_listed_with_the_target_first(root: Path, tmp_path: Path) -> None:
    assert open_bundle(root).roles == ("target", "draft")
    write_bundle(tmp_path / "alone", ("target",))
    assert open_bundle(tmp_path / "alone").roles == ("target",)


def test_another_variant_by_its_id(root: Path) -> None:
    assert open_bundle(root).role("draft", "concat-q4").graph == root / "draft/onnx/model_q4.onnx"
    with pytest.raises(BundleError, match=r"draft has no graph 'fp16'; there are: concat-fp32, concat-q4"):
        open_bundle(root).role("draft", "fp16")


def test_an_unknown_role_is_refused_with_those_that_are_there(root: Path, tmp_path: Path) -> None:
    write_bundle(tmp_path / "alone", ("target",))
    with pytest.raises(BundleError, match=r"no role 'draft'; this bundle has: target"):
        open_bundle(tmp_path / "alone").role("draft")
    with pytest.raises(BundleError, match=r"no role 'judge'; this bundle has: target, draft"):
        open_bundle(root).role("judge")


def test_a_role_by_its_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert role_of(root / "draft").name == "draft"
    assert role_of(str(root / "target") + "/", variant="concat-q4").variant == "concat-q4"
    assert is_role_folder(root / "target")
    assert not is_role_folder(root)
    assert not is_role_folder(root / "journee.json")
    monkeypatch.chdir(root / "target")
    assert role_of(".").graph.read_bytes() == CONTENT["onnx/model.onnx"]
    with pytest.raises(BundleError, match=r"no role's folder: no journee.json beside it; give BUNDLE/target"):
        role_of(root)


def test_a_bundle_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert open_bundle(tmp_path / "link").role("target").graph.is_file()


def test_files_beside_the_roles_folders_are_left_alone(root: Path) -> None:
    (root / "genai_config.json").write_text("{}")
    assert open_bundle(root).roles == ("target", "draft")


def test_verify_false_skips_hashes_but_not_sizes(root: Path) -> None:
    weights = root / "target/onnx/model.onnx_data"
    weights.write_bytes(weights.read_bytes()[::-1])
    assert open_bundle(root, verify=False).roles == ("target", "draft")
    weights.write_bytes(b"short")
    with pytest.raises(BundleError, match="truncated"):
        open_bundle(root, verify=False)
