"""Met means met: of scores of few values that are off by 2.5 points less is certified no oftener than alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.whole import shown_certificate
from calibrant.kernels.tally import MOST
from calibrant.views.population import Population
from validity.acceptance import SETS, check, refuted

ALPHA, OFF = 0.05, 0.025

SIGNS = {
    "odd and even": lambda k: np.where(k % 2, 1.0, -1.0),
    "even and odd": lambda k: np.where(k % 2, -1.0, 1.0),
    "pairs": lambda k: np.where(k // 2 % 2, 1.0, -1.0),
    "fives": lambda k: np.where(k // 5 % 2, 1.0, -1.0),
    "any": lambda k: np.random.default_rng(11).choice([-1.0, 1.0], len(k)),
    "one sign": lambda k: np.ones(len(k)),
    "halves": lambda k: np.where(2 * k < len(k), 1.0, -1.0),
}
GRIDS = {"whole per cent": np.arange(5, 96) / 100, "half steps": np.arange(10, 191) / 200}


def counted(values: Any, off: Any, n: int, *stream: int) -> Population:
    """Return the population of n rows with scores among the values, drawn with equal chances."""
    rng = np.random.default_rng([0x0A11, n, *stream])
    rows = rng.multinomial(n, np.full(len(values), 1 / len(values)))
    events = rng.binomial(rows, values + off)
    by_score = np.stack([rows - events, events], axis=1)
    nothing = np.zeros((1, 1 << 14, 6), dtype=np.int64)
    fine = np.zeros((1, 200, 2), dtype=np.int64)
    np.add.at(fine[0], np.floor(values * 200 + 1e-6).astype(int), by_score)
    return Population(nothing, fine, np.floor(values * 2**30).astype(np.int64), by_score)


def upper(q: Population) -> float:
    return shown_certificate(q, q.judged(100)).run((0.0, ALPHA), 1.0 - ALPHA, 0).interval.high


@pytest.mark.parametrize("sign", ["odd and even", "any"])
def test_as_many_values_as_may_be_at_as_few_rows(sign: str) -> None:
    values = (np.arange(MOST) + 40) / 1104
    off = OFF * SIGNS[sign](np.arange(MOST))
    check(lambda r: upper(counted(values, off, 10 * MOST, 2, r)) < OFF, 300, ALPHA)


def rows(grid: str, sign: str, n: int, *stream: int) -> Any:
    """Return rows as a caller has them."""
    rng, values = np.random.default_rng([0x0A12, n, *stream]), GRIDS[grid]
    k = rng.integers(0, len(values), n)
    off = OFF * SIGNS[sign](np.arange(len(values)))
    return cal.predictions(rng.random(n) < values[k] + off[k], values[k])


@pytest.mark.parametrize("grid", GRIDS)
def test_from_rows_to_verdict(grid: str) -> None:
    def miss(r: int) -> bool:
        found = cal.certify.values(rows(grid, "odd and even", 30_000, r), alpha=ALPHA)
        return not found.interval.low <= OFF <= found.interval.high

    check(miss, 300, ALPHA)


@pytest.mark.parametrize(("grid", "least"), [("whole per cent", 0.015), ("half steps", 0.012)])
def test_an_error_that_alternates_has_a_floor_too(grid: str, least: float) -> None:
    """The sign of the error is learnt value by value: in ten bins of neighbours it cancels."""
    low = [cal.certify.raw_lower(rows(grid, "odd and even", 200_000, 5, r)).interval.low for r in range(12)]
    assert np.median(low) > least
    assert not refuted(sum(v > OFF for v in low), 12, ALPHA)


def floor_of_a_calibrated_score(r: int) -> bool:
    """Tell whether a calibrated score of 91 values is certified to be off."""
    rng = np.random.default_rng([0x0A13, r])
    p = GRIDS["whole per cent"][rng.integers(0, 91, 3_000)]
    return bool(cal.certify.raw_lower(cal.predictions(rng.random(3_000) < p, p), seed=r).interval.low > 0)


def test_a_calibrated_score_of_few_values_has_no_floor() -> None:
    check(floor_of_a_calibrated_score, SETS, ALPHA)
