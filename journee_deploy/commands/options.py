"""Options that several commands share."""

from __future__ import annotations

from typing import Any

import click

from journee_deploy.request import AUTO


class SpeculationLength(click.IntRange):
    """A whole number in the range, or `auto`."""

    name = "number or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == AUTO:
            return AUTO
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor {AUTO}", param, ctx)
        return super().convert(value, param, ctx)
