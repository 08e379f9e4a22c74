"""A fresh small bundle for each test that spoils one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bundle.small_bundle import write_bundle


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a good bundle with a target and a draft."""
    write_bundle(tmp_path / "small")
    return tmp_path / "small"
