"""Proper scores, ranking and observed over expected, from weighted points, with large-sample intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# ---- Proper scores, ranking and recalibration from weighted points, with large-sample standard errors ----


def normal_quantile(alpha: float) -> float:
    """Upper ``alpha / 2`` quantile of the standard normal distribution."""
    from scipy.special import ndtri

    return float(-ndtri(alpha / 2))


def mean_interval(loss: Any, mass: Any, square: Any, extra: float, z: float) -> tuple[float, float, float]:
    """Return a weighted mean and its Wald interval.

    Parameters
    ----------
    loss : array of shape (m,)
    mass, square : arrays of shape (m,)
        Count times weight, and count times squared weight.
    extra : float
        Variance of one effective row to add, for outcomes that were not seen.
    z : float
    """
    total = float(mass.sum())
    mean = float((mass * loss).sum() / total)
    own = float((square * (loss - mean) ** 2).sum()) / total**2
    half = z * float(np.sqrt(own + extra * float(square.sum()) / total**2))
    return mean, max(mean - half, 0.0), mean + half


def isotonic_parts(p: Any, y: Any, mass: Any) -> dict[str, float]:
    """Split the mean Brier score into reliability, resolution and uncertainty by isotonic recalibration.

    ``score = reliability - resolution + uncertainty`` exactly (CORP; Dimitriadis, Gneiting & Jordan 2021).
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(p, kind="stable")
    s, w, case = p[order], mass[order], (mass * y)[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(s) > 0]))
    weight, cases = np.add.reduceat(w, first), np.add.reduceat(case, first)
    total = weight.sum()
    fit = isotonic_regression(cases / weight, weights=weight).x
    rate, score = cases.sum() / total, float((mass * (p - y) ** 2).sum() / total)
    best = float((cases * (1.0 - fit) ** 2 + (weight - cases) * fit**2).sum() / total)
    uncertainty = float(rate * (1.0 - rate))
    return {"reliability": score - best, "resolution": uncertainty - best, "uncertainty": uncertainty}


@dataclass(frozen=True)
class Ranking:
    """Area under the ROC curve and its DeLong standard error."""

    auroc: float
    error: float
    cases: float
    others: float


def ranking(p: Any, y: Any, count: Any, weight: Any) -> Ranking:
    """Return the chance that a case outscores a non-case, ties half (DeLong, DeLong & Clarke-Pearson 1988).

    Placement values are weighted midranks (Sun & Xu 2014); with sampling weights the squared influence of a row
    carries its squared weight. `error` is zero when one outcome outscores the other everywhere.
    """
    order = np.argsort(p, kind="stable")
    s, label = p[order], y[order] == 1
    f, w = count[order], weight[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(s) > 0]))
    mass = f * w
    case, other = (np.add.reduceat(np.where(k, mass, 0.0), first) for k in (label, ~label))
    m, n = case.sum(), other.sum()
    below = (np.cumsum(other) - 0.5 * other) / n  # of a case: share of non-cases it outscores
    above = (m - np.cumsum(case) + 0.5 * case) / m  # of a non-case: share of cases that outscore it
    area = float(case @ below / m)
    variance, rows = 0.0, []
    for mask, value, total in ((label, below, m), (~label, above, n)):
        size = float(f[mask].sum())
        square = np.add.reduceat(np.where(mask, f * w**2, 0.0), first) @ (value - area) ** 2
        variance += float(square) / total**2 * size / max(size - 1.0, 1.0)
        rows.append(float(total**2 / (f * w**2)[mask].sum()))
    return Ranking(area, float(np.sqrt(variance)), *rows)


def area_interval(r: Ranking, z: float) -> tuple[float, float, str]:
    """Return a Wald interval on the logit scale, or a score interval where the standard error says nothing."""
    if 0.0 < r.auroc < 1.0 and r.error > 0.0 and min(r.cases, r.others) >= 2:
        centre, half = np.log(r.auroc / (1 - r.auroc)), z * r.error / (r.auroc * (1 - r.auroc))
        low, high = 1 / (1 + np.exp(-np.array([centre - half, centre + half])))
        return float(low), float(high), "DeLong, on the logit scale"
    low, high = score_ends(r, z)
    return low, high, "score interval with the variance of Hanley and McNeil (Newcombe 2006)"


def score_ends(r: Ranking, z: float) -> tuple[float, float]:
    """Solve ``|area - t| = z sqrt(V(t))`` with Newcombe's form of the Hanley-McNeil variance."""
    from scipy.optimize import brentq

    middle = 0.5 * (r.cases + r.others) - 1.0

    def spread(t: float) -> float:
        core = 1 + middle * ((1 - t) / (2 - t) + t / (1 + t))
        return float(np.sqrt(t * (1 - t) * core / (r.cases * r.others)))

    def ends(stop: float) -> float:
        def excess(t: float) -> float:
            return abs(r.auroc - t) - z * spread(t)

        inside = min(max(r.auroc, 1e-9), 1 - 1e-9)
        return stop if excess(stop) <= 0 else float(brentq(excess, inside, stop))

    low = ends(0.0) if r.auroc > 0 else 0.0
    return low, (ends(1.0) if r.auroc < 1 else 1.0)


def ratio_interval(p: Any, y: Any, count: Any, weight: Any, z: float) -> tuple[float, float, float]:
    """Return observed over expected, and a score interval for it.

    For a ratio R the test of ``E[Y - R p] = 0`` uses the variance ``m (1 - m) - 2 R cov(Y, p) + R^2 var p`` with
    ``m = R mean(p)``, the outcomes' variance under R itself; so the interval has width with no case at all.
    """
    mass = count * weight
    total = mass.sum()
    rows = total**2 / (mass * weight).sum()
    o, e = float((mass * y).sum() / total), float((mass * p).sum() / total)
    both, spread = float((mass * p * y).sum() / total) - o * e, float((mass * p**2).sum() / total) - e**2
    k = z**2 / rows
    a, b, c = e**2 + k * e**2 - k * spread, 2 * o * e + k * e - 2 * k * both, o**2
    root = float(np.sqrt(max(b**2 - 4 * a * c, 0.0)))
    if a <= 0:
        return o / e, 0.0, float("inf")
    value = o / e
    return value, min(max((b - root) / (2 * a), 0.0), value), max((b + root) / (2 * a), value)
