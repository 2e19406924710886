"""What people whose outcome is not known could do to a certified error, or gap, of everyone.

Scores, and whose outcome is known, are taken as they are; outcomes are independent. In a cell (a step of the score) are
n people with an outcome, of whom k are events, and m without; their probabilities are q among the first and q' among
the second, and s is the mean score of all n + m. The error is ``sum |n (s - q) + m (s - q')| / N`` over the cells, the
gap ``sum n (q - s) + m (q' - s) / N``.

Assumed is ``odds(q) / Gamma <= odds(q') <= Gamma odds(q)``: Gamma = 1 says that outcomes are missing at random given
the score, and Gamma = infinity says nothing.

Certified ends of the error, and of the gap, of everyone, the people without an outcome among them.

For signs ``f`` of the error in each cell, every person has a share ``g`` of a bet, whose sum has a mean no less than
that of ``f`` times the residuals of all N people, whatever the outcomes that are not known (or no more, from below).
Outcomes are independent, so that ``prod (1 - kappa (g - x))`` has a mean of at most ``(1 - kappa (mean g - x))^N``.

The same ends where rows share clusters, or count more: one bet for a cluster, not for a row.

Scores, weights, clusters, and whose outcome is known, are taken as they are; clusters are independent. For signs ``f``
of the error in each step a cluster has ``T_g(f)``, the weighted sum of its rows' shares of a bet, whose sum over all
clusters has a mean no less than that of ``f`` times the weighted residuals of all rows, whatever the outcomes that are
not known. With a stake that no outcome changes, ``prod_g [1 - kappa (T_g - x W_g)]`` has a mean of at most one at the
true x: factors are independent, positive, and ``prod (1 - z_g) <= exp(-sum z_g)``. Nothing asks that clusters be alike,
so that none leaves and none is made lighter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import SWITCH, lower_rates, sign_paths
from calibrant.stats.cells import summed
from calibrant.stats.clusters.bounds import Above, Pairs
from calibrant.stats.evidence import limit_of, log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HEAVIEST = 10.0  # weight, at most, of a person with an outcome, who stands for others without; the rest count as worst


class Steps(Protocol):
    """How many people, or how much weight, each step of the score has."""

    @property
    def known(self) -> NDArray[np.integer | np.floating]:
        """Those with an outcome."""

    @property
    def unknown(self) -> NDArray[np.integer | np.floating]:
        """Those without."""

    @property
    def score(self) -> Floats:
        """Mean score of all of them."""


@dataclass(frozen=True)
class Counts:
    """People by step of the score."""

    # `known`, `events` and `unknown`, shape (cells,): people with an outcome, those of them to whom it happened, and
    # people without.
    known: Ints
    events: Ints
    unknown: Ints
    score: Floats  # shape (cells,): mean score of all of them

    @cached_property
    def n(self) -> int:
        """People."""
        return int(self.known.sum() + self.unknown.sum())


# ---- a line above the largest probability that the odds allow ----


def most_likely(q: Floats, odds: float) -> Floats:
    """The largest probability whose odds are at most so many times those of q."""
    return np.where(q > 0.0, 1.0, 0.0) if np.isinf(odds) else odds * q / (1.0 + (odds - 1.0) * q)


def line_above(counts: Steps, score: Floats, odds: float) -> tuple[Floats, Floats]:
    r"""``c`` and ``b`` of a line ``c + b q`` nowhere below `most_likely`, by cell.

    It touches at the score, unless its slope would give someone more than `HEAVIEST`: then at the place where it does
    not, or at 1. Outcomes play no part in it.
    """
    n, m = counts.known, counts.unknown
    # (1) the slope: of the tangent at the score, no steeper than weights allow, level where nobody's outcome is known
    steepest = np.where(n > 0, (HEAVIEST - 1.0) * n / np.maximum(m, 1), 0.0)
    at_score = np.zeros(len(score)) if np.isinf(odds) else odds / (1.0 + (odds - 1.0) * score) ** 2
    b = np.minimum(at_score, steepest)
    # (2) the least c for this slope: the largest ``most_likely(q) - b q``, at q = 1 where the slope is under 1 / odds
    if odds == 1.0 or np.isinf(odds):
        return np.maximum(1.0 - b, 0.0), b
    touch = np.clip((np.sqrt(odds / np.maximum(b, 1e-300)) - 1.0) / (odds - 1.0), 0.0, 1.0)
    return np.asarray(most_likely(touch, odds) - b * touch), b


# ---- Certified ends of the error, and of the gap, of everyone, the people without an outcome among them ----

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
        """``ln prod [1 + kappa (g - x)]`` of each cell, for each stake: shape (stakes, cells)."""
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
    """Stakes for so many people, from `LARGEST` of the largest, each half of the one before: no outcome."""
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
        """Log evidence against "the error is x" from people whose errors are smaller: grows with x.

        Every pattern of signs has a product of factors ``1 - kappa (g - x)``; the least is that of the least in each
        cell, and the pattern of the true signs is one of them.
        """
        largest = max(side.reach(self.counts)[1] for side in self.most)
        kappa = bet_sizes(self.counts.n, 1.0 / max(largest, 1.0))
        least = np.minimum(*(side.log_wealth(self.counts, -kappa, x) for side in self.most)).sum(axis=1)
        return log_mean_exp(least)

    def refute_more(self, x: float) -> float:
        """Log evidence against "the error is at most x": falls with x.

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
        """Log evidence against "the mean of sign times residual is x", from smaller ones: grows with x."""
        side = self.most[0 if sign > 0.0 else 1]
        kappa = bet_sizes(self.counts.n, 1.0 / (1.0 + max(side.reach(self.counts)[1], 1.0)))
        shares = np.full(len(kappa), 1.0 / len(kappa))
        return log_mean_exp(side.log_wealth(self.counts, -kappa, x).sum(axis=1), shares)


