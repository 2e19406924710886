"""Smoothed residuals with simultaneous bands: what every curve draws; the points and the null of one along a variable.

A curve averages residuals: ``gap(t) = sum_c a_tc (events_c - score_c)`` over cells c. If the model is calibrated its
variance is ``sum_c a_tc^2 noise_c``, and simulated outcomes give the law of its largest standardised value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import Draws, tallies
from calibrant.kernels.strata import Seen, strata_sums
from calibrant.stats.nulls import critical, p_value
from calibrant.stats.smoothing import SPREAD, density, smoother
from calibrant.stats.strata import SUMS, Strata, View
from calibrant.views.by_variable import along, by_cluster, by_variable_of, checked_names
from calibrant.views.points import SIGNS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

# ---- What every curve shares: where it is drawn, and its columns ----

TRIM = (0.01, 0.99)  # quantiles between which curves are drawn: beyond them a window holds the ends alone
LEAST_ROWS, LEAST_EVENTS = 20, 5  # effective rows, and effective expected events and non-events, of a drawn point


def supported(rows: Floats, predicted: Floats, null: Floats) -> Flags:
    """Which points rest on enough rows and events to be drawn; `null` is their null standard error."""
    events = rows * np.minimum(predicted, 1.0 - predicted)
    enough: Flags = (rows >= LEAST_ROWS * (1 - 1e-9)) & (events >= LEAST_EVENTS) & (null > 0)  # 1e-9: rounding
    return enough


def gap_columns(predicted: Floats, gap: Floats, wide: Floats, narrow: Floats) -> dict[str, Floats]:
    """What a curve says at its points, with simultaneous limits and those of each point by itself."""
    return {
        "predicted": predicted,
        "observed": np.clip(predicted + gap, 0.0, 1.0),
        "gap": gap,
        "low": np.maximum(gap - wide, -1.0),
        "high": np.minimum(gap + wide, 1.0),
        "low_point": np.maximum(gap - narrow, -1.0),
        "high_point": np.minimum(gap + narrow, 1.0),
    }


# ---- Residual sums of cells along variables if the model is calibrated ----

AFFORDABLE = 20_000_000_000  # outcomes added to cells: about five seconds
STREAM = 0xC0A57


def affordable(data: Predictions, cuttings: int, draws: int) -> bool:
    """Whether outcomes of all rows can be simulated for so many ways of cutting them."""
    return data.n * cuttings * draws <= AFFORDABLE


def simulated_events(data: Predictions, codes: Codes, cells: int, view: View, draws: int, seed: int) -> Floats:
    """Weighted events of each cell, every row's outcome drawn at its score, shape (cells, draws).

    All cuttings of the rows, columns of `codes` numbered through, see the same outcomes. In the confidence view an
    outcome is a right answer.
    """
    rate = np.where(data.p < 0.5, 1.0 - data.p, data.p) if view == "confidence" else data.p
    salt = int(np.random.default_rng([seed, STREAM]).integers(2**63))  # apart from the draws of other methods
    return tallies(identities_of(data.n, seed), rate, data.weights, codes, cells, Draws(0, draws, salt))


# ---- The points of a curve along a variable, and what each point averages; nothing here looks at an outcome ----

CELLS = 1024  # cells that are smoothed, at most: finer ones move no curve; equal values stay together
FEW = 10  # a number with so few values is drawn value by value
GROUP_BINS, PAIR_BINS = 4, 6  # into which a number is cut to tell groups apart, and on each side of a heat map
SEARCH, SEARCHED = (0.05, 0.95), 500  # quantiles between which the worst is looked for, and points there (section 6)
APART = 0.1  # of the axis: a point farther than that from every row is not drawn
MOST_POINTS = 2000  # that a user may ask for


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What is drawn: a curve along a variable, one for each group of another, or a table of two."""

    variable: str | Sequence[str]
    by: str | None = None
    view: View = "probability"
    span: float = 0.75  # in (0, 1]: share of the rows in a window
    degree: int = 2  # 0, 1 or 2: of the local polynomial
    grid: int | Sequence[Any] = 41  # int, or increasing values of the variable


