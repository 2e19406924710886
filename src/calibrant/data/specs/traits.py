"""Traits: the score and the covariates cut into a few cells each, from which boxes are made; labels play no part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.columns import Floats, as_text, finite_numbers
from calibrant.data.dates import DAY, as_days
from calibrant.data.layouts import decoded
from calibrant.data.specs.coding import SCORE, Codes, Coding, Encoded, by_kind
from calibrant.data.specs.local import increasing
from calibrant.data.specs.sketch_file import need
from calibrant.kernels.strata import locate

Kind = Literal["number", "date", "category"]
Cells = NDArray[np.uint8]

BINS = 10  # of a number: tenths of the rows, so that a corner of two traits may hold one row in a hundred
NEAR = 0.015  # share of the rows by which an edge may miss its tenth for the sake of fewer digits
LEVELS = 20  # of a category that have a cell of their own
RARE = 0.01  # share of the rows below which a level has none
MOST = 100  # covariates whose pairs a sketch counts: more than 5,000 tables


@dataclass(frozen=True, kw_only=True)
class Trait:
    """How the score, or a covariate, is cut.

    Parameters
    ----------
    name : str
        ``"(score)"`` for the score.
    kind : {"number", "date", "category"}
    edges : tuple of float
        Of a number or date, increasing. A value's cell is the number of edges below it: a cell holds its upper edge.
    levels : tuple of str
        Of a category, the most frequent first: one cell each.
    whole : bool
        The number takes whole values only; the date has no time of day.
    """

    name: str
    kind: Kind
    edges: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    whole: bool = False

    @cached_property
    def size(self) -> int:
        """Cells: those of values; of a category, one for all other levels; and one for missing values, the last."""
        return len(self.levels) + 2 if self.kind == "category" else len(self.edges) + 2

    def cells(self, values: Floats) -> Cells:
        """Return the cells of numbers, NaN where missing."""
        above = np.nextafter(np.array(self.edges), np.inf)  # `locate` counts the edges at or below a value
        return locate(values, above).astype(np.uint8)

    def cells_of_codes(self, codes: Codes, levels: int) -> Cells:
        """Return the cells of a category's codes, of which `levels` are levels, the next "other", the last missing."""
        kept = len(self.levels)
        own = np.full(levels + 2, kept, dtype=np.uint8)
        own[:kept], own[-1] = np.arange(kept), kept + 1
        return own[codes]

    def check(self, where: str) -> None:
        """Refuse a stored trait that no data can have led to; its types were checked when it was decoded."""
        need(not (self.edges if self.kind == "category" else self.levels), where, "has both levels and edges")
        need(len(self.edges) < 2 * BINS, where, f"has {len(self.edges)} edges")
        need(len(self.levels) <= LEVELS, where, f"has {len(self.levels)} levels")
        need(increasing(self.edges), where, "has edges that do not increase")
        need(len(set(self.levels)) == len(self.levels), where, "has one level twice")


def traits_of(p: Floats, table: pa.Table, how: Sequence[Coding]) -> tuple[Trait, ...]:
    """Cut the score, then each covariate, by a sample of rows; none if there are more than 100 covariates."""
    used = [c for c in how if c.kind != "constant"]
    if len(used) > MOST:
        return ()
    score = Trait(name=SCORE, kind="number", edges=edges_of(p, "number", False))
    return (score, *(_trait(decoded(table.column(c.name), c.name), c) for c in used))


def _trait(column: pa.Array, c: Coding) -> Trait:
    if c.kind == "category":
        text = as_text(column)
        rows = {v["values"].as_py(): v["counts"].as_py() for v in text.value_counts()}
        kept = [v for v in c.levels[:LEVELS] if rows.get(v, 0) >= RARE * len(text)]
        return Trait(name=c.name, kind="category", levels=tuple(kept))
    values = as_days(column, c.name) if c.kind == "date" else finite_numbers(column, c.name, "covariate")
    kind: Kind = "date" if c.kind == "date" else "number"
    return Trait(name=c.name, kind=kind, edges=edges_of(values, kind, c.whole), whole=c.whole)


def edges_of(values: Floats, kind: str, whole: bool) -> tuple[float, ...]:
    """Return edges with few digits: between all values if they are few, else near the tenths of the rows."""
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
    found = {between(float(distinct[i]), float(distinct[j + 1]), kind, whole) for i, j in gaps}
    return tuple(sorted(found))


STEPS = (DAY, DAY // 24, DAY // 1440, 1_000_000, 1_000, 1)  # a day down to a microsecond, in microseconds


def between(low: float, high: float, kind: str, whole: bool) -> float:
    """Return a number with few digits from `low` to below `high`: a threshold that parts the same rows."""
    if kind == "date":
        first, stop = round(low * DAY), round(high * DAY)
        for step in STEPS:
            at = (first + stop) // 2 // step * step
            for tick in (at, at + step):
                if first <= tick < stop:
                    return tick / DAY
        return low
    middle = low + (high - low) / 2.0
    for digits in range(1, 18):
        short = float(f"{middle:.{digits}g}")
        if low <= short < high:
            return float(np.floor(short)) if whole else short
    return low


def cells_of(traits: Sequence[Trait], p: Floats, encoded: Encoded, how: Sequence[Coding]) -> Cells:
    """Return the cell of each row in each trait, shape (traits, n).

    Parameters
    ----------
    traits : sequence of Trait
    p : float64 array of shape (n,)
    encoded : Encoded
        By `how`.
    how : sequence of Coding
        Of more covariates than there are traits, perhaps.
    """
    numbers, categories, _ = by_kind(how)
    out = np.empty((len(traits), len(p)), dtype=np.uint8)
    at = {c.name: j for j, c in enumerate(numbers)}
    codes = {c.name: (j, len(c.levels)) for j, c in enumerate(categories)}
    for t, own in zip(traits, out, strict=True):
        if t.name == SCORE:
            own[:] = t.cells(p)
        elif t.kind == "category":
            j, levels = codes[t.name]
            own[:] = t.cells_of_codes(encoded.codes[:, j], levels)
        else:
            own[:] = t.cells(encoded.numbers[:, at[t.name]])
    return out
