from __future__ import annotations

from pathlib import Path

import pytest

from journee_deploy.runtime import Model, OpenOptions
from journee_runtimes.onnx import OnnxRuntime
from tests.runtime.tiny_bundle import write_bundle


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Row rules are remembered in a folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("JOURNEE_CACHE", str(folder))
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The target's folder in a small bundle."""
    return write_bundle(tmp_path / "bundle")


@pytest.fixture
def model(target: Path) -> Model:
    """That target, opened on one thread, with its row rule."""
    return OnnxRuntime().open(target, "target", OpenOptions(threads=1))
