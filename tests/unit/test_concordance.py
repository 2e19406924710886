"""The concordance names functions that exist, and every published procedure stands in it."""

from __future__ import annotations

import importlib.util
import re

import pytest

import calibrant as cal
from pages import ROOT

PAGE = ROOT / "docs/concordance.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="a source distribution without docs")


def rows() -> list[list[str]]:
    """Cells of every row of the tables."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [cells for line in lines if (cells := [c.strip() for c in line.strip("|").split(" |")])[1] != "in calibrant"]


def named(cell: str) -> list[str]:
    """Functions that a cell names."""
    return re.findall(r"`([\w.]+)`", cell)


def test_every_row_names_a_function() -> None:
    every = rows()
    assert len(every) > 60
    assert all(named(cells[1]) for cells in every)


def stated() -> list[object]:
    """Every name of the page; those that need PyTorch wait, as its tests do."""
    names = sorted({n for cells in rows() for n in named(cells[1])} if PAGE.exists() else ())
    return [pytest.param(n, marks=pytest.mark.slow if "objectives" in n else ()) for n in names]


@pytest.mark.parametrize("name", stated())
def test_each_function_named_exists(name: str) -> None:
    *modules, last = name.split(".")
    if modules == ["repair", "objectives"]:
        if importlib.util.find_spec("torch") is None:
            pytest.skip("PyTorch is not installed")
        assert hasattr(cal.repair.objectives, last)
    else:
        place = getattr(cal, modules[0]) if modules else cal
        assert last in place.__all__
        assert callable(getattr(place, last))


def test_every_published_procedure_stands_in_it() -> None:
    assert {f"papers.{n}" for n in cal.papers.__all__ if n.islower()} <= {
        n for cells in rows() for n in named(cells[1])
    }


@pytest.mark.parametrize("term", ["LCB", "VCE(v\\*)", "AdaptScoreCUSUM", "Theorem 5.1", "Theorem 5.2", "perturbation"])
def test_terms_that_readers_look_for_are_there(term: str) -> None:
    assert any(term in cells[0] for cells in rows())


def test_settings_that_the_notes_name_are_options() -> None:
    """`argument="value"` of a note is an argument of a function of its row."""
    import inspect

    for cells in rows():
        functions = [n for n in named(cells[1]) if "objectives" not in n]
        for argument, value in re.findall(r"`(\w+)=(?:\"([\w-]+)\")?", cells[2]):
            texts, parameters = "", set[str]()
            for name in functions:
                thing: object = cal
                for part in name.split("."):
                    thing = getattr(thing, part)
                parameters |= {*inspect.signature(thing).parameters}  # type: ignore[arg-type]
                texts += inspect.getdoc(thing) or ""
            assert argument in parameters, f"{cells[0]}: {argument}"
            assert f'"{value}"' in texts or not value, f"{cells[0]}: {argument}={value}"
