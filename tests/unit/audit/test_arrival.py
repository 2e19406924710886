"""Rows a year, from the one covariate that is a date; nobody's own day is told."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.inputs import arrival

START = datetime.date(2023, 1, 1)


def sketched(days: Any, **more: Any) -> Any:
    rng = np.random.default_rng(1)
    n = len(days)
    dates = np.datetime64(START) + np.asarray(days).astype("timedelta64[D]")
    p = rng.uniform(size=n)
    data = cal.predictions(rng.uniform(size=n) < p, p, {"seen": dates, "x": rng.uniform(size=n), **more})
    return cal.sketch(data, variables="*")


def test_rows_a_year_between_the_first_and_the_last_day() -> None:
    found = arrival(sketched(np.arange(7300) // 10))  # ten rows a day, for 730 days
    assert found is not None
    assert (found["column"], found["first"], found["last"]) == ("seen", "2023-01-02", "2024-12-29")
    assert found["rows_a_year"] == pytest.approx(3700)  # 3,652.5, in two digits, up


def test_a_mistyped_date_changes_nothing() -> None:
    plain = np.arange(7300) // 10
    odd = plain.copy()
    odd[:3] = -40_000
    odd[-3:] = 90_000
    assert arrival(sketched(odd)) == arrival(sketched(plain))


def test_nothing_is_told_without_one_date_or_of_few_days() -> None:
    assert arrival(sketched(np.arange(400) % 3)) is None
    assert arrival(sketched(np.arange(30) * 10)) is None  # all but so many rows are too near an end
    other = np.datetime64(START) + np.arange(400).astype("timedelta64[D]")
    assert arrival(sketched(np.arange(400), due=other)) is None


def test_nothing_is_told_where_later_dates_count_at_the_end_of_an_earlier_range() -> None:
    def month(first: int) -> pa.Table:
        rng = np.random.default_rng(first)
        when = np.datetime64(START) + (first + np.arange(900) // 30).astype("timedelta64[D]")
        p = rng.uniform(size=900)
        return pa.table({"y": (rng.uniform(size=900) < p).astype(int), "p": p, "seen": pa.array(when)})

    january = cal.sketch(month(0), label="y", score="p", variables="*")
    assert arrival(january) is not None
    january.merge(cal.sketch(month(200), spec=january.spec))
    assert january.n == 1800
    assert arrival(january) is None
