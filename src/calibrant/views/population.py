"""One population, as certificates read it: of independent rows, or of clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, choice, number
from calibrant.errors import NotComputable
from calibrant.kernels.tally import MOST
from calibrant.results import Interval, Side
from calibrant.stats.bounds import (
    debiased_error,
    distance_lower,
    distance_upper,
    gap_evidence,
    lower_evidence,
    shown_evidence,
)
from calibrant.stats.cells import SCALE, Cells
from calibrant.stats.clusters.bounds import Above, Pairs, below_of, bets, gap_of
from calibrant.stats.clusters.clusters import Clusters, Tallies, debiased
from calibrant.stats.clusters.distance import Routes, distance_above, distance_below
from calibrant.stats.evidence import Evidence, Gap, mean
from calibrant.stats.measures import Weighed, WeighedByClusters, rate_interval
from calibrant.stats.nulls import ClusterSums, total_interval
from calibrant.stats.strata import SCORES, WEIGHT, Bins
from calibrant.stats.subgroups.row_gaps import drawn_gaps, row_gap

Floats = NDArray[np.float64]

UNPROVED = (
    "this is proved for independent rows of equal weight: with cluster= or weights= use certify.rounded, values, "
    "raw_lower, distance, groups, worst_group, variable or subgroups"
)
FINE = 200  # levels a sketch keeps
EXACT_STEPS = (10, 20, 50, 100)
ROWS_A_VALUE = 10  # rows, in the mean, that each value must have where the score is certified as it is
QUANTISATION = 2.0**-30  # scores are read as whole multiples of this, rounded down
WHOLE = "the score rounded to whole percent"
IN_STEPS = "the score in {} rounding steps"
OF_VALUES = "the raw score, which takes {} values"
INDEPENDENT = "independent rows from one distribution"
BY_SCORES = "outcomes of different {} independent given the scores"
Target = Literal["rows", "population"]  # whose gap: of the rows at hand, or of all rows like these
CellOf = Callable[[Floats], NDArray[np.int64]]
SIGNED = 1024  # cells of the score in which clusters' residuals are added up; signs are learnt of runs of them


@dataclass(frozen=True)
class Shown:
    """The score that a certificate from above is about, in finitely many values."""

    cells: Cells  # one for each value
    about: str  # which score that is, in words
    # `{"values": m}` for the score itself, which takes m values, or `{"steps": K}` for a display in K steps.
    display: dict[str, object]
    slack: float  # by how much reading scores to fixed precision can move its error
    cell_of: CellOf  # the cell of each of some scores
    tallies: tuple[Tallies, ...] = ()  # the clusters' sums by value, of every shift; none of independent rows
    costs = 2  # how long evidence from above takes, about, in the time of a set of drawn outcomes

    @property
    def above(self) -> Evidence:
        """Evidence that this score's error is smaller: Theorem U; made once."""
        return shown_evidence(self.cells)

    @property
    def above_plain(self) -> Evidence:
        """The same without what takes longest; never more evidence."""
        return self.above

    def below(self, delta: float, seed: int) -> Evidence:
        """Evidence that this score's error is larger, with the stakes that are the best at `delta`."""
        return lower_evidence(self.cells, delta, seed)

    @property
    def debiased(self) -> float:
        """The error as estimated, less what noise adds."""
        return debiased_error(self.cells.low, self.cells.totals.sum(axis=1), self.cells.totals[:, 1])


class ShownByClusters(Shown):
    """The same of clusters: Theorems CU and CL."""

    costs = 5

    @cached_property
    def above(self) -> Evidence:
        return mean([Above.of(t) for t in self.tallies])

    @property
    def above_plain(self) -> Evidence:
        def plain(t: Tallies) -> Above:
            q = Pairs.of(t)
            return Above.plain(q, bets(len(q.size), t.clusters.largest))

        return mean([plain(t) for t in self.tallies])

    def below(self, delta: float, seed: int) -> Evidence:
        return mean([below_of(t, delta, seed, few=False) for t in self.tallies])

    @property
    def debiased(self) -> float:
        return debiased(self.tallies)


