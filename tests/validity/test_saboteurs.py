"""Each broken certificate is rejected by the design named for it, which the library passes."""

from functools import partial

import numpy as np

import calibrant as cal
from calibrant.certify.groups import groups
from calibrant.certify.raw_lower import raw_lower
from calibrant.certify.rounded import rounded
from calibrant.stats import bounds
from calibrant.stats.bounds import lower_bound
from validity import designs, saboteurs
from validity.acceptance import count, refuted
from validity.enumeration import grid_cells, level_cells

ALPHA = 0.05


def calibrated_grid(replicate, position=False, n=1000, size=19):
    """Calibrated scores on a grid, as cells per block."""
    rng = np.random.default_rng([0x5AB0, replicate])
    values = np.arange(1, size + 1) / (size + 1)
    level = rng.integers(0, size, n)
    y = (rng.random(n) < values[level]).astype(np.int64)
    block = saboteurs.blocks_by_position(level, y) if position else rng.integers(0, 8, n)
    counts = np.zeros((8, size, 2), dtype=np.int64)
    np.add.at(counts, (block, level, y), 1)
    return level_cells(counts, values)


def lower_misses(runs, **settings):
    return count(lambda r: lower_bound(calibrated_grid(r, **settings), ALPHA, r) > 0, runs)


def test_library_passes_the_calibrated_grid():
    assert not refuted(lower_misses(200), 200, ALPHA)
    assert not refuted(lower_misses(100, n=5000, size=10), 100, ALPHA)


def test_signs_learnt_on_the_same_rows():
    with saboteurs.wager(saboteurs.signs_from_the_same_rows):
        assert refuted(lower_misses(40), 40, ALPHA)


def test_round_robin_blocks_of_a_sorted_file():
    assert refuted(lower_misses(80, position=True, n=5000, size=10), 80, ALPHA)


def test_no_price_for_confidence():
    with saboteurs.no_price_for_confidence():
        assert refuted(lower_misses(60), 60, ALPHA)


def two_scores(replicate, n=20_000):
    """Scores 0.3 and 0.7 with event rate 1/2: rounded to halves they are calibrated, yet far from calibrated."""
    rng = np.random.default_rng([0x5AB1, replicate])
    rows = np.array([n // 2, n - n // 2])
    k = rng.binomial(rows, 0.5)
    return grid_cells(np.stack([rows - k, k], axis=1)[None], [4915, 11468], 1 << 14)


def test_distance_without_how_far_rounding_moves():
    truth = designs.TWO.distance
    assert not count(lambda r: saboteurs.one_rounding(two_scores(r), ALPHA, 2) < truth, 20)
    assert refuted(count(lambda r: saboteurs.rounding_moves_nothing(two_scores(r), ALPHA, 2) < truth, 20), 20, ALPHA)


def test_rounded_lower_bound_labelled_raw():
    """Score 0.54, calibrated, shown in ten steps as 0.5: the display is off, the model is not."""
    design = designs.atoms("shown too low", [0.54], [0.54])

    def miss(bound, replicate):
        return bound(design.draw(10_000, 1, replicate)).interval.low > design.raw + 1e-9

    assert not refuted(count(partial(miss, raw_lower), 60), 60, ALPHA)
    assert refuted(count(partial(miss, partial(rounded, levels=10, alpha=ALPHA, side="lower")), 40), 40, ALPHA)


def fifty_groups(replicate, n=200, eta=0.0198):
    """Score 0 everywhere, and an event rate that a group's own bound misses when it has no case."""
    rng = np.random.default_rng([0x5AB2, replicate])
    names = np.repeat([f"{i:02d}" for i in range(50)], n)
    return cal.predictions(rng.random(50 * n) < eta, np.zeros(50 * n), {"group": names}), eta


def group_misses(certify, runs):
    def miss(replicate):
        data, truth = fifty_groups(replicate)
        found = certify(data, by=["group"], levels=100, alpha=ALPHA, side="upper")
        assert len(found) == 50
        return any(e.interval.high < truth for e in found.values())

    return count(miss, runs)


def test_alpha_not_shared_over_groups():
    assert not refuted(group_misses(groups, 30), 30, ALPHA)
    assert refuted(group_misses(saboteurs.unshared_groups, 30), 30, ALPHA)


def test_understated_notch_passes_end_to_end():
    """Why brute force is needed: this design does not reject it."""

    def miss(replicate):
        k = np.random.default_rng([0x5AB3, replicate]).binomial(60, 0.82, 20)
        return bounds.product_upper(np.full(20, 0.8), np.full(20, 60), k, ALPHA) < 0.02

    with saboteurs.normaliser(saboteurs.slightly_low_normaliser):
        assert not refuted(count(miss, 200), 200, ALPHA)
