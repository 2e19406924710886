"""What a mutant is: a module of the library with a few words of its source changed, put in place as it is imported."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

PACKAGE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Edit:
    """One change of the source.

    Parameters
    ----------
    within : str
        Dotted name, inside the module, of the function, method or class that holds the text.
    old, new : str
        `old` occurs there once.
    """

    within: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A module with a fault.

    Parameters
    ----------
    name, breaks : str
        What it is called, and what it breaks, in words.
    module : str
        Dotted name.
    edits : tuple of Edit
    reached : tuple of str
        Dotted names in the module of what has to run for the fault to matter; by default what is edited.
    """

    name: str
    breaks: str
    module: str
    edits: tuple[Edit, ...]
    reached: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file of the module."""
        return PACKAGE.joinpath(*self.module.split(".")).with_suffix(".py")

    @property
    def entered(self) -> tuple[str, ...]:
        """Dotted names in the module, one of which a test has to run."""
        return self.reached or tuple(edit.within for edit in self.edits)

    @property
    def compiled(self) -> bool:
        """Machine code of the module, which is stored on disk, would have the fault too."""
        return self.module.startswith("calibrant.kernels.")

    def source(self) -> str:
        """Return the source with the fault."""
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        return "".join(self.changed(lines, ast.parse("".join(lines))))

    def changed(self, lines: list[str], tree: ast.Module) -> list[str]:
        """Return lines with the fault; refuse an edit whose text does not occur once where it should."""
        for edit in self.edits:
            first, last = span(tree, edit.within)
            text = "".join(lines[first:last])
            if text.count(edit.old) != 1:
                where = f"{self.module}.{edit.within}"
                raise ValueError(f"{self.name}: {edit.old!r} occurs {text.count(edit.old)} times in {where}")
            # as many entries as there were lines, so that other edits find theirs
            lines = [*lines[:first], text.replace(edit.old, edit.new), *[""] * (last - first - 1), *lines[last:]]
        return lines


def span(tree: ast.Module, name: str) -> tuple[int, int]:
    """Return the lines of a function or class, from the first, up to the last, as a slice has them."""
    nodes: list[ast.AST] = [tree]
    for part in name.split("."):
        inner = (n for node in nodes for n in ast.iter_child_nodes(node))
        found = [n for n in inner if getattr(n, "name", None) == part]
        if not found:
            raise ValueError(f"there is no {name}")
        nodes = list(found)
    node = nodes[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return node.lineno - 1, node.end_lineno or node.lineno


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from its faulty source; nothing of it is stored."""

    mutant: Mutant

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        """Compile the faulty source."""
        return self.source_to_code(self.mutant.source().encode(), self.path)  # type: ignore[no-any-return]


@dataclass
class Finder(importlib.abc.MetaPathFinder):
    """Finds the one module that has a fault."""

    mutant: Mutant

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the faulty module for its name."""
        if fullname != self.mutant.module:
            return None
        loader = Loader(fullname, str(self.mutant.path))
        loader.mutant = self.mutant
        return importlib.util.spec_from_file_location(fullname, self.mutant.path, loader=loader)


def install(mutant: Mutant) -> None:
    """Put a mutant in place, before any of the library is imported; machine code it makes is kept apart."""
    taken = [name for name in sys.modules if name == "calibrant" or name.startswith("calibrant.")]
    assert not taken, f"{taken[0]} is imported already"
    if mutant.compiled:
        apart = tempfile.mkdtemp(prefix="mutant-")
        os.environ["NUMBA_CACHE_DIR"] = apart
        if "numba" in sys.modules:
            sys.modules["numba"].config.CACHE_DIR = apart
    sys.meta_path.insert(0, Finder(mutant))
