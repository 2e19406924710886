"""What a ranking measures along a variable: sizes, levels, trends and splits, and the noise they are held against."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.diagnose.ranking import Line, lines_of, ranked
from calibrant.stats.strata import beyond_gap


def line(values: Any, y: Any, p: Any, **more: Any) -> Line:
    data = cal.predictions(y, p, pa.table({"v": values}), **more)
    return lines_of(ranked(data), ["v"], "probability", 10, True)[0][0]


def observed(found: Line) -> Any:
    return found.statistics((found.bins.residual / found.bins.total)[None, :], found.bins.noise)[:, 0]


def outcomes(n: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng([0x2A4B, seed])
    p = rng.uniform(0.2, 0.8, n)
    return rng, p, (rng.random(n) < p).astype(float)


def by_hand(weights: Any, y: Any, p: Any) -> float:
    """The score test along weights of the rows, the overall shift taken off."""
    w = weights - weights.mean()
    return float(abs(w @ (y - p)) / np.sqrt(w**2 @ (p * (1 - p))))


def test_a_category_is_looked_at_level_by_level() -> None:
    rng, p, y = outcomes(900, 1)
    g = rng.integers(0, 6, 900)
    _, largest = observed(line([f"level {k}" for k in g], y, p))
    each = [by_hand((g == k).astype(float), y, p) for k in range(6)]
    assert largest == pytest.approx(max(each), abs=1e-9)


def test_a_number_is_looked_at_along_its_trend_and_its_splits() -> None:
    rng, p, y = outcomes(900, 2)
    v = rng.integers(0, 5, 900)
    _, trend, split = observed(line(v.astype(float), y, p))
    upto = np.concatenate([[0], np.cumsum(np.bincount(v))])
    assert trend == pytest.approx(by_hand((0.5 * (upto[:-1] + upto[1:]))[v], y, p), abs=1e-9)
    assert split == pytest.approx(max(by_hand((v <= k).astype(float), y, p) for k in range(4)), abs=1e-9)


def test_the_missing_have_no_place_in_the_trend_and_are_a_split() -> None:
    rng, p, y = outcomes(900, 3)
    v, gone = rng.integers(0, 4, 900), rng.random(900) < 0.2
    y = np.where(gone, 1.0, y)  # all of them had the event
    found = line(pa.array(np.where(gone, np.nan, v), from_pandas=True), y, p)
    _, trend, split = observed(found)
    assert split == pytest.approx(by_hand(gone.astype(float), y, p), abs=1e-9)
    upto = np.concatenate([[0], np.cumsum(np.bincount(v[~gone]))])
    place = (0.5 * (upto[:-1] + upto[1:]))[v]
    assert trend == pytest.approx(by_hand(np.where(gone, place[~gone].mean(), place), y, p), abs=1e-9)


def test_levels_of_few_events_are_not_looked_at_by_themselves() -> None:
    rng, _, _ = outcomes(400, 4)
    p, g = np.full(400, 0.01), rng.integers(0, 20, 400)
    y = (np.arange(400) == 0).astype(float)
    assert len(observed(line([f"level {k}" for k in g], y, p))) == 1  # a fifth of an event is expected of each
    assert len(observed(line([f"half {k}" for k in g % 2], y, np.full(400, 0.05)))) == 2


@pytest.mark.parametrize("kind", ["category", "number"])
def test_the_overall_shift_changes_no_statistic(kind: str) -> None:
    rng, p, y = outcomes(600, 5)
    g = rng.integers(0, 5, 600)
    found = line([f"level {k}" for k in g] if kind == "category" else g.astype(float), y, p)
    sums = found.bins.residual / found.bins.total
    shifted = np.stack([sums, sums + 0.1 * found.share, beyond_gap(sums, found.share)])
    each = found.statistics(shifted, found.bins.noise)
    np.testing.assert_allclose(each, each[:, :1] * np.ones(3), atol=1e-9)


# ---- the noise seen in a cell ----


def ratios(g: Any, y: Any, p: Any) -> Any:
    bins = line([f"level {k:02d}" for k in g], y, p).bins
    return bins.variance / bins.noise


def test_noise_that_chance_explains_is_that_of_all_cells() -> None:
    rng, _, _ = outcomes(4000, 6)
    p, g = np.full(4000, 0.1), rng.integers(0, 40, 4000)
    right = ratios(g, (rng.random(4000) < p).astype(float), p)
    assert right.max() < 1.1  # a cell of 100 rows by itself would be seen up to 1.8 times as noisy
    assert 1.6 < ratios(g, (rng.random(4000) < 0.2).astype(float), p).mean() < 2.0  # 0.16 for 0.09 everywhere


def test_noise_of_one_cell_that_is_more_than_chance_is_its_own() -> None:
    rng, _, _ = outcomes(8000, 7)
    g = rng.integers(0, 4, 8000)
    p = np.where(rng.random(8000) < 0.5, 0.02, 0.98)
    wrong = np.where(g == 0, 0.25 + 0.5 * p, p)
    found = ratios(g, (rng.random(8000) < wrong).astype(float), p)
    assert found[0] > 8.0
    assert found[1:].max() < 1.6


def test_scores_of_zero_and_one_leave_what_is_seen() -> None:
    p, g = np.repeat([0.0, 1.0, 0.5], 100), np.repeat([0, 1, 2], 100)
    y = np.where(g == 0, np.arange(300) % 50 == 0, g == 1).astype(float)
    bins = line([f"level {k}" for k in g], y, p).bins
    assert bins.noise[:2].tolist() == [0.0, 0.0]
    assert bins.variance[0] == pytest.approx(2 * 0.98 * 100 / 99)
    assert bins.variance[1] == 0.0
    assert np.isfinite(bins.variance).all()
