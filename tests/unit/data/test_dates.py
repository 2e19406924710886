"""Dates as countries write them: read where all values of a column fit one reading, asked about where two fit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data.layouts import text_dates
from calibrant.data.sources import delimited
from calibrant.data.sources.files import open_source
from calibrant.data.sources.source import Form, Source
from calibrant.inspect.looked import Column, Look

LATE, DAY = datetime(2019, 1, 31, 13, 5, tzinfo=UTC), date(2019, 1, 31)


def rows_of(opened: Source, column: str) -> pa.Array:
    return pa.chunked_array([b.column(0) for part in opened.parts for b in part.read([column], ())]).combine_chunks()


def when(seen: Look) -> Column:
    (column,) = (c for c in seen.columns if c.name == "when")
    return column


def written(folder: Path, values: Sequence[str]) -> str:
    rows = "".join(f"{i % 2};0,{i % 89 + 10};{value}\n" for i, value in enumerate(values))
    (folder / "log.csv").write_text(f"y;p;when\n{rows}", encoding="utf-8")
    return str(folder / "log.csv")


@pytest.mark.parametrize(
    "values",
    [
        ["31.01.2019", "01.02.2019"],
        ["31.1.19", "1.2.19"],
        ["1.1.2019", "3.4.2019", "NA", ""],
        ["31/01/2019", "01/02/2019"],
        ["1/31/2019", "2/1/2019"],
        ["1/31/19", "2/1/19"],
        ["31-01-2019", "01-02-2019"],
        ["2019/1/31", "2019/2/1"],
        ["31-JAN-19", "01-FEB-19"],
        ["31 January 2019", "1 Sept 2019"],
        ["Jan. 31, 2019", "May 1, 2019"],
    ],
)
def test_dates_that_fit_one_reading(values: list[str], tmp_path: Path) -> None:
    """The last value alone would fit two; another tells which."""
    opened = open_source(written(tmp_path, values))
    result = rows_of(opened, "when")
    assert pa.types.is_date32(result.type)
    first = result[0].as_py()
    assert first == (DAY if "31" in values[0] else date(2019, 1, 1))
    assert result.null_count == sum(v in ("NA", "") for v in values)
    assert when(cal.look(written(tmp_path, values * 40))).kind == "date"


@pytest.mark.parametrize(
    ("value", "zoned"),
    [
        ("2019-01-31T08:05:00-0500", True),
        ("2019-01-31 13:05:00 UTC", True),
        ("2019-01-31T13:05:00Z", True),
        ("2019-01-31 13:05:00.000 +0000", True),
        ("2019-01-31T08:05-05", True),
        ("1/31/2019 1:05 PM", False),
        ("1/31/2019, 01:05:00 pm", False),
        ("31.1.2019 13:05", False),
    ],
)
def test_times_of_day_and_zones(value: str, zoned: bool, tmp_path: Path) -> None:
    result = rows_of(open_source(written(tmp_path, [value])), "when")
    assert result.type == pa.timestamp("us", "UTC" if zoned else None)
    assert result[0].as_py().replace(tzinfo=UTC) == LATE
    midnight, noon = text_dates(pa.array(["5 May 2019 12:09 am", "5 May 2019 12:09 pm"]))  # type: ignore[misc]
    assert (midnight.as_py().hour, noon.as_py().hour) == (0, 12)


@pytest.mark.parametrize(
    "values",
    [
        ["31.02.2019", "01.03.2019"],  # no such day
        ["1.1.45", "1.1.19"],  # of which century?
        ["31/01/2019", "1/31/2019"],  # two orders
        ["2019-01-31 13:05:00 UTC", "2019-01-31 13:05:00", "2019-1-31 13:05:00"],  # with a zone and without
    ],
)
def test_what_no_reading_fits_stays_text_and_is_said(values: list[str], tmp_path: Path) -> None:
    path = written(tmp_path, values * 30)
    assert rows_of(open_source(path), "when").to_pylist() == values * 30
    seen = cal.look(path)
    assert when(seen).kind == "text"
    assert "not all of which can be read in one way. If they are dates," in " ".join(str(seen).split())
    assert "when" not in [name for names in seen.candidates.values() for name in names]


def test_two_readings_are_asked_about(tmp_path: Path) -> None:
    path = written(tmp_path, ["01/02/2019", "03/04/2019"] * 60)
    seen = cal.look(path)
    assert when(seen).kind == "text"
    assert "begin with the day or with the month. Pass dates='day-first' (--dates day-first)" in " ".join(
        str(seen).split()
    )
    for order, first in (("day-first", date(2019, 2, 1)), ("month-first", date(2019, 1, 2))):
        opened = open_source(path, (), Form(dates=order))
        assert rows_of(opened, "when")[0].as_py() == first
        asked = cal.look(path, dates=order)
        assert when(asked).low == str(first)
        assert f"--dates {order}" in asked.command
    with pytest.raises(cal.BadInput, match="pass 'day-first' or 'month-first'"):
        cal.look(path, dates="year-first")


def test_the_option_never_turns_what_the_column_tells(tmp_path: Path) -> None:
    path = written(tmp_path, ["31/01/2019", "01/02/2019"])
    assert rows_of(open_source(path, (), Form(dates="month-first")), "when").to_pylist() == [DAY, date(2019, 2, 1)]


def test_every_part_and_every_file_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one value above 12 is in the last block of the second file."""
    monkeypatch.setattr(delimited, "LEAST_BLOCK", 64)
    monkeypatch.setattr(delimited, "AT_ONCE", 1)
    for file, values in (("a.csv", ["01/02/2019"] * 40), ("b.csv", ["03/04/2019"] * 40 + ["12/13/2019"])):
        (tmp_path / file).write_text("y,when\n" + "".join(f"1,{v}\n" for v in values))
    opened = open_source(str(tmp_path / "*.csv"))
    result = rows_of(opened, "when")
    assert len(opened.parts) > 4
    assert (result[0].as_py(), result[-1].as_py()) == (date(2019, 1, 2), date(2019, 12, 13))


@pytest.mark.parametrize(
    "value", ["1.2", "1.10.3", "10:30", "Mayor 5", "2019", "12-34", "19-01-28", "1/2", "a 1, 2019"]
)
def test_what_only_looks_a_little_like_a_date(value: str, tmp_path: Path) -> None:
    assert text_dates(pa.array([value])) is None
    assert rows_of(open_source(written(tmp_path, [value, "x"])), "when").type != pa.date32()


def test_stored_text_is_a_date_where_each_value_tells(tmp_path: Path) -> None:
    """Text of frames and typed files is read batch by batch: no other value can tell."""
    n = 90
    frame = pa.table({"y": [0, 1] * (n // 2), "p": [0.1 + 0.008 * i for i in range(n)]})
    german = frame.append_column("when", pa.array([f"{i % 28 + 1:02}.{i % 12 + 1}.2019" for i in range(n)]))
    assert when(cal.look(german)).kind == "date"
    french = frame.append_column("when", pa.array([f"{i % 28 + 1:02}/{i % 12 + 1}/2019" for i in range(n)]))
    seen = cal.look(french)
    assert when(seen).kind == "text"
    assert "whose order of day and month no file states. Store dates as such" in " ".join(str(seen).split())
