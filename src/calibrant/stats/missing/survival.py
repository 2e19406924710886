r"""Follow-up that ends: the law of its end and its limits, event probabilities by a horizon, and their model.

A row is followed for ``min(T, C)``; T is the time to its first event, C the end of follow-up. Where both fall on one
time the event is first, so that ``C >= T`` was seen: ``G(t) = P(C >= t)`` is what an event at t is divided by.

Cox's model makes observed probabilities a smooth function of the score. With ``z = ln(-ln(1 - p))`` the hazard is
``h_0(t) exp(b' s(z))``, s a restricted cubic spline. A calibrated score of proportional hazards has ``b' s(z) = z``;
what the model gives at the horizon is what happened at that score. With competing events it is Fine and Gray's model:
a row that had another event stays at risk, with the probability of being followed so long over that of being followed
to its event, and what the model gives is the absolute risk. Why not a library: statsmodels needs pandas and
patsy, lifelines pandas, matplotlib, autograd and formulaic, for one model of at most four columns; and a bootstrap
sample here stays in order, so that 200 fits sort the rows once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import NotComputable
from calibrant.stats.evidence import limit_of, log_mean_exp

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Kinds = NDArray[np.int8]

LEAST = 0.05  # of the probability of being followed to the horizon: the inverse is the largest weight
EVENT = 1  # what ended the follow-up; 0 is nothing, every other number a competing event


@dataclass(frozen=True)
class Steps:
    """A step function: what it is at the beginning, and from each time on."""

    time: Floats  # shape (k,), increasing
    value: Floats  # shape (k + 1,)

    def before(self, t: Floats) -> Floats:
        """Its value just before each time."""
        return np.asarray(self.value[np.searchsorted(self.time, t, side="left")])

    def at(self, t: float) -> float:
        """Its value at a time."""
        return float(self.value[np.searchsorted(self.time, t, side="right")])


def _at_risk(time: Floats, kind: Kinds, censored: bool) -> tuple[Floats, Floats, Floats]:
    """Distinct times, rows at risk at each, and how many leave: censored, after events of that time; or by events."""
    times, place = np.unique(time, return_inverse=True)
    every = np.bincount(place, minlength=len(times)).astype(np.float64)
    events = np.bincount(place, kind != 0, len(times)).astype(np.float64)
    risk = every[::-1].cumsum()[::-1]
    return (times, risk - events, every - events) if censored else (times, risk, events)


def censoring(time: Floats, kind: Kinds) -> Steps:
    """The Kaplan-Meier estimate of ``P(C > t)``: `Steps.before` is ``P(C >= t)``."""
    times, risk, gone = _at_risk(time, kind, censored=True)
    share = np.divide(gone, risk, out=np.zeros(len(times)), where=risk > 0)
    return Steps(times, np.concatenate([[1.0], np.cumprod(1.0 - share)]))


def censoring_differs(time: Floats, kind: Kinds, level: NDArray[np.int64]) -> float:
    r"""The p-value of the log-rank test that follow-up ends alike in every level; 1 of one level, or where none ends.

    With Y rows at risk of being lost at u, events of that time gone, d of them lost, and ``Y_g``, ``d_g`` those of a
    level: ``Z_g = sum_u d_g - d Y_g / Y`` has covariance ``sum_u (Y_g / Y) (1{g = h} - Y_h / Y) d (Y - d) / (Y - 1)``.
    """
    from scipy.stats import chi2

    levels, g = np.unique(level, return_inverse=True)
    times, place = np.unique(time, return_inverse=True)
    shape = len(levels), len(times)
    every, lost, stays = (
        np.bincount(g * shape[1] + place, w, shape[0] * shape[1]).reshape(shape)
        for w in (np.ones(len(time)), kind == 0, kind != 0)
    )
    risk = every[:, ::-1].cumsum(axis=1)[:, ::-1] - stays
    at = (lost.sum(axis=0) > 0.0) & (risk.sum(axis=0) > 1.0)
    y, d = risk[:, at], lost[:, at].sum(axis=0)
    share = y / y.sum(axis=0)
    z = (lost[:, at] - share * d).sum(axis=1)
    each = d * (y.sum(axis=0) - d) / (y.sum(axis=0) - 1.0)
    variance = np.diag((share * each).sum(axis=1)) - (share * each) @ share.T
    rank = int(np.linalg.matrix_rank(variance))
    return float(chi2.sf(z @ np.linalg.pinv(variance) @ z, rank)) if rank else 1.0


def incidence(time: Floats, kind: Kinds) -> Steps:
    """The Aalen-Johansen estimate of ``P(T <= t, the event)``; without competing events one minus Kaplan-Meier's."""
    times, risk, gone = _at_risk(time, kind, censored=False)
    own = np.bincount(np.searchsorted(times, time), kind == EVENT, len(times))
    free = np.concatenate([[1.0], np.cumprod(1.0 - gone / risk)[:-1]])
    return Steps(times, np.concatenate([[0.0], np.cumsum(free * own / risk)]))


