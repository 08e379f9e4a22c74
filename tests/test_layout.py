"""The house as a whole: who imports whom, what an import costs, what the wheel holds, whether the README is true."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import journee_deploy as jd

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "journee_deploy": ROOT / "journee_deploy",
    "journee": ROOT / "journee",
    "journee_conformance": ROOT / "conformance" / "journee_conformance",
    "journee_export": ROOT / "export" / "journee_export",
    "journee_runtimes": ROOT / "runtimes" / "journee_runtimes",
}
MAY_IMPORT = {
    "journee_deploy": {"journee_deploy"},
    "journee_conformance": {"journee_conformance", "journee_deploy"},
    "journee_runtimes": {"journee_runtimes", "journee_deploy"},
    "journee": {"journee", "journee_deploy"},
    "journee_export": {"journee_export", "journee", "journee_deploy"},
}
# The runtime's door, and the exporter's, which runs graphs that are no bundle yet.
DOORS = {"runtimes/journee_runtimes/onnx.py", "export/journee_export/session.py"}
# `journee verify` holds the host it runs in against the cases; nothing else of the library knows them.
VERIFIER = "journee_deploy/verification/controller.py"
HEAVY = ("torch", "onnx", "onnxscript", "safetensors")


def imports(file: Path) -> set[str]:
    """Top-level names of the modules a file imports, TYPE_CHECKING blocks included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    files = sorted(PACKAGES[package].rglob("*.py"))
    assert files
    for file in files:
        ours = imports(file) & set(PACKAGES)
        if str(file.relative_to(ROOT)) == VERIFIER:
            ours -= {"journee_conformance"}
        assert ours <= MAY_IMPORT[package], f"{file} imports {ours - MAY_IMPORT[package]}"
        if package in ("journee_deploy", "journee_runtimes"):
            assert not imports(file) & set(HEAVY), f"{file} needs the export extra"


def test_onnxruntime_has_one_door_a_package() -> None:
    files = [file for folder in PACKAGES.values() for file in folder.rglob("*.py")]
    assert {str(file.relative_to(ROOT)) for file in files if "onnxruntime" in imports(file)} == DOORS


def run_python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(folder.parent) for folder in PACKAGES.values())
    env = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, env=env, cwd=ROOT, check=False
    )


def test_importing_the_package_loads_nothing_else() -> None:
    done = run_python(
        "import sys, journee_deploy; print(sorted(m for m in sys.modules if 'numpy' in m or 'rich' in m))"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_generating_needs_no_framework_but_the_runtime() -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'onnx', 'onnxscript', 'safetensors', 'jinja2'): sys.modules[name] = None\n"
        "import journee_deploy as jd\n"
        "with jd.load('artifacts/tiny') as lm: print(len(lm.generate('a', max_new_tokens=4, seed=1).tokens))\n"
    )
    done = run_python(code)
    assert done.stdout.strip() == "4", done.stderr


def test_the_package_names_only_what_it_has() -> None:
    for name in jd.__all__:
        assert getattr(jd, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        jd.lode  # noqa: B018


def snippets(file: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


def test_the_readme_is_true() -> None:
    """Its Python snippets run, one after the other, in a process of their own and silently on standard error."""
    code = "\n".join(snippets("README.md"))
    assert code.count("assert") >= 3
    done = run_python(code, "-W", "error")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_links_in_the_documents_lead_somewhere() -> None:
    for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]:
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", file.read_text()):
            if "://" not in link:
                assert (file.parent / link).exists(), f"{file.name} links to {link}"


def test_the_wheel_holds_the_packages_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", f"from hatchling.build import build_wheel; build_wheel({str(tmp_path)!r})"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {*PACKAGES, next(top for top in tops if top.endswith(".dist-info"))}
    for package, folder in PACKAGES.items():
        inside = {name for name in names if name.startswith(f"{package}/")}
        assert f"{package}/py.typed" in inside
        data = {f"{package}/{file.relative_to(folder)}" for file in folder.rglob("*.json*")}
        assert data <= inside, data - inside
        python = {f"{package}/{file.relative_to(folder)}" for file in folder.rglob("*.py")}
        assert python <= inside, python - inside
