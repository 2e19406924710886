"""Random-effects meta-analysis of estimates with known variances: mean, spread between sites, and a new site.

The spread of the calibration intercept between sites from their exact binomial likelihoods: no site is too small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Spread = Literal["reml", "paule-mandel"]

BRACKET = 64  # doublings until tau^2 is surely too large


@dataclass(frozen=True)
class Pooled:
    """A random-effects meta-analysis."""

    # `mean` and `error`: the mean over sites, and its standard error by Hartung and Knapp.
    mean: float
    error: float
    # `low`, `high`, `new_low` and `new_high`: the interval of the mean, and the prediction interval of a new site.
    low: float
    high: float
    new_low: float
    new_high: float
    # `tau2`, `tau2_low` and `tau2_high`: variance between sites, and its Q-profile interval.
    tau2: float
    tau2_low: float
    tau2_high: float
    weight: Floats  # shape (k,): of each site, adding up to one
    # `q`, `p_value` and `i2`: Cochran's Q, its p-value, and the share of its spread beyond chance.
    q: float
    p_value: float
    i2: float


def pooled(effect: Floats, variance: Floats, alpha: float, spread: Spread) -> Pooled:
    """Pool the effects of k >= 3 sites: mean by Hartung and Knapp, prediction interval with k - 2 degrees of freedom.

    `effect`, `variance` (k,): estimates, and the variances of their errors. `spread`: how the variance between sites is
    estimated.
    """
    from scipy.stats import chi2, t

    k = len(effect)
    tau2 = (reml if spread == "reml" else paule_mandel)(effect, variance)
    # (1) The mean, and its error from how far the sites lie apart, weighted: right to first order whatever tau^2.
    weight = 1.0 / (variance + tau2)
    mean = float(weight @ effect / weight.sum())
    error = float(np.sqrt(weight @ (effect - mean) ** 2 / ((k - 1) * weight.sum())))
    half = float(t.isf(alpha / 2.0, k - 1)) * error
    # (2) A new site: the spread of sites on top of the error of the mean (Higgins, Thompson and Spiegelhalter).
    new = float(t.isf(alpha / 2.0, k - 2) * np.sqrt(tau2 + error**2))
    # (3) Homogeneity; its Q, taken at other values of tau^2, has the interval of tau^2.
    q = _generalised_q(effect, variance, 0.0)
    ends = [_solved(effect, variance, float(chi2.isf(a, k - 1))) for a in (alpha / 2.0, 1.0 - alpha / 2.0)]
    return Pooled(
        mean=mean,
        error=error,
        low=mean - half,
        high=mean + half,
        new_low=mean - new,
        new_high=mean + new,
        tau2=tau2,
        tau2_low=ends[0],
        tau2_high=ends[1],
        weight=weight / weight.sum(),
        q=q,
        p_value=float(chi2.sf(q, k - 1)),
        i2=max(0.0, 1.0 - (k - 1) / q) if q > 0 else 0.0,
    )


def paule_mandel(effect: Floats, variance: Floats) -> float:
    """The tau^2 at which Cochran's Q, weighted with it, is what is expected of it: k - 1; zero if it is less."""
    return _solved(effect, variance, len(effect) - 1.0)


def reml(effect: Floats, variance: Floats) -> float:
    """The tau^2 of the largest restricted likelihood, the largest of its maxima if it has several."""
    from scipy.optimize import minimize_scalar

    def loss(tau2: float) -> float:
        w = 1.0 / (variance + tau2)
        mean = w @ effect / w.sum()
        return float(-np.log(w).sum() + np.log(w.sum()) + w @ (effect - mean) ** 2)

    # (1) tau^2 is at most the squared range; a grid even in the logarithm sees each of the maxima.
    top = float(np.ptp(effect)) ** 2
    if top <= 0.0:
        return 0.0
    grid = np.concatenate([[0.0], np.geomspace(1e-6 * min(top, float(variance.min())), top, 200)])
    at = int(np.argmin([loss(x) for x in grid]))
    # (2) The best of them, refined between its neighbours.
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    result = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10 * top})
    return float(result.x) if result.fun < loss(0.0) else 0.0


