"""Statistics of the score alone that leave room for a tolerance, of the data and of data at the edge of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.kernels.draws import outcomes
from calibrant.stats.classical import Groups
from calibrant.stats.scored import HELD, SALT, Scored
from calibrant.stats.simulate import CHUNK

MORE = 0x70E  # stream of the cases that the upper rate adds to those of the lower


def edges(p: Any, tolerance: float) -> tuple[Any, Any]:
    """Return the least and the largest event rate within the tolerance."""
    return np.maximum(p - tolerance, 0.0), np.minimum(p + tolerance, 1.0)


def paired(q: Scored, tolerance: float, ids: Any, draws: int, seed: int) -> Iterator[tuple[slice, slice, Any, Any]]:
    """Yield cases drawn at both edges of the tolerance, never fewer at the upper one.

    A calibrated outcome lies between the two when all three come from one uniform number, so that a statistic which
    rises in the upper and falls in the lower cases dominates that of any rates within the tolerance.

    Yields
    ------
    entries, numbers : slice
        Which entries and which draws.
    low, high : arrays of shape (entries, draws) of the block
        Cases of each entry.
    """
    low, high = edges(q.p, tolerance)
    if q.rows is None:
        step = max(1, HELD // draws)
        for start in range(0, len(q.p), step):
            at = slice(start, min(start + step, len(q.p)))
            yield at, slice(0, draws), *(outcomes(ids[at], v[at], 0, draws, SALT) for v in (low, high))
        return
    rng = np.random.default_rng([MORE, seed])
    rest = np.where(low < 1.0, (high - low) / np.where(low < 1.0, 1.0 - low, 1.0), 0.0)
    step = max(1, CHUNK // len(q.p))
    for start in range(0, draws, step):
        size = (min(step, draws - start), len(q.p))
        first = rng.binomial(q.rows, low, size=size)
        more = rng.binomial(q.rows - first, np.clip(rest, 0.0, 1.0))
        yield slice(0, len(q.p)), slice(start, start + size[0]), first.T, (first + more).T


@dataclass(frozen=True)
class Pulls:
    """Weighted sums of residuals that pull one way, each in its own group of statistics.

    Parameters
    ----------
    up, down : float arrays of shape (m, t)
        Non-negative weights of each entry, where more cases, and where fewer, speak for a violation.
    spread : float array of shape (t,)
        Standard deviation of each sum; sums without one are left out.
    of : int array of shape (t,)
        Which statistic a sum belongs to; the largest of each counts.
    """

    up: Any
    down: Any
    spread: Any
    of: Any

    def squares(self, sums: Any) -> Any:
        """Return each statistic: the square of its largest positive standardised sum, shape (..., statistics)."""
        z = np.maximum(sums, 0.0) / np.where(self.spread > 0, self.spread, np.inf)
        out = np.zeros((*z.shape[:-1], int(self.of.max()) + 1))
        for j, k in enumerate(self.of):
            out[..., k] = np.maximum(out[..., k], z[..., j] ** 2)
        return out

    def observed(self, q: Scored, tolerance: float) -> Any:
        """Return the statistics of the data."""
        low, high = edges(q.p, tolerance)
        heft = q.heft
        above, below = heft * (q.cases - q.times * high), heft * (q.times * low - q.cases)
        return self.squares(above @ self.up + below @ self.down)

    def simulated(self, q: Scored, tolerance: float, ids: Any, draws: int, seed: int) -> Any:
        """Return statistics that dominate those of any rates within the tolerance, shape (draws, statistics)."""
        low, high = edges(q.p, tolerance)
        up, down = q.heft[:, None] * self.up, q.heft[:, None] * self.down
        sums = np.tile((q.times * low) @ down - (q.times * high) @ up, (draws, 1))
        for at, numbers, few, many in paired(q, tolerance, ids, draws, seed):
            sums[numbers] += many.T.astype(float) @ up[at] - few.T.astype(float) @ down[at]
        return self.squares(sums)


def group_squares(q: Scored, groups: Groups, tolerance: float, alternative: str, totals: Any) -> Any:
    """Return ``sum_g max(0, O - E_high, E_low - O)^2 / V_g`` over groups whose outcomes can vary, one side if asked.

    Parameters
    ----------
    totals : tuple of two float arrays of shape (..., groups)
        Weighted cases to hold against the lower and against the upper edge.
    """
    low, high = (np.add.reduceat(q.heft * q.times * v, groups.first) for v in edges(q.p, tolerance))
    above, below = totals[1] - high, low - totals[0]
    if alternative != "two-sided":
        above, below = (above, np.zeros_like(below)) if alternative == "greater" else (np.zeros_like(above), below)
    live = groups.variance > 0.0
    worst = np.maximum(np.maximum(above, below), 0.0)
    return (worst[..., live] ** 2 / groups.variance[live]).sum(axis=-1)


def paired_totals(q: Scored, first: Any, tolerance: float, ids: Any, draws: int, seed: int) -> tuple[Any, Any]:
    """Return the weighted cases of each run of entries for each draw, at the lower and at the upper edge."""
    out = np.zeros((2, draws, len(first)))
    for at, numbers, *cases in paired(q, tolerance, ids, draws, seed):
        begin, end = np.searchsorted(first, [at.start, at.stop - 1], side="right") - 1
        starts = np.maximum(first[begin : end + 1], at.start) - at.start
        for side, drawn in enumerate(cases):
            weighted = q.heft[at, None] * drawn
            out[side, numbers, begin : end + 1] += np.add.reduceat(weighted, starts, axis=0).T
    return out[0], out[1]


def along_logit(q: Scored, x: Any, alternative: str) -> Pulls:
    """Return the sums that speak for a shift and for a slope of the logit x.

    Two-sided: the constant and ``x`` less its mean (under the null variance), each way, with the sign of the detector
    saying which edge a row is held against. One-sided detectors must not change sign: the constant, p, and ``1 - p``.
    """
    one = np.ones(len(x))
    if alternative != "two-sided":
        columns = np.stack([one, q.p, 1.0 - q.p], axis=1)
        none = np.zeros_like(columns)
        pair = (columns, none) if alternative == "greater" else (none, columns)
        return Pulls(*pair, np.sqrt(q.variance @ columns**2), np.zeros(3, dtype=np.int64))
    lean = x - float(q.variance @ x) / float(q.variance.sum())
    if np.ptp(x) == 0.0:
        lean = np.zeros(len(x))
    up = np.stack([one, 0.0 * one, np.maximum(lean, 0.0), np.maximum(-lean, 0.0)], axis=1)
    down = up[:, [1, 0, 3, 2]]
    return Pulls(up, down, np.sqrt(q.variance @ (up + down) ** 2), np.array([0, 0, 1, 1]))
