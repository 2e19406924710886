"""From rows or a sketch to the cells along a variable, or a pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import choice, shown
from calibrant.data.columns import finite_numbers, is_number, require
from calibrant.data.layouts import as_days, decoded, is_date
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import Coding, codings, encode
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.strata import Seen, locate, strata_sums
from calibrant.stats.cells import SCALE
from calibrant.stats.nulls import ClusterSums
from calibrant.stats.strata import MISSING, Strata, Strategy, View, equal_mass_edges
from calibrant.stats.variable import ChordLedger
from calibrant.views.kinds import ByKind
from calibrant.views.points import cluster_codes, weights_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Axis(NamedTuple):
    """Where the cells along a variable lie: what `Strata` says in addition to its sums."""

    name: str
    labels: tuple[str, ...] | None
    x: Floats
    low: Floats
    high: Floats
    missing: bool
    view: View
    date: bool = False

    @classmethod
    def of_levels(cls, name: str, labels: Sequence[str], missing: bool, view: View) -> Axis:
        """Levels stand at 0, 1, 2, ..."""
        x = np.arange(len(labels), dtype=np.float64)
        return cls(name, tuple(labels), x, x, x, missing, view)


# ---- From a sketch to the cells along one of its variables ----

SHORT = 65_536.0  # steps of the squared score
PLACES = 65_535.0  # steps of a value's place in its cell


def sketched_strata(sketch: Sketch, variable: tuple[str, ...], view: View) -> Strata:
    """The cells of a variable, or the groups of a pair, that a sketch kept.

    Raises
    ------
    NotComputable
        The sketch kept neither.
    """
    sketch.checked()
    if sketch.by_clusters:
        named = " and ".join(sketch.spec.row_attributes)
        raise NotComputable(
            f"a sketch's cells count rows as independent and of equal weight, not by {named}: pass its rows()"
        )
    fine = sketch.parts.get("fine")
    if fine is not None and len(variable) == 1 and variable[0] in fine.stored:
        coding = next(c for c in sketch.spec.codings if c.name == variable[0])
        return _fine(coding, fine.stored[coding.name], view)
    for i, names in enumerate(sketch.spec.groupings):
        if sorted(names) == sorted(variable):
            return _grouped(sketch, i, " x ".join(variable), view)
    raise NotComputable(
        f"this sketch did not count {' and '.join(map(repr, variable))}: sketch again with variables= or by="
    )


def fine_ledger(values: Ints, view: View) -> ChordLedger:
    """What certificates read from the cells along a variable; squares are bounded from above."""
    sums = values[None].astype(np.float64)
    rows, score = sums[..., 0], sums[..., 1] / SCALE
    squares = (sums[..., 2] + 2.0 * SHORT * score + rows) / SHORT**2
    ledger = ChordLedger(rows, score, np.array([0.0, 0.5]), np.array([0.5, 1.0]), squares)
    return ledger.turned() if view == "confidence" else ledger


def _fine(coding: Coding, values: Ints, view: View) -> Strata:
    kept = _ordered(coding, values[..., 0].sum(axis=(1, 2)))
    sums = values[kept].astype(np.float64)
    rows, score = sums[..., 0], sums[..., 1] / SCALE
    short = SHORT * score - 0.5 * rows  # about the sum of the 16-bit scores
    square = np.clip((sums[..., 2] + short + rows / 3.0) / SHORT**2, 0.0, score)
    if coding.kind == "category":
        labels = [coding.labels[int(i)] for i in kept]
        missing = bool(len(kept)) and int(kept[-1]) == len(values) - 1
        return _strata(Axis.of_levels(coding.name, labels, missing, view), rows, score, square)
    missing = int(kept[-1]) == len(values) - 1
    ends = np.array([*coding.cells, np.nan])
    low, high = ends[kept], ends[kept + 1]
    place = sums[..., 3].sum(axis=(1, 2)) / rows.sum(axis=(1, 2))
    x = low + (high - low) * place / PLACES
    x, high = np.where(place > 0, x, low), np.where(place > 0, high, low)
    if missing:
        x[-1] = low[-1] = high[-1] = np.nan
    axis = Axis(coding.name, None, x, low, high, missing, view, coding.kind == "date")
    return _strata(axis, rows, score, square)


def _ordered(coding: Coding, rows: Floats) -> NDArray[np.intp]:
    """The cells that hold rows: a category's most frequent level first, as rows in memory are coded.

    The first look orders levels by a sample, and simulations depend on the order.
    """
    kept = np.flatnonzero(rows)
    own = len(coding.levels)
    if coding.kind != "category" or coding.levels == ("false", "true"):
        return kept
    levels = sorted((int(i) for i in kept if i < own), key=lambda i: (-int(rows[i]), coding.levels[i]))
    return np.array([*levels, *(int(i) for i in kept if i >= own)], dtype=np.int64)


def _grouped(sketch: Sketch, grouping: int, name: str, view: View) -> Strata:
    """The groups of a grouping as levels; sums of squares are those of each score cell's mean."""
    start = sum(sketch.spec.sizes[:grouping])
    raw = sketch.group_cells[start : start + sketch.spec.sizes[grouping]].sum(axis=1).astype(np.float64)
    cells = raw.shape[1]
    rows, rest = raw[..., :2], raw[..., 2:4]
    score = (rows * (np.arange(cells) * (SCALE / cells))[None, :, None] + rest) / SCALE
    square = score**2 / np.maximum(rows, 1.0)
    halves = [np.stack([v[:, : cells // 2].sum(axis=1), v[:, cells // 2 :].sum(axis=1)], axis=1) for v in (rows, score)]
    square = np.stack([square[:, : cells // 2].sum(axis=1), square[:, cells // 2 :].sum(axis=1)], axis=1)
    kept = np.flatnonzero(halves[0].sum(axis=(1, 2)))
    names = sketch.spec.group_names(grouping)
    pairs = sketch.spec.groupings[grouping]
    labels = [names[int(i)][0][1] if len(pairs) == 1 else ", ".join(f"{k} {v}" for k, v in names[int(i)]) for i in kept]
    last = len(pairs) == 1 and bool(len(kept)) and int(kept[-1]) == len(names) - 1
    return _strata(Axis.of_levels(name, labels, last, view), halves[0][kept], halves[1][kept], square[kept])


def _strata(axis: Axis, rows: Floats, score: Floats, square: Floats) -> Strata:
    """Add up sums by cell, side of the score and label, shape (cells, 2, 2), in the view asked for."""
    if axis.view == "confidence":
        below = np.array([True, False])[None, :, None]
        square = np.where(below, (rows - 2 * score + square)[..., ::-1], square)
        score = np.where(below, (rows - score)[..., ::-1], score)
        rows = np.where(below, rows[..., ::-1], rows)
    n, s, q = (v.sum(axis=(1, 2)) for v in (rows, score, square))
    events = rows[..., 1].sum(axis=1)
    right = rows[..., 1] - 2 * score[..., 1] + square[..., 1]
    noise, resid2 = np.maximum(s - q, 0.0), right.sum(axis=1) + square[..., 0].sum(axis=1)
    return Strata(**axis._asdict(), rows=n, weight=n, weight2=n, events=events, score=s, noise=noise, resid2=resid2)


# ---- From rows or a sketch to the cells along one variable, or a pair, that everything about variables reads ----

CELLS = 4096  # distinct values kept apart; with more, as many cells of about equally many rows


@dataclass(frozen=True)
class ByVariable:
    """Rows dealt into cells along one variable."""

    strata: Strata
    cell: NDArray[np.int32]  # shape (n,): the cell of each row


def _seen(rows: Predictions, view: View) -> Seen:
    return Seen(rows.p, rows.weights, view == "confidence")


def strata_of(data: Predictions | Sketch, variable: str, view: View = "probability") -> Strata:
    """The cells of a variable, from rows or from a sketch; labels play no part in where they lie.

    Raises
    ------
    BadInput
        No such variable, or values that cannot be used.
    NotComputable
        A sketch did not count it.
    """
    return along(data, variable, view)[0]


def by_variable_of(data: object, variable: str, view: View = "probability") -> ByVariable:
    """The cells of a variable and the cell of each row.

    Distinct values of a number or a date have their own cells if there are at most `CELLS`; otherwise there are as
    many cells of about equally many rows, and equal values share one. Missing values have a cell of their own, last.
    Who belongs together changes no cell; the noise of their sums is `by_cluster`.
    """
    rows = checked_rows(data)
    column = covariate(rows, variable)
    if is_number(column.type) or is_date(column.type):
        return _numbers(rows, variable, column, checked_view(view))
    return _levels(rows, variable, checked_view(view))


def _along_rows(rows: Predictions, variable: str, view: View) -> tuple[Strata, NDArray[np.int32] | None]:
    by_variable = by_variable_of(rows, variable, view)
    return by_variable.strata, by_variable.cell


def _along_sketch(sketch: Sketch, variable: str, view: View) -> tuple[Strata, NDArray[np.int32] | None]:
    return sketched_strata(sketch, (variable,), checked_view(view)), None


# The cells of a variable, and the cell of each row where there are rows.
along = ByKind(rows=_along_rows, sketches=_along_sketch)


def checked_view(view: View) -> View:
    """The view; refuse any other name."""
    return choice("view", view, get_args(View))


def checked_names(variable: str | Sequence[str]) -> tuple[str, ...]:
    """The name of one covariate, or the names of a pair."""
    if isinstance(variable, str):
        return (variable,)
    pair = tuple(variable) if isinstance(variable, (list, tuple)) else ()
    if len(pair) == 2 and all(isinstance(name, str) for name in pair) and pair[0] != pair[1]:
        return pair
    raise BadInput(f"variable={shown(variable)}: pass the name of one covariate, or two different names")


def checked_rows(data: object) -> Predictions:
    """Predictions that have rows; refuse others."""
    rows = checked_data(data, Predictions)
    if rows.n == 0:
        raise NotComputable("there are no rows")
    return rows


def covariate(rows: Predictions, variable: Any) -> Any:
    """One covariate as a decoded Arrow column; refuse an unknown name, and list those there are."""
    if not isinstance(variable, str):
        raise BadInput(f"variable={shown(variable)}: pass the name of one covariate")
    require([variable], () if rows.covariates is None else tuple(rows.covariates.schema.names), "covariate")
    return decoded(rows.covariates.column(variable))


def _numbers(rows: Predictions, name: str, column: Any, view: View) -> ByVariable:
    date, values = is_date(column.type), finite_values(column, name)
    ordered = np.sort(values)  # NaN last
    there = len(ordered) - int(np.isnan(ordered).sum())
    ordered = ordered[:there]
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    edges = ordered[starts] if len(starts) < CELLS else equal_mass_edges(ordered, None, CELLS)
    cell = locate(values, edges)
    if not there:
        cell[:] = 0
    cells = len(edges) + 1 if there else 0
    sums = strata_sums(cell, cells + int(there < rows.n), rows.y, _seen(rows, view), values)
    low = ordered[np.concatenate([[0], np.searchsorted(ordered, edges)]).astype(np.int64)] if there else np.empty(0)
    high = ordered[np.append(np.searchsorted(ordered, edges), there).astype(np.int64) - 1] if there else np.empty(0)
    x = np.where(low == high, low, np.clip(sums[:cells, 7] / sums[:cells, 0], low, high))
    if missing := there < rows.n:
        low, high, x = (np.append(v, np.nan) for v in (low, high, x))
    return ByVariable(_row_strata(Axis(name, None, x, low, high, missing, view, date), sums), cell)


def finite_values(column: Any, name: str) -> Any:
    """A column of numbers or dates (in days) as float64, NaN where missing; refuse infinite and huge values."""
    return as_days(column, name) if is_date(column.type) else finite_numbers(column, name, "covariate")


def numbers_of(data: Predictions | Sketch, variable: str) -> Any:
    """A number or a date (in days) as float64, NaN where missing; refuse a category."""
    column = covariate(checked_rows(data), variable)
    if not (is_number(column.type) or is_date(column.type)):
        raise NotComputable(f"covariate {variable!r} is a category: it has levels and no order")
    return finite_values(column, variable)


def rows_by_variable(data: Predictions, name: str, values: Floats, cell: NDArray[np.int32], view: View) -> Strata:
    """The strata of rows whose cells are given, numbered without gaps in increasing order of the values."""
    size = int(cell.max()) + 1
    sums = strata_sums(cell, size, data.y, _seen(data, view), values)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, cell, values)
    np.maximum.at(high, cell, values)
    date = is_date(covariate(data, name).type)
    x = np.clip(sums[:, 7] / sums[:, 0], low, high)
    return _row_strata(Axis(name, None, x, low, high, False, view, date), sums)


def by_cluster(data: Predictions, cell: NDArray[np.int32], size: int, view: View) -> ClusterSums | None:
    """What each cluster's rows add to cells, shape (n,) or (n, k); None where rows are independent."""
    cluster = cluster_codes(data)
    if cluster is None:
        return None
    weight = weights_of(data)
    residual = weight * (data.y - data.p) * (np.where(data.p < 0.5, -1.0, 1.0) if view == "confidence" else 1.0)
    if cell.ndim == 2:
        weight, residual = (np.broadcast_to(v[:, None], cell.shape) for v in (weight, residual))
    return ClusterSums.of(cell.astype(np.intp), cluster, size, residual, weight)


def _levels(rows: Predictions, name: str, view: View) -> ByVariable:
    labels: tuple[str, ...]
    coding = codings(rows.covariates, [name])
    if coding[0].kind == "constant":
        column = decoded(rows.covariates.column(name))
        label = str(column[0].as_py()) if column.null_count < len(column) else MISSING
        code, labels = np.zeros(rows.n, dtype=np.int32), (label or MISSING,)
    else:
        coded = encode(rows.covariates, coding)
        code, labels = coded.codes[:, 0], coded.level_labels[0]
    sums = strata_sums(code, len(labels), rows.y, _seen(rows, view))
    kept = np.flatnonzero(sums[:, 0])
    cell = np.cumsum(sums[:, 0] > 0)[code] - 1
    missing = bool(sums[-1, 0]) and (coding[0].kind == "category" or labels == (MISSING,))
    axis = Axis.of_levels(name, [labels[int(i)] for i in kept], missing, view)
    return ByVariable(_row_strata(axis, sums[kept]), cell.astype(np.int32))


def _row_strata(axis: Axis, sums: Floats) -> Strata:
    """Strata from what `strata_sums` added up, a column a quantity."""
    names = ("rows", "weight", "weight2", "events", "score", "noise", "resid2")
    return Strata(**axis._asdict() | {name: np.ascontiguousarray(sums[:, j]) for j, name in enumerate(names)})


def pair_of(
    data: Predictions | Sketch, pair: Sequence[str], bins: int, strategy: Strategy, view: View = "probability"
) -> tuple[ByVariable, list[tuple[int, bool, bool]]]:
    """The cells that hold rows of the product of two variables' bins or levels, as levels of one category.

    Also, for each of the two, how many cells it has, whether it is a category, and whether values are missing.
    """
    rows = checked_rows(data)
    codes, titles, sizes = [], [], []
    for name in pair:
        result = by_variable_of(rows, name, view)
        group = result.strata.bin_of(bins, strategy)
        codes.append(group[result.cell])
        titles.append(result.strata.joined(group).titles())
        sizes.append((len(titles[-1]), not result.strata.ordered, result.strata.missing))
    code = codes[0] * len(titles[1]) + codes[1]
    kept, inverse = np.unique(code, return_inverse=True)
    cell = inverse.astype(np.int32)
    sums = strata_sums(cell, len(kept), rows.y, _seen(rows, view))
    both = [(titles[0][int(c) // len(titles[1])], titles[1][int(c) % len(titles[1])]) for c in kept]
    named = tuple(f"{pair[0]} {a}, {pair[1]} {b}" for a, b in both)
    return ByVariable(_row_strata(Axis.of_levels(" x ".join(pair), named, False, view), sums), cell), sizes
