from __future__ import annotations

from pathlib import Path

import pytest

from journee_deploy.processor import processor_name, usable_threads

FACTS = "processor\t: 0\nmodel name\t: One\nflags\t\t: fpu avx2\ncpu MHz\t\t: 2445.4\n"


def named(folder: Path, text: str) -> str:
    (folder / "cpuinfo").write_text(text)
    return processor_name(folder / "cpuinfo")


def test_a_processor_is_named_by_its_model_and_instructions_not_by_its_speed_or_count(tmp_path: Path) -> None:
    name = named(tmp_path, FACTS)
    assert named(tmp_path, FACTS.replace("2445.4", "1200.0")) == name
    assert named(tmp_path, FACTS + FACTS.replace(": 0", ": 1")) == name
    assert named(tmp_path, FACTS.replace("One", "Two")) != name
    assert named(tmp_path, FACTS.replace("avx2", "avx512f")) != name


def test_a_platform_without_facts_has_a_name_all_the_same(tmp_path: Path) -> None:
    assert processor_name(tmp_path / "none")


@pytest.mark.parametrize("quota", ["max 100000", "nonsense", ""])
def test_without_a_quota_all_allowed_processors_are_used(tmp_path: Path, quota: str) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_threads(tmp_path / "cpu.max") == usable_threads(tmp_path / "none") >= 1


def test_a_quota_bounds_the_threads(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000")
    assert usable_threads(tmp_path / "cpu.max") == 1
    (tmp_path / "cpu.max").write_text("20000 100000")
    assert usable_threads(tmp_path / "cpu.max") == 1


def test_twins_of_one_core_count_once(tmp_path: Path) -> None:
    (tmp_path / "active").write_text("0\n")
    all_of_them = usable_threads(tmp_path / "none", tmp_path / "active")
    (tmp_path / "active").write_text("1\n")
    assert usable_threads(tmp_path / "none", tmp_path / "active") == (all_of_them + 1) // 2
