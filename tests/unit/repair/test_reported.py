"""A map tells of no single person: not by a level, an extreme, a cut, a knot, a landmark or a hash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.repair import Calibrator
from calibrant.repair.disclosure import MASK, cells, cuts, grain, reported_codings, stepped
from calibrant.repair.fitted import row_hashes

N = 3000
RECIPES: dict[str, Any] = {
    "Isotonic": cal.repair.Isotonic(),
    "Histogram": cal.repair.Histogram(bins=50),
    "ScalingBinning": cal.repair.ScalingBinning(),
    "BBQ": cal.repair.BBQ(),
    "AugmentedLogistic": cal.repair.AugmentedLogistic(variables=("income", "town"), quadratic=True),
    "VariableTree": cal.repair.VariableTree(variables=("income", "age", "town"), depth=3),
    "LocalBias": cal.repair.LocalBias(shrink=1.0, landmarks=64),
    "Trees": cal.repair.Multicalibrator(learner=cal.repair.Trees(most=20, doubt=0.0)),
    "Groups": cal.repair.Multicalibrator(learner=cal.repair.Groups(fewest=30)),
}


@cache
def rows() -> Any:
    rng = np.random.default_rng([3, 0x70])
    p, age = rng.uniform(0.01, 0.99, N), rng.integers(18, 90, N).astype(float)
    income = np.exp(rng.normal(10, 1.5, N)).round(2)
    income[5], age[6] = 987_654_321.25, 111.0  # the one very rich person, and the oldest
    town = rng.choice(["Bern", "Chur", "Zug"], N).astype(object)
    town[:7], town[7], town[8:27] = "SECRET-a", "SECRET-b", "SECRET-c"
    y = rng.uniform(size=N) < np.clip(p**2 + 0.3 * (town == "Bern") * (age > 50), 0, 1)
    return cal.predictions(y, p, {"income": income, "age": age, "town": town})


@cache
def fitted(name: str) -> Calibrator:
    made: Calibrator = RECIPES[name].fit(rows())
    return made


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for k, v in value.items():
            if k != "fitted_on":
                yield from numbers(v)
    elif isinstance(value, list):
        for v in value:
            yield from numbers(v)
    elif isinstance(value, float):
        yield value


@pytest.mark.parametrize("name", RECIPES)
def test_no_value_of_a_single_person_is_in_a_map(name: str) -> None:
    data, text = rows(), fitted(name).to_json()
    reported = list(numbers(json.loads(text)))
    assert "SECRET" not in text
    income = data.covariates.column("income").to_numpy()
    own = np.unique(np.concatenate([data.p, income]))
    assert not np.isin(reported, own).any()
    assert max(reported) < 1e7  # nor half of the one very rich person's
    assert not np.isin(reported, [111.0, 110.5, 110.0]).any()
    assert fitted(name).mask == MASK


@pytest.mark.parametrize("name", RECIPES)
def test_the_map_that_is_judged_is_the_one_that_is_written(name: str) -> None:
    again = Calibrator.from_json(fitted(name).to_json())
    assert (again(rows()).p == fitted(name)(rows()).p).all()
    assert again.mask == fitted(name).mask


def test_every_step_of_a_map_rests_on_about_twenty_people() -> None:
    p = rows().p
    for one in (cal.repair.Histogram(bins=1000), cal.repair.ScalingBinning(bins=1000), cal.repair.BBQ()):
        held = np.bincount(np.searchsorted(one.fit(rows()).edges, p, side="right"))
        assert held.min() >= MASK - 12  # edges lie halfway between means of twenty
    textbook = cal.repair.Histogram(bins=1000, fewest=1).fit(rows()).edges
    assert np.bincount(np.searchsorted(textbook, p, side="right")).min() < MASK - 12


def test_every_knot_of_an_isotonic_map_is_the_mean_of_twenty_scores() -> None:
    p, knots = np.sort(rows().p), np.array(fitted("Isotonic").knots)  # type: ignore[attr-defined]
    ends = np.arange(0, N, MASK)
    means = np.add.reduceat(p, ends) / MASK
    assert np.abs(knots[:, None] - means[None, :]).min(axis=1).max() < 1e-9


def test_hashes_do_not_tell_outcomes() -> None:
    """The hash of a score can be undone; that of a score with its label would tell what happened to whom."""
    data, reported = rows(), fitted("Isotonic").fitted_on
    other = cal.predictions(1 - data.y, data.p)
    assert cal.repair.Platt().fit(other).fitted_on.sample == reported.sample
    assert not set(reported.sample) & {f"{int(h):016x}" for h in row_hashes(data)}


def test_no_landmark_is_a_person() -> None:
    one = fitted("LocalBias")
    x = cal.repair.LocalBias(shrink=1.0)
    assert x.landmarks > 64
    marks = np.array(one.landmarks)  # type: ignore[attr-defined]
    assert np.allclose(marks, np.round(marks, 1))


def test_rare_levels_are_other_and_extremes_are_clipped() -> None:
    table = pa.table({"town": ["a"] * 40 + ["b"] * 19 + ["c"] * 41, "rich": np.exp(np.linspace(0, 12, 100) ** 1.4)})
    town, rich = reported_codings(table, None)
    assert town.levels == ("c", "a")
    ordered = np.sort(table["rich"].to_numpy())
    assert rich.ranks
    assert rich.ranks[-1] <= ordered[-MASK] * 1.01
    assert rich.ranks[0] >= 0.0
    assert reported_codings(pa.table({"v": [str(i) for i in range(50)]}), None)[0].kind == "constant"
    some = pa.table({"v": [None] * 5 + list(np.linspace(0.0, 1.0, 95))})
    assert not reported_codings(some, None)[0].missing


def test_steps_cuts_and_cells() -> None:
    assert [grain(w) for w in (0.0, 20.0, 1.0, 33_000.0, float("inf"))] == [0.0, 0.2, 0.02, 500.0, 0.0]
    assert stepped(np.array([37.0, 37.13]), 0.2).tolist() == [37.0, 37.2]
    values = np.repeat([1.0, 2.0, 3.0, 4.0], [50, 5, 40, 3])
    assert cuts((1.5, 2.5, 3.5), values, 0.1) == (1.5,)
    scores, weight, events = (
        np.array([0.1, 0.2, 0.3, 0.4, 0.5]),
        np.array([20.0, 1, 19, 25, 3]),
        np.array([2.0, 1, 4, 5, 0]),
    )
    found = cells(scores, weight, events, weight.astype(np.int64), 20)
    assert found[0] == pytest.approx([0.1, (0.2 + 19 * 0.3) / 20, (25 * 0.4 + 3 * 0.5) / 28])
    assert found[1].tolist() == [20, 20, 28]
    assert found[2].tolist() == [2, 5, 5]
