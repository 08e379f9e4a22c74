"""ONNX Runtime on CPU and CUDA. This is the one file that imports onnxruntime.

Sessions are made with threads that don't spin (two spinning pools fight for the same cores) and with ONNX
Runtime's fallbacks off: a session that is not on the provider asked for is an error.

The cache of `concat` graphs is kept as host arrays, which on CPU are passed without a copy. On CUDA that
copies the cache to the device and back in each run: right, but not fast, and not yet tried on a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray

from journee_deploy.bundle import BundleRole, is_role_folder, role_of
from journee_deploy.forward import Ids
from journee_deploy.processor import processor_name, usable_threads
from journee_deploy.row_rule import CHUNK
from journee_deploy.row_rule_cache import RuleKey
from journee_deploy.runtime import Model, OpenOptions, Rows, RuntimeFailure
from journee_deploy.slot_runner import Facts
from journee_deploy.slots import SlotModel
from journee_runtimes.builds import check_builds, installed_builds
from journee_runtimes.graph_io import Port, check_ports

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
PROVIDER_OPTIONS: dict[str, dict[str, str]] = {"cpu": {}, "cuda": {"device_id": "0", "use_tf32": "0"}}
ERRORS_ONLY = 3

Arrays = tuple[NDArray[Any], ...]
"""A cache: key and value of each layer in turn, [1, kv_heads, tokens, head_dim]."""


class OnnxRuntime:
    """The runtime `onnxruntime`: opens the roles of bundles."""

    def __init__(self) -> None:
        check_builds(installed_builds())

    @property
    def name(self) -> str:
        return "onnxruntime"

    def providers(self) -> tuple[str, ...]:
        available: list[str] = ort.get_available_providers()
        return tuple(short for short, name in PROVIDERS.items() if name in available)

    def opens(self, source: Path) -> bool:
        return is_role_folder(source)

    def open(self, source: Path, role: str, options: OpenOptions) -> Model:
        self._check_provider(options.provider)
        record = role_of(source)
        threads = options.threads or usable_threads()
        session = make_session(record.graph, options.provider, threads)
        name = f"{record.root.name} {role}"
        forward = OnnxForward(session, record, check_ports(str(record.graph), record, *ports_of(session)))
        model = SlotModel(forward, Facts(name, record.vocabulary_size, record.context_length))
        if options.row_rule:
            model.settle(rule_key(record, options.provider, threads))
        return model

    def _check_provider(self, provider: str) -> None:
        if provider in self.providers():
            return
        hint = (
            "install journee-deploy[cuda] instead of [cpu]" if provider == "cuda" else "choose one of those"
        )
        raise RuntimeFailure(
            f"no provider {provider!r} here; there are: {', '.join(self.providers())}; {hint}"
        )


def make_session(graph: Path, provider: str, threads: int) -> ort.InferenceSession:
    """A session on `provider`, surely; RuntimeFailure says why it can't be made."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    wanted = [(PROVIDERS[provider], PROVIDER_OPTIONS[provider])]
    try:
        session = ort.InferenceSession(graph, options, providers=wanted)
    except Exception as error:  # noqa: BLE001  (ONNX Runtime raises a class of its own for each status)
        raise RuntimeFailure(f"{graph}: ONNX Runtime can't load it: {_first_line(error)}") from None
    session.disable_fallback()
    check_session_provider(str(graph), provider, session.get_providers())
    return session


def check_session_provider(place: str, provider: str, found: Sequence[str]) -> None:
    """Raise if the first of a session's providers is not the one asked for."""
    if not found or found[0] != PROVIDERS[provider]:
        raise RuntimeFailure(
            f"{place}: asked for {provider}, but the session runs on {', '.join(found) or 'nothing'}; "
            "check the driver and the CUDA libraries, or choose the provider cpu"
        )


def ports_of(session: ort.InferenceSession) -> tuple[list[Port], list[Port]]:
    """Inputs, those with a default included, and outputs."""
    inputs = [*session.get_inputs(), *session.get_overridable_initializers()]
    return [_port(node) for node in inputs], [_port(node) for node in session.get_outputs()]


def _port(node: Any) -> Port:
    return Port(node.name, node.type, tuple(node.shape))


def rule_key(role: BundleRole, provider: str, threads: int) -> RuleKey | None:
    """What a row rule is remembered by; None on CUDA, where the device has no name here, so that it is tested
    anew.
    """
    if provider != "cpu":
        return None
    record = role.graph_record
    return RuleKey(
        graph=role.graph_sha256,
        variant=f"{record.cache}, rows kept {record.inputs.rows_kept is not None}, chunk {CHUNK}",
        runtime=f"onnxruntime {ort.__version__}",
        provider=provider,
        options=f"{PROVIDER_OPTIONS[provider]}, spinning 0",
        processor=processor_name(),
        threads=threads,
    )


class OnnxForward:
    """A `journee_deploy.forward.Forward` over a session of a `concat` graph."""

    def __init__(self, session: ort.InferenceSession, role: BundleRole, cache_type: str) -> None:
        self._session: ort.InferenceSession | None = session
        self._place = str(role.graph)
        self._inputs = role.inputs
        self._outputs = role.outputs.names()
        self._past = _in_turn(role.inputs.past_keys, role.inputs.past_values)
        self._shape = (role.kv_heads, role.head_dim)
        self._type = np.float16 if cache_type == "tensor(float16)" else np.float32

    def empty(self) -> Arrays:
        return tuple(np.zeros(self._size(0), self._type) for _ in self._past)

    def run(self, past: Arrays, tokens: Ids, mask: Ids, positions: Ids, keep: int) -> tuple[Rows, Arrays]:
        names = self._inputs
        feeds: dict[str, NDArray[Any]] = dict(zip(self._past, past, strict=True))
        feeds |= {names.tokens: tokens[None], names.mask: mask[None], names.positions: positions[None]}
        if names.rows_kept:
            feeds[names.rows_kept] = np.array(keep, np.int64)
        logits, *present = self._answers(feeds)
        if logits.ndim != 3 or logits.shape[0] != 1:
            raise RuntimeFailure(
                f"{self._place}: logits have shape {list(logits.shape)}, expected [1, rows, vocabulary]"
            )
        return np.array(logits[0, -keep:], np.float32), tuple(present)

    def _answers(self, feeds: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        assert self._session is not None
        try:
            return list(self._session.run(self._outputs, feeds))
        except Exception as error:  # noqa: BLE001  (as above)
            raise RuntimeFailure(f"{self._place}: the run failed: {_first_line(error)}") from None

    def trim(self, cache: Arrays, length: int) -> Arrays:
        return tuple(np.ascontiguousarray(part[:, :, :length]) for part in cache)

    def invent(self, length: int, seed: int) -> Arrays:
        """Normal values, 64 tokens of them repeated."""
        chance = np.random.default_rng(seed)
        made: list[NDArray[Any]] = []
        for _ in self._past:
            block = chance.standard_normal(self._size(min(64, length)), np.float32).astype(self._type)
            made.append(np.tile(block, (1, 1, -(-length // 64), 1))[:, :, :length].copy())
        return tuple(made)

    def close(self) -> None:
        self._session = None

    def _size(self, length: int) -> tuple[int, int, int, int]:
        heads, width = self._shape
        return 1, heads, length, width


def _in_turn(keys: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for pair in zip(keys, values, strict=True) for name in pair)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
