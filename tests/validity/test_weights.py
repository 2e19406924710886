"""Certificates with weights that were learnt: each end misses as seldom as it says."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.apps.population import margins, population, weighting
from validity.acceptance import refuted
from validity.weight_designs import Design, ends

HURT = (0.2, 0.0, -0.1)
DESIGNS = (
    Design("margins", strong=True),
    Design("cells", off=HURT),
    Design("rake", strong=True, off=HURT),
    Design("classifier", off=HURT),
    Design("classifier", strong=True, off=HURT, cap=2.0),
    Design("cells", strong=True, off=HURT, pilot=0.2),
    Design("cells", strong=True, off=HURT, pilot=0.2, cap=2.0),
    Design("margins", rare=True, strong=True),
)
TIMES, NIGHTLY = 40, 200


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_each_end_misses_as_seldom_as_it_says(design: Design) -> None:
    found = [ends(design, seed) for seed in range(TIMES)]
    for side in (0, 1):
        assert not refuted(sum(f[side] for f in found), TIMES, 0.025)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_each_end_misses_as_seldom_as_it_says_at_size(design: Design, n: int) -> None:
    found = [ends(replace(design, n=n), seed) for seed in range(NIGHTLY)]
    for side in (0, 1):
        assert not refuted(sum(f[side] for f in found), NIGHTLY, 0.025)


METHODS = ("cells", "rake", "classifier")


def disturbed(method: str, cap: float = 2.0) -> float:
    """How far the ratio of two certified rows' weights moves, at most, when other certified rows change.

    Theorems CL and CU ask for weights that are a function of the row alone, given the pilot rows: for 0.
    """
    rng = np.random.default_rng(3)
    n, band, people = 600, rng.choice(("a", "b", "c"), 600, p=(0.8, 0.15, 0.05)), rng.choice(("a", "b", "c"), 900)
    age, their_age = rng.normal(50, 9, n), rng.normal(58, 9, 900)
    made = partial(
        cal.weights.to, target={"band": people, "age": their_age}, columns=["band", "age"], method=method, pilot=0.3
    )
    made = partial(made, cap=cap, leave_out=True, seed=1)
    zeros = np.zeros(n, dtype=int)
    before = made(cal.predictions(zeros, zeros + 0.5, {"band": band, "age": age})).weights
    rows = np.flatnonzero(before > 0)
    others, same = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    band, age = band.astype(object), age.copy()
    band[others], age[others] = np.where(np.arange(len(others)) % 3 == 0, "d", "c"), rng.normal(90, 30, len(others))
    after = made(cal.predictions(zeros, zeros + 0.5, {"band": band.astype(str), "age": age})).weights
    ratio = after[same] / before[same]
    return float(np.ptp(ratio) / ratio.mean())


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_learnt_on_pilot_rows_is_a_function_of_its_row(method: str) -> None:
    assert disturbed(method) < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_a_ceiling_from_the_certified_rows_is_found(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saboteur: the rows that certify set the ceiling, so that a row's weight depends on the others'."""
    monkeypatch.setattr(population, "capped", lambda w, cap, _: weighting.capped(w, cap))
    assert disturbed(method) > 0.01


@pytest.mark.parametrize("method", METHODS)
def test_levels_from_the_certified_rows_are_found(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saboteur: the rows that certify fix bins and units of numbers."""
    monkeypatch.setattr(population, "leveled", lambda *args: margins.leveled(*args[:4]))
    monkeypatch.setattr(
        population, "features", lambda rows, people, columns, _: margins.features(rows, people, columns)
    )
    assert disturbed(method, cap=50.0) > 1e-6
