"""The bundle format: what `journee.json` says. These dataclasses are the schema (see `typed_json`).

A bundle is a folder with a manifest and a model folder a role, as optimum and transformers.js expect it:

    journee.json
    target/  config.json generation_config.json tokenizer.json tokenizer_config.json
             onnx/model.onnx onnx/model.onnx_data
    draft/   the same; optional

Rules:

1. A role's name is its folder; "target" is always there. Paths are relative to the bundle, with forward
   slashes.
2. Every file of the bundle but the manifest is in `files`, with size in bytes and sha256.
3. A role has one or more graph variants; the first is the default. Variants may share weights files.
4. `vocabulary_hash` is the sha256 of tokenizer.json; a draft's equals its target's.
5. A version that this code doesn't know is refused, and so are unknown fields. 2 brought the shared buffer, 3 brings
   `stored`; a bundle without weights rounded for storage is written as version 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from journee_deploy.row_rule import LARGEST, RowRule
from journee_deploy.typed_json import Json, JsonError, is_object, parse, read

MANIFEST = "journee.json"
FORMAT = "journee-bundle"
VERSION: Final = 3
TARGET = "target"
DRAFT = "draft"
LONGEST_CONTEXT = 2**20


def _positive(value: int) -> str | None:
    return None if 1 <= value < 2**53 else "expected an integer of at least 1"


def _context(value: int) -> str | None:
    return None if 1 <= value <= LONGEST_CONTEXT else f"expected an integer from 1 to {LONGEST_CONTEXT}"


def _not_negative(value: int) -> str | None:
    return None if 0 <= value < 2**53 else "expected an integer of at least 0"


def _distance(value: float) -> str | None:
    return None if value >= 0 else "expected a number of at least 0"


def _sha256(value: str) -> str | None:
    return None if re.fullmatch("[0-9a-f]{64}", value) else "expected a sha256, 64 lower-case hexadecimal digits"


def _some(value: str | tuple[object, ...]) -> str | None:
    return None if value else "expected at least one"


def inside(name: str) -> str | None:
    """A complaint unless `name` is a relative path with forward slashes that stays where it starts."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or re.search(r"[\\:\x00-\x1f\x7f]", name):
        return "expected a path inside the bundle, with forward slashes, no '..', backslash or colon"
    return None


Count = Annotated[int, _positive]
Context = Annotated[int, _context]
Size = Annotated[int, _not_negative]
Distance = Annotated[float, _distance]
Sha256 = Annotated[str, _sha256]
Inside = Annotated[str, inside]
Name = Annotated[str, _some]
CacheKind = Literal["concat", "shared"]


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file: its size in bytes, and the sha256 of its content."""

    size: Size
    sha256: Sha256


@dataclass(frozen=True, slots=True)
class Inputs:
    """Names of a graph's inputs.

    Tokens [batch, rows], mask [batch, past + rows] and positions [batch, rows] are int64; past keys and
    values are [batch, kv_heads, past, head_dim], or, of a shared buffer, [batch, kv_heads, capacity, head_dim], and
    there positions are None: they follow from the lengths. `rows_kept`: an int64 scalar, how many last rows of logits
    to compute; 0 means all; None if the graph has no such input. 0 is its default; in a graph for pages it has none,
    since onnxruntime-web can't feed an input that has one.
    """

    tokens: Name
    mask: Name
    positions: Name | None
    past_keys: tuple[Name, ...]
    past_values: tuple[Name, ...]
    rows_kept: Name | None

    def names(self) -> tuple[str, ...]:
        """All of them, in the order the graph lists them."""
        past = [name for pair in zip(self.past_keys, self.past_values, strict=True) for name in pair]
        places = [self.positions] if self.positions else []
        kept = [self.rows_kept] if self.rows_kept else []
        return (self.tokens, self.mask, *places, *past, *kept)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Names of a graph's outputs.

    Logits are [batch, rows kept, vocabulary]; present keys and values are [batch, kv_heads, past + rows,
    head_dim], or the shared buffer.
    """

    logits: Name
    present_keys: tuple[Name, ...]
    present_values: tuple[Name, ...]

    def names(self) -> tuple[str, ...]:
        """All of them, in the order the graph lists them."""
        present = [name for pair in zip(self.present_keys, self.present_values, strict=True) for name in pair]
        return (self.logits, *present)


