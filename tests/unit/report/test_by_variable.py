"""Curves in their own units: where a band excludes zero, and that no share tells how many people are left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

import factories
from calibrant.report.by_variable import Point, bins_of, by_variable_of, score_view, share
from calibrant.report.sections.curves import unclear
from calibrant.results import Curve


def line(low: list[float], high: list[float], stretch: list[int]) -> list[Point]:
    middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
    rows = zip(middle, low, high, stretch, strict=True)
    return [Point((i + 1) / 100, "", 0.5, 0.5 + m, m, a, b, 0.0, s) for i, (m, a, b, s) in enumerate(rows)]


def test_stretches_break_at_zero_and_at_holes():
    points = line([0.01, 0.02, -0.01, 0.01, 0.01, -0.03], [0.02, 0.03, 0.01, 0.02, 0.02, -0.01], [0, 0, 0, 0, 1, 1])
    score = score_view(bins_of(factories.reliability(bins=12)), Curve(method="", columns={}))
    found = [(s.side, s.low, s.high) for s in replace(score, line=tuple(points)).runs]
    assert found == [("low", 0.01, 0.02), ("low", 0.04, 0.04), ("low", 0.05, 0.05), ("high", 0.06, 0.06)]


def test_without_a_curve_each_bin_stands_for_itself():
    bins = bins_of(factories.reliability(bins=12))
    by_variable = score_view(bins, Curve(method="", columns={}))
    assert by_variable.line == bins
    assert len({p.stretch for p in by_variable.line}) == 12
    assert not unclear(
        replace(by_variable, settings={"reason": "every row has the same score"})
    )  # no test, and no level


def test_bars_of_people_lie_inside_their_bins():
    bins = bins_of(factories.reliability())
    by_variable = score_view(bins, factories.curve())
    for bar, b in zip(by_variable.strip, bins, strict=True):
        assert b.start <= bar.low < bar.high <= b.end
        assert bar.density == pytest.approx(b.rows / (b.end - b.start))


def test_people_of_levels_do_not_tell_how_many_are_left_out():
    """With one level left out for being small, no share but the smallest shown could tell its people."""
    labels, gaps = ("a", "b", "c"), (0.02, 0.02, 0.02)
    whole = by_variable_of("g", factories.by_variable("g", labels=labels, gaps=gaps))
    assert [share(whole, p) for p in whole.levels] == ["40%", "20%", "13%"]
    short = by_variable_of("g", factories.by_variable("g", labels=labels, gaps=gaps, masked=1))
    assert [share(short, p) for p in short.levels] == ["40%", "20%", "–"]
