"""Lower certificates, exactly: every label vector over all blocks, so that a mean of e-values is a number."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from calibrant.stats import bounds, jitter
from calibrant.stats.betting import FORWARD, SWITCH
from calibrant.stats.bounds import BINS
from calibrant.stats.cells import SCALE, Cells, log_growth
from validity.enumeration import blocked_labels, grid_cells, level_cells
from validity.saboteurs import captured

BLOCKS = {
    "two scores": np.ones((4, 2), dtype=int),
    "uneven": np.array([[2, 0], [1, 3], [0, 2], [1, 1]]),
    "an empty block": np.array([[0, 0], [2, 2], [2, 1], [1, 2]]),
}
VALUES = np.array([0.3, 0.6])


def means(rows, rates, error, delta=0.2, few=False):
    """Exact means, at the true error, of the e-values that `lower_bound` averages."""
    total = 0.0
    for probability, counts in blocked_labels(rows, rates):
        cells = replace(level_cells(counts, VALUES), few=few)
        wagers, _ = captured(bounds, lambda c=cells: bounds.lower_bound(c, delta, 3))
        total += probability * np.array([np.exp(w - (r * np.log1p(k * error)).sum()) for w, k, r in wagers])
    return total


@pytest.mark.slow
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("rows", list(BLOCKS.values()), ids=list(BLOCKS))
def test_every_e_value_has_mean_one_when_calibrated(rows, few):
    assert np.allclose(means(rows, VALUES, 0.0, few=few), 1.0, rtol=1e-9)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("signs", list(itertools.product((-1, 1), repeat=2)))
def test_every_e_value_has_mean_at_most_one_at_the_true_error(signs, few):
    """Both scores are off by 0.1, in any direction: the theorem's inequality holds given the scores too."""
    assert (means(BLOCKS["two scores"], VALUES + 0.1 * np.array(signs), 0.1, few=few) <= 1 + 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 0.1, -0.2])
def test_raw_lower_miss_probability(gap):
    for delta in (0.05, 0.3):
        missed = sum(
            probability
            for probability, counts in blocked_labels(BLOCKS["uneven"], VALUES + gap)
            if bounds.lower_bound(level_cells(counts, VALUES), delta) > abs(gap) + 1e-9
        )
        assert missed <= delta


def one_score(cell, size, rate, rows=(3, 2, 3, 2)):
    for probability, counts in blocked_labels(np.array(rows)[:, None], rate):
        yield probability, grid_cells(counts, [cell], size)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.45, 0.8])
def test_jittered_lower_by_enumeration(rate):
    size, h, cell = 32, 1 / 8, 13
    t = jitter.jitter(size, h).points
    weight = 1 / np.cosh((t - t[cell]) / h)
    error = float(np.abs(t - rate) @ weight / weight.sum())
    mean, missed = 0.0, 0.0
    for probability, cells in one_score(cell, size, rate):
        wagers, bound = captured(jitter, lambda c=cells: jitter.jittered_lower(c, h, 0.3))
        mean += probability * np.array([np.exp(w - (r * np.log1p(k * error)).sum()) for w, k, r in wagers])
        missed += probability * (bound > error + 1e-9)
    assert (mean <= 1 + 1e-9).all()
    assert missed <= 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "rate", [0.390625 + 0.03125 / 2, *(pytest.param(r, marks=pytest.mark.slow) for r in (0.0, 0.8))]
)
def test_distance_lower_by_enumeration(rate):
    size, cell = 32, 12
    error = abs((cell + 0.5) / size - rate)
    mean, missed = 0.0, 0.0
    for probability, cells in one_score(cell, size, rate):
        wagers, bound = captured(bounds, lambda c=cells: bounds.distance_lower(c, 0.3))
        mean += probability * np.array([np.exp(w - (r * np.log1p(k * error)).sum()) for w, k, r in wagers])
        missed += probability * (bound > error + 1e-9)
    assert (mean <= 1 + 1e-9).all()
    assert missed <= 0.3


def test_witness_is_admissible():
    rng = np.random.default_rng(41)
    for scale in (1.0, 10.0, 1e4):
        for _ in range(20):
            w = bounds.lipschitz_witness(scale * rng.normal(size=bounds.KNOTS + 1))
            assert np.abs(w).max() + bounds.KNOTS * np.abs(np.diff(w)).max() <= 1 + 1e-9


@pytest.mark.parametrize("bet_size", FORWARD.multiples)
def test_forward_recursion_equals_the_sum_over_all_paths(bet_size):
    rng = np.random.default_rng(42)
    values = (np.arange(BINS) + 0.5) / BINS
    cells = level_cells(rng.binomial(9, 0.5, (3, BINS, 2)) + 1, values)
    log_wealth, kappa, _ = bounds._forward(cells, bet_size)
    bins, n = cells.equal_mass(BINS), cells.totals
    paths = np.array(list(itertools.product((-1, 0, 1), repeat=BINS)))
    prior = np.where(np.diff(paths, axis=1) == 0, 1 - SWITCH, SWITCH / 2).prod(axis=1) / 3
    tilt = kappa[0] * paths[:, bins]
    gain = n[:, 0] * np.log1p(-tilt * values) + n[:, 1] * np.log1p(tilt * (1 - values))
    assert prior.sum() == pytest.approx(1)
    assert log_wealth == pytest.approx(np.log(prior @ np.exp(gain.sum(axis=1))), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_chord_is_below_the_sum_over_rows(seed):
    rng = np.random.default_rng([43, seed])
    size, n = 8, 400
    q, label = rng.integers(0, 1 << 30, n), rng.integers(0, 2, n)
    counts, sums = np.zeros((1, size, 2), dtype=np.int64), np.zeros((1, size, 2))
    np.add.at(counts, (0, q * size >> 30, label), 1)
    np.add.at(sums, (0, q * size >> 30, label), q)
    tilt = rng.uniform(-0.9, 0.9, size)
    true = np.bincount(q * size >> 30, np.log1p(tilt[q * size >> 30] * (label - q / SCALE)), size)
    cells = Cells.grid(counts, sums)
    chord = np.array([log_growth(cells, 0, one) for one in np.diag(tilt)])  # a bet on one cell at a time
    assert (chord <= true + 1e-9).all()
    assert (chord > true - 0.02 * n / size).all()
    assert log_growth(cells, 0, tilt) == pytest.approx(chord.sum())


def test_chord_is_exact_where_a_cell_is_one_score():
    values = np.array([0.0, 0.2, 1.0])
    cells = level_cells([[[3, 1], [2, 5], [1, 4]]], values)
    tilt = np.array([0.5, -0.9, 0.7])
    true = cells.totals[:, 0] * np.log1p(-tilt * values) + cells.totals[:, 1] * np.log1p(tilt * (1 - values))
    found = [log_growth(cells.joined, 0, one) for one in np.diag(tilt)]
    assert np.allclose(found, true, atol=1e-12)
