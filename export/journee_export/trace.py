"""A decoder traced to an ONNX graph by PyTorch's exporter: opset 24, every dimension dynamic, experts apart.

    input_ids [batch, rows], attention_mask [batch, past + rows], position_ids [batch, rows]      int64
    past_key_values.N.key|value [batch, kv_heads, past, head_dim]                                 float32
    num_logits_to_keep                                                                            int64 scalar
    logits [batch, rows kept, vocabulary], present.N.key|value [batch, kv_heads, past + rows, head_dim]

One graph serves past = 0 and any number of rows from 1 on. The example inputs are never 0 or 1 long: PyTorch
would make those lengths constants.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor, nn

from journee.attention import Cache
from journee.causal import CausalDecoder
from journee_deploy.manifest import Inputs, Outputs
from journee_export.errors import foreign
from journee_export.last_rows import last_rows, last_rows_node
from journee_export.router_op import router_node
from journee_export.sparse_dispatch import dispatch_with_if

OPSET = 24
POSITIONS = "position_ids"
EXAMPLE = (2, 5, 7)
"""Batch, rows and past of the example inputs."""

TRANSLATIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.ops.journee.boolean_router.default: router_node,
    torch.ops.journee.last_rows.default: last_rows_node,
}


def input_names(layers: int) -> Inputs:
    """Names of the graph's inputs."""
    keys = tuple(f"past_key_values.{layer}.key" for layer in range(layers))
    values = tuple(f"past_key_values.{layer}.value" for layer in range(layers))
    return Inputs("input_ids", "attention_mask", POSITIONS, keys, values, "num_logits_to_keep")


def output_names(layers: int) -> Outputs:
    """Names of the graph's outputs."""
    keys = tuple(f"present.{layer}.key" for layer in range(layers))
    values = tuple(f"present.{layer}.value" for layer in range(layers))
    return Outputs("logits", keys, values)


class GraphDecoder(nn.Module):
    """The decoder with the graph's inputs and outputs."""

    def __init__(self, decoder: CausalDecoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self, tokens: Tensor, mask: Tensor, positions: Tensor, past: Sequence[Cache], rows_kept: Tensor
    ) -> tuple[Tensor, list[Cache]]:
        """Shapes as in the module's contract."""
        states, present = self.decoder.hidden(tokens, mask, positions, past)
        return self.decoder.head(last_rows(states, rows_kept)), present


def trace(decoder: CausalDecoder) -> ir.Model:
    """The graph as PyTorch's exporter leaves it; `graph.finish` makes it ours."""
    module = GraphDecoder(decoder).eval()
    layers = decoder.config.layers
    with foreign("exporting the model with PyTorch"), _graph_ops(decoder), quiet(), torch.no_grad():
        program: Any = torch.onnx.export(  # pyright: ignore[reportUnknownMemberType]
            module,
            _example(decoder),
            dynamo=True,
            opset_version=OPSET,
            input_names=input_names(layers).names(),
            output_names=output_names(layers).names(),
            dynamic_shapes=_dynamic_shapes(layers),
            custom_translation_table=TRANSLATIONS,
            verbose=False,
        )
    model: ir.Model = program.model
    return model


def _example(decoder: CausalDecoder) -> tuple[object, ...]:
    batch, rows, past = EXAMPLE
    config = decoder.config
    shape = (batch, config.kv_heads, past, config.head_dim)
    tokens = torch.zeros(batch, rows, dtype=torch.int64)
    mask = torch.ones(batch, past + rows, dtype=torch.int64)
    positions = torch.arange(past, past + rows).repeat(batch, 1)
    held = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(config.layers)]
    return tokens, mask, positions, held, torch.tensor(3)


def _dynamic_shapes(layers: int) -> tuple[object, ...]:
    rows = {0: "batch", 1: "rows"}
    past = {0: "batch", 2: "past"}
    return rows, {0: "batch", 1: "total"}, rows, [(past, past)] * layers, None


@contextmanager
def _graph_ops(decoder: CausalDecoder) -> Generator[None]:
    """The decoder in the form that traces, for a while."""
    mixture = decoder.mixture
    dispatch = mixture.dispatch if mixture else None
    decoder.use_export_ops(True)
    try:
        if mixture:
            mixture.dispatch = dispatch_with_if
        yield
    finally:
        decoder.use_export_ops(False)
        if mixture and dispatch:
            mixture.dispatch = dispatch


@contextmanager
def quiet() -> Generator[None]:
    """Without the exporter's remarks: on torchvision, which nobody needs, and on names that several axes
    share.
    """
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
            warnings.filterwarnings("ignore", message=".*axis name: .* will not be used.*", category=UserWarning)
            yield
    finally:
        logger.setLevel(level)
