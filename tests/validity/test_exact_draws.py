"""What chance is made of: draws of rows are independent, and several p-values are told adjusted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import calibrant as cal
from calibrant.detect.exact_local_test import drawn_classes
from calibrant.stats.kernel_sums import Rows

DRAWS, N = 400, 150
SURE = 1e-6


def independent(counts: np.ndarray, rate: float) -> bool:
    """Tell whether sums over rows of independent outcomes vary as they should: neither less nor more."""
    square = float(((counts - N * rate) ** 2).sum() / (N * rate * (1.0 - rate)))
    return bool(chi2.ppf(SURE, DRAWS) < square < chi2.isf(SURE, DRAWS))


def test_classes_of_rows_are_drawn_independently() -> None:
    p = np.tile([0.4, 0.3, 0.2, 0.1], (N, 1))
    drawn = drawn_classes(p, DRAWS, 3)
    for number, rate in enumerate(p[0]):
        assert independent((drawn == number).sum(axis=0), float(rate))


@pytest.mark.parametrize("joined", [False, True])
def test_outcomes_of_rows_are_drawn_independently(joined: bool) -> None:
    rate, ids = np.full(N, 0.3), np.random.default_rng(0).integers(0, 2**63, N).astype(np.uint64)
    rows = Rows(rate, np.ones(N), np.zeros(N), None if joined else ids)
    assert independent(rows.drawn(0, DRAWS, 1).sum(axis=0), 0.3)


def test_grades_judged_without_draws_are_adjusted_by_holm() -> None:
    rng = np.random.default_rng(7)
    p = rng.choice([0.05, 0.1, 0.2, 0.4], 3000)
    found = cal.detect.jeffreys_test(cal.predictions(rng.uniform(size=3000) < p * 1.15, p), null="asymptotic")
    own = np.array(found.parts["posterior"])
    order = np.argsort(own)
    holm = np.minimum(np.maximum.accumulate(own[order] * (len(own) - np.arange(len(own)))), 1.0)
    assert np.array(found.parts["adjusted_p"])[order] == pytest.approx(holm)
    assert found.p_value == pytest.approx(len(own) * own.min())
