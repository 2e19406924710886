"""Ranges of all classes hold simultaneously, and no class is wrongly decided more often than alpha allows."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from validity.acceptance import refuted

ALPHA, SETS, CLASSES, ROWS = 0.1, 100, 8, 400
HALF = 0.5  # of the first class's probability is truly the second's


def drawn(seed):
    """Rows of several classes, and each class's gap given the scores."""
    rng = np.random.default_rng([seed, CLASSES])
    p = rng.dirichlet(np.full(CLASSES, 0.5), ROWS)
    eta = p.copy()
    eta[:, 1] += HALF * p[:, 0]
    eta[:, 0] *= 1.0 - HALF
    y = np.minimum((rng.uniform(size=(ROWS, 1)) > eta.cumsum(axis=1)).sum(axis=1), CLASSES - 1)
    return cal.multiclass_predictions(y, p), (eta - p).mean(axis=0)


@pytest.fixture(scope="module")
def audits():
    """Audits at a limit that no class exceeds, and at one that two do."""
    error = HALF / CLASSES  # of the first two classes, of all rows like these
    result = []
    for seed in range(SETS):
        data, gaps = drawn(seed)
        off = np.abs(gaps[:2])
        high, low = max(off.max(), error) + 1e-9, min(off.min(), error) - 1e-9
        result.append((gaps, *(cal.audit(data, limit=at, alpha=ALPHA, quick=True, seed=seed) for at in (high, low))))
    return result


@pytest.mark.slow
def test_ranges_of_all_classes_hold_simultaneously(audits):
    missed = sum(
        any(not f.gap.guaranteed.low <= gap <= f.gap.guaranteed.high for f, gap in zip(a.classes, gaps, strict=True))
        for gaps, a, _ in audits
    )
    assert not refuted(missed, SETS, ALPHA)
    assert missed <= 2 * ALPHA * SETS


@pytest.mark.slow
def test_no_class_is_wrongly_over_or_within_more_often_than_allowed(audits):
    over = sum(any(f.verdict == "over" for f in a.classes) for _, a, _ in audits)
    within = sum(any(f.verdict == "within" for f in a.classes[:2]) for _, _, a in audits)
    assert not refuted(over, SETS, ALPHA)
    assert not refuted(within, SETS, ALPHA / 2)
