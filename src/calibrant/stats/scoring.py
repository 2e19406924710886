"""Proper scores, ranking and logistic recalibration, from weighted points and for many outcomes at once."""

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


@dataclass(frozen=True)
class Recalibration:
    """Coefficients of ``logit P(Y = 1) = a + b logit p`` and their robust standard errors."""

    coefficients: Any
    errors: Any
    converged: bool


def recalibrate(logit: Any, y: Any, count: Any, weight: Any, slope: bool) -> Recalibration:
    """Fit intercept and slope, or the intercept alone with slope one, by Newton's method.

    Standard errors are the larger of the sandwich's (White 1982), right also where the logistic form is not, and
    the model's, which does not fall to nothing with few cases.
    """
    mass, offset = count * weight, np.zeros(1) if slope else logit
    terms = (np.ones(1), logit) if slope else (np.ones(1),)

    def square(values: Any) -> Any:
        return np.array([[float((values * (s * t)).sum()) for s in terms] for t in terms])

    beta = np.array([0.0, 1.0]) if slope else np.zeros(1)
    step, last, converged = np.zeros(len(beta)), np.inf, False
    bread, q = np.eye(len(beta)), np.zeros(1)
    for _ in range(80):
        eta = offset + sum(b * t for b, t in zip(beta, terms, strict=True))
        q = 1.0 / (1.0 + np.exp(-np.clip(eta, -700, 700)))
        gradient = np.array([float((mass * (y - q) * t).sum()) for t in terms])
        bread = square(mass * q * (1 - q))
        if np.linalg.cond(bread) > 1e12:
            break
        size = float(gradient @ np.linalg.solve(bread, gradient))
        if size > 4.0 * last:
            beta, step = beta - 0.5 * step, 0.5 * step
            continue
        last, step = size, np.linalg.solve(bread, gradient)
        if size < 1e-16 * max(float(mass.sum()), 1.0):
            converged = True
            break
        beta = beta + step
    inverse = np.linalg.pinv(bread)
    robust = inverse @ square(mass * weight * (y - q) ** 2) @ inverse
    variance = np.maximum(np.diag(robust), np.diag(inverse) * float((mass * weight).sum() / mass.sum()))
    return Recalibration(beta, np.sqrt(variance), converged)


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


# ---- Logistic recalibration fitted to many outcomes at once: the likelihood depends on two sums of each ----

STEPS, HALVINGS = 40, 12
SETTLED = 1e-11  # of the log-likelihood, in which a step must still gain something
NODES = 128
FARTHEST = 60.0  # standard units a coefficient may move: beyond it next to nothing is left to gain


@dataclass(frozen=True)
class Fit:
    """Recalibrations ``logit P(Y = 1) = a + b x``.

    Parameters
    ----------
    gain : float array of shape (draws,)
        Twice the log-likelihood gained over ``a = 0, b = 1``.
    intercept, slope : float arrays of shape (draws,)
    information : float array of shape (draws, 2, 2)
        Of intercept and slope, at the fit.
    settled : bool array of shape (draws,)
        Newton's method has arrived.
    """

    gain: Any
    intercept: Any
    slope: Any
    information: Any
    settled: Any


def compressed(x: Any, mass: Any) -> tuple[Any, Any]:
    """Return at most 128 nodes and their mass: means of consecutive stretches of sorted logits."""
    if len(x) <= NODES:
        return x, mass
    upto = np.cumsum(mass)
    first = np.unique(np.searchsorted(upto, upto[-1] * np.arange(NODES) / NODES, side="right"))
    size = np.add.reduceat(mass, first)
    return np.add.reduceat(mass * x, first) / size, size


