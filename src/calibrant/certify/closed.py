"""Which of several populations are over a limit, and which are within: closed testing by averages, or Holm.

An *intersection* is the hypothesis that every population of a set S is within the limit. The mean of their e-values is
an e-value for it, however the populations overlap; it is rejected where that mean reaches ``1 / delta``. A population
is over the limit if every set that holds it is rejected: then any population is wrongly so with probability at most
`delta` (Marcus, Peritz and Gabriel 1976; Vovk and Wang 2021, for averages).

P-values have no such mean. Holm's procedure (1979) takes any, however populations overlap, and 1 / e is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.stats.evidence import Evidence as EValues
from calibrant.stats.evidence import Gap, log_mean_exp
from calibrant.stats.nulls import holm
from calibrant.views.population import QUANTISATION, Population, Target

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Judge = Literal["error", "gap"]
Verdict = Literal["within", "undecided", "over"]

OVER_BY_GAP = 0.8  # of alpha of an audit's groups over the limit, for their gaps; the rest is for errors


def refuted(log_e: ArrayLike, delta: float) -> Flags:
    """Which hypotheses closed testing rejects, all rightly with probability at least ``1 - delta``.

    Notes
    -----
    With ``a = delta e`` the mean over a set reaches ``1 / delta`` if its sum of ``a - 1`` is not negative. Of the sets
    that hold g the worst is therefore g with all others whose ``a`` is below 1, so that g is rejected if and only if
    ``a_g - 1 >= sum of (1 - a_i) over those``, and ``a_g >= 1``. That is never fewer than Holm's procedure finds with
    the p-values ``1 / e``; and where all reach 1, all are rejected.

    Examples
    --------
    >>> import numpy as np
    >>> refuted(np.log([20.0, 20.0, 20.0]), 0.05).tolist(), refuted(np.log([45.0, 15.0, 1.0]), 0.05).tolist()
    ([True, True, True], [True, False, False])
    """
    a = np.asarray(log_e, dtype=np.float64) + np.log(delta)
    short = float(-np.expm1(np.minimum(a, 0.0)).sum())
    result: Flags = a >= np.log1p(short)
    return result


def refuted_in_order(log_e: ArrayLike, delta: float) -> Flags:
    """Which hypotheses Holm's procedure rejects, all rightly with probability at least ``1 - delta``.

    `log_e`: minus the logs of p-values; e-values may be among them.

    Examples
    --------
    >>> import numpy as np
    >>> refuted_in_order(-np.log([0.04, 0.016, 0.024]), 0.05).tolist()
    [True, True, True]
    >>> refuted_in_order(-np.log([0.03, 0.016, 0.026]), 0.05).tolist()
    [False, True, False]
    """
    result: Flags = holm(np.exp(-np.maximum(log_e, 0.0))) <= delta
    return result


class Limit(NamedTuple):
    """How much more may happen than was said, and how much less; an error has no sign, and reads the first."""

    up: float
    down: float


class Evidence(Protocol):
    """Log e-values of one population at a limit, or minus the logs of p-values."""

    @property
    def p_values(self) -> bool:
        """Whether no mean may join this evidence with that of others."""

    def over(self, limit: Limit) -> float:
        """The evidence that the population is over the limit, on either side."""

    def within(self, limit: Limit) -> float:
        """The evidence that it is within, on both."""

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """The ends of its range at these error probabilities; the trivial end for 0."""


@dataclass(frozen=True)
class ErrorEvidence:
    """Of the calibration error: of the raw score from below, of the judged score from above."""

    below: EValues
    above: EValues
    slack: float  # by how much reading scores to fixed precision can move the judged score's error
    p_values: Literal[False] = False

    @classmethod
    def of(cls, q: Population, steps: int, delta: float, seed: int) -> ErrorEvidence:
        """Bet on one population, with the stakes that are the best at `delta`."""
        shown = q.judged(steps)
        return cls(q.below(delta, seed), shown.above, shown.slack)

    def over(self, limit: Limit) -> float:
        """Theorem L at the limit."""
        return self.below.at(min(limit.up + QUANTISATION, 1.0))

    def within(self, limit: Limit) -> float:
        """Theorem U at the limit; nothing is within a limit below zero."""
        return self.above.at(min(limit.up - self.slack, 1.0)) if limit.up >= self.slack else -np.inf

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Solve both for the error."""
        least = max(self.below.limit(low) - QUANTISATION, 0.0) if low else 0.0
        return least, min(self.above.limit(high) + self.slack, 1.0) if high else 1.0


