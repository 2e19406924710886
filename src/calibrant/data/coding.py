"""Covariates as they come, turned into numbers and levels by rules fixed without a label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from calibrant.data.columns import as_float, changed, decoded, require
from calibrant.errors import BadInput

OTHER, MISSING = "other", "missing"
Kind = Literal["number", "date", "category", "constant"]
TOP = 4096  # levels kept of a category; the rest are "other"
HEAVY = 6.0  # standard deviations by which the largest of the middle 99 % may lie off before ranks are used
QUANTILES = 129  # points of the table that turns a heavy-tailed number into its rank
DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, kw_only=True)
class Coding:
    """How one covariate becomes numbers or levels.

    Parameters
    ----------
    name : str
    kind : {"number", "date", "category", "constant"}
        A date is a number of days since 1970. A constant is left out, and said to be.
    fill : float
        What stands for a missing number: the median.
    missing : bool
        Numbers were missing when the coding was fixed: there is a level variable "<name> is missing" beside the number.
    location, scale : float
        For standardising; of the ranks if there is a rank table.
    ranks : tuple of float
        Quantiles of a heavy-tailed number; empty otherwise.
    levels : tuple of str
        Of a category, most frequent first, at most 4096.
    whole : bool
        The number takes whole values only.
    cells : tuple of float
        Where a sketch's cells along the number begin, and where the last ends; empty where none are kept.
    """

    name: str
    kind: Kind
    fill: float = 0.0
    missing: bool = False
    location: float = 0.0
    scale: float = 1.0
    ranks: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    whole: bool = False
    cells: tuple[float, ...] = ()

    @property
    def scaling(self) -> str:
        """``"standard"`` or ``"rank"``."""
        return "rank" if self.ranks else "standard"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of a category's levels; the last two are "other" and "missing", in brackets if values of the data."""
        return (*self.levels, *(f"({r})" if r in self.levels else r for r in (OTHER, MISSING)))

    def scaled(self, values: Any) -> Any:
        """Return numbers standardised, or their standardised ranks; missing ones by `fill`."""
        filled = np.where(np.isnan(values), self.fill, values)
        if self.ranks:
            filled = np.interp(filled, self.ranks, np.linspace(0.0, 1.0, len(self.ranks)))
        return (filled - self.location) / self.scale

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Coding:
        """Rebuild from plain data."""
        return cls(**(dict(d) | {k: tuple(d[k]) for k in ("ranks", "levels", "cells")}))


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Rows of covariates as arrays.

    Parameters
    ----------
    numbers : float64 array of shape (n, d)
        As they came, NaN where missing.
    scaled : float64 array of shape (n, d)
        Standardised (or by rank), the median where missing; no NaN.
    codes : int32 array of shape (n, c)
        Levels of categories, then of the "is missing" variables (0 no, 1 yes).
    number_names, level_names : tuple of str
        Of the columns of `numbers` and of `codes`.
    level_labels : tuple of tuple of str
        Names of each level variable's levels.
    level_of : tuple of str
        The covariate that each level variable comes from: "<name> is missing" comes from <name>.
    """

    numbers: Any
    scaled: Any
    codes: Any
    number_names: tuple[str, ...]
    level_names: tuple[str, ...]
    level_labels: tuple[tuple[str, ...], ...]
    level_of: tuple[str, ...]

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.numbers)


def codings(columns: Any, names: Iterable[str] | None = None) -> tuple[Coding, ...]:
    """Fix how covariates are coded, from an Arrow table of them (all rows, or a uniform sample); labels play no part.

    Raises
    ------
    BadInput
        A column is not there, holds infinite values, or is of a kind that cannot be used.
    """
    available = () if columns is None else tuple(columns.schema.names)
    wanted = available if names is None else tuple(names)
    require(wanted, available, "covariate")
    if twice := [name for name in wanted if wanted.count(name) > 1]:
        raise BadInput(f"covariate {twice[0]!r} is named twice: name each once")
    return tuple(_coding(name, decoded(columns.column(name))) for name in wanted)


def _coding(name: str, column: Any) -> Coding:
    import pyarrow as pa

    t = column.type
    if pa.types.is_null(t) or not len(column):
        return Coding(name=name, kind="constant")
    if pa.types.is_string(t) or pa.types.is_boolean(t):
        return _category(name, column)
    values = as_days(column) if is_date(t) else as_float(column, name, "covariate") if is_number(t) else None
    if values is None:
        raise BadInput(f"covariate {name!r} holds {t}: use text, numbers, dates or booleans")
    if np.isinf(values).any():
        raise BadInput(f"covariate {name!r} holds infinite values: replace or cap them")
    return _number(name, values, "date" if is_date(t) else "number")


def is_number(t: Any) -> bool:
    """Tell whether an Arrow type is a number."""
    import pyarrow as pa

    return bool(pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t))


def is_date(t: Any) -> bool:
    """Tell whether an Arrow type is a date or a time of a day of the calendar."""
    import pyarrow as pa

    return bool(pa.types.is_date(t) or pa.types.is_timestamp(t))


def as_days(column: Any) -> Any:
    """Return dates and times as days since 1970, NaN where null."""
    import pyarrow as pa

    micro = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return micro.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / DAY


def _number(name: str, values: Any, kind: Kind) -> Coding:
    absent = np.isnan(values)
    there = values[~absent]
    if not len(there):
        return Coding(name=name, kind="constant")
    low, high, fill = float(there.min()), float(there.max()), float(np.median(there))
    missing = bool(absent.any())
    if low == high and not missing:
        return Coding(name=name, kind="constant", fill=fill)
    middle = np.quantile(there, [0.005, 0.995])
    spread = float(np.subtract(*np.quantile(there, [0.84, 0.16]))) / 2.0
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


def _category(name: str, column: Any) -> Coding:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = as_text(column)
    counts = {c["values"].as_py(): c["counts"].as_py() for c in pc.value_counts(text) if c["values"].is_valid}
    if not counts or (len(counts) == 1 and not text.null_count):
        return Coding(name=name, kind="constant")
    kept = sorted(counts, key=lambda v: (-counts[v], v))[:TOP]
    if pa.types.is_boolean(column.type):
        kept = sorted(kept)
    return Coding(name=name, kind="category", levels=tuple(kept))


def as_text(column: Any) -> Any:
    """Return a decoded column as text, null where missing or empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column if pa.types.is_string(column.type) else column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), None, text)


