"""The portable files keep to their subset, and every rule of the lint fires on a snippet that breaks it."""

from __future__ import annotations

import pytest

from tests.portable.portability import ROOT, faults, portable_files

BROKEN = [
    ("match x:\n    case 1:\n        pass", "match is not there"),
    ("try:\n    pass\nexcept* ValueError:\n    pass", "except* is not there"),
    ("async def f():\n    pass", "not asynchronous"),
    ("def f(a, /):\n    pass", "/ in a signature"),
    ("x = [*a, 1]", "* in a display"),
    ("x = (*a, 1)", "* in a display"),
    ("x = {*a}", "* in a display"),
    ("x = {**a}", "** in a display"),
    ("class A(B, metaclass=M):\n    pass", "keywords of a class"),
    ("class A(B, C):\n    pass", "several bases"),
    ("import math", "import: only from"),
    ("import journee_deploy.controller.philox", "import: only from"),
    ("from dataclasses import dataclass", "import: only from"),
    ("from enum import Enum", "import: only from"),
    ("from contextlib import suppress", "import: only from"),
    ("from fractions import Fraction", "import: only from"),
    ("from bisect import bisect", "import: only from"),
    ("from typing import Any", "import: only from"),
    ("from journee_deploy.engine import Engine", "import: only from"),
    ("from journee_deploy.arithmetic.vectors import VectorOps", "import: only from"),
    ("from .philox import Philox", "import: only from"),
    ("n = x.bit_length()", ".bit_length is not there"),
    ("n = x.is_integer()", ".is_integer is not there"),
    ("n = int.from_bytes(b, 'big')", ".from_bytes is not there"),
    ("Key = tuple[int, int]", "tuple[...] is not there at run time"),
    ("x = list[int]()", "list[...] is not there at run time"),
    ("T = int | None", "types have no |"),
    ("x = a[::2]", "slices with a step"),
    ("x = 0.1", "may be read differently"),
    ("x = 1e30", "may be read differently"),
    ("x = 3.4028234663852886e38", "may be read differently"),
    ("ok = x > 9007199254740993", "whole numbers above 2^53"),
    ("ok = x < 1 << 60", "whole numbers above 2^53"),
    ("ok = x == 2**64 - 1", "whole numbers above 2^53"),
    ("print(x)", "print() is not for portable code"),
    ("x = round(y)", "round() is not for portable code"),
    ("for a, b in zip(x, y, strict=True):\n    pass", "zip() takes no keywords"),
    ("x = iter(f, 0)", "iter() takes one argument"),
    ("ok = isinstance(x, int)", "isinstance(True, int)"),
    ("ok = isinstance(x, (str, bool))", "isinstance(True, int)"),
    ("x = sorted(y, key=lambda pair: pair[0])", "sorts are not stable"),
    ("x = sorted(y, key=f)", "sorts are not stable"),
    ("y.sort(key=lambda pair: pair[0])", "sorts are not stable"),
    ("x = sorted(range(9), key=lambda i: (-y[i], i % 2))", "sorts are not stable"),
    ("for a in {1, 2}:\n    pass", "has no order"),
    ("for a in d.items():\n    pass", "has no order"),
    ("x = [a for a in d.values()]", "has no order"),
    ("d = {}\nx = list(d)", "has no order"),
    ("d = set(y)\nfor a in d:\n    pass", "has no order"),
    ("def f(d: dict[int, int]):\n    return [a for a in d]", "has no order"),
    ("def f(**options):\n    for a in options:\n        pass", "has no order"),
    ("class A:\n    def __init__(self):\n        self.d: dict[int, int] = {}\nx = tuple(A().d)", "has no order"),
    ("d = dict.fromkeys(x)\ny = enumerate(d)", "has no order"),
    ("d = {}\nf(*d)", "has no order"),
    ("def f(d: dict[int, int]):\n    yield from d", "has no order"),
    ("d = {}\nx = ','.join(d)", "has no order"),
]

FINE = [
    "Key: tuple[int, int] = (0, 0)",
    "def f(a: list[int], *b: dict[int, int] | None) -> tuple[int, ...]:\n    return f(*a, *b)",
    "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from typing import Any\n    Key = tuple[int, int]",
    "from journee_deploy.controller.requests import Run",
    "from journee_deploy.arithmetic.units import SCALE",
    "a, *b = x",
    "x = 0.5 + 1.0 + 36.0 - 0.0",
    "ok = 0 <= x < 9007199254740992",
    "d = {}\nx = sorted(d)\nfor a in sorted(d.items()):\n    pass",
    "d = {}\nfor a in d:  # order: irrelevant\n    pass",
    "d = {}\nx = list(d)  # order: irrelevant",
    "d = {}\nok = 3 in d and len(d) and d[3]",
    "x = sorted(range(9), key=lambda i: (-y[i], i))",
    "x = sorted(y, key=f)  # key: total",
    "x = sorted(y, reverse=True)",
    "ok = isinstance(x, Run)",
    "def f(d: dict[int, int], x):\n    return [a for a in x.d]",
    "for a, b in zip(x, y):\n    pass",
    "x = a[1:] + a[:-1]",
]

FUTURE = "from __future__ import annotations\n"


def test_the_portable_files_keep_to_the_subset() -> None:
    files = portable_files()
    names = {path.name for path in files}
    assert {"speculate.py", "philox.py", "plain.py", "arena.py"} <= names
    assert not names & {"vectors.py", "vector_steps.py"}
    assert faults({str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}) == []


@pytest.mark.parametrize(("snippet", "what"), BROKEN, ids=[snippet for snippet, _ in BROKEN])
def test_each_rule_fires(snippet: str, what: str) -> None:
    found = faults({"snippet": FUTURE + snippet})
    assert any(what in fault for fault in found), found


@pytest.mark.parametrize("snippet", FINE)
def test_what_is_portable_passes(snippet: str) -> None:
    assert faults({"snippet": FUTURE + snippet}) == []


def test_annotations_need_the_future_import() -> None:
    assert "from __future__" in faults({"snippet": "def f(a: list[int]):\n    pass"})[0]


def test_a_dict_of_one_file_is_known_in_another() -> None:
    holder = FUTURE + "class History:\n    def __init__(self):\n        self.counts: dict[int, int] = {}"
    user = FUTURE + "def f(history):\n    return [token for token in history.counts]"
    assert faults({"user": user}) == []
    (fault,) = faults({"holder": holder, "user": user})
    assert fault.startswith("user:3: a dict or a set has no order")
