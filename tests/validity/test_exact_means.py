"""Theorem 3: exact miss probabilities and the inequalities they rest on."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats.bounds import _plug_in, _runs, variation_upper
from calibrant.stats.cells import SCALE, Cells
from calibrant.views.population import Population
from validity.enumeration import just_beyond, level_cells


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
