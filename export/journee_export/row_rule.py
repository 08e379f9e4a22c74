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


def with_row_rules(record: RoleRecord, folder: Path) -> RoleRecord:
    """`record` with the rule of each graph, found by opening the role's `folder` (of a bundle with a manifest), where
    there is one.
    """
    return replace(record, graphs=tuple(replace(graph, row_rule=_found(folder, graph.id)) for graph in record.graphs))


def _found(folder: Path, graph: str) -> FoundRule | None:
    model = find_runtime(RUNTIME).open(folder, folder.name, OpenOptions(PROVIDER, verify=False, graph=graph))
    try:
        rule = model.row_rule
    finally:
        model.close()
    if rule is None:
        return None
    where = f"{RUNTIME}, {PROVIDER}, {platform.system()} {platform.machine()}"
    return FoundRule(rule.rows, rule.multiple, rule.fixed, where)
