"""Statistics of the classical calibration tests, of the data and of data simulated under calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.kernels.walk import extremes
from calibrant.stats.binning import equal_mass_edges
from calibrant.stats.scored import Scored, simulated


def runs_of(labels: Any) -> Any:
    """Return where each run of equal labels begins."""
    return np.flatnonzero(np.append(True, np.diff(labels) != 0))


def simulated_sums(q: Scored, terms: Any, ids: Any, draws: int, seed: int) -> Any:
    """Return ``sum terms Y*`` over the rows for each draw.

    Parameters
    ----------
    q : Scored
    terms : float array of shape (m, t)
        What a case of each entry adds to each of t sums.
    ids : uint64 array of shape (m,)
    draws, seed : int

    Returns
    -------
    float array of shape (draws, t)
    """
    out = np.zeros((draws, terms.shape[1]))
    for at, numbers, cases in simulated(q, ids, draws, seed):
        out[numbers] += cases.T.astype(float) @ terms[at]
    return out


def simulated_totals(q: Scored, first: Any, ids: Any, draws: int, seed: int) -> Any:
    """Return the weighted cases of each run of entries for each draw.

    Parameters
    ----------
    q : Scored
    first : int array of shape (runs,)
        Where each run begins; the first at 0.
    ids : uint64 array of shape (m,)
    draws, seed : int

    Returns
    -------
    float array of shape (draws, runs)
    """
    out = np.zeros((draws, len(first)))
    for at, numbers, cases in simulated(q, ids, draws, seed):
        low, high = np.searchsorted(first, [at.start, at.stop - 1], side="right") - 1
        for run in range(low, high + 1):
            begin = max(int(first[run]), at.start) - at.start
            end = (min(int(first[run + 1]), at.stop) if run + 1 < len(first) else at.stop) - at.start
            part = cases[begin:end]
            here = slice(at.start + begin, at.start + end)
            out[numbers, run] += part.sum(axis=0, dtype=float) if q.weight is None else q.weight[here] @ part
    return out


@dataclass(frozen=True)
class Walk:
    """Cumulative residuals read at the last row of each distinct score.

    Parameters
    ----------
    at : float array of shape (distinct scores + 1,)
        The walk, from 0.
    deviation : float
        Standard deviation of its end if the model is calibrated.
    """

    at: Any
    deviation: float

    def size(self, span: bool) -> float:
        """Return the range, or the largest modulus, in standard deviations."""
        return float(np.ptp(self.at) if span else np.abs(self.at).max()) / self.deviation


def walk_of(q: Scored) -> Walk:
    """Return the cumulative residuals in order of the score."""
    return Walk(np.append(0.0, np.cumsum(q.residual)[q.ends]), float(np.sqrt(q.variance.sum())))


def simulated_extremes(q: Scored, ids: Any, draws: int, seed: int) -> tuple[Any, Any]:
    """Return the lowest and the highest point of the simulated walks, each of shape (draws,), in residuals."""
    low, high, so_far = np.zeros(draws), np.zeros(draws), np.zeros(draws)
    expected = np.cumsum(q.heft * q.times * q.p)
    read = np.zeros(len(q.p), dtype=bool)
    read[q.ends] = True
    for at, numbers, cases in simulated(q, ids, draws, seed):
        extremes(cases, q.heft[at], expected[at], read[at], so_far[numbers], low[numbers], high[numbers])
    return low, high


@dataclass(frozen=True)
class Groups:
    """Sums over the runs of scores that Hosmer and Lemeshow compare.

    Parameters
    ----------
    first : int array of shape (groups,)
        Where each begins.
    rows, observed, expected, variance : float arrays of shape (groups,)
        Rows; weighted cases, their expectation, and ``n P (1 - P)`` at the group's mean score P.
    """

    first: Any
    rows: Any
    observed: Any
    expected: Any
    variance: Any

    def statistic(self, observed: Any) -> Any:
        """Return the sum of squared standardised gaps of the groups whose outcomes can vary."""
        live = self.variance > 0.0
        return ((observed - self.expected)[..., live] ** 2 / self.variance[live]).sum(axis=-1)


def groups_of(q: Scored, bins: int) -> Groups:
    """Cut the scores into at most `bins` groups of about equal mass, equal scores together.

    With weights the variance is ``S P (1 - P)``, S the sum of squared weights and P the mean score under them.
    """
    mass = None if q.rows is None and q.weight is None else q.heft * q.times
    edges = equal_mass_edges(q.p, mass, bins)
    first = runs_of(np.searchsorted(edges, q.p, side="right"))
    square = q.heft**2 * q.times
    values = (q.times, q.heft * q.cases, q.heft * q.times * q.p, square, square * q.p)
    rows, observed, expected, size, scores = (np.add.reduceat(v, first) for v in values)
    mean = np.clip(scores / size, 0.0, 1.0)
    return Groups(first, rows, observed, expected, size * mean * (1.0 - mean))


def efficient_scores(sums: Any, x: Any, variance: Any) -> tuple[Any, Any]:
    """Return the squared standardised score of the intercept, and of the slope once the intercept is free.

    Parameters
    ----------
    sums : float array of shape (..., 2)
        Residual sums, plain and times x.
    x, variance : float arrays of shape (m,)
        Logits, and null variances of the residuals.
    """
    a, b, c = float(variance.sum()), float(variance @ x), float(variance @ x**2)
    left = c - b * b / a
    slope = (sums[..., 1] - b / a * sums[..., 0]) ** 2 / left if left > 1e-12 * c else np.zeros(sums.shape[:-1])
    return sums[..., 0] ** 2 / a, slope


def posterior_tails(cases: Any, rows: Any, rate: Any, alternative: str) -> Any:
    """Return the Jeffreys probability against each alternative: small where the cases speak for it.

    Under ``Beta(k + 1/2, n - k + 1/2)``: that the event rate is at most `rate` (for "greater"), at least `rate`
    ("less"), or twice the smaller of both.
    """
    from scipy.special import betainc, betaincc

    a, b = cases + 0.5, rows - cases + 0.5
    if alternative == "greater":
        return betainc(a, b, rate)
    if alternative == "less":
        return betaincc(a, b, rate)
    return np.minimum(1.0, 2.0 * np.minimum(betainc(a, b, rate), betaincc(a, b, rate)))


def step_down(p: Any) -> Any:
    """Return Holm's adjusted p-values."""
    order = np.argsort(p, kind="stable")
    out = np.empty(len(p))
    out[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return out
