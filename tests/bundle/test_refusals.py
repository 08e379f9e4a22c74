"""What is no good bundle is refused before anything is loaded, with what, where and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from journee_deploy.bundle import LARGEST_MANIFEST, BundleError, file_record, open_bundle

Manifest = dict[str, Any]
Change = Callable[[Manifest], object]


def refusal(root: Path) -> str:
    with pytest.raises(BundleError) as caught:
        open_bundle(root)
    return str(caught.value)


def edit(root: Path, change: Change) -> None:
    file = root / "journee.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))


def test_no_folder_a_file_or_a_folder_without_manifest(tmp_path: Path) -> None:
    assert "does not exist; a bundle is the folder" in refusal(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    assert "is a file; a bundle is the folder" in refusal(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert "no journee.json in it, so it is no bundle; write one with `journee-export`" in refusal(tmp_path / "empty")


def test_a_missing_file(root: Path) -> None:
    (root / "draft/config.json").unlink()
    assert refusal(root) == (
        f"{root}/draft/config.json: missing, though journee.json lists it; "
        "copy or download the bundle again, or export it again"
    )


def test_a_file_that_is_a_folder(root: Path) -> None:
    (root / "draft/config.json").unlink()
    (root / "draft/config.json").mkdir()
    assert "missing" in refusal(root)


def test_a_truncated_file_names_both_sizes(root: Path) -> None:
    weights = root / "target/onnx/model.onnx_data"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert f"{weights}: truncated: 139 bytes, expected 140" in refusal(root)
    weights.write_bytes(b"x" * 141)
    assert f"{weights}: too long: 141 bytes, expected 140" in refusal(root)


@pytest.mark.parametrize("at", [0, 70, 139])
def test_a_flipped_bit_names_both_hashes(root: Path, at: int) -> None:
    weights = root / "target/onnx/model.onnx_data"
    expected = file_record(weights).sha256
    content = bytearray(weights.read_bytes())
    content[at] ^= 1
    weights.write_bytes(content)
    assert f"{weights}: damaged: sha256 {file_record(weights).sha256}, expected {expected}" in refusal(root)


@pytest.mark.parametrize(
    "name",
    ["../outside", "target/../../outside", "/etc/hostname", "target//x", "./target/x", "target/", "", "..", "C:/x",
     "target\\config.json", "c:x", "target/a\x00b", "target/a\nb", "\\\\server\\share"],
)  # fmt: skip
def test_a_path_that_could_leave_the_bundle(root: Path, name: str) -> None:
    edit(root, lambda manifest: manifest["files"].update({name: manifest["files"]["target/config.json"]}))
    assert "files: expected a path inside the bundle" in refusal(root)


@pytest.mark.parametrize("field", ["file", "weights", "tokenizer"])
def test_a_record_that_points_outside(root: Path, field: str) -> None:
    def change(manifest: Manifest) -> None:
        role = manifest["roles"]["target"]
        place = role if field == "tokenizer" else role["graphs"][0]
        place[field] = ["../x"] if field == "weights" else "../x"

    edit(root, change)
    assert re.search(rf"roles.target\.(graphs\[0\]\.)?{field}.*expected a path inside the bundle", refusal(root))


@pytest.mark.parametrize("name", ["target/onnx/model.onnx_data", "draft/config.json", "draft/onnx/deeper/weights.bin"])
def test_a_file_of_a_role_that_is_not_listed(root: Path, name: str) -> None:
    """Weights that the manifest doesn't name would be loaded, but not verified."""

    def forget(manifest: Manifest) -> None:
        manifest["files"].pop(name, None)
        for record in manifest["roles"]["target"]["graphs"]:
            record["weights"] = []

    edit(root, forget)
    file = root / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"unverified")
    assert refusal(root) == (
        f"{file}: not listed in journee.json, so it can't be verified; "
        "remove it, or copy or download the bundle again, or export it again"
    )


def test_a_linked_folder_in_a_role_is_not_looked_through(root: Path) -> None:
    (root / "draft/more").symlink_to(root / "target/onnx")
    assert "draft/more: not listed in journee.json" in refusal(root)


def test_a_link_that_leaves_the_bundle(root: Path, tmp_path: Path) -> None:
    file = root / "target/config.json"
    (tmp_path / "outside.json").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(tmp_path / "outside.json")
    assert f"{file}: leaves the bundle's folder; its files must be in it, links included" in refusal(root)


