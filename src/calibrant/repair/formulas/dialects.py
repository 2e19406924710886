"""The dialects of SQL: how each writes names, text and numbers, and what it calls a few functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from calibrant.errors import BadInput, NotComputable

Name = Literal["duckdb", "postgres", "spark", "bigquery", "tsql", "sqlite"]
FUNCTIONS = MappingProxyType({f: f.upper() for f in ("ln", "exp", "floor", "least", "greatest")})


@dataclass(frozen=True, kw_only=True)
class Dialect:
    r"""A dialect."""

    title: str  # what it is called
    # `double`, `text`, `days`, `truth`, `nan` and `numeric`: the type of floats; a column, `{0}`, as text to compare,
    # and of dates as days since 1970; of truth values as text ("" where it is that of any column); the test that a
    # float is no number ("" where there are none); and the test that a column holds a number or nothing, where a cast
    # makes 0 of text ("" where it refuses).
    double: str
    text: str
    days: str
    truth: str = ""
    nan: str = ""
    numeric: str = ""
    quotes: str = '""'  # around names
    cased: bool = False  # names that differ by case alone are two
    dated: str = ""  # the test that a column holds a date or nothing, where a cast makes null of other text
    # What a quote in text is written as: twice; behind a backslash, as a backslash is; or twice, and text with a
    # backslash as `E'...'`, which means the same whatever the server is set to.
    escapes: Literal["doubled", "backslash", "marked"] = "doubled"
    names_escape: bool = False  # a backslash escapes in names too
    number_form: str = "{0}"  # a float, `{0}` its shortest digits, that is one to the engine and no exact decimal
    literal_form: str = "'{0}'"  # text, `{0}` what stands for it between single quotes
    leave_out: str = ""  # `SELECT * ... (names)` without some columns; "" where there is none.
    once: str = ""  # said of a step so that it is worked out once, and not written out wherever it is used
    functions: Mapping[str, str] = field(default_factory=lambda: FUNCTIONS)

    def number(self, value: float) -> str:
        """A finite float, all its digits kept and never an exact decimal."""
        if not math.isfinite(value):
            raise NotComputable(f"SQL has no constant {value}: apply the calibrator in Python")
        digits = repr(float(value)).upper()
        written = self.number_form.format(digits if "E" in digits else f"{digits}E0")
        return f"({written})" if digits.startswith("-") else written

    def name(self, name: str) -> str:
        """The name of a column, quoted, whatever characters are in it."""
        _writable(name, "name")
        if not name:
            raise BadInput("a column or table has an empty name: pass the name it has in the database")
        first, last = self.quotes[0], self.quotes[1]
        kept = "".join(ESCAPED.get(c, c) for c in name) if self.names_escape else name.replace(last, 2 * last)
        return f"{first}{kept}{last}"

    def distinct(self, names: Sequence[str]) -> None:
        """Refuse names that are one to the engine."""
        lowered = Counter(name.lower() for name in names)
        twice = [name for name in names if lowered[name.lower()] > 1]
        if twice and not self.cased:
            raise NotComputable(
                f"columns {twice[0]!r} and {twice[1]!r} differ by case alone, which {self.title} does not tell apart: "
                "rename one, and fit again"
            )

    def table(self, name: str | Sequence[str]) -> str:
        """The name of a table: text is cut at dots (``"schema.table"``), a sequence of parts is taken as is."""
        return ".".join(map(self.name, name.split(".") if isinstance(name, str) else name))

    def literal(self, text: str) -> str:
        """Text, quoted, whatever characters are in it."""
        _writable(text, "level")
        if self.escapes == "backslash":
            return self.literal_form.format("".join(ESCAPED.get(c, c) for c in text))
        doubled = text.replace("'", "''")
        if self.escapes == "marked" and "\\" in text:
            return "E'" + doubled.replace("\\", "\\\\") + "'"
        return self.literal_form.format(doubled)


ESCAPED = {"\\": "\\\\", "'": "\\'", "`": "\\`", "\n": "\\n", "\r": "\\r"}


def _writable(text: str, what: str) -> None:
    """Refuse what no text of SQL can hold."""
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise NotComputable(
            f"the {what} {text!r} holds a character that SQL has no text for: apply the calibrator in Python"
        )


DIALECTS: Mapping[Name, Dialect] = MappingProxyType(
    {
        "duckdb": Dialect(
            title="DuckDB",
            double="DOUBLE",
            text="CAST({0} AS VARCHAR)",
            days="(epoch_us(CAST({0} AS TIMESTAMP)) / 86400000000E0)",
            nan="isnan({0})",
            leave_out="EXCLUDE",
        ),
        "postgres": Dialect(
            title="PostgreSQL",
            double="double precision",
            text="CAST({0} AS text)",
            days="CAST(EXTRACT(EPOCH FROM CAST({0} AS timestamp)) / 86400 AS double precision)",
            nan="{0} = float8 'NaN'",
            number_form="float8 '{0}'",
            escapes="marked",
            cased=True,
            once="MATERIALIZED ",
        ),
        "spark": Dialect(
            title="Spark",
            double="DOUBLE",
            text="CAST({0} AS STRING)",
            days="(timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', CAST({0} AS TIMESTAMP_NTZ))"
            " / 86400000000E0)",
            nan="isnan({0})",
            dated="({0} IS NULL OR CAST({0} AS STRING) = '' OR CAST({0} AS TIMESTAMP_NTZ) IS NOT NULL)",
            quotes="``",
            escapes="backslash",
            leave_out="EXCEPT",
        ),
        "bigquery": Dialect(
            title="BigQuery",
            double="FLOAT64",
            text="CAST({0} AS STRING)",
            days="(UNIX_MICROS(CAST({0} AS TIMESTAMP)) / 86400000000E0)",
            nan="IS_NAN({0})",
            quotes="``",
            escapes="backslash",
            names_escape=True,
            leave_out="EXCEPT",
        ),
        "tsql": Dialect(
            title="T-SQL",
            double="FLOAT(53)",
            # a binary collation tells small letters from large; the bar keeps spaces at the end, which = would not see
            text="CONCAT({0}, N'|') COLLATE Latin1_General_100_BIN2",
            truth="CONCAT(CASE CAST({0} AS NVARCHAR(5)) WHEN N'1' THEN N'true' WHEN N'0' THEN N'false'"
            " ELSE CAST({0} AS NVARCHAR(5)) END, N'|') COLLATE Latin1_General_100_BIN2",
            days="(DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2), CAST({0} AS DATETIME2)) / 86400000000E0)",
            quotes="[]",
            literal_form="N'{0}|'",
            functions=MappingProxyType({**FUNCTIONS, "ln": "LOG"}),
        ),
        "sqlite": Dialect(
            title="SQLite",
            double="REAL",
            text="CAST({0} AS TEXT) COLLATE BINARY",
            truth="CASE CAST({0} AS TEXT) WHEN '1' THEN 'true' WHEN '0' THEN 'false' ELSE CAST({0} AS TEXT) END",
            days="(julianday({0}) - 2440587.5E0)",
            numeric="typeof({0}) IN ('real', 'integer', 'null')",
            dated="({0} IS NULL OR {0} = '' OR julianday({0}) IS NOT NULL)",
            quotes="``",  # between double quotes a column that is not there would be text
            once="MATERIALIZED ",
            functions=MappingProxyType({**FUNCTIONS, "least": "MIN", "greatest": "MAX"}),
        ),
    }
)


def dialect_named(name: str) -> Dialect:
    """The dialect of a name; refuse any other name."""
    result = {str(k): v for k, v in DIALECTS.items()}.get(name)
    if result is None:
        raise BadInput(f"dialect={name!r}: choose one of {', '.join(DIALECTS)}")
    return result
