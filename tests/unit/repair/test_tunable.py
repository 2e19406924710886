"""Settings of recipes by name: read, changed, copied, refused."""

from __future__ import annotations

import dataclasses

import pytest
from sklearn.base import clone

import calibrant as cal
from calibrant.repair import Groups, Multicalibrator, Platt, Trees


@pytest.mark.parametrize("name", cal.repair.recipes())
def test_a_recipe_is_its_settings(name: str) -> None:
    recipe = cal.repair.recipes()[name].make(["age"])
    settings = recipe.get_params(deep=False)
    assert type(recipe)(**settings) == recipe
    copy = clone(recipe)
    assert copy == recipe
    assert copy is not recipe


def test_settings_are_changed_in_place_as_searches_want() -> None:
    recipe = Platt()
    assert recipe.set_params(scale="logit", ridge=2.0) is recipe
    assert recipe == Platt(scale="logit", ridge=2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.ridge = 1.0  # type: ignore[misc]


def test_settings_of_a_part_are_reached_through_it() -> None:
    whole = Multicalibrator()
    copy = clone(whole).set_params(learner__depth=3, seed=2)
    assert copy == Multicalibrator(learner=Trees(depth=3), seed=2)
    assert whole == Multicalibrator()
    assert copy.get_params()["learner__depth"] == 3
    assert Multicalibrator().set_params(learner__bins=4, learner=Groups()) == Multicalibrator(learner=Groups(bins=4))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"slope": 1.0}, "Platt has no setting 'slope'; its settings: scale, ridge"),
        ({"ridge__depth": 1.0}, "no setting 'ridge__depth'"),
        ({"scale": "logit", "ridge": -1.0}, "ridge"),
    ],
)
def test_nothing_is_changed_by_what_is_refused(wrong: dict[str, object], message: str) -> None:
    recipe = Platt()
    with pytest.raises(cal.BadInput, match=message):
        recipe.set_params(**wrong)
    assert recipe == Platt()