def test_a_folder_that_is_a_link_out(root: Path, tmp_path: Path) -> None:
    (root / "target/onnx").rename(tmp_path / "onnx")
    (root / "target/onnx").symlink_to(tmp_path / "onnx")
    assert "leaves the bundle's folder" in refusal(root)


def test_a_manifest_that_is_a_link_out(root: Path, tmp_path: Path) -> None:
    (root / "journee.json").rename(tmp_path / "journee.json")
    (root / "journee.json").symlink_to(tmp_path / "journee.json")
    assert "leaves the bundle's folder" in refusal(root)


def test_a_loop_of_links(root: Path) -> None:
    (root / "target/config.json").unlink()
    (root / "target/config.json").symlink_to("config.json")
    assert "config.json" in refusal(root)


def test_a_link_inside_the_bundle_is_fine(root: Path) -> None:
    (root / "draft/tokenizer.json").unlink()
    (root / "draft/tokenizer.json").symlink_to("../target/tokenizer.json")
    assert open_bundle(root).roles == ("target", "draft")


TEXTS = {
    "": "line 1, column 1",
    '{"format": "journee-bundle",\n "version": }': "line 2, column 13: Expecting value",
    "[1, 2]": "not a bundle's manifest: 'format' must be 'journee-bundle'",
    '{"format": "other", "version": 1}': "'format' must be 'journee-bundle'",
    '{"format": "journee-bundle"}': "version: expected an integer of at least 1, found None",
    '{"format": "journee-bundle", "version": true}': "version: expected an integer of at least 1, found True",
    '{"format": "journee-bundle", "version": 1.0}': "version: expected an integer of at least 1, found 1.0",
    '{"format": "journee-bundle", "version": 0}': "version: expected an integer of at least 1, found 0",
    '{"format": "journee-bundle", "version": 4}': "version 4 is newer than this journee-deploy reads (3); upgrade",
    '{"format": "journee-bundle", "version": 1, "version": 1}': "key given twice: 'version'",
    "{" + ", ".join(f'"k{i}": 1' for i in range(100_000)) + ', "k7": 2}': "key given twice: 'k7'",
    '{"format": "journee-bundle", "version": NaN}': "NaN is not JSON",
    '{"format": "journee-bundle", "version": 1e999}': "number out of range: 1e999",
    '{"format": "journee-bundle", "version": ' + "1" * 5000 + "}": "number out of range: 1111",
    "[" * 100 + "]" * 100: "nested more than 32 levels deep",
    "[" * 200000: "nested more than 32 levels deep",
    '{"format": "\\ud800"}': "half a surrogate pair",
    '{"format": "journee-bundle", "version": 1}': "top level: missing 'roles', 'files', 'versions'",
}


@pytest.mark.parametrize(("text", "complaint"), TEXTS.items(), ids=range(len(TEXTS)))
def test_a_manifest_that_is_no_manifest(root: Path, text: str, complaint: str) -> None:
    (root / "journee.json").write_text(text)
    message = refusal(root)
    assert message.startswith(f"{root}/journee.json: ")
    assert complaint in message


def test_a_manifest_that_is_no_text_or_too_long(root: Path) -> None:
    (root / "journee.json").write_bytes(b'{"a": "\xff"}')
    assert "byte 7: not UTF-8" in refusal(root)
    with (root / "journee.json").open("wb") as file:
        file.truncate(LARGEST_MANIFEST + 1)
    assert "larger than" in refusal(root)


def graph(manifest: Manifest) -> Manifest:
    found: Manifest = manifest["roles"]["target"]["graphs"][0]
    return found


