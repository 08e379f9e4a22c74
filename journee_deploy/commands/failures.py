"""How a command fails: one paragraph that says what, where and what to do; exit code 1; no traceback.

Only the errors that this project raises on purpose, and those of the system's files and streams, are shown so.
Anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import click

from journee_deploy.expected import EXPECTED


@contextmanager
def plain_failures() -> Generator[None]:
    """Turn the project's own errors into click's, which prints them and exits with 1."""
    try:
        yield
    except EXPECTED as error:
        raise click.ClickException(str(error)) from error
    except BrokenPipeError:
        raise  # click ends in silence: the reader has gone
    except (OSError, UnicodeEncodeError) as error:
        raise click.ClickException(f"reading or writing failed: {error}") from error


class PlainFailures(click.Group):
    """A group whose commands fail plainly."""

    def invoke(self, ctx: click.Context) -> object:
        with plain_failures():
            return super().invoke(ctx)
