"""Coverage of the mean over sites and of a new site."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

import calibrant as cal
from calibrant.stats.clusters.sites import Fitted, Likelihoods, fitted
from validity.acceptance import refuted

MEAN, ALPHA, RUNS = 0.2, 0.05, 120
K = 6
SIZE, RATE, TAU = 60, 0.4, 0.6
Fit = Callable[[Likelihoods], Fitted]


def right(sites: Likelihoods) -> Fitted:
    return fitted(sites, ALPHA)


def coverage(fit: Fit, k: int = K, tau: float = TAU, size: int = SIZE, rate: float = RATE) -> tuple[int, int]:
    """Return in how many data sets the mean, and a new site, are missed."""
    rng, missed = np.random.default_rng(11), np.zeros(2, dtype=int)
    for _ in range(RUNS):
        site = np.repeat(np.arange(k), size)
        x = logit(rate) + rng.normal(0.0, 0.7, len(site))
        gap, new = rng.normal(MEAN, tau, k), rng.normal(MEAN, tau)
        y = (rng.random(len(site)) < expit(x + gap[site])).astype(float)
        found = fit(Likelihoods(site, x, y, k))
        missed += [not found.low <= MEAN <= found.high, not found.new_low <= new <= found.new_high]
    return int(missed[0]), int(missed[1])


@pytest.mark.parametrize("design", [{}, {"k": 12, "size": 20, "rate": 0.1, "tau": 0.0}])
def test_mean_and_new_site_are_held_at_the_rate_that_the_page_tells(design):
    mean, new = coverage(right, **design)
    assert not refuted(mean, RUNS, 0.05)
    assert not refuted(new, RUNS, 0.10)  # the prediction interval takes tau as known: see the page


def patients(seed: int, k: int) -> cal.Predictions:
    """Rows of patients of hospitals, at each of which every score is right."""
    rng, each = np.random.default_rng([0x517E, seed]), 5
    cluster_code = np.repeat(np.arange(k * 10), each)
    p = rng.uniform(0.1, 0.6, len(cluster_code))
    z = np.sqrt(0.7) * rng.normal(size=k * 10)[cluster_code] + np.sqrt(0.3) * rng.normal(size=len(cluster_code))
    table = {"hospital": (cluster_code // 10).astype(str)}
    return cal.predictions((norm.cdf(z) < p).astype(int), p, table, cluster=cluster_code)


@pytest.mark.parametrize("k", [6, 15])
def test_sites_of_patients_are_alike_at_the_rate_asked(k):
    runs = 40
    found = sum(
        cal.diagnose.heterogeneity(patients(seed, k), site="hospital").settings["p_value"] <= ALPHA
        for seed in range(runs)
    )
    assert not refuted(found, runs, ALPHA)
