"""The bands of decision curves hold the truth at all thresholds at once, about as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import calibrant as cal
from validity.acceptance import count, refuted

AT = np.arange(1, 20) / 20
FINE = (np.arange(200_000) + 0.5) / 200_000
ALLOWED = 0.1  # asymptotic: of 400 sets each .033 to .063 missed, of units .078 and .088; by rows of units .27


def truth(rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Net benefit of a uniform score at each threshold, and of treating all."""
    odds = AT / (1 - AT)
    worth = rate[:, None] - (1 - rate)[:, None] * odds
    return np.mean(np.where(FINE[:, None] >= AT, worth, 0.0), axis=0), worth.mean(axis=0)


DESIGNS = {  # rows, power of the score that is the rate, rows of a unit
    "calibrated": (1500, 1.0, 0),
    "too high": (1500, 2.0, 0),
    "few": (600, 1.0, 0),
    "units": (3000, 1.0, 10),
}

LARGE = {"large units": (3000, 1.0, 30)}  # where bands by rows are plainly wrong


def missed(name: str, seed: int, over: bool, by_units: bool = True) -> bool:
    """Tell whether a band misses anywhere: that of the net benefit, or of what it is over treating all."""
    n, power, size = (DESIGNS | LARGE)[name]
    rng = np.random.default_rng([seed, len(name)])
    p, fate, unit = rng.uniform(size=n), rng.uniform(size=n), None
    if size:
        unit = np.arange(n) // size
        fate = ndtr(np.sqrt(0.7) * rng.normal(size=n // size)[unit] + np.sqrt(0.3) * rng.normal(size=n))
    data = cal.predictions(fate < p**power, p, cluster=unit if by_units else None)
    curve = cal.diagnose.decision_curve(data, thresholds=list(AT))
    worth, everyone = truth(FINE**power)
    held = np.isin(AT, curve.columns["threshold"])
    true = (worth - everyone if over else worth)[held]
    low, high = (np.array(curve.columns["over_all_" + end if over else end]) for end in ("low", "high"))
    return bool(((true < low) | (true > high)).any())


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("name", DESIGNS)
def test_bands_hold_at_all_thresholds(name: str, over: bool) -> None:
    assert not refuted(count(lambda seed: missed(name, seed, over), 150), 150, ALLOWED)


def test_bands_by_rows_of_units_are_found_out() -> None:
    assert refuted(count(lambda seed: missed("large units", seed, False, by_units=False), 80), 80, ALLOWED)
