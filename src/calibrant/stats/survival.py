r"""Follow-up that ends: the law of its end, event probabilities by a horizon, and bands for both.

A row is followed for ``min(T, C)``; T is the time to its first event, C the end of follow-up. Where both fall on one
time the event is first, so that ``C >= T`` was seen: ``G(t) = P(C >= t)`` is what an event at t is divided by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.evidence import limit_of, log_mean_exp

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Kinds = NDArray[np.int8]

EVENT = 1  # what ended the follow-up; 0 is nothing, every other number a competing event
TIMES = 100  # at which a band is solved
HALVINGS = 12  # of the stakes of a band: from half of the rows down to one in eight thousand


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


def incidence(time: Floats, kind: Kinds) -> Steps:
    """The Aalen-Johansen estimate of ``P(T <= t, the event)``; without competing events one minus Kaplan-Meier's."""
    times, risk, gone = _at_risk(time, kind, censored=False)
    own = np.bincount(np.searchsorted(times, time), kind == EVENT, len(times))
    free = np.concatenate([[1.0], np.cumprod(1.0 - gone / risk)[:-1]])
    return Steps(times, np.concatenate([[0.0], np.cumsum(free * own / risk)]))


def known_by(time: Floats, kind: Kinds, horizon: float) -> Flags:
    """Which rows have an outcome by the horizon."""
    return (kind != 0) | (time >= horizon)


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


# ---- A band for the law of censoring, at any number of rows ----


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
    ``Y (a / Y) dL = a dL``, whatever Y is. So is their mean over stakes fixed beforehand, and by Ville's inequality
    neither ever reaches ``2 / delta`` with more than probability ``delta / 2``. Solved for L at up to a
    hundred times of censoring, between which it only rises.
    """
    # (1) rows censored before `until`, in order, and those at risk; of one time one after another, events before them
    order = np.lexsort((kind == 0, time))
    gone = (kind[order] == 0) & (time[order] < until)
    y, when = np.arange(len(order), 0, -1, dtype=np.float64)[gone], time[order][gone]
    stakes = np.asarray(len(order) * 0.5 ** np.arange(1, HALVINGS + 1), dtype=np.float64)
    # (2) logs of the products by stake, before each of these rows and after the last
    up, down = products(y, stakes)
    # (3) ends of L up to some of the times, from the one before: low by what had left by that one, high by what left
    # before this one, by stakes below the number still at risk
    starts = np.flatnonzero(np.append(True, when[1:] != when[:-1])) if len(when) else np.zeros(0, np.intp)
    starts = starts[np.unique(np.linspace(0, len(starts) - 1, min(len(starts), TIMES)).astype(np.intp))]
    ends = np.append(starts, len(when))
    after = np.searchsorted(when, when[starts], side="right")
    risk = np.append(y[starts], float((time >= until).sum()))
    lows = [0.0, *(_least(up[:, j], stakes, delta / 2.0) for j in after)]
    highs = [
        _most(np.where(stakes < at_risk, down[:, j], -np.inf), stakes, delta / 2.0)
        for j, at_risk in zip(ends, risk, strict=True)
    ]
    return Band(low=Steps(when[starts], np.exp(-np.array(highs))), high=Steps(when[starts], np.exp(-np.array(lows))))


def products(y: Floats, stakes: Floats) -> tuple[Floats, Floats]:
    """Logs of both products, by stake and after 0, 1, ... of the rows censored, which leave so many at risk."""
    up = np.cumsum(np.log1p(stakes[:, None] / y), axis=1)
    down = np.cumsum(np.log1p(-np.minimum(stakes[:, None] / y, 1.0 - 1e-12)), axis=1)
    none = np.zeros((len(stakes), 1))
    return np.concatenate([none, up], axis=1), np.concatenate([none, down], axis=1)


def _least(logs: Floats, stakes: Floats, delta: float) -> float:
    """The L under which the mean of ``exp(logs - stakes L)`` reaches ``1 / delta``."""
    return max(limit_of(lambda x: log_mean_exp(logs - stakes * x), delta, 0.0, float((logs / stakes).max())), 0.0)


def _most(logs: Floats, stakes: Floats, delta: float) -> float:
    """The L above which the mean of ``exp(logs + stakes L)`` reaches ``1 / delta``; infinite without a stake."""
    if not np.isfinite(logs).any():
        return np.inf
    there = np.isfinite(logs)
    top = float(((-logs[there] + np.log(len(logs) / delta)) / stakes[there]).min())
    return limit_of(lambda x: log_mean_exp(logs + stakes * x), delta, top, 0.0)
