"""A bundle around `tiny_graph`, written without the exporter."""

from __future__ import annotations

from pathlib import Path

import onnx

from journee_deploy.bundle import file_record
from journee_deploy.manifest import FileRecord, GraphRecord, Inputs, Manifest, Outputs, RoleRecord, Source
from journee_deploy.typed_json import dump
from tests.runtime.tiny_graph import SMALL, Shape, build

NO_HASH = "0" * 64


def write_bundle(root: Path, shape: Shape = SMALL, model: onnx.ModelProto | None = None) -> Path:
    """Write a bundle with a target; returns the target's folder. `model` replaces the graph that `shape` describes."""
    folder = root / "target"
    (folder / "onnx").mkdir(parents=True)
    onnx.save(model or build(shape), str(folder / "onnx" / "model.onnx"))
    (folder / "tokenizer.json").write_text("{}")
    files = {name: file_record(root / name) for name in ("target/onnx/model.onnx", "target/tokenizer.json")}
    manifest = Manifest("journee-bundle", 1, {"target": role(shape, files)}, files, {})
    (root / "journee.json").write_text(dump(manifest))
    return folder


def role(shape: Shape, files: dict[str, FileRecord]) -> RoleRecord:
    return RoleRecord(
        vocabulary_size=shape.vocabulary, context_length=shape.context, layers=shape.layers, kv_heads=shape.heads,
        head_dim=shape.head_dim, parameters=1, dtype="float32", end_of_sequence=(), tokenizer="target/tokenizer.json",
        vocabulary_hash=files["target/tokenizer.json"].sha256, corpus_hash=NO_HASH, graphs=(graph(shape),),
        source=Source(NO_HASH, {}, {}),
    )  # fmt: skip


def graph(shape: Shape) -> GraphRecord:
    def names(prefix: str, part: str) -> tuple[str, ...]:
        return tuple(f"{prefix}.{layer}.{part}" for layer in range(shape.layers))

    past, present = "past_key_values", "present"
    kept = "num_logits_to_keep" if shape.rows_kept else None
    return GraphRecord(
        id="fp32", cache="concat", precision="float32", opset=24, accuracy_level=None, router="none",
        file="target/onnx/model.onnx", weights=(),
        inputs=Inputs("input_ids", "attention_mask", "position_ids", names(past, "key"), names(past, "value"), kept),
        outputs=Outputs("logits", names(present, "key"), names(present, "value")),
        operators={}, parity=(), row_rule=None,
    )  # fmt: skip
