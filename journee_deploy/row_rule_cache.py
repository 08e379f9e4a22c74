"""Row rules found before, a small file each in the user's cache folder: a model is tested once on a machine.

The folder is $JOURNEE_CACHE, or else `journee` in the platform's cache folder ($XDG_CACHE_HOME or ~/.cache;
~/Library/Caches on macOS; %LOCALAPPDATA% on Windows). A file that can't be read, is damaged or answers another key is
ignored, and the test runs again; files are replaced whole. That none can be written is no error, but the note says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from journee_deploy.row_rule import RowRule
from journee_deploy.row_self_test import Finding

FORMAT = 2
"""Of the cache files and of the self-test: raise it when either changes, and all models are tested again."""


@dataclass(frozen=True, slots=True)
class RuleKey:
    """All that a finding depends on.

    `graph`: sha256 of the graph. `weights`: of its weights, for they route tokens to experts, and so say how many rows
    an expert gets. `variant`: cache kind, rows kept, chunk.
    """

    graph: str
    weights: str
    variant: str
    runtime: str
    provider: str
    options: str
    processor: str
    threads: int


def remembered(key: RuleKey | None, find: Callable[[], Finding]) -> tuple[RowRule | None, str]:
    """The rule known under `key`, or else the one that `find` finds, which is stored; and the note for reports.

    `key` None: the finding can't be named well enough to be kept.
    """
    known = load(key) if key else None
    if known is not None:
        return known.rule, _note(known, "known from an earlier self-test here")
    found = find()
    trouble = store(key, found) if key else None
    return found.rule, _note(found, f"self-test now, not kept: {trouble}" if trouble else "self-test now")


def _note(finding: Finding, source: str) -> str:
    if finding.rule is None:
        return f"no row rule holds: rows depend on more than their prefix under every rule tried ({source})"
    return f"{finding.rule}: {finding.rows:,} rows compared, 0 differ ({source})"


def cache_folder() -> Path:
    """Where findings are kept."""
    if chosen := os.environ.get("JOURNEE_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "journee"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "journee"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "journee"


def load(key: RuleKey) -> Finding | None:
    """The finding stored under `key`, or None."""
    try:
        content = json.loads(_file(key).read_text("utf-8"))
        rule, rows = content["rule"], content["rows"]
        finding = Finding(rule if rule is None else RowRule(**rule), rows)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None
    return finding if content == _content(key, finding) else None


def store(key: RuleKey, finding: Finding) -> str | None:
    """Keep `finding` under `key`; what went wrong, if anything."""
    try:
        file = _file(key)
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, json.dumps(_content(key, finding), indent=1))
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        return str(error)
    return None


def _content(key: RuleKey, finding: Finding) -> dict[str, object]:
    """What a file holds: key and finding, with a check sum, for a flipped bit would be a wrong rule."""
    rule = None if finding.rule is None else asdict(finding.rule)
    content = {"format": FORMAT, "key": asdict(key), "rule": rule, "rows": finding.rows}
    check = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return {**content, "sha256": check}


def _file(key: RuleKey) -> Path:
    name = hashlib.sha256(json.dumps(asdict(key), sort_keys=True).encode()).hexdigest()
    return cache_folder() / "row_rules" / f"{name[:32]}.json"


def _replace(file: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as part:
            part.write(text)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
