"""Ends on the side that is refuted, sizes without their ends, and cells of some rows: each against the plainer way."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.kernels.roots import crossing
from calibrant.repair.calibrators.boosting import bin_edges
from calibrant.stats.betting import Above, Below
from calibrant.stats.bounds import _wagers, lower_evidence, product_evidence, shown_evidence
from calibrant.stats.nulls import total_interval, total_size
from calibrant.views.population import fixed_scores
from calibrant.views.sample import Dealing, everyone


def check_root(one, found, target):
    """The end is where the evidence reaches the target, on the side where it has."""
    assert found == pytest.approx(crossing(lambda x: one.at(x) - target, 0.0, 1.0, xtol=1e-13), abs=1e-10)
    assert one.at(found) >= target


@pytest.mark.parametrize("n", [2, 40, 3000, 10**9])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-9])
def test_an_end_from_above_is_at_the_root_and_not_below_it(n, delta):
    rng = np.random.default_rng([1, n])
    gamma = np.minimum(np.array([5.0, 9.0, 16.0, 28.0]) / np.sqrt(n), 0.95)
    for size in (0.0, 1.0, 30.0, 1e4):
        one = Above(size * rng.uniform(size=4), gamma, np.full(4, 0.25), n)
        found, target = one.limit(delta), -np.log(delta)
        if one.at(1.0) <= target:
            assert found == 1.0
        elif one.at(0.0) >= target:
            assert found == 0.0
        else:
            check_root(one, found, target)


@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-9])
def test_an_end_from_below_is_at_the_root_and_not_above_it(delta):
    rng = np.random.default_rng(2)
    for growth in (-3.0, 0.0, 5.0, 60.0, 500.0):
        one = Below(
            growth * rng.uniform(size=6), rng.uniform(0.0, 0.9, (6, 7)), np.full((6, 7), 90.0), np.full(6, 1 / 6)
        )
        found, target = one.limit(delta), -np.log(delta)
        if one.at(0.0) <= target:
            assert found == 0.0
        elif one.at(1.0) >= target:
            assert found == 1.0
        else:
            check_root(one, found, target)


def test_nothing_staked_refutes_all_or_nothing():
    none = np.zeros((1, 1))
    assert Below(np.array([9.0]), none, none, np.ones(1)).limit(0.05) == 1.0
    assert Below(np.array([0.0]), none, none, np.ones(1)).limit(0.05) == 0.0
    assert Above(np.array([np.inf]), np.array([0.5]), np.ones(1), 10).limit(0.05) == 1.0


@pytest.mark.parametrize("decimals", [1, 9])
def test_cells_of_some_rows_are_those_of_a_sketch_of_them(decimals):
    rng = np.random.default_rng(3)
    p, y = np.round(rng.beta(0.5, 2.0, 900), decimals), rng.integers(0, 2, 900).astype(np.int8)
    rows = np.flatnonzero(rng.uniform(size=900) < 0.3)
    dealing, q = Dealing.of(900, 7), fixed_scores(p)
    own = everyone(cal.predictions(y[rows], p[rows]), 7)
    found, true = dealing.cells(q[rows], y[rows], own.exact), own.cells.thinned()
    assert np.array_equal(found.counts, true.counts)
    assert np.array_equal(found.sums, true.sums)
    assert np.array_equal(found.low, true.low)
    assert np.array_equal(found.high, true.high)
    assert lower_evidence(found, 0.05, 7).limit(0.05) == lower_evidence(own.cells, 0.05, 7).limit(0.05)


def test_cells_without_rows_change_no_bet():
    rng = np.random.default_rng(4)
    p = rng.beta(0.5, 2.0, 400)
    cells = everyone(cal.predictions(rng.integers(0, 2, 400), p), 0).cells
    for mine, theirs in zip(_wagers(cells, 0.05, 0)[0], _wagers(cells.nonempty, 0.05, 0)[0], strict=True):
        assert mine.log_wealth == theirs.log_wealth
        assert np.array_equal(mine.bet_sizes, theirs.bet_sizes)


def test_evidence_is_made_once():
    rng = np.random.default_rng(5)
    p = np.round(rng.uniform(size=500), 2)
    q = everyone(cal.predictions(rng.integers(0, 2, 500), p), 0)
    assert lower_evidence(q.cells, 0.05, 0) is lower_evidence(q.cells, 0.05, 0)
    assert lower_evidence(q.cells, 0.05, 0) is not lower_evidence(q.cells, 0.01, 0)
    shown = q.as_shown(100).cells
    assert shown is q.as_shown(100).cells
    found, again = shown_evidence(shown), product_evidence(shown.low, shown.totals.sum(axis=1), shown.totals[:, 1])
    assert found is shown_evidence(shown)
    assert np.array_equal(found.phi, again.phi)


def test_the_size_alone_is_the_middle_of_its_interval():
    rng = np.random.default_rng(6)
    for _ in range(100):
        m = int(rng.integers(1, 12))
        signal = rng.normal(size=m) * rng.choice([0.0, 0.5, 1.0, 3.0, 10.0])
        draws = rng.normal(size=(200, m)) * rng.uniform(0.1, 2.0, m)
        middle = total_interval(signal, draws, lambda x: np.abs(x).sum(axis=-1), 0.05).middle
        assert total_size(signal, draws, 0.05) == pytest.approx(middle, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("n", [53, 54, 1000, 70_001])
def test_bins_end_at_numpy_s_quantiles(n):
    values = np.sort(np.random.default_rng(n).standard_t(3, n))
    ends = np.quantile(values, np.linspace(0.0, 1.0, 53)[1:-1])
    assert bin_edges(values, 52) == tuple(float(v) for v in np.unique(ends) if v > values[0])
    few = np.sort(np.repeat([3.0, 1.0, 2.0], n))
    assert bin_edges(few, 52) == (1.5, 2.5)
