"""ONNX Runtime on CPU and CUDA. This is the one file that imports onnxruntime.

Sessions are made with threads that spin during a run and stop when it ends (two pools that spin on between runs fight
for the same cores; threads that never spin lose a tenth of the time to waking up), and with ONNX Runtime's fallbacks
off: a session that is not on the provider asked for is an error.

Of a role's graph variants, CPU takes the first with a shared buffer if there is one, CUDA the first of all (usually
`concat`, whose cache is kept as host arrays: right there, but not fast, and not yet tried on a device);
`OpenOptions.graph` names another.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime  # type: ignore[import-untyped]

from journee_deploy.bundle import BundleRole, is_role_folder, role_of
from journee_deploy.processor import processor_name, usable_threads
from journee_deploy.row_rule import CHUNK
from journee_deploy.row_rule_cache import RuleKey
from journee_deploy.runtime import Model, OpenOptions, RuntimeFailure
from journee_deploy.slot_runner import Facts
from journee_deploy.slots import SlotModel
from journee_runtimes.builds import check_builds, installed_builds
from journee_runtimes.concat import ConcatForward
from journee_runtimes.graph_io import Port, check_ports
from journee_runtimes.session import Node, Session, first_line
from journee_runtimes.shared import SharedForward

ORT: Any = onnxruntime
"""The package, which has no types."""

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
PROVIDER_OPTIONS: dict[str, dict[str, str]] = {"cpu": {}, "cuda": {"device_id": "0", "use_tf32": "0"}}
THREADING = {"session.intra_op.allow_spinning": "1", "session.force_spinning_stop": "1"}
ERRORS_ONLY = 3


class OnnxRuntime:
    """The runtime `onnxruntime`: opens the roles of bundles."""

    def __init__(self) -> None:
        check_builds(installed_builds())
        if not hasattr(ORT, "get_available_providers"):
            raise RuntimeFailure(
                "onnxruntime's files are incomplete, as they are after one build was installed over another; run "
                "`pip uninstall onnxruntime onnxruntime-gpu`, then install journee-deploy[cpu] or journee-deploy[cuda]"
            )

    @property
    def name(self) -> str:
        return "onnxruntime"

    def providers(self) -> tuple[str, ...]:
        available: list[str] = ORT.get_available_providers()
        return tuple(short for short, name in PROVIDERS.items() if name in available)

    def opens(self, source: Path) -> bool:
        return is_role_folder(source)

    def open(self, source: Path, role: str, options: OpenOptions) -> Model:
        self._check_provider(options.provider)
        record = chosen_role(role_of(source, options.verify), options)
        if record.name != role:
            raise RuntimeFailure(f"{source}: is the {record.name} of its bundle, not its {role}; give BUNDLE/{role}")
        threads = options.threads or usable_threads()
        session = make_session(record.graph, options.provider, threads)
        name = f"{record.root.name} {role}"
        cache_type = check_ports(str(record.graph), record, *ports_of(session))
        facts = Facts(name, record.vocabulary_size, record.context_length)
        model = (
            SlotModel(SharedForward(session, record, cache_type), facts)
            if record.graph_record.cache == "shared"
            else SlotModel(ConcatForward(session, record, cache_type), facts)
        )
        if options.row_rule:
            model.settle(rule_key(record, options.provider, threads))
        return model

    def _check_provider(self, provider: str) -> None:
        if provider in self.providers():
            return
        hint = "install journee-deploy[cuda] instead of [cpu]" if provider == "cuda" else "choose one of those"
        raise RuntimeFailure(f"no provider {provider!r} here; there are: {', '.join(self.providers())}; {hint}")


def chosen_role(role: BundleRole, options: OpenOptions) -> BundleRole:
    """The role with the graph variant that is asked for, or that suits the provider."""
    if options.graph is not None:
        role = role.with_graph(options.graph)
    elif options.provider == "cpu":
        shared = [graph.id for graph in role.record.graphs if graph.cache == "shared"]
        role = role.with_graph(shared[0]) if shared else role
    if role.graph_record.cache == "shared" and options.provider != "cpu":
        raise RuntimeFailure(
            f"{role}: graph {role.variant} has a shared buffer, which runs on cpu only so far; choose another graph"
        )
    return role


def make_session(graph: Path, provider: str, threads: int) -> Session:
    """A session on `provider`, surely; RuntimeFailure says why it can't be made."""
    options = ORT.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    for name, value in THREADING.items():
        options.add_session_config_entry(name, value)
    wanted = [(PROVIDERS[provider], PROVIDER_OPTIONS[provider])]
    try:
        session: Session = ORT.InferenceSession(graph, options, providers=wanted)
    except Exception as error:  # noqa: BLE001  (ONNX Runtime raises a class of its own for each status)
        raise RuntimeFailure(f"{graph}: ONNX Runtime can't load it: {first_line(error)}") from None
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


def ports_of(session: Session) -> tuple[list[Port], list[Port]]:
    """Inputs, those with a default included, and outputs."""
    inputs = [*session.get_inputs(), *session.get_overridable_initializers()]
    return [_port(node) for node in inputs], [_port(node) for node in session.get_outputs()]


def _port(node: Node) -> Port:
    return Port(node.name, node.type, tuple(node.shape))


def rule_key(role: BundleRole, provider: str, threads: int) -> RuleKey | None:
    """What a row rule is remembered by; None on CUDA, where the device has no name here, so that it is tested anew."""
    if provider != "cpu":
        return None
    record = role.graph_record
    return RuleKey(
        graph=role.graph_sha256,
        weights=role.weights_sha256,
        variant=f"{record.cache}, rows kept {record.inputs.rows_kept is not None}, chunk {CHUNK}",
        runtime=f"onnxruntime {ORT.__version__}",
        provider=provider,
        options=f"{PROVIDER_OPTIONS[provider]}, {THREADING}",
        processor=processor_name(),
        threads=threads,
    )
