"""What a field of text can be interpreted as, and rows and fields of a short text by regular expressions.

Longer texts are looked at byte by byte, by `calibrant.kernels.fields`, which finds the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# What a field can be, as numbers of bits.

EMPTY, ABSENT, WHOLE, REAL, INFINITE, BOOLEAN = 0, 1, 2, 3, 4, 5
CODE, LONG, HEX, PERCENT = 6, 7, 8, 9  # digits with a leading zero; more than 15 of them; 0x1F; 12%
COMMA, EITHER, GROUPED = 10, 11, 12  # 0,5 has a decimal comma; 1,234 may have; 1,234,567 and 1 234 have thousands
DATE, TIME, FINE, ZONED = 13, 14, 15, 16  # 2024-01-31; with a time; in less than microseconds; with a zone
POINTED = 17  # 1.234 may have thousands, where decimals stand behind commas
SCIENTIFIC = 18  # 1e-07, whatever decimals stand behind
TEXT = 19
CODES = 20
DONE = np.uint32(1 << TEXT)

# What `scan` adds up.

TAKEN, ROWS, LINE, MULTILINE, RAGGED, FIELDS, OPEN, ENDED = 0, 1, 2, 3, 4, 5, 6, 7
TALLIES = 8

MOST_DIGITS = 15  # of an integer that a double holds, whatever its digits
ODDLY = 18  # not recognised by digits alone
WORDS = {
    ABSENT: (
        *("na", "n/a", "n.a.", "#n/a", "#na", "<na>", "nan", "-nan", "nat", "null", "none", "nil", "\\n"),
        *("-", "--", "?", ".", "..", "..."),
    ),
    INFINITE: ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"),
    BOOLEAN: ("true", "false"),
}

EXPONENT = rb"([eE][+-]?[0-9]+)?"
MARKS = (b",", rb"\.", b" ", b"'", b"\xc2\xa0", b"\xe2\x80\xaf")  # between thousands; the last two do not break
CLOCK = rb"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.([0-9]{1,9}))?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
DATED = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})([T ]" + CLOCK + rb")?")
PATTERNS = [  # the first that fits tells
    (code, re.compile(pattern))
    for code, pattern in (
        (CODE, rb"[+-]?0[0-9]+((\.[0-9]*)|(,[0-9]+))?" + EXPONENT),
        (WHOLE, rb"[+-]?[0-9]{1,%d}" % MOST_DIGITS),
        (LONG, rb"[+-]?[0-9]+"),
        (SCIENTIFIC, rb"[+-]?[0-9]+[eE][+-]?[0-9]+"),
        (POINTED, rb"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}"),
        (REAL, rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)" + EXPONENT),
        (EITHER, rb"[+-]?[1-9][0-9]{0,2},[0-9]{3}"),
        (COMMA, rb"[+-]?[0-9]*,[0-9]+" + EXPONENT),
        (PERCENT, rb"[+-]?([0-9]+|[0-9]*[.,][0-9]+) *%"),
        (HEX, rb"[+-]?0x[0-9a-fA-F]+"),
        *((GROUPED, rb"[+-]?[0-9]{1,3}(%b[0-9]{3})+((?!%b)[.,][0-9]*)?" % (m, m)) for m in MARKS),
    )
]
SPELT = {word.encode(): code for code, words in WORDS.items() for word in words}
PLAINLY = {  # fields of these kinds and of no other: so that all that are known are passed over together
    EMPTY: rb"",
    WHOLE: rb"[+-]?(?:0|[1-9][0-9]{0,%d})" % (MOST_DIGITS - 1),
    POINTED: rb"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}",
    REAL: rb"[+-]?(?![1-9][0-9]{0,2}\.[0-9]{3}\n)(?:(?:0|[1-9][0-9]*+)\.[0-9]*+|\.[0-9]++)",
}
QUOTED = re.compile(rb'"([^"]*+(?:""[^"]*+)*+)"')
LINE_END = re.compile(rb"\r\n|\r|\n")


class _Field(NamedTuple):
    """A field: its line, where its text begins and ends, and whether it may be a number."""

    line: int
    begin: int
    end: int
    plain: bool


class _Fault(Exception):
    """Rows end here: which tally is to say so, and in which line."""


def scan(
    data: bytes,
    final: bool,
    delimiter: int,
    seen: NDArray[np.uint32],
    first: NDArray[np.int64],
    tally: NDArray[np.int64],
) -> None:
    """Find the rows of a block of bytes; see `calibrant.kernels.fields.scan`."""
    if not final and data.endswith(b"\r"):  # the line end may go on in the next block
        data = data[: max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1]
    if b'"' in data:
        _scan_quoted(data, bytes([delimiter]), seen, first, tally)
    else:
        _scan_lines(data, bytes([delimiter]), seen, first, tally)


@lru_cache(1 << 14)
def meaning(field: bytes) -> int:
    """What a field can be; spaces around it do not count."""
    text = field.strip(b" \t")
    if not text:
        return EMPTY
    if date := DATED.fullmatch(text):
        return _date(date)
    code = next((code for code, pattern in PATTERNS if pattern.fullmatch(text)), TEXT)
    return SPELT.get(text.lower(), TEXT) if code == TEXT else code


def _date(result: re.Match[bytes]) -> int:
    year, month, day = (int(result[i]) for i in (1, 2, 3))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    fine = len(result[8] or b"") > 6
    if not (1 <= month <= 12 and 1 <= day <= days[month - 1]) or (fine and result[9]):
        return TEXT
    return DATE if not result[4] else ZONED if result[9] else FINE if fine else TIME


def _note(seen: NDArray[np.uint32], first: NDArray[np.int64], column: int, code: int, at: _Field) -> None:
    if not seen[column] & np.uint32(1 << code):
        seen[column] |= np.uint32(1 << code)
        first[column, code] = at.line, at.begin, at.end


def mean(data: NDArray[np.uint8], odd: NDArray[np.int64], seen: NDArray[np.uint32], first: NDArray[np.int64]) -> None:
    """Note what fields can be: their columns, lines, where they begin and end, and what is known of them."""
    for column, line, begin, end, code in odd.tolist():
        if not seen[column] & DONE:
            code = meaning(data[begin:end].tobytes()) if code == ODDLY else code
            _note(seen, first, column, code, _Field(line, begin, end, True))


# ---- no quotes: a line is a row ----


def _scan_lines(
    data: bytes, delimiter: bytes, seen: NDArray[np.uint32], first: NDArray[np.int64], tally: NDArray[np.int64]
) -> None:
    # 1. lines, up to the first whose fields are not as many as there are columns
    lines, columns, start = data.splitlines(), len(seen), int(tally[TAKEN])
    if start:
        lines = data[start:].splitlines()
    fields = np.array([line.count(delimiter) for line in lines], dtype=np.int64) + 1
    wrong = [i for i in np.flatnonzero(fields != columns) if fields[i] > 1 or lines[i].strip(b" \t")]
    whole = wrong[0] if wrong else len(lines)
    ends = start + np.cumsum([len(line) for line in data[start:].splitlines(keepends=True)])
    before = int(tally[LINE])
    if wrong:
        tally[RAGGED], tally[FIELDS] = before + whole + 1, fields[whole]
    rows = [i for i in range(whole) if fields[i] == columns and (columns > 1 or lines[i])]
    blank = [i for i in range(whole) if fields[i] != columns and lines[i]] if len(rows) < whole else []
    tally[ROWS] += len(rows)
    tally[LINE] += whole
    tally[TAKEN] = ends[whole - 1] if whole else start

    # 2. what the fields of each column can be
    def begin(i: int) -> int:
        return int(ends[i - 1]) if i else start

    for i in blank[:1]:  # of spaces: no row, yet a field
        if not seen[0] & DONE:
            _note(seen, first, 0, EMPTY, _Field(before + i + 1, begin(i), begin(i) + len(lines[i]), True))
    if all(seen & DONE):
        return
    split = [lines[i].split(delimiter) for i in rows]
    for column in np.flatnonzero((seen & DONE) == 0).tolist():
        for row, code in _news([fields[column] for fields in split], int(seen[column])):
            at = begin(rows[row]) + sum(len(v) + 1 for v in split[row][:column])
            _note(seen, first, column, code, _Field(before + rows[row] + 1, at, at + len(split[row][column]), True))


def _news(values: list[bytes], seen: int) -> Iterator[tuple[int, int]]:
    """Yield each kind of field that was not seen before, and the number of the first such; text ends it."""
    text, at, row = b"\n".join(values) + b"\n" if values else b"", 0, 0
    while at < len(text):
        after = _passing(seen).match(text, at).end()  # type: ignore[union-attr]  # of nothing at least
        row += text.count(b"\n", at, after)
        if after == len(text):
            return
        at = text.index(b"\n", after) + 1
        code = meaning(text[after : at - 1])
        if not seen & (1 << code):
            yield row, code
            seen |= 1 << code
            if code == TEXT:
                return
        row += 1


@lru_cache(16)
def _passing(seen: int) -> re.Pattern[bytes]:
    """What passes over fields of the kinds that were seen, as far as they are plain.

    Not possessive: up to Python 3.11.4 a possessive repeat of what can go back ends in the wrong place (gh-106052).
    """
    known = [pattern for code, pattern in PLAINLY.items() if seen & (1 << code)]
    return re.compile(rb"(?:(?:" + b"|".join(known) + rb")\n)*" if known else b"")


# ---- quotes: field by field ----


def _scan_quoted(
    data: bytes, delimiter: bytes, seen: NDArray[np.uint32], first: NDArray[np.int64], tally: NDArray[np.int64]
) -> None:
    columns, i = len(seen), int(tally[TAKEN])
    rest = re.compile(rb"[^%b\r\n]*+" % re.escape(delimiter))
    while i < len(data):
        # 1. the fields of a row, unless the line is empty
        start, line = i, int(tally[LINE]) + 1
        try:
            row, i = _row(data, i, line, rest)
        except _Fault as e:
            which, at = e.args
            tally[which] = at
            return
        fields = len(row)
        _look(data, row[:columns], seen, first)
        # 2. its end
        if fields != columns and (fields > 1 or data[start:i].strip(b" \t")):
            tally[RAGGED], tally[FIELDS] = line, fields
            return
        tally[ROWS] += fields == columns
        lines = len(LINE_END.findall(data, start, i))
        i += 2 if data[i : i + 2] == b"\r\n" else 1
        tally[MULTILINE] |= lines > 0
        tally[LINE], tally[TAKEN] = line + lines, i


def _row(data: bytes, i: int, line: int, rest: re.Pattern[bytes]) -> tuple[list[_Field], int]:
    """The fields of the row that begins at i, and where its line end is."""
    row: list[_Field] = []
    if data[i] in b"\r\n":
        return row, i
    while True:
        if data[i] == ord('"'):
            result = QUOTED.match(data, i)
            if result is None:
                raise _Fault(OPEN, line)
            end = rest.match(data, result.end()).end()  # type: ignore[union-attr]  # of nothing at least
            after, inside = data[result.end() : end], result[1]
            if after.strip(b" \t"):
                raise _Fault(ENDED, line)
            row.append(_Field(line, result.start(1), result.end(1), not after and b'""' not in inside))
            line += len(LINE_END.findall(inside))
        else:
            end = rest.match(data, i).end()  # type: ignore[union-attr]
            row.append(_Field(line, i, end, True))
        if data[end] in b"\r\n":
            return row, end
        i = end + 1


def _look(data: bytes, row: Iterable[_Field], seen: NDArray[np.uint32], first: NDArray[np.int64]) -> None:
    for column, at in enumerate(row):
        if not seen[column] & DONE:
            _note(seen, first, column, meaning(data[at.begin : at.end]) if at.plain else TEXT, at)
