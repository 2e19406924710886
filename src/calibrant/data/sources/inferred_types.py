"""What a column of untyped text is interpreted as, decided on all of its values, and its values as that.

A column is a number only if all values that are there are numbers and none is a code: digits with a leading zero, or
more than 15 digits. What is not a number, a date or true and false stays text, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from calibrant.arguments import ORDERS
from calibrant.data.layouts import readings, text_dates
from calibrant.errors import BadInput
from calibrant.kernels import field_patterns as fields

Kind = Literal["whole", "number", "date", "time", "boolean", "text", "empty"]
Places = Mapping[int, tuple[str, int, str]]  # what a value can be -> file, line and value where one first was

TYPES: Mapping[Kind, pa.DataType] = {
    "whole": pa.int64(),
    "number": pa.float64(),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "empty": pa.null(),
}
NUMBERS = frozenset({fields.WHOLE, fields.REAL, fields.POINTED, fields.SCIENTIFIC, fields.INFINITE})
COMMAS = frozenset({fields.WHOLE, fields.SCIENTIFIC, fields.INFINITE, fields.COMMA, fields.EITHER})
POINTS = frozenset({fields.REAL, fields.POINTED})
TIMES = frozenset({fields.DATE, fields.TIME, fields.FINE})
# Of text in the shape of dates: day and month can be either; or no calendar has all of them in one reading.
# Or its file says that it is text.
DAY_OR_MONTH, UNDATED, STORED = fields.CODES, fields.CODES + 1, fields.CODES + 2
# What makes a column text, the most telling first, in words that a value follows.
REASONS = {
    fields.CODE: "a code, for digits with a leading zero are no number",
    fields.LONG: "a code, for more than 15 digits are no number that can be distinguished from its neighbours",
    fields.PERCENT: "percentages",
    fields.GROUPED: "marks between thousands",
    fields.EITHER: "commas that may stand between thousands or before decimals",
    fields.COMMA: "decimal commas",
    fields.HEX: "hexadecimal digits",
    fields.TEXT: "text",
    fields.REAL: "decimals behind points and behind commas",
    fields.POINTED: "points that may stand between thousands, for commas stand before decimals",
    DAY_OR_MONTH: "dates that begin with the day or with the month",
    UNDATED: "text in the shape of dates, not all of which can be read in one way",
    STORED: "text in the shape of dates, whose order of day and month no file states",
}
SCORES = {
    fields.GROUPED: "write numbers without marks between thousands",
    fields.EITHER: "pass decimal=',' (--decimal ,) if they are decimals, or write numbers without marks",
    fields.COMMA: "pass decimal=',' (--decimal ,)",
    fields.CODE: "write numbers without leading zeros",
    fields.REAL: "write all decimals one way",
    fields.POINTED: "write numbers without marks between thousands, and all decimals one way",
}
UNMARKED = (fields.GROUPED, fields.EITHER, fields.COMMA, fields.REAL, fields.POINTED)  # texts that are meant as numbers
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
    # What the value that made it text can be (see `kernels.field_patterns`); -1 if it is no text, or was asked to be.
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
        if self.code not in (-1, fields.PERCENT):
            what = REASONS.get(self.code, "no numbers").split(",")[0]
            fix = SCORES.get(self.code, "convert it to numbers in [0, 1]")
            where = f"{shown(self.value)} in line {self.line:,} of {self.file}"
            raise BadInput(f"score column {name!r} holds {what}, such as {where}; {fix}")


def shown(value: str) -> str:
    """A value for a message."""
    return repr(value if len(value) <= SHOWN else f"{value[:SHOWN]}...")


def inferred_type(places: Places, decimal: str, commas: bool) -> InferredType:
    """Decide what a column is interpreted as.

    `decimal`: the mark of decimals, if it is known. `commas`, where it is not: another column has decimal commas, so
    numbers such as 1,234 are decimals, and 1.234 may be none.
    """
    seen = frozenset(places) - {fields.EMPTY, fields.ABSENT}
    if not seen:
        return _text(places, fields.ABSENT) if fields.ABSENT in places else InferredType("empty")
    if seen == {fields.WHOLE}:
        return InferredType("whole")
    thousands = commas and not decimal and fields.POINTED in seen and fields.REAL not in seen
    if (decimal != "," and not thousands and seen <= NUMBERS) or seen <= {fields.WHOLE, fields.INFINITE}:
        return InferredType("number")
    if seen <= COMMAS and (decimal == "," or (not decimal and (commas or proven(places)))):
        return InferredType("number", comma=True)
    if seen == {fields.DATE}:
        return InferredType("date")
    if seen <= TIMES:
        return InferredType("time", unit="ns" if fields.FINE in seen else "us")
    if seen == {fields.ZONED}:
        return InferredType("time", zone="UTC")
    if seen == {fields.BOOLEAN}:
        return InferredType("boolean")
    return _telling(places, seen, decimal)


def proven(places: Places) -> bool:
    """Whether a column can only be one of decimal commas."""
    seen = frozenset(places) - {fields.EMPTY, fields.ABSENT}
    return fields.COMMA in seen and seen <= COMMAS | {fields.GROUPED}


def doubtful(places: Places) -> bool:
    """Whether what a column is depends on whether another one has decimal commas: 1,234 and 1.234."""
    return fields.EITHER in places or (fields.POINTED in places and fields.REAL not in places)


def _telling(places: Places, seen: frozenset[int], decimal: str) -> InferredType:
    """Text, and the value that shows best that it is text."""
    points = seen & POINTS
    thousands = points == {fields.POINTED} and decimal != "."
    least = min(seen - NUMBERS, default=fields.POINTED if thousands else fields.REAL)
    code = next((c for c in REASONS if c in seen - POINTS), least)
    if points and code in (fields.EITHER, fields.COMMA):
        if fields.COMMA not in seen and decimal != ",":  # 1,234 next to 0.5
            return _text(places, code, fields.GROUPED)
        if thousands:  # 1.234 next to 0,5
            return _text(places, fields.POINTED)
        return _text(places, fields.REAL if decimal == "," else code, fields.REAL)
    if code == fields.PERCENT and seen != {code}:
        return _text(places, code, fields.TEXT)  # 12% next to 0.2
    return _text(places, code)


def _text(places: Places, code: int, why: int = -1) -> InferredType:
    file, line, value = places[code]
    return InferredType("text", code=code if why < 0 else why, file=file, line=line, value=value)


# ---- values ----

SPELLED = fields.WORDS[fields.ABSENT]
ABSENT = sorted({"", "NaN", *(w for s in SPELLED for w in (s, s.upper(), s.capitalize()))})  # read fast, as they stand
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
