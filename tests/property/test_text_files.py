"""Text files: what is found in them equals an oracle, rows are those of other readers, and blocks change nothing."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.fields
from calibrant.data.sources import delimited, inferred_types
from calibrant.data.sources.files import open_source
from calibrant.data.sources.inferred_types import EMPTY, meaning, new_kinds
from calibrant.data.sources.source import Form
from calibrant.errors import BadInput
from effort import examples

PIECES = [
    *"0123456789+-.,;eE%xT: '\"\t",
    "\n",
    "\r",
    "\r\n",
    "00",
    "\u00a0",
    "\u202f",
    "é",
    "nan",
    "NA",
    "inf",
    "true",
    "\ufeff",
]
NUMBERS = "0123456789.,+-eE %'x:TZ\u00a0\u202f"
LIKELY = [
    "2024-02-29",
    "1,234",
    "1.234",
    "-123.456",
    "0.123",
    "1.234,5",
    "1234.567",
    "1234,567",
    "0.5e3",
    "1234567890123456",
    "0x1F",
    "1e-07",
    "-12E+3",
    "1,5e-07",
    "01e5",
    "12 %",
    "2024-01-01T10:00:00.1234567",
    "2024-01-01 10:00+02:00",
    "N/A",
]


KINDS = frozenset(inferred_types.PATTERNS)


def kind_of(text: str) -> int:
    """Return what a field can be, to Python; Arrow passes it over where that is known, and never where it is not."""
    kind, values = meaning(text.encode()), pa.array([text.encode()], pa.binary())
    news = [] if kind == EMPTY else [(2, kind, 0), (0, kind, 0)]
    both = {2: values, 0: values}
    assert sorted(new_kinds(both, dict.fromkeys(both, frozenset()))) == sorted(news)
    assert sorted(new_kinds(both, {2: KINDS - {kind}, 0: frozenset({kind})})) == news[:1]
    return kind


@examples(2000)
@given(st.one_of(st.text(NUMBERS, min_size=1, max_size=14), st.sampled_from(LIKELY)), st.text(NUMBERS, max_size=1))
def test_what_a_field_can_be(text: str, more: str) -> None:
    assert kind_of(f"x{text}") == oracles.fields.meaning(f"x{text}")
    for value in (text, text + more, more + text):
        assert kind_of(value) == oracles.fields.meaning(value)


def test_what_is_likely_in_a_field() -> None:
    for text in LIKELY:
        assert kind_of(text) == oracles.fields.meaning(text)


def test_days_are_those_of_the_calendar() -> None:
    days = [f"{year:04}-{month:02}-{day:02}" for year in (*range(0, 2100, 100), 2023, 2024)
            for month in range(14) for day in range(33)]  # fmt: skip
    assert [meaning(day.encode()) for day in days] == [oracles.fields.meaning(day) for day in days]


FIELDS = [
    "1",
    "\ufeff2",
    "nAn",
    "2.5",
    "1.234",
    "x",
    "",
    " 7 ",
    '""',
    '"3"',
    '"4" ',
    '"a\nb"',
    '"\r\n9"',
    '"say ""so"""',
    '5"',
    "007",
    "NA",
]


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, int, str]:
    """Return text, how many columns it has, and their delimiter: rows of as many fields, most of them, or any text."""
    columns, delimiter = draw(st.integers(1, 4)), draw(st.sampled_from(",;\t b]"))
    if draw(st.integers(0, 3)) == 0:
        return "".join(draw(st.lists(st.sampled_from(PIECES), max_size=60))) + "\n", columns, delimiter
    row = st.lists(st.sampled_from(FIELDS), min_size=columns, max_size=columns).map(delimiter.join)
    odd = st.sampled_from(["", "  ", "\t", f"1{delimiter}" * columns + "2", '"open', '"a"b', "#"])
    lines = draw(st.lists(row, max_size=12))
    for _ in range(draw(st.integers(0, 2))):
        lines.insert(draw(st.integers(0, len(lines))), draw(odd))
    return "".join(line + draw(st.sampled_from(["\n", "\n", "\r", "\r\n"])) for line in lines), columns, delimiter


