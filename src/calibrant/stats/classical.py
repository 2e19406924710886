"""Statistics of the classical calibration tests and their laws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import Walks, extremes, outcomes
from calibrant.stats.cells import Cells, summed
from calibrant.stats.measures import Weighed, WeighedByClusters
from calibrant.stats.nulls import CHUNK, SIGNS, ClusterSums, null_events
from calibrant.stats.strata import equal_mass_edges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.uint64]
Places = NDArray[np.intp]

# ---- How large a Brownian motion on [0, 1] gets: tails of its maximum modulus and of its range ----

TERMS = 60  # of each series: their last is below rounding for any argument
ALTERNATING = (1.0, -1.0) * (TERMS // 2)
CROSS = 2.0  # where one series takes over from the other; both are exact to rounding there


def upper_tail(z: float) -> float:
    """The chance that a standard normal variable exceeds z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def maximum_tail(x: float) -> float:
    """``P(max |B(t)| >= x)`` (Feller 1971, volume 2, X.5), for B started at 0 and free at 1: no bridge."""
    if x <= 0.0:
        return 1.0
    if x >= CROSS:
        return 4.0 * math.fsum(ALTERNATING[k] * upper_tail((2 * k + 1) * x) for k in range(TERMS))
    inside = math.fsum(
        ALTERNATING[k] / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / x) ** 2) / 8.0) for k in range(TERMS)
    )
    return min(max(1.0 - 4.0 / math.pi * inside, 0.0), 1.0)


def range_tail(x: float) -> float:
    """``P(max B(t) - min B(t) >= x)`` (Feller 1951)."""
    if x <= 0.0:
        return 1.0
    if x >= CROSS:
        return 8.0 * math.fsum(ALTERNATING[k - 1] * k * upper_tail(k * x) for k in range(1, TERMS))
    halves = [(k + 0.5) * math.pi for k in range(TERMS)]
    inside = math.fsum((8.0 / x**2 + 2.0 / h**2) * math.exp(-2.0 * (h / x) ** 2) for h in halves)
    return min(max(1.0 - inside, 0.0), 1.0)


# ---- Rows in order of their score, tied rows counted together where there are many, and outcomes simulated ----

IN_CLUSTERS = "the outcomes happen with the probabilities given; clusters are independent"
AT_ONCE = 1 << 21  # simulated outcomes held at once: 2 MB
TIED = 16  # rows a distinct score, on average, from which drawing a binomial a cell is faster than drawing rows
SIGN_STREAM = 0x516  # of clusters' signs, apart from the random numbers of other methods at the same seed
SALT = 0xC1A551C  # of simulated outcomes, apart from those of other methods


