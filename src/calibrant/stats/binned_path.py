"""Scores added up in groups along an ordering of rows by predicted residual: chi-square and simple score statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from calibrant.stats.cusum import Boundary, Path


@dataclass(frozen=True, kw_only=True)
class BinnedPath:
    """One model's ordering of the rows, cut into groups.

    Parameters
    ----------
    rows : int64 array of shape (K,)
        Row of each step, the most suspicious first.
    upper : bool array of shape (K,)
        The row is compared with ``p + delta``, else with ``p - delta``.
    heft, rate : float arrays of shape (K,)
        Signed weight of ``y - rate`` in the score, and the event rate at the edge of the tolerance.
    cuts : tuple of (int, int)
        First step of each group, and the one after its last.
    """

    rows: Any
    upper: Any
    heft: Any
    rate: Any
    cuts: tuple[tuple[int, int], ...]

    def spread(self, first: int, stop: int) -> float:
        """Return the null standard deviation of a group's sum."""
        rate = self.rate[first:stop]
        return float(np.sqrt((self.heft[first:stop] ** 2 * rate * (1.0 - rate)).sum()))


def binned(path: Path, n: int, bins: int, weights: Any = None, by_size: bool = False) -> BinnedPath:
    """Cut a path of n rows in all into groups of n / bins rows.

    Parameters
    ----------
    path : Path
    n, bins : int
        Rows that the path does not hold come last: they fill groups, and add nothing.
    weights : float array of shape (n,), optional
        Of rows.
    by_size : bool
        Scores are multiplied by the predicted residual beyond the tolerance; by its sign alone otherwise.
    """
    heft = path.heft
    if not by_size:
        heft = np.where(path.upper, 1.0, -1.0) * (1.0 if weights is None else weights[path.rows])
    size = len(path.rows)
    edges = [min(b * n // bins, size) for b in range(bins + 1)]
    cuts = tuple((a, b) for a, b in pairwise(edges) if b > a)
    return BinnedPath(rows=path.rows, upper=path.upper, heft=heft, rate=path.rate, cuts=cuts)


def squares(paths: Sequence[BinnedPath], y: Any) -> Any:
    """Return each model's ``sum_b max(0, S_b)^2 / V_b`` over groups whose outcomes can vary, shape (models,)."""
    out = np.zeros(len(paths))
    for m, q in enumerate(paths):
        for first, stop in q.cuts:
            spread = q.spread(first, stop)
            if spread > 0:
                total = float(q.heft[first:stop] @ (y[q.rows[first:stop]] - q.rate[first:stop]))
                out[m] += max(total / spread, 0.0) ** 2
    return out


def simulated_squares(paths: Sequence[BinnedPath], edge: Boundary, ids: Any, draws: int, salt: int) -> Any:
    """Return the models' statistics under outcomes drawn at the edge of the tolerance, shape (draws, models).

    One uniform number a row and draw serves both signs, all groups and all models (Theorem 4).
    """
    from calibrant.kernels.cusum import words

    def word(first: int) -> Any:
        return words(ids, edge.low, edge.high, first, salt).reshape(-1)

    steps = [((2 * q.rows + q.upper).astype(np.uint64), q.heft, -q.heft * q.rate) for q in paths]
    return _all_squares(word, paths, steps, draws)


def multiplied_squares(paths: Sequence[BinnedPath], y: Any, cluster: Any, ids: Any, draws: int, salt: int) -> Any:
    """Return the models' statistics with the scores of each cluster multiplied by one random sign."""
    from calibrant.kernels.cusum import words

    half = np.full(len(ids), 0.5)
    steps = []
    for q in paths:
        score = q.heft * (y[q.rows] - q.rate)
        steps.append(((2 * cluster[q.rows]).astype(np.uint64), 2.0 * score, -score))
    return _all_squares(lambda first: words(ids, half, half, first, salt).reshape(-1), paths, steps, draws)


def _all_squares(word: Any, paths: Sequence[BinnedPath], steps: Any, draws: int) -> Any:
    """Add up, 64 draws at a time; a group's sum is a path that is looked at where it ends."""
    from calibrant.kernels.cusum import peaks
    from calibrant.kernels.cusum_reference import LANES

    out = np.zeros((draws, len(paths)))
    for start in range(0, draws, LANES):
        bits, count = word(start), min(LANES, draws - start)
        for m, (q, (at, gain, shift)) in enumerate(zip(paths, steps, strict=True)):
            for first, stop in q.cuts:
                spread = q.spread(first, stop)
                if spread > 0:
                    here = slice(first, stop)
                    last = np.zeros(stop - first)
                    last[-1] = 1.0 / spread
                    found = peaks(bits, at[here], gain[here], np.full(stop - first, shift[here].sum()), last, 0.0)
                    out[start : start + count, m] += found[:count] ** 2
    return out
