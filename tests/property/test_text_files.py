"""Text files: the scan equals its oracle, rows are those that other readers find, and nothing depends on blocks."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles.fields
from calibrant.data.sources import delimited
from calibrant.data.sources.files import open_source
from calibrant.data.sources.source import Form
from calibrant.errors import BadInput
from calibrant.kernels import field_patterns as fields
from calibrant.kernels.fields import scan
from effort import examples

PIECES = [*"0123456789+-.,;eE%xT: '\"\t", "\n", "\r", "\r\n", "00", "\u00a0", "\u202f", "é", "nan", "NA", "inf", "true"]
NUMBERS = "0123456789.,+-eE %'x:TZ\u00a0\u202f"
LIKELY = [
    "2024-02-29",
    "1,234",
    "1.234",
    "-123.456",
    "0.123",
    "1.234,5",
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


def code_of(text: str) -> int:
    seen, tally = np.zeros(1, np.uint32), np.zeros(fields.TALLIES, np.int64)
    scan(np.frombuffer(f"{text}\n".encode(), np.uint8), True, ord("\t"), seen, places(1), tally)
    return int(seen[0]).bit_length() - 1


def places(columns: int) -> np.ndarray:
    return np.zeros((columns, fields.CODES, 3), np.int64)


@examples(2000)
@given(st.one_of(st.text(NUMBERS, min_size=1, max_size=14), st.sampled_from(LIKELY)), st.text(NUMBERS, max_size=1))
def test_what_a_field_can_be(text: str, more: str) -> None:
    assert code_of(f"x{text}") == oracles.fields.meaning(f"x{text}")
    for value in (text, text + more, more + text):
        assert code_of(value) == oracles.fields.meaning(value)


@examples(300)
@given(st.lists(st.sampled_from(PIECES), max_size=60), st.integers(1, 4), st.sampled_from(",;\t"))
def test_scan(pieces: list[str], columns: int, delimiter: str) -> None:
    text = "".join(pieces) + "\n"
    raw = text.encode()
    seen, first, tally = np.zeros(columns, np.uint32), places(columns), np.zeros(fields.TALLIES, np.int64)
    scan(np.frombuffer(raw, np.uint8), True, ord(delimiter), seen, first, tally)
    truth = oracles.fields.scan(text, delimiter, columns)
    faults = {k: int(tally[k]) for k in (fields.OPEN, fields.ENDED, fields.RAGGED) if tally[k]}
    assert faults == ({truth.fault[0]: truth.fault[1]} if truth.fault[0] else {})
    assert tally[fields.ROWS] == truth.rows
    if not faults:
        assert (tally[fields.LINE], tally[fields.MULTILINE]) == (truth.lines, truth.multiline)
        found = {
            (int(c), int(code)): (int(first[c, code, 0]), raw[first[c, code, 1] : first[c, code, 2]].decode())
            for c, code in np.argwhere(first[:, :, 0])
            if code != fields.EMPTY  # a line of spaces, which is no row, has one too
        }
        assert {k: (line, v.replace('""', '"')) for k, (line, v) in found.items()} == {
            k: (line, v.replace('""', '"')) for k, (line, v) in truth.first.items() if k[1] != fields.EMPTY
        }


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
