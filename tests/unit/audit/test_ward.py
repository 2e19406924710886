"""A ward of 6,000 stays whose patients return: one site is nine points off, and most groups are small."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import calibrant as cal

SITES = np.array(["Lakeside", "Harbour", "Hill", "Valley", "County"])
SEED = 177  # with which Valley is 4.4 standard errors of its patients off
BY = "site", "sex", "age", "ethnicity"


@cache
def ward(off: float, seed: int) -> tuple[cal.Predictions, np.ndarray]:
    """Stays with what patients bring to their site, and the residuals of Valley, a sum a patient."""
    rng, n = np.random.default_rng(seed), 6_000
    patient, site = rng.integers(0, 4_200, n), SITES[rng.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])]
    p, sex, age = rng.beta(2, 7, n).round(4), rng.choice(["f", "m"], n), rng.integers(20, 95, n)
    ethnicity = np.array(list("ABCDEF"))[rng.choice(6, n, p=[0.6, 0.15, 0.1, 0.08, 0.04, 0.03])]
    valley = site == "Valley"
    y = (rng.uniform(size=n) < np.clip(p + off * valley, 0, 1)).astype(int)
    columns = {"site": site, "sex": sex, "age": age, "ethnicity": ethnicity}
    sums = np.bincount(patient[valley], (y - p)[valley])[np.unique(patient[valley])]
    return cal.predictions(y, p, columns, cluster=patient), sums


def judged(off: float) -> cal.AuditRecord:
    return cal.audit(ward(off, SEED)[0], by=BY, limit=0.05, quick=True)


@pytest.mark.slow
def test_the_site_that_is_off_is_over_or_shown_with_its_certified_gap() -> None:
    sums = ward(0.09, SEED)[1]
    assert sums.sum() / np.sqrt((sums**2).sum()) == pytest.approx(4.4, abs=0.1)
    record = judged(0.09)
    assert len(record.groups) == 21
    (valley,) = (g for g in record.groups if g.variables == (("site", "Valley"),))
    assert valley.verdict == "over" or valley.error_shown
    assert valley.gap.guaranteed.low > 0.0
    assert valley.gap.guaranteed.low <= 0.09 <= valley.gap.guaranteed.high
    assert [g.id for g in record.groups if g.error_shown] == [valley.id]
    assert record.error_shown["groups"]


@pytest.mark.slow
def test_of_the_same_ward_without_that_error_none_is_shown() -> None:
    record = judged(0.0)
    assert not any(record.error_shown.values())
    assert "over" not in {g.verdict for g in record.groups}
