"""Whatever a manifest says, opening gives a BundleError or a good bundle, and a good bundle reads back as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journee_deploy.bundle import Bundle, BundleError, open_bundle
from journee_deploy.manifest import read_manifest
from journee_deploy.typed_json import dump
from tests.bundle.small_bundle import write_bundle

Place = tuple[str | int, ...]

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8),
    st.sampled_from(["", "..", "target/config.json", "float16", "0" * 64, 2**53, 2**63, -1, 0, 1]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fuzz") / "small"
    write_bundle(root)
    return root


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value, the whole value last."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*at, key))
    yield at


def original(root: Path) -> Any:
    return json.loads((root / "original.json").read_text()) if (root / "original.json").exists() else keep(root)


def keep(root: Path) -> Any:
    text = (root / "journee.json").read_text()
    (root / "original.json").write_text(text)
    return json.loads(text)


def opened(root: Path, text: str) -> Bundle | None:
    (root / "journee.json").write_text(text)
    try:
        return open_bundle(root)
    except BundleError:
        return None


@settings(max_examples=150)
@given(data=st.data())
def test_a_manifest_with_values_replaced_added_or_gone(shared: Path, data: st.DataObject) -> None:
    manifest = original(shared)
    for _ in range(data.draw(st.integers(1, 3))):
        manifest = mutate(manifest, data)
    bundle = opened(shared, json.dumps(manifest))
    if bundle is not None:
        assert read_manifest(dump(bundle.manifest)) == bundle.manifest
        for role in bundle.roles:
            assert bundle.role(role).graph.resolve().is_relative_to(shared.resolve())


def mutate(value: Any, data: st.DataObject) -> Any:
    place = data.draw(st.sampled_from(list(places(value))))
    if not place:
        return data.draw(VALUES)
    parent = value
    for key in place[:-1]:
        parent = parent[key]
    how = data.draw(st.sampled_from(["replace", "remove", "add"]))
    if how == "replace":
        parent[place[-1]] = data.draw(VALUES)
    elif how == "remove":
        del parent[place[-1]]
    elif isinstance(parent, list):
        parent.append(data.draw(VALUES))
    else:
        parent[data.draw(st.text(max_size=5))] = data.draw(VALUES)
    return value


@settings(max_examples=100)
@given(at=st.integers(0, 10**9), character=st.characters(codec="utf-8"), removed=st.integers(0, 3))
def test_a_manifest_with_characters_replaced(shared: Path, at: int, character: str, removed: int) -> None:
    text = json.dumps(original(shared))
    at %= len(text)
    opened(shared, text[:at] + character + text[at + removed :])


@settings(max_examples=100)
@given(content=st.binary(max_size=64))
def test_a_manifest_of_any_bytes(shared: Path, content: bytes) -> None:
    original(shared)
    (shared / "journee.json").write_bytes(content)
    with pytest.raises(BundleError):
        open_bundle(shared)
