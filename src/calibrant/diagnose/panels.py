"""The points of a curve along a variable, the smoothed residual there, and its simulated null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.data.sample import identities_of
from calibrant.data.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import Draws, tallies
from calibrant.kernels.strata import Seen, strata_sums
from calibrant.stats.nulls import critical, p_value
from calibrant.stats.smoothing import SPREAD, density, smoother
from calibrant.stats.strata import SUMS, Strata, View
from calibrant.views.along import Along, along_of, strata_of

# ---- The points of a curve along a variable, and what each point averages; nothing here looks at an outcome ----

CELLS = 1024  # cells that are smoothed, at most; more are joined, equal values staying together
FEW = 10  # a number with so few values is drawn value by value
GROUP_BINS, PAIR_BINS = 4, 6  # into which a number is cut to tell groups apart, and on each side of a heat map
TRIM, SEARCH = (0.01, 0.99), (0.05, 0.95)
SEARCHED = 500  # points among which the worst is looked for
GAP = 0.1  # of the axis: a point farther than that from every row is not drawn


@dataclass(frozen=True)
class Panel:
    """The cells of one line, and the matrix whose rows average them.

    Parameters
    ----------
    group : str
        Whom it is about; empty for everyone.
    cells : Strata
    first : int
        Number of its first cell when the cells of all panels are numbered through.
    x : float array of shape (points,)
        NaN for a level.
    labels : tuple of str
    kind : int array of shape (points,)
        0 drawn on the curve, 1 looked at for the worst value only, 2 a level.
    average : float array of shape (points, cells)
        Times the cells' weighted sums: the smoothed mean.
    near : bool array of shape (points,)
        Rows are near.
    density : float array of shape (points,)
        Rows per unit of the variable; of a level its share.
    """

    group: str
    cells: Strata
    first: int
    x: Any
    labels: tuple[str, ...]
    kind: Any
    average: Any
    near: Any
    density: Any


@dataclass(frozen=True)
class Plan:
    """All panels, and the cell of each row over all of them (None without rows)."""

    panels: tuple[Panel, ...]
    code: Any
    whole: Strata
    levels: bool


def plan_of(
    data: Any, variable: Any, view: View, span: float, degree: int, grid: Any, by: str | None, bins: int = PAIR_BINS
) -> Plan:
    """Lay out the points of one variable, of one for each group of another, or of a pair."""
    pair = not isinstance(variable, str)
    if pair:
        variable, by = _pair(variable, by)
    if isinstance(data, Sketch):
        if by is not None:
            raise NotComputable("a sketch keeps no cells of one variable within another: pass rows")
        along = Along(strata_of(data, variable, view), None)
    else:
        along = along_of(data, variable, view)
    whole = along.strata
    levels = pair or not whole.ordered or whole.there <= FEW
    if levels:
        along = _joined(along, whole.bin_of(bins)) if pair and whole.ordered and whole.there > FEW else along
    else:
        along = _joined(along, whole.bin_of(CELLS))
    if not levels and not along.strata.x[along.strata.there - 1] > along.strata.x[0]:
        raise NotComputable(f"{variable!r} has one value: there is nothing to draw a curve along")
    at = (np.empty(0), np.empty(0)) if levels else _grids(whole, grid)
    panels, code = _dealt(data, along, by, PAIR_BINS if pair else GROUP_BINS)
    made = [_levels(*p) if levels else _curve(*p, at, span, degree) for p in panels]
    return Plan(tuple(made), code, whole, levels)


def _pair(variable: Any, by: str | None) -> tuple[str, str]:
    names = tuple(variable) if isinstance(variable, Sequence) else ()
    if len(names) != 2 or not all(isinstance(v, str) for v in names) or names[0] == names[1]:
        raise BadInput(f"variable={variable!r}: pass the name of one covariate, or of two different ones")
    if by is not None:
        raise BadInput(f"by={by!r}: a pair of variables takes no by=; leave one of the three out")
    return names[0], names[1]


def _joined(along: Along, group: Any) -> Along:
    return Along(along.strata.joined(group), None if along.cell is None else group[along.cell])


def _dealt(data: Any, along: Along, by: str | None, bins: int) -> tuple[list[tuple[str, Strata, int]], Any]:
    """Return each group's name, cells and number of its first cell; and the cell of each row over all groups."""
    if by is None:
        return [("", along.strata, 0)], along.cell
    rows: Predictions = data
    other = along_of(rows, by, along.strata.view)
    group = other.strata.bin_of(bins) if other.strata.there > FEW else np.arange(other.strata.size)
    titles = other.strata.joined(group).titles()
    size = along.strata.size
    code = (group[other.cell].astype(np.int64) * size + along.cell).astype(np.int32)
    confidence = along.strata.view == "confidence"
    sums = strata_sums(code, size * len(titles), rows.y, Seen(rows.p, rows.weights, confidence))
    held = np.flatnonzero(sums[:, 0])
    numbered = np.cumsum(sums[:, 0] > 0) - 1
    out = []
    for g, title in enumerate(titles):
        own = held[(held >= g * size) & (held < (g + 1) * size)]
        part = _with_sums(along.strata, own - g * size, sums[own])
        out.append((title, part, int(numbered[own[0]])))
    return out, numbered[code].astype(np.int32)


