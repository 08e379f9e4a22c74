"""Row rules found before: kept under all that they depend on, ignored when damaged, and never needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journee_deploy import row_rule_cache
from journee_deploy.row_rule import RowRule
from journee_deploy.row_rule_cache import RuleKey, cache_folder, load, remembered, store
from journee_deploy.row_self_test import Finding

KEY = RuleKey("0" * 64, "1" * 64, "concat", "onnxruntime 1.30.0", "cpu", "spinning 0", "a processor", 2)
FOUND = Finding(RowRule(8, 8, fixed=True), 854)
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def never() -> Finding:
    raise AssertionError("the self-test ran")


@pytest.mark.parametrize("finding", [FOUND, Finding(None, 31)])
def test_what_was_stored_is_loaded(finding: Finding) -> None:
    assert store(KEY, finding) is None
    assert load(KEY) == finding


@pytest.mark.parametrize(
    "change",
    [
        {"graph": "1" * 64}, {"weights": "2" * 64}, {"variant": "shared"}, {"runtime": "onnxruntime 1.31.0"},
        {"provider": "cuda"}, {"options": ""}, {"processor": "another"}, {"threads": 1},
    ],
)  # fmt: skip
def test_every_part_of_the_key_counts(change: dict[str, str | int]) -> None:
    store(KEY, FOUND)
    assert load(replace(KEY, **change)) is None


def test_the_self_test_runs_once() -> None:
    rule, note = remembered(KEY, lambda: FOUND)
    assert rule == FOUND.rule
    assert note == "aligned blocks of 8 rows: 854 rows compared, 0 differ (self-test now)"
    assert remembered(KEY, never) == (
        rule,
        "aligned blocks of 8 rows: 854 rows compared, 0 differ (known from an earlier self-test here)",
    )


def test_that_there_is_no_rule_is_remembered_too() -> None:
    rule, note = remembered(KEY, lambda: Finding(None, 31))
    assert rule is None
    assert note.startswith("no row rule holds")
    assert remembered(KEY, never)[0] is None


def test_without_a_key_nothing_is_kept(cache_folder: Path) -> None:
    assert remembered(None, lambda: FOUND)[0] == FOUND.rule
    assert files(cache_folder) == []


@same_folder
@given(where=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_ignored(cache_folder: Path, where: float, bit: int) -> None:
    store(KEY, FOUND)
    (file,) = files(cache_folder)
    content = bytearray(file.read_bytes())
    content[min(int(where * len(content)), len(content) - 1)] ^= 1 << bit
    file.write_bytes(content)
    assert load(KEY) in (None, FOUND)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}", '{"rule": {"rows": "2"}, "rows": 1}', "\udcff"])
def test_a_file_that_is_none_is_ignored_and_replaced(cache_folder: Path, content: str) -> None:
    store(KEY, FOUND)
    (file,) = files(cache_folder)
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert load(KEY) is None
    remembered(KEY, lambda: FOUND)
    assert load(KEY) == FOUND
    assert files(cache_folder) == [file]


def test_an_older_format_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    store(KEY, FOUND)
    monkeypatch.setattr(row_rule_cache, "FORMAT", row_rule_cache.FORMAT + 1)
    assert load(KEY) is None


def test_a_folder_that_cannot_be_written_is_said_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JOURNEE_CACHE", str(tmp_path / "file"))
    rule, note = remembered(KEY, lambda: FOUND)
    assert rule == FOUND.rule
    assert "self-test now, not kept: " in note
    assert str(tmp_path / "file") in note


def test_a_write_that_fails_leaves_nothing(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert "No space left" in (store(KEY, FOUND) or "")
    assert files(cache_folder) == []


def test_the_folder_is_the_users_or_the_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEE_CACHE", "/here")
    assert cache_folder() == Path("/here")
    monkeypatch.delenv("JOURNEE_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/journee")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "journee"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "journee"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/journee")