@dataclass(frozen=True)
class Panel:
    """The cells of one line, and the matrix whose rows average them."""

    group: str  # whom it is about; empty for everyone
    cells: Strata
    first: int  # number of its first cell when the cells of all panels are numbered through
    x: Floats  # shape (points,): NaN for a level
    labels: tuple[str, ...]
    kind: Ints  # shape (points,): 0 drawn on the curve, 1 looked at for the worst value only, 2 a level
    average: Floats  # shape (points, cells): times the cells' weighted sums: the smoothed mean
    near: Flags  # shape (points,): rows are near
    density: Floats  # shape (points,): rows per unit of the variable; of a level its share


@dataclass(frozen=True)
class Plan:
    """All panels."""

    panels: tuple[Panel, ...]
    whole: Strata
    levels: bool

    def simulated(self, draws: int, seed: int) -> tuple[Floats, str]:
        """The residual sums of every cell if the model is calibrated, shape (cells, draws), and where they come from.

        Rows whose outcomes can be simulated at a bearable cost are; otherwise the sums are drawn as Gaussian with the
        exact variance ``sum w^2 p (1 - p)``.
        """
        noise = np.concatenate([p.cells.noise for p in self.panels])
        rng = np.random.default_rng([seed, STREAM])
        return rng.standard_normal((draws, len(noise))).T * np.sqrt(noise)[:, None], GAUSSIAN


@dataclass(frozen=True)
class RowPlan(Plan):
    """The same with rows at hand."""

    data: Predictions
    code: Codes  # shape (n,): the cell of each row over all panels

    def simulated(self, draws: int, seed: int) -> tuple[Floats, str]:
        score, view = np.concatenate([p.cells.score for p in self.panels]), self.whole.view
        result = by_cluster(self.data, self.code, len(score), view)
        if result is not None:
            return result.signed(draws, np.random.default_rng([seed, STREAM, 1])).T, SIGNS
        if not affordable(self.data, 1, draws):
            return super().simulated(draws, seed)
        sums = simulated_events(self.data, self.code[:, None], len(score), view, draws, seed)
        return sums - score[:, None], EXACT


class _Group(NamedTuple):
    """A group's name, its cells, and the number of the first one."""

    title: str
    cells: Strata
    first: int


def plan_of(data: Predictions | Sketch, layout: Layout) -> Plan:
    """Lay out the points of one variable, of one for each group of another, or of a pair."""
    variable, by, pair = _named(layout)
    whole, cell = along(data, variable, layout.view)
    # (1) Cells: levels and few values as they are; numbers in at most 1,024 cells, or six on the side of a heat map.
    many = whole.ordered and whole.there > FEW
    levels, cells = pair or not many, whole
    if many:
        bins = whole.bin_of(PAIR_BINS if pair else CELLS)
        cells, cell = whole.joined(bins), None if cell is None else bins[cell].astype(np.int32)
    if not levels and not cells.x[cells.there - 1] > cells.x[0]:
        raise NotComputable(f"{variable!r} has one value: there is nothing to draw a curve by")
    # (2) Groups, each with cells of its own, numbered through.
    groups, code = [_Group("", cells, 0)], cell
    if by is not None:
        groups, code = _groups_of(data, cells, cell, by, PAIR_BINS if pair else GROUP_BINS)
    # (3) Points, drawn and among which the worst is looked for, and the matrix that averages the cells there.
    made: Callable[..., Plan] = Plan if code is None else partial(RowPlan, data=cast(Predictions, data), code=code)
    if levels:
        return made(tuple(_levels(g) for g in groups), whole, levels)
    there = whole.present()
    share = (np.cumsum(there.rows) - 0.5 * there.rows) / there.rows.sum()
    low, high, left, right = np.interp([*TRIM, *SEARCH], share, there.x).tolist()
    at = _points(layout.grid, whole, low, high), np.linspace(left, right, SEARCHED)
    return made(tuple(_curve(g, at, layout) for g in groups), whole, levels)


def _named(layout: Layout) -> tuple[str, str | None, bool]:
    """The variable, what distinguishes groups, and whether the two are a pair."""
    variable, by = layout.variable, layout.by
    if isinstance(variable, str):
        return variable, by, False
    first, second = checked_names(variable)
    if by is not None:
        raise BadInput(f"by={by!r}: a pair of variables takes no by=; leave one of the three out")
    return first, second, True