@dataclass(frozen=True, slots=True)
class FoundRule:
    """The row rule that the exporter's machine found; `where` names runtime, provider and processor.

    Another machine looks for its own.
    """

    rows: Count
    multiple: Count
    fixed: bool
    where: str

    @property
    def rule(self) -> RowRule:
        return RowRule(self.rows, self.multiple, self.fixed)


@dataclass(frozen=True, slots=True)
class Parity:
    """One comparison with PyTorch: the largest absolute difference over logits and cache, and the one allowed."""

    case: Name
    difference: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Stored:
    """Weights rounded for storage, which the graph widens again when it is loaded; and what that cost.

    `p` is the model with these weights. Its distance from the one that was trained, both in PyTorch, over `rows` next
    tokens of a sample text: the largest difference of a logit, the mean and the largest TV at temperature 1.
    """

    precision: Literal["float16", "int8"]
    rows: Count
    logits: Distance
    mean_tv: Distance
    max_tv: Distance


@dataclass(frozen=True, slots=True)
class GraphRecord:
    """One graph variant of a role.

    `cache`: "concat" takes the past and returns past and new, concatenated; "shared" has one buffer bound as past and
    as present, into which it writes (com.microsoft::GroupQueryAttention). `router`: "function" keeps
    BooleanRouter as one op (an ONNX local function), "inlined" leaves standard ops only, "none" has no
    router. `operators` counts nodes by type, subgraphs included. `accuracy_level` is MatMulNBits' own, None
    where there is none. `precision` is that of the weights in the arithmetic; `stored` tells how they lie on disk where
    that is something else, and parity then compares with PyTorch on the rounded weights.
    """

    id: Name
    cache: CacheKind
    precision: Literal["float32", "float16", "int8", "int4"]
    opset: Count
    accuracy_level: Size | None
    router: Literal["function", "inlined", "none"]
    file: Inside
    weights: tuple[Inside, ...]
    inputs: Inputs
    outputs: Outputs
    operators: dict[str, Count]
    parity: tuple[Parity, ...]
    row_rule: FoundRule | None
    stored: Stored | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a role came from: sha256 of the checkpoint file, its configuration, its held-out figures as recorded."""

    checkpoint_sha256: Sha256
    config: dict[str, Json]
    figures: dict[str, Json]


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """One model. `context_length` in tokens; `dtype` of logits and cache; `end_of_sequence` token ids, maybe none."""

    vocabulary_size: Count
    context_length: Context
    layers: Count
    kv_heads: Count
    head_dim: Count
    parameters: Count
    dtype: Literal["float32", "float16"]
    end_of_sequence: tuple[Size, ...]
    tokenizer: Inside
    vocabulary_hash: Sha256
    corpus_hash: Sha256
    graphs: Annotated[tuple[GraphRecord, ...], _some]
    source: Source


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of `journee.json`. `versions` of the software that wrote it, by name."""

    format: Literal["journee-bundle"]
    version: Literal[1, 2, 3]
    roles: dict[str, RoleRecord]
    files: dict[str, FileRecord]
    versions: dict[str, str]


def read_manifest(text: str) -> Manifest:
    """The manifest that `text` holds, checked in itself; JsonError says what is wrong and where."""
    value = parse(text)
    _check_version(value)
    manifest = read(Manifest, value)
    check_manifest(manifest)
    return manifest


def check_manifest(manifest: Manifest) -> None:
    """What the types don't say: the rules at the top of this module."""
    for name in manifest.files:
        if complaint := inside(name):
            raise JsonError(f"files: {complaint}, found {name!r}")
    if TARGET not in manifest.roles:
        raise JsonError("roles: missing 'target'")
    for name, role in manifest.roles.items():
        if name not in (TARGET, DRAFT):
            raise JsonError(f"roles: unknown role {name!r}; there are 'target' and 'draft'")
        _check_role(manifest, name, role)
    _check_pair(manifest)


