"""The one graph of a role in a bundle for pages: weights rounded for storage and in chunks, arithmetic in float32.

A page can't bind a shared buffer, so there is the portable graph alone, and `num_logits_to_keep` must be fed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from journee_deploy.manifest import GraphRecord
from journee_export.chunks import write_chunked
from journee_export.graph import build_graph, count_operators, router_kind
from journee_export.parity import CASES, always_kept, measure, require, window_cases
from journee_export.rounding import SUFFIXES, Storage, demand_rows_kept, rounded_weights, shrink, with_weights
from journee_export.session import GraphSession
from journee_export.source import RoleSource
from journee_export.stored_error import stored_error
from journee_export.trace import OPSET, input_names, output_names

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How weights are stored for a page, and bytes of a chunk of them at most."""

    storage: Storage = "float16"
    chunk: int = 8 * MEBIBYTE


def write_page_graph(folder: Path, source: RoleSource, options: PageOptions, inline: bool) -> GraphRecord:
    """Write the graph and its chunks into the role's `folder`; ExportError if it doesn't compute what the model with
    rounded weights does.
    """
    layers = source.decoder.config.layers
    weights = rounded_weights(source.decoder, options.storage)
    decoder = with_weights(source.decoder, weights)
    model = build_graph(decoder, inline)
    shrink(model, weights)
    demand_rows_kept(model, input_names(layers).rows_kept)
    file = f"model{SUFFIXES[options.storage]}.onnx"
    chunks = write_chunked(model, decoder, folder / "onnx", file, options.chunk)
    graph = always_kept(GraphSession(folder / "onnx" / file), layers)
    parity = measure(decoder, graph, (*CASES, *window_cases(decoder.config)))
    require(parity)
    return GraphRecord(
        id=f"page{SUFFIXES[options.storage].replace('_', '-')}",
        cache="concat",
        precision="float32",
        opset=OPSET,
        accuracy_level=None,
        router=router_kind(model),
        file=f"{folder.name}/onnx/{file}",
        weights=tuple(f"{folder.name}/onnx/{chunk}" for chunk in chunks),
        inputs=input_names(layers),
        outputs=output_names(layers),
        operators=count_operators(model),
        parity=parity,
        row_rule=None,
        stored=stored_error(source.decoder, decoder, source.tokenizer, options.storage),
    )
