"""Covariates as the axes of a map: where rows lie along each, the places where a map has points, how far it looks."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import positive
from calibrant.data.predictions import Predictions
from calibrant.data.specs.coding import MISSING, Coding, codings, encode
from calibrant.errors import BadInput, NotComputable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Grid = int | Sequence[Any] | Mapping[str, Any] | None  # points along an axis, or values, or either by axis
Bandwidth = float | Mapping[str, float] | None

# ---- How a covariate, or the score, becomes positions and levels, and where a map has points; no label is read ----

FEW = 10  # a number of so few values is taken value by value, as a category
TRIM = (0.01, 0.99)  # quantiles between which points lie
POINTS, PAIR_POINTS, MOST_POINTS = 101, 21, 2000  # along one axis, along each of two, and at most
EPOCH = datetime.date(1970, 1, 1)
SCORE = "score"


@dataclass(frozen=True)
class Axis:
    """One variable of a map."""

    name: str
    kind: str  # "number", "date", "category" or "score"
    # Shape (n,): in the variable's unit (days for a date), or as a rank share; 0 for a category and where missing.
    position: Floats
    level: Ints  # shape (n,): of a category; along a number 0, or 1 where missing
    labels: tuple[str, ...] = ()  # names of a category's levels
    ranks: tuple[float, ...] = ()  # quantiles of a heavy-tailed number, whose position is its rank share; else empty
    whole: bool = False  # the number takes whole values only

    @property
    def numeric(self) -> bool:
        """Whether there is a distance along it."""
        return self.kind != "category"

    def placed(self, values: Floats) -> Floats:
        """The positions of values in the user's unit."""
        if not self.ranks:
            return values
        return np.interp(values, self.ranks, np.linspace(0.0, 1.0, len(self.ranks)))

    def valued(self, positions: Floats) -> Floats:
        """The values at positions."""
        if not self.ranks:
            return positions
        return np.interp(positions, np.linspace(0.0, 1.0, len(self.ranks)), self.ranks)


@dataclass(frozen=True)
class Places:
    """The places along one axis where a map has points."""

    values: tuple[Any, ...]  # in the user's unit: numbers, dates as ISO text, names of levels; None where missing
    labels: tuple[str, ...]
    position: Floats = field(repr=False)  # shape (places,)
    level: Ints = field(repr=False)  # shape (places,)

    def nearest(self, axis: Axis) -> Ints:
        """The place nearest to each row; -1 for rows over half a step beyond the ends."""
        if not axis.numeric:
            table = np.full(int(max(axis.level.max(initial=0), self.level.max(initial=0))) + 1, -1)
            table[self.level] = np.arange(len(self.level))
            return table[axis.level]
        there = np.flatnonzero(self.level == 0)
        x = self.position[there]
        out = np.full(len(axis.position), -1)
        if len(x):
            half = np.diff(x) / 2 if len(x) > 1 else np.array([np.inf])
            edges = np.concatenate([[x[0] - half[0]], x[:-1] + half if len(x) > 1 else [], [x[-1] + half[-1]]])
            k = np.searchsorted(edges, axis.position, side="right") - 1
            out = np.where((k >= 0) & (k < len(x)), there[np.clip(k, 0, len(x) - 1)], -1)
        lost = np.flatnonzero(self.level == 1)
        return np.where(axis.level == 1, lost[0] if len(lost) else -1, out)


def axes_of(data: Predictions, names: tuple[str, ...], by_score: bool, delta: bool = True) -> tuple[Axis, ...]:
    """Code covariates as axes, and the score as the last one if asked; nothing here looks at a label.

    With `delta`, a number of at most ten values is a category.
    """
    table = data.covariates
    if table is None:
        raise BadInput("the data hold no covariates: pass covariates= to calibrant.predictions")
    how = codings(table, names)
    for c in how:
        if c.kind == "constant":
            raise NotComputable(f"{c.name!r} has one value only: there is no map by it")
    out = [_axis(table, c, delta) for c in how]
    if by_score:
        if SCORE in names:
            raise BadInput(f"by_score=True adds an axis called {SCORE!r}: rename the covariate of that name")
        out.append(Axis(SCORE, "score", data.p, np.zeros(data.n, dtype=np.int64)))
    return tuple(out)