def _check_version(value: Json) -> None:
    given = value if is_object(value) else {}
    if given.get("format") != FORMAT:
        raise JsonError(f"not a bundle's manifest: 'format' must be {FORMAT!r}")
    version = given.get("version")
    if type(version) is not int or version < 1:
        raise JsonError(f"version: expected an integer of at least 1, found {version!r}")
    if version > VERSION:
        raise JsonError(
            f"version {version} is newer than this journee-deploy reads ({VERSION}); "
            "upgrade journee-deploy, or export the checkpoint again with the version installed here"
        )


def _check_role(manifest: Manifest, name: str, role: RoleRecord) -> None:
    _check_listed(manifest, name, role.tokenizer, f"roles.{name}.tokenizer")
    if manifest.files[role.tokenizer].sha256 != role.vocabulary_hash:
        raise JsonError(f"roles.{name}.vocabulary_hash: expected the sha256 of {role.tokenizer}")
    if wrong := [token for token in role.end_of_sequence if token >= role.vocabulary_size]:
        raise JsonError(f"roles.{name}.end_of_sequence: {wrong[0]} is beyond the {role.vocabulary_size} tokens")
    ids = [graph.id for graph in role.graphs]
    if len(set(ids)) < len(ids):
        raise JsonError(f"roles.{name}.graphs: ids must differ, found {', '.join(ids)}")
    for at, graph in enumerate(role.graphs):
        _check_rule(graph.row_rule, f"roles.{name}.graphs[{at}].row_rule")
        _check_graph(manifest, name, graph, f"roles.{name}.graphs[{at}]")


def _check_rule(found: FoundRule | None, place: str) -> None:
    if found and max(found.rows, found.multiple) > LARGEST:
        raise JsonError(
            f"{place}: expected rows and multiple of at most {LARGEST}, found {found.rows}, {found.multiple}"
        )
    if found and found.fixed and found.rows != found.multiple:
        raise JsonError(f"{place}: a fixed rule's rows are its multiple, found {found.rows} and {found.multiple}")


def _check_graph(manifest: Manifest, name: str, graph: GraphRecord, place: str) -> None:
    for file in (graph.file, *graph.weights):
        _check_listed(manifest, name, file, place)
    layers = manifest.roles[name].layers
    if graph.stored and manifest.version < 3:
        raise JsonError(f"{place}.stored: version {manifest.version} has no such field")
    if graph.cache == "shared" and graph.inputs.positions is not None:
        raise JsonError(f"{place}.inputs.positions: expected null, since a shared buffer's positions are its lengths")
    for where, names in (
        ("inputs.past_keys", graph.inputs.past_keys),
        ("inputs.past_values", graph.inputs.past_values),
        ("outputs.present_keys", graph.outputs.present_keys),
        ("outputs.present_values", graph.outputs.present_values),
    ):
        if len(names) != layers:
            raise JsonError(f"{place}.{where}: expected one name a layer ({layers}), found {len(names)}")
    for side, names in (("inputs", graph.inputs.names()), ("outputs", graph.outputs.names())):
        if len(set(names)) < len(names):
            raise JsonError(f"{place}.{side}: names must differ")


def _check_listed(manifest: Manifest, role: str, file: str, place: str) -> None:
    if not file.startswith(role + "/"):
        raise JsonError(f"{place}: expected a path below {role}/, found {file!r}")
    if file not in manifest.files:
        raise JsonError(f"{place}: {file!r} is not in 'files'")


def _check_pair(manifest: Manifest) -> None:
    target, draft = manifest.roles[TARGET], manifest.roles.get(DRAFT)
    if draft is None:
        return
    for what in ("vocabulary_hash", "vocabulary_size", "corpus_hash"):
        ours, theirs = getattr(target, what), getattr(draft, what)
        if ours != theirs:
            raise JsonError(
                f"roles.draft.{what}: draft has {theirs}, target {ours}; "
                "train the draft with the target's tokenizer and corpus, and export the pair again"
            )