class Evidence(Protocol):
    """Bets on one kind of line, which refute what is smaller, or larger, than the error or the gap is."""

    def refute_less(self, x: float) -> float:
        """Log evidence against "the error is x" from smaller errors: grows with x."""

    def refute_more(self, x: float) -> float:
        """Log evidence against "the error is at most x": falls with x."""

    def refute_mean(self, sign: float, x: float) -> float:
        """Log evidence against "the mean of sign times residual is x", from smaller ones: grows with x."""


class Ends(ABC):
    """Certified ends of everyone's error, and gap, under an assumption about the outcomes that are not known.

    Of people that is `Range`, of clusters `ClusterRange`: they say what is bet on one kind of line.
    """

    counts: Steps
    odds: float

    @property
    def some_unknown(self) -> bool:
        """Whether an outcome is not known."""
        return bool(self.counts.unknown.any())

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
        """What the error is at least, wrongly with probability at most `delta`."""
        return limit_of(self.refutes_more, delta, 0.0, 1.0)

    def error_above(self, delta: float) -> float:
        """What the error is at most, wrongly with probability at most `delta`."""
        return limit_of(self.refutes_less, delta, 1.0, 0.0)

    def gap(self, delta: float) -> tuple[float, float]:
        """Limits of the gap, happened minus said, each wrong with probability at most `delta`."""
        over, under = (limit_of(partial(self.refutes_gap, sign), delta, 1.0, -1.0) for sign in (1.0, -1.0))
        return -over, under


@dataclass(frozen=True)
class Range(Ends):
    """Ends of people, who are independent."""

    counts: Counts
    odds: float  # at least 1: gamma

    def evidence(self, odds: float) -> Bets:
        """The bets on lines at these odds."""
        return Bets(self.counts, odds)

    def gap(self, delta: float) -> tuple[float, float]:
        """Where nothing is assumed of the others, or there are none, by the number of events among those with one.

        That is binomial at the most, as of `row_gaps`; bets stay where scores alone say that they are narrower.
        """
        if self.some_unknown and not np.isinf(self.odds):
            return super().gap(delta)
        mean = self.counts.known * self.counts.score  # no whole number
        expected = Range(replace(self.counts, events=mean), self.odds)  # type: ignore[arg-type]
        low, high = expected._by_events(delta)
        least, most = Ends.gap(expected, delta)
        return super().gap(delta) if most - least < high - low else self._by_events(delta)

    def _by_events(self, delta: float) -> tuple[float, float]:
        """Between what the gap lies by the number of events, whatever the others' outcomes."""
        events, known, unknown = (float(v.sum()) for v in (self.counts.events, self.counts.known, self.counts.unknown))
        low, unlikely = lower_rates((events, known - events), known, delta) if known else (0.0, 0.0)
        expected = float(self.counts.score @ (self.counts.known + self.counts.unknown))
        return (known * low - expected) / self.counts.n, (known * (1.0 - unlikely) + unknown - expected) / self.counts.n


