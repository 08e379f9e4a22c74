"""Hypothesis draws the same examples everywhere and sets no clock: a failure here is a failure there.

Row rules that the tests find are remembered in a folder of their own, not in the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("unshrunk", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate))
settings.load_profile(os.environ.get("JOURNEE_HYPOTHESIS", "ci"))


@pytest.fixture(scope="session", autouse=True)
def row_rules_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache of row rules for the whole run of tests."""
    folder = tmp_path_factory.mktemp("journee-cache")
    before = os.environ.get("JOURNEE_CACHE")
    os.environ["JOURNEE_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["JOURNEE_CACHE"]
    else:
        os.environ["JOURNEE_CACHE"] = before
