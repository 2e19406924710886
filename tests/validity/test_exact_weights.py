"""The step that the upper end with learnt weights rests on, over every outcome; and what breaks it."""

from __future__ import annotations

from itertools import product

import numpy as np

SCORE = np.array([0.2, 0.2, 0.5, 0.5, 0.5])
RATE = np.array([0.5, 0.1, 0.9, 0.2, 0.3])  # given x: rows differ, as they must where weights are of use
CELLS = SCORE == 0.5


def mean(reads_labels: bool = False, price: float = 1.0) -> float:
    """Return the largest mean, over bets and weights, of the product over every outcome of five rows."""
    worst = 0.0
    for seed in range(20):
        w = np.random.default_rng(seed).uniform(0.1, 1.0, 5)
        off = w * (SCORE - RATE)
        signs = np.where(CELLS, np.sign(off[CELLS].sum()), np.sign(off[~CELLS].sum()))
        true = (abs(off[CELLS].sum()) + abs(off[~CELLS].sum())) / w.sum()
        for kappa in (0.1, 0.5, 0.95):
            total = 0.0
            for outcome in product((0, 1), repeat=5):
                y = np.array(outcome)
                chance = np.prod(np.where(y, RATE, 1 - RATE))
                v = w * np.where(signs * (SCORE - y) < 0, 1.0, 0.2) if reads_labels else w
                total += chance * np.prod(1 - kappa / w.max() * v * (signs * (SCORE - y) - price * true))
            worst = max(worst, total)
    return worst


def test_the_mean_is_at_most_one_given_covariates() -> None:
    assert mean() <= 1.0 + 1e-12


def test_weights_that_read_labels_are_found() -> None:
    assert mean(reads_labels=True) > 1.05


def test_a_price_that_is_too_high_is_found() -> None:
    """As where the error meant is that of weights without their cap, and the rows have them with it."""
    assert mean(price=1.3) > 1.02
