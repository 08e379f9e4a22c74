"""One role of a bundle: its folder and its record in the manifest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir

from journee.model import Decoder
from journee.tokenizer import tokenizer_hash
from journee_deploy.manifest import GraphRecord, Parity, RoleRecord
from journee_export.graph import build_graph, count_operators, router_kind
from journee_export.model_folder import write_model_folder
from journee_export.parity import measure, require
from journee_export.session import GraphSession
from journee_export.source import RoleSource
from journee_export.trace import OPSET, input_names, output_names
from journee_export.weights import write_graph

GRAPH = "model.onnx"
WEIGHTS = "model.onnx_data"
VARIANT = "concat-fp32"

Say = Callable[[str], None]


def write_role(bundle: Path, name: str, source: RoleSource, inline: bool, say: Say) -> RoleRecord:
    """Write the role's folder into `bundle`; ExportError if the graph doesn't compute what the model does."""
    folder = bundle / name
    (folder / "onnx").mkdir(parents=True)
    write_model_folder(folder, source)
    say(f"Tracing the {name}")
    model = build_graph(source.decoder, inline)
    write_graph(model, source.decoder, folder / "onnx", GRAPH, WEIGHTS)
    say(f"Comparing the {name} with PyTorch")
    parity = measure(source.decoder, GraphSession(folder / "onnx" / GRAPH))
    require(parity)
    return _role_record(name, source, _graph_record(name, source.decoder, model, parity))


def _role_record(name: str, source: RoleSource, graph: GraphRecord) -> RoleRecord:
    config = source.decoder.config
    return RoleRecord(
        vocabulary_size=config.vocab_size,
        context_length=config.context_length,
        layers=config.layers,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        parameters=sum(parameter.numel() for parameter in source.decoder.parameters()),
        dtype="float32",
        end_of_sequence=(source.end_of_text[1],),
        tokenizer=f"{name}/tokenizer.json",
        vocabulary_hash=tokenizer_hash(source.tokenizer),
        corpus_hash=source.corpus_hash,
        graphs=(graph,),
        source=source.origin,
    )


def _graph_record(name: str, decoder: Decoder, model: ir.Model, parity: tuple[Parity, ...]) -> GraphRecord:
    layers = decoder.config.layers
    return GraphRecord(
        id=VARIANT,
        cache="concat",
        precision="float32",
        opset=OPSET,
        accuracy_level=None,
        router=router_kind(model),
        file=f"{name}/onnx/{GRAPH}",
        weights=(f"{name}/onnx/{WEIGHTS}",),
        inputs=input_names(layers),
        outputs=output_names(layers),
        operators=count_operators(model),
        parity=parity,
        row_rule=None,
    )
