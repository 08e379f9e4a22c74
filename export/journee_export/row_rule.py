"""The row rule that this machine finds for an exported target, for the manifest (design section 3).

It is a fact about this machine: a runtime elsewhere looks for its own.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

from journee_deploy.manifest import FoundRule, RoleRecord
from journee_deploy.runtime import OpenOptions, find_runtime

RUNTIME = "onnxruntime"
PROVIDER = "cpu"


def with_row_rule(record: RoleRecord, folder: Path) -> RoleRecord:
    """`record` with the rule found by opening the role's `folder` (of a bundle with a manifest), if there is
    one.
    """
    model = find_runtime(RUNTIME).open(folder, folder.name, OpenOptions(PROVIDER))
    try:
        rule = model.row_rule
    finally:
        model.close()
    if rule is None:
        return record
    where = f"{RUNTIME}, {PROVIDER}, {platform.system()} {platform.machine()}"
    found = FoundRule(rule.rows, rule.multiple, rule.fixed, where)
    return replace(record, graphs=(replace(record.graphs[0], row_rule=found), *record.graphs[1:]))
