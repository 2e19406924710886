"""Attributes: the score and the covariates cut into a few cells each, of which boxes are made; no label is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.columns import Floats, as_text, finite_numbers
from calibrant.data.layouts import DAY, SECONDS, as_days, decoded
from calibrant.data.specs.coding import SCORE, Codes, Coding, Encoded, by_kind
from calibrant.data.specs.local import increasing
from calibrant.data.specs.sketch_file import need
from calibrant.errors import BadInput
from calibrant.kernels.strata import locate

Kind = Literal["number", "date", "category"]
Cells = NDArray[np.uint8]

BINS = 10  # of a number: tenths of the rows, so that a corner of two attributes may hold one row in a hundred
NEAR = 0.015  # share of the rows by which an edge may miss its tenth for the sake of fewer digits
LEVELS = 20  # of a category that have a cell of their own
RARE = 0.01  # share of the rows below which a level has none
MOST = 100  # covariates whose pairs a sketch counts: 5,050 tables with the score's
THE_SCORE = "the score"  # its name in every rule and map
DAYS = tuple(end / 86_400 for end in SECONDS)  # from 1970 to the ends of the calendar


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """How the score, or a covariate, is cut."""

    name: str  # ``"(score)"`` for the score
    kind: Kind
    # Of a number or date, increasing. A value's cell is the number of edges below it: a cell holds its upper edge.
    edges: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()  # of a category, as its coding orders them: one cell each
    # Of a category, what its last two cells are called: "other" and "missing", in brackets if values of the data.
    rest: tuple[str, ...] = ()
    whole: bool = False  # the number takes whole values only; the date has no time of day

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of a category's cells."""
        return (*self.levels, *self.rest)

    @cached_property
    def size(self) -> int:
        """Cells: those of values; of a category, one for all other levels; and one for missing values, the last."""
        return len(self.levels) + 2 if self.kind == "category" else len(self.edges) + 2

    def cells(self, values: Floats) -> Cells:
        """The cells of numbers, NaN where missing."""
        above = np.nextafter(np.array(self.edges), np.inf)  # `locate` counts the edges at or below a value
        return locate(values, above).astype(np.uint8)

    def cells_of_codes(self, codes: Codes, levels: Sequence[str]) -> Cells:
        """The cells of a category's codes, the numbers of its levels; then come "other" and missing."""
        kept = len(self.levels)
        own = np.full(len(levels) + 2, kept, dtype=np.uint8)
        own[[levels.index(v) for v in self.levels]] = np.arange(kept)
        own[-1] = kept + 1
        return own[codes]

    def check(self, where: str, coding: Coding | None) -> None:
        """Refuse a stored attribute that no data can have led to; its types were checked when it was decoded.

        `coding` is the covariate's; None for the score.
        """
        need(self.kind == ("number" if coding is None else coding.kind), where, "is of another kind")
        if self.kind == "category" and coding is not None:
            need(not self.edges, where, "has both levels and edges")
            need(len(self.levels) <= LEVELS, where, f"has {len(self.levels):,} levels")
            own = set(self.levels)
            need(self.levels == tuple(v for v in coding.levels if v in own), where, "has other levels")
            need(self.rest == coding.labels[-2:], where, "calls its last cells by other names")
            return
        need(not self.levels and not self.rest, where, "has both levels and edges")
        need(len(self.edges) < BINS, where, f"has {len(self.edges)} edges")
        need(increasing(self.edges), where, "has edges that do not increase")
        inside = all(DAYS[0] <= e <= DAYS[1] for e in self.edges) if self.kind == "date" else True
        need(inside, where, "has edges beyond the calendar")


def attributes_of(p: Floats, table: pa.Table, how: Sequence[Coding]) -> tuple[Attribute, ...]:
    """Cut the score, then each covariate, by a sample of rows; none if there are more than 100 covariates."""
    used = [c for c in how if c.kind != "constant"]
    for c in used:
        if c.name in (SCORE, THE_SCORE):
            raise BadInput(f"covariate {c.name!r}: the tests give that name to the score, so rename the column")
    if len(used) > MOST:
        return ()
    score = Attribute(name=SCORE, kind="number", edges=edges_of(p, "number", False))
    return (score, *(_attribute(decoded(table.column(c.name), c.name), c) for c in used))


