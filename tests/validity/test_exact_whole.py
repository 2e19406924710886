"""The public functions on one score, exactly: every number of cases of fifty rows, with its probability."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.audit.checks.everyone import gap
from calibrant.certify.whole import bounded_variation, distance, rounded, values
from calibrant.stats.bounds import product_upper
from calibrant.views.sample import everyone
from validity.designs import CALIBRATED_ONE, FEW, ONE, TWO, ZERO, Design
from validity.enumeration import blocked_labels

# the whole file takes seconds: it waits for --all
pytestmark = pytest.mark.slow

N, ALPHA = 50, 0.1
TINY = 2e-9  # scores are whole multiples of 2^-30
ATOMS = (ONE, CALIBRATED_ONE, ZERO)
SCORE = {ONE: 0.3, CALIBRATED_ONE: 0.5, ZERO: 0.0}


def rows(design: Design, events: int) -> Any:
    return cal.predictions(np.arange(N) < events, np.full(N, SCORE[design]))


def upper(certify: Callable[..., Any], **settings: Any) -> Callable[[Any], tuple[float, float]]:
    """Return the ends of a certificate of which the low one is trivial: the high one knows the cases alone."""
    return lambda data: (-1.0, certify(data, alpha=ALPHA, side="upper", **settings).interval.high)


def both(data: Any) -> tuple[float, float]:
    found = gap(everyone(data), ALPHA).interval
    return found.low, found.high


CERTIFIED: dict[str, tuple[Callable[[Any], tuple[float, float]], Callable[[Design], Callable[[Any], Any]]]] = {
    "rounded to 10": (upper(rounded, steps=10), lambda d: lambda e: np.abs(e - np.floor(SCORE[d] * 10 + 0.5) / 10)),
    "rounded to 100": (upper(rounded, steps=100), lambda d: lambda e: np.abs(e - SCORE[d])),
    "values": (upper(values), lambda d: lambda e: np.abs(e - SCORE[d])),
    "distance": (upper(distance), lambda d: lambda e: np.abs(e - SCORE[d])),
    "bounded variation": (upper(bounded_variation, variation=1.0), lambda d: lambda e: np.abs(e - SCORE[d])),
    "gap": (both, lambda d: lambda e: e - SCORE[d]),
}


@cache
def ends(name: str, design: Design) -> tuple[np.ndarray, np.ndarray]:
    low, high = zip(*(CERTIFIED[name][0](rows(design, k)) for k in range(N + 1)), strict=True)
    return np.array(low), np.array(high)


@pytest.mark.slow
@pytest.mark.parametrize("design", ATOMS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", CERTIFIED)
def test_no_event_rate_is_missed_too_often(name: str, design: Design) -> None:
    """Not that of the design alone: every rate, and those just beyond each end."""
    low, high = ends(name, design)
    truth = CERTIFIED[name][1](design)
    near = np.concatenate([SCORE[design] + s * (v + w) for v in (low, high) for s in (1, -1) for w in (1e-8, -1e-8)])
    rates = np.concatenate([np.linspace(0, 1, 201), near[(near >= 0) & (near <= 1)]])
    for rate in rates:
        wrong = (low > truth(rate) + TINY) | (high < truth(rate) - TINY)
        assert binom.pmf(np.arange(N + 1), N, rate)[wrong].sum() <= ALPHA + 1e-12, rate


def test_a_shift_spends_half_on_each_side() -> None:
    """At a score of one half the two ends are alike, and neither is wrong with more than its half."""
    low, high = ends("gap", CALIBRATED_ONE)
    assert low == pytest.approx(-high[::-1], abs=1e-8)
    for rate in np.concatenate([np.linspace(0, 1, 201), 0.5 + low - 1e-8]):
        if 0.0 <= rate <= 1.0:
            assert binom.pmf(np.arange(N + 1), N, rate)[low > rate - 0.5 + TINY].sum() <= ALPHA / 2


@pytest.mark.parametrize(
    ("design", "values", "rates", "n"),
    [(TWO, (0.3, 0.7), (0.5, 0.5), (12, 13)), (FEW, (0.05, 0.3, 0.62, 0.9), (0.1, 0.25, 0.62, 0.99), (4, 3, 3, 3))],
    ids=["two", "few"],
)
def test_the_upper_end_of_some_scores_over_every_table(
    design: Design, values: tuple[float, ...], rates: tuple[float, ...], n: tuple[int, ...]
) -> None:
    """Given how many rows have each score: the error is that of these rows."""
    size, p = np.array(n), np.array(values)
    error = float(size @ np.abs(p - rates) / size.sum())
    wrong = sum(
        chance
        for chance, counts in blocked_labels(size[None], np.array(rates))
        if product_upper(p, size, counts[0, :, 1], 0.3) < error - 1e-9
    )
    assert wrong <= 0.3, design.name
