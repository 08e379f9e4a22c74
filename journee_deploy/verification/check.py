"""What a check is, and how one is made: expected errors become its failure, in their own words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from journee_deploy.enumeration import DrawnTwiceError, LawError
from journee_deploy.expected import EXPECTED

Status = Literal["passed", "failed", "not run", "not asked"]
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: whether it holds, a sentence, and the figures behind it, as JSON's types.

    `holds` is None where nothing was asked for, which counts neither way.
    """

    holds: bool | None
    sentence: str
    figures: Figures = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Check:
    """A finding with its name."""

    name: str
    status: Status
    sentence: str
    figures: Figures = field(default_factory=dict[str, Any])

    @property
    def counts_against(self) -> bool:
        """Whether the bundle can't be called verified because of it."""
        return self.status in ("failed", "not run")

    def as_dict(self) -> Figures:
        return {"name": self.name, "status": self.status, "sentence": self.sentence, "figures": self.figures}


def attempt(name: str, ask: Callable[[], Finding]) -> Check:
    """Ask. An error that the project raises on purpose, weights that are no law, a draw used twice, and a file
    that can't be read or written are failures.
    """
    try:
        found = ask()
    except (*EXPECTED, LawError, DrawnTwiceError) as error:
        return Check(name, "failed", str(error))
    except OSError as error:
        return Check(name, "failed", f"reading or writing failed: {error}")
    status: Status = "not asked" if found.holds is None else "passed" if found.holds else "failed"
    return Check(name, status, found.sentence, found.figures)
