"""Rows and fields of delimited text, found byte by byte, and what each field can be interpreted as.

The rules are those of the reader that converts the fields later: a field that begins with a quote ends at the next
quote that is not doubled, delimiters and line ends within it are text, and elsewhere a quote is a character like any
other. Lines end in LF, CR or both; empty lines are no rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels import field_patterns as patterns
from calibrant.kernels.field_patterns import (
    CODE,
    COMMA,
    DATE,
    DONE,
    EITHER,
    EMPTY,
    ENDED,
    FIELDS,
    FINE,
    GROUPED,
    HEX,
    LINE,
    LONG,
    MOST_DIGITS,
    MULTILINE,
    ODDLY,
    OPEN,
    PERCENT,
    POINTED,
    RAGGED,
    REAL,
    ROWS,
    SCIENTIFIC,
    TAKEN,
    TEXT,
    TIME,
    WHOLE,
    WORDS,
    ZONED,
)
from calibrant.kernels.runtime import as_readonly, few, inlined, kernel

Bytes = NDArray[np.uint8]

# How a field is written: as it is; with a doubled quote, or spaces after quotes; with no closing quote; more after it.

PLAIN, ESCAPED, UNCLOSED, LONGER = 0, 1, 2, 3

LF, CR, QUOTE, SPACE, TAB, POINT, COMMA_, MINUS, PLUS, COLON = 10, 13, 34, 32, 9, 46, 44, 45, 43, 58
ZERO, NINE, A, Z, PER_CENT, APOSTROPHE, SMALL, SMALL_X = 48, 57, 65, 90, 37, 39, 32, 120

LONGEST = 10
PER_ROW = 32  # bytes that take as long to look at, in Python, as other kernels' rows
ODD = 1 << 12  # such fields that are kept until they are looked at
LEFT = 256  # so few of a later turn are looked at without compiling
OTHER, END = 1 << 20, 1 << 40  # what a byte weighs that is neither digit nor point, and one that ends a field


class Words(NamedTuple):
    """Words that are no text where numbers are: in a row each, their lengths, and what they can be."""

    table: Bytes
    sizes: NDArray[np.int64]
    means: NDArray[np.int64]


class FieldScan(NamedTuple):
    """What is found: see `scan`; and fields to note: columns, lines, where they begin and end, what they can be."""

    seen: NDArray[np.uint32]
    tally: NDArray[np.int64]
    odd: NDArray[np.int64]


def scan(
    data: ArrayLike,
    final: bool,
    delimiter: int,
    seen: NDArray[np.uint32],
    first: NDArray[np.int64],
    tally: NDArray[np.int64],
) -> None:
    """Find the rows of a block of bytes, and what the fields of each column can be.

    Parameters
    ----------
    data : uint8 array
        Begins with a row, and ends in a line end, though perhaps within quotes.
    final : bool
        Nothing follows.
    delimiter : int
        One byte.
    seen : uint32 array of shape (columns,), added to
        A bit for each thing that some field of the column was; after text nothing more is looked for.
    first : int64 array of shape (columns, CODES, 3), written
        Line of the first such field, and where in `data` it begins and ends, for bits that are new.
    tally : int64 array of shape (TALLIES,), added to
        Bytes taken by whole rows and by lines of nothing or spaces; rows; lines; whether a value has a line end; the
        line of the first row with another number of fields, and that number; lines of the first quote that is not
        closed, and of the first that ends before its field does. Scanning stops at any of the last three.
    """
    block, weight = as_readonly(data, np.uint8), _weights(delimiter)
    if few(len(block), PER_ROW):
        patterns.scan(block.tobytes(), final, delimiter, seen, first, tally)
        if not final:
            tally[OPEN] = 0
        return
    odd = np.empty((ODD + len(seen), 5), dtype=np.int64)
    before, begun = -1, tally[TAKEN]
    while tally[TAKEN] > before:  # again where `odd` was full
        before = tally[TAKEN]
        count = _scan(block, final, weight, FieldScan(seen, tally, odd))
        # the first of a block by regular expressions, and what is left when these decided all: most texts need no more
        if few(count) and (before == begun or count <= LEFT):
            patterns.mean(block, odd[:count], seen, first)
        else:
            _mean(block, odd[:count], seen, first, _WORDS)
    if not final:
        tally[OPEN] = 0  # the next block may close it


def _weights(delimiter: int) -> NDArray[np.int64]:
    """What each byte adds to a field: digits nothing, a point 1."""
    weight = np.full(256, OTHER, dtype=np.int64)
    weight[ZERO : NINE + 1] = 0
    weight[POINT] = 1
    weight[[delimiter, LF, CR]] = END
    return as_readonly(weight, np.int64)


def _words() -> Words:
    words = [(word.encode(), code) for code, all_of in WORDS.items() for word in all_of]
    table = np.zeros((len(words), LONGEST), dtype=np.uint8)
    for i, (word, _) in enumerate(words):
        table[i, : len(word)] = list(word)
    sizes, means = [len(w) for w, _ in words], [c for _, c in words]
    return Words(as_readonly(table, np.uint8), as_readonly(sizes, np.int64), as_readonly(means, np.int64))


_WORDS = _words()


# ---- rows ----


@kernel
def _scan(data: Bytes, final: bool, weight: NDArray[np.int64], result: FieldScan) -> int:
    """Find rows until `odd` is full; return how many fields it holds.

    What happens to every field stands here: calling or inlining functions of arrays would take twice as long.
    """
    seen, tally, odd = result.seen, result.tally, result.odd
    columns, size, i, kept = seen.shape[0], data.shape[0], tally[TAKEN], 0
    while i < size and kept < ODD:
        # 1. the fields of a row, unless the line is empty
        start, line, fields = i, tally[LINE] + 1, 0
        while not (fields == 0 and (data[i] == LF or data[i] == CR)):
            wanted, at = fields < columns and not seen[fields] & DONE, line
            if data[i] == QUOTE:
                i, begin, end, how, lines = _quoted(data, i + 1, weight)
                if how >= UNCLOSED:
                    tally[OPEN if how == UNCLOSED else ENDED] = line
                    return kept
                line += lines
                code = ODDLY if how == PLAIN else TEXT
            else:
                begin, i, total = i, i + (data[i] == MINUS), 0
                first = i
                while weight[data[i]] < END:
                    total += weight[data[i]]
                    i += 1
                end, number = i, total <= 1 and i - first > total  # digits, and a point at most
                coded = number and data[first] == ZERO and i - first > 1 and data[first + 1] != POINT
                whole = LONG if i - first > MOST_DIGITS else WHOLE
                grouped = 4 < i - first < 8 and data[i - 4] == POINT and data[first] != ZERO
                real = POINTED if grouped else REAL
                code = CODE if coded else ODDLY if not number else real if total else whole
            if wanted and not seen[fields] & np.uint32(1 << code):
                odd[kept, 0], odd[kept, 1], odd[kept, 2], odd[kept, 3], odd[kept, 4] = fields, at, begin, end, code
                kept += 1
            fields += 1
            if data[i] == LF or data[i] == CR:
                break
            i += 1
        # 2. its end
        end = i
        i = _line_end(data, i, final)
        if i < 0:
            return kept
        tally[ROWS] += fields == columns
        if fields != columns and (fields > 1 or not _blank(data, start, end)):
            tally[RAGGED], tally[FIELDS] = tally[LINE] + 1, fields
            return kept
        tally[MULTILINE] |= line > tally[LINE] + 1
        tally[LINE], tally[TAKEN] = line, i
    return kept


@inlined
def _line_end(data: Bytes, i: int, final: bool) -> int:
    """Where the line end that begins at i ends; -1 if it may go on in the next block."""
    if data[i] == LF:
        after = i + 1
    elif i + 1 == data.shape[0]:
        after = i + 1 if final else -1
    else:
        after = i + 2 if data[i + 1] == LF else i + 1
    return after


@inlined
def _blank(data: Bytes, a: int, b: int) -> bool:
    while a < b and (data[a] == SPACE or data[a] == TAB):
        a += 1
    return a == b


@inlined
def _quoted(data: Bytes, i: int, weight: NDArray[np.int64]) -> tuple[int, int, int, int, int]:
    """Where the field ends whose text begins at i, behind a quote; that text; how it is written; its lines."""
    size, begin, how, lines = data.shape[0], i, PLAIN, 0
    while i + 1 < size and not (data[i] == QUOTE and data[i + 1] != QUOTE):
        if data[i] == QUOTE:
            how = ESCAPED
            i += 1
        elif data[i] == LF or (data[i] == CR and data[i + 1] != LF):
            lines += 1
        i += 1
    end = i
    if i + 1 >= size:
        how = UNCLOSED
    else:
        i += 1
        after = i
        while weight[data[i]] < END:
            i += 1
        if i > after:
            how = ESCAPED if _blank(data, after, i) else LONGER
    return i, begin, end, how, lines


@kernel
def _mean(
    data: Bytes, odd: NDArray[np.int64], seen: NDArray[np.uint32], first: NDArray[np.int64], words: Words
) -> None:
    """Note what fields can be."""
    for k in range(odd.shape[0]):
        column = odd[k, 0]
        if seen[column] & DONE:
            continue
        code = odd[k, 4]
        if code == ODDLY:
            code = _meaning(data, odd[k, 2], odd[k, 3], words)
        if not seen[column] & np.uint32(1 << code):
            seen[column] |= np.uint32(1 << code)
            first[column, code] = odd[k, 1:4]


# ---- what a field can be ----


@kernel
def _meaning(data: Bytes, a: int, b: int, words: Words) -> int:
    """What the bytes from a to b can be; spaces around them do not count."""
    while a < b and (data[a] == SPACE or data[a] == TAB):
        a += 1
    while b > a and (data[b - 1] == SPACE or data[b - 1] == TAB):
        b -= 1
    if a == b:
        return EMPTY
    code = _number(data, a, b)
    if code != TEXT or b - a > LONGEST:
        return code
    for w in range(words.sizes.shape[0]):
        if words.sizes[w] != b - a:
            continue
        same = True
        for j in range(b - a):
            c = data[a + j]
            if (c + SMALL if A <= c <= Z else c) != words.table[w, j]:
                same = False
                break
        if same:
            return words.means[w]
    return TEXT


@kernel
def _digits(data: Bytes, i: int, b: int) -> int:
    """Where the digits that begin at i end."""
    while i < b and ZERO <= data[i] <= NINE:
        i += 1
    return i


@kernel
def _number(data: Bytes, a: int, b: int) -> int:
    """What kind of number, or of date, stands from a to b; text if none."""
    i = a + 1 if data[a] == MINUS or data[a] == PLUS else a
    end = _digits(data, i, b)
    digits = end - i
    coded = digits > 1 and data[i] == ZERO
    if end == b:
        if digits == 0:
            return TEXT
        return CODE if coded else LONG if digits > MOST_DIGITS else WHOLE
    c = data[end]
    if c == MINUS and digits == 4 and i == a:
        return _date(data, a, b)
    if c == SMALL_X and digits == 1 and data[i] == ZERO:
        return _hexadecimal(data, end + 1, b)
    if data[b - 1] == PER_CENT:
        return _per_cent(data, i, b)
    if c in (POINT, COMMA_):
        return _fraction(data, i, end, b)
    if digits and _exponent(data, end, b):
        return CODE if coded else SCIENTIFIC
    return _grouped(data, end, b, digits)


@kernel
def _fraction(data: Bytes, i: int, mark: int, b: int) -> int:
    """Tell digits from i on with a point or a comma behind them."""
    digits, point, end = mark - i, data[mark] == POINT, _digits(data, mark + 1, b)
    after = end - mark - 1
    if end < b and data[end] in (POINT, COMMA_):
        return _grouped(data, mark, b, digits)
    if after + (digits if point else 0) == 0 or not _exponent(data, end, b):
        return TEXT
    if digits > 1 and data[i] == ZERO:
        return CODE
    grouped = end == b and after == 3 and 1 <= digits <= 3 and data[i] != ZERO
    if point:
        return POINTED if grouped else REAL
    return EITHER if grouped else COMMA


@kernel
def _exponent(data: Bytes, i: int, b: int) -> bool:
    """Tell whether nothing stands from i to b, or an exponent."""
    if i == b:
        return True
    if data[i] != 101 and data[i] != 69:  # e, E
        return False
    i += 1
    if i < b and (data[i] == MINUS or data[i] == PLUS):
        i += 1
    return i < b and _digits(data, i, b) == b


@kernel
def _per_cent(data: Bytes, a: int, b: int) -> int:
    b -= 1
    while b > a and data[b - 1] == SPACE:
        b -= 1
    i = _digits(data, a, b)
    if i < b and data[i] in (POINT, COMMA_):
        i = _digits(data, i + 1, b)
    return PERCENT if i == b and i > a and ZERO <= data[b - 1] <= NINE else TEXT


@kernel
def _hexadecimal(data: Bytes, i: int, b: int) -> int:
    if i == b:
        return TEXT
    for j in range(i, b):
        c = data[j]
        small = c + SMALL if A <= c <= Z else c
        if not (ZERO <= c <= NINE or 97 <= small <= 102):  # a to f
            return TEXT
    return HEX


@kernel
def _separator(data: Bytes, i: int, b: int) -> int:
    """The bytes of a mark between thousands that begins at i; 0 if there is none."""
    c = data[i]
    if c in (COMMA_, POINT, SPACE, APOSTROPHE):
        return 1
    if i + 1 < b and c == 0xC2 and data[i + 1] == 0xA0:  # a space that does not break
        return 2
    return 3 if i + 2 < b and c == 0xE2 and data[i + 1] == 0x80 and data[i + 2] == 0xAF else 0  # a narrow one


@kernel
def _grouped(data: Bytes, i: int, b: int, digits: int) -> int:
    """Tell groups of three digits after one to three, and perhaps a fraction behind another mark."""
    if not 1 <= digits <= 3:
        return TEXT
    mark, groups = data[i], 0
    while i < b and data[i] == mark:
        wide = _separator(data, i, b)
        end = _digits(data, i + wide, b)
        if wide == 0 or end - i - wide != 3:
            return TEXT
        i = end
        groups += 1
    if i < b and (data[i] == POINT or data[i] == COMMA_):
        i = _digits(data, i + 1, b)
    return GROUPED if i == b and groups else TEXT


@kernel
def _two(data: Bytes, i: int) -> int:
    """The number of two digits at i; -1 if there are none."""
    if not (ZERO <= data[i] <= NINE and ZERO <= data[i + 1] <= NINE):
        return -1
    return 10 * (int(data[i]) - ZERO) + int(data[i + 1]) - ZERO


@kernel
def _date(data: Bytes, a: int, b: int) -> int:
    """The kind of a date as ISO 8601 writes it, with a time or not."""
    if b - a < 10 or data[a + 7] != MINUS:
        return TEXT
    month, day = _two(data, a + 5), _two(data, a + 8)
    year = _two(data, a) * 100 + _two(data, a + 2)
    last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if month == 2:
        last = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if not (1 <= month <= 12 and 1 <= day <= last):
        return TEXT
    if b - a == 10:
        return DATE
    if data[a + 10] != 84 and data[a + 10] != SPACE:  # T
        return TEXT
    return _time(data, a + 11, b)


@kernel
def _time(data: Bytes, i: int, b: int) -> int:
    """The kind of a time of a date, from i to b."""
    if b - i < 5 or data[i + 2] != COLON or not (0 <= _two(data, i) <= 23 and 0 <= _two(data, i + 3) <= 59):
        return TEXT
    i, fraction = i + 5, 0
    if i < b and data[i] == COLON:
        if b - i < 3 or not 0 <= _two(data, i + 1) <= 59:
            return TEXT
        i += 3
        if i < b and data[i] == POINT:
            end = _digits(data, i + 1, b)
            fraction = end - i - 1
            if not 1 <= fraction <= 9:
                return TEXT
            i = end
    if i == b:
        return TIME if fraction <= 6 else FINE
    if fraction > 6:
        return TEXT
    if data[i] == Z and i + 1 == b:
        return ZONED
    signed = data[i] == PLUS or data[i] == MINUS
    if not signed or b - i != 6 or data[i + 3] != COLON:
        return TEXT
    return ZONED if 0 <= _two(data, i + 1) <= 23 and 0 <= _two(data, i + 4) <= 59 else TEXT
