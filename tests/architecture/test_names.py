"""Public functions call the same thing the same: names, what is given by keyword, and defaults that agree."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.judging import WORDS
from calibrant.cli import build_parser
from calibrant.errors import BadInput

BY_PLACE = {  # what may be given by its place: the data, and what is asked about them
    *("source", "data", "pilot", "models", "y_true", "y_prob", "covariates"),
    *("variable", "variables", "first", "second", "level", "gap", "error", "rows", "widths", "function"),
    *("target", "features", "member"),  # of weights
    "text",  # of a query
    "record",  # of an audit that is told
    "log",  # of answers
}
OLD = {"y", "p", "clusters", "step", "rows_read", "n_bins", "random_state"}
ONE_DEFAULT = {"alpha": 0.05, "steps": {100, (), None}, "seed": 0, "bandwidth": {2**-6, None}, "progress": None}


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, and recipe of a repair, by name."""
    for name in cal.__all__:
        thing = getattr(cal, name)
        if inspect.isfunction(thing):
            yield name, thing
        for inner in getattr(thing, "__all__", ()) if inspect.ismodule(thing) else ():
            made = getattr(thing, inner)
            if inspect.isfunction(made) or name == "repair":
                yield f"{name}.{inner}", made


PUBLIC = dict(public())
FUNCTIONS = {name: f for name, f in PUBLIC.items() if inspect.isfunction(f)}
TAKES_DATA = [n for n, f in FUNCTIONS.items() if {"data", "source", "pilot"} & set(inspect.signature(f).parameters)]


def test_all_but_the_data_is_given_by_keyword() -> None:
    for name, f in FUNCTIONS.items():
        placed = {p.name for p in inspect.signature(f).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD}
        assert placed <= BY_PLACE, name


@pytest.mark.parametrize(
    ("method", "placed"),
    [
        (cal.Sketch.__init__, {"self", "spec"}),
        (cal.Sketch.update, {"self", "batch"}),
        (cal.Sketch.update_arrays, {"self", "p", "y"}),
        (cal.Sketch.to_bytes, {"self"}),
        (cal.repair.Calibrator.scores, {"self", "p"}),
    ],
)
def test_so_is_all_but_the_data_of_a_method(method: Callable[..., Any], placed: set[str]) -> None:
    parameters = inspect.signature(method).parameters.values()
    assert {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD} == placed


def test_score_is_a_column_wherever_it_is_named() -> None:
    """A flag or a criterion has another name: ``by_score=``, ``criterion=``."""
    named = {n for n, f in PUBLIC.items() if "score" in inspect.signature(f).parameters}
    assert named == {"at_horizon", "look", "read", "sketch", "audit", "compare", "tracking.audit_log"}


def test_names_are_those_of_every_other_function() -> None:
    for name, f in PUBLIC.items():
        parameters = inspect.signature(f).parameters
        assert not OLD & set(parameters), name
        for argument, default in ONE_DEFAULT.items():
            given = parameters[argument].default if argument in parameters else inspect.Parameter.empty
            allowed = default if isinstance(default, set) else {default}
            if given is not inspect.Parameter.empty and name in FUNCTIONS:
                assert given in allowed, f"{name}({argument}={given})"


def test_whoever_takes_data_takes_labels_and_probabilities() -> None:
    """`takes_arrays` stands on every function that takes data, and on every fit, where scores come first."""
    y, p = np.zeros(4), np.full(4, 2.0)  # no probabilities: whoever reads the arrays says so
    calls = {n: FUNCTIONS[n] for n in TAKES_DATA}
    fits = {n: recipe.make(["age"]).fit for n, recipe in cal.repair.recipes().items()}
    assert len(calls) + len(fits) > 80
    for name, call in (calls | fits).items():
        places = list(inspect.signature(call).parameters)
        before = places[: next(places.index(n) for n in ("data", "source", "pilot") if n in places)]
        pair = (p, y) if name in fits else (y, p)
        with pytest.raises(BadInput, match="y_prob") as reported:
            call(*(0.1 for _ in before), *pair)
        assert "outside 0 to 1" in str(reported.value), name


def test_one_array_is_not_taken_for_data() -> None:
    array = np.array([0.2, 0.7])
    for name in TAKES_DATA:
        parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
        if [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD] in (["data"], ["pilot"]) or name == "look":
            needed = {p.name: "x" for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
            with pytest.raises((BadInput, cal.NotComputable)) as reported:
                FUNCTIONS[name](array, **needed)
            assert re.search(r"calibrant\.(multiclass_)?predictions", str(reported.value)), name
    for name, recipe in cal.repair.recipes().items():
        for given in (array, [0.2, 0.7], "log.csv", 3):
            with pytest.raises(BadInput) as reported:
                recipe.make(["age"]).fit(given)
            assert re.search(r"fitted on|pass calibrant\.predictions", str(reported.value)), name


def test_the_command_has_the_arguments_of_the_function() -> None:
    """Under the same names, with the same defaults; what the command adds is where to read and to write."""
    a = vars(build_parser().parse_args(["audit", "log.csv"]))
    python = inspect.signature(cal.audit).parameters
    adds = {"command", "files", "sql", "format", "json", "out", "open", "against", "rows_of"}
    adds |= {"csv_decimal", "csv_digits", "language"}
    assert set(a) - adds <= set(python)
    assert set(python) - set(a) == {"source", "bandwidth", "progress", "engine", "drop_missing", *WORDS}
    for name in set(a) - adds - {"variables"}:
        assert (a[name] or None) == (python[name].default or None), name
