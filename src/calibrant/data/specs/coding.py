"""Covariates as they come, turned into numbers and levels by rules fixed without a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.columns import (
    IDENTIFIER,
    Floats,
    Ids,
    as_text,
    finite_numbers,
    is_number,
    level_codes,
    long_text,
    require,
)
from calibrant.data.layouts import as_days, changed, decoded, is_date, plain
from calibrant.data.specs.sketch_file import need
from calibrant.errors import BadInput

Codes = NDArray[np.int32]
Kind = Literal["number", "date", "category", "constant"]

OTHER, MISSING = "other", "missing"
SCORE = "(score)"  # the name of the score's own coding
TOP = 4096  # levels kept of a category; the rest are "other": a level is a column of the local test, or a hashed one
HEAVY = 6.0  # standard deviations that the middle 99 % may reach before ranks are used; a normal law's reach 2.6
QUANTILES = 129  # points of the table that turns a heavy-tailed number into its rank: steps of 1/128


@dataclass(frozen=True, kw_only=True)
class Coding:
    """How one covariate becomes numbers or levels."""

    name: str
    # A date is a number of days since 1970. A constant is left out, and said to be.
    kind: Kind
    fill: float = 0.0  # what stands for a missing number: the median
    # Numbers were missing when the coding was fixed: there is a level variable "<name> is missing" too.
    missing: bool = False
    # `location` and `scale`: for standardising; of the ranks if there is a rank table.
    location: float = 0.0
    scale: float = 1.0
    ranks: tuple[float, ...] = ()  # quantiles of a heavy-tailed number; empty otherwise
    levels: tuple[str, ...] = ()  # of a category, most frequent first, at most 4096
    whole: bool = False  # the number takes whole values only
    # Where a sketch's cells along the number begin, and where the last ends; empty where none are kept.
    cells: tuple[float, ...] = ()

    @property
    def scaling(self) -> str:
        """``"standard"`` or ``"rank"``."""
        return "rank" if self.ranks else "standard"

    @property
    def of_text(self) -> bool:
        """Whether the column held text."""
        return self.kind == "category" and not set(self.levels) <= {"true", "false"}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of a category's levels; the last two are "other" and "missing", in brackets if values of the data."""
        return (*self.levels, *(f"({r})" if r in self.levels else r for r in (OTHER, MISSING)))

    def scaled(self, values: Floats) -> Floats:
        """Numbers standardised, or their standardised ranks; missing ones by `fill`."""
        filled = np.where(np.isnan(values), self.fill, values)
        if self.ranks:
            filled = np.interp(filled, self.ranks, np.linspace(0.0, 1.0, len(self.ranks)))
        return (filled - self.location) / self.scale

    def check(self, where: str) -> None:
        """Refuse a stored coding that no data can have led to; its types were checked when it was decoded."""
        need(self.scale > 0, where, f"has scale {self.scale}")
        if self.kind == "category":
            need(1 <= len(self.levels) <= TOP, where, f"has {len(self.levels):,} levels")
            need(len(set(self.levels)) == len(self.levels), where, "has one level twice")
            need(not (self.ranks or self.cells or self.missing), where, "is a category with cells or ranks")
            return
        need(not self.levels, where, "is a number with levels")
        need(not self.ranks or len(self.ranks) == QUANTILES, where, f"has {len(self.ranks)} quantiles")
        need(all(a <= b for a, b in pairwise(self.ranks)), where, "has quantiles that fall")


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Rows of covariates as arrays."""

    numbers: Floats  # shape (n, d): as they came, NaN where missing
    scaled: Floats  # shape (n, d): standardised (or by rank), the median where missing; no NaN
    codes: Codes  # shape (n, c): levels of categories, then of the "is missing" variables (0 no, 1 yes)
    # `number_names` and `level_names`: of the columns of `numbers` and of `codes`.
    number_names: tuple[str, ...]
    level_names: tuple[str, ...]
    level_labels: tuple[tuple[str, ...], ...]  # names of each level variable's levels
    level_of: tuple[str, ...]  # the covariate that each comes from: "<name> is missing" comes from <name>

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.numbers)


@dataclass(frozen=True)
class Rows:
    """Sound rows of one batch."""

    p: Floats  # shape (n,)
    y: NDArray[np.int8]  # shape (n,)
    ids: Ids  # shape (n,): identities, mixed with the seed; zeros where no part of the spec uses them
    encoded: Encoded  # the covariates that the spec codes
    groups: tuple[Codes, ...] = ()  # levels of the groups that are no such covariates
    keys: Ids | None = None  # shape (n,): hashes of the key columns
    part: str = ""  # the file, relative to the data set's root
    # Shape (groupings, n): level of each grouping of the spec, counted from zero.
    stacked: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    # Shape (n,): hashes of the clusters that rows belong to, mixed with the seed; None where each is one of its own.
    clusters: Ids | None = None
    weights: Floats | None = None  # shape (n,): how much each row counts


# ---- from a sample of rows to codings ----


def codings(columns: pa.Table | None, names: Iterable[str] | None = None) -> tuple[Coding, ...]:
    """Fix how covariates are coded, from an Arrow table of them (all rows, or a uniform sample); labels play no part.

    Raises
    ------
    BadInput
        A column is not there, holds infinite values, or is of a kind that cannot be used.
    """
    columns = pa.table({}) if columns is None else columns
    available = tuple(columns.schema.names)
    wanted = available if names is None else tuple(names)
    require(wanted, available, "covariate")
    if twice := [name for name, n in Counter(wanted).items() if n > 1]:
        raise BadInput(f"covariate {twice[0]!r} is named twice: name each once")
    return tuple(_coding(name, decoded(columns.column(name), name)) for name in wanted)


def _coding(name: str, column: pa.Array) -> Coding:
    t = column.type
    if pa.types.is_null(t) or not len(column):
        return Coding(name=name, kind="constant")
    if pa.types.is_string(t) or pa.types.is_boolean(t):
        return _category(name, column)
    if is_date(t):
        return _number(name, as_days(column, name), "date")
    if not is_number(t):
        raise BadInput(f"covariate {name!r} holds {t}: use text, numbers, dates or booleans")
    return _number(name, finite_numbers(column, name, "covariate"), "number")


def _number(name: str, values: Floats, kind: Kind) -> Coding:
    absent = np.isnan(values)
    there = values[~absent]
    if not len(there):
        return Coding(name=name, kind="constant")
    low, high, fill = float(there.min()), float(there.max()), float(np.median(there))
    missing = bool(absent.any())
    if low == high and not missing:
        return Coding(name=name, kind="constant", fill=fill)
    middle = np.quantile(there, [0.005, 0.995])
    spread = float(np.subtract(*np.quantile(there, [0.84, 0.16]))) / 2.0  # one standard deviation of a normal law
    heavy = spread > 0 and float(np.abs(middle - fill).max()) > HEAVY * spread
    table = tuple(float(v) for v in np.quantile(there, np.linspace(0, 1, QUANTILES))) if heavy else ()
    used = np.where(absent, fill, values)
    used = np.interp(used, table, np.linspace(0, 1, QUANTILES)) if table else used
    return Coding(
        name=name,
        kind=kind,
        fill=fill,
        missing=missing,
        location=float(used.mean()),
        scale=float(used.std()) or 1.0,
        ranks=table,
        whole=bool((there == np.floor(there)).all()),
    )


def refuse_identifier(name: str, column: pa.Array | pa.ChunkedArray) -> None:
    """Refuse texts of which nearly every row has its own, before any is counted."""
    if len(column) > IDENTIFIER and len(pc.unique(column)) > IDENTIFIER + 1:  # a missing value is none
        what = f"covariate {name!r} has more than {IDENTIFIER:,} distinct values"
        raise BadInput(f"{what}: it looks like an identifier; leave it out")


def _category(name: str, column: pa.Array) -> Coding:
    text = as_text(column)
    refuse_identifier(name, text)
    if longest := long_text(text):
        raise BadInput(f"covariate {name!r} {longest}: leave it out")
    counts = {c["values"].as_py(): c["counts"].as_py() for c in pc.value_counts(text) if c["values"].is_valid}
    if not counts or (len(counts) == 1 and not text.null_count):
        return Coding(name=name, kind="constant")
    kept = sorted(counts, key=lambda v: (-counts[v], v))[:TOP]
    if pa.types.is_boolean(column.type):
        kept = sorted(kept)
    return Coding(name=name, kind="category", levels=tuple(kept))


# ---- from codings to arrays ----


def encode(
    columns: pa.Table | pa.RecordBatch, how: Sequence[Coding], n: int | None = None, scale: bool = True
) -> Encoded:
    """The covariates of an Arrow table or record batch as arrays, by codings fixed before; `n` is its rows.

    Without `scale`, `scaled` has no columns, and the others are laid out one after the other: cheaper if read so.
    """
    n = columns.num_rows if n is None else n
    numbers, categories, flagged = by_kind(how)
    layout: Literal["C", "F"] = "C" if scale else "F"
    raw, scaled = np.empty((n, len(numbers)), order=layout), np.empty((n, len(numbers) if scale else 0))
    for j, c in enumerate(numbers):
        column = decoded(columns.column(c.name), c.name)
        raw[:, j] = as_days(column, c.name) if c.kind == "date" else finite_numbers(column, c.name, "covariate")
        if scale:
            scaled[:, j] = c.scaled(raw[:, j])
    codes = np.empty((n, len(categories) + len(flagged)), dtype=np.int32, order=layout)
    for j, c in enumerate(categories):
        column = plain(columns.column(c.name), c.name)
        own = level_codes(column, c.levels)
        if own is None:
            raise changed(c.name, "covariate", f"values such as {c.levels[0]!r}", column.type)
        codes[:, j] = own
    for j, c in enumerate(flagged):
        codes[:, len(categories) + j] = np.isnan(raw[:, numbers.index(c)])
    return Encoded(
        numbers=raw,
        scaled=scaled,
        codes=codes,
        number_names=tuple(c.name for c in numbers),
        level_names=(*(c.name for c in categories), *(f"{c.name} is missing" for c in flagged)),
        level_labels=(*(c.labels for c in categories), *(("no", "yes") for _ in flagged)),
        level_of=(*(c.name for c in categories), *(c.name for c in flagged)),
    )


def by_kind(how: Sequence[Coding]) -> tuple[list[Coding], list[Coding], list[Coding]]:
    """The numbers and dates, the categories, and the numbers with an "is missing" in addition to them."""
    numbers = [c for c in how if c.kind in ("number", "date")]
    return numbers, [c for c in how if c.kind == "category"], [c for c in numbers if c.missing]