@dataclass(frozen=True)
class Scored:
    """Entries sorted by grade, score and weight: rows, or cells of rows that agree in all three."""

    law, null = "", ""  # what null distribution and hypothesis are, where that is not the test's choice
    # `p` and `events`, shape (m,): score of each entry, and how many of its rows have the outcome.
    p: Floats
    events: Floats
    rows: Ints | None = None  # shape (m,): rows of each entry; None for one each
    weight: Floats | None = None  # shape (m,): sampling weight of each of those rows; None for one
    grade: Ints | None = None  # shape (m,): non-decreasing numbers of the grades; None for a single one

    @classmethod
    def of_cells(cls, cells: Cells) -> Scored:
        """A sketch's occupied cells, each at the mean score of its rows."""
        at = cells.occupied()
        rows = cells.totals[at].sum(axis=1)
        mean = np.clip(cells.score_sums[at].sum(axis=1) / rows, 0.0, 1.0)
        return cls(mean, cells.totals[at, 1].astype(float), rows)

    @cached_property
    def times(self) -> Floats:
        """`rows`, or ones."""
        return np.ones(len(self.p)) if self.rows is None else self.rows.astype(float)

    @cached_property
    def each_weighs(self) -> Floats:
        """`weight`, or ones."""
        return np.ones(len(self.p)) if self.weight is None else self.weight

    @cached_property
    def grades(self) -> Ints:
        """`grade`, or zeros."""
        return np.zeros(len(self.p), dtype=np.int64) if self.grade is None else self.grade

    @cached_property
    def n(self) -> int:
        """Rows."""
        return int(self.times.sum())

    @cached_property
    def residual(self) -> Floats:
        """Weighted events less expected events."""
        return self.each_weighs * (self.events - self.times * self.p)

    @cached_property
    def variance(self) -> Floats:
        """Variance of `residual` if the model is calibrated."""
        return self.each_weighs**2 * self.times * self.p * (1.0 - self.p)

    @cached_property
    def ends(self) -> Places:
        """Index of the last entry of each distinct score."""
        return np.append(np.flatnonzero(np.diff(self.p) != 0), len(self.p) - 1)

    @property
    def equal_rows(self) -> bool:
        """Whether rows are independent and count equally."""
        return self.weight is None

    @property
    def clusters(self) -> int:
        """How many clusters; 0 of independent rows."""
        return 0

    @property
    def facts(self) -> dict[str, int]:
        """For settings, what is known of the clusters."""
        return {}

    def where(self, keep: NDArray[np.bool_] | Places) -> Self:
        """The entries that are kept."""
        there = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: v[keep] for k, v in there.items() if v is not None})

    def weighed(self, x: Floats) -> tuple[Floats, Weighed]:
        """Values of the entries, and points of one outcome each."""
        many = np.concatenate([self.events, self.times - self.events])
        seen, y = many > 0, np.repeat([1.0, 0.0], len(x))
        mass, each = many[seen], np.tile(self.each_weighs, 2)[seen]
        return np.tile(x, 2)[seen], Weighed(y[seen], mass * each, mass * each * each)

    # ---- The null: outcomes simulated under calibration ----

    def covariance(self, terms: Floats) -> Floats:
        """The null covariance of sums of `residual` times terms of shape (m, t)."""
        return (terms.T * self.variance) @ terms

    def sums(self, terms: Floats, null: Drawing) -> Floats:
        """Simulated sums of `residual` times terms of shape (m, t): (draws, t)."""
        own = self.each_weighs[:, None] * terms
        out = np.zeros((null.draws, terms.shape[1]))
        for at, numbers, events in simulated(self, null):
            out[numbers] += events.T.astype(float) @ own[at]
        return out - (self.times * self.p) @ own

    def totals(self, first: Places, null: Drawing) -> Floats:
        """Simulated weighted events of each run of entries, which begin at `first`: (draws, runs)."""
        out = np.zeros((null.draws, len(first)))
        for at, numbers, events in simulated(self, null):
            low, high = np.searchsorted(first, [at.start, at.stop - 1], side="right") - 1
            for run in range(low, high + 1):
                begin = max(int(first[run]), at.start) - at.start
                end = (min(int(first[run + 1]), at.stop) if run + 1 < len(first) else at.stop) - at.start
                part = events[begin:end]
                here = slice(at.start + begin, at.start + end)
                out[numbers, run] += part.sum(axis=0, dtype=float) if self.weight is None else self.weight[here] @ part
        return out

    def extremes(self, null: Drawing) -> tuple[Floats, Floats]:
        """The lowest and the highest point of the simulated walks, each of shape (draws,), in residuals."""
        low, high, so_far = np.zeros(null.draws), np.zeros(null.draws), np.zeros(null.draws)
        expected = np.cumsum(self.each_weighs * self.times * self.p)
        read = np.zeros(len(self.p), dtype=bool)
        read[self.ends] = True
        for at, numbers, events in simulated(self, null):
            walks = Walks(so_far[numbers], low[numbers], high[numbers])
            extremes(events, self.each_weighs[at], expected[at], read[at], walks)
        return low, high


