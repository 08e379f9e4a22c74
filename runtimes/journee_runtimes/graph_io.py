"""Checks of a graph's inputs and outputs against what its bundle says of them, before anything is run.

Design section 8: `input_ids`, `attention_mask`, `position_ids` (int64), `past_key_values.N.key|value` [batch,
kv_heads, past, head_dim] and maybe `num_logits_to_keep` in; `logits` [batch, rows, vocabulary] and
`present.N.key|value` out. The manifest names them; a graph that has others, lacks one, or has one of another
type or rank is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journee_deploy.bundle import BundleRole
from journee_deploy.runtime import RuntimeFailure

FLOATS = ("tensor(float)", "tensor(float16)")
INTEGER = "tensor(int64)"

Size = int | str | None
"""A dimension: a number, a name, or unknown."""


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output of a graph: its type as ONNX Runtime spells it, and its dimensions."""

    name: str
    type: str
    shape: tuple[Size, ...]


def check_ports(place: str, role: BundleRole, inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Raise unless the graph is what `role` says; the type of its cache otherwise."""
    _check_names(place, "inputs", role.inputs.names(), inputs)
    _check_names(place, "outputs", role.outputs.names(), outputs)
    ports = {port.name: port for port in (*inputs, *outputs)}
    for name in (role.inputs.tokens, role.inputs.mask, role.inputs.positions):
        if name:
            _check(place, ports[name], (INTEGER,), (None, None))
    if role.inputs.rows_kept:
        _check(place, ports[role.inputs.rows_kept], (INTEGER,), ())
    _check(place, ports[role.outputs.logits], FLOATS, (None, None, role.vocabulary_size))
    cache = role.inputs.past_keys + role.inputs.past_values + role.outputs.present_keys + role.outputs.present_values
    for name in cache:
        _check(place, ports[name], FLOATS, (None, role.kv_heads, None, role.head_dim))
    return _one_type(place, [ports[name] for name in cache])


def _check_names(place: str, side: str, expected: Sequence[str], ports: Sequence[Port]) -> None:
    found = {port.name for port in ports}
    missing = [name for name in expected if name not in found]
    unknown = sorted(found.difference(expected))
    complaints = [f"{what} {', '.join(names)}" for what, names in (("no", missing), ("unexpected", unknown)) if names]
    if complaints:
        raise RuntimeFailure(
            f"{place}: its {side} are not those of the manifest: {'; '.join(complaints)}; export the model again"
        )


def _check(place: str, port: Port, types: Sequence[str], shape: tuple[int | None, ...]) -> None:
    """Names and unknowns among the graph's dimensions agree with any number."""
    sizes = zip(port.shape, shape, strict=False)
    agree = all(expected is None or not isinstance(size, int) or size == expected for size, expected in sizes)
    if port.type not in types or len(port.shape) != len(shape) or not agree:
        wanted = ["any" if size is None else size for size in shape]
        raise RuntimeFailure(
            f"{place}: {port.name} is {port.type} {list(port.shape)}, "
            f"expected {' or '.join(types)} {wanted}; export the model again"
        )


def _one_type(place: str, ports: Sequence[Port]) -> str:
    types = {port.type for port in ports}
    if len(types) > 1:
        raise RuntimeFailure(f"{place}: the cache mixes {', '.join(sorted(types))}; export the model again")
    return types.pop()
