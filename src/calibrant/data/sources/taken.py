"""What a column of untyped text is interpreted as, decided on all of its values, and its values as that.

A column is a number only if all values that are there are numbers and none is a code: digits with a leading zero, or
more than 15 digits. What is not a number, a date or true and false stays text, unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from calibrant.errors import BadInput
from calibrant.kernels import fields as found

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
NUMBERS = frozenset({found.WHOLE, found.REAL, found.POINTED, found.INFINITE})
COMMAS = frozenset({found.WHOLE, found.INFINITE, found.COMMA, found.EITHER})
POINTS = frozenset({found.REAL, found.POINTED})
TIMES = frozenset({found.DATE, found.TIME, found.FINE})
# What makes a column text, the most telling first, in words that a value follows.
REASONS = {
    found.CODE: "a code, for digits with a leading zero are no number",
    found.LONG: "a code, for more than 15 digits are no number that can be distinguished from its neighbours",
    found.PERCENT: "percentages",
    found.GROUPED: "marks between thousands",
    found.EITHER: "commas that may stand between thousands or before decimals",
    found.COMMA: "decimal commas",
    found.HEX: "hexadecimal digits",
    found.TEXT: "text",
    found.REAL: "decimals behind points and behind commas",
    found.POINTED: "points that may stand between thousands, for commas stand before decimals",
}
SCORES = {
    found.GROUPED: "write numbers without marks between thousands",
    found.EITHER: "pass decimal=',' (--decimal ,) if they are decimals, or write numbers without marks",
    found.COMMA: "pass decimal=',' (--decimal ,)",
    found.CODE: "write numbers without leading zeros",
    found.REAL: "write all decimals one way",
    found.POINTED: "write numbers without marks between thousands, and all decimals one way",
}
UNMARKED = (found.GROUPED, found.EITHER, found.COMMA, found.REAL, found.POINTED)  # texts that are meant as numbers
FIXES = {REASONS[code]: SCORES[code] for code in UNMARKED}
SHOWN = 40  # characters of a value in a message


@dataclass(frozen=True)
class Taken:
    """What a column is interpreted as, and the value that decided it.

    Parameters
    ----------
    kind : {"whole", "number", "date", "time", "boolean", "text", "empty"}
    comma : bool
        Decimals stand behind a comma.
    code : int
        What the value that made it text can be (see `kernels.fields`); -1 if it is no text, or was asked to be.
    file, line, value : str, int, str
        Where that value first stands, and the value.
    unit : {"us", "ns"}
        Of times.
    zone : str
        Of times, ``"UTC"`` or empty.
    """

    kind: Kind
    comma: bool = False
    code: int = -1
    file: str = ""
    line: int = 0
    value: str = ""
    unit: str = "us"
    zone: str = ""

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
        return f"{shown(self.value)} in line {self.line} of {self.file}: {reason}"

    def score(self, name: str) -> None:
        """Refuse text as scores, with the value that is no number; percent may be asked for."""
        if self.code not in (-1, found.PERCENT):
            what = REASONS.get(self.code, "no numbers").split(",")[0]
            fix = SCORES.get(self.code, "convert it to numbers in [0, 1]")
            where = f"{shown(self.value)} in line {self.line:,} of {self.file}"
            raise BadInput(f"score column {name!r} holds {what}, such as {where}; {fix}")


def shown(value: str) -> str:
    """Return a value for a message."""
    return repr(value if len(value) <= SHOWN else f"{value[:SHOWN]}...")


def taken(places: Places, decimal: str, commas: bool) -> Taken:
    """Decide what a column is interpreted as.

    Parameters
    ----------
    places : Mapping
        What its values can be, and where each was first.
    decimal : {"", ".", ","}
        The mark of decimals, if it is known.
    commas : bool
        Without it: another column has decimal commas, so numbers such as 1,234 are decimals, and 1.234 may be none.
    """
    seen = frozenset(places) - {found.EMPTY, found.ABSENT}
    if not seen:
        return _text(places, found.ABSENT) if found.ABSENT in places else Taken("empty")
    if seen == {found.WHOLE}:
        return Taken("whole")
    thousands = commas and not decimal and found.POINTED in seen and found.REAL not in seen
    if (decimal != "," and not thousands and seen <= NUMBERS) or seen <= {found.WHOLE, found.INFINITE}:
        return Taken("number")
    if seen <= COMMAS and (decimal == "," or (not decimal and (commas or proven(places)))):
        return Taken("number", comma=True)
    if seen == {found.DATE}:
        return Taken("date")
    if seen <= TIMES:
        return Taken("time", unit="ns" if found.FINE in seen else "us")
    if seen == {found.ZONED}:
        return Taken("time", zone="UTC")
    if seen == {found.BOOLEAN}:
        return Taken("boolean")
    return _telling(places, seen, decimal)


def proven(places: Places) -> bool:
    """Return whether a column can only be one of decimal commas."""
    seen = frozenset(places) - {found.EMPTY, found.ABSENT}
    return found.COMMA in seen and seen <= COMMAS | {found.GROUPED}


def doubtful(places: Places) -> bool:
    """Return whether what a column is depends on whether another one has decimal commas: 1,234 and 1.234."""
    return found.EITHER in places or (found.POINTED in places and found.REAL not in places)


def _telling(places: Places, seen: frozenset[int], decimal: str) -> Taken:
    """Return text, and the value that tells best that it is text."""
    points = seen & POINTS
    thousands = points == {found.POINTED} and decimal != "."
    least = min(seen - NUMBERS, default=found.POINTED if thousands else found.REAL)
    code = next((c for c in REASONS if c in seen - POINTS), least)
    if points and code in (found.EITHER, found.COMMA):
        if found.COMMA not in seen and decimal != ",":  # 1,234 beside 0.5
            return _text(places, code, found.GROUPED)
        if thousands:  # 1.234 beside 0,5
            return _text(places, found.POINTED)
        return _text(places, found.REAL if decimal == "," else code, found.REAL)
    if code == found.PERCENT and seen != {code}:
        return _text(places, code, found.TEXT)  # 12% beside 0.2
    return _text(places, code)


def _text(places: Places, code: int, why: int = -1) -> Taken:
    file, line, value = places[code]
    return Taken("text", code=code if why < 0 else why, file=file, line=line, value=value)


# ---- values ----

SPELLED = found.WORDS[found.ABSENT]
ABSENT = sorted({"", "NaN", *(w for s in SPELLED for w in (s, s.upper(), s.capitalize()))})  # read fast, as they stand
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


def cast(text: pa.Array, one: Taken, type_: pa.DataType) -> pa.Array:
    """Return the values of a column of text as what it is interpreted as, null where there is none."""
    if pa.types.is_string(type_):
        return text
    if pa.types.is_null(type_):
        return pa.nulls(len(text))
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
