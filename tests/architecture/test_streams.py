"""Methods draw random numbers of their own at the same seed: no two files key a generator alike."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import calibrant

SRC = Path(calibrant.__file__).parent


def constants(tree: ast.Module) -> dict[str, int]:
    """Whole numbers that a module names at its top, alone or several in a line."""
    out: dict[str, int] = {}
    for node in (n for n in tree.body if isinstance(n, ast.Assign)):
        whose = [getattr(n, "elts", [n]) for n in (node.targets[0], node.value)]
        for name, value in zip(*whose, strict=False):
            if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, int):
                out[name.id] = value.value
    return out


@cache
def keys(path: Path) -> set[tuple[int | str, ...]]:
    """What generators of a file are made of: its numbers where they stand, and ``seed`` for all that varies."""
    text = path.read_text(encoding="utf-8")
    if "default_rng" not in text:
        return set()
    tree = ast.parse(text)
    named = constants(tree)

    def part(node: ast.expr) -> int | str:
        if isinstance(node, ast.Constant):
            return int(node.value)
        return named.get(node.id, "seed") if isinstance(node, ast.Name) else "seed"

    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "default_rng"]
    return {tuple(map(part, c.args[0].elts)) for c in calls if c.args and isinstance(c.args[0], ast.List)}


def test_no_two_files_draw_from_the_same_stream() -> None:
    drawn: dict[tuple[int | str, ...], list[str]] = {}
    for path in sorted(SRC.rglob("*.py")):
        for key in keys(path):
            drawn.setdefault(key, []).append(str(path.relative_to(SRC)))
    assert len(drawn) > 25
    assert not {key: files for key, files in drawn.items() if len(files) > 1}


def test_every_stream_has_a_number() -> None:
    assert not [p.name for p in SRC.rglob("*.py") for key in keys(p) if all(isinstance(k, str) for k in key)]
