r"""Observed probabilities by a horizon as a smooth function of the score: Cox's model on splines of its cloglog.

With ``z = ln(-ln(1 - p))`` the hazard is ``h_0(t) exp(b' s(z))``, s a restricted cubic spline. A calibrated score of
proportional hazards has ``b' s(z) = z``; what the model gives at the horizon is what happened at that score.

With competing events it is Fine and Gray's model: a row that had another event stays at risk, with the probability of
being followed so long over that of being followed to its event, and what the model gives is the absolute risk.

Why not a library: statsmodels needs pandas and patsy, lifelines pandas, matplotlib, autograd and formulaic, for one
model of at most four columns; and a bootstrap sample here stays in order, so that 200 fits sort the rows once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import NotComputable
from calibrant.stats.survival import curves

Floats = NDArray[np.float64]
QUANTILES = {3: (0.1, 0.5, 0.9), 4: (0.05, 0.35, 0.65, 0.95), 5: (0.05, 0.275, 0.5, 0.725, 0.95)}  # Harrell's
STEPS, CLOSE = 50, 1e-10  # of Newton's method, and how small the last one is
NO_FIT = "Cox's model of the score does not converge: too few events, or the score distinguishes them all"


def cloglog(p: Floats) -> Floats:
    """``ln(-ln(1 - p))``."""
    return np.log(-np.log1p(-p))


def knots_of(z: Floats, count: int) -> Floats:
    """Harrell's knots, distinct ones."""
    return np.unique(np.quantile(z, QUANTILES[count]))


def splines(z: Floats, knots: Floats) -> Floats:
    """A restricted cubic spline: z itself, and a column fewer than knots, linear beyond the outer ones."""
    if len(knots) < 3:
        return z[:, None]
    first, *_, before, last = knots
    scale = (last - first) ** 2

    def cube(k: float) -> Floats:
        return np.maximum(z - k, 0.0) ** 3

    parts = [
        (cube(k) - cube(before) * (last - k) / (last - before) + cube(last) * (before - k) / (last - before)) / scale
        for k in knots[:-2]
    ]
    return np.column_stack([z, *parts])


@dataclass(frozen=True)
class Cohort:
    """Rows in order of time, events before those whose follow-up ended at that time."""

    time: Floats
    kind: NDArray[np.int8]  # what ended the follow-up: 1 is the event, 0 nothing, every other number a competing event
    x: Floats  # shape (n, k)

    @classmethod
    def of(cls, time: Floats, kind: NDArray[np.int8], x: Floats) -> Cohort:
        order = np.lexsort((kind != curves.EVENT, time))
        return cls(time[order], kind[order], x[order])

    def again(self, times: NDArray[np.int64]) -> Cohort:
        """The same rows, each so many times: a bootstrap sample, which stays in order."""
        rows = np.repeat(np.arange(len(self.time)), times)
        return Cohort(self.time[rows], self.kind[rows], self.x[rows])

    @cached_property
    def followed(self) -> Floats:
        """The probability of being followed to each row's time, by the Kaplan-Meier estimate of these rows."""
        return curves.censoring(self.time, self.kind).before(self.time)

    @cached_property
    def stays(self) -> Floats | None:
        """Of rows that had a competing event one over that probability, of others 0; None where none had."""
        rivals = self.kind > curves.EVENT
        return np.where(rivals, 1.0 / np.where(rivals, self.followed, 1.0), 0.0) if rivals.any() else None

    @cached_property
    def tied(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Floats]:
        """Of each event its row, the first row of its time, one past the last event of it, and its Efron share."""
        rows = np.flatnonzero(self.kind == curves.EVENT)
        first = np.searchsorted(self.time, self.time[rows], side="left")
        count = np.bincount(first, minlength=len(self.time))[first]
        share = (rows - first) / count  # events of one time come first, one after another
        return rows, first, first + count, share


@dataclass(frozen=True)
class Cox:
    """A fit, and the cumulative hazard by a horizon of a row with all columns 0."""

    beta: Floats
    hazard: float

    def risk(self, x: Floats) -> Floats:
        """The probability of the event by the horizon."""
        return -np.expm1(-self.hazard * np.exp(x @ self.beta))


def fit(rows: Cohort, horizon: float) -> Cox:
    """Fit by Newton's method with Efron's likelihood of ties; the hazard is Efron's too, as R's `coxph` has both."""
    at = rows.tied[0]
    if not len(at):
        raise NotComputable("Cox's model needs an event")
    x = rows.x - rows.x.mean(axis=0)
    beta = np.zeros(x.shape[1])
    for _ in range(STEPS):
        s0, s1, s2 = _sums(rows, x, x @ beta)
        mean = s1 / s0[:, None]
        gradient = x[at].sum(axis=0) - mean.sum(axis=0)
        hessian = (s2 / s0[:, None, None]).sum(axis=0) - mean.T @ mean
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            raise NotComputable(NO_FIT) from None
        size = float(np.abs(step).max())
        beta = beta + step * min(1.0, 5.0 / max(size, 1e-300))
        if size < CLOSE:
            break
    else:
        raise NotComputable(NO_FIT)
    s0, _, _ = _sums(rows, x, x @ beta)
    hazard = float((1.0 / s0[rows.time[at] <= horizon]).sum())
    return Cox(beta, hazard * float(np.exp(-rows.x.mean(axis=0) @ beta)))


def _sums(rows: Cohort, x: Floats, eta: Floats) -> tuple[Floats, Floats, Floats]:
    """Of each event the sums over rows at risk of exp(eta), times x, and times products of x, less Efron's share.

    Rows that had a competing event before it stay at risk, by their weights.
    """
    at, first, last, share = rows.tied
    w, stays = np.exp(eta), rows.stays
    parts = w, w[:, None] * x, w[:, None, None] * x[:, :, None] * x[:, None, :]
    out = []
    for part in parts:
        total = np.concatenate([np.zeros((1, *part.shape[1:])), np.cumsum(part[::-1], axis=0)])[
            ::-1
        ]  # from each row on
        f = share.reshape(-1, *([1] * (part.ndim - 1)))
        risk = total[first] - f * (total[first] - total[last])
        if stays is not None:
            weighed = part * stays.reshape(-1, *([1] * (part.ndim - 1)))
            before = np.concatenate([np.zeros((1, *part.shape[1:])), np.cumsum(weighed, axis=0)])[first]
            risk = risk + before * rows.followed[at].reshape(-1, *([1] * (part.ndim - 1)))
        out.append(risk)
    return out[0], out[1], out[2]
