"""The recipes: each declares itself, and a file in the folder is all that a new one takes."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.repair import calibrators, catalogue
from calibrant.repair.fitted import Calibrator
from calibrant.repair.judge.verdict import simplicity
from calibrant.report.wording.terms import repair_named

ADDED = '''
"""Halving: every score is halved."""

from dataclasses import dataclass

from calibrant.repair.catalogue import recipe
from calibrant.repair.fitted import Batch, Calibrator, fitted_on


@dataclass(frozen=True, kw_only=True)
class Halved(Calibrator):
    share: float

    @property
    def order(self):
        return "kept"

    def values(self, rows: Batch):
        return self.share * rows.p


@recipe(calibrators=[Halved], words="halving", simplicity=5, command="halving", tried="always")
@dataclass(frozen=True, kw_only=True)
class Halving:
    def fit(self, data):
        return Halved(recipe="Halving", fitted_on=fitted_on(data), share=0.5)
'''


@cache
def rows(n: int = 800) -> cal.Predictions:
    rng = np.random.default_rng([3, 0xCA7])
    p, age, town = rng.uniform(size=n), rng.integers(18, 90, n), rng.choice(["a", "b"], n)
    return cal.predictions(rng.uniform(size=n) < p / 2, p, {"age": age, "town": town})


@pytest.fixture
def one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more file in the folder of maps, and nothing else."""
    catalogue.recipes()
    (tmp_path / "halving.py").write_text(ADDED, encoding="utf-8")
    monkeypatch.setattr(calibrators, "__path__", [*calibrators.__path__, str(tmp_path)])
    monkeypatch.setattr(catalogue, "_DECLARED", dict(catalogue._DECLARED))
    catalogue._read_all.cache_clear()
    yield
    sys.modules.pop("calibrant.repair.calibrators.halving", None)
    vars(calibrators).pop("halving", None)
    vars(cal.repair).pop("Halving", None)


@pytest.mark.slow
def test_a_file_in_the_folder_is_a_recalibrator_everywhere(
    one_more: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Halving" in dir(cal.repair)
    assert "Halving" in cal.repair.__all__
    fitted = cal.repair.Halving().fit(rows())
    assert Calibrator.from_json(fitted.to_json()) == fitted
    with pytest.raises(cal.BadInput, match="share"):
        Calibrator.from_dict(json.loads(fitted.to_json()) | {"share": "a half"})
    found = cal.repair.evaluate(rows(), variables=(), tests=())
    assert set(found.calibrators) == {"Halving", "Platt", "Beta", "Isotonic"}
    assert found.recommended == "Halving"  # the simplest of those that are right
    assert repair_named("Halving") == "halving"
    file, out = tmp_path / "log.csv", tmp_path / "calibrator.json"
    lines = [f"{y},{p}" for y, p in zip(rows().y, rows().p, strict=True)]
    file.write_text("\n".join(["y,p", *lines]), encoding="utf-8")
    reported = [
        "repair",
        str(file),
        "--label",
        "y",
        "--score",
        "p",
        "--method",
        "halving",
        "--quick",
        "-o",
        str(out),
    ]
    assert main(reported) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["kind"] == "Halved"
    assert main(["repair", "--help"]) == 0
    assert "halving" in capsys.readouterr().out


def test_it_is_gone_with_its_file() -> None:
    assert "Halving" not in cal.repair.recipes()
    assert not hasattr(cal.repair, "Halving")


def test_recipes_say_different_things_of_themselves() -> None:
    entries = tuple(cal.repair.recipes().values())
    assert [e.simplicity for e in entries] == sorted({e.simplicity for e in entries})
    for what in (lambda e: e.words, lambda e: e.command or e.name, lambda e: e.name):
        assert len({what(e) for e in entries}) == len(entries)
    assert simplicity("Platt") < simplicity("VariableTree") < simplicity("yours")


def test_names_of_this_module_are_read_when_they_are_used() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Plat'"):
        _ = cal.repair.Plat
    with pytest.raises(AttributeError, match="no attribute '_hidden'"):
        _ = cal.repair._hidden
    assert all(getattr(cal.repair, name) for name in cal.repair.__all__)


# ---- what holds for every recipe ----


def test_words_are_read_as_they_are_written() -> None:
    """A report names recipes without importing them: every declaration is one that can be read as text."""
    entries = cal.repair.recipes()
    assert dict(catalogue._written_words()) == {name: e.words for name, e in entries.items()}
    assert all(catalogue.words_of(name) == e.words for name, e in entries.items())
    assert catalogue.words_of("Unheard") is None


BINARY = [name for name, entry in cal.repair.recipes().items() if entry.fits(several=False)]


@cache
def fitted_map(name: str) -> Any:
    return cal.repair.recipes()[name].make(("age", "town")).fit(rows())


@pytest.mark.parametrize("name", BINARY)
def test_a_recipe_is_what_it_says(name: str) -> None:
    entry = cal.repair.recipes()[name]
    one = entry.make(("age", "town"))
    assert one == (entry.recipe(variables=("age", "town")) if entry.covariates else entry.recipe())
    assert all(p.kind is p.KEYWORD_ONLY for p in inspect.signature(entry.recipe).parameters.values())
    assert isinstance(fitted_map(name), entry.calibrators)
    assert fitted_map(name).recipe == name
    assert entry.covariates or not fitted_map(name).reads


@pytest.mark.parametrize("name", BINARY)
def test_json_carries_its_map(name: str) -> None:
    one = fitted_map(name)
    again = Calibrator.from_json(one.to_json())
    assert again == one
    assert np.array_equal(again(rows()).p, one(rows()).p)
    for bad in ({"strange": 1}, {"fitted_on": {"strange": 1}}, {"recipe": 3}):
        with pytest.raises(cal.BadInput, match="cannot be used"):
            Calibrator.from_dict(json.loads(one.to_json()) | bad)


@pytest.mark.parametrize("name", BINARY)
def test_it_gives_probabilities_and_refuses_several_classes(name: str) -> None:
    out = fitted_map(name)(rows()).p
    assert ((out >= 0.0) & (out <= 1.0)).all()
    several = cal.multiclass_predictions([0, 1, 2], np.full((3, 3), 1 / 3))
    entry = cal.repair.recipes()[name]
    for use in (fitted_map(name), entry.make(("age",)).fit)[: 1 if entry.fits(several=True) else 2]:
        with pytest.raises(cal.BadInput, match="two classes"):
            use(several)


def test_recipes_of_several_classes() -> None:
    several = [name for name, entry in cal.repair.recipes().items() if entry.fits(several=True)]
    one_vs_rest = ["PlattOneVsRest", "BetaOneVsRest", "IsotonicOneVsRest"]
    assert several == ["Temperature", "VariableTree", *one_vs_rest, "VectorScaling", "Dirichlet", "MatrixScaling"]
    assert set(several) - set(BINARY) == {*one_vs_rest, "Dirichlet", "VectorScaling", "MatrixScaling"}