def _with_sums(strata: Strata, where: Any, sums: Any) -> Strata:
    """Return some cells of a variable with the sums of part of the rows."""
    missing = strata.missing and bool(len(where)) and int(where[-1]) == strata.size - 1
    own: dict[str, Any] = {k: np.ascontiguousarray(sums[:, j]) for j, k in enumerate(SUMS)}
    return replace(strata.taken(where, missing=missing), **own)


def _grids(whole: Strata, grid: Any) -> tuple[Any, Any]:
    """Return the points that are drawn, and those among which the worst is looked for."""
    there = whole.present()
    share = (np.cumsum(there.rows) - 0.5 * there.rows) / there.rows.sum()
    low, high, left, right = np.interp([*TRIM, *SEARCH], share, there.x).tolist()
    return _points(grid, whole, low, high), np.linspace(left, right, SEARCHED)


def _points(grid: Any, whole: Strata, low: float, high: float) -> Any:
    if isinstance(grid, (int, np.integer)) and not isinstance(grid, bool):
        if not 2 <= grid <= 2000:
            raise BadInput(f"grid={grid!r}: pass a number of points from 2 to 2000, or values of the variable")
        return np.linspace(low, high, int(grid))
    try:
        values = np.asarray(grid)
        points = values.astype("datetime64[us]").astype(np.int64) / 86_400e6 if whole.date else values.astype(float)
    except (TypeError, ValueError):
        raise BadInput("grid: pass a number of points, or increasing values of the variable") from None
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all() or (np.diff(points) <= 0).any():
        raise BadInput("grid: pass a number of points, or increasing values of the variable")
    inside = points[(points >= whole.low[0]) & (points <= whole.high[whole.there - 1])]
    if not len(inside):
        raise NotComputable("no value of the grid lies within the variable's values")
    return inside


def _curve(group: str, cells: Strata, first: int, at: tuple[Any, Any], span: float, degree: int) -> Panel:
    """Return a smoothed line, with a level for missing values."""
    c = cells.present()
    if c.size < 2:
        return _levels(group, cells, first)
    points = np.concatenate(at)
    kind = np.repeat([0, 1], [len(at[0]), len(at[1])])
    average = smoother(c.x, c.rows, c.weight, points, span, degree)
    seen = np.unique(np.concatenate([c.low, c.high]))
    right = np.clip(np.searchsorted(seen, points), 1, max(len(seen) - 1, 1))
    beyond = np.minimum(np.abs(points - seen[right - 1]), np.abs(seen[right] - points))
    axis = float(c.high[-1] - c.low[0])
    spread = float(np.sqrt(np.average((c.x - np.average(c.x, weights=c.rows)) ** 2, weights=c.rows)))
    crowd = np.zeros(len(points))
    crowd[kind == 0] = density(c.x, c.weight, at[0], max(SPREAD * spread * float(c.rows.sum()) ** -0.2, 1e-12))
    labels = tuple(named(c, v) for v in points.tolist())
    near = beyond <= GAP * axis
    if cells.missing:
        average = np.pad(average, ((0, 1), (0, 1)))
        average[-1, -1] = 1.0 / cells.weight[-1]
        points, kind, labels = np.append(points, np.nan), np.append(kind, 2), (*labels, "missing")
        near, crowd = np.append(near, True), np.append(crowd, cells.weight[-1] / cells.total)
    return Panel(group, cells, first, points, labels, kind, average, near, crowd)


def _levels(group: str, cells: Strata, first: int) -> Panel:
    """Return one point for each level, or each value of a number with few."""
    size = cells.size
    x = np.full(size, np.nan) if not cells.ordered else cells.x
    average = np.diag(1.0 / cells.weight)
    kind, near = np.full(size, 2), np.ones(size, dtype=bool)
    return Panel(group, cells, first, x, cells.titles(), kind, average, near, cells.weight / cells.total)


def named(cells: Strata, value: float) -> str:
    """Write a value in the user's units, to a thousandth of the axis: a date as ISO text."""
    if cells.date:
        return str(np.datetime64(int(np.floor(value)), "D"))
    axis = float(cells.high[-1] - cells.low[0])
    digits = 3 - int(np.ceil(np.log10(axis))) if axis > 0 else 6
    return f"{round(value, digits):.12g}"


# ---- The smoothed residual of every panel with its simulated null: gaps, bands and one p-value for all points ----

