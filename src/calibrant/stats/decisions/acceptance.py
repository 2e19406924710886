r"""How far down a list, best first, errors stay under a rate: evidence at every depth at once.

Rows stand best first; row i is wrong with probability ``e_i``, independently. ``S_k`` of the first k are wrong, and
``mu_k`` is the mean of their ``e_i``. For one theta in (0, 1) ``(1 - theta)^{S_k} / prod (1 - theta e_i)`` is a
martingale, and ``prod (1 - theta e_i) <= (1 - theta mu_k)^k`` (the mean of a concave function); so

.. math:: E_k(x) = \sum_j \pi_j (1 - \theta_j)^{S_k} (1 - \theta_j x)^{-k}

lies under a martingale that starts at 1 wherever ``x <= mu_k``, and reaches ``1 / alpha`` at any depth k with
``mu_k >= x`` with probability at most alpha (Ville). It rises with x: what it refutes, it refutes from above. Of these
rows that holds for all x together. Of a population it holds for one x fixed beforehand, or for a grid that shares
alpha, at any fixed number of rows: ``E`` lies under a likelihood ratio (documentation: accept). Were x to follow the
rate, bursts of wrong rows would break it.

Of clusters there is one factor a cluster, at thresholds fixed beforehand. At a threshold that no certified row chose, a
cluster has ``B_g = sum w 1{wrong}`` and ``W_g = sum w`` over its rows that pass. If the rate ``E B / E W`` is at least
x, ``prod_g [1 - kappa (B_g - x W_g)]`` has mean at most 1; it is positive as long as ``kappa M < 1``, whatever rows of
one cluster have in common. It rises with x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.betting import lower_rates
from calibrant.stats.cells import summed
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.evidence import log_mean_exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rates of betting: theta = (x - q) / (x - x q) is the best where the limit is x and the errors' rate q, whatever the
# size of x: .5 for half the limit. The two smallest, for rates next to the limit in long lists, have little weight.
THETAS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.95])
WEIGHTS = np.array([0.025, 0.025, 0.19, 0.19, 0.19, 0.19, 0.19])
RAISED = np.array([0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])  # of bets that more are wrong, in equal parts: see `THETAS`
HALVINGS = 60  # of an interval of rates, to the last bits of a double
BELOW = 6  # so many of a population's rates are below the risk
GRID = 50  # depths at which a sequence of tests stops


@dataclass(frozen=True)
class Ranking:
    """Rows in order of their score, best first, cut after every run of ties."""

    threshold: Floats  # shape (t,): the score of each run
    # `rows` and `wrong`, shape (t,): down to the end of the run: how many, and how many of them are wrong.
    rows: Ints
    wrong: Ints

    @classmethod
    def of(cls, score: Floats, wrong: NDArray[np.bool_], highest: bool) -> Ranking:
        """Rank rows: the highest score is the best, or the lowest."""
        at, inverse = np.unique(-score if highest else score, return_inverse=True)
        inverse = inverse.reshape(-1)
        rows, bad = (np.bincount(v, minlength=len(at)) for v in (inverse, inverse[wrong]))
        return cls.of_counts(-at if highest else at, rows, bad)

    @classmethod
    def of_counts(cls, threshold: Floats, rows: Ints, wrong: Ints) -> Ranking:
        """Rank runs of ties that stand best first, given how many rows are in each; empty ones are left out."""
        is_kept = rows > 0
        return cls(threshold[is_kept], np.cumsum(rows[is_kept]), np.cumsum(wrong[is_kept]))

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.rows[-1]) if len(self.rows) else 0


def log_evidence(rows: Ints | Floats, wrong: Ints | Floats, risk: float | Floats) -> Floats:
    """``ln E_k`` against "the mean rate of these rows' errors is at least `risk`"."""
    k, s, x = (np.asarray(v, dtype=np.float64)[..., None] for v in (rows, wrong, risk))
    logs = np.log(WEIGHTS) + s * np.log1p(-THETAS) - k * np.log1p(-THETAS * x)
    top = logs.max(axis=-1)
    result: Floats = top + np.log(np.exp(logs - top[..., None]).sum(axis=-1))
    return result


def log_evidence_above(rows: int, wrong: int, risk: float) -> float:
    """The log e-value against "the mean rate of these rows' errors is at most `risk`", at all depths at once.

    ``(1 + theta)^{S_k} / prod (1 + theta e_i)`` is a martingale too, ``prod (1 + theta e_i) <= (1 + theta mu_k)^k``.
    """
    return log_mean_exp(wrong * np.log1p(RAISED) - rows * np.log1p(RAISED * risk))


def highest_rate(ranking: Ranking, alpha: float) -> Floats:
    """At every depth the least rate that is refuted, all of them right together: 1 where none is."""
    low, high = np.zeros(len(ranking.rows)), np.ones(len(ranking.rows))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        refuted = log_evidence(ranking.rows, ranking.wrong, middle) >= -np.log(alpha)
        low, high = np.where(refuted, low, middle), np.where(refuted, middle, high)
    return high


def rates(risk: float) -> Floats:
    """The rates that a curve of a population distinguishes: the risk, and steps of the root of 2 below and above it."""
    above = math.ceil(-2.0 * math.log2(risk)) - 1
    result: Floats = risk * np.exp2(0.5 * np.arange(-BELOW, above + 1))
    return result


def highest_of_rates(ranking: Ranking, risk: float, alpha: float) -> Floats:
    """At every depth the least of `rates` that is refuted, all of them right together: 1 where none is.

    Half of alpha is the risk's, the others share the rest: of a population evidence holds for a rate fixed beforehand.
    """
    at = rates(risk)
    shares = np.full(len(at), 0.5 / max(len(at) - 1, 1))
    shares[BELOW] = 0.5
    high = np.ones(len(ranking.rows))
    for rate, share in zip(at[::-1], shares[::-1], strict=True):
        high[log_evidence(ranking.rows, ranking.wrong, rate) >= -np.log(share * alpha)] = rate
    return high


def deepest(ranking: Ranking, risk: float, alpha: float) -> int:
    """The last run of ties down to which a mean rate of `risk` is refuted; -1 for none."""
    refuted = log_evidence(ranking.rows, ranking.wrong, risk) >= -np.log(alpha)
    return int(np.nonzero(refuted)[0].max(initial=-1))


def clopper_pearson(rows: Ints, wrong: Ints, alpha: float) -> Floats:
    """The exact upper bound at each depth taken by itself, as if it had been fixed beforehand, of any rates of rows."""
    return 1.0 - lower_rates(rows - wrong, rows, alpha)


def first_depth(rows: Ints, risk: float, alpha: float) -> int:
    """Where a sequence of tests starts: the first depth at which errors of half of `risk` would be refuted.

    From ``k KL(risk / 2, risk) >= ln(1 / alpha)``; the last depth where none is so deep.
    """
    half = 0.5 * risk
    divergence = half * np.log(0.5) + (1.0 - half) * (np.log1p(-half) - np.log1p(-risk))
    return min(int(np.searchsorted(rows, -np.log(alpha) / divergence)), len(rows) - 1)


def sequence(ranking: Ranking, risk: float, alpha: float) -> int:
    """The last run of ties that a fixed sequence of Clopper-Pearson tests accepts; -1 for none.

    It starts where `first_depth` says and goes down by fiftieths of the rows until a test fails: depths that scores
    alone choose, so that the first depth over the limit is tested once. For rows of different rates the bound is that
    of `betting.lower_rates`: Clopper-Pearson's alone would fail where all but one are wrong, and at a large alpha.
    """
    start = first_depth(ranking.rows, risk, alpha)
    depths = np.unique(np.searchsorted(ranking.rows, np.arange(1, GRID + 1) / GRID * ranking.n))
    depths = np.concatenate([[start], depths[depths > start]])
    fails = clopper_pearson(ranking.rows[depths], ranking.wrong[depths], alpha) > risk
    passed = int(np.argmax(fails)) if fails.any() else len(depths)
    return int(depths[passed - 1]) if passed else -1


def rows_needed(risk: float, error: float, power: float, alpha: float) -> int:
    """How many accepted rows refute a rate of `risk` with probability `power`, if errors have rate `error`."""

    def refuted(k: int, wrong: int) -> bool:
        return float(log_evidence(np.array(k), np.array(wrong), risk)) >= -np.log(alpha)

    return _least(lambda k: _power(k, error, refuted) >= power)


def fixed_needed(risk: float, error: float, power: float, alpha: float) -> int:
    """The same for one threshold that was fixed beforehand, by Clopper-Pearson."""
    from scipy.special import bdtr

    def refuted(k: int, wrong: int) -> bool:
        return float(bdtr(wrong, k, risk)) <= alpha

    return _least(lambda k: _power(k, error, refuted) >= power)


def fewest(risk: float, alpha: float) -> int:
    """How many accepted rows refute a rate of `risk` without a single error."""
    return _least(lambda k: float(log_evidence(np.array(k), np.array(0), risk)) >= -np.log(alpha))


def _power(k: int, error: float, refuted: Callable[[int, int], bool]) -> float:
    """The probability that so few of k rows are wrong that the rate is refuted."""
    from scipy.special import bdtr

    low, high = -1, k + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if refuted(k, middle) else (low, middle)
    return float(bdtr(low, k, error)) if low >= 0 else 0.0


def _least(holds: Callable[[int], bool]) -> int:
    """The least number from which on something holds, found by bisection."""
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# ---- The same of clusters: one factor a cluster, at thresholds fixed beforehand ----

LARGEST = 0.95  # times 1 / M: the largest bet; each next one is half of it


@dataclass(frozen=True)
class ClusterRanking:
    """Thresholds that pilot clusters chose, best first, and what passes them of the certified clusters."""

    clusters: Clusters
    wrong: NDArray[np.bool_]  # shape (n,)
    highest: bool  # the highest score is the best, or the lowest

    @classmethod
    def of(cls, clusters: Clusters, highest: bool) -> ClusterRanking:
        """Rank the rows of clusters: non-events are wrong among the highest scores, events among the lowest."""
        return cls(clusters, clusters.y == (0 if highest else 1), highest)

    @cached_property
    def threshold(self) -> Floats:
        """The scores down to which fiftieths of the pilot clusters' weight pass, best first; none without pilots."""
        u, pilot = self.clusters, ~self.clusters.certified[self.clusters.cluster]
        if not pilot.any():
            return np.empty(0)
        sign = -1.0 if self.highest else 1.0
        order = np.argsort(sign * u.p[pilot], kind="stable")
        score, passed = (sign * u.p[pilot])[order], np.cumsum(u.weight[pilot][order])
        at = np.searchsorted(passed, np.arange(1, GRID + 1) / GRID * passed[-1] * (1.0 - 1e-12))
        return sign * np.unique(score[np.minimum(at, len(score) - 1)])

    @cached_property
    def bets(self) -> Floats:
        """``LARGEST / M`` and its halves, down to about one over the root of the certified clusters' number."""
        halvings = math.ceil(0.5 * math.log2(max(int(np.count_nonzero(self.clusters.certified)), 1)))
        return np.array([LARGEST / self.clusters.largest * 0.5**j for j in range(1 + halvings)])

    def passing(self, t: float) -> NDArray[np.bool_]:
        """Which rows pass a threshold, its own score among them."""
        return self.clusters.p >= t if self.highest else self.clusters.p <= t

    def sums(self, t: float) -> tuple[Floats, Floats]:
        """What is wrong, and what there is, among the rows of each certified unit that pass."""
        u, rows = self.clusters, self.passing(t)
        bad, there = (
            summed(u.cluster[some], u.weight[some], u.count)[u.certified] for some in (rows & self.wrong, rows)
        )
        return bad, there

    def log_evidence(self, t: float, rate: float) -> float:
        """The log e-value against "the rate at this threshold is at least `rate`"."""
        bad, there = self.sums(t)
        return self._log(bad - rate * there)

    def log_evidence_above(self, t: float, rate: float) -> float:
        """The log e-value against "the rate at this threshold is at most `rate`": bets that more are wrong."""
        bad, there = self.sums(t)
        steps = len(self.bets) + math.ceil(-math.log2(rate))
        bets = self.bets[0] / rate * 0.5 ** np.arange(steps)
        return log_mean_exp([float(np.log1p(kappa * (bad - rate * there)).sum()) for kappa in bets])

    def _log(self, lost: Floats) -> float:
        logs = [float(np.log1p(-kappa * lost).sum()) for kappa in self.bets]
        return log_mean_exp(logs)

    def highest_rate(self, t: float, alpha: float) -> float:
        """The least rate that is refuted at one threshold; 1 where none is."""
        bad, there = self.sums(t)
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            refuted = self._log(bad - middle * there) >= -np.log(alpha)
            low, high = (low, middle) if refuted else (middle, high)
        return high

    def deepest(self, risk: float, alpha: float) -> int:
        """The last threshold that a fixed sequence of tests accepts; -1 for none.

        Two sequences share alpha: they start where errors of half of `risk` would be refuted if rows of one cluster
        were independent, and if they shared one fate; as reported by pilot clusters.
        """
        last = -1
        if not len(self.threshold):
            return last
        for start in {self._first(risk, 0.5 * alpha, equal) for equal in (False, True)}:
            at = start
            while at < len(self.threshold) and self.log_evidence(self.threshold[at], risk) >= -np.log(0.5 * alpha):
                last, at = max(last, at), at + 1
        return last

    def _first(self, risk: float, alpha: float, equal: bool) -> int:
        """The first threshold at which errors of half of `risk` would be refuted, at the best bet."""
        enough = -np.log(alpha) + np.log(len(self.bets))
        for at, t in enumerate(self.threshold):
            if self._growth(t, risk, equal) >= enough:
                return at
        return len(self.threshold) - 1

    def _growth(self, t: float, risk: float, equal: bool) -> float:
        """The log evidence to expect of the certified clusters, by the rows of pilot clusters that pass.

        Errors come at half of `risk`: to all rows of a cluster that pass, or to each by itself.
        """
        u, rows = self.clusters, self.passing(t) & ~self.clusters.certified[self.clusters.cluster]
        weight = summed(u.cluster[rows], u.weight[rows], u.count) if equal else u.weight[rows]
        half, bets = 0.5 * risk, self.bets[:, None]
        each = half * np.log1p(-bets * weight * (1.0 - risk)) + (1.0 - half) * np.log1p(bets * weight * risk)
        return float(each.sum(axis=1).max()) * np.count_nonzero(u.certified) / max(u.pilots, 1)
