"""Logistic regression by Newton's method: one solver, for one outcome or many, and the recalibrations it fits.

The likelihood of a logistic regression depends on the outcomes through ``sum w y x`` alone (its sufficient statistic),
so that one function of the coefficients, ``K(b) = sum w ln(1 + exp(offset + x b))``, serves every outcome on the same
rows: a data set, thousands of simulated ones, or targets between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.measures import Weighed

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

STEPS = 100  # quadratic convergence takes five to ten; the rest is for outcomes that scores nearly separate
HALVINGS = 12  # of a step, until it gains: to a 4,000th
SETTLED = 1e-12  # of the log-likelihood, in which a step must still promise something; one more step is taken then
NEGLIGIBLE = 1e-6  # log-likelihood still promised at a fit that counts as found
LONGEST = 4.0  # root mean square move of the log-odds in a step: a quadratic is no guide farther away
FARTHEST = 80.0  # the same in all: beyond it next to nothing is left to gain
STRETCH = 8192  # rows whose products are taken at a time, so that they stay in the cache
RIDGE = 1e-10  # of the mean curvature, in steps only: for columns that repeat each other; the fit does not feel it


@dataclass(frozen=True)
class Design:
    """What fits to different outcomes share: ``logit P(Y = 1) = offset + features @ b``, with a normal prior on b."""

    features: Floats  # Shape (n, d): an intercept is a column of ones. Steps are surest where columns are of like size.
    weight: Floats  # shape (n,)
    offset: Floats | None = None  # shape (n,): log-odds known beforehand
    # Shape (d,): half of it times the square of its coefficient is taken off the log-likelihood. Infinite: the
    # coefficient stays where it starts.
    penalty: Floats | None = None

    def sums(self, target: Floats) -> Floats:
        """``sum w y x`` of one outcome, in [0, 1], as `maximise` takes it: shape (1, d)."""
        return ((self.weight * target) @ self.features)[None]

    def log_odds(self, b: Floats) -> Floats:
        """The log-odds of each row for coefficients of shape (outcomes, d)."""
        eta = b @ self.features.T
        return eta if self.offset is None else eta + self.offset

    def information(self, q: Floats) -> Floats:
        """Minus the hessian where the rows' probabilities are `q`, shape (outcomes, n); penalties left out."""
        x = self.features
        variance = q * (1.0 - q) * self.weight
        if len(q) == 1:
            total, scale = np.zeros((1, x.shape[1], x.shape[1])), np.sqrt(variance[0])
            for first in range(0, len(x), STRETCH):
                own = slice(first, first + STRETCH)
                root = x.T[:, own] * scale[own]
                total[0] += root @ root.T  # a matrix by itself takes half of the products
            return total
        i, j = np.triu_indices(x.shape[1])
        out = np.empty((len(q), x.shape[1], x.shape[1]))
        out[:, i, j] = out[:, j, i] = variance @ (x[:, i] * x[:, j])
        return out


@dataclass(frozen=True)
class Fit:
    """Penalised maximum likelihood estimates, a row an outcome."""

    coefficients: Floats  # shape (outcomes, d)
    gain: Floats  # shape (outcomes,): penalised log-likelihood gained over the start
    settled: Flags  # shape (outcomes,): Newton's method has arrived; otherwise the coefficients may be infinite


def maximise(design: Design, sums: Floats, start: Floats | None = None, *, reach: float = FARTHEST) -> Fit:
    """Maximise ``b . S - sum w ln(1 + exp(offset + x b)) - penalty . b^2 / 2`` for each row S of `sums`.

    Newton's method; a step is cut to `LONGEST` and halved until the value does not fall.

    `sums` (outcomes, d): ``sum w y x`` of each outcome. `start` (d,): zero by default. `reach`: root mean square move
    of the log-odds at most. Infinite, which lets steps be of any length too, where a penalty on every slope makes the
    optimum finite, however far it is.
    """
    d, total = design.features.shape[1], float(design.weight.sum())
    penalty = np.zeros(d) if design.penalty is None else design.penalty
    first = np.tile(np.zeros(d) if start is None else start, (len(sums), 1))
    at = _evaluate(design, penalty, sums, first)
    base, open_ = at.value, np.ones(len(sums), dtype=bool)
    longest = LONGEST if np.isfinite(reach) else np.inf
    for _ in range(STEPS):
        move = _step(design, penalty, at, longest)
        promise = (move * at.gradient).sum(axis=1)
        open_ &= promise > SETTLED * (total + np.abs(at.value))
        open_ &= _length(at.b - first, design) < reach
        if not open_.any():
            break
        at, stuck = _advance(design, penalty, sums, at, move, np.flatnonzero(open_))
        open_[stuck] = False
    move = _step(design, penalty, at, longest)
    promise = np.abs((move * at.gradient).sum(axis=1))
    settled = promise < NEGLIGIBLE + 10.0 * SETTLED * (total + np.abs(at.value))
    b = at.b + np.where(settled[:, None], move, 0.0)  # one step more than values can tell
    return Fit(b, np.maximum(at.value - base, 0.0), settled)


