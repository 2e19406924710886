"""Axes: their labels lie inside them and differ, and every value is written as it is."""

from __future__ import annotations

import pytest

import factories
from calibrant.report import places
from calibrant.report.by_variable import bins_of, shown_of


@pytest.mark.parametrize(
    ("xs", "dates"),
    [
        ([0.0, 1e-12], False),
        ([1e18, 2e18], False),
        ([5.0], False),
        ([0.0], False),
        ([-3.0, 12_000.0], False),
        ([18_000.0, 18_000.5], True),
        ([18_000.0, 18_060.0], True),
        ([-300_000.0, 20_000.0], True),
        ([1e7, 2e7], True),
        ([18_000.0, 18_400.0], True),
    ],
)
def test_an_axis_has_labels_inside_it(xs, dates):
    axis = places.axis_of(xs, dates)
    assert axis.low < axis.high
    assert 1 <= len(axis.ticks) <= 8
    assert all(axis.low <= t <= axis.high * (1 + 1e-9) + 1e-9 for t in axis.ticks)
    assert len({axis.labelled(t) for t in axis.ticks}) == len(axis.ticks)
    assert all(axis.written(x) for x in xs)


def test_years_are_years():
    assert places.axis_of([2015.0, 2018.0]).written(2016.0) == "2016"
    assert places.level(2015.0) == "2015"
    assert places.level(-3.5) == "\u22123.5"


@pytest.mark.parametrize("window", [(0.0, float(w)) for w in (*places.WINDOWS, 100)] + [(98.0, 100.0)])
def test_labels_of_the_axis_of_the_score_are_true(window):
    axis = places.score_axis(window)
    for t in axis.ticks:
        assert float(axis.labelled(t)[:-1]) == pytest.approx(100 * t, abs=1e-9)
    assert (axis.share(window[0] / 100), axis.share(window[1] / 100)) == (0.0, 1.0)


def test_only_probabilities_that_crowd_at_an_end_get_an_axis_of_their_own():
    assert shown_of(bins_of(factories.reliability())) == places.WHOLE
    assert places.window_of([0.001, 0.009]) == (0.0, 1.0)
    assert places.window_of([0.985, 0.999]) == (98.0, 100.0)
    assert places.window_of([0.0, 0.6]) == places.WHOLE


def test_the_axis_of_gaps_holds_every_gap_and_leaves_out_only_a_few_wide_ranges():
    narrow = [(0.01, 0.0, 0.02)] * 20
    assert places.reach(narrow, None) == 4.0
    assert places.reach([*narrow, (0.01, -0.5, 0.5)], None) == 4.0
    assert places.reach([*narrow, (0.2, 0.19, 0.21)], None) == 30.0
    assert places.reach(narrow, 0.05) == 6.0
