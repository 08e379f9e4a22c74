"""What the portable files may not contain, because MicroPython lacks it or, worse, does it differently without a word.

`faults(sources)` reads the files as syntax trees. Where a rule cannot see that a use is harmless, the line says so:

    # order: irrelevant    a dict or a set is iterated, and the result does not depend on the order
    # key: total           a sort key that no two items share (MicroPython's sorts are not stable)

`python -m tests.portable.portability` prints what it finds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("journee_deploy/controller", "journee_deploy/arithmetic")
NOT_PORTABLE = ("journee_deploy/arithmetic/vectors.py", "journee_deploy/arithmetic/vector_steps.py")

PACKAGES = ("journee_deploy.controller", "journee_deploy.arithmetic")
ORDER, KEY = "# order: irrelevant", "# key: total"

MISSING = {
    "bit_length",
    "bit_count",
    "is_integer",
    "as_integer_ratio",
    "hex",
    "fromhex",
    "from_bytes",
    "to_bytes",
    "zfill",
    "removeprefix",
    "removesuffix",
    "isidentifier",
    "casefold",
    "add_note",
    "gi_frame",
    "__cause__",
    "__context__",
    "__traceback__",
    "__qualname__",
    "__doc__",
    "__annotations__",
    "__init_subclass__",
}
GENERIC = {"list", "dict", "tuple", "set", "frozenset", "type"}
CALLS = {"print", "open", "input", "exec", "eval", "compile", "__import__", "round", "hash", "id"}
KEEPS_ORDER = {
    "list",
    "tuple",
    "enumerate",
    "zip",
    "map",
    "filter",
    "iter",
    "next",
    "reversed",
    "join",
    "extend",
    "dict",
}
WORDS = {
    ast.Match: "match is not there",
    ast.TryStar: "except* is not there",
    ast.AsyncFunctionDef: "the controller is not asynchronous",
    ast.Await: "the controller is not asynchronous",
}


def portable_files() -> list[Path]:
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
    return [path for path in found if str(path.relative_to(ROOT)) not in NOT_PORTABLE]


def faults(sources: dict[str, str]) -> list[str]:
    """Every fault as 'name:line: what'. Dicts and sets are known by name: variables in a file, attributes in all."""
    trees = {name: ast.parse(source) for name, source in sources.items()}
    names = {name: set(_unordered_names(tree)) for name, tree in trees.items()}
    attributes = {found for every in names.values() for found in every if found.startswith(".")}
    found: list[str] = []
    for name, tree in trees.items():
        lines = sources[name].splitlines()
        for line, what in sorted(_faults(tree, lines, names[name] | attributes)):
            found.append(f"{name}:{line}: {what}")
    return found


def _unordered_names(tree: ast.Module) -> Iterator[str]:
    """Variables and .attributes that hold a dict or a set, by annotation or by what is assigned to them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and _is_unordered_type(node.annotation):
            yield _full_name(node.target)
        elif isinstance(node, ast.Assign) and _is_unordered(node.value, set()):
            yield from (_full_name(target) for target in node.targets)
        elif isinstance(node, ast.arguments):
            every = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            yield from (arg.arg for arg in every if arg.annotation and _is_unordered_type(arg.annotation))
            if node.kwarg:
                yield node.kwarg.arg


def _full_name(node: ast.expr) -> str:
    return f".{node.attr}" if isinstance(node, ast.Attribute) else _last_name(node)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_unordered_type(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation)
    return any(text.startswith(kind) for kind in ("dict", "set", "frozenset", "Mapping", "defaultdict", "Counter"))


def _is_unordered(node: ast.expr, unordered: set[str]) -> bool:
    """Whether iterating this expression visits items in no particular order."""
    if isinstance(node, ast.Dict | ast.Set | ast.DictComp | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        name = _last_name(node.func)
        if name in ("items", "keys", "values", "fromkeys", "set", "frozenset", "dict"):
            return True
        return name in ("copy", "union") and _is_unordered(getattr(node.func, "value", node.func), unordered)
    return isinstance(node, ast.Name | ast.Attribute) and _full_name(node) in unordered


def _faults(tree: ast.Module, lines: list[str], unordered: set[str]) -> Iterator[tuple[int, str]]:
    if not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body):
        has_annotations = any(isinstance(node, ast.FunctionDef | ast.AnnAssign) for node in ast.walk(tree))
        if has_annotations:
            yield 1, "annotations are evaluated: from __future__ import annotations"
    for node in _run_time_nodes(tree):
        where = node.iter if isinstance(node, ast.For | ast.comprehension) else node
        line = getattr(where, "lineno", 0)
        said = " ".join(lines[line - 1 : getattr(where, "end_lineno", line)])
        yield from ((line, what) for what in _of_node(node, said, unordered))