@dataclass(frozen=True)
class Population:
    """One population's counts: everyone, a group, or several groups pooled."""

    raw: NDArray[np.int64]  # shape (blocks, cells, 4 or more): rows and remainder sums by label
    fine: NDArray[np.int64]  # shape (blocks, 200, 2)
    # Shape (m,): the values of the score, out of `2^30`, where it is certified as it is; of everyone, so that some may
    # have no rows here. Empty where it takes many values.
    scores: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Shape (m, 2): rows by label of each.
    by_score: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    # The score as it is shown in so many steps, and in 0 as it is, once it was made.
    shown: dict[int, Shown] = field(default_factory=dict, repr=False, compare=False, kw_only=True)
    # Whose rows are certified, where these are not independent or do not count alike: of every shift, where columns of
    # clusters cross.
    diagonals: tuple[Clusters, ...] = field(default=(), compare=False, kw_only=True)
    assumes: str = field(default=INDEPENDENT, kw_only=True)  # what certificates of these rows take for granted
    reported: dict[str, object] = field(default_factory=dict, compare=False, kw_only=True)  # of clusters, by a result

    @property
    def clusters(self) -> Clusters | None:
        """Whose rows are certified, those of the first shift; None of independent rows."""
        return None

    @property
    def cells(self) -> Cells:
        """Cells of the raw score, of rows that are independent and count alike: what is proved for these alone."""
        return self.counted

    @cached_property
    def counted(self) -> Cells:
        """Rows by cell of the raw score, whatever they weigh; sums of scores are exact to a float's 53 bits."""
        counts = self.raw[..., :2]
        width = float((1 << 30) // self.raw.shape[1])
        start = np.arange(self.raw.shape[1])[None, :, None] * width
        return replace(Cells.grid(counts, counts * start + self.raw[..., 2:4]), few=self.exact)

    @cached_property
    def n(self) -> int:
        """Rows."""
        return int(self.fine.sum())

    @cached_property
    def events(self) -> int:
        """Rows with the outcome."""
        return int(self.fine[..., 1].sum())

    @property
    def grid(self) -> int:
        """Cells of the raw score."""
        return int(self.raw.shape[1])

    @property
    def exact(self) -> bool:
        """The score takes few values, and is certified as it is."""
        return len(self.scores) > 0

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Cells whose rows provably share one score: the variance of the remainder is zero."""
        if self.raw.shape[2] < 6:
            return np.zeros(self.grid, dtype=bool)
        total = self.raw.sum(axis=0)
        rows, remainder, low, high = total[:, :2].sum(axis=1), total[:, 2:4].sum(axis=1), total[:, 4], total[:, 5]
        square = [(int(h) << 32) + int(v) for v, h in zip(low, high, strict=True)]
        flat = [int(a) * b == int(r) ** 2 for a, b, r in zip(rows, square, remainder, strict=True)]
        return np.array(flat)

    @property
    def expected(self) -> float:
        """Sum of the scores of all rows."""
        return self.counted.expected

    def below(self, delta: float, seed: int) -> Evidence:
        """Evidence that the raw score's error is larger: Theorem L, or CL of clusters.

        With the stakes that are the best at `delta`; about scores as they are read, up to `QUANTISATION` less.
        """
        return lower_evidence(self.cells, delta, seed)

    def gap(self, delta: float) -> Gap:
        """Evidence about the mean residual of the population, with the stakes that are the best at `delta`."""
        return gap_evidence(self.cells, delta)

    @property
    def target(self) -> Target:
        """Whose gap is certified unless somebody asks: of the rows, where that is proved."""
        return "rows"

    def gap_of(self, target: Target, delta: float) -> Gap:
        """Evidence about the gap of the population, or of its rows: given scores, outcomes alone are random."""
        return row_gap(self.cells, delta) if target == "rows" else self.gap(delta)

    def drawn_gaps(self, delta: float) -> Callable[[np.random.Generator, float], Gap]:
        """What draws the same of outcomes drawn from scores, or that happen by so much more often."""
        return drawn_gaps(self.cells, delta)

    def assumed(self, target: Target) -> str:
        """What a gap takes for granted."""
        return BY_SCORES.format("rows") if target == "rows" else self.assumes

    def distance_below(self, delta: float, seed: int) -> float:
        """What the distance from calibration is at least."""
        return distance_lower(self.cells, delta, seed)

    def distance_above(self, delta: float) -> tuple[float, dict[str, object]]:
        """What the distance from calibration is at most, and the route that gave it."""
        high, route = distance_upper(self.cells, delta)
        return high, {"route": route}

    @property
    def predicted(self) -> float:
        """The mean score."""
        return self.expected / self.n

    @property
    def off(self) -> float:
        """The mean residual as estimated."""
        return (self.events - self.expected) / self.n

    def as_one_block(self) -> Population:
        """The same rows, not dealt into blocks: enough where no bet is learnt from earlier ones."""
        return replace(self, raw=self.raw.sum(axis=0)[None], fine=self.fine.sum(axis=0)[None], shown={})

    def redrawn(self, rng: np.random.Generator, more: float = 0.0) -> Population:
        """The same rows with outcomes drawn again, that happen as often as scores say, or by `more` more often.

        No outcome is read. Tables of the score are drawn each by itself: every certificate reads one of them.
        """
        rows, counts = self.raw[..., :2].sum(axis=2), self.raw.copy()
        rest = self.raw[..., 2:4].sum(axis=2)
        width = (1 << 30) / self.grid
        mean = (np.arange(self.grid) * width + rest / np.maximum(rows, 1)) / SCALE
        counts[..., 1] = _events(rng, rows, mean + more)
        counts[..., 0] = rows - counts[..., 1]
        counts[..., 3] = np.rint(rest * (counts[..., 1] / np.maximum(rows, 1)))
        counts[..., 2] = rest - counts[..., 3]
        fine = self._redrawn(rng, self.fine, (np.arange(FINE) + 0.5) / FINE + more)
        by_score = self._redrawn(rng, self.by_score, self.scores / SCALE + more)
        return replace(self, raw=counts, fine=fine, by_score=by_score, shown={})

    @staticmethod
    def _redrawn(rng: np.random.Generator, counts: NDArray[np.int64], rates: Floats) -> NDArray[np.int64]:
        """Rows by label, drawn again at these rates."""
        rows = counts.sum(axis=-1)
        events = _events(rng, rows, rates)
        return np.stack([rows - events, events], axis=-1)

    def levels(self, steps: int) -> Cells:
        """The score rounded to multiples of ``1 / steps``, one cell a level.

        Exact for 10, 20, 50, 100 and powers of two; otherwise the middle of the score's cell is rounded.
        """
        values = np.arange(steps + 1) / steps
        if steps in EXACT_STEPS:
            ratio = FINE // steps
            level, counts = (np.arange(FINE) + ratio // 2) // ratio, self.fine
        else:
            middle = (np.arange(self.grid) + 0.5) / self.grid
            level, counts = np.floor(middle * steps + 0.5).astype(np.int64), self.raw[..., :2]
        out = np.zeros((counts.shape[0], steps + 1, 2), dtype=np.int64)
        for label in (0, 1):
            for block in range(len(out)):
                out[block, :, label] = np.bincount(level, counts[block, :, label], steps + 1)
        return Cells.levels(out, values)

    def as_it_is(self) -> Shown:
        """The score itself, one cell a value, made once; refuse a score of many values.

        A score of 1 is read as ``1 - 2^-30``, and is put back to 1.
        """
        if not self.exact:
            raise NotComputable(
                f"the score takes too many values (more than {MOST:,}, or more than one for each {ROWS_A_VALUE} rows): "
                "certify the rounded score, with rounded"
            )
        if 0 not in self.shown:
            values = np.where(self.scores == round(SCALE) - 1, 1.0, self.scores / SCALE)
            about = "the raw score, which takes one value" if len(values) == 1 else OF_VALUES.format(len(values))
            cells = Cells.levels(self.by_score[None], values)
            self.shown[0] = self._shown(cells, about, {"values": len(values)}, self._value, QUANTISATION)
        return self.shown[0]

    def as_shown(self, steps: int) -> Shown:
        """The raw score shown in so many steps; made once."""
        if steps not in self.shown:
            about = WHOLE if steps == 100 else IN_STEPS.format(steps)

            def level(p: Floats) -> NDArray[np.int64]:
                return (2 * steps * fixed_scores(p) + round(SCALE)) >> 31  # halves up, exactly

            self.shown[steps] = self._shown(self.levels(steps), about, {"steps": steps}, level, 0.0)
        return self.shown[steps]

    def _value(self, p: Floats) -> NDArray[np.int64]:
        """Which of the score's values each is."""
        return np.searchsorted(self.scores, fixed_scores(p))

    def _shown(self, cells: Cells, about: str, display: dict[str, object], cell: CellOf, slack: float) -> Shown:
        """A score shown, by the cell of each of its values."""
        return Shown(cells, about, display, slack, cell)

    @property
    def estimated(self) -> Estimated | None:
        """Its rows as ordinary intervals read them; None where two columns of clusters cross, or there is one cluster.

        Rows are read by cell of the score, with its exact sums; scores of a cell differ by less than a thousandth.
        """
        cells = self.counted.nonempty
        rows = cells.totals.T.reshape(-1)
        here = rows > 0
        y, mass = np.repeat([0.0, 1.0], cells.size)[here], rows[here].astype(np.float64)
        return Estimated(self, cells.score_sums.T.reshape(-1)[here] / mass, Weighed(y, mass, mass))

    def judged(self, steps: int) -> Shown:
        """The score that "within" is about: as it is where it takes few values, else as shown in `steps`."""
        return self.as_it_is() if self.exact else self.as_shown(steps)


class OfClusters(Population):
    """The same of clusters, or of rows that do not count alike: Theorems CU, CL and CD, and means over shifts."""

    @property
    def clusters(self) -> Clusters:
        return self.diagonals[0]

    @property
    def cells(self) -> Cells:
        raise NotComputable(UNPROVED)

    def below(self, delta: float, seed: int) -> Evidence:
        return mean([below_of(self._signed(u), delta, seed, few=self.exact) for u in self.diagonals])

    def _signed(self, u: Clusters) -> Tallies:
        """The clusters' residuals by cell of the raw score, of which signs are learnt."""
        if self.exact:
            return u.tallies(self._value(u.p), len(self.scores), u.p)
        return u.tallies(np.minimum((u.p * SIGNED).astype(np.int64), SIGNED - 1), SIGNED, u.p)

    def gap(self, delta: float) -> Gap:
        return Gap.mean([gap_of(u, delta) for u in self.diagonals])

    def drawn_gaps(self, delta: float) -> Callable[[np.random.Generator, float], Gap]:
        return lambda rng, more: self.redrawn(rng, more).gap(delta)

    @property
    def target(self) -> Target:
        return "population"

    def distance_below(self, delta: float, seed: int) -> float:
        return mean([distance_below(u, delta, seed) for u in self.diagonals]).limit(delta)

    def distance_above(self, delta: float) -> tuple[float, dict[str, object]]:
        routes = Routes.mean([distance_above(u, self.scores / SCALE) for u in self.diagonals])
        high = routes.limit(delta)
        return high, {"route": routes.route(high)}

    @property
    def predicted(self) -> float:
        own = [u.certified[u.cluster] for u in self.diagonals]
        sums = [float((u.weight * u.p)[some].sum()) for u, some in zip(self.diagonals, own, strict=True)]
        return sum(sums) / (sum(u.total for u in self.diagonals) or 1.0)

    @property
    def off(self) -> float:
        total = [u.total for u in self.diagonals]
        return float(np.dot([u.mean for u in self.diagonals], np.array(total) / (sum(total) or 1.0)))

    @property
    def estimated(self) -> Estimated | None:
        u = self.diagonals[0]
        own = u.certified[u.cluster]
        names, cluster = np.unique(u.cluster[own], return_inverse=True)
        if len(names) < 2:
            return None
        y, mass = u.y[own].astype(np.float64), u.weight[own]
        return Estimated(self, u.p[own], WeighedByClusters(y, mass, mass**2, cluster.reshape(-1).astype(np.intp)))

    def as_one_block(self) -> Population:
        return self

    def redrawn(self, rng: np.random.Generator, more: float = 0.0) -> Population:
        diagonals = []
        for u in self.diagonals:  # of every shift by itself: how they depend on one another moves no mean
            y = (rng.uniform(size=len(u.p)) < u.p + more).astype(np.int8)
            diagonals.append(replace(u, y=y))
        return replace(self, diagonals=tuple(diagonals), shown={})

    def _shown(self, cells: Cells, about: str, display: dict[str, object], cell: CellOf, slack: float) -> Shown:
        at = [cell(u.p) for u in self.diagonals]
        tallies = [u.tallies(c, cells.size, cells.low[c]) for u, c in zip(self.diagonals, at, strict=True)]
        return ShownByClusters(cells, about, display, slack, cell, tuple(tallies))


class OfTwoWay(OfClusters):
    """The same of clusters of two columns that cross, by blocks of every shift."""

    @property
    def estimated(self) -> None:
        return None


def _events(rng: np.random.Generator, rows: NDArray[np.int64], rates: Floats) -> NDArray[np.int64]:
    """Draw events of so many rows each."""
    result: NDArray[np.int64] = rng.binomial(rows, np.broadcast_to(np.clip(rates, 0.0, 1.0), rows.shape))
    return result


def are_few(values: int, rows: int) -> bool:
    """Whether a score of so many values, in so many rows, is certified as it is."""
    return values <= min(MOST, rows // ROWS_A_VALUE)


def values_of_scores(p: Floats) -> NDArray[np.int64]:
    """The different values of scores, out of ``2^30``, increasing."""
    return np.unique(fixed_scores(p))


def fixed_scores(p: Floats) -> NDArray[np.int64]:
    """Scores out of ``2^30`` as a sketch reads them."""
    result: NDArray[np.int64] = np.minimum(np.floor(p * SCALE), SCALE - 1.0).astype(np.int64)
    return result


def shares(alpha: float, side: Side) -> tuple[float, float]:
    """The error probabilities of the lower and the upper end; zero for a trivial end.

    A two-sided interval spends half of alpha on each end.
    """
    alpha = checked_alpha(alpha)
    ends = {"two-sided": (alpha / 2, alpha / 2), "lower": (alpha, 0.0), "upper": (0.0, alpha)}
    return ends[choice("side", side, get_args(Side))]


def checked_bandwidth(bandwidth: float, grid: int) -> float:
    """The bandwidth of the jitter: at least two cells of the grid wide, so that the grid resolves it."""
    return number("bandwidth", bandwidth, least=2.0 / grid, most=0.5, hint="such as 2**-6")


# ---- What is estimated, with ordinary intervals: it is shown next to what is certified, and decides nothing ----

DRAWS = 200  # simulated outcomes behind the interval of an error
STREAM = 0x0E57  # of random numbers, so that no other method has the same


@dataclass(frozen=True)
class Estimated:
    """Scores and outcomes of one population, as ordinary intervals read them.

    Gap, observed over expected, and calibration error: the same intervals as of `measure.observed_expected` and
    `measure.ece`. They are cluster-robust where rows share clusters, and hold where events are few.
    """

    population: Population
    p: Floats  # shape (m,)
    weighed: Weighed

    @property
    def expected(self) -> float:
        """The mean score."""
        return self.weighed.mean(self.p)

    def gap(self, alpha: float) -> Interval:
        """The interval of the mean outcome less the mean score."""
        expected = self.expected
        start = self.weighed.mean(self.weighed.y) - expected
        low, high = rate_interval(
            self.weighed, start, lambda t: self.p + t, lambda rate, _: rate - expected, self.weighed.level(alpha)
        )
        return _ordinary(max(low, -1.0), min(high, 1.0), alpha)

    def observed_expected(self, alpha: float) -> Interval | None:
        """The interval of the events over those that scores expect; None where these are fewer than one."""
        expected = self.expected
        if self.weighed.rows * expected < 1.0 - 1e-9:
            return None
        start = self.weighed.mean(self.weighed.y) / expected
        low, high = rate_interval(
            self.weighed, start, lambda t: t * self.p, lambda rate, _: rate / expected, self.weighed.level(alpha)
        )
        return _ordinary(low, high, alpha)

    def error(self, steps: int, alpha: float, seed: int) -> Interval:
        """The interval of the calibration error of the judged score; it covers the size of the gap too."""
        bins, level = self._by_value(steps), self.weighed.level(alpha)
        draws = bins.gap_noise(DRAWS, np.random.default_rng([seed, STREAM]))
        sizes = total_interval(bins.gap, draws, lambda gap: np.abs(gap).sum(axis=-1), level)
        # No error is smaller than the size of its score's own gap, which moves by as much as rounding moves the mean.
        gap, by = self.gap(alpha), self.expected - float(bins.sums[:, SCORES].sum() / bins.sums[:, WEIGHT].sum())
        low, high = gap.low + by, gap.high + by
        return _ordinary(max(sizes.low, low, -high), min(max(sizes.high, -low, high), 1.0), alpha)

    def _by_value(self, steps: int) -> Bins:
        """The rows by value of the judged score."""
        shown = self.population.judged(steps)
        u, value = self.population.clusters, shown.cells.low
        if u is None:
            rows = shown.cells.totals.sum(axis=1).astype(np.float64)
            events = shown.cells.totals[:, 1].astype(np.float64)
            square = events * (1.0 - value) ** 2 + (rows - events) * value**2
            sums = np.stack([rows, rows, events, rows * value, square, rows], axis=1)
            return Bins(sums[rows > 0], len(value))
        own = u.certified[u.cluster]
        at, w, y = shown.cell_of(u.p[own]), self.weighed.mass, self.weighed.y
        residual = y - value[at]
        parts = (np.ones(len(at)), w, w * y, w * value[at], w**2 * residual**2, w**2)
        sums = np.stack([np.bincount(at, v, len(value)) for v in parts], axis=1)
        here = sums[:, 0] > 0
        cell = (np.cumsum(here) - 1)[at].astype(np.intp)
        cluster = np.unique(u.cluster[own], return_inverse=True)[1].reshape(-1)
        clusters = ClusterSums.of(cell, cluster, int(here.sum()), w * residual, w)
        return Bins(sums[here], len(value), clusters=clusters)


def _ordinary(low: float, high: float, alpha: float) -> Interval:
    return Interval(low=float(low), high=float(high), level=1.0 - alpha, guarantee="asymptotic")
