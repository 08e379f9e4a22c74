"""A bundle of a few hundred bytes, with files that no runtime would load: what reading and verifying need."""

from __future__ import annotations

from pathlib import Path

from journee_deploy.bundle import file_record
from journee_deploy.manifest import (
    FoundRule,
    GraphRecord,
    Inputs,
    Manifest,
    Outputs,
    Parity,
    RoleRecord,
    Source,
)
from journee_deploy.typed_json import dump

CORPUS = "c" * 64
CONTENT = {
    "onnx/model.onnx": b"a graph",
    "onnx/model_q4.onnx": b"another graph",
    "onnx/model.onnx_data": b"weights" * 20,
    "tokenizer.json": b"{}",
    "config.json": b"{}",
}


def write_bundle(root: Path, roles: tuple[str, ...] = ("target", "draft")) -> Manifest:
    """Write the bundle to the folder `root`, and return what its manifest says."""
    for role in roles:
        for name, content in CONTENT.items():
            path = root / role / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    manifest = make_manifest(root, roles)
    (root / "journee.json").write_text(dump(manifest))
    return manifest


def make_manifest(root: Path, roles: tuple[str, ...]) -> Manifest:
    names = [f"{role}/{name}" for role in roles for name in CONTENT]
    files = {name: file_record(root / name) for name in names}
    records = {role: role_record(role, files[f"{role}/tokenizer.json"].sha256) for role in roles}
    return Manifest("journee-bundle", 1, records, files, {"python": "3.11"})


def role_record(role: str, vocabulary_hash: str) -> RoleRecord:
    return RoleRecord(
        vocabulary_size=300,
        context_length=64,
        layers=2,
        kv_heads=1,
        head_dim=8,
        parameters=1000,
        dtype="float32",
        end_of_sequence=(0,),
        tokenizer=f"{role}/tokenizer.json",
        vocabulary_hash=vocabulary_hash,
        corpus_hash=CORPUS,
        graphs=(graph_record(role, "concat-fp32", "model.onnx"), graph_record(role, "concat-q4", "model_q4.onnx")),
        source=Source("d" * 64, {"dim": 8, "moe": None}, {"held_out_loss": 2.5}),
    )


def graph_record(role: str, name: str, file: str) -> GraphRecord:
    return GraphRecord(
        id=name,
        cache="concat",
        precision="float32",
        opset=24,
        accuracy_level=None,
        router="function",
        file=f"{role}/onnx/{file}",
        weights=(f"{role}/onnx/model.onnx_data",),
        inputs=Inputs("input_ids", "attention_mask", "position_ids", ("k0", "k1"), ("v0", "v1"), "num_logits_to_keep"),
        outputs=Outputs("logits", ("K0", "K1"), ("V0", "V1")),
        operators={"MatMul": 3},
        parity=(Parity("prefill", 1e-6, 1e-4),),
        row_rule=FoundRule(2, 1, False, "onnxruntime, cpu"),
    )