def _attribute(column: pa.Array, c: Coding) -> Attribute:
    if c.kind == "category":
        text = as_text(column)
        rows = {v["values"].as_py(): v["counts"].as_py() for v in text.value_counts()}
        kept = [v for v in c.levels[:LEVELS] if rows.get(v, 0) >= RARE * len(text)]
        return Attribute(name=c.name, kind="category", levels=tuple(kept), rest=c.labels[-2:])
    values = as_days(column, c.name) if c.kind == "date" else finite_numbers(column, c.name, "covariate")
    kind: Kind = "date" if c.kind == "date" else "number"
    return Attribute(name=c.name, kind=kind, edges=edges_of(values, kind, c.whole), whole=c.whole)


def edges_of(values: Floats, kind: str, whole: bool) -> tuple[float, ...]:
    """Edges with few digits: between all values if they are few, else near the tenths of the rows."""
    distinct, rows = np.unique(values[~np.isnan(values)], return_counts=True)
    share = np.cumsum(rows)[:-1] / max(rows.sum(), 1)  # of the rows up to each gap between neighbouring values
    if len(share) < BINS:
        gaps = [(i, i) for i in range(len(share))]
    else:
        gaps = []
        for tenth in np.arange(1, BINS) / BINS:
            near = np.flatnonzero(np.abs(share - tenth) <= NEAR)
            near = near if len(near) else np.array([np.argmin(np.abs(share - tenth))])
            gaps.append((int(near[0]), int(near[-1])))
    results = {between(float(distinct[i]), float(distinct[j + 1]), kind, whole) for i, j in gaps}
    return tuple(sorted(results))


STEPS = (DAY, DAY // 24, DAY // 1440, 1_000_000, 1_000, 1)  # a day down to a microsecond, in microseconds
DIGITS = 17  # that tell all numbers apart


def between(low: float, high: float, kind: str, whole: bool) -> float:
    """A number with few digits from `low` to below `high`: a threshold that parts the same rows.

    Zero if it is there; else as few digits as will do, of `low` itself if it has no more, or as near the middle as
    they allow. A whole number is never given a fraction, nor a date a time of day.
    """
    if kind == "date":
        return _moment(low, high)
    if low <= 0.0 < high:
        return 0.0
    middle = low / 2.0 + high / 2.0  # the sum may be beyond all numbers
    for digits in range(1, DIGITS):
        if float(f"{low:.{digits}g}") == low:
            return low
        short = float(f"{middle:.{digits}g}")
        if low <= short < high:
            return float(np.floor(short)) if whole else short
    return low


def _moment(low: float, high: float) -> float:
    """The middle of two times, at the beginning of a day if one lies between them, else of an hour, ..."""
    first, stop = round(low * DAY), round(high * DAY)
    for step in STEPS:
        at = (first + stop) // 2 // step * step
        for tick in (at, at + step):
            if low <= tick / DAY < high:
                return tick / DAY
    return low


def cells_of(attributes: Sequence[Attribute], p: Floats, encoded: Encoded, how: Sequence[Coding]) -> Cells:
    """The cell of each row in each attribute, shape (attributes, n).

    `p`: float64 of shape (n,). `encoded`: by `how`. `how`: of more covariates than there are attributes, perhaps.
    """
    numbers, categories, _ = by_kind(how)
    out = np.empty((len(attributes), len(p)), dtype=np.uint8)
    at = {c.name: j for j, c in enumerate(numbers)}
    codes = {c.name: (j, c.levels) for j, c in enumerate(categories)}
    for t, own in zip(attributes, out, strict=True):
        if t.name == SCORE:
            own[:] = t.cells(p)
        elif t.kind == "category":
            j, levels = codes[t.name]
            own[:] = t.cells_of_codes(encoded.codes[:, j], levels)
        else:
            own[:] = t.cells(encoded.numbers[:, at[t.name]])
    return out
