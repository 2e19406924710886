"""Rows that would decide a limit: about so many, at least so many, or no number."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.rows_needed import Need, rounded_gap, rows_to_decide
from calibrant.report import numbers as num
from calibrant.views.population import Population
from calibrant.views.sample import everyone

SPEND = 0.05, 0.05


def drawn(n: int, off: float = 0.0) -> Population:
    """Scores of whole percent, by turns too low and too high."""
    rng = np.random.default_rng([n, 0xDEC])
    p = rng.integers(5, 96, n)
    return everyone(cal.predictions(rng.uniform(size=n) < p / 100 + off * np.where(p % 2, 1, -1), p / 100))


def test_a_small_log_says_at_least_what_a_calibrated_score_takes() -> None:
    """Whatever its noisy estimate within the limit: 30 rows and 3,000 name about the same number. Over it, none."""
    rows = []
    for n, off in ((30, 0.09), (400, 0.05)):
        assert rows_to_decide(drawn(n), (0.0, off, 0.3), 0.02, 100, SPEND, "error") is None
    for n, off in ((30, 0.019), (30, 0.0), (400, 0.015), (3_000, 0.019)):
        need = rows_to_decide(drawn(n), (0.0, off, 0.3), 0.02, 100, SPEND, "error")
        assert need is not None
        assert need.at_least
        rows.append(need.rows(n))
    assert min(rows) > 10_000
    assert max(rows) < 2 * min(rows)


@pytest.mark.parametrize("judge", ["error", "gap"])
def test_a_large_log_whose_estimate_is_not_clear_of_the_limit_has_no_number(judge: str) -> None:
    assert rows_to_decide(drawn(60_000), (0.01, 0.0203, 0.03), 0.02, 100, SPEND, judge) is None


def test_an_error_that_alternates_is_planned_by_the_end_that_was_found() -> None:
    """The low end is six tenths of the way to the limit's distance; it was not reached with the rows there are."""
    need = rows_to_decide(drawn(400_000, 0.025), (0.016, 0.026, 0.03), 0.02, 100, SPEND, "error")
    assert need is not None
    assert not need.at_least
    assert need.times == pytest.approx((0.010 / 0.006) ** 2)


def test_a_score_clearly_within_has_about_the_rows_of_its_estimate() -> None:
    zero, some = (rows_to_decide(drawn(20_000), (0.0, off, 0.06), 0.05, 100, SPEND, "error") for off in (0.0, 0.02))
    assert zero is not None
    assert some is not None
    assert not zero.at_least
    assert 1.0 <= zero.times < some.times


def test_amounts_say_how_surely_they_are_known() -> None:
    written = [num.amount(*of) for of in ((2_143, False), (2_143, True), (10**8, True))]
    assert written == ["about 2,200", "at least 2,200", "over 2 million"]
    assert Need(1.5, True).rows(30) == 45


def test_scores_that_are_all_0_or_1_are_planned_for() -> None:
    """A group whose every score is 0 or 1 has no level between, for which the quadratic penalty is paid."""
    assert 0.0 < rounded_gap(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 200, 0.05) < 0.2
