r"""Certified ends of the error, and of the gap, of everyone, the people without an outcome among them.

For signs ``f`` of the error in each cell, every person has a share ``g`` of a bet, whose sum has a mean no less than
that of ``f`` times the residuals of all N people, whatever the outcomes that are not known (or no more, from below).
Outcomes are independent, so that ``prod (1 - kappa (g - x))`` has a mean of at most ``(1 - kappa (mean g - x))^N``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import SWITCH, sign_paths
from calibrant.stats.evidence import limit_of, log_mean_exp
from calibrant.stats.unlabelled.lines import Counts, Steps, line_above

Floats = NDArray[np.float64]

LARGEST = 0.95  # of the stake that could lose everything
USUAL = 3.0  # ln(1 / delta) that the smallest stake is chosen for, so that one evidence serves every delta
WITHOUT = 0.2  # of the evidence at some odds that assumes nothing
EVEN = 0.5  # of the evidence from below that is on a plain shift

# ---- stakes on one side of every cell ----


@dataclass(frozen=True)
class Side:
    """What is staked on one sign of the error in each cell, as shares of a bet."""

    weight: Floats  # shape (cells,): of a person with an outcome, who stands for some without
    # `none` and `event`, shape (cells,): sign times residual times weight, of a person to whom nothing happened, and of
    # an event.
    none: Floats
    event: Floats
    rest: Floats  # shape (cells,): of a person without an outcome: what the others do not stand for

    @classmethod
    def of(cls, counts: Steps, odds: float, sign: float, *, worst: bool) -> Side:
        """The side of a sign (1: said more than happened) with the most that the unknown can add, or the least.

        The most of ``s - q'`` is ``s`` less the least q', which is that of the mirror: ``1 - q`` for q, and ``1 - s``
        for s.
        """
        down = (sign > 0.0) == worst  # q' as low as the odds allow
        known = np.asarray(counts.known, dtype=np.float64)
        share = np.divide(counts.unknown, known, out=np.zeros(len(known)), where=known > 0)
        own = 1.0 - counts.score if down else counts.score
        c, b = line_above(counts, own, odds)
        far = c + b * own - own  # how far the line is from the score where q is the score
        weight = 1.0 + share * b
        return cls(
            weight=weight,
            none=sign * weight * counts.score,
            event=sign * weight * (counts.score - 1.0),
            rest=far if worst else -far,
        )

    def log_wealth(self, counts: Counts, kappa: Floats, x: float) -> Floats:
        """Return ``ln prod [1 + kappa (g - x)]`` of each cell, for each stake: shape (stakes, cells)."""
        k = kappa[:, None]
        parts = (counts.known - counts.events, self.none), (counts.events, self.event), (counts.unknown, self.rest)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = [np.where(rows > 0, rows * np.log1p(k * (g - x)), 0.0) for rows, g in parts]
        return np.asarray(sum(each))

    def reach(self, counts: Counts) -> tuple[float, float]:
        """The least and the largest share of a bet that anyone has."""
        kept = [g[rows > 0] for rows, g in ((counts.known, self.none), (counts.known, self.event))]
        kept.append(self.rest[counts.unknown > 0])
        every = np.concatenate(kept)
        return float(every.min()), float(every.max())


def bet_sizes(people: int, largest: float) -> Floats:
    """Return stakes for so many people, from `LARGEST` of the largest, each half of the one before: no outcome."""
    halves = int(np.ceil(np.log2(max(LARGEST * np.sqrt(max(people, 1) / (2.0 * USUAL)), 1.0))))
    return np.asarray(LARGEST * largest * 0.5 ** np.arange(halves + 1))


# ---- the error, from above and from below; the gap ----


@dataclass(frozen=True)
class Bets:
    """Evidence of one kind of line, for both signs: with the most that the unknown can add, and with the least."""

    counts: Counts
    odds: float  # at least 1

    @cached_property
    def most(self) -> tuple[Side, Side]:
        """Sides of "said more" and "said less" with the most that the unknown can add."""
        return Side.of(self.counts, self.odds, 1.0, worst=True), Side.of(self.counts, self.odds, -1.0, worst=True)

    @cached_property
    def least(self) -> tuple[Side, Side]:
        """The same with the least."""
        return Side.of(self.counts, self.odds, 1.0, worst=False), Side.of(self.counts, self.odds, -1.0, worst=False)

    def refute_less(self, x: float) -> float:
        """Return log evidence against "the error is x" from people whose errors are smaller: grows with x.

        Every pattern of signs has a product of factors ``1 - kappa (g - x)``; the least is that of the least in each
        cell, and the pattern of the true signs is one of them.
        """
        largest = max(side.reach(self.counts)[1] for side in self.most)
        kappa = bet_sizes(self.counts.n, 1.0 / max(largest, 1.0))
        least = np.minimum(*(side.log_wealth(self.counts, -kappa, x) for side in self.most)).sum(axis=1)
        return log_mean_exp(least)

    def refute_more(self, x: float) -> float:
        """Return log evidence against "the error is at most x": falls with x.

        Half is on a plain shift, half on all paths of signs from cell to cell. A stake that could lose everything at
        this x counts nothing.
        """
        low = min(side.reach(self.counts)[0] for side in self.least)
        kappa = bet_sizes(self.counts.n, 1.0 / max(-low, 1.0))
        share, kappa = 1.0 / len(kappa), kappa[kappa * (x - low) < 1.0]
        if not len(kappa):
            return -np.inf
        over, under = (side.log_wealth(self.counts, kappa, x) for side in self.least)
        neither = np.log1p(-kappa * x)[:, None] * (self.counts.known + self.counts.unknown)
        gap = np.logaddexp(over.sum(axis=1), under.sum(axis=1)) + np.log(EVEN / 2.0)
        signs = np.stack((over, neither, under), axis=2)
        paths = np.array([sign_paths(of_each, SWITCH) for of_each in signs]) + np.log(1.0 - EVEN)
        return log_mean_exp(np.logaddexp(gap, paths), np.full(len(kappa), share))

    def refute_mean(self, sign: float, x: float) -> float:
        """Return log evidence against "the mean of sign times residual is x", from smaller ones: grows with x."""
        side = self.most[0 if sign > 0.0 else 1]
        kappa = bet_sizes(self.counts.n, 1.0 / (1.0 + max(side.reach(self.counts)[1], 1.0)))
        shares = np.full(len(kappa), 1.0 / len(kappa))
        return log_mean_exp(side.log_wealth(self.counts, -kappa, x).sum(axis=1), shares)


class Evidence(Protocol):
    """Bets on one kind of line, which refute what is smaller, or larger, than the error or the gap is."""

    def refute_less(self, x: float) -> float:
        """Return log evidence against "the error is x" from smaller errors: grows with x."""

    def refute_more(self, x: float) -> float:
        """Return log evidence against "the error is at most x": falls with x."""

    def refute_mean(self, sign: float, x: float) -> float:
        """Return log evidence against "the mean of sign times residual is x", from smaller ones: grows with x."""


class Ends(ABC):
    """Certified ends of everyone's error, and gap, under an assumption about the outcomes that are not known.

    Of people that is `Range`, of clusters `ClusterRange`: they say what is bet on one kind of line.
    """

    odds: float

    @property
    @abstractmethod
    def some_unknown(self) -> bool:
        """Whether an outcome is not known."""

    @abstractmethod
    def evidence(self, odds: float) -> Evidence:
        """The bets on lines at these odds."""

    @cached_property
    def _bets(self) -> tuple[tuple[Evidence, float], ...]:
        """The lines at these odds, and a few that assume nothing, which need less of the people who are few."""
        if np.isinf(self.odds) or not self.some_unknown:
            return ((self.evidence(self.odds), 1.0),)
        return (self.evidence(self.odds), 1.0 - WITHOUT), (self.evidence(np.inf), WITHOUT)

    def _joined(self, evidence: Callable[[Evidence], float]) -> float:
        return log_mean_exp([evidence(b) for b, _ in self._bets], [share for _, share in self._bets])

    def refutes_less(self, x: float) -> float:
        """The log of an e-value if the error is x: it grows with x."""
        return self._joined(lambda b: b.refute_less(x))

    def refutes_more(self, x: float) -> float:
        """The log of an e-value if the error is at most x: it falls with x."""
        return self._joined(lambda b: b.refute_more(x))

    def refutes_gap(self, sign: float, x: float) -> float:
        """The log of an e-value if the gap, times minus `sign`, is x: it grows with x."""
        return self._joined(lambda b: b.refute_mean(sign, x))

    def error_below(self, delta: float) -> float:
        """Return what the error is at least, wrongly with probability at most `delta`."""
        return limit_of(self.refutes_more, delta, 0.0, 1.0)

    def error_above(self, delta: float) -> float:
        """Return what the error is at most, wrongly with probability at most `delta`."""
        return limit_of(self.refutes_less, delta, 1.0, 0.0)

    def gap(self, delta: float) -> tuple[float, float]:
        """Return between what the gap lies, happened minus said, each wrongly with probability at most `delta`."""
        over, under = (limit_of(partial(self.refutes_gap, sign), delta, 1.0, -1.0) for sign in (1.0, -1.0))
        return -over, under


@dataclass(frozen=True)
class Range(Ends):
    """Ends of people, who are independent."""

    counts: Counts
    odds: float  # at least 1: gamma

    @property
    def some_unknown(self) -> bool:
        """Whether an outcome is not known."""
        return bool(self.counts.unknown.any())

    def evidence(self, odds: float) -> Bets:
        """The bets on lines at these odds."""
        return Bets(self.counts, odds)


ODDS = (*(1.05**j for j in range(142)), np.inf)  # ratios at which a verdict is asked whether it still stands


def stands_to(holds: Callable[[float], bool], ratios: Sequence[float] = ODDS) -> float:
    """The largest ratio up to which all of those asked hold: 0 if not the first, infinity if all."""
    last = 0.0
    for odds in ratios:
        if not holds(odds):
            return last
        last = odds
    return last
