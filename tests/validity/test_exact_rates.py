"""Evidence and limits for the event rate of a group, checked over every outcome that could have been."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from calibrant.stats.betting import Clusters, rate_evidence, rate_limits, ratio_evidence, ratio_limits

RATES = (
    [0.3] * 9,
    [0.02] * 9,
    [0.97] * 8 + [0.05],
    [0.001] * 9,
    [0.9, 0.1] * 4,
    [0.0, 0.0, 0.0, 1.0, 0.5, 0.5],
    [0.11] * 10,
)


def outcomes(rates: Any) -> Any:
    """Every vector of outcomes, with its probability."""
    y = np.array(list(product([0, 1], repeat=len(rates))))
    return y, np.where(y == 1, rates, 1.0 - np.array(rates)).prod(axis=1)


@pytest.mark.parametrize("rates", RATES)
def test_p_values_hold_for_unequal_rates(rates: Any) -> None:
    y, chance = outcomes(rates)
    n, mean = len(rates), float(np.mean(rates))
    p = np.array([rate_evidence(int(v.sum()), n, mean) for v in y])
    for level in np.unique(p):
        assert chance[p <= level].sum() <= level + 1e-9


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_limits_hold_for_unequal_rates(rates: Any, delta: float) -> None:
    y, chance = outcomes(rates)
    limits = np.array([rate_limits(int(v.sum()), len(rates), delta) for v in y])
    mean = float(np.mean(rates))
    assert chance[(limits[:, 0] > mean + 1e-12) | (limits[:, 1] < mean - 1e-12)].sum() <= delta + 1e-9


def test_a_single_case_by_the_binomial_tail_alone_would_not_hold() -> None:
    """Why one case has a rule of its own: Hoeffding's bound begins a case above the mean."""
    rates = [0.3, 0.0, 0.0]
    assert 0.3 > 1.0 - (1.0 - 0.1) ** 3  # the chance of a case, and its binomial tail
    assert rate_evidence(1, 3, float(np.mean(rates))) >= 0.3 - 1e-12


@pytest.mark.parametrize(
    ("cluster", "seed"), [((0, 1, 2, 3, 4, 5), 0), ((0, 0, 0, 1, 1, 1), 1), ((0, 0, 1, 1, 1, 1), 2)]
)
def test_bets_hold_for_weights_and_clusters(cluster: tuple[int, ...], seed: int) -> None:
    """Rows of a cluster share one uniform number: as dependent as can be."""
    rng = np.random.default_rng([0x7A7E, seed])
    at, n = np.array(cluster), len(cluster)
    p, w = rng.uniform(0.05, 0.6, n), rng.uniform(0.2, 3.0, n)
    rate = np.clip(p + rng.uniform(-0.2, 0.3, n), 0.01, 0.99)
    truth = float((w * (rate - p)).sum() / w.sum())
    own = [np.unique(np.append([0.0, 1.0], rate[at == c])) for c in range(at.max() + 1)]
    missed = false = 0.0
    for pick in product(*(range(len(cuts) - 1) for cuts in own)):
        u = np.array([(own[c][k] + own[c][k + 1]) / 2 for c, k in enumerate(pick)])[at]
        chance = float(np.prod([own[c][k + 1] - own[c][k] for c, k in enumerate(pick)]))
        clusters = Clusters.of_residuals((u < rate).astype(float), p, w, at)
        low, high = ratio_limits(clusters, 0.2)
        missed += chance * (not low <= truth <= high)
        false += chance * (ratio_evidence(clusters, truth, 1.0) <= 0.1)
    assert missed <= 0.2
    assert false <= 0.1


def test_many_rows_make_limits_narrow() -> None:
    rng = np.random.default_rng(1)
    p, w = rng.uniform(0.1, 0.5, 2000), rng.uniform(0.5, 2.0, 2000)
    y = (rng.random(2000) < p + 0.2).astype(float)
    low, high = ratio_limits(Clusters.of_residuals(y, p, w, np.arange(2000)), 0.05)
    assert 0.13 < low < 0.2 < high < 0.27
