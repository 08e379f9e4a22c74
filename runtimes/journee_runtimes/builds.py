"""The builds of ONNX Runtime that are installed. Two at once overwrite each other's files, so that is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from journee_deploy.runtime import RuntimeFailure

BUILDS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-qnn")


def installed_builds() -> tuple[str, ...]:
    """Names of the distributions that are there."""
    return tuple(name for name in BUILDS if _installed(name))


def check_builds(builds: Iterable[str]) -> None:
    """Raise if `builds` holds more than one."""
    names = tuple(builds)
    if len(names) > 1:
        raise RuntimeFailure(
            f"{' and '.join(names)} are installed together, and overwrite each other; "
            f"run `pip uninstall {' '.join(names)}`, then install journee-deploy[cpu] or journee-deploy[cuda]"
        )


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