ODDS = (*(1.05**j for j in range(142)), np.inf)  # ratios at which a verdict is asked whether it still stands


def stands_to(holds: Callable[[float], bool], ratios: Sequence[float] = ODDS) -> float:
    """The largest ratio up to which all of those asked hold: 0 if not the first, infinity if all."""
    last = 0.0
    for odds in ratios:
        if not holds(odds):
            return last
        last = odds
    return last


# ---- The same ends where rows share clusters, or count more: one bet for a cluster, not for a row ----

TURNS = 16  # places at which a pattern of signs turns, of those that are bet on from below
MOST_PRODUCTS = 4_000_000  # clusters times patterns, at most: of more clusters a plain shift alone is bet on


@dataclass(frozen=True)
class ClusterCounts:
    """Rows by cluster and step of the score."""

    # `cluster` and `step`, shape (n,): of every row, with an outcome or without; both from 0, and none is empty.
    cluster: Ints
    step: Ints
    y: Floats  # shape (n,): the outcome; NaN where it is not known
    p: Floats  # shape (n,)
    weight: Floats  # shape (n,)
    cache: dict[tuple[float, float, bool], Sums] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.cluster)

    @cached_property
    def clusters(self) -> int:
        """Clusters."""
        return int(self.cluster.max(initial=-1)) + 1

    @cached_property
    def known(self) -> Floats:
        """Weight of the rows with an outcome, by step."""
        return self._by_step(np.where(np.isnan(self.y), 0.0, self.weight))

    @cached_property
    def unknown(self) -> Floats:
        """Weight of the others."""
        return self._by_step(np.where(np.isnan(self.y), self.weight, 0.0))

    @cached_property
    def score(self) -> Floats:
        """Mean score of all rows, by step."""
        return self._by_step(self.weight * self.p) / self._by_step(self.weight)

    @cached_property
    def size(self) -> Floats:
        """``W_g``, shape (clusters,)."""
        return summed(self.cluster, self.weight, self.clusters)

    def _by_step(self, values: Floats) -> Floats:
        return summed(self.step, values, int(self.step.max(initial=-1)) + 1)

    def sums(self, odds: float, sign: float, worst: bool) -> Sums:
        """The clusters' sums of shares on one sign; made once."""
        if (odds, sign, worst) not in self.cache:
            side = Side.of(self, odds, sign, worst=worst)
            of_row = np.where(self.y == 1.0, side.event[self.step], side.none[self.step])
            share = np.where(np.isnan(self.y), side.rest[self.step], of_row)
            either = np.maximum(np.abs(side.event), np.abs(side.none))[self.step]
            reach = self.weight * np.where(np.isnan(self.y), np.abs(side.rest[self.step]), either)
            self.cache[odds, sign, worst] = Sums(self.weight * share, reach)
        return self.cache[odds, sign, worst]


@dataclass(frozen=True)
class Sums:
    """Shares on one sign of the error."""

    share: Floats  # shape (n,): of each row, times its weight
    reach: Floats  # shape (n,): what no outcome makes the size of a row's share exceed


