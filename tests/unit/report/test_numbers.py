from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factories
from calibrant.report import numbers as num

probabilities = st.floats(0, 1, allow_nan=False)
gaps = st.floats(-1, 1, allow_nan=False)


def points(text: str) -> Decimal:
    return Decimal(text.replace(num.MINUS, "-").replace("+", ""))


@given(probabilities, st.none() | probabilities)
def test_bounds_round_outward(p, limit):
    assert points(num.lower_bound(p, limit)) <= num.exact(p) <= points(num.upper_bound(p, limit))


@given(probabilities, probabilities, probabilities)
def test_what_is_written_has_the_verdict_of_the_number(low, high, limit):
    shown_low, shown_high = points(num.lower_bound(low, limit)), points(num.upper_bound(high, limit))
    at = points(num.limit_points(limit))
    assert shown_low >= at if low > limit else shown_low <= at
    assert (high <= limit) == (shown_high <= at)


@given(probabilities, probabilities)
def test_bounds_beside_a_limit_have_its_decimals(p, limit):
    decimals = {
        -points(write(x, limit)).as_tuple().exponent for write in (num.lower_bound, num.upper_bound) for x in (p, limit)
    }
    assert decimals == {-points(num.limit_points(limit)).as_tuple().exponent}


@given(gaps, gaps)
def test_signed_ranges_round_outward_and_keep_what_they_say_about_zero(a, b):
    low, high = sorted((a, b))
    shown_low, shown_high = map(points, num.signed_range(low, high))
    assert shown_low <= num.exact(low)
    assert num.exact(high) <= shown_high
    assert (low > 0) == (shown_low > 0)
    assert (high < 0) == (shown_high < 0)


@pytest.mark.parametrize(
    ("p", "limit", "shown"),
    [
        (0.012, None, "1.2"),
        (0.0121, None, "1.3"),
        (0.0121, 0.0125, "1.21"),
        (0.015, 0.015, "1.5"),
        (1.0, None, "100.0"),
    ],
)
def test_upper_bounds(p, limit, shown):
    assert num.upper_bound(p, limit) == shown


@pytest.mark.parametrize(
    ("p", "limit", "shown"),
    [(0.0, 0.015, "0.0"), (0.0162, 0.015, "1.6"), (0.01504, 0.015, "1.5"), (0.0004, None, "0.0")],
)
def test_lower_bounds(p, limit, shown):
    assert num.lower_bound(p, limit) == shown


def test_a_gap_carries_its_sign_and_zero_none():
    assert [num.gap(x) for x in (0.0237, -0.0237, 0.0001, 0.0)] == ["+2.4", "−2.4", "0.0", "0.0"]


@pytest.mark.parametrize(
    ("limit", "shown"),
    [(0.015, "1.5"), (0.02, "2.0"), (0.0125, "1.25"), (0.1, "10.0"), (1e-5, "0.001"), (0.0, "0.0")],
)
def test_the_limit_keeps_its_digits(limit, shown):
    assert num.limit_points(limit) == shown


def test_thousands_have_narrow_spaces():
    assert num.count(277677) == "277,677"
    assert num.count(999) == "999"


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (7, "7"),
        (99, "99"),
        (101, "110"),
        (14_321, "15,000"),
        (1_150_000, "1,200,000"),
        (1_950_001, "over 2 million"),
        (10**9, "over 2 million"),
    ],
)
def test_rows_needed_have_two_digits_and_round_up(rows, shown):
    assert num.rows_needed(rows) == shown


def test_the_denominator_grows_until_whole_people_tell_the_difference():
    coarse = factories.finding(0.029, 0.046, expected=0.31, observed=0.24)
    fine = factories.finding(0.016, 0.033, rows=40_333, expected=0.5615, observed=0.58518)
    finest = factories.finding(0.016, 0.033, rows=10**6, expected=0.50013, observed=0.50353)
    assert num.denominator([coarse]) == 100
    assert num.denominator([coarse, fine]) == 1_000
    assert num.denominator([finest]) == 10_000
    assert num.of_every(fine, 1_000) == (562, 585)


def test_rates_that_differ_look_different():
    assert num.rates(0.4926, 0.5013) == ("49.26", "50.13")  # they differ by 0.9, not by 0.8
    assert num.rates(0.4926, 0.5012) == ("49.26", "50.12")
    assert num.rates(0.492, 0.501) == ("49.2", "50.1")
    assert num.rates(0.49331, 0.49334) == ("49.331", "49.334")


def test_confidence_in_people():
    assert num.confidence(0.95) == ("95", "100")
    assert num.confidence(0.999) == ("999", "1,000")
    assert num.confidence(1 - 0.05) == ("95", "100")


def test_steps():
    assert [num.step(k) for k in (50, 100, 20, 64)] == ["2%", "1%", "5%", "1/64"]


def test_p_values():
    assert num.p_value(0.785) == "p = 0.79"
    assert num.p_value(0.0123) == "p = 0.012"
    assert num.p_value(0.0004) == "p < 0.001"
    assert num.p_value(0.001, draws=999) == "p = 0.001, the smallest that 999 simulations can show"


def test_infinite_reference_numbers_have_a_name():
    assert num.decimals("inf", 4) == "infinite"
    assert num.decimals(0.12241, 4) == "0.1224"