def _axis(table: Any, c: Coding, delta: bool) -> Axis:
    coded = encode(table, (c,))
    if c.kind == "category":
        return Axis(c.name, "category", np.zeros(coded.n), coded.codes[:, 0].astype(np.int64), c.labels)
    x = coded.numbers[:, 0]
    lost = np.isnan(x)
    values = np.unique(x[~lost])
    if delta and len(values) <= FEW:
        labels = (*(stated(v, c.kind) for v in values), MISSING)
        level = np.where(lost, len(values), np.searchsorted(values, x))
        return Axis(c.name, "category", np.zeros(len(x)), level, labels)
    plain = Axis(c.name, c.kind, x, lost.astype(np.int64), (), c.ranks, c.whole)
    position = np.where(lost, 0.0, plain.placed(np.where(lost, c.fill, x)))
    return Axis(c.name, c.kind, position, lost.astype(np.int64), (), c.ranks, c.whole)


def stated(value: float, kind: str) -> str:
    """Write a value of a number or a date in the user's unit."""
    if kind == "date":
        return (EPOCH + datetime.timedelta(days=int(np.floor(value)))).isoformat()
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    short = f"{value:.4g}"
    return short if abs(value) >= 1e15 or "e-" in short else f"{Decimal(short):f}"


def grid_for(name: str, grid: Grid, names: tuple[str, ...]) -> int | Sequence[Any] | None:
    """What `grid` says about one axis: a number of points, values, or None."""
    if isinstance(grid, Mapping):
        strange = [k for k in grid if k not in names]
        if strange:
            raise BadInput(f"grid names {strange[0]!r}, which is not an axis of this map: {', '.join(names)}")
        own: int | Sequence[Any] | None = grid.get(name)
        return own
    if grid is None or isinstance(grid, (int, np.integer)):
        return grid
    if len(names) > 1:
        raise BadInput(f"grid: with axes {', '.join(names)} pass a number, or a dictionary of values by axis")
    return grid


def places_of(axis: Axis, grid: int | Sequence[Any] | None, points: int) -> Places:
    """The places along one axis."""
    if isinstance(grid, bool) or (isinstance(grid, (int, np.integer)) and not 2 <= grid <= MOST_POINTS):
        raise BadInput(f"grid={grid!r}: pass a number of points from 2 to 2000, or the values themselves")
    if not axis.numeric:
        return _levels(axis, grid)
    there = axis.position[axis.level == 0]
    if grid is None or isinstance(grid, (int, np.integer)):
        values = _spaced(axis, there, int(points if grid is None else grid))
    else:
        values = _passed(axis, grid)
    position, level = axis.placed(values), np.zeros(len(values), dtype=np.int64)
    shown: list[Any] = [stated(v, "date") if axis.kind == "date" else float(v) for v in values]
    labels = [stated(v, axis.kind) for v in values]
    if (axis.level == 1).any():
        position, level = np.append(position, 0.0), np.append(level, 1)
        shown, labels = [*shown, None], [*labels, MISSING]
    return Places(tuple(shown), tuple(labels), position, level)


def _levels(axis: Axis, grid: int | Sequence[Any] | None) -> Places:
    """The levels that occur; or those asked for."""
    kept = np.flatnonzero(np.bincount(axis.level, minlength=len(axis.labels)))
    if grid is not None and not isinstance(grid, (int, np.integer)):
        unknown = [v for v in grid if str(v) not in axis.labels]
        if unknown:
            raise BadInput(f"grid: {unknown[0]!r} is not a level of {axis.name!r}")
        kept = np.array([axis.labels.index(str(v)) for v in grid], dtype=np.int64)
    names = tuple(axis.labels[v] for v in kept)
    return Places(names, names, np.zeros(len(kept)), kept)


def _spaced(axis: Axis, there: Floats, points: int) -> Floats:
    """Values equally spaced along the axis, from the 1st to the 99th percentile of the rows."""
    low, high = (float(v) for v in np.quantile(there, TRIM))
    if not high > low:
        low, high = float(there.min()), float(there.max())
    if axis.ranks:
        values = axis.valued(np.linspace(low, high, points))
        return np.unique(np.round(values) if axis.whole or axis.kind == "date" else values)
    if axis.whole or axis.kind == "date":
        low, high = np.floor(low), np.ceil(high)
        return np.unique(np.round(np.linspace(low, high, min(points, int(high - low) + 1))))
    return np.linspace(low, high, points)


