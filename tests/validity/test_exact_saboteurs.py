"""Each broken certificate is rejected by exact probabilities, which the library's own passes."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats import bounds
from calibrant.stats.betting import solve_upper
from calibrant.stats.bounds import lower_bound
from validity import saboteurs
from validity.enumeration import blocked_labels, level_cells, log_mean, miss_probability

ALPHA = 0.05


def bernstein_misses(bound, n=1000, eta=0.002):
    ends = [bound(np.zeros(1), np.array([n]), np.array([k]), ALPHA) for k in range(30)] + [1.0] * (n - 29)
    return miss_probability(ends, [eta], lambda e: e)


def test_moment_without_its_event():
    """One cell, score 0, event rate 0.002, 1000 rows: exact probabilities."""
    assert bernstein_misses(bounds.bernstein_upper) <= ALPHA
    assert bernstein_misses(saboteurs.moment_without_its_event) > 2 * ALPHA


def mean_e_values():
    """Exact means of the e-values of a calibrated score on two values, four blocks."""
    values, rows = np.array([0.3, 0.6]), np.ones((4, 2), dtype=int)
    total = 0.0
    for probability, counts in blocked_labels(rows, values):
        wagers, _ = saboteurs.captured(bounds, lambda c=counts: lower_bound(level_cells(c, values), 0.2))
        total += probability * np.exp([w for w, _, _ in wagers])
    return total


@pytest.mark.slow
def test_forward_weights_that_add_up_to_more_than_one():
    assert mean_e_values().max() <= 1 + 1e-9
    with saboteurs.forward(saboteurs.leaky_forward):
        assert mean_e_values().max() > 2


def test_stake_chosen_on_the_same_block():
    """Caught by enumeration; in simulation the other half of the evidence hides most of it."""
    with saboteurs.bet(saboteurs.stake_from_the_same_block):
        assert mean_e_values().max() > 1.2


def test_sign_of_a_shift_chosen_afterwards():
    with saboteurs.steady(saboteurs.sign_chosen_afterwards):
        assert mean_e_values().max() > 1.4


def penalty_excess(s, n, gamma):
    """Largest ``ln E q - n ln(1 - gamma |e - s|)`` of the notch: positive means invalid."""
    full = np.full(n + 1, s), np.full(n + 1, float(n)), np.arange(n + 1.0)
    log_q, e = -bounds.penalty_cost(*full, gamma)[0], np.linspace(0, 1, 20_001)
    return float((log_mean(log_q, n, e) - n * np.log1p(-gamma * np.abs(e - s))).max())


@pytest.mark.parametrize("broken", [saboteurs.half_a_normaliser, saboteurs.slightly_low_normaliser])
def test_understated_notch(broken):
    """Only brute force sees it: the certificate's slack elsewhere hides it from simulation."""
    assert penalty_excess(0.8, 60, 0.6) <= 0
    with saboteurs.normaliser(broken):
        assert penalty_excess(0.8, 60, 0.6) > 0.005


def tight_misses(bound, n=1000, gamma=0.999):
    """Exact probability of a miss at score 0 and an event rate just above ``1 - delta^(1/n)``."""
    ends = [bound(np.zeros(1), np.array([n]), np.array([k]), gamma) for k in range(4)]
    eta = (1 - ALPHA ** (1 / n)) / gamma + 1e-9
    return float(binom.pmf(np.arange(4), n, eta)[np.array(ends) < eta].sum())


def scaled(factor, s, n, k, gamma):
    """Theorem U that spends ``factor * ln(1 / delta)``."""
    cost = bounds.linear_cost(s, n, k, gamma)
    return solve_upper(cost, np.array([gamma]), np.ones(1), int(n.sum()), ALPHA**factor)


def per_row_short(s, n, k, gamma):
    """Theorem U with one row too many in the exponent."""
    return solve_upper(bounds.linear_cost(s, n, k, gamma), np.array([gamma]), np.ones(1), int(1.05 * n.sum()), ALPHA)


def test_wrong_constants_in_theorem_u():
    right = tight_misses(partial(saboteurs.linear_upper, delta=ALPHA))
    assert 0.0495 < right <= ALPHA
    eta = (1 - ALPHA ** (1 / 1000)) / 0.999
    for broken in (partial(scaled, 0.95), per_row_short):
        bound = broken(np.zeros(1), np.array([1000]), np.array([0]), 0.999)
        assert bound < eta * 0.97
        assert binom.pmf(0, 1000, bound + 1e-9) > 1.1 * ALPHA
