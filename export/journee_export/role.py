"""One role of a bundle: its folder and its record in the manifest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir

from journee.tokenizer import tokenizer_hash
from journee_deploy.manifest import GraphRecord, Parity, RoleRecord
from journee_export.graph import build_graph, count_operators, router_kind
from journee_export.model_folder import DTYPES, write_model_folder
from journee_export.page import PageOptions, write_page_graph
from journee_export.parity import CASES, as_concat, measure, measure_rough, require, shared_cases, window_cases
from journee_export.quantize import ACCURACY_LEVEL, SUFFIXES, quantize
from journee_export.session import GraphSession
from journee_export.shared_cache import LEAST_ROWS, share_cache, shared_input_names, why_not_shared
from journee_export.source import RoleSource
from journee_export.trace import OPSET, input_names, output_names
from journee_export.weights import write_graph

Say = Callable[[str], None]


def write_role(
    bundle: Path, name: str, source: RoleSource, inline: bool, say: Say, page: PageOptions | None = None
) -> RoleRecord:
    """Write the role's folder into `bundle`, with the graph for pages or the others; ExportError if a graph doesn't
    compute what the model does.
    """
    folder = bundle / name
    (folder / "onnx").mkdir(parents=True)
    if page:
        say(f"Rounding the weights of the {name} to {page.storage}, and tracing it")
        graph = write_page_graph(folder, source, page, inline)
        write_model_folder(folder, source, DTYPES[page.storage], Path(graph.file).name, len(graph.weights))
        return _role_record(name, source, (graph,))
    say(f"Tracing the {name}")
    models = {"concat": build_graph(source.decoder, inline)}
    if reason := why_not_shared(source.decoder.config):
        say(f"The {name} gets no graph with a shared cache, the faster one on CPU: {reason}")
    else:
        least_rows = LEAST_ROWS if name == "target" else 1  # a draft needs no row rule
        models["shared"] = share_cache(models["concat"], source.decoder.config, least_rows)
    if source.precision != "float32":
        say(f"Quantizing the {name} to {source.precision}")
    say(f"Comparing the {name} with PyTorch")
    graphs = [_write(folder, source, cache, quantize(model, source.precision)) for cache, model in models.items()]
    write_model_folder(folder, source, DTYPES[source.precision], Path(graphs[0].file).name, len(graphs[0].weights))
    return _role_record(name, source, tuple(graphs))


def _write(folder: Path, source: RoleSource, cache: str, model: ir.Model) -> GraphRecord:
    """One variant of the graph; all share a weights file."""
    suffix = SUFFIXES[source.precision]
    file, weights = f"model{'_shared' if cache == 'shared' else ''}{suffix}.onnx", f"model{suffix}.onnx_data"
    written = write_graph(model, source.decoder, folder / "onnx", file, weights)
    parity = _compared(source, cache, GraphSession(folder / "onnx" / file))
    require(parity)
    layers = source.decoder.config.layers
    return GraphRecord(
        id=f"{cache}-{'fp32' if source.precision == 'float32' else source.precision}",
        cache="shared" if cache == "shared" else "concat",
        precision=source.precision,
        opset=OPSET,
        accuracy_level=None if source.precision == "float32" else ACCURACY_LEVEL,
        router=router_kind(model),
        file=f"{folder.name}/onnx/{file}",
        weights=tuple(f"{folder.name}/onnx/{name}" for name in written),
        inputs=shared_input_names(layers) if cache == "shared" else input_names(layers),
        outputs=output_names(layers),
        operators=count_operators(model),
        parity=parity,
        row_rule=None,
    )


def _compared(source: RoleSource, cache: str, session: GraphSession) -> tuple[Parity, ...]:
    config = source.decoder.config
    shared = cache == "shared"
    graph = as_concat(session, config.layers) if shared else session
    cases = (*(shared_cases(config.context_length) if shared else CASES), *window_cases(config))
    return (measure if source.precision == "float32" else measure_rough)(source.decoder, graph, cases)


def _role_record(name: str, source: RoleSource, graphs: tuple[GraphRecord, ...]) -> RoleRecord:
    config = source.decoder.config
    return RoleRecord(
        vocabulary_size=config.vocab_size,
        context_length=config.context_length,
        layers=config.layers,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        parameters=sum(parameter.numel() for parameter in source.decoder.parameters()),
        dtype="float32",
        end_of_sequence=source.ends,
        tokenizer=f"{name}/tokenizer.json",
        vocabulary_hash=tokenizer_hash(source.tokenizer),
        corpus_hash=source.corpus_hash,
        graphs=graphs,
        source=source.origin,
    )
