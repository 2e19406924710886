"""A map that was damaged on its way is refused in one line, whatever its kind; it never reaches compiled code."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.repair import Calibrator

RECIPES = {
    "Platt": cal.repair.Platt(),
    "Beta": cal.repair.Beta(),
    "Isotonic": cal.repair.Isotonic(),
    "Histogram": cal.repair.Histogram(bins=3),
    "Rounding": cal.repair.Rounding(),
    "Jitter": cal.repair.Jitter(),
    "AugmentedLogistic": cal.repair.AugmentedLogistic(variables=("age", "town"), quadratic=True),
    "VariableTree": cal.repair.VariableTree(variables=("age", "town"), depth=2),
    "LocalBias": cal.repair.LocalBias(shrink=1.0, landmarks=8),
    "Trees": cal.repair.Multicalibrator(learner=cal.repair.Trees(most=11, doubt=0.0)),
    "Groups": cal.repair.Multicalibrator(learner=cal.repair.Groups(fewest=30)),
}


@cache
def rows() -> Any:
    rng = np.random.default_rng([7, 0xBAD])
    p, age, town = rng.uniform(size=900), rng.integers(18, 90, 900).astype(float), rng.choice(["a", "b", "c"], 900)
    age[::9] = np.nan
    happened = rng.uniform(size=900) < np.clip(p**2 + 0.3 * (town == "a") * (age > 50), 0, 1)
    return cal.predictions(happened, p, {"age": age, "town": town})


@cache
def text(name: str) -> str:
    return str(RECIPES[name].fit(rows()).to_json())


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every list and of every value, of long lists the ends."""
    yield path
    if isinstance(value, dict):
        for k, v in value.items():
            if k != "settings":
                yield from leaves(v, (*path, k))
    if isinstance(value, list):
        for i in sorted({0, len(value) - 1}) if value else ():
            yield from leaves(value[i], (*path, i))


def changed(d: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    out = copy.deepcopy(d)
    at: Any = out
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = new(at[path[-1]])
    return out


DAMAGE = {
    "nan": lambda _: float("nan"),
    "inf": lambda _: float("inf"),
    "word": lambda _: "x",
    "none": lambda _: None,
    "list": lambda _: [],
    "huge": lambda _: 10**400,
    "far": lambda v: 10**12 if isinstance(v, (int, float)) else [v] * 3,
    "below": lambda v: -7 if isinstance(v, (int, float)) else v,
    "cut": lambda v: v[:-1] if isinstance(v, list) else v,
    "turned": lambda v: v[::-1] if isinstance(v, list) else v,
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_damaged_map_is_refused_or_gives_probabilities(name: str) -> None:
    d, refused, lines = json.loads(text(name)), 0, 0
    for path in [p for p in leaves(d) if p]:
        for damage in DAMAGE.values():
            worse = changed(d, path, damage)
            try:
                shown = Calibrator.from_dict(worse)(rows()).p
            except cal.BadInput as e:
                lines += len(str(e).splitlines())
                refused += 1
                continue
            assert np.isfinite(shown).all(), path
            assert ((shown >= 0) & (shown <= 1)).all(), path
    assert lines == refused > 3 * sum(1 for _ in leaves(d))


@pytest.mark.parametrize(
    ("name", "path", "new"),
    [
        ("Platt", ("slope",), "2"),
        ("Platt", ("slope",), True),
        ("Platt", ("scale",), "cubic"),
        ("Platt", ("settings",), 3),
        ("Platt", ("fitted_on", "sample"), ["not hexadecimal"]),
        ("Isotonic", ("knots", 0), 2.0),
        ("Isotonic", ("shown", 0), -0.5),
        ("Histogram", ("edges", 0), 0.999),
        ("Histogram", ("shown",), [0.1]),
        ("Rounding", ("steps",), 1),
        ("Jitter", ("bandwidth",), 9.0),
        ("AugmentedLogistic", ("numbers",), []),
        ("AugmentedLogistic", ("codings", 0, "scale"), 0.0),
        ("AugmentedLogistic", ("codings", 0, "kind"), "colour"),
        ("AugmentedLogistic", ("codings", 1, "name"), "age"),
        ("VariableTree", ("left", 0), 0),  # its own child: rows would go round for ever
        ("VariableTree", ("feature", 0), 99),
        ("VariableTree", ("places", 0), [0.0]),
        ("LocalBias", ("lines", 0, 0), 44),
        ("LocalBias", ("edges", 0), 0.0),
        ("Trees", ("feature", 0, 0), 10**6),  # compiled code would read elsewhere
        ("Trees", ("left", 0, 0), 1 << 60),
        ("Trees", ("score_edges",), []),
        ("Groups", ("cells", 0, 0), 10**7),
        ("Groups", ("grouping", 0), [-5, 3]),
        ("Groups", ("bins",), 10**9),
    ],
)
def test_what_no_fit_leaves_is_refused(name: str, path: tuple[Any, ...], new: Any) -> None:
    with pytest.raises(cal.BadInput, match="cannot be used"):
        Calibrator.from_dict(changed(json.loads(text(name)), path, lambda _: new))


@pytest.mark.parametrize("name", RECIPES)
def test_an_honest_map_is_taken(name: str) -> None:
    assert Calibrator.from_json(text(name)).to_json() == text(name)


@pytest.mark.parametrize("stated", ["", "[" * 100_000, "3", '{"format": NaN}', text.__name__])
def test_what_is_no_map_is_refused(stated: str) -> None:
    with pytest.raises(cal.BadInput, match=r"JSON|not a calibrator"):
        Calibrator.from_json(stated)


def test_covariates_of_other_rows_are_refused() -> None:
    fitted = Calibrator.from_json(text("AugmentedLogistic"))
    for columns in (rows().covariates, {"age": [3.0, 4.0], "town": ["a", "b"]}):
        with pytest.raises(cal.BadInput, match="as many rows as there are scores, 2"):
            fitted.scores(np.array([0.2, 0.3]), columns=columns)
    with pytest.raises(cal.BadInput, match="'age' is not in the data"):
        fitted.scores(np.array([0.2, 0.3]))


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("p", [[0.5, np.nan], [0.5, -7.0], [1e9, 0.5], 0.5])
def test_scores_that_are_no_probabilities_are_refused(name: str, p: Any) -> None:
    fitted = Calibrator.from_json(text(name))
    with pytest.raises(cal.BadInput, match="array of numbers from 0 to 1"):
        fitted.scores(np.array(p), columns=rows().covariates.slice(0, 2))
