"""The graph that ships: names, shapes, defaults, the router once, weights apart, and the same bytes every time."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from journee.model import Decoder
from journee_export.errors import ExportError
from journee_export.graph import LARGEST_CONSTANT, count_operators, finish, router_kind, weight_values
from journee_export.trace import input_names, output_names, trace
from tests.export.conftest import Exported, write
from tests.export.small_models import DRAFT, TARGET, make_decoder

PORTS = {
    "input_ids": ("INT64", ["batch", "rows"]),
    "attention_mask": ("INT64", ["batch", "total"]),
    "position_ids": ("INT64", ["batch", "rows"]),
    "past_key_values.0.key": ("FLOAT", ["batch", 2, "past", 16]),
    "past_key_values.0.value": ("FLOAT", ["batch", 2, "past", 16]),
    "past_key_values.1.key": ("FLOAT", ["batch", 2, "past", 16]),
    "past_key_values.1.value": ("FLOAT", ["batch", 2, "past", 16]),
    "num_logits_to_keep": ("INT64", []),
}


def proto(exported: Exported) -> onnx.ModelProto:
    return onnx.load(exported.folder / "model.onnx", load_external_data=False)


def dimensions(value: onnx.ValueInfoProto) -> tuple[str, list[str | int]]:
    tensor = value.type.tensor_type
    sizes = [size.dim_param or size.dim_value for size in tensor.shape.dim]
    return onnx.TensorProto.DataType.Name(tensor.elem_type), sizes


def test_inputs_are_named_typed_and_dynamic(exported: Exported) -> None:
    assert {value.name: dimensions(value) for value in proto(exported).graph.input} == PORTS
    assert input_names(2).names() == tuple(PORTS)


def test_outputs_are_named_and_have_their_ranks(exported: Exported) -> None:
    outputs = {value.name: dimensions(value) for value in proto(exported).graph.output}
    assert tuple(outputs) == output_names(2).names()
    assert tuple(outputs) == ("logits", "present.0.key", "present.0.value", "present.1.key", "present.1.value")
    assert outputs["logits"][1][0::2] == ["batch", 260]
    assert outputs["present.1.key"][1][:2] == ["batch", 2]


def test_rows_kept_has_a_default(exported: Exported) -> None:
    found = {value.name: value for value in proto(exported).graph.initializer}["num_logits_to_keep"]
    assert onnx.numpy_helper.to_array(found) == np.array(0, dtype=np.int64)


def test_opset_and_file_version(exported: Exported) -> None:
    model = proto(exported)
    assert {(entry.domain, entry.version) for entry in model.opset_import} - {("ai.journee", 1)} == {("", 24)}
    assert (model.ir_version, model.producer_name) == (12, "journee-export")


def test_the_router_is_one_op_or_none(exported: Exported) -> None:
    operators, model = count_operators(exported.model), proto(exported)
    if router_kind(exported.model) == "function":
        assert operators["ai.journee::BooleanRouter"] == 1
        assert [function.name for function in model.functions] == ["BooleanRouter"]
    else:
        assert router_kind(exported.model) == "inlined"
        assert not [name for name in operators if "::" in name]
        assert not model.functions
        assert [entry.domain for entry in model.opset_import] == [""]


def test_one_if_an_expert_and_one_for_the_inverter(exported: Exported) -> None:
    operators = count_operators(exported.model)
    assert (operators["If"], operators["NonZero"], operators["ScatterND"]) == (5, 5, 5)
    assert (operators["Attention"], operators["RotaryEmbedding"], operators["RMSNormalization"]) == (2, 4, 5)
    assert operators["MatMul"] == 4 * 2 + 3 + 1 + 4 * 3 + 1 + 1
    assert "Gemm" not in operators


def test_a_dense_model_has_no_trace_of_a_router(draft: Exported) -> None:
    assert router_kind(draft.model) == "none"
    assert "If" not in count_operators(draft.model)
    assert [entry.domain for entry in proto(draft).opset_import] == [""]


def test_weights_are_named_after_parameters_and_lie_apart(exported: Exported) -> None:
    model = proto(exported)
    apart = {value.name: value for value in model.graph.initializer if value.external_data}
    parameters = dict(exported.decoder.named_parameters()) | dict(exported.decoder.named_buffers())
    assert {name.removesuffix(".transposed") for name in apart} == set(parameters)
    for value in apart.values():
        assert {entry.key: entry.value for entry in value.external_data}["location"] == "model.onnx_data"
    inside = [onnx.numpy_helper.to_array(value).nbytes for value in model.graph.initializer if value.name not in apart]
    assert max(inside) <= LARGEST_CONSTANT
    size = sum(parameter.numel() for parameter in parameters.values()) * 4
    assert (exported.folder / "model.onnx_data").stat().st_size == size


def test_weights_are_the_parameters(exported: Exported) -> None:
    model = onnx.load(exported.folder / "model.onnx")
    parameters = dict(exported.decoder.named_parameters()) | dict(exported.decoder.named_buffers())
    for value in model.graph.initializer:
        name = value.name.removesuffix(".transposed")
        if name in parameters:
            expected = parameters[name].detach().numpy()
            expected = expected.T if name != value.name else expected
            np.testing.assert_array_equal(onnx.numpy_helper.to_array(value), expected)


def test_nothing_of_the_exporters_machine_is_in_the_file(exported: Exported) -> None:
    content = (exported.folder / "model.onnx").read_bytes()
    for trace_of in (b".py", b"site-packages", b"/home", b"/root", b"/tmp", b"stack_trace", b"torch.nn"):
        assert trace_of not in content


def digests(folder: Path) -> tuple[str, str]:
    graph, weights = (
        hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("model.onnx", "model.onnx_data")
    )
    return graph, weights


def test_exporting_again_gives_the_same_bytes(draft: Exported, tmp_path: Path) -> None:
    decoder = make_decoder(DRAFT)
    again = write(decoder, finish(trace(decoder), decoder), tmp_path)
    assert digests(again.folder) == digests(draft.folder)


def test_both_variants_share_their_weights(traced: ir.Model, decoder: Decoder, tmp_path: Path) -> None:
    for name in ("function", "inlined"):
        (tmp_path / name).mkdir()
        write(decoder, finish(traced.clone(), decoder, inline=name == "inlined"), tmp_path / name)
    one, other = digests(tmp_path / "function"), digests(tmp_path / "inlined")
    assert one[1] == other[1]
    assert one[0] != other[0]


def test_a_weight_that_is_no_parameter_is_refused(traced: ir.Model) -> None:
    with pytest.raises(ExportError, match="which is no parameter of the model; check that torch"):
        finish(traced.clone(), make_decoder(TARGET, seed=2))


def test_tracing_leaves_the_model_as_it_was(exported: Exported) -> None:
    decoder = exported.decoder
    assert not any(block.attention.export_ops for block in decoder.blocks)
    assert decoder.mixture is not None
    assert decoder.mixture.dispatch.__name__ == "dispatch_sparse"
    assert len(weight_values(exported.model, decoder)) == len(set(weight_values(exported.model, decoder)))