@dataclass(frozen=True, kw_only=True)
class ScoredInClusters(Scored):
    """Single rows in clusters: the null is a random sign for the residuals of each (wild bootstrap, null imposed)."""

    cluster: Places  # shape (m,): 0 to G - 1

    law, null, equal_rows = SIGNS, IN_CLUSTERS, False

    @property
    def clusters(self) -> int:
        return int(self.cluster.max()) + 1

    @property
    def facts(self) -> dict[str, int]:
        return {"clusters": self.clusters}

    def weighed(self, x: Floats) -> tuple[Floats, Weighed]:
        w, cluster = self.each_weighs, np.unique(self.cluster, return_inverse=True)[1]
        return x, WeighedByClusters(self.events, w, w * w, cluster)

    def covariance(self, terms: Floats) -> Floats:
        totals = np.array([summed(self.cluster, self.residual * term) for term in terms.T])
        return totals @ totals.T

    def sums(self, terms: Floats, null: Drawing) -> Floats:
        cell, mass = np.broadcast_to(np.arange(terms.shape[1]), terms.shape), self.each_weighs[:, None] * np.abs(terms)
        drawn = ClusterSums.of(cell, self.cluster, terms.shape[1], self.residual[:, None] * terms, mass)
        return drawn.signed(null.draws, null.signs)

    def totals(self, first: Places, null: Drawing) -> Floats:
        cell = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(self.p))))
        drawn = ClusterSums.of(cell, self.cluster, len(first), self.residual, self.each_weighs)
        return np.add.reduceat(self.each_weighs * self.p, first) + drawn.signed(null.draws, null.signs)

    def extremes(self, null: Drawing) -> tuple[Floats, Floats]:
        low, high, rng = np.zeros(null.draws), np.zeros(null.draws), null.signs
        step = max(1, AT_ONCE // len(self.p))
        for start in range(0, null.draws, step):
            some = slice(start, min(start + step, null.draws))
            signs = 2.0 * rng.integers(0, 2, (some.stop - start, self.clusters)) - 1.0
            walks = np.cumsum(signs[:, self.cluster] * self.residual, axis=1)[:, self.ends]
            low[some], high[some] = np.minimum(walks.min(axis=1), 0.0), np.maximum(walks.max(axis=1), 0.0)
        return low, high


class Drawing(NamedTuple):
    """What data are simulated with."""

    ids: Ids  # identities of the entries: their rank by score, so that neither row order nor chunks matter
    draws: int
    seed: int

    @property
    def signs(self) -> np.random.Generator:
        """The generator of the clusters' signs."""
        return np.random.default_rng([SIGN_STREAM, self.seed])


def in_clusters(p: Floats, y: NDArray[np.int8] | Floats, weight: Floats | None, cluster: Places) -> Scored:
    """Sort rows that come in clusters by score."""
    every = ScoredInClusters(p, y.astype(float), weight=weight, cluster=cluster)
    return every.where(np.argsort(p, kind="stable"))


def scored(p: Floats, y: NDArray[np.int8] | Floats, weight: Floats | None = None, grade: Ints | None = None) -> Scored:
    """Sort rows by grade, score and weight, and count equal ones together if they are 16 times fewer.

    The result, and what is simulated for it, does not depend on the order of the rows.
    """
    keys = tuple(k for k in (weight, p, grade) if k is not None)
    order = np.argsort(p, kind="stable") if len(keys) == 1 else np.lexsort(keys)
    q = Scored(p, y.astype(float), weight=weight, grade=grade).where(order)
    new = np.any([np.diff(v[order]) != 0 for v in keys], axis=0)
    first = np.flatnonzero(np.append(True, new))
    if len(first) * TIED > len(p):
        return q
    return replace(q.where(first), rows=np.diff(np.append(first, len(p))), events=np.add.reduceat(q.events, first))


Block = tuple[slice, slice, NDArray[np.uint8] | Floats]  # which entries, which draws, and the events of both


def simulated(q: Scored, null: Drawing) -> Iterator[Block]:
    """Yield the events of a calibrated model, ``Bernoulli(p)`` for each row, in blocks of bounded size.

    For every draw the entries come in order.
    """
    m = len(q.p)
    if q.rows is not None:
        done = 0
        for block in null_events(q.rows, q.p, null.draws, null.seed):
            yield slice(0, m), slice(done, done + len(block)), block.T
            done += len(block)
        return
    step = max(1, AT_ONCE // null.draws)
    for start in range(0, m, step):
        at = slice(start, min(start + step, m))
        yield at, slice(0, null.draws), outcomes(null.ids[at], q.p[at], 0, null.draws, SALT)


# ---- Statistics of the classical calibration tests, of the data and of data simulated under calibration ----


def runs_of(labels: Floats | Ints | Places) -> Places:
    """Where each run of equal labels begins."""
    return np.flatnonzero(np.append(True, np.diff(labels) != 0))


FACTORS = 0xFAC7  # stream of the common factors and of the outcomes given them


def correlated_totals(q: Scored, first: Places, rho: float, draws: int, seed: int) -> Floats:
    """The events of each run of entries for each draw, where all rows of a draw share one Gaussian factor.

    Vasicek's model: a row is an event if ``sqrt(rho) Z + sqrt(1 - rho) e <= Phi^-1(p)``, with one Z a draw and one e a
    row, all independent and standard normal; so each is an event with chance p.

    `q`: without weights. `first` (runs,): where each run begins; the first at 0. `rho`: in [0, 1). The result has shape
    (draws, runs).
    """
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng([FACTORS, seed])
    threshold, factor = ndtri(q.p), rng.standard_normal(draws)
    out = np.empty((draws, len(first)))
    step = max(1, CHUNK // len(q.p))
    for start in range(0, draws, step):
        some = slice(start, min(start + step, draws))
        rate = ndtr((threshold - math.sqrt(rho) * factor[some, None]) / math.sqrt(1.0 - rho))
        events = rng.random(rate.shape) < rate if q.rows is None else rng.binomial(q.rows, rate)
        out[some] = np.add.reduceat(events.astype(float), first, axis=1)
    return out


@dataclass(frozen=True)
class Walk:
    """Cumulative residuals read at the last row of each distinct score."""

    at: Floats  # shape (distinct scores + 1,): the walk, from 0
    deviation: float  # standard deviation of its end if the model is calibrated

    def size(self, span: bool) -> float:
        """The range, or the largest modulus, in standard deviations."""
        return float(np.ptp(self.at) if span else np.abs(self.at).max()) / self.deviation


def walk_of(q: Scored) -> Walk:
    """The cumulative residuals in order of the score."""
    return Walk(np.append(0.0, np.cumsum(q.residual)[q.ends]), float(np.sqrt(q.variance.sum())))


@dataclass(frozen=True)
class Groups:
    """Sums over the runs of scores that Hosmer and Lemeshow compare."""

    first: Places  # shape (groups,): where each begins
    # `rows`, `observed`, `expected` and `variance`, shape (groups,): rows; weighted events, their expectation, and `n P
    # (1 - P)` at the group's mean score P.
    rows: Floats
    observed: Floats
    expected: Floats
    variance: Floats

    def statistic(self, observed: Floats) -> Floats:
        """The sum of squared standardised gaps of the groups whose outcomes can vary."""
        live = self.variance > 0.0
        return ((observed - self.expected)[..., live] ** 2 / self.variance[live]).sum(axis=-1)


def groups_of(q: Scored, bins: int) -> Groups:
    """Cut the scores into at most `bins` groups of about equal mass, equal scores together.

    With weights the variance is ``S P (1 - P)``, S the sum of squared weights and P the mean score under them.
    """
    edges = equal_mass_edges(q.p, q.each_weighs * q.times, bins)
    first = runs_of(np.searchsorted(edges, q.p, side="right"))
    square = q.each_weighs**2 * q.times
    values = (q.times, q.each_weighs * q.events, q.each_weighs * q.times * q.p, square, square * q.p)
    rows, observed, expected, size, scores = (np.add.reduceat(v, first) for v in values)
    mean = np.clip(scores / size, 0.0, 1.0)
    return Groups(first, rows, observed, expected, size * mean * (1.0 - mean))


def efficient_scores(sums: Floats, information: Floats) -> tuple[Floats, Floats]:
    """The squared standardised score of the intercept, and of the slope once the intercept is free.

    `sums` (..., 2): residual sums, plain and times the logit. `information` (2, 2): their null variance.
    """
    # The information is [[a, b], [b, c]]; of the slope's, `left` is what the intercept does not explain.
    a, b, c = float(information[0, 0]), float(information[0, 1]), float(information[1, 1])
    left = c - b * b / a
    slope = (sums[..., 1] - b / a * sums[..., 0]) ** 2 / left if left > 1e-12 * c else np.zeros(sums.shape[:-1])
    return sums[..., 0] ** 2 / a, slope


def posterior_tails(events: ArrayLike, rows: ArrayLike, rate: ArrayLike, alternative: str) -> Floats:
    """The Jeffreys probability against each alternative: small where the events speak for it.

    Under ``Beta(k + 1/2, n - k + 1/2)``: that the event rate is at most `rate` (for "greater"), at least `rate`
    ("less"), or twice the smaller of both.
    """
    from scipy.special import betainc, betaincc

    k, n = np.asarray(events), np.asarray(rows)
    a, b = k + 0.5, n - k + 0.5
    if alternative == "greater":
        return betainc(a, b, rate)
    if alternative == "less":
        return betaincc(a, b, rate)
    return np.minimum(1.0, 2.0 * np.minimum(betainc(a, b, rate), betaincc(a, b, rate)))


# ---- Statistics of the score alone that leave room for a tolerance, of the data and of data at the edge of it ----

MORE = 0x70E  # stream of the events that the upper rate adds to those of the lower

Pair = tuple[slice, slice, NDArray[np.uint8] | Ints, NDArray[np.uint8] | Ints]  # as `Block`, events at both edges


def edges(p: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """The least and the largest event rate within the tolerance."""
    return np.maximum(p - tolerance, 0.0), np.minimum(p + tolerance, 1.0)


def paired(q: Scored, tolerance: float, null: Drawing) -> Iterator[Pair]:
    """Yield events drawn at both edges of the tolerance, never fewer at the upper one.

    A calibrated outcome lies between the two when all three come from one uniform number, so that a statistic which
    rises in the upper and falls in the lower events dominates that of any rates within the tolerance.
    """
    low, high = edges(q.p, tolerance)
    if q.rows is None:
        step = max(1, AT_ONCE // null.draws)
        for start in range(0, len(q.p), step):
            at = slice(start, min(start + step, len(q.p)))
            few, many = (outcomes(null.ids[at], v[at], 0, null.draws, SALT) for v in (low, high))
            yield at, slice(0, null.draws), few, many
        return
    rng = np.random.default_rng([MORE, null.seed])
    rest = np.where(low < 1.0, (high - low) / np.where(low < 1.0, 1.0 - low, 1.0), 0.0)
    step = max(1, CHUNK // len(q.p))
    for start in range(0, null.draws, step):
        size = (min(step, null.draws - start), len(q.p))
        first = rng.binomial(q.rows, low, size=size)
        more = rng.binomial(q.rows - first, np.clip(rest, 0.0, 1.0))
        yield slice(0, len(q.p)), slice(start, start + size[0]), first.T, (first + more).T


@dataclass(frozen=True)
class Contrasts:
    """Weighted sums of residuals with a side each, in groups that make one statistic."""

    # `up` and `down`, shape (m, t): non-negative weights of each entry, where more events, and where fewer, speak for a
    # violation.
    up: Floats
    down: Floats
    spread: Floats  # shape (t,): standard deviation of each sum; sums without one are left out
    of: Places  # shape (t,): which statistic a sum belongs to; the largest of each counts

    def squares(self, sums: Floats) -> Floats:
        """Each statistic: the square of its largest positive standardised sum, shape (..., statistics)."""
        z = np.maximum(sums, 0.0) / np.where(self.spread > 0, self.spread, np.inf)
        out = np.zeros((*z.shape[:-1], int(self.of.max()) + 1))
        for j, k in enumerate(self.of):
            out[..., k] = np.maximum(out[..., k], z[..., j] ** 2)
        return out

    def observed(self, q: Scored, tolerance: float) -> Floats:
        """The statistics of the data."""
        low, high = edges(q.p, tolerance)
        w = q.each_weighs
        above, below = w * (q.events - q.times * high), w * (q.times * low - q.events)
        return self.squares(above @ self.up + below @ self.down)

    def simulated(self, q: Scored, tolerance: float, null: Drawing) -> Floats:
        """Statistics that dominate those of any rates within the tolerance, shape (draws, statistics)."""
        low, high = edges(q.p, tolerance)
        up, down = q.each_weighs[:, None] * self.up, q.each_weighs[:, None] * self.down
        sums = np.tile((q.times * low) @ down - (q.times * high) @ up, (null.draws, 1))
        for at, numbers, few, many in paired(q, tolerance, null):
            sums[numbers] += many.T.astype(float) @ up[at] - few.T.astype(float) @ down[at]
        return self.squares(sums)


def group_squares(
    q: Scored, groups: Groups, tolerance: float, alternative: str, totals: tuple[Floats, Floats]
) -> Floats:
    """``sum_g max(0, O - E_high, E_low - O)^2 / V_g`` over groups whose outcomes can vary, one side if asked.

    `totals` (..., groups): weighted events to hold against the lower and against the upper edge.
    """
    low, high = (np.add.reduceat(q.each_weighs * q.times * v, groups.first) for v in edges(q.p, tolerance))
    above, below = totals[1] - high, low - totals[0]
    if alternative != "two-sided":
        above, below = (above, np.zeros_like(below)) if alternative == "greater" else (np.zeros_like(above), below)
    live = groups.variance > 0.0
    worst = np.maximum(np.maximum(above, below), 0.0)
    return (worst[..., live] ** 2 / groups.variance[live]).sum(axis=-1)


def paired_totals(q: Scored, first: Places, tolerance: float, null: Drawing) -> tuple[Floats, Floats]:
    """The weighted events of each run of entries for each draw, at the lower and at the upper edge."""
    out = np.zeros((2, null.draws, len(first)))
    for at, numbers, *events in paired(q, tolerance, null):
        begin, end = np.searchsorted(first, [at.start, at.stop - 1], side="right") - 1
        starts = np.maximum(first[begin : end + 1], at.start) - at.start
        for side, drawn in enumerate(events):
            weighted = q.each_weighs[at, None] * drawn
            out[side, numbers, begin : end + 1] += np.add.reduceat(weighted, starts, axis=0).T
    return out[0], out[1]


def by_logit(q: Scored, x: Floats, alternative: str) -> Contrasts:
    """The sums that speak for a shift and for a slope of the logit x.

    Two-sided: the constant and ``x`` less its mean (under the null variance), each way, with the sign of the detector
    saying which edge a row is held against. One-sided detectors must not change sign: the constant, p, and ``1 - p``.
    """
    one = np.ones(len(x))
    if alternative != "two-sided":
        columns = np.stack([one, q.p, 1.0 - q.p], axis=1)
        none = np.zeros_like(columns)
        pair = (columns, none) if alternative == "greater" else (none, columns)
        return Contrasts(*pair, np.sqrt(q.variance @ columns**2), np.zeros(3, dtype=np.int64))
    slope = x - float(q.variance @ x) / float(q.variance.sum())
    if np.ptp(x) == 0.0:
        slope = np.zeros(len(x))
    up = np.stack([one, 0.0 * one, np.maximum(slope, 0.0), np.maximum(-slope, 0.0)], axis=1)
    down = up[:, [1, 0, 3, 2]]
    return Contrasts(up, down, np.sqrt(q.variance @ (up + down) ** 2), np.array([0, 0, 1, 1]))
