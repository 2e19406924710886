"""Imports run downward only, files and functions stay small, and importing calibrant costs nothing."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant

ROOT = Path(calibrant.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
RANKS = {
    "errors": 0,
    "results": 0,
    "arguments": 0,
    "kernels": 1,
    "stats": 2,
    "data": 2,
    "measure": 3,
    "certify": 3,
    "detect": 3,
    "diagnose": 3,
    "repair": 3,
    "monitor": 3,
    "audit": 4,
    "report": 5,
    "progress": 6,
    "__main__": 7,
    "options": 6,
    "repairing": 6,
    "cli": 6,
}
STRANGERS = {("stats", "data"), ("data", "stats")}
JUNK = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py", "base.py"}


def unit(module: str) -> str:
    """`calibrant.data.read` belongs to `data`; the package itself to nothing."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [node.module or ""] + [f"{node.module}.{a.name}" for a in node.names if node.module == "calibrant"]
    return [m for m in found if m.split(".")[0] == "calibrant"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_run_downward(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for module in imports(path):
        other = unit(module)
        if other in ("", "__version__"):
            continue
        assert other in RANKS, f"{path.name} imports {module}, which has no tier"
        assert RANKS[other] <= RANKS[own], f"{own} must not import {module}"
        assert (own, other) not in STRANGERS, f"{own} never meets {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.name not in JUNK
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert lines <= 40, f"{node.name} has {lines} lines of code"


def test_every_tier_is_ranked() -> None:
    tops = {p.relative_to(ROOT).parts[0].removesuffix(".py") for p in FILES} - {"__init__"}
    assert tops <= set(RANKS)


def test_importing_loads_the_standard_library_only() -> None:
    code = "import sys, json, calibrant; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = set(
        json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    )
    bought = {"numpy", "scipy", "numba", "pyarrow", "sklearn", "altair", "jinja2", "rich", "pandas"}
    assert not loaded & bought


def test_help_loads_no_library() -> None:
    code = (
        "import sys\nfrom calibrant.cli import build_parser\nbuild_parser().format_help()\n"
        "assert not {'numpy', 'pyarrow', 'numba', 'rich', 'jinja2'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_functions_whatever_is_imported_first() -> None:
    code = (
        "import calibrant.audit.run, calibrant.certify.rounded, calibrant as cal\n"
        "assert all(callable(f) for f in (cal.audit, cal.certify.rounded, cal.certify.distance, cal.sketch, cal.read))\n"
        "assert {'audit', 'certify', 'predictions'} <= set(dir(cal))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
