"""What a map reports about the people it was fitted on: levels of twenty or more, and numbers that are nobody's own.

A map leaves the house: it is applied elsewhere, by others. A level that one person has, the largest income, a cut
halfway between two people's ages or the score at which one outcome happened would each tell of a person. So codings,
cuts and knots are rounded before anything is fitted to them: what is judged is the map that is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant import arguments
from calibrant.arguments import check_int
from calibrant.data.columns import as_text
from calibrant.data.layouts import decoded
from calibrant.data.specs.coding import Coding, codings, encode
from calibrant.stats.smoothing import run_starts

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
MASK = arguments.MASK  # people on whom a level, a cut or a knot rests at least: as many as an audit shows
PARTS = 50  # of a standard deviation: values are reported in steps of at most so much
DECIMALS = 6  # of a rate that is shown: a ten-thousandth of a point


def checked_fewest(fewest: int) -> int:
    """How many rows every point of a map rests on, at least; refuse what is no such number."""
    return check_int("fewest", fewest, 1, 10**9, hint=f"such as {MASK}")


def grain(width: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most a fiftieth of a width; 0 without width."""
    most = width / PARTS
    if not 0.0 < most < math.inf:
        return 0.0
    power = 10.0 ** math.floor(math.log10(most))
    return max(m * power for m in (1.0, 2.0, 5.0) if m * power <= most * (1 + 1e-9))


def stepped(values: Floats, step: float) -> Floats:
    """Values in whole steps; as they are where the step is 0."""
    if not step:
        return values
    digits = max(0, 1 - math.floor(math.log10(step)))
    return np.round(np.round(values / step) * step, digits)


def reported_codings(columns: pa.Table | None, names: Iterable[str] | None) -> tuple[Coding, ...]:
    """Fix how covariates are coded, as `codings` does, from levels of people enough and from rounded numbers."""
    how = codings(columns, names)
    return tuple(c if columns is None else _reported(c, decoded(columns.column(c.name))) for c in how)


def _reported(c: Coding, column: pa.Array) -> Coding:
    if c.kind == "constant":
        return c
    if c.kind == "category":
        counts = {v["values"].as_py(): v["counts"].as_py() for v in pc.value_counts(as_text(column))}
        kept = tuple(level for level in c.levels if counts.get(level, 0) >= MASK)
        return replace(c, levels=kept) if kept else Coding(name=c.name, kind="constant")
    values = encode(pa.table({c.name: column}), (replace(c, missing=False),)).numbers[:, 0]
    there = np.sort(values[~np.isnan(values)])
    return reported_number(c, there, missing=len(values) - len(there) >= MASK)


def reported_number(c: Coding, there: Floats, *, missing: bool = False) -> Coding:
    """The coding of a number by values that are nobody's own; `there` are its values, in order."""
    step = grain(spread(there))
    beyond = min(MASK, max(1, len(there) // 4)) - 1  # people above the largest value reported, and below the smallest
    low, high = stepped(there[[beyond, -1 - beyond]], step).tolist()
    fill = float(np.clip(stepped(np.array([c.fill]), step)[0], low, high))
    ranks = tuple(np.clip(stepped(np.array(c.ranks), step), low, high).tolist()) if c.ranks else ()
    cluster = grain(c.scale)
    location, scale = (float(v) for v in stepped(np.array([c.location, c.scale]), cluster))
    return replace(c, fill=fill, missing=missing, ranks=ranks, location=location, scale=scale, cells=())


def spread(values: Floats) -> float:
    """About a standard deviation of values, however heavy their tails."""
    low, high = np.quantile(values, [0.16, 0.84])
    return float(high - low) / 2.0 or float(values.std())


def cuts(edges: Sequence[float], ordered: Floats, step: float) -> tuple[float, ...]:
    """Edges in whole steps, those left out that would leave fewer than twenty rows between or beyond them.

    The values of the rows are given in order.
    """
    rounded = np.unique(stepped(np.array(edges, dtype=np.float64), step))
    return kept_cuts(rounded, np.searchsorted(ordered, rounded, side="left"), len(ordered))


def kept_cuts(edges: Floats, before: Counts, rows: int) -> tuple[float, ...]:
    """The edges, of so many rows before each, that leave twenty rows between and beyond them."""
    kept: list[float] = []
    last = 0
    for edge, below in zip(edges.tolist(), before.tolist(), strict=True):
        if below - last >= MASK and rows - below >= MASK:
            kept.append(edge)
            last = below
    return tuple(kept)


def cells(scores: Floats, weight: Floats, events: Floats, rows: Counts, fewest: int) -> tuple[Floats, Floats, Floats]:
    """Join neighbouring scores until each cell holds rows enough, at its mean score; return scores, weight and events.

    A score that so many rows share stays as it is.
    """
    first = np.array(run_starts(rows, fewest))
    sizes = np.diff(np.append(first, len(rows)))
    cell = np.repeat(np.arange(len(first)), sizes)
    kept, happened = np.bincount(cell, weight), np.bincount(cell, events)
    middle = np.where(sizes == 1, scores[first], np.bincount(cell, weight * scores) / kept)
    result, at = np.unique(middle, return_inverse=True)  # of scores next to one another, rounding can make one
    return result, np.bincount(at, kept).astype(np.float64), np.bincount(at, happened).astype(np.float64)
