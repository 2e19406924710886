"""The notebook of the documentation runs, is small, and is what its script would write."""

from __future__ import annotations

import ast
import json
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parents[2] / "docs" / "notebooks"
BOOK = HERE / "employment.ipynb"
pytestmark = pytest.mark.skipif(not BOOK.exists(), reason="a source distribution without docs")


@pytest.fixture(name="cells")
def read_cells() -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(BOOK.read_text(encoding="utf-8"))["cells"]
    return cells


def source(cell: dict[str, Any]) -> str:
    """Return the text of a cell, which the format keeps as lines or as one string."""
    return "".join(cell["source"])


def printed(cell: dict[str, Any]) -> str:
    """Return what a cell printed when the notebook was made."""
    return "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")


@pytest.mark.slow
def test_code_cells_run_and_print_what_is_stored(
    cells: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"__name__": "__notebook__"}
    code = [c for c in cells if c["cell_type"] == "code"]
    assert len(code) > 5
    for cell in code:
        exec(compile(source(cell), f"{BOOK.name}:{cell['id']}", "exec"), scope)  # noqa: S102
        words = [w for w in capsys.readouterr().out.split() if not any(c.isdigit() for c in w)]
        stored = [w for w in printed(cell).split() if not any(c.isdigit() for c in w)]
        assert words == stored, cell["id"]


def test_last_expressions_have_a_text_without_an_address(cells: list[dict[str, Any]]) -> None:
    for cell in cells:
        for output in cell.get("outputs", ()):
            assert output["output_type"] in ("stream", "execute_result"), "no errors, no warnings"
            assert " at 0x" not in json.dumps(output)
            assert output.get("name", "stdout") == "stdout"


def test_it_is_executed_small_and_holds_no_rows(cells: list[dict[str, Any]]) -> None:
    code = [c for c in cells if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in code] == list(range(1, len(code) + 1))
    assert all(len(json.dumps(o)) < 200_000 for c in code for o in c["outputs"])
    assert BOOK.stat().st_size < 300_000
    assert all(isinstance(ast.parse(source(c)), ast.Module) for c in code)


def test_it_is_what_the_script_writes(cells: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nbformat", "nbclient"):  # needed to run the notebook, not to read its text
        stand_in = ModuleType(name)
        stand_in.NotebookClient = None  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, stand_in)
    assert tuple(map(source, cells)) == runpy.run_path(str(HERE / "build.py"))["CELLS"]