CHANGES: dict[str, Change] = {
    "roles: missing 'target'": lambda m: m["roles"].pop("target"),
    "roles: unknown role 'judge'; there are 'target' and 'draft'": lambda m: m["roles"].update(
        judge=m["roles"]["draft"]
    ),
    "roles.draft.layers: expected an integer, found true": lambda m: m["roles"]["draft"].update(layers=True),
    "roles.draft.layers: expected an integer of at least 1, found 0": lambda m: m["roles"]["draft"].update(layers=0),
    "roles.draft.layers: expected an integer, found 2.0": lambda m: m["roles"]["draft"].update(layers=2.0),
    "roles.target.graphs: expected at least one, found []": lambda m: m["roles"]["target"].update(graphs=[]),
    "roles.target.graphs: ids must differ": lambda m: graph(m).update(id="concat-q4"),
    "roles.target.graphs[0].cache: expected one of 'concat', 'shared', found \"gqa\"": lambda m: graph(m).update(
        cache="gqa"
    ),
    "roles.target.graphs[0]: unknown 'speed'": lambda m: graph(m).update(speed=1),
    "roles.target.graphs[0]: missing 'opset'": lambda m: graph(m).pop("opset"),
    "roles.target.graphs[0].inputs.past_keys: expected one name a layer (2), found 1": lambda m: graph(m)[
        "inputs"
    ].update(past_keys=["k0"]),
    "roles.target.graphs[0].outputs.present_values: expected one name a layer (2), found 3": lambda m: graph(m)[
        "outputs"
    ].update(present_values=["a", "b", "c"]),
    "roles.target.graphs[0].inputs: names must differ": lambda m: graph(m)["inputs"].update(mask="input_ids"),
    "roles.target.graphs[0].inputs.tokens: expected at least one": lambda m: graph(m)["inputs"].update(tokens=""),
    "roles.target.graphs[0]: 'target/onnx/none' is not in 'files'": lambda m: graph(m).update(file="target/onnx/none"),
    "roles.target.graphs[0]: expected a path below target/": lambda m: graph(m).update(file="draft/onnx/model.onnx"),
    "roles.target.graphs[0].row_rule: a fixed rule's rows are its multiple": lambda m: graph(m)["row_rule"].update(
        fixed=True
    ),
    "roles.target.graphs[0].row_rule: expected rows and multiple of at most 32, found 33, 1": lambda m: graph(m)[
        "row_rule"
    ].update(rows=33),
    "roles.target.graphs[0].row_rule: expected rows and multiple of at most 32, found 2, 64": lambda m: graph(m)[
        "row_rule"
    ].update(multiple=64),
    "roles.target.vocabulary_hash: expected the sha256 of target/tokenizer.json": lambda m: m["roles"]["target"].update(
        vocabulary_hash="0" * 64
    ),
    "roles.target.corpus_hash: expected a sha256": lambda m: m["roles"]["target"].update(corpus_hash="C" * 64),
    "roles.target.end_of_sequence: 300 is beyond the 300 tokens": lambda m: m["roles"]["target"].update(
        end_of_sequence=[300]
    ),
    "files.target/config.json.size: expected an integer of at least 0, found -1": lambda m: m["files"][
        "target/config.json"
    ].update(size=-1),
    "versions: expected an object, found []": lambda m: m.update(versions=[]),
    "roles.draft.corpus_hash: draft has dddd": lambda m: m["roles"]["draft"].update(corpus_hash="d" * 64),
    "roles.draft.vocabulary_size: draft has 299, target 300; train the draft with the target's tokenizer": lambda m: m[
        "roles"
    ]["draft"].update(vocabulary_size=299),
}


@pytest.mark.parametrize(("complaint", "change"), CHANGES.items(), ids=range(len(CHANGES)))
def test_a_manifest_that_says_something_wrong(root: Path, complaint: str, change: Change) -> None:
    edit(root, change)
    assert complaint in refusal(root)


def test_a_draft_with_another_tokenizer(root: Path) -> None:
    tokenizer = root / "draft/tokenizer.json"
    tokenizer.write_text('{"other": 1}')
    record = file_record(tokenizer)

    def change(manifest: Manifest) -> None:
        manifest["files"]["draft/tokenizer.json"] = {"size": record.size, "sha256": record.sha256}
        manifest["roles"]["draft"]["vocabulary_hash"] = record.sha256

    edit(root, change)
    assert f"roles.draft.vocabulary_hash: draft has {record.sha256}, target " in refusal(root)


@pytest.mark.parametrize("length", [0, -1, 2**20 + 1, 2**52])
def test_a_context_that_no_memory_could_hold(root: Path, length: int) -> None:
    edit(root, lambda manifest: manifest["roles"]["target"].update(context_length=length))
    assert "context_length: expected an integer from 1 to 1048576" in refusal(root)