def _groups_of(
    data: Predictions | Sketch, cells: Strata, cell: Codes | None, by: str, bins: int
) -> tuple[list[_Group], Codes]:
    """The groups with their own cells, and the cell of each row over all groups."""
    if cell is None or not isinstance(data, Predictions):
        raise NotComputable("a sketch keeps no cells of one variable within another: pass rows")
    other = by_variable_of(data, by, cells.view)
    group = other.strata.bin_of(bins) if other.strata.there > FEW else np.arange(other.strata.size)
    titles, size = other.strata.joined(group).titles(), cells.size
    code = (group[other.cell].astype(np.int64) * size + cell).astype(np.int32)
    sums = strata_sums(code, size * len(titles), data.y, Seen(data.p, data.weights, cells.view == "confidence"))
    kept, numbered = np.flatnonzero(sums[:, 0]), np.cumsum(sums[:, 0] > 0) - 1
    out = []
    for g, title in enumerate(titles):
        own = kept[(kept >= g * size) & (kept < (g + 1) * size)]
        where = own - g * size
        missing = cells.missing and bool(len(where)) and int(where[-1]) == size - 1
        columns: dict[str, Any] = {k: np.ascontiguousarray(sums[own, j]) for j, k in enumerate(SUMS)}
        part = replace(cells.taken(where, missing=missing), **columns)
        out.append(_Group(title, part, int(numbered[own[0]])))
    return out, numbered[code].astype(np.int32)


def _points(grid: int | Sequence[Any], full: Strata, low: float, high: float) -> Floats:
    if isinstance(grid, (int, np.integer)) and not isinstance(grid, bool):
        if not 2 <= grid <= MOST_POINTS:
            raise BadInput(f"grid={grid!r}: pass a number of points from 2 to 2000, or values of the variable")
        return np.linspace(low, high, int(grid))
    try:
        values = np.asarray(grid)
        points = values.astype("datetime64[us]").astype(np.int64) / 86_400e6 if full.date else values.astype(float)
    except (TypeError, ValueError):
        raise BadInput("grid: pass a number of points, or increasing values of the variable") from None
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all() or (np.diff(points) <= 0).any():
        raise BadInput("grid: pass a number of points, or increasing values of the variable")
    inside: Floats = points[(points >= full.low[0]) & (points <= full.high[full.there - 1])]
    if not len(inside):
        raise NotComputable("no value of the grid lies within the variable's values")
    return inside


def _curve(g: _Group, at: tuple[Floats, Floats], layout: Layout) -> Panel:
    """A smoothed line, with a level for missing values."""
    c = g.cells.present()
    if c.size < 2:
        return _levels(g)
    points, kind = np.concatenate(at), np.repeat([0, 1], [len(at[0]), len(at[1])])
    average = smoother(c.x, c.rows, c.weight, points, layout.span, layout.degree)
    seen = np.unique(np.concatenate([c.low, c.high]))
    right = np.clip(np.searchsorted(seen, points), 1, max(len(seen) - 1, 1))
    beyond = np.minimum(np.abs(points - seen[right - 1]), np.abs(seen[right] - points))
    near = beyond <= APART * float(c.high[-1] - c.low[0])
    spread = float(np.sqrt(np.average((c.x - np.average(c.x, weights=c.rows)) ** 2, weights=c.rows)))
    crowd = np.zeros(len(points))
    crowd[kind == 0] = density(c.x, c.weight, at[0], max(SPREAD * spread * float(c.rows.sum()) ** -0.2, 1e-12))
    labels = tuple(named(c, v) for v in points.tolist())
    if g.cells.missing:
        average = np.pad(average, ((0, 1), (0, 1)))
        average[-1, -1] = 1.0 / g.cells.weight[-1]
        points, kind, labels = np.append(points, np.nan), np.append(kind, 2), (*labels, "missing")
        near, crowd = np.append(near, True), np.append(crowd, g.cells.weight[-1] / g.cells.total)
    return Panel(g.title, g.cells, g.first, points, labels, kind, average, near, crowd)


def _levels(g: _Group) -> Panel:
    """One point for each level, or each value of a number with few."""
    c = g.cells
    x = np.full(c.size, np.nan) if not c.ordered else c.x
    kind, near = np.full(c.size, 2), np.ones(c.size, dtype=bool)
    return Panel(g.title, c, g.first, x, c.titles(), kind, np.diag(1.0 / c.weight), near, c.weight / c.total)


