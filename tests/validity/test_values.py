"""Met means met: of scores of few values that are off by 2.5 points less is certified no oftener than alpha."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.judged import judged_of
from calibrant.kernels.values import MOST
from calibrant.views import population as views
from calibrant.views.population import Population, everyone
from validity import saboteurs
from validity.acceptance import check, refuted

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
    cases = rng.binomial(rows, values + off)
    by_score = np.stack([rows - cases, cases], axis=1)
    nothing = np.zeros((1, 1 << 14, 6), dtype=np.int64)
    fine = np.zeros((1, 200, 2), dtype=np.int64)
    np.add.at(fine[0], np.floor(values * 200 + 1e-6).astype(int), by_score)
    return Population(nothing, fine, np.floor(values * 2**30).astype(np.int64), by_score)


def upper(q: Population) -> float:
    return judged_of(q, 100, (0.0, ALPHA), 1.0 - ALPHA, 0).interval.high


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("n", [2_000, 20_000, 200_000])
def test_what_is_off_is_not_met(grid: str, sign: str, n: int) -> None:
    values = GRIDS[grid]
    off = OFF * SIGNS[sign](np.arange(len(values)))
    check(lambda r: upper(counted(values, off, n, 1, r)) < OFF, 200 if n < 200_000 else 100, ALPHA)


@pytest.mark.parametrize("sign", ["odd and even", "any"])
def test_as_many_values_as_may_be_at_as_few_rows(sign: str) -> None:
    values = (np.arange(MOST) + 40) / 1104
    off = OFF * SIGNS[sign](np.arange(MOST))
    check(lambda r: upper(counted(values, off, 10 * MOST, 2, r)) < OFF, 60, ALPHA)


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

    check(miss, 60, ALPHA)


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
    check(floor_of_a_calibrated_score, 150, ALPHA)


# ---- saboteurs ----


def always_shown(_: Any) -> bool:
    """The display is judged whatever the score is."""
    return False


def test_signs_of_values_learnt_on_the_same_rows_are_rejected() -> None:
    with saboteurs.wager(saboteurs.signs_from_the_same_rows):
        assert refuted(sum(map(floor_of_a_calibrated_score, range(30))), 30, ALPHA)


def misses(judged: Callable[[int], float], runs: int) -> int:
    return sum(judged(r) < OFF for r in range(runs))


@pytest.mark.parametrize(("grid", "steps", "n"), [("whole per cent", 50, 200_000), ("half steps", 100, 200_000)])
def test_a_display_in_place_of_values_is_rejected(grid: str, steps: int, n: int) -> None:
    """Every second value is moved to its neighbour, and errors of opposite signs cancel."""
    with patch.object(views, "few", always_shown):
        found = misses(
            lambda r: (
                judged_of(everyone(rows(grid, "odd and even", n, r)), steps, (0.0, ALPHA), 1.0 - ALPHA, 0).interval.high
            ),
            12,
        )
    assert refuted(found, 12, ALPHA)
    kept = misses(lambda r: upper(everyone(rows(grid, "odd and even", n, r))), 12)
    assert not refuted(kept, 12, ALPHA)


def test_values_rounded_to_two_per_cent_are_rejected() -> None:
    values, off = GRIDS["whole per cent"], OFF * SIGNS["odd and even"](np.arange(91))

    def rounded(r: int) -> float:
        q = counted(values, off, 200_000, 3, r)
        kept, at = np.unique(q.scores >> 24, return_inverse=True)  # 64 steps: neighbours fall together
        by_score = np.zeros((len(kept), 2), dtype=np.int64)
        np.add.at(by_score, at, q.by_score)
        return upper(Population(q.raw, q.fine, (kept << 24) + (1 << 23), by_score))

    assert refuted(misses(rounded, 40), 40, ALPHA)


def test_values_beyond_the_limit_that_are_dropped_are_rejected() -> None:
    """The error of the values that fit is small, that of the others is large."""
    values = (np.arange(2 * MOST) + 80) / 2400
    off = np.where(np.arange(2 * MOST) < MOST, 0.0, 2 * OFF)

    def kept(r: int) -> float:
        q = counted(values, off, 400_000, 4, r)
        return upper(Population(q.raw, q.fine, q.scores[:MOST], q.by_score[:MOST]))

    assert refuted(misses(kept, 12), 12, ALPHA)