@dataclass(frozen=True)
class ClusterBets:
    """Evidence of one kind of line."""

    counts: ClusterCounts
    odds: float  # at least 1

    @cached_property
    def _above(self) -> Above:
        """A lower bound, over all patterns of signs, of the products that refute a smaller error.

        ``T_g(f) = sum_c f_c (A_gc - B_gc) / 2 + (A_gc + B_gc) / 2``, of the sums A on one sign and B on the other: the
        second part has no sign of its own, and is taken off the price as what is certified along with an error.
        """
        c, (more, less) = self.counts, self._sides(worst=True)
        where, pair = np.unique(c.cluster * (int(c.step.max()) + 1) + c.step, return_inverse=True)
        a, b = (summed(pair.reshape(-1), side.share, len(where)) for side in (more, less))
        cluster, cell = np.divmod(where, int(c.step.max()) + 1)
        value = 0.5 * (a - b)
        moved = summed(cluster, 0.5 * (a + b), c.clusters)
        pairs = Pairs(
            cluster, cell, value, summed(cluster, np.abs(value), c.clusters), c.size, int(c.step.max()) + 1, moved
        )
        return Above.plain(pairs, bet_sizes(c.clusters, 1.0 / self._largest(worst=True)))

    def _sides(self, *, worst: bool) -> tuple[Sums, Sums]:
        return self.counts.sums(self.odds, 1.0, worst), self.counts.sums(self.odds, -1.0, worst)

    def _largest(self, *, worst: bool) -> float:
        """What no cluster's sum exceeds, whatever the signs and the outcomes."""
        more, less = self._sides(worst=worst)
        return float(summed(self.counts.cluster, np.maximum(more.reach, less.reach), self.counts.clusters).max())

    def refute_less(self, x: float) -> float:
        """Log evidence against "the error is x" from smaller errors: grows with x."""
        return self._above.at(x)

    def refute_more(self, x: float) -> float:
        """Log evidence against "the error is at most x": falls with x.

        Half is on a plain shift, half on signs that turn once along the score. A stake that could lose everything at
        this x counts nothing.
        """
        largest, size = self._largest(worst=False), self.counts.size
        kappa = bet_sizes(self.counts.clusters, 1.0 / largest)
        share, kappa = 1.0 / len(kappa), kappa[kappa * (x * float(size.max()) + largest) < 1.0]
        if not len(kappa):
            return -np.inf
        logs = np.array([[float(np.log1p(k * (t - x * size)).sum()) for t in self._patterns] for k in kappa.tolist()])
        plain = np.logaddexp(logs[:, 0], logs[:, 1]) - np.log(2.0)
        turned = logs[:, 2:]
        if turned.shape[1]:
            top = turned.max(axis=1)
            rest = top + np.log(np.exp(turned - top[:, None]).mean(axis=1))
            plain = np.logaddexp(plain + np.log(EVEN), rest + np.log(1.0 - EVEN))
        return log_mean_exp(plain, np.full(len(kappa), share))

    @cached_property
    def _patterns(self) -> list[Floats]:
        """The clusters' sums for both plain shifts, then for signs that turn once: patterns that no outcome chose."""
        c, sides = self.counts, self._sides(worst=False)
        whole = [summed(c.cluster, side.share, c.clusters) for side in sides]
        steps = int(c.step.max()) + 1
        before = np.cumsum(c.known + c.unknown)
        turns = np.unique(np.searchsorted(before, np.arange(1, TURNS + 1) * before[-1] / (TURNS + 1))) + 1
        turns = turns[turns < steps]
        if 2 * len(turns) * c.clusters > MOST_PRODUCTS:
            return whole
        out = list(whole)
        for turn in turns.tolist():
            low = c.step < turn
            for first, second in (sides, sides[::-1]):
                out.append(summed(c.cluster, np.where(low, first.share, second.share), c.clusters))
        return out

    def refute_mean(self, sign: float, x: float) -> float:
        """Log evidence against "the mean of sign times residual is x", from smaller ones: grows with x."""
        side, c = self._sides(worst=True)[0 if sign > 0.0 else 1], self.counts
        gain, reach = (summed(c.cluster, v, c.clusters) for v in (side.share, side.reach))
        kappa = bet_sizes(c.clusters, 1.0 / float((reach + c.size).max()))
        logs = [float(np.log1p(-k * (gain - x * c.size)).sum()) for k in kappa.tolist()]
        return log_mean_exp(logs)


@dataclass(frozen=True)
class ClusterRange(Ends):
    """Ends of rows in clusters, which are independent."""

    counts: ClusterCounts
    odds: float  # at least 1: gamma

    def evidence(self, odds: float) -> ClusterBets:
        """The bets on lines at these odds."""
        return ClusterBets(self.counts, odds)


def of_rows(cluster: Ints, step: Ints, y: Floats, p: Floats, weight: Floats) -> ClusterCounts:
    """Rows of any clusters and steps, numbered without gaps; of weights only the ratios count."""
    clusters, steps = (np.unique(v, return_inverse=True)[1].reshape(-1).astype(np.int64) for v in (cluster, step))
    return ClusterCounts(clusters, steps, y, p, weight / weight.mean() if len(weight) else weight)