@dataclass(frozen=True)
class _Point:
    """Penalised log-likelihood, its gradient and the information at coefficients b, a row an outcome."""

    b: Floats
    value: Floats
    gradient: Floats
    information: Floats


def _evaluate(design: Design, penalty: Floats, sums: Floats, b: Floats) -> _Point:
    x, w = design.features, design.weight
    eta = design.log_odds(b)
    small = np.exp(-np.abs(eta))  # one exponential for the probability and for ln(1 + exp(eta))
    q = np.where(eta >= 0.0, 1.0, small) / (1.0 + small)
    finite = np.where(np.isfinite(penalty), penalty, 0.0)
    value = (b * sums).sum(axis=1) - (np.maximum(eta, 0.0) + np.log1p(small)) @ w - 0.5 * (b * b) @ finite
    gradient = sums - (q * w) @ x - finite * b
    return _Point(b, value, gradient, design.information(q) + np.diag(finite))


def _step(design: Design, penalty: Floats, at: _Point, longest: float) -> Floats:
    """Newton's step ``information^-1 gradient`` of each outcome, none along what stays, at most `longest`."""
    free = np.flatnonzero(np.isfinite(penalty))
    matrix = at.information[:, free[:, None], free]
    ridge = RIDGE * np.trace(matrix, axis1=1, axis2=2) / max(len(free), 1) + 1e-140  # no step overflows
    matrix = matrix + ridge[:, None, None] * np.eye(len(free))
    move = np.zeros_like(at.b)
    move[:, free] = np.linalg.solve(matrix, at.gradient[:, free, None])[..., 0]
    return move * np.minimum(1.0, longest / np.maximum(_length(move, design), 1e-300))[:, None]


def _length(move: Floats, design: Design) -> Floats:
    """The weighted root mean square change of the log-odds of rows."""
    square = (move @ design.features.T) ** 2 @ design.weight / design.weight.sum()
    return np.sqrt(square)


def _advance(
    design: Design, penalty: Floats, sums: Floats, at: _Point, move: Floats, left: NDArray[np.intp]
) -> tuple[_Point, NDArray[np.intp]]:
    """Take the steps of the outcomes that are `left`, halved until they lose nothing, and say which never do."""
    at = _Point(*(v.copy() for v in (at.b, at.value, at.gradient, at.information)))
    size = 1.0
    for _ in range(HALVINGS):
        result = _evaluate(design, penalty, sums[left], at.b[left] + size * move[left])
        better = result.value >= at.value[left] - 1e-15 * np.abs(at.value[left])  # 1e-15: rounding of the sum
        won = left[better]
        at.b[won], at.value[won] = result.b[better], result.value[better]
        at.gradient[won], at.information[won] = result.gradient[better], result.information[better]
        left, size = left[~better], 0.5 * size
        if not len(left):
            break
    return at, left


# ---- One outcome: coefficients and intercept ----

AT_ONCE = 1 << 20  # numbers that are put into standard units at a time
WARM = 16_384  # above four times as many rows the start is fitted on about so many of them


def regress(
    features: Floats | Sequence[Floats | Flags],
    target: Floats,
    weight: Floats,
    *,
    ridge: float | Floats = 0.0,
    intercept: bool = True,
) -> tuple[Floats, float]:
    """Coefficients and intercept that minimise the weighted log loss plus ``ridge . coefficients^2 / 2``.

    scikit-learn's `LogisticRegression` minimises the same sum, but takes labels 0 and 1 only, so that every row would
    enter it twice. Constant columns get coefficient 0.

    `features` (n, d): several are taken side by side, without a copy of all; those of 0/1 columns may be of flags.
    `target` (n,): in [0, 1]. `weight` (n,). `ridge` (d,): scikit-learn's 1/C; of all columns, or of each. `intercept`:
    fit an intercept, which has no penalty; otherwise it is 0.
    """
    blocks = [features] if isinstance(features, np.ndarray) else features
    n, d = len(target), sum(block.shape[1] for block in blocks)
    # Columns in standard units are the same regression with other names, and well conditioned; so is the penalty.
    x = np.ones((d + intercept, n))  # a row a column: products with rows of data run along memory
    centre, scale, slab, first = np.zeros(d), np.zeros(d), max(AT_ONCE // n, 1), 0
    for some in (block[:, j : j + slab] for block in blocks for j in range(0, block.shape[1], slab)):
        own = slice(first, first := first + some.shape[1])
        column = np.ascontiguousarray(some.T, dtype=np.float64)
        if intercept:  # in pairs, so that the mean of a constant is the constant
            centre[own] = (column * weight).sum(axis=1) / weight.sum()
            column = column - centre[own, None]
        spread = np.sqrt(column**2 @ weight / weight.sum())
        flat = spread <= 1e-12 * (1.0 + np.abs(centre[own]))  # 1e-12: what rounding leaves of a constant
        scale[own] = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, spread))
        x[:d][own] = column * scale[own, None]
    penalty = np.concatenate([ridge * scale**2, np.zeros(int(intercept))])
    reach = np.inf if np.all(np.asarray(ridge) > 0.0) else FARTHEST
    design, start = Design(x.T, weight, penalty=penalty), None
    stride = n // WARM
    if stride > 4:
        part = replace(design, features=np.ascontiguousarray(x[:, ::stride]).T, weight=weight[::stride])
        tried = maximise(part, part.sums(target[::stride]), reach=reach)
        start = tried.coefficients[0] if tried.settled[0] else None
    result = maximise(design, design.sums(target), start, reach=reach).coefficients[0]
    slopes = result[:d] * scale
    return slopes, float(result[d] - slopes @ centre) if intercept else 0.0


