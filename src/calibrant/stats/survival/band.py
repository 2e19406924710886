"""Limits of the law of censoring that hold at all times together, at any number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.stats.evidence import limit_of, log_mean_exp
from calibrant.stats.survival.curves import Floats, Kinds, Steps

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