@dataclass(frozen=True)
class SignedEvidence:
    """Of the gap between what happened and what was said, of the raw score.

    Scores are read as up to ``2^-30`` less than they are, and gaps as that much more: ends from below give it back.
    """

    gap: Gap

    @classmethod
    def of(cls, q: Population, delta: float, target: Target) -> SignedEvidence:
        """Take that of one population, or of its rows, with the stakes that are the best at `delta`."""
        return cls(q.gap_of(target, delta))

    @property
    def p_values(self) -> bool:
        return self.gap.p_values

    def over(self, limit: Limit) -> float:
        """Refute "at most `up`" or "at least ``-down``": by the mean of two e-values, or twice the lesser p-value."""
        each = self._at_most(limit.up), self.gap.at_least.at(max(-limit.down, -1.0))
        return max(each) - math.log(2.0) if self.p_values else log_mean_exp(each)

    def within(self, limit: Limit) -> float:
        """The lesser of the evidence against "at least `up`", and against "at most ``-down``"; one of them is true."""
        if min(limit) < 0.0:
            return -np.inf
        return min(self.gap.at_least.at(min(limit.up, 1.0)), self._at_most(-limit.down))

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Solve each side for the gap."""
        least = max(self.gap.at_most.limit(low) - QUANTISATION, -1.0) if low else -1.0
        return least, self.gap.at_least.limit(high) if high else 1.0

    def _at_most(self, gap: float) -> float:
        """The log e-value against "the gap is at most this"."""
        return self.gap.at_most.at(min(max(gap, -1.0) + QUANTISATION, 1.0))


def evidence_of(q: Population, judge: Judge, steps: int, delta: float, seed: int, target: Target) -> Evidence:
    """The evidence about one population, with the stakes that are the best at `delta`; `target` of its gap."""
    return ErrorEvidence.of(q, steps, delta, seed) if judge == "error" else SignedEvidence.of(q, delta, target)


def bet_sizes_for(delta: float, populations: int) -> float:
    """The error probability to choose stakes for: between alone and shared by all, as closed testing is."""
    return delta / float(np.sqrt(populations))


def rejected(log_e: ArrayLike, delta: float, p_values: bool) -> Flags:
    """Which hypotheses are rejected: by Holm's procedure where p-values are among them, else by means."""
    return (refuted_in_order if p_values else refuted)(log_e, delta)


def verdicts(
    over: Sequence[float], within: Sequence[float], judge: Judge, alpha: float, p_values: bool = False
) -> tuple[Verdict, ...]:
    """The verdict on each population, of its evidence at the limit: log e-values, or p-values among them.

    Each side is closed by itself. With probability at least ``1 - alpha / 2`` nothing is wrongly "within"; with as
    much, or ``1 - alpha`` where gaps are judged, whose evidence against "within" is of two signs, nothing is wrongly
    "over". What ranges decide that share `alpha` over all ends is decided. Where both are refuted (they may be about
    different scores), "over" wins.
    """
    broken = rejected(over, alpha / 2.0 if judge == "error" else alpha, p_values)
    met = rejected(within, alpha / 2.0, p_values)
    return tuple("over" if b else "within" if m else "undecided" for b, m in zip(broken, met, strict=True))