# ---- Recalibration: outcomes as a line in the logit of their probabilities (Cox 1958) ----

NODES = 128  # gains then err by 0.1 % at most (20,000 scores Beta(1/2, 2), 100 simulated outcomes)


@dataclass(frozen=True)
class Recalibrations:
    """Recalibrations ``logit P(Y = 1) = intercept + slope * logit p``."""

    gain: Floats  # shape (outcomes,): twice the log-likelihood gained over `intercept = 0, slope = 1`
    intercept: Floats  # shape (outcomes,)
    slope: Floats  # shape (outcomes,)
    information: Floats  # shape (outcomes, 2, 2): of intercept and slope, at the fit
    settled: Flags  # shape (outcomes,): the fit is finite and found


def recalibrations(excess: Floats, x: Floats, mass: Floats, slope: bool) -> Recalibrations:
    """Recalibrate outcomes that are given by their residual sums.

    The sums of an outcome are their expectation at ``intercept = 0, slope = 1`` plus `excess`, so that no excess gains
    nothing, whatever nodes x stands on.

    `excess` (outcomes, 2): ``sum (Y - p)`` and ``sum (Y - p) x``. `x`, `mass` (m,): logits and their weight. `slope`:
    fit the slope too; otherwise it stays 1.
    """
    from scipy.special import expit

    centre = float(mass @ x / mass.sum())
    spread = float(np.sqrt(mass @ (x - centre) ** 2 / mass.sum())) or 1.0
    design = Design(
        np.array([np.ones(len(x)), (x - centre) / spread]).T, mass, penalty=np.array([0.0, 0.0 if slope else np.inf])
    )
    sums = np.stack([excess[:, 0], (excess[:, 1] - centre * excess[:, 0]) / spread], axis=1)
    fit = maximise(design, sums + design.sums(expit(x)), np.array([centre, spread]))
    b = fit.coefficients[:, 1] / spread
    turn = np.array([[1.0, 0.0], [centre, spread]])  # from standard units
    information = turn @ design.information(expit(design.log_odds(fit.coefficients))) @ turn.T
    return Recalibrations(2.0 * fit.gain, fit.coefficients[:, 0] - b * centre, b, information, fit.settled)


def compressed(x: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """At most 128 nodes and their mass: means of consecutive stretches of sorted logits."""
    if len(x) <= NODES:
        return x, mass
    upto = np.cumsum(mass)
    first = np.unique(np.searchsorted(upto, upto[-1] * np.arange(NODES) / NODES, side="right"))
    size = np.add.reduceat(mass, first)
    return np.add.reduceat(mass * x, first) / size, size


@dataclass(frozen=True)
class Recalibration:
    """Coefficients of ``logit P(Y = 1) = a + b logit p``, or a alone, robust errors, and the sandwich."""

    coefficients: Floats
    errors: Floats
    converged: bool
    sandwich: Floats


def recalibrate(logit: Floats, q: Weighed, slope: bool) -> Recalibration:
    """Fit intercept and slope, or the intercept alone with slope one, to points of these logits.

    Standard errors are the larger of the sandwich's (White 1982), right also where the logistic form is not, and the
    model's, which does not fall to nothing with few events. In clusters the sandwich adds scores up within each (Liang
    and Zeger 1986), times ``G / (G - 1)`` for G clusters.
    """
    from scipy.special import expit

    residual = q.mass * (q.y - expit(logit))
    fit = recalibrations(np.array([[residual.sum(), residual @ logit]]), logit, q.mass, slope)
    a, b = float(fit.intercept[0]), float(fit.slope[0])
    kept = 1 + slope
    terms = np.array([np.ones(len(logit)), logit])[:kept]
    meat = q.products(terms * (q.y - expit(a + b * logit)))
    inverse = np.linalg.pinv(fit.information[0, :kept, :kept])
    robust, model = inverse @ meat @ inverse, inverse * float(q.square.sum() / q.mass.sum())
    errors = np.sqrt(np.maximum(np.diag(robust), np.diag(model)))
    return Recalibration(np.array([a, b])[:kept], errors, bool(fit.settled[0]), robust)
