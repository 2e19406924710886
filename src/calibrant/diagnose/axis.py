"""The axis a curve is drawn along, and the cells and points on it; nothing here looks at an outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.certify.population import Population
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.local import STEPS, Runs, half_width, runs_of

Axis = Literal["probability", "logit"]
TRIM = (0.01, 0.99)
EVENTS = 50  # expected cases, and expected non-cases, that a curve needs
NEAREST = 2.0**-15  # half a cell: the logit of a score is cut off there
SAME = "every row has the same score: there is nothing to draw a curve along"


@dataclass(frozen=True)
class Scored:
    """The occupied cells of a population on an axis, and where a curve is drawn.

    Parameters
    ----------
    runs : Runs
    half : float
        Half-width of the smoothing window, in the unit of the axis.
    grid : float array of shape (points,)
        Positions on the axis, increasing.
    scores : float array of shape (points,)
        The scores at those positions.
    """

    runs: Runs
    half: float
    grid: Any
    scores: Any


def to_axis(axis: Axis) -> Callable[[Any], Any]:
    """Return what places a score on the axis."""
    if axis == "probability":
        return lambda s: np.asarray(s, dtype=float)
    if axis != "logit":
        raise BadInput(f"axis={axis!r}: pass 'probability' or 'logit'")

    def logit(s: Any) -> Any:
        p = np.clip(np.asarray(s, dtype=float), NEAREST, 1.0 - NEAREST)
        return np.log(p) - np.log1p(-p)

    return logit


def scored(
    q: Population, axis: Axis, grid: Any, bandwidth: float | None, width: float | None = None, smallest: int = 1
) -> Scored:
    """Place a population on an axis.

    Parameters
    ----------
    q : Population
    axis : {"probability", "logit"}
    grid : int or sequence of scores
    bandwidth : float or None
        Half-width; None chooses it from the scores.
    width : float, optional
        Neighbouring cells are joined up to this share of the axis; by default up to a fiftieth of the half-width.
    smallest : int
        Cells are joined until they hold so many rows.
    """
    place = to_axis(axis)
    expected = q.cells.expected
    if min(expected, q.n - expected) < EVENTS:
        raise NotComputable(f"a curve needs at least {EVENTS} expected cases and {EVENTS} expected non-cases")
    at = q.cells.occupied()
    totals, score = q.cells.totals[at], q.cells.score_sums[at].sum(axis=1)
    rows = totals.sum(axis=1).astype(float)
    x = place(score / rows)
    if x[-1] - x[0] <= 1e-9:
        raise NotComputable(SAME)
    mean = score / rows
    half = _checked_bandwidth(bandwidth) if bandwidth is not None else half_width(x, rows * mean * (1.0 - mean))
    if half <= 0.0:
        raise NotComputable("every score is 0 or 1: there is no curve between two points")
    joined = half / STEPS if width is None else width * (x[-1] - x[0])
    runs = runs_of(x, rows, totals[:, 1], score, joined, smallest)
    points = _grid(grid, runs, place)
    back = points if axis == "probability" else 1.0 / (1.0 + np.exp(-points))
    return Scored(runs, float(half), points, back)


def _grid(grid: Any, runs: Runs, place: Callable[[Any], Any]) -> Any:
    """Return the points: equally spaced between the 1st and the 99th percentile, or those given, trimmed to it."""
    share = np.cumsum(runs.rows) / runs.rows.sum()
    low, high = (float(runs.x[min(int(np.searchsorted(share, t)), len(share) - 1)]) for t in TRIM)
    if isinstance(grid, (int, np.integer)) and not isinstance(grid, bool):
        if not 2 <= grid <= 2000:
            raise BadInput(f"grid={grid!r}: pass a number of points from 2 to 2000, or the scores themselves")
        return np.linspace(low, high, int(grid)) if high > low else np.array([low])
    scores = np.asarray(grid, dtype=float)
    if scores.ndim != 1 or not len(scores) or not ((scores >= 0) & (scores <= 1)).all() or (np.diff(scores) <= 0).any():
        raise BadInput("grid: pass a number of points, or increasing scores between 0 and 1")
    points = place(scores)
    inside = points[(points >= low) & (points <= high)]
    if not len(inside):
        raise NotComputable("no score of the grid lies between the 1st and the 99th percentile of the scores")
    return inside


def _checked_bandwidth(bandwidth: Any) -> float:
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, (int, float, np.floating)) or not bandwidth > 0:
        raise BadInput(f"bandwidth={bandwidth!r}: pass a positive half-width, such as 0.1, or None to choose it")
    return float(bandwidth)