LEAST_ROWS, LEAST_EVENTS = 20, 5  # effective rows, and effective expected cases and non-cases, of a drawn point
AFFORDABLE = 20_000_000_000  # outcomes added to cells, about five seconds
STREAM = 0xC0A57
EXACT = "exact: outcomes of every row simulated at its score"
GAUSSIAN = "asymptotic: Gaussian residual sums with the exact variance of each cell"


@dataclass(frozen=True)
class Band:
    """One panel's drawn points: positions in the panel, the means, and the two kinds of band."""

    panel: Panel
    kept: Any
    predicted: Any
    gap: Any
    wide: Any
    narrow: Any
    rows: Any


@dataclass(frozen=True)
class Banded:
    """All panels' bands, and what the simulated null says about them together."""

    bands: tuple[Band, ...]
    statistic: float
    p_value: float
    critical: float
    masked: int
    law: str


def simulated(data: Any, plan: Plan, draws: int, seed: int) -> tuple[Any, str]:
    """Return residual sums of every cell if the model is calibrated, shape (cells, draws), and where they come from.

    Rows whose outcomes can be simulated at a bearable cost are; otherwise the sums are drawn as Gaussian with the
    exact variance ``sum w^2 p (1 - p)``.
    """
    cells = [p.cells for p in plan.panels]
    if plan.code is None or len(plan.code) * draws > AFFORDABLE:
        noise = np.concatenate([c.noise for c in cells])
        rng = np.random.default_rng([seed, STREAM])
        return rng.standard_normal((draws, len(noise))).T * np.sqrt(noise)[:, None], GAUSSIAN
    rows: Predictions = data
    rate = np.where(rows.p < 0.5, 1.0 - rows.p, rows.p) if plan.whole.view == "confidence" else rows.p
    score = np.concatenate([c.score for c in cells])
    ids, drawn = identities_of(rows.n, seed), Draws(0, draws, salt_of(seed))
    sums = tallies(ids, rate, rows.weights, plan.code[:, None], len(score), drawn)
    return sums - score[:, None], EXACT


def salt_of(seed: int) -> int:
    """Return what sets the simulated outcomes of this seed apart from those of other methods."""
    return int(np.random.default_rng([seed, STREAM]).integers(2**63))


def banded(data: Any, plan: Plan, alpha: float, draws: int, seed: int) -> Banded:
    """Smooth, simulate and judge all panels together."""
    sums, law = simulated(data, plan, draws, seed)
    parts, top, masked = [], np.zeros(draws), 0
    for panel in plan.panels:
        kept, rows, says, null = _drawn(panel)
        masked += int((panel.kind != 1).sum() - (panel.kind[kept] != 1).sum())
        if not len(kept):
            continue
        standard = panel.average[kept] / null[:, None]
        own = np.abs(standard @ sums[panel.first : panel.first + panel.cells.size])
        top = np.maximum(top, own.max(axis=0))
        parts.append((panel, kept, rows, says, null, critical(own.T, alpha)))
    if not parts:
        raise NotComputable(
            f"nowhere along the variable are there {LEAST_ROWS} people and {LEAST_EVENTS} expected cases and non-cases "
            "within reach"
        )
    limit, bands, observed = float(critical(top, alpha)), [], 0.0
    for panel, kept, rows, says, null, point in parts:
        w, c = panel.average[kept], panel.cells
        gap = w @ c.residual
        observed = max(observed, float(np.max(np.abs(gap) / null)))
        noise = np.maximum(null, _alternative(panel, kept, gap))
        bands.append(Band(panel, kept, says, gap, limit * noise, point * noise, rows))
    return Banded(tuple(bands), observed, p_value(observed, top), limit, masked, law)


def _drawn(panel: Panel) -> tuple[Any, Any, Any, Any]:
    """Return which points rest on enough, their effective rows, their mean score and their null standard error."""
    w, c = panel.average, panel.cells
    square = w * w
    rows = 1.0 / np.maximum(square @ c.weight2, 1e-300)
    says, null = np.clip(w @ c.score, 0.0, 1.0), np.sqrt(square @ c.noise)
    enough = (rows >= LEAST_ROWS * (1 - 1e-9)) & (rows * np.minimum(says, 1.0 - says) >= LEAST_EVENTS)
    kept = np.flatnonzero(enough & panel.near & (null > 0))
    return kept, rows[kept], says[kept], null[kept]


def _alternative(panel: Panel, kept: Any, gap: Any) -> Any:
    """Return the standard error where the model is off, from squared residuals about the fitted gap."""
    c, on = panel.cells, panel.kind[kept] != 2
    own = np.zeros(c.size)
    if on.any():
        order = np.argsort(panel.x[kept][on], kind="stable")
        own[: c.there] = np.interp(c.x[: c.there], panel.x[kept][on][order], gap[on][order])
    for point in kept[~on].tolist():
        at = int(np.argmax(panel.average[point]))
        own[at] = c.residual[at] / c.weight[at]
    return np.sqrt(np.maximum((panel.average[kept] ** 2) @ (c.resid2 - c.weight2 * own**2), 0.0))
