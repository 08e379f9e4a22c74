"""config.json, read setting by setting: what is missing or of another kind is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from journee.hugging_face.errors import FolderError


class Settings:
    """The settings of one JSON object; `place` is what messages call it."""

    def __init__(self, place: str, values: Mapping[str, Any]) -> None:
        self.place = place
        self.values = values

    def get(self, *names: str) -> Any:
        """The first of these settings that is there and not null; None if none is."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number of at least 1."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.wrong(name, "a whole number of at least 1")
        return value

    def whole(self, name: str, default: int) -> int:
        """A whole number of at least 0."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(name, "a whole number of at least 0")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A number above 0."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
            raise self.wrong(name, "a number above 0")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def table(self, name: str) -> Settings | None:
        """An object inside; None if there is none."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return Settings(f"{self.place}: {name}", cast(dict[str, Any], value))

    def refuse(self, name: str, unless: object, why: str) -> None:
        """Refuse a setting that is there and other than `unless`."""
        value = self.get(name)
        if value is not None and value != unless:
            raise FolderError(f"{self.place}: {name} is {_short(value)}, which journee-export does not support: {why}")

    def wrong(self, name: str, expected: str) -> FolderError:
        found = _short(self.values[name]) if name in self.values else "missing"
        return FolderError(f"{self.place}: {name} is {found}; expected {expected}")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; FolderError says what is wrong with it."""
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"), parse_constant=_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} is no readable JSON: {error}; get the folder again") from error
    if not isinstance(value, dict):
        raise FolderError(f"{path} holds no JSON object; get the folder again")
    return cast(dict[str, Any], value)


def _constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