def encode(columns: Any, how: Sequence[Coding], n: int | None = None, scale: bool = True) -> Encoded:
    """Return the covariates of an Arrow table or record batch as arrays, by codings fixed before; `n` is its rows.

    Without `scale`, `scaled` has no columns, and the others are laid out one after the other: cheaper if read so.
    """
    n = columns.num_rows if n is None else n
    numbers = [c for c in how if c.kind in ("number", "date")]
    categories = [c for c in how if c.kind == "category"]
    flagged = [c for c in numbers if c.missing]
    layout: Literal["C", "F"] = "C" if scale else "F"
    raw, scaled = np.empty((n, len(numbers)), order=layout), np.empty((n, len(numbers) if scale else 0))
    for j, c in enumerate(numbers):
        raw[:, j] = _values(decoded(columns.column(c.name)), c)
        if scale:
            scaled[:, j] = c.scaled(raw[:, j])
    codes = np.empty((n, len(categories) + len(flagged)), dtype=np.int32, order=layout)
    for j, c in enumerate(categories):
        codes[:, j] = _codes(columns.column(c.name), c)
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


def _values(column: Any, c: Coding) -> Any:
    import pyarrow as pa

    if c.kind == "date" and is_date(column.type):
        return as_days(column)
    if c.kind == "date" and not pa.types.is_null(column.type):
        raise changed(c.name, "covariate", "dates", column.type)
    values = as_float(column, c.name, "covariate")
    if np.isinf(values).any():
        raise BadInput(f"covariate {c.name!r} holds infinite values: replace or cap them")
    return values


def _codes(column: Any, c: Coding) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type) and not column.dictionary.null_count:
        table = _codes(column.dictionary, c)
        at = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(table, len(c.levels) + 1).astype(np.int32)[at]
    column = decoded(column)
    if not (pa.types.is_string(column.type) or pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
        raise changed(c.name, "covariate", f"values such as {c.levels[0]!r}", column.type)
    text = as_text(column)
    found = pc.fill_null(pc.index_in(text, value_set=pa.array(c.levels, pa.string())), len(c.levels))
    codes = found.to_numpy(zero_copy_only=False)
    absent = text.is_null().to_numpy(zero_copy_only=False) if text.null_count else None
    return (codes if absent is None else np.where(absent, len(c.levels) + 1, codes)).astype(np.int32)


@dataclass(frozen=True)
class Rows:
    """Sound rows of one batch.

    Parameters
    ----------
    p : float64 array of shape (n,)
    y : int8 array of shape (n,)
    ids : uint64 array of shape (n,)
        Identities, mixed with the seed; zeros where no part of the spec uses them.
    encoded : Encoded
        The covariates that the spec codes.
    """

    p: Any
    y: Any
    ids: Any
    encoded: Encoded
