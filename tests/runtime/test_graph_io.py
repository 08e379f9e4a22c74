"""Types and ranks of inputs and outputs, without a graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from journee_deploy.bundle import role_of
from journee_deploy.runtime import RuntimeFailure
from journee_runtimes.graph_io import Port, check_ports

INTEGER, FLOAT, HALF = "tensor(int64)", "tensor(float)", "tensor(float16)"


def ports(cache_type: str = FLOAT) -> tuple[dict[str, Port], dict[str, Port]]:
    """Inputs and outputs of the small target."""
    cache = [f"{layer}.{part}" for layer in range(2) for part in ("key", "value")]
    inputs = [Port(name, INTEGER, ("batch", "rows")) for name in ("input_ids", "attention_mask", "position_ids")]
    inputs += [Port(f"past_key_values.{name}", cache_type, ("batch", 2, "past", 16)) for name in cache]
    inputs.append(Port("num_logits_to_keep", INTEGER, ()))
    outputs = [Port("logits", FLOAT, ("batch", "kept", 61))]
    outputs += [Port(f"present.{name}", cache_type, ("batch", 2, "total", None)) for name in cache]
    return {port.name: port for port in inputs}, {port.name: port for port in outputs}


def test_a_sound_graph_passes_and_tells_the_type_of_its_cache(target: Path) -> None:
    for cache_type in (FLOAT, HALF):
        inputs, outputs = ports(cache_type)
        assert check_ports("g", role_of(target), list(inputs.values()), list(outputs.values())) == cache_type


@pytest.mark.parametrize(
    ("name", "port", "message"),
    [
        ("input_ids", {"type": "tensor(int32)"}, r"input_ids is tensor\(int32\) .*, expected tensor\(int64\)"),
        ("attention_mask", {"shape": ("total",)}, r"attention_mask is .* \['total'\], expected .* \['any', 'any'\]"),
        ("position_ids", {"shape": (3, "batch", "rows")}, "position_ids is"),
        ("num_logits_to_keep", {"shape": (1,)}, r"num_logits_to_keep is .* \[1\], expected tensor\(int64\) \[\]"),
        ("past_key_values.0.key", {"shape": ("batch", 3, "past", 16)}, r"expected .* \['any', 2, 'any', 16\]"),
        ("past_key_values.1.value", {"shape": ("batch", "past", 32)}, r"past_key_values\.1\.value is"),
        ("past_key_values.1.value", {"type": HALF}, r"the cache mixes tensor\(float\), tensor\(float16\)"),
        ("present.1.key", {"type": "tensor(bfloat16)"}, r"present\.1\.key is tensor\(bfloat16\)"),
        ("logits", {"type": "tensor(double)"}, r"logits is tensor\(double\)"),
        ("logits", {"shape": ("batch", "kept", 62)}, r"logits is .* 62\], expected .* 61\]"),
    ],
)
def test_another_type_or_rank_is_refused_by_name(
    target: Path, name: str, port: dict[str, object], message: str
) -> None:
    inputs, outputs = ports()
    side = inputs if name in inputs else outputs
    side[name] = replace(side[name], **port)
    with pytest.raises(RuntimeFailure, match=f"a graph: .*{message}"):
        check_ports("a graph", role_of(target), list(inputs.values()), list(outputs.values()))
