"""Runs the portable suite: every function named test_ of every module named suite_. No pytest, in any interpreter."""

from __future__ import annotations

from tests.portable import suite_arithmetic, suite_controller, suite_draws

SUITES = (suite_draws, suite_arithmetic, suite_controller)


def tests():
    """Every test as (name, function), in a fixed order."""
    found = []
    for suite in SUITES:
        title = suite.__name__.split(".")[-1]
        found.extend((title + "." + name, getattr(suite, name)) for name in sorted(dir(suite)) if name[:5] == "test_")
    return found


TESTS = tests()


def count():
    return len(TESTS)


def one(number):
    """Run a test: 'name|' if it passed, 'name|what went wrong' if not."""
    name, test = TESTS[number]
    try:
        test()
    except Exception as error:  # noqa: BLE001  a failing test must not hide the others
        return name + "|" + type(error).__name__ + " " + str(error)
    return name + "|"
