"""What scripts import, in code and in strings, and the files and names that texts tell of: all of it exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = [p for d in ("benchmarks", "docs", "reproduce", "tests") for p in sorted((REPOSITORY / d).rglob("*.py"))]
SOURCES = sorted((REPOSITORY / "src").rglob("*.py"))
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
FILES = [f"/{p.relative_to(REPOSITORY).as_posix()}" for p in (*SCRIPTS, *SOURCES)]
IMPORTS = re.compile(r"\bfrom +(calibrant[\w.]*) +import +(\w+(?: *, *\w+)*)|\bimport +(calibrant[\w.]*)")
A_FILE = re.compile(r"(?<![\w./*])\w+(?:/\w+)+\.py\b")  # `stats/betting.py`, in any of the folders
A_NAME = re.compile(r"`(calibrant(?:\.\w+)+)\b[^`\n]*`")
ENTRY_POINTS = {"calibrant.formats", "calibrant.outputs", "calibrant.commands"}  # groups, which are no modules
TO_WRITE = ("something.py", "test_something.py")  # files that instructions ask for


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@cache
def exists(name: str) -> bool:
    """Tell whether a dotted name is a module, or what can be reached from one."""
    try:
        return find_spec(name) is not None or _reached(name)
    except ImportError:  # what comes before the last dot is no package, or needs an extra
        return _reached(name)


def _reached(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    if not owner or not exists(owner):
        return False
    try:
        return hasattr(import_module(owner), last)
    except ModuleNotFoundError:  # a class or a function
        first, _, inner = owner.rpartition(".")
        thing = getattr(import_module(first), inner)
        return hasattr(thing, last) or last in getattr(thing, "__dataclass_fields__", {})
    except ImportError:  # a module that needs an extra, which is absent here: its text says what it defines
        spec = find_spec(owner)
        assert spec is not None
        assert spec.origin is not None
        body = ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body
        return last in {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def imported(path: Path) -> Iterator[str]:
    """Names that a script imports from the library, in its code and in the code that it holds in strings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (a.name for a in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{a.name}" for a in names)
            case ast.Constant(value=str(text)):
                yield from imported_in(text)


def imported_in(text: str) -> Iterator[str]:
    """Names that a string imports from the library, be it code, a piece of code or a sentence."""
    for module, names, alone in IMPORTS.findall(text):
        yield from (f"{module}.{n.strip()}" for n in names.split(",")) if module else (alone.rstrip("."),)


@pytest.mark.slow(turns=1)
def test_scripts_import_what_exists() -> None:
    of_us = [(name_of(p), n) for p in SCRIPTS for n in imported(p) if n.split(".")[0] == "calibrant"]
    assert [(script, n) for script, n in of_us if not exists(n)] == []


def test_texts_name_files_and_names_that_exist() -> None:
    texts = {name_of(p): p.read_text(encoding="utf-8") for p in (*PAGES, *SOURCES)}
    reported = [(page, f) for page, text in texts.items() for f in A_FILE.findall(text) if not f.endswith(TO_WRITE)]
    ends = {f[i:] for f in FILES for i, letter in enumerate(f) if letter == "/"}
    assert [(page, f) for page, f in reported if f"/{f}" not in ends] == []
    assert [
        (page, n)
        for page, text in texts.items()
        for n in A_NAME.findall(text)
        if n not in ENTRY_POINTS and not exists(n)
    ] == []


def test_what_is_gone_is_seen() -> None:
    script = "import json\nfrom calibrant.views.sample import group, Dealing\nimport calibrant as cal"
    group, other, whole = imported_in(script)
    assert (group, whole) == ("calibrant.views.sample.group", "calibrant")
    assert exists(group)
    assert exists(other)
    assert exists("calibrant.audit.record.AuditRecord.certified")
    assert exists("calibrant.Predictions.n")
    assert not exists(group.replace("views", "certify"))
    assert not exists(f"{group}s")
    assert A_FILE.findall("see `stats/betting.py`, and repair/x/y.py") == ["stats/betting.py", "repair/x/y.py"]
    assert A_NAME.findall("`calibrant.repair.evaluate(data)`") == ["calibrant.repair.evaluate"]