def _run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that MicroPython evaluates: no annotations, nothing under `if TYPE_CHECKING`."""
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        if isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING" and field == "body":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _run_time_nodes(child)


def _of_node(node: ast.AST, said: str, unordered: set[str]) -> Iterator[str]:
    for kind, word in WORDS.items():
        if isinstance(node, kind):
            yield word
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and getattr(node, "type_params", None):
        yield "type parameters are not there"
    if type(node).__name__ == "TypeAlias":
        yield "type statements are not there"
    if isinstance(node, ast.arguments) and node.posonlyargs:
        yield "/ in a signature is not there"
    loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    if isinstance(node, ast.List | ast.Tuple | ast.Set) and loaded and _has_star(node):
        yield "* in a display is not there"
    if isinstance(node, ast.Dict) and None in node.keys:
        yield "** in a display is not there"
    if isinstance(node, ast.ClassDef) and node.keywords:
        yield "keywords of a class are not there"
    if isinstance(node, ast.ClassDef) and len(node.bases) > 1:
        yield "with several bases, super() takes other paths"
    if isinstance(node, ast.Import):
        yield "import: only from journee_deploy.controller and .arithmetic"
    if isinstance(node, ast.ImportFrom):
        yield from _of_import(node)
    if isinstance(node, ast.Attribute) and node.attr in MISSING:
        yield f".{node.attr} is not there"
    if isinstance(node, ast.Subscript):
        yield from _of_subscript(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and _is_type(node.left):
        yield "types have no | at run time"
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield from _of_float(node)
    if isinstance(node, ast.Compare):
        yield from _of_comparison(node)
    if isinstance(node, ast.Call):
        yield from _of_call(node, said, unordered)
    visited = node.iter if isinstance(node, ast.For | ast.comprehension) else getattr(node, "value", node)
    visits = isinstance(node, ast.For | ast.comprehension | ast.Starred | ast.YieldFrom)
    if visits and _is_unordered(visited, unordered) and ORDER not in said:
        yield f"a dict or a set has no order: sorted(...), or {ORDER}"


def _has_star(node: ast.List | ast.Tuple | ast.Set) -> bool:
    return any(isinstance(item, ast.Starred) for item in node.elts)


def _of_import(node: ast.ImportFrom) -> Iterator[str]:
    module = node.module or ""
    inside = any(module == package or module.startswith(package + ".") for package in PACKAGES)
    if node.level or module.endswith((".vectors", ".vector_steps")) or not (inside or module == "__future__"):
        yield "import: only from journee_deploy.controller and .arithmetic"


def _of_subscript(node: ast.Subscript) -> Iterator[str]:
    if _is_type(node.value):
        yield f"{ast.unparse(node.value)}[...] is not there at run time"
    if isinstance(node.slice, ast.Slice) and node.slice.step is not None:
        yield "slices with a step are not there for all types"


def _is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in GENERIC | {"int", "float", "str", "bool"}


def _of_float(node: ast.Constant) -> Iterator[str]:
    """A literal that float64 holds exactly and that is short is read alike by every parser."""
    text = ast.unparse(node)
    if "e" in text or "inf" in text or Fraction(text) != Fraction(node.value):
        yield f"{text} may be read differently in the last bit: compute it exactly, or from_bits"


def _of_comparison(node: ast.Compare) -> Iterator[str]:
    for side in (node.left, *node.comparators):
        value = _constant(side)
        if isinstance(value, int) and abs(value) > 2**53:
            yield "whole numbers above 2^53 do not compare with floats: shift, or compare below"


def _constant(node: ast.expr) -> object:
    """The value of a literal or of a shift, power, sum or difference of literals."""
    if all(
        isinstance(part, ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop) for part in ast.walk(node)
    ):
        try:
            return ast.literal_eval(node)
        except ValueError:
            return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})  # literals only
    return None


def _of_call(node: ast.Call, said: str, unordered: set[str]) -> Iterator[str]:
    name = _last_name(node.func)
    plain = isinstance(node.func, ast.Name)
    keywords = {keyword.arg for keyword in node.keywords}
    if plain and name in CALLS:
        yield f"{name}() is not for portable code"
    if plain and name == "zip" and keywords:
        yield "zip() takes no keywords"
    if plain and name == "iter" and len(node.args) == 2:
        yield "iter() takes one argument"
    kinds = ast.walk(node.args[1]) if plain and name in ("isinstance", "issubclass") else ()
    if any(isinstance(part, ast.Name) and part.id in ("int", "bool") for part in kinds):
        yield "isinstance(True, int) is False there: do not tell bool from int"
    if (plain and name == "sorted") or (not plain and name == "sort"):
        yield from _of_sort(node, said)
    if name in KEEPS_ORDER and any(_is_unordered(argument, unordered) for argument in node.args) and ORDER not in said:
        yield f"a dict or a set has no order: sorted(...), or {ORDER}"


def _of_sort(node: ast.Call, said: str) -> Iterator[str]:
    """A key is a lambda over a range, to a tuple that ends in its own argument; or the line vouches for it."""
    for keyword in node.keywords:
        if keyword.arg != "key" or KEY in said:
            continue
        body = keyword.value.body if isinstance(keyword.value, ast.Lambda) else None
        last = body.elts[-1] if isinstance(body, ast.Tuple) and body.elts else None
        argument = keyword.value.args.args[0].arg if isinstance(keyword.value, ast.Lambda) else ""
        ranged = node.args and isinstance(node.args[0], ast.Call) and _last_name(node.args[0].func) == "range"
        if not (ranged and isinstance(last, ast.Name) and last.id == argument):
            yield f"sorts are not stable: sort a range by (…, index), or {KEY}"


def main() -> int:
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in portable_files()}
    found = faults(sources)
    for fault in found:
        print(fault)
    print(f"{len(sources)} portable files, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