def named(cells: Strata, value: float) -> str:
    """Write a value in the user's units, to a thousandth of the axis: a date as ISO text."""
    if cells.date:
        return str(np.datetime64(int(np.floor(value)), "D"))
    axis = float(cells.high[-1] - cells.low[0])
    digits = 3 - int(np.ceil(np.log10(axis))) if axis > 0 else 6
    return f"{round(value, digits):.12g}"


# ---- The smoothed residual of every panel with its simulated null: gaps, bands and one p-value for all points ----

EXACT = "exact: outcomes of every row simulated at its score"
GAUSSIAN = "asymptotic: Gaussian residual sums with the exact variance of each cell"


@dataclass(frozen=True)
class Band:
    """One panel's drawn points: positions in the panel, the means, and the two kinds of band."""

    panel: Panel
    kept: Ints
    predicted: Floats
    gap: Floats
    wide: Floats
    narrow: Floats
    rows: Floats


@dataclass(frozen=True)
class Banded:
    """All panels' bands, and what the simulated null says about them together."""

    bands: tuple[Band, ...]
    statistic: float
    p_value: float
    critical: float
    masked: int
    law: str


def banded(plan: Plan, alpha: float, draws: int, seed: int) -> Banded:
    """Smooth, simulate and judge all panels together."""
    sums, law = plan.simulated(draws, seed)
    parts, top, masked = [], np.zeros(draws), 0
    # (1) Where each panel is drawn, and the largest standardised deviation of each draw over all of them.
    for panel in plan.panels:
        own_sums = sums[panel.first : panel.first + panel.cells.size]
        kept, rows, says, null = _drawn(panel)
        if law == SIGNS:  # the standard error of sums over clusters, where that is more
            seen = panel.average[kept] @ own_sums
            null = np.maximum(null, np.sqrt((seen * seen).mean(axis=1)))
        masked += int((panel.kind != 1).sum() - (panel.kind[kept] != 1).sum())
        if not len(kept):
            continue
        standard = panel.average[kept] / null[:, None]
        own = np.abs(standard @ own_sums)
        top = np.maximum(top, own.max(axis=0))
        parts.append((panel, kept, rows, says, null, critical(own.T, alpha)))
    if not parts:
        raise NotComputable(
            f"at no value of the variable are there {LEAST_ROWS} people and {LEAST_EVENTS} expected events and "
            "non-events within reach"
        )
    # (2) The gaps, held against that; a band is as wide as the larger of the null's and the data's standard error.
    limit, bands, observed = float(critical(top, alpha)), [], 0.0
    for panel, kept, rows, says, null, point in parts:
        gap = panel.average[kept] @ panel.cells.residual
        observed = max(observed, float(np.max(np.abs(gap) / null)))
        noise = np.maximum(null, _alternative(panel, kept, gap))
        bands.append(Band(panel, kept, says, gap, limit * noise, point * noise, rows))
    return Banded(tuple(bands), observed, p_value(observed, top), limit, masked, law)


def _drawn(panel: Panel) -> tuple[Ints, Floats, Floats, Floats]:
    """Which points rest on enough, their effective rows, their mean score and their null standard error."""
    w, c = panel.average, panel.cells
    square = w * w
    rows = 1.0 / np.maximum(square @ c.weight2, 1e-300)
    says, null = np.clip(w @ c.score, 0.0, 1.0), np.sqrt(square @ c.noise)
    kept = np.flatnonzero(supported(rows, says, null) & panel.near)
    return kept, rows[kept], says[kept], null[kept]


def _alternative(panel: Panel, kept: Ints, gap: Floats) -> Floats:
    """The standard error where the model is off, from squared residuals about the fitted gap."""
    c, on = panel.cells, panel.kind[kept] != 2
    own = np.zeros(c.size)
    if on.any():
        order = np.argsort(panel.x[kept][on], kind="stable")
        own[: c.there] = np.interp(c.x[: c.there], panel.x[kept][on][order], gap[on][order])
    for point in kept[~on].tolist():
        at = int(np.argmax(panel.average[point]))
        own[at] = c.residual[at] / c.weight[at]
    result: Floats = np.sqrt(np.maximum((panel.average[kept] ** 2) @ (c.resid2 - c.weight2 * own**2), 0.0))
    return result
