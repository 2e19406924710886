"""Simulation of each step that the certificates are made of, at its own claimed rate."""

import numpy as np
import pytest

from calibrant import predictions
from calibrant.stats.bounds import debiased_error, dyadic_levels
from calibrant.views.population import Population
from calibrant.views.sample import everyone
from validity import designs
from validity.acceptance import check

RUNS, DELTA = 2000, 0.1


def rng_of(*stream):
    return np.random.default_rng([0x1268, *stream])


@pytest.mark.parametrize("steps", [8, 128])
def test_mean_distance_that_rounding_moves(steps):
    n = 300

    def miss(r):
        q = (rng_of(4, r).random(n) * 2**30).astype(np.int64)
        raw = np.zeros((1, 1 << 14, 6), dtype=np.int64)
        np.add.at(raw, (0, q >> 16, 0), 1)
        np.add.at(raw, (0, q >> 16, 2), q & 0xFFFF)
        moved = dyadic_levels(Population(raw, None).cells, steps)[3]
        if r == 0:
            p = q / 2**30
            assert moved == pytest.approx(np.abs(p - np.floor(p * steps + 0.5) / steps).mean(), rel=1e-9)
        return moved + np.sqrt(-np.log(DELTA) / (2 * n)) / (2 * steps) < 1 / (4 * steps)

    check(miss, 500, DELTA)


@pytest.mark.parametrize("design", [designs.IDENTITY, designs.SKEWED, designs.FEW], ids=designs.named)
def test_blocks_are_even_and_know_nothing_of_the_labels(design):
    """Multinomial counts: no block, no label within a block, is far from its expectation."""
    cells = everyone(design.draw(200_000, 6), 7).cells
    rows, events = cells.block_rows, cells.counts[..., 1].sum(axis=1)
    rate = events.sum() / rows.sum()
    assert np.abs(rows - 25_000).max() < 6 * np.sqrt(200_000 * 7 / 64)
    assert (np.abs(events - rows * rate) < 6 * np.sqrt(rows * rate * (1 - rate))).all()


def test_blocks_are_even_in_a_sorted_file():
    design = designs.TIES.draw(100_000, 7)
    order = np.lexsort((design.y, design.p))
    cells = everyone(predictions(design.y[order], design.p[order]), 0).cells
    residual, spread = cells.residuals.sum(axis=1), np.sqrt(cells.variances.sum() / 8)
    assert 0.3 * spread < residual.std() < 2.0 * spread


def test_debiased_estimate_is_small_when_calibrated():
    def estimate(r):
        rng = rng_of(8, r)
        s, n = np.arange(1, 20) / 20, np.full(19, 60)
        k = rng.binomial(n, s)
        return debiased_error(s, n, k) / (np.abs(k - n * s).sum() / n.sum())

    assert np.mean([estimate(r) for r in range(200)]) < 0.75
