"""Estimates of the first screen: what their ordinary intervals cover, and that the most evident group stands first.

At size: `benchmarks/audit/estimates.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from validity.acceptance import LEAST
from validity.estimate_designs import SHAPES, covered, first, planted

FIRST = 0.95  # of data sets, in which the group that is off by five standard errors stands first


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_ordinary_intervals_cover_from_ten_expected_events_on(shape: str, clustered: bool) -> None:
    """Nominally 95 times of 100, and 93 at least; those of few events are of the Clopper-Pearson kind, and wider."""
    sets = 60
    for rate in covered(SHAPES[shape], 10, clustered, 1.0, sets):
        assert binom.cdf(round(rate * sets), sets, 0.93) > LEAST


@pytest.mark.slow
@pytest.mark.parametrize("sets", [500, pytest.param(4_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_ordinary_intervals_cover_as_often_as_they_say(shape: str, clustered: bool, sets: int) -> None:
    for rate in covered(SHAPES[shape], 200, clustered, 1.0, sets):
        assert binom.cdf(round(rate * sets), sets, 0.93) > LEAST
        assert binom.sf(round(rate * sets) - 1, sets, 0.975) > LEAST


@pytest.mark.slow
@pytest.mark.parametrize("sets", [30, pytest.param(200, marks=pytest.mark.nightly)])
def test_the_most_evident_group_stands_first(sets: int) -> None:
    hits = sum(map(first, range(sets)))
    assert binom.cdf(hits, sets, FIRST) > (LEAST if sets < 200 else 0.5), f"{hits} of {sets}"


def test_an_order_by_size_would_be_rejected() -> None:
    """The saboteur puts the largest gap first: small groups, whose gaps are large by chance, then stand before it."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(400):
        rows = np.array([5_000, *rng.integers(60, 400, 15)])
        error = rng.normal(size=16) * 0.5 / np.sqrt(rows)
        error[0] += 5.0 * 0.5 / np.sqrt(rows[0])
        wrong += int(np.argmax(np.abs(error))) != 0
    assert wrong > 0.5 * 400


def test_the_data_are_as_they_are_said_to_be() -> None:
    for seed in range(4):
        data, worst, _ = planted(seed)
        here = np.array(data["site"]) == worst
        gap = data["y"][here].mean() - data["p"][here].mean()
        assert gap > 2.0 * np.sqrt((data["p"][here] * (1.0 - data["p"][here])).sum()) / here.sum()