def _generalised_q(effect: Floats, variance: Floats, tau2: float) -> float:
    w = 1.0 / (variance + tau2)
    return float(w @ (effect - w @ effect / w.sum()) ** 2)


def _solved(effect: Floats, variance: Floats, target: float) -> float:
    """The tau^2 at which the generalised Q, which falls in it, comes down to a target; zero if it is below."""
    from scipy.optimize import brentq

    def above(tau2: float) -> float:
        return _generalised_q(effect, variance, tau2) - target

    if above(0.0) <= 0.0:
        return 0.0
    top = max(float(variance.max()), float(np.ptp(effect)) ** 2)
    for _ in range(BRACKET):
        if above(top) < 0.0:
            break
        top *= 2.0
    return float(brentq(above, 0.0, top, xtol=1e-14 * top, rtol=1e-13))


# ---- The spread of the intercept between sites from their exact binomial likelihoods: no site is too small ----

Codes = NDArray[np.intp]

REACH, STEP = 16.0, 0.1  # log-odds to either side that a site's shift is looked at, and between the points
NODES = 11  # of Gauss-Hermite quadrature about each site's own mode
NEWTON = 25  # steps to a site's mode, at most; it takes five
ACROSS, WIDE = 25, 5.0  # values of the mean, and standard deviations to either side that they reach
SPREADS = 24  # values of tau
WIDEST = 4.0  # largest tau that is looked at: odds that differ by a factor of 55 in the middle of the sites
NEGLIGIBLE = 12.0  # log-likelihood below its largest from which a tau is left out
STRETCH = 4096  # rows at a time
FINE = 4001  # values of tau between those, for its maximum and interval
PENALISED = 16_001  # shifts at which the penalised likelihood of a site is looked at: steps of .002


class Residuals(NamedTuple):
    """Rows of clusters within sites."""

    site: Codes  # shape (n,)
    cluster: Codes  # shape (n,)
    logit: Floats  # shape (n,)
    y: Floats  # shape (n,)


