"""E-values: what they say against a hypothesis, what they exclude, and their mean.

An *e-value* is a non-negative statistic whose mean is at most one when the hypothesis is true; by Markov's inequality
it exceeds ``1/delta`` with probability at most ``delta``, and an average of e-values, with weights fixed beforehand, is
again an e-value. Here the hypotheses are "the error (or the gap) is x", or at least, or at most x; the e-value is
monotone in x, and the certified end is the x at which it reaches ``1/delta``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant.kernels.roots import crossing

NEAR = 1e-13  # of a root: less than a number of twelve digits shows
FAR = 1e6  # a log e-value that refutes nothing, where it would be minus infinity
SEARCHED = (1.0, 0.5, 0.25, 0.125)  # where a hypothesis that is refuted is looked for, if evidence need not be monotone


def log_mean_exp(values: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Log of ``sum weights * exp(values)``, without overflow; equal weights by default."""
    values = np.asarray(values, dtype=float)
    shifted = values + (np.log(1.0 / len(values)) if weights is None else np.log(weights))
    top = float(shifted.max())
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.exp(shifted - top).sum()))


def limit_of(log_e: Callable[[float], float], delta: float, start: float | Sequence[float], stop: float) -> float:
    """Where a log e-value falls to ``ln(1 / delta)``: from `start`, which is refuted first, towards `stop`.

    All from `start` to there are refuted; `start` itself where nothing is. Of several starts it is the first that is
    refuted, and the first of all where none is.
    """
    price = float(np.log(delta))

    @cache  # both ends, and the root, are asked for twice
    def excess(x: float) -> float:
        return max(log_e(x), -FAR) + price

    starts = (start,) if isinstance(start, float) else start
    first = next((x for x in starts if excess(x) > 0.0), None)
    if first is None:
        return starts[0]
    if excess(stop) >= 0.0:
        return stop
    x = float(crossing(excess, first, stop, xtol=NEAR))
    return x if excess(x) >= 0.0 else x + 2.0 * math.copysign(NEAR, first - x)  # on the side that is refuted


class Evidence(ABC):
    """The log of an e-value against hypotheses about one number, one for each x, monotone in x.

    `start` is the hypothesis that is refuted first: 0 against "at most x", 1 against "at least x".
    """

    start: float | Sequence[float] = 0.0
    stop: float = 1.0

    @abstractmethod
    def at(self, x: float) -> float:
        """The log e-value against the hypothesis at x."""

    def limit(self, delta: float) -> float:
        """The x at which the e-value reaches ``1 / delta``: the truth is beyond it with probability at most delta."""
        return limit_of(self.at, delta, self.start, self.stop)


@dataclass(frozen=True)
class Against(Evidence):
    """Evidence that is a function of the hypothesis."""

    log_e: Callable[[float], float]
    start: float | Sequence[float]
    stop: float

    def at(self, x: float) -> float:
        return self.log_e(x)


class Mean(Evidence):
    """The mean of e-values against the same hypotheses, with equal weights.

    `parts`: at least one. `of`: E-values that there are: those beyond `parts` are 1 whatever the data say.
    """

    def __init__(self, parts: Sequence[Evidence], of: int = 0) -> None:
        self.parts, self.nothing = parts, [0.0] * (of - len(parts))
        self.start, self.stop = parts[0].start, parts[0].stop

    def at(self, x: float) -> float:
        return log_mean_exp([part.at(x) for part in self.parts] + self.nothing)


def mean(parts: Sequence[Evidence]) -> Evidence:
    """The mean of e-values; of one it is itself."""
    return parts[0] if len(parts) == 1 else Mean(parts)


class Gap(NamedTuple):
    """Evidence about a mean residual, from either side."""

    at_most: Evidence  # against "it is at most x": its limit is the lower end
    at_least: Evidence  # against "it is at least x": its limit is the upper end
    p_values: bool = False  # evidence is minus the log of p-values, which no mean can join

    @classmethod
    def of(cls, log_e: Callable[[float, float], float]) -> Gap:
        """Of a log e-value of a mean and a side: 1 against "at most", -1 against "at least"."""
        return cls(Against(lambda m: log_e(m, 1.0), -1.0, 1.0), Against(lambda m: log_e(m, -1.0), 1.0, -1.0))

    @classmethod
    def mean(cls, gaps: Sequence[Gap], of: int = 0) -> Gap:
        """The mean of e-values of each side; those beyond `gaps`, of `of` that there are, are 1."""
        return cls(Mean([g.at_most for g in gaps], of), Mean([g.at_least for g in gaps], of))

    def limits(self, delta: float) -> tuple[float, float]:
        """Limits that hold the mean residual with probability at least ``1 - delta``."""
        return self.at_most.limit(delta / 2.0), self.at_least.limit(delta / 2.0)
