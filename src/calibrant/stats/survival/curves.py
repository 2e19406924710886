r"""Follow-up that ends: the law of its end, and event probabilities by a horizon.

A row is followed for ``min(T, C)``; T is the time to its first event, C the end of follow-up. Where both fall on one
time the event is first, so that ``C >= T`` was seen: ``G(t) = P(C >= t)`` is what an event at t is divided by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
