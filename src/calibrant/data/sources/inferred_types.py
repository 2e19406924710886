"""What a column of untyped text is interpreted as, decided on all of its values, and its values as that.

A column is a number only if all values that are there are numbers and none is a code: digits with a leading zero, or
more than 15 digits. What is not a number, a date or true and false stays text, unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, product
from operator import itemgetter
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.arguments import ORDERS
from calibrant.data.layouts import readings, text_dates
from calibrant.errors import BadInput

Kind = Literal["whole", "number", "date", "time", "boolean", "text", "empty"]
Places = dict[int, tuple[str, int, str]]  # what a value can be -> file, line and value where one first was

# What a field can be.

EMPTY, ABSENT, WHOLE, REAL, INFINITE, BOOLEAN = 0, 1, 2, 3, 4, 5
CODE, LONG, HEX, PERCENT = 6, 7, 8, 9  # digits with a leading zero; more than 15 of them; 0x1F; 12%
COMMA, EITHER, GROUPED = 10, 11, 12  # 0,5 has a decimal comma; 1,234 may have; 1,234,567 and 1 234 have thousands
DATE, TIME, FINE, ZONED = 13, 14, 15, 16  # 2024-01-31; with a time; in less than microseconds; with a zone
POINTED = 17  # 1.234 may have thousands, where decimals stand behind commas
SCIENTIFIC = 18  # 1e-07, whatever decimals stand behind
TEXT = 19

WORDS = {
    ABSENT: (
        *("na", "n/a", "n.a.", "#n/a", "#na", "<na>", "nan", "-nan", "nat", "null", "none", "nil", "\\n"),
        *("-", "--", "?", ".", "..", "..."),
    ),
    INFINITE: ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"),
    BOOLEAN: ("true", "false"),
}
EXPONENT = r"[eE][+-]?[0-9]+"
LEAP_YEAR = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
DAY = (
    r"([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    rf"|{LEAP_YEAR}-02-29)"
)
CLOCK = DAY + r"[T ]([01][0-9]|2[0-3]):[0-5][0-9]"
# A field fits one of these at most, and is text if it fits none; Python and Arrow understand them by_kinds.
PATTERNS = {
    EMPTY: "",
    WHOLE: r"[+-]?(0|[1-9][0-9]{0,14})",  # more digits a double does not hold, whatever they are
    LONG: r"[+-]?[1-9][0-9]{15,}",
    CODE: rf"[+-]?0[0-9]+(\.[0-9]*|,[0-9]+)?({EXPONENT})?",
    SCIENTIFIC: rf"[+-]?(0|[1-9][0-9]*){EXPONENT}",
    POINTED: r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}",
    REAL: r"[+-]?(0\.|0?\.[0-9]+|[1-9][0-9]{0,2}\.([0-9]{0,2}|[0-9]{4,})|[1-9][0-9]{3,}\.[0-9]*"
    rf"|((0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+){EXPONENT})",
    EITHER: r"[+-]?[1-9][0-9]{0,2},[0-9]{3}",
    COMMA: r"[+-]?(0?,[0-9]+|[1-9][0-9]{0,2},([0-9]{1,2}|[0-9]{4,})|[1-9][0-9]{3,},[0-9]+"
    rf"|(0|[1-9][0-9]*)?,[0-9]+{EXPONENT})",
    PERCENT: r"[+-]?([0-9]+|[0-9]*[.,][0-9]+) *%",
    HEX: r"[+-]?0x[0-9a-fA-F]+",
    GROUPED: r"[+-]?[0-9]{1,3}((,[0-9]{3}){2,}(\.[0-9]*)?|,[0-9]{3}\.[0-9]*|(\.[0-9]{3}){2,}(,[0-9]*)?"
    r"|\.[0-9]{3},[0-9]*|(( [0-9]{3})+|('[0-9]{3})+"
    r"|(\xc2\xa0[0-9]{3})+|(\xe2\x80\xaf[0-9]{3})+)([.,][0-9]*)?)",  # spaces that do not break
    DATE: DAY,
    TIME: rf"{CLOCK}(:[0-5][0-9](\.[0-9]{{1,6}})?)?",
    FINE: rf"{CLOCK}:[0-5][0-9]\.[0-9]{{7,9}}",
    ZONED: rf"{CLOCK}(:[0-5][0-9](\.[0-9]{{1,6}})?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])",
    **{code: f"(?i:{'|'.join(map(re.escape, words))})" for code, words in WORDS.items()},
}

TYPES: Mapping[Kind, pa.DataType] = {
    "whole": pa.int64(),
    "number": pa.float64(),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "empty": pa.null(),
}
NUMBERS = frozenset({WHOLE, REAL, POINTED, SCIENTIFIC, INFINITE})
COMMAS = frozenset({WHOLE, SCIENTIFIC, INFINITE, COMMA, EITHER})
POINTS = frozenset({REAL, POINTED})
TIMES = frozenset({DATE, TIME, FINE})
# Of text in the shape of dates: day and month can be either; or no calendar has all of them in one reading.
# Or its file says that it is text.
DAY_OR_MONTH, UNDATED, STORED = 20, 21, 22
# What makes a column text, the most telling first, in words that a value follows.
REASONS = {
    CODE: "a code, for digits with a leading zero are no number",
    LONG: "a code, for more than 15 digits are no number that can be distinguished from its neighbours",
    PERCENT: "percentages",
    GROUPED: "marks between thousands",
    EITHER: "commas that may stand between thousands or before decimals",
    COMMA: "decimal commas",
    HEX: "hexadecimal digits",
    TEXT: "text",
    REAL: "decimals behind points and behind commas",
    POINTED: "points that may stand between thousands, for commas stand before decimals",
    DAY_OR_MONTH: "dates that begin with the day or with the month",
    UNDATED: "text in the shape of dates, not all of which can be read in one way",
    STORED: "text in the shape of dates, whose order of day and month no file states",
}
SCORES = {
    GROUPED: "write numbers without marks between thousands",
    EITHER: "pass decimal=',' (--decimal ,) if they are decimals, or write numbers without marks",
    COMMA: "pass decimal=',' (--decimal ,)",
    CODE: "write numbers without leading zeros",
    REAL: "write all decimals one way",
    POINTED: "write numbers without marks between thousands, and all decimals one way",
}
UNMARKED = (GROUPED, EITHER, COMMA, REAL, POINTED)  # texts that are meant as numbers
FIXES = {REASONS[code]: f"For numbers, {SCORES[code]}" for code in UNMARKED} | {
    REASONS[DAY_OR_MONTH]: (
        "Pass dates='day-first' (--dates day-first) if 01/02/2019 is 1 February, or 'month-first' if it is 2 January"
    ),
    REASONS[STORED]: "Store dates as such, or as text such as 2019-01-31",
    REASONS[UNDATED]: "If they are dates, write them as 2019-01-31",
}
SHOWN = 40  # characters of a value in a message


@dataclass(frozen=True)
class InferredType:
    """What a column is interpreted as, and the value that decided it."""

    kind: Kind
    comma: bool = False  # decimals stand behind a comma
    # What the value that made it text can be (see `PATTERNS`); -1 if it is no text, or was asked to be.
    code: int = -1
    # `file`, `line`, `value`: where that value first stands, and the value.
    file: str = ""
    line: int = 0
    value: str = ""
    unit: str = "us"  # of times
    zone: str = ""  # of times, ``"UTC"`` or empty
    order: str | None = None  # of dates not as ISO has them: of day and month, empty where none is needed

    @property
    def type(self) -> pa.DataType:
        """Type of the column in Arrow."""
        return pa.timestamp(self.unit, self.zone or None) if self.kind == "time" else TYPES[self.kind]

    @property
    def why(self) -> str:
        """Why it is text, with the value that made it so; empty if it is none."""
        if self.code < 0:
            return ""
        reason = REASONS.get(self.code, "no number")
        return f"{shown(self.value)} in line {self.line:,} of {self.file}: {reason}"

    def score(self, name: str) -> None:
        """Refuse text as scores, with the value that is no number; percent may be asked for."""
        if self.code not in (-1, PERCENT):
            what = REASONS.get(self.code, "no numbers").split(",")[0]
            fix = SCORES.get(self.code, "convert it to numbers in [0, 1]")
            where = f"{shown(self.value)} in line {self.line:,} of {self.file}"
            raise BadInput(f"score column {name!r} holds {what}, such as {where}; {fix}")


def shown(value: str) -> str:
    """A value for a message."""
    return repr(value if len(value) <= SHOWN else f"{value[:SHOWN]}...")


def meaning(field: bytes) -> int:
    """What a field can be; spaces around it do not count."""
    text = field.strip(b" \t")
    return next((code for code, pattern in _compiled().items() if pattern.fullmatch(text)), TEXT)


@cache
def _compiled() -> dict[int, re.Pattern[bytes]]:
    """The patterns as Python reads them; made once a text file is read."""
    return {code: re.compile(pattern.encode()) for code, pattern in PATTERNS.items()}


@cache
def _passing(known: frozenset[int]) -> str:
    """What all fields of some kinds fit, those of no value too."""
    return rf"\A[ \t]*({'|'.join(PATTERNS[code] for code in sorted(known | {EMPTY}))})[ \t]*\z"


def new_kinds(columns: Mapping[int, pa.Array], known: Mapping[int, frozenset[int]]) -> Iterator[tuple[int, int, int]]:
    """Yield each column's kinds of field that are not known, and the rows where they first stand; text ends a column.

    Columns of which the same is known are looked at together.
    """
    left = [(column, known[column], 0) for column in columns if TEXT not in known[column]]
    while left:
        by_kinds, left = groupby(sorted(left, key=lambda one: sorted(one[1])), key=itemgetter(1)), []
        for kinds, some in by_kinds:
            at = [(column, row) for column, _, row in some]
            values = [columns[column].slice(row) for column, row in at]
            fits = pc.match_substring_regex(pa.chunked_array(values), _passing(kinds)).combine_chunks()
            odd = np.flatnonzero(~fits.to_numpy(zero_copy_only=False))
            begins = np.cumsum([0, *map(len, values)])
            first = np.append(odd, begins[-1])[np.searchsorted(odd, begins[:-1])]  # of each column, or a later one's
            for i in np.flatnonzero(first < begins[1:]).tolist():
                column, row = at[i][0], at[i][1] + int(first[i] - begins[i])
                code = meaning(columns[column][row].as_py())
                yield column, code, row
                if code != TEXT:
                    left.append((column, kinds | {code}, row + 1))


def inferred_type(places: Places, decimal: str, commas: bool) -> InferredType:
    """Decide what a column is interpreted as.

    `decimal`: the mark of decimals, if it is known. `commas`, where it is not: another column has decimal commas, so
    numbers such as 1,234 are decimals, and 1.234 may be none.
    """
    seen = frozenset(places) - {EMPTY, ABSENT}
    if not seen:
        return _text(places, ABSENT) if ABSENT in places else InferredType("empty")
    if seen == {WHOLE}:
        return InferredType("whole")
    thousands = commas and not decimal and POINTED in seen and REAL not in seen
    if (decimal != "," and not thousands and seen <= NUMBERS) or seen <= {WHOLE, INFINITE}:
        return InferredType("number")
    if seen <= COMMAS and (decimal == "," or (not decimal and (commas or proven(places)))):
        return InferredType("number", comma=True)
    if seen == {DATE}:
        return InferredType("date")
    if seen <= TIMES:
        return InferredType("time", unit="ns" if FINE in seen else "us")
    if seen == {ZONED}:
        return InferredType("time", zone="UTC")
    if seen == {BOOLEAN}:
        return InferredType("boolean")
    return _telling(places, seen, decimal)


def proven(places: Places) -> bool:
    """Whether a column can only be one of decimal commas."""
    seen = frozenset(places) - {EMPTY, ABSENT}
    return COMMA in seen and seen <= COMMAS | {GROUPED}


def doubtful(places: Places) -> bool:
    """Whether what a column is depends on whether another one has decimal commas: 1,234 and 1.234."""
    return EITHER in places or (POINTED in places and REAL not in places)


def _telling(places: Places, seen: frozenset[int], decimal: str) -> InferredType:
    """Text, and the value that shows best that it is text."""
    points = seen & POINTS
    thousands = points == {POINTED} and decimal != "."
    least = min(seen - NUMBERS, default=POINTED if thousands else REAL)
    code = next((c for c in REASONS if c in seen - POINTS), least)
    if points and code in (EITHER, COMMA):
        if COMMA not in seen and decimal != ",":  # 1,234 next to 0.5
            return _text(places, code, GROUPED)
        if thousands:  # 1.234 next to 0,5
            return _text(places, POINTED)
        return _text(places, REAL if decimal == "," else code, REAL)
    if code == PERCENT and seen != {code}:
        return _text(places, code, TEXT)  # 12% next to 0.2
    return _text(places, code)


def _text(places: Places, code: int, why: int = -1) -> InferredType:
    file, line, value = places[code]
    return InferredType("text", code=code if why < 0 else why, file=file, line=line, value=value)


# ---- values ----

SPELLED = WORDS[ABSENT]
NANS = {"".join(w) for s in ("nan", "-nan") for w in product(*zip(s, s.upper(), strict=True))}  # numbers to Arrow
NULLS = sorted({"", *NANS, *(w for s in SPELLED for w in (s, s.upper(), s.capitalize()))})  # read fast, as they stand
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


def dated(one: InferredType, texts: Iterable[pa.Array], order: str) -> InferredType:
    """What a column of text is after all, if its texts are dates in another form than ISO's."""
    read, clock = frozenset(("", *ORDERS, "local", "zoned", "shaped")), False
    for text in texts:
        kept = _there(text)
        read &= readings(kept)
        if not read:
            return one
        clock = clock or pc.any(pc.match_substring(kept, ":")).as_py() is True
    orders = [o for o in ORDERS if o in read]
    if len(read & {"local", "zoned"}) != 1 or not orders:
        return replace(one, code=UNDATED)
    decided = "" if "" in read else orders[0] if len(orders) == 1 else order
    if not decided and "" not in read:
        return replace(one, code=DAY_OR_MONTH)
    return InferredType("time" if clock else "date", zone="UTC" if "zoned" in read else "", order=decided)


def _there(text: pa.Array) -> pa.Array:
    """Text without spaces around it, null where it stands for no value."""
    text = pc.ascii_trim(text, " \t")
    return pc.if_else(_absent(pc.ascii_lower(text)), None, text)


def cast(text: pa.Array, one: InferredType, type_: pa.DataType) -> pa.Array:
    """The values of a column of text as what it is interpreted as, null where there is none."""
    if pa.types.is_string(type_):
        return text
    if pa.types.is_null(type_):
        return pa.nulls(len(text))
    if one.order is not None:
        result = text_dates(_there(text), one.order)
        return pa.nulls(len(text), type_) if result is None else result.cast(type_)
    text = pc.ascii_trim(text, " \t")
    low = pc.ascii_lower(text)
    if pa.types.is_boolean(type_):
        return pc.if_else(_absent(low), None, pc.equal(low, TRUE[0]))
    text = pc.if_else(_absent(low), None, text)
    if one.comma:
        text = pc.replace_substring(text, ",", ".")
    if not pa.types.is_temporal(type_):
        text = pc.ascii_ltrim(text, "+")
    return pc.cast(text, type_)


def _absent(low: pa.Array) -> pa.Array:
    return pc.is_in(low, value_set=pa.array(["", *SPELLED]))
