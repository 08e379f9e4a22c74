"""JSON read into frozen dataclasses, with the place of whatever is wrong.

The dataclasses are the schema; nothing else repeats it. An annotation says what a value may be: `str`, `int`,
`float`, `bool`, `None`, `Literal`, a dataclass, `tuple[T, ...]`, `dict[str, T]`, a union with `None`, `Json`
for anything, and `Annotated[T, rule]`, where a rule is a function from the value to a complaint or None.
Every field must be there, and none that isn't declared; numbers are finite, and a boolean is no number. A field with
a default came with a later version of its document: it may be missing, and is left out where it has its default.
"""

from __future__ import annotations

import json
import typing
from collections import Counter
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeGuard,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

Json = Any
"""Whatever JSON holds, taken as it stands."""

T = TypeVar("T")
Rule = Callable[[Any], str | None]

SCALARS: dict[type[object], str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
}

DEEPEST = 32
"""Nesting allowed in a document; a manifest needs 8."""


class JsonError(ValueError):
    """A document that is not what it should be; the message says where, such as
    `roles.target.graphs[0].file`.
    """


def parse(text: str) -> Json:
    """JSON without duplicate keys, NaN or infinities, at most `DEEPEST` levels deep."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_int,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        raise JsonError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise JsonError(f"nested more than {DEEPEST} levels deep") from None
    _check(value, DEEPEST)
    return value


def read(kind: type[T], value: Json, place: str = "") -> T:
    """`value` as a `kind` (a dataclass); JsonError names the place of the first thing that is wrong."""
    return cast(T, _read(kind, value, place))


def dump(value: object) -> str:
    """A dataclass as JSON text that `parse` and `read` give back; fields in their declared order."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: object) -> Json:
    """A dataclass, and what it holds, as dicts and lists."""
    if is_dataclass(value):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        default = {field.name: field.default for field in fields(value) if field.default is not MISSING}
        return {name: plain(item) for name, item in held.items() if name not in default or item != default[name]}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in cast("tuple[object, ...]", value)]
    return value


def is_object(value: object) -> TypeGuard[dict[str, Json]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        raise JsonError(f"key given twice: {', '.join(map(repr, twice))}")
    return found


def _constant(text: str) -> NoReturn:
    raise JsonError(f"{text} is not JSON")


def _int(text: str) -> int:
    if len(text) > 20:
        raise JsonError(f"number out of range: {text[:20]}...")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise JsonError(f"number out of range: {text}")
    return value


def _check(value: Json, levels: int) -> None:
    """Raise for deeper nesting than `levels`, and for strings that are no Unicode text."""
    if levels == 0:
        raise JsonError(f"nested more than {DEEPEST} levels deep")
    if isinstance(value, str):
        _check_text(value)
    elif is_object(value):
        for name, item in value.items():
            _check_text(name)
            _check(item, levels - 1)
    elif _is_list(value):
        for item in value:
            _check(item, levels - 1)


def _check_text(value: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise JsonError(f"half a surrogate pair in the string {_short(value)}")


def _read(kind: Any, value: Json, place: str) -> object:
    if kind is Any:
        return value
    origin = get_origin(kind)
    if origin is Annotated:
        return _read_ruled(kind, value, place)
    if origin is Literal:
        return _read_choice(get_args(kind), value, place)
    if origin in (typing.Union, UnionType):
        return _read_optional(get_args(kind), value, place)
    if origin is tuple:
        return _read_list(get_args(kind)[0], value, place)
    if origin is dict:
        return _read_dict(get_args(kind)[1], value, place)
    if is_dataclass(kind):
        return _read_dataclass(cast("type[object]", kind), value, place)
    return _read_scalar(kind, value, place)


def _read_ruled(kind: Any, value: Json, place: str) -> object:
    inner, *rules = get_args(kind)
    found = _read(inner, value, place)
    for rule in cast("list[Rule]", rules):
        complaint = rule(found)
        if complaint:
            raise JsonError(f"{place}: {complaint}, found {_short(value)}")
    return found


def _read_choice(choices: tuple[object, ...], value: Json, place: str) -> object:
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    raise _wrong(place, "one of " + ", ".join(map(repr, choices)), value)


def _read_optional(kinds: tuple[Any, ...], value: Json, place: str) -> object:
    if value is None and NoneType in kinds:
        return None
    (kind,) = [kind for kind in kinds if kind is not NoneType]
    return _read(kind, value, place)


def _read_list(kind: Any, value: Json, place: str) -> tuple[object, ...]:
    if not _is_list(value):
        raise _wrong(place, "a list", value)
    return tuple(_read(kind, item, f"{place}[{at}]") for at, item in enumerate(value))


def _read_dict(kind: Any, value: Json, place: str) -> dict[str, object]:
    if not is_object(value):
        raise _wrong(place, "an object", value)
    return {name: _read(kind, item, _join(place, name)) for name, item in value.items()}


def _read_dataclass(kind: type[object], value: Json, place: str) -> object:
    if not is_object(value):
        raise _wrong(place, "an object", value)
    hints = get_type_hints(kind, include_extras=True)
    needed = [field.name for field in fields(kind) if field.default is MISSING]  # type: ignore[arg-type]
    if missing := [name for name in needed if name not in value]:
        raise JsonError(f"{place or 'top level'}: missing {', '.join(map(repr, missing))}")
    if unknown := [name for name in value if name not in hints]:
        raise JsonError(f"{place or 'top level'}: unknown {', '.join(map(repr, unknown))}")
    given = {name: hint for name, hint in hints.items() if name in value}
    return kind(**{name: _read(hint, value[name], _join(place, name)) for name, hint in given.items()})


def _read_scalar(kind: type[object], value: Json, place: str) -> object:
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise _wrong(place, SCALARS[kind], value)
    return value


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _wrong(place: str, expected: str, value: Json) -> JsonError:
    return JsonError(f"{place or 'top level'}: expected {expected}, found {_short(value)}")


def _short(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