class Likelihoods:
    """The log-likelihood of each site as a function of its shift of the log-odds, and two derivatives.

    Tabled at equal steps and taken between them from values and slopes (cubic Hermite): the function has no feature
    narrower than 1, so that a step of 0.1 errs by at most ``n STEP^4 / 384 / 8``, 3e-8 a row.

    `site` (n,): 0 to k - 1. `logit`, `y` (n,). `count`: sites, k.
    """

    def __init__(self, site: Codes, logit: Floats, y: Floats, count: int) -> None:
        from scipy.special import expit

        self.count = count
        self.events, self.rows = np.bincount(site, y, count), np.bincount(site, minlength=count).astype(float)
        grid = np.arange(-REACH, REACH + STEP / 2, STEP)
        self.value = np.zeros((count, len(grid)))
        self.slope = np.zeros((count, len(grid)))
        order = np.argsort(site, kind="stable")
        starts = np.searchsorted(site[order], np.arange(count))
        ends = np.append(starts[1:], len(site))
        for j in range(count):
            for first in range(int(starts[j]), int(ends[j]), STRETCH):
                eta = logit[order[first : min(first + STRETCH, int(ends[j]))], None] + grid
                self.value[j] -= np.logaddexp(0.0, eta).sum(axis=0)
                self.slope[j] -= expit(eta).sum(axis=0)
        self.value += self.events[:, None] * grid
        self.slope += self.events[:, None]

    def temper(self, rows: Residuals) -> float:
        """Divide every log-likelihood by the design effect of clusters within sites, and return it; 1 at least.

        ``sum_g (sum_i e_i)^2 / sum_i v_i``, e the residuals and v the variances of rows at their sites' own estimates,
        times ``m / (m - k)`` for these; of all sites together, since one has too few clusters to tell its own.
        """
        from scipy.special import expit

        rate = expit(rows.logit + alone(self, 0.05)[0][rows.site])
        clusters = int(rows.cluster.max()) + 1
        own, variance = np.bincount(rows.cluster, rows.y - rate, clusters), rate * (1.0 - rate)
        effect = float((own**2).sum() / variance.sum()) * clusters / max(clusters - self.count, 1)
        effect = max(effect, 1.0)
        self.value, self.slope = self.value / effect, self.slope / effect
        return effect

    def at(self, gap: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, slope and curvature at shifts of shape (..., k)."""
        x = np.clip((gap + REACH) / STEP, 0.0, self.value.shape[1] - 1.000001)
        i = x.astype(np.intp)
        t, j = x - i, np.arange(self.count)
        a, b = self.value[j, i], self.value[j, i + 1]
        c, d = self.slope[j, i] * STEP, self.slope[j, i + 1] * STEP
        u, v = 2.0 * (a - b) + c + d, 3.0 * (b - a) - 2.0 * c - d
        value = a + t * (c + t * (v + t * u))
        return value, (c + t * (2.0 * v + 3.0 * t * u)) / STEP, (2.0 * v + 6.0 * t * u) / STEP**2

    def marginal(self, mean: Floats, tau: float) -> Floats:
        """The log-likelihood of all sites at means of shape (m,): shifts are normal about the mean."""
        from scipy.special import logsumexp

        if tau <= 0.0:
            return np.asarray(self.at(np.repeat(mean[:, None], self.count, axis=1))[0].sum(axis=1))
        # (1) The mode of each site's integrand, and the curvature there.
        centre = mean[:, None]
        at = np.repeat(centre, self.count, axis=1)
        for _ in range(NEWTON):
            _, slope, bend = self.at(at)
            bend = np.minimum(bend, 0.0) - tau**-2
            move = np.clip((slope - (at - centre) / tau**2) / -bend, -1.0, 1.0)
            at = at + move
            if np.abs(move).max() < 1e-6:
                break
        wide = np.sqrt(-1.0 / (np.minimum(self.at(at)[2], 0.0) - tau**-2))
        # (2) Gauss-Hermite quadrature about it.
        x, w = np.polynomial.hermite_e.hermegauss(NODES)
        nodes = at[None] + wide[None] * x[:, None, None]
        inside = self.at(nodes)[0] - 0.5 * ((nodes - centre) / tau) ** 2 + 0.5 * (x**2)[:, None, None]
        result = logsumexp(inside + np.log(w)[:, None, None], axis=0) + np.log(wide / tau) - 0.5 * np.log(2.0 * np.pi)
        return np.asarray(result.sum(axis=1))


@dataclass(frozen=True)
class PosteriorTerms:
    """The mean given tau: its log-likelihood at equally spaced values, and its integral."""

    tau: float
    mean: Floats
    log: Floats
    integral: float

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the normalised likelihood of the mean."""
        w = np.exp(self.log - self.log.max())
        w /= w.sum()
        centre = float(w @ self.mean)
        return centre, float(np.sqrt(w @ (self.mean - centre) ** 2))


def posterior_terms(sites: Likelihoods, tau: float, start: float) -> PosteriorTerms:
    """The likelihood of the mean, at a tau."""
    from scipy.special import logsumexp

    # (1) Its peak, by parabolas through three points ever closer together.
    at, step = start, 0.5
    for _ in range(12):
        low, mid, high = sites.marginal(at + np.array([-step, 0.0, step]), tau)
        bend = low - 2.0 * mid + high
        move = float(np.clip(0.5 * step * (low - high) / bend, -1.0, 1.0)) if bend < 0 else step * np.sign(high - low)
        at, wide = at + move, step / np.sqrt(max(-bend, 1e-6))
        done, step = abs(move) < 0.1 * wide and step < 2.0 * wide, min(max(wide, 0.01), 0.5)
        if done:
            break
    # (2) Equal steps about it.
    mean = at + wide * np.linspace(-WIDE, WIDE, ACROSS)
    log = sites.marginal(mean, tau)
    return PosteriorTerms(tau, mean, log, float(logsumexp(log) + np.log(mean[1] - mean[0])))


@dataclass(frozen=True)
class Fitted:
    """The mean over sites and their spread; ends at one level each."""

    # `mean` and `error`: and its standard error, tau held.
    mean: float
    error: float
    # `low`, `high`, `new_low` and `new_high`: the interval of the mean, and the prediction interval of a new site.
    low: float
    high: float
    new_low: float
    new_high: float
    # `tau`, `tau_low` and `tau_high`: standard deviation between sites, and its interval by likelihood ratio.
    tau: float
    tau_low: float
    tau_high: float
    p_value: float  # of "all sites are alike", by likelihood ratio; half of the chi-squared distribution is at zero


def fitted(sites: Likelihoods, alpha: float) -> Fitted:
    """Fit the mean and the spread of the sites' shifts; at least three sites have an event and three a row without."""
    from scipy.interpolate import PchipInterpolator
    from scipy.stats import chi2, t

    # (1) The restricted likelihood of tau: the mean is integrated out, which takes off the bias of few sites.
    steps = WIDEST * (np.arange(SPREADS) / (SPREADS - 1)) ** 2.5
    results: list[PosteriorTerms] = []
    for tau in steps:
        results.append(posterior_terms(sites, float(tau), results[-1].moments[0] if results else 0.0))
        if results[-1].integral < max(g.integral for g in results) - NEGLIGIBLE:
            break
    root = np.sqrt(steps[: len(results)])
    fine = np.linspace(0.0, root[-1], FINE)
    log = PchipInterpolator(root, [g.integral for g in results])(fine)
    best = int(np.argmax(log))
    tau = float(fine[best] ** 2)
    inside = fine[2.0 * (log[best] - log) <= chi2.isf(alpha, 1)] ** 2
    # (2) The mean given tau, with Student's quantile for a spread that is estimated; a new site lies tau about it.
    mean, error = posterior_terms(sites, tau, results[0].moments[0]).moments
    half = float(t.isf(alpha / 2.0, sites.count - 1)) * error
    new = float(t.isf(alpha / 2.0, sites.count - 2) * np.sqrt(tau**2 + error**2))
    return Fitted(
        mean=mean,
        error=error,
        low=mean - half,
        high=mean + half,
        new_low=mean - new,
        new_high=mean + new,
        tau=tau,
        tau_low=float(inside[0]),
        tau_high=float(inside[-1]),
        p_value=float(0.5 * chi2.sf(2.0 * (log[best] - log[0]), 1)) if best else 1.0,
    )


def alone(sites: Likelihoods, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Each site's own estimate and limits, by Firth's penalised likelihood: finite where a non-event happened.

    The estimate has the largest likelihood times the root of the information, which takes off the bias of order
    ``1 / n``; limits are where it has fallen by half a quantile of chi-squared (Heinze and Schemper).
    """
    from scipy.stats import chi2

    grid = np.linspace(-REACH + STEP, REACH - STEP, PENALISED)
    value, _, bend = sites.at(np.repeat(grid[:, None], sites.count, axis=1))
    log = value + 0.5 * np.log(np.maximum(-bend, np.finfo(float).tiny))
    top = log.argmax(axis=0)
    peak = log[top, np.arange(sites.count)]
    inside = log >= peak - chi2.isf(alpha, 1) / 2.0
    last = len(grid) - 1
    low = grid[np.maximum(inside.argmax(axis=0) - 1, 0)]
    high = grid[np.minimum(last - inside[::-1].argmax(axis=0) + 1, last)]
    return grid[top], low, high  # limits rounded outward by a step of the grid