def known_by(time: Floats, kind: Kinds, horizon: float) -> Flags:
    """Which rows have an outcome by the horizon."""
    return (kind != 0) | (time >= horizon)


def reaches(time: Floats, kind: Kinds, horizon: float) -> bool:
    """Whether follow-up says what happened by the horizon: somebody was followed so long, or nobody was at risk."""
    last = time.max(initial=0.0)
    return bool(last >= horizon or (len(time) and not (kind[time == last] == 0).any()))


def inverse_weights(time: Floats, kind: Kinds, horizon: float, g: Steps) -> Floats:
    """The inverse of how likely each row was followed to its outcome, 0 where the outcome is unknown."""
    reach = g.before(np.minimum(time, horizon))
    return np.where(known_by(time, kind, horizon), 1.0 / np.where(reach > 0.0, reach, 1.0), 0.0)


def incidence_variance(time: Floats, kind: Kinds, horizon: float) -> float:
    r"""The variance of the Aalen-Johansen estimate at the horizon, by the delta method.

    ``sum_u (F(H) - F(u))^2 d_u / (Y_u (Y_u - d_u)) + S(u-)^2 d1_u (Y_u - d1_u) / Y_u^3
    - 2 (F(H) - F(u)) S(u-) d1_u / Y_u^2`` over event times u up to H (Marubini and Valsecchi 1995). It is
    Greenwood's without competing events.
    """
    times, risk, gone = _at_risk(time, kind, censored=False)
    own = np.bincount(np.searchsorted(times, time), kind == EVENT, len(times))
    free = np.concatenate([[1.0], np.cumprod(1.0 - gone / risk)[:-1]])
    f = np.cumsum(free * own / risk)
    upto = times <= horizon
    rest = (f[upto][-1] - f[upto]) if upto.any() else np.zeros(0)
    y, d, d1, s = risk[upto], gone[upto], own[upto], free[upto]
    left = np.where(y > d, y - d, 1.0)  # nobody is left after the last event: its term is then 0, as rest is
    parts = rest**2 * d / (y * left) + s**2 * d1 * (y - d1) / y**3 - 2.0 * rest * s * d1 / y**2
    return float(max(parts.sum(), 0.0))


# ---- Limits of the law of censoring that hold at all times together, at any number of rows ----

TIMES = 100  # at which a band is solved
HALVINGS = 12  # of the sizes of bets: from half of the rows down to one in eight thousand


@dataclass(frozen=True)
class Band:
    """Limits of ``P(C >= t)`` that hold at every t together."""

    low: Steps
    high: Steps