def _passed(axis: Axis, grid: Sequence[Any]) -> Floats:
    try:
        values = np.array([_days(v) if axis.kind == "date" else float(v) for v in grid])
    except (TypeError, ValueError):
        kind = "dates such as '2024-05-31'" if axis.kind == "date" else "numbers"
        raise BadInput(f"grid: pass increasing {kind} of {axis.name!r}, or a number of points") from None
    if not len(values) or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise BadInput(f"grid: the values of {axis.name!r} must be finite and increasing")
    return values


def _days(value: Any) -> float:
    day = value if isinstance(value, datetime.date) else datetime.date.fromisoformat(str(value))
    return float(day.toordinal() - EPOCH.toordinal())


def groups_of(data: Predictions, names: tuple[str, ...]) -> tuple[tuple[str, ...], Ints]:
    """The label of each group and the group of each row; "everyone" for no names."""
    if not names:
        return ("everyone",), np.zeros(data.n, dtype=np.int64)
    axes = axes_of(data, names, by_score=False)
    for a in axes:
        if a.numeric:
            raise BadInput(f"by: {a.name!r} is a {a.kind} of more than {FEW} values: cut it into groups first")
    codes = np.column_stack([a.level for a in axes])
    result, row = np.unique(codes, axis=0, return_inverse=True)
    labels = (" and ".join(f"{a.name} {a.labels[v]}" for a, v in zip(axes, levels, strict=True)) for levels in result)
    return tuple(labels), row.reshape(-1)


# ---- How far a map looks: bandwidths chosen from scores and covariates alone, or as asked ----

NARROW = 0.75  # of the width that smooths best: a step of 0.2 is found as often, and its edge is blurred less


def widths_of(axes: Sequence[Axis], bandwidth: Bandwidth, at: NDArray[np.bool_], noise: Floats) -> tuple[float, ...]:
    """The bandwidth along each axis for the rows of one group; 1 along a category, where it plays no part.

    Where the rows of the group do not differ along a number, all rows set its bandwidth.
    """
    options = _requested(axes, bandwidth)
    d = sum(a.numeric for a in axes)
    everyone = np.ones(len(at), dtype=bool)
    out = []
    for a in axes:
        own = options.get(a.name) or (width_of(a, at, noise, d) if a.numeric else 1.0)
        out.append(own or width_of(a, everyone, noise, d) or 1.0)
    return tuple(out)


def _requested(axes: Sequence[Axis], bandwidth: Bandwidth) -> dict[str, float]:
    numeric = [a.name for a in axes if a.numeric]
    if bandwidth is None:
        return {}
    if not numeric:
        raise BadInput(f"bandwidth={bandwidth!r}: no axis of this map is a number; leave it out")
    if not isinstance(bandwidth, Mapping) and len(numeric) > 1:
        raise BadInput(f"bandwidth: with axes {', '.join(numeric)} pass a dictionary of widths by axis")
    inputs = bandwidth if isinstance(bandwidth, Mapping) else {numeric[0]: bandwidth}
    for name in inputs:
        if name not in numeric:
            raise BadInput(f"bandwidth names {name!r}, which is not a number of this map: {', '.join(numeric)}")
    cluster = "a positive width in the unit of {!r}, or None to choose it"
    return {name: positive("bandwidth", h, what=cluster.format(name)) for name, h in inputs.items()}


def width_of(axis: Axis, at: NDArray[np.bool_], noise: Floats, axes: int) -> float:
    """Choose a bandwidth from scores and covariates alone: ``0.75 sd V^(-1 / (4 + axes))``; see `local_bias`.

    Parameters
    ----------
    axis : Axis
    at : bool array of shape (n,)
        Rows of the group.
    noise : float array of shape (n,)
        Null variance of each row.
    axes : int
        Numeric axes of the map.
    """
    there = at & (axis.level == 0)
    v, x = noise[there], axis.position[there]
    total = float(v.sum())
    if total <= 0.0:
        v = np.ones(len(x))
    middle = np.average(x, weights=v) if len(x) else 0.0
    spread = float(np.sqrt(np.average((x - middle) ** 2, weights=v))) if len(x) else 0.0
    if not spread > 1e-9 * max(float(np.abs(x).max(initial=0.0)), 1e-300):  # 1e-9: rows differ by rounding only
        return 0.0
    return float(NARROW * spread * max(total, 1.0) ** (-1.0 / (4 + axes)))
