"""The supervisor's tests of a rating scale on portfolios whose truth is a formula: how often they find what is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, norm

from calibrant.apps.grades import concentration
from calibrant.stats.measures import Ranking, ranking

RUNS, ALPHA = 2_000, 0.05
SHARE = np.array([0.15, 0.25, 0.25, 0.2, 0.1, 0.05])
PD = np.array([0.0005, 0.002, 0.006, 0.015, 0.05, 0.15])
EVENT, OTHER = SHARE * PD, SHARE * (1 - PD)
TRUE = float(EVENT @ (np.cumsum(OTHER) - OTHER / 2) / (EVENT.sum() * OTHER.sum()))
MOST = int(binom.isf(1e-6, RUNS, ALPHA))


def fallen(n: int, statistic: Callable[[Ranking], float]) -> int:
    """Return how often an AUC that is what it was is found to have fallen."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(RUNS):
        k = rng.multinomial(n, np.concatenate([EVENT, OTHER])).astype(float)
        if 0 < k[:6].sum() < n:
            r = ranking(np.tile(np.arange(6.0), 2), np.repeat([1, 0], 6).astype(np.int8), k, np.ones(12))
            found += bool(r.error > 0 and norm.sf(statistic(r)) <= ALPHA)
    return found


@pytest.mark.parametrize("n", [1_000, 20_000])
def test_an_auc_that_has_not_fallen_is_rarely_found_to(n: int) -> None:
    slack = 1.3 if n == 1_000 else 1.0  # asymptotic: with 15 defaults the level is a little higher
    assert fallen(n, lambda r: (TRUE - r.auroc) / r.error) <= slack * MOST


@pytest.mark.parametrize("n", [200, 20_000])
def test_a_portfolio_as_concentrated_as_before_is_rarely_found_to_be_more_so(n: int) -> None:
    rng, initial = np.random.default_rng(0), concentration.variation(SHARE)
    drawn = (concentration.variation(rng.multinomial(n, SHARE)) for _ in range(RUNS))
    assert sum(concentration.rise(initial, now, 6) <= ALPHA for now in drawn) <= MOST
