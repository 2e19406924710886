"""Limits of the mean residual, and Theorem 3: exact miss probabilities and the inequalities they rest on."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.audit.checks.certified import coarse
from calibrant.stats.betting import MEAN, residual_mean_limits
from calibrant.stats.bounds import _plug_in, _runs, variation_upper
from calibrant.stats.cells import SCALE, Cells
from calibrant.views.population import Population
from validity.enumeration import just_beyond, level_cells


def limits(events, rows, scores, delta):
    """Limits where each level holds one score."""
    k, n, s = (np.asarray(v, dtype=float) for v in (events, rows, scores))
    counts = np.stack([n - k, k], axis=1)
    return residual_mean_limits(counts, counts * s[:, None], s, s, delta)


@pytest.mark.parametrize("s", [0.0, 0.03, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("n", [1, 3, 12, 100, 400])
def test_each_mean_limit_misses_at_most_half_of_delta(s, n):
    delta = 0.2
    low, high = np.array([limits([k], [n], [s], delta) for k in range(n + 1)]).T
    at = np.clip(np.concatenate([low + s - 1e-8, high + s + 1e-8, np.linspace(0, 1, 41)]), 0, 1)[:, None]
    chance = binom.pmf(np.arange(n + 1), n, at)
    assert (chance * (low > at - s + 1e-9)).sum(axis=1).max() <= delta / 2
    assert (chance * (high < at - s - 1e-9)).sum(axis=1).max() <= delta / 2


@pytest.mark.parametrize("rates", [(0.1, 0.9), (0.5, 0.6), (1.0, 0.0)])
def test_mean_limits_of_two_levels(rates):
    n, share, s, delta = 9, 0.3, np.array([0.1, 0.8]), 0.3
    truth, missed = share * (rates[0] - s[0]) + (1 - share) * (rates[1] - s[1]), 0.0
    for first in range(n + 1):
        for k in range(first + 1):
            for j in range(n - first + 1):
                low, high = limits([k, j], [first, n - first], s, delta)
                chance = binom.pmf(k, first, rates[0]) * binom.pmf(j, n - first, rates[1])
                missed += binom.pmf(first, n, share) * chance * (not low - 1e-9 <= truth <= high + 1e-9)
    assert missed <= delta


def test_mean_e_value_is_one():
    n, s, e = 30, 0.2, 0.35
    k = np.arange(n + 1)
    for kappa in MEAN.bets(0.5 * np.sqrt(n), 2.0):
        for sign in (-1, 1):
            growth = k * np.log1p(sign * kappa * (1 - e)) + (n - k) * np.log1p(-sign * kappa * e)
            assert binom.pmf(k, n, e) @ np.exp(growth) == pytest.approx(1)
    assert s - e > -1


@pytest.mark.parametrize("seed", range(5))
def test_mean_limits_from_coarse_cells_contain_those_from_rows(seed):
    """The chord can only widen them."""
    rng = np.random.default_rng([51, seed])
    n = 300
    q, y = rng.integers(0, 1 << 30, n), rng.integers(0, 2, n)
    raw = np.zeros((1, 1 << 14, 6), dtype=np.int64)
    np.add.at(raw, (0, q >> 16, y), 1)
    np.add.at(raw, (0, q >> 16, 2 + y), q & 0xFFFF)
    counts, sums, low, high = coarse(Population(raw, None), np.arange(1 << 14) // 2048)
    wide = residual_mean_limits(counts, sums, low, high, 0.1)
    narrow = limits(y, np.ones(n), q / SCALE, 0.1)
    assert wide[0] <= narrow[0] + 1e-9
    assert wide[1] >= narrow[1] - 1e-9


@pytest.mark.parametrize("s", [0.0, 0.2, 0.5, 1.0])
def test_bounded_variation_miss_probability_of_one_score(s):
    for n in (2, 20, 300):
        for variation in (0.05, 1.0):
            cells = [level_cells([[[n - k, k]]], [s]) for k in range(n + 1)]
            bounds = np.array([variation_upper(c, variation, 0.3, np.array([True]))[0] for c in cells])
            at = just_beyond(bounds, s)
            missed = (binom.pmf(np.arange(n + 1), n, at[:, None]) * (bounds < np.abs(at - s)[:, None] - 1e-9)).sum(
                axis=1
            )
            assert missed.max() <= 0.3


def population(q, y, size=64):
    counts, sums = np.zeros((1, size, 2), dtype=np.int64), np.zeros((1, size, 2))
    np.add.at(counts, (0, q * size >> 30, y), 1)
    np.add.at(sums, (0, q * size >> 30, y), q)
    return Cells.grid(counts, sums)


@pytest.mark.parametrize("seed", range(20))
def test_plug_in_of_cells_is_at_least_the_plug_in_of_rows(seed):
    rng = np.random.default_rng([52, seed])
    n, m = 200, int(rng.integers(1, 80))
    q = np.sort((rng.beta(0.5, 0.5, n) * SCALE * (1 - 1e-9)).astype(np.int64))
    y = rng.integers(0, 2, n)
    cells = population(q, y)
    plug_in, longest = _plug_in(cells, m, np.zeros(cells.size, dtype=bool))
    where = cells.occupied()
    rows = cells.totals[where].sum(axis=1)
    run = np.repeat(_runs(rows, m), rows)
    mean = np.bincount(run, y) / np.bincount(run)
    assert plug_in >= np.abs(mean[run] - q / SCALE).mean() - 1e-9
    assert longest == np.bincount(run).max()


@pytest.mark.parametrize("seed", range(20))
def test_run_means_of_a_monotone_rate_are_near_it(seed):
    """``sum |eta_i - run mean| <= longest V / 2``, whatever the runs."""
    rng = np.random.default_rng([53, seed])
    rows = rng.integers(1, 15, 40)
    run = np.repeat(_runs(rows, int(rng.integers(1, 60))), rows)
    jumps = rng.random(len(run)) * (rng.random(len(run)) < rng.choice([0.02, 0.5]))
    eta = np.cumsum(jumps)
    mean = np.bincount(run, eta) / np.bincount(run)
    assert np.abs(eta - mean[run]).sum() <= np.bincount(run).max() * (eta[-1] - eta[0]) / 2 + 1e-9


def test_runs_never_exceed_their_size_unless_one_cell_does():
    rng = np.random.default_rng(54)
    for m in (1, 5, 30):
        rows = rng.integers(1, 12, 100)
        size = np.bincount(_runs(rows, m), rows)
        cells = np.bincount(_runs(rows, m))
        assert ((size <= m) | (cells == 1)).all()


def test_only_a_cell_of_one_score_escapes_the_oscillation_term():
    raw = np.zeros((2, 1 << 14, 6), dtype=np.int64)
    for cell, block, rest in ((3, 0, 7), (3, 1, 7), (9, 0, 7), (9, 1, 8), (11, 0, 0)):
        raw[block, cell, 0] += 1
        raw[block, cell, 2] += rest
        raw[block, cell, 4] += rest * rest
    single = Population(raw, None).single
    assert single[[3, 11]].all()
    assert not single[9]
    assert not Population(raw[..., :4], None).single.any()
