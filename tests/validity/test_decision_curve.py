"""The bands of decision curves hold the truth at all thresholds at once, about as often as they say."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

import calibrant as cal
from validity.acceptance import refuted

AT = np.arange(1, 20) / 20
FINE = (np.arange(200_000) + 0.5) / 200_000
ALLOWED = 0.05  # asymptotic: of 1,000 sets each at most .051 missed (net benefit); by normal quantiles .09


@cache
def truth(power: float) -> tuple[np.ndarray, np.ndarray]:
    """Net benefit of a uniform score at each threshold, and of treating all; its power is the rate."""
    rate = FINE**power
    odds = AT / (1 - AT)
    worth = rate[:, None] - (1 - rate)[:, None] * odds
    return np.mean(np.where(FINE[:, None] >= AT, worth, 0.0), axis=0), worth.mean(axis=0)


DESIGNS = {  # rows, power of the score that is the rate, rows of a unit, how alike they are
    "calibrated": (1500, 1.0, 0, 0.0),
    "too high": (1500, 2.0, 0, 0.0),
    "few": (600, 1.0, 0, 0.0),
    "clusters": (3000, 1.0, 10, 0.7),
    "units of one fate": (3000, 1.0, 10, 0.99),
    "units, little alike": (3000, 1.0, 10, 0.2),
    "large units": (3000, 1.0, 30, 0.7),  # where bands by rows are plainly wrong
    "few units": (1000, 1.0, 20, 0.5),
}
FEWER = {"twenty units": (1200, 1.0, 60, 0.7)}  # units drawn anew missed in .06 of 600 sets: it is certified


def missed(name: str, seed: int, by_clusters: bool = True) -> tuple[bool, bool]:
    """Tell whether a band misses anywhere: that of the net benefit, and of what it is over treating all."""
    n, power, size, intraclass_correlation = (DESIGNS | FEWER)[name]
    rng = np.random.default_rng([seed, len(name)])
    p, fate, cluster_code = rng.uniform(size=n), rng.uniform(size=n), None
    if size:
        cluster_code = np.arange(n) // size
        fate = ndtr(
            np.sqrt(intraclass_correlation) * rng.normal(size=n // size)[cluster_code]
            + np.sqrt(1.0 - intraclass_correlation) * rng.normal(size=n)
        )
    data = cal.predictions(fate < p**power, p, cluster=cluster_code if by_clusters else None)
    curve = cal.diagnose.decision_curve(data, thresholds=list(AT))
    worth, everyone = truth(power)
    held = np.isin(AT, curve.columns["threshold"])
    off = []
    for prefix, of in (("", worth), ("over_all_", worth - everyone)):
        low, high = (np.array(curve.columns[prefix + end]) for end in ("low", "high"))
        off.append(bool(((of[held] < low) | (of[held] > high)).any()))
    return off[0], off[1]


def times(name: str, sets: int, by_clusters: bool = True) -> tuple[int, int]:
    """Return in how many data sets each band misses."""
    found = [missed(name, seed, by_clusters) for seed in range(sets)]
    return sum(a for a, _ in found), sum(b for _, b in found)


@pytest.mark.parametrize("name", DESIGNS)
def test_bands_hold_at_all_thresholds(name: str) -> None:
    assert not any(refuted(k, 100, ALLOWED) for k in times(name, 100))


@pytest.mark.nightly
@pytest.mark.parametrize("name", DESIGNS)
def test_bands_hold_at_all_thresholds_at_size(name: str) -> None:
    assert not any(refuted(k, 1000, ALLOWED) for k in times(name, 1000))


@pytest.mark.slow
def test_certified_bands_of_few_units_hold() -> None:
    assert not any(refuted(k, 100, ALLOWED) for k in times("twenty units", 100))