def likelihood(excess: Any, x: Any, mass: Any, slope: bool) -> Fit:
    """Maximise the likelihood for outcomes given by their residual sums.

    The log-likelihood is ``a S0 + b S1 - K(a, b)`` with ``S0 = sum Y``, ``S1 = sum Y x`` and
    ``K = sum ln(1 + exp(a + b x))``: one convex function for all draws. Here S is the expectation at ``a = 0, b = 1``
    plus `excess`, so that no excess gains nothing, whatever nodes x stands on. Newton's method, steps halved until
    they gain.

    Parameters
    ----------
    excess : float array of shape (draws, 2)
        ``sum (Y - p)`` and ``sum (Y - p) x``.
    x, mass : float arrays of shape (m,)
    slope : bool
        Fit the slope too; otherwise it stays 1.
    """
    centre = float(mass @ x / mass.sum())
    spread = float(np.sqrt(mass @ (x - centre) ** 2 / mass.sum())) or 1.0
    z = (x - centre) / spread
    start = _expit(x)
    target = np.stack([excess[:, 0], (excess[:, 1] - centre * excess[:, 0]) / spread], axis=1)
    target += np.array([mass @ start, mass @ (start * z)])
    null = np.array([centre, spread])  # a = 0, b = 1 in standard units
    theta = np.tile(null, (len(excess), 1))
    value, slopes, bend = _bend(theta, target, z, mass)
    base = value.copy()
    for _ in range(STEPS):
        move = _newton(slopes, bend, slope)
        open_ = (move * slopes).sum(axis=1) > SETTLED * (1.0 + np.abs(value))
        open_ &= np.abs(theta - null).max(axis=1) < FARTHEST
        if not open_.any():
            break
        theta, value, slopes, bend = _advance(theta, value, slopes, bend, move, np.flatnonzero(open_), target, z, mass)
    move = _newton(slopes, bend, slope)
    settled = np.abs((move * slopes).sum(axis=1)) < 1e-6 + 10 * SETTLED * np.abs(value)
    theta = theta + np.where(settled[:, None], move, 0.0)  # one step more than the value can tell
    _, _, bend = _bend(theta, target, z, mass)
    b = theta[:, 1] / spread
    turn = np.array([[1.0, 0.0], [centre, spread]])
    information = turn @ bend @ turn.T
    return Fit(2.0 * np.maximum(value - base, 0.0), theta[:, 0] - b * centre, b, information, settled)


def _expit(t: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-np.clip(t, -700.0, 700.0)))


def _bend(theta: Any, target: Any, z: Any, mass: Any) -> tuple[Any, Any, Any]:
    """Return log-likelihood, gradient and information at theta, a row a draw."""
    eta = theta[:, :1] + theta[:, 1:] * z
    q = _expit(eta)
    value = (theta * target).sum(axis=1) - np.logaddexp(0.0, eta) @ mass
    terms = np.stack([mass, mass * z], axis=1)
    spread = (q * (1.0 - q)) @ np.stack([mass, mass * z, mass * z * z], axis=1)
    return value, target - q @ terms, spread[:, [[0, 1], [1, 2]]]


def _newton(slopes: Any, bend: Any, slope: bool) -> Any:
    if not slope:
        move = np.zeros_like(slopes)
        move[:, 0] = slopes[:, 0] / np.maximum(bend[:, 0, 0], 1e-300)
        return np.clip(move, -3.0, 3.0)
    ridge = 1e-10 * np.trace(bend, axis1=1, axis2=2) + 1e-300
    a, b, c = bend[:, 0, 0] + ridge, bend[:, 0, 1], bend[:, 1, 1] + ridge
    base = np.maximum(a * c - b * b, 1e-300)
    move = np.stack([c * slopes[:, 0] - b * slopes[:, 1], a * slopes[:, 1] - b * slopes[:, 0]], axis=1) / base[:, None]
    return move * np.minimum(1.0, 3.0 / np.maximum(np.abs(move).max(axis=1), 1e-300))[:, None]


def _advance(
    theta: Any, value: Any, slopes: Any, bend: Any, move: Any, left: Any, target: Any, z: Any, mass: Any
) -> tuple[Any, Any, Any, Any]:
    """Take the step of the draws that are `left`, each halved until it gains."""
    theta, value, slopes, bend = theta.copy(), value.copy(), slopes.copy(), bend.copy()
    size = 1.0
    for _ in range(HALVINGS):
        if not len(left):
            break
        trial = theta[left] + size * move[left]
        found = _bend(trial, target[left], z, mass)
        better = found[0] > value[left]
        won = left[better]
        theta[won], value[won] = trial[better], found[0][better]
        slopes[won], bend[won] = found[1][better], found[2][better]
        left, size = left[~better], 0.5 * size
    return theta, value, slopes, bend