def censoring_band(time: Floats, kind: Kinds, delta: float, until: float) -> Band:
    r"""Limits that hold ``P(C >= t)`` for all t up to `until`, with probability at least ``1 - delta``.

    Notes
    -----
    The j-th row to be censored leaves ``Y_j`` rows at risk, itself among them; those of one time leave one after
    another, as if C fell at random within it, which changes ``P(C >= t)`` nowhere. With ``L(t) = -ln P(C >= t)``,

    ``prod_j (1 + a / Y_j) exp(-a L(t))`` and ``prod_j (1 - a / Y_j) exp(a L(t))``

    are martingales in t for every stake a (the second while ``Y_j > a``): the compensator of a jump of size a / Y is
    ``Y (a / Y) dL = a dL``, whatever Y is. So is their mean over bet_sizes fixed beforehand, and by Ville's inequality
    neither ever reaches ``2 / delta`` with more than probability ``delta / 2``. Solved for L at up to a
    hundred times of censoring, between which it only rises.
    """
    # (1) rows censored before `until`, in order, and those at risk; of one time one after another, events before them
    order = np.lexsort((kind == 0, time))
    gone = (kind[order] == 0) & (time[order] < until)
    y, when = np.arange(len(order), 0, -1, dtype=np.float64)[gone], time[order][gone]
    bet_sizes = np.asarray(len(order) * 0.5 ** np.arange(1, HALVINGS + 1), dtype=np.float64)
    # (2) logs of the products by stake, before each of these rows and after the last
    up, down = products(y, bet_sizes)
    # (3) ends of L up to some of the times, from the one before: low by what had left by that one, high by what left
    # before this one, by bet_sizes below the number still at risk
    starts = np.flatnonzero(np.append(True, when[1:] != when[:-1])) if len(when) else np.zeros(0, np.intp)
    starts = starts[np.unique(np.linspace(0, len(starts) - 1, min(len(starts), TIMES)).astype(np.intp))]
    ends = np.append(starts, len(when))
    after = np.searchsorted(when, when[starts], side="right")
    risk = np.append(y[starts], float((time >= until).sum()))
    lows = [0.0, *(_least(up[:, j], bet_sizes, delta / 2.0) for j in after)]
    highs = [
        _most(np.where(bet_sizes < at_risk, down[:, j], -np.inf), bet_sizes, delta / 2.0)
        for j, at_risk in zip(ends, risk, strict=True)
    ]
    return Band(low=Steps(when[starts], np.exp(-np.array(highs))), high=Steps(when[starts], np.exp(-np.array(lows))))


def products(y: Floats, bet_sizes: Floats) -> tuple[Floats, Floats]:
    """Logs of both products, by stake and after 0, 1, ... of the rows censored, which leave so many at risk."""
    up = np.cumsum(np.log1p(bet_sizes[:, None] / y), axis=1)
    down = np.cumsum(np.log1p(-np.minimum(bet_sizes[:, None] / y, 1.0 - 1e-12)), axis=1)
    none = np.zeros((len(bet_sizes), 1))
    return np.concatenate([none, up], axis=1), np.concatenate([none, down], axis=1)


def _least(logs: Floats, bet_sizes: Floats, delta: float) -> float:
    """The L under which the mean of ``exp(logs - bet_sizes L)`` reaches ``1 / delta``."""
    return max(limit_of(lambda x: log_mean_exp(logs - bet_sizes * x), delta, 0.0, float((logs / bet_sizes).max())), 0.0)


def _most(logs: Floats, bet_sizes: Floats, delta: float) -> float:
    """The L above which the mean of ``exp(logs + bet_sizes L)`` reaches ``1 / delta``; infinite without a stake."""
    if not np.isfinite(logs).any():
        return np.inf
    there = np.isfinite(logs)
    top = float(((-logs[there] + np.log(len(logs) / delta)) / bet_sizes[there]).min())
    return limit_of(lambda x: log_mean_exp(logs + bet_sizes * x), delta, top, 0.0)


# ---- Cox's model of the score ----

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
    kind: Kinds  # what ended the follow-up: 1 is the event, 0 nothing, every other number a competing event
    x: Floats  # shape (n, k)

    @classmethod
    def of(cls, time: Floats, kind: Kinds, x: Floats) -> Cohort:
        order = np.lexsort((kind != EVENT, time))
        return cls(time[order], kind[order], x[order])

    def again(self, times: NDArray[np.int64]) -> Cohort:
        """The same rows, each so many times: a bootstrap sample, which stays in order."""
        rows = np.repeat(np.arange(len(self.time)), times)
        return Cohort(self.time[rows], self.kind[rows], self.x[rows])

    @cached_property
    def followed(self) -> Floats:
        """The probability of being followed to each row's time, by the Kaplan-Meier estimate of these rows."""
        return censoring(self.time, self.kind).before(self.time)

    @cached_property
    def stays(self) -> Floats | None:
        """Of rows that had a competing event one over that probability, of others 0; None where none had."""
        rivals = self.kind > EVENT
        return np.where(rivals, 1.0 / np.where(rivals, self.followed, 1.0), 0.0) if rivals.any() else None

    @cached_property
    def tied(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Floats]:
        """Of each event its row, the first row of its time, one past the last event of it, and its Efron share."""
        rows = np.flatnonzero(self.kind == EVENT)
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