@examples(1000, quick=100)
@given(texts(), st.sampled_from([1 << 24, 7, 20, 50]))
def test_scan(written: tuple[str, int, str], block: int) -> None:
    text, columns, delimiter = written
    truth = oracles.fields.scan(text, delimiter, columns)
    with TemporaryDirectory() as folder, patch.object(delimited, "BLOCK", block):
        path = Path(folder) / "a.csv"
        path.write_bytes(text.removesuffix("\n").encode())  # the last line may not end
        head = delimited.Head(path, "utf-8", delimiter, tuple("abcd"[:columns]), 0, 0, True, 1)
        if truth.fault:
            with pytest.raises(BadInput) as e:
                delimited.scanned(head, range(columns))
            assert f": {truth.fault}" in str(e.value)
            return
        scan = delimited.scanned(head, range(columns))
        assert [delimited._line_of(head, scan, row) for row in range(scan.rows)] == truth.rows
    found = {(column, code): where[1:] for column, kinds in scan.places.items() for code, where in kinds.items()}
    assert found == {at: value for at, value in truth.first.items() if at[1] != EMPTY}


VALUES = st.text(st.sampled_from([*'ab01,;\t|" \n\r#é.-']), max_size=6)


@examples(150)
@given(
    rows=st.lists(st.tuples(VALUES, VALUES, st.integers(0, 99)), min_size=1, max_size=30),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    block=st.integers(1, 200),
)
def test_rows_are_those_of_python(
    rows: list[tuple[str, str, int]], delimiter: str, quoting: int, ending: str, block: int
) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=ending)
    writer.writerows([("first", "second", "n"), *rows])
    with TemporaryDirectory() as folder, patch.object(delimited, "BLOCK", block):
        path = Path(folder) / "a.csv"
        path.write_bytes(out.getvalue().encode())
        source = open_source(str(path), (), Form(delimiter=delimiter))
        texts = source.as_text(source.columns)
        held = [tuple(r.values()) for p in texts.parts for b in p.read(texts.columns, ()) for r in b.to_pylist()]
    again = list(csv.reader(io.StringIO(out.getvalue(), newline=""), delimiter=delimiter))[1:]
    assert held == [tuple(r) for r in again]
    assert source.rows == len(rows)
    assert [p.first_row for p in source.parts] == sorted({p.first_row for p in source.parts})


@examples(60)
@given(st.lists(st.sampled_from(PIECES), max_size=80), st.integers(1, 60))
def test_any_bytes_are_read_or_refused_in_one_line(pieces: list[str], block: int) -> None:
    with TemporaryDirectory() as folder:
        path, answers = Path(folder) / "a.csv", []
        path.write_bytes(("a,b\n" + "".join(pieces)).encode())
        for size in (1 << 24, block):
            with patch.object(delimited, "BLOCK", size):
                try:
                    source = open_source(str(path))
                    rows = [r for p in source.parts for b in p.read(source.columns, ()) for r in b.to_pylist()]
                    answers.append((repr(rows), source.rows, source.kinds))
                except BadInput as e:
                    answers.append(str(e))
    assert answers[0] == answers[1]
    assert "\n" not in str(answers[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_rows_are_those_of_duckdb_and_polars(seed: int, tmp_path: Path) -> None:
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    g = np.random.default_rng(seed)
    delimiter, ending = str(g.choice([",", ";", "\t", "|"])), str(g.choice(["\n", "\r\n"]))
    words = ["plain", "two\nlines", 'a "quote"', f"with{delimiter}mark", "é", "", "x" * 3000]
    path, n = tmp_path / "a.csv", int(g.integers(1, 20_000))
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=ending)
        writer.writerow(["id", "note", "p"])
        for i, word in enumerate(g.choice(words, n)):
            writer.writerow([f"{i:07d}", word, 0.5])
    source = open_source(str(path))
    assert source.rows == n
    held = [v for p in source.parts for b in p.read(["id"], ()) for v in b.column(0).to_pylist()]
    options = """header = true, all_varchar = true, quote = '"', escape = '"', strict_mode = true"""
    read = duckdb.connect().sql(f"from read_csv('{path}', delim = '{delimiter}', {options})").fetchall()
    assert held == [row[0] for row in read]
    frame = pl.read_csv(path, separator=delimiter, infer_schema=False).fill_null("")
    assert held == frame["id"].to_list()
    texts = source.as_text(["note"])
    notes = [v for p in texts.parts for b in p.read(["note"], ()) for v in b.column(0).to_pylist()]
    assert notes == frame["note"].to_list()
