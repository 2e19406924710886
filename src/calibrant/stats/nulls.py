"""Outcomes simulated under calibration, p-values of one statistic and of many, and intervals for noisy sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.roots import crossing

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

ROUNDING = 1e-9  # relative difference within which two values of one statistic are equal
TIE = 1e-5  # the same in standard deviations of the null (rare events make real ties)

# ---- Outcomes of a calibrated model, simulated given the scores, and what they say about a statistic ----

CHUNK = 1 << 20  # numbers held at once: 8 MB
STREAM = 0x5EED  # of random numbers, apart from those of other methods at the same seed


def null_events(rows: ArrayLike, rate: ArrayLike, draws: int, seed: int, stream: int = 0) -> Iterator[Floats]:
    """Yield arrays of simulated events, ``Binomial(rows, rate)``, a draw a row; the same for any chunk size.

    `rows`, `rate` (cells,): rows of each cell, and the event rate of each if the model is calibrated. `draws`: draws in
    all. `seed`, `stream`: two streams of one seed are independent. The result has shape (some draws, cells).
    """
    rng = np.random.default_rng([STREAM, stream, seed])
    n, p = np.asarray(rows).astype(np.int64), np.clip(np.asarray(rate, dtype=float), 0.0, 1.0)
    step = max(1, CHUNK // max(len(n), 1))
    for start in range(0, draws, step):
        yield rng.binomial(n, p, size=(min(step, draws - start), len(n))).astype(float)


def p_value(statistic: float, simulated: Floats) -> float:
    """The exact p-value ``(1 + #{simulated >= statistic}) / (draws + 1)``."""
    return float((1 + int(np.sum(reaching(statistic, simulated)))) / (len(simulated) + 1))


def reaching(statistic: float, simulated: ArrayLike) -> NDArray[np.bool_]:
    """Which simulated values are at least the statistic, but for rounding."""
    return np.asarray(simulated) >= statistic - ROUNDING * max(1.0, abs(statistic))


def critical(simulated: Floats, alpha: float) -> Floats:
    """The value that a statistic exceeds exactly when its p-value is at most `alpha`.

    The ``ceil((1 - alpha) (draws + 1))``-th smallest along the first axis, and the rounding that `reaching` allows;
    infinite where there are too few draws for any p-value to be so small.
    """
    draws = simulated.shape[0]
    rank = int(np.ceil(round((1.0 - alpha) * (draws + 1), 9)))  # 9 digits: 0.95 (999 + 1) is 950, not a little more
    if rank > draws:
        return np.full(simulated.shape[1:], np.inf)[()]
    result = np.partition(simulated, rank - 1, axis=0)[rank - 1]
    return result + ROUNDING * np.maximum(1.0, np.abs(result))


def ranked(statistics: ArrayLike) -> Floats:
    """The p-value of every entry among all of its row, shape (statistics, columns).

    ``#{T >= T_b - tie} / columns`` for data and draws alike, so that p-values can be combined and ranked again.

    `statistics` (statistics, columns) or (columns,).
    """
    values = np.atleast_2d(np.asarray(statistics, dtype=float))
    out = np.empty(values.shape)
    for row, into in zip(values, out, strict=True):
        order = np.argsort(row)
        rising, largest = row[order], float(np.abs(row).max())
        # A refuted score of 0 makes numbers whose squares overflow.
        deviation = float(row.std() if largest < 1e150 else largest * (row / largest).std())
        into[order] = (len(row) - np.searchsorted(rising, rising - TIE * deviation, side="left")) / len(row)
    return out


# ---- Several statistics of one question, made comparable by their draws ----

BULK, EDGE = 0.1, 0.01  # shares of the largest values between which a tail is measured, and from which it is continued
FEWEST = 5  # values beyond the edge at least, and four times as many in the bulk: one has no rank next to itself


def surprises(scores: ArrayLike) -> Floats:
    """Minus the logarithm of the p-value of every entry among all of its row, finer than draws can tell.

    Among the largest hundredth, where ranks are coarse, it goes on as a line in minus the logarithm of the normal
    tail, as steep as between the largest tenth and the hundredth, at most 1: rare events have heavier tails. Data and
    draws are treated alike, so that what is made of the surprises of several statistics can be ranked again.

    `scores` (statistics, columns) or (columns,): in about standard normal deviations: larger speaks more against the
    null. The result has shape (statistics, columns).
    """
    from scipy.special import log_ndtr

    values = np.atleast_2d(np.asarray(scores, dtype=float))
    columns = values.shape[1]
    far = min(max(int(np.ceil(EDGE * columns)), FEWEST), columns)
    near = min(max(int(np.ceil(BULK * columns)), 4 * FEWEST), columns)
    out = -np.log(ranked(values))
    marks = np.partition(values, (columns - near, columns - far), axis=1)[:, [columns - near, columns - far]]
    for row, into, edge, (low, high) in zip(values, out, marks[:, 1], -log_ndtr(-marks), strict=True):
        beyond = row > edge + TIE
        steep = min(np.log(near / far) / (high - low), 1.0) if high - low > TIE else 1.0
        into[beyond] = np.log(columns / far) + steep * (-log_ndtr(-row[beyond]) - high)
    return out


# ---- p-values of several tests that are looked at together ----


def step_down(observed: Floats, simulated: Floats) -> Floats:
    """Westfall and Young's (1993) step-down adjusted p-values of statistics simulated together.

    The largest statistic is held against the largest of all in each draw, the next against the largest of the rest,
    and so on; an adjusted p-value is never below that of a larger statistic.

    `observed` (tests,). `simulated` (tests, draws). The result has shape (tests,).
    """
    order = np.argsort(-observed, kind="stable")
    top = np.maximum.accumulate(simulated[order[::-1]], axis=0)[::-1]
    slack = ROUNDING * np.maximum(1.0, np.abs(observed[order]))
    at_least = (top >= (observed[order] - slack)[:, None]).sum(axis=1)
    out = np.empty(len(order))
    out[order] = np.maximum.accumulate((1.0 + at_least) / (simulated.shape[1] + 1.0))
    return out


def holm(p: ArrayLike, weights: ArrayLike = 1.0) -> Floats:
    """Holm's (1979) adjusted p-values, shape (tests,): valid whatever the dependence.

    `weights` (tests,): the share of the error probability that each has at first, up to a factor; equal ones without.
    """
    own = np.asarray(p, dtype=float)
    weight = np.broadcast_to(np.asarray(weights, dtype=float), own.shape)
    each = own / weight
    order = np.argsort(each, kind="stable")
    left = np.cumsum(weight[order][::-1])[::-1]
    out = np.empty(len(own))
    out[order] = np.minimum(np.maximum.accumulate(each[order] * left), 1.0)
    return out


# ---- Noise of sums over rows in clusters: a random number for each cluster, whatever its rows have in common ----


SIGNS = "random signs of whole clusters, asymptotic in their number"


def effective(mass: Floats) -> float:
    """Kish's effective number, by the weight of each."""
    return float(mass.sum()) ** 2 / float(mass @ mass)


def studied(alpha: float, clusters: float) -> float:
    """The alpha of a normal quantile that is Student's at `alpha` with ``clusters - 1`` degrees of freedom."""
    from scipy.special import ndtr, stdtrit

    return 2.0 * float(ndtr(stdtrit(max(clusters - 1.0, 1.0), alpha / 2.0)))


class Independent:
    """What stands for `ClusterSums` where rows are independent: their noise is that of rows alone."""

    def noisier(self, alone: Floats, _drawn: Callable[[ClusterSums], Floats]) -> Floats:
        """Noise of independent rows, or where it is wider that which is drawn of clusters."""
        return alone

    def level(self, alpha: float) -> float:
        """The alpha at which a normal quantile is Student's, with a degree of freedom fewer than clusters."""
        return alpha

    def spread_of(self, drawn: Floats) -> Floats:
        """The variance of each column of noise, as far as clusters have a part in it."""
        return np.zeros(drawn.shape[1])


BY_ROWS = Independent()


@dataclass(frozen=True)
class ClusterSums(Independent):
    """Sums by cell of what each cluster's rows add: sparse matrices of shape (cells, clusters)."""

    residual: Any  # scipy.sparse.csr_array: sums of `w (y - p)`
    weight: Any  # scipy.sparse.csr_array: sums of `w`

    @classmethod
    def of(cls, cell: Places, cluster: Places, size: int, residual: Floats, weight: Floats) -> ClusterSums:
        """Add rows up; a row of weight and residual w and r has both in its cell, 0 to `size` - 1.

        With cells of shape (n, k) a row is shared among k cells, as the columns of `residual` and `weight` say.
        """
        from scipy.sparse import coo_array

        where = np.broadcast_to(cluster if cell.ndim == 1 else cluster[:, None], cell.shape).ravel()
        shape = (size, int(cluster.max()) + 1)
        made = (coo_array((v.ravel(), (cell.ravel(), where)), shape=shape).tocsr() for v in (residual, weight))
        return cls(*made)

    @property
    def clusters(self) -> int:
        """Clusters."""
        return int(self.residual.shape[1])

    def noisier(self, alone: Floats, drawn: Callable[[ClusterSums], Floats]) -> Floats:
        return at_least(drawn(self), alone)

    def level(self, alpha: float) -> float:
        return studied(alpha, effective(self.weight.sum(axis=0)))

    def spread_of(self, drawn: Floats) -> Floats:
        return drawn.var(axis=0)

    def signed(self, draws: int, rng: np.random.Generator) -> Floats:
        """The residual sums with a random sign for each cluster, shape (draws, cells)."""
        parts = [
            (self.residual @ (2.0 * rng.integers(0, 2, (self.clusters, some)) - 1.0)).T for some in self._some(draws)
        ]
        return np.concatenate(parts)

    def spread(self, average: Floats) -> Floats:
        """The root of the sum over clusters of ``(average @ residual)^2``, the same for any signs: (points,)."""
        return np.sqrt(self._squares(average, self.residual))

    def effective(self, average: Floats) -> Floats:
        """Kish's effective number of clusters in each mean of cells, shape (points,)."""
        size = np.abs(average)
        return np.asarray((size @ self.weight.sum(axis=1)) ** 2 / np.maximum(self._squares(size, self.weight), 1e-300))

    def _squares(self, average: Floats, each: Any) -> Floats:
        """Sum the squares of each cluster's part of means of cells, a few means at once."""
        step = max(1, CHUNK // self.clusters)
        parts = [((average[at : at + step] @ each) ** 2).sum(axis=1) for at in range(0, len(average), step)]
        return np.concatenate(parts)

    def gap_noise(self, draws: int, rng: np.random.Generator) -> Floats:
        """Simulate the noise of ``residual / total weight``, shape (draws, cells): a normal number for each cluster.

        Of fewer cells than clusters the sums are drawn at once: they are normal, and what they have in common is known.
        """
        each = self.weight.sum(axis=0)
        total = float(each.sum())
        gap = self.residual.sum(axis=1) / total
        if len(gap) < self.clusters:
            with_weight = np.outer(self.residual @ each, gap)
            products = (self.residual @ self.residual.T).toarray() - with_weight - with_weight.T
            spread, axes = np.linalg.eigh(products + (each @ each) * np.outer(gap, gap))
            scale = np.sqrt(np.maximum(spread, 0.0) * self.clusters / (self.clusters - 1.0)) / total
            return np.asarray((rng.standard_normal((draws, len(gap))) * scale) @ axes.T)
        parts = [((self.residual @ z).T - np.outer(each @ z, gap)) / total for z in self._shocks(draws, rng)]
        return np.concatenate(parts)

    def mean_noise(self, draws: int, rng: np.random.Generator) -> Floats:
        """Simulate the noise of each cell's own mean ``residual / weight``, shape (draws, cells)."""
        own = self.weight.sum(axis=1)
        mean = (self.residual.sum(axis=1) / own)[:, None]
        parts = [((self.residual @ z - mean * (self.weight @ z)).T) / own for z in self._shocks(draws, rng)]
        return np.concatenate(parts)

    def _shocks(self, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield normal numbers with the variance ``G / (G - 1)``, shape (clusters, some draws)."""
        scale = float(np.sqrt(self.clusters / (self.clusters - 1.0)))
        return (scale * rng.standard_normal((self.clusters, some)) for some in self._some(draws))

    def _some(self, draws: int) -> list[int]:
        """Split draws so that no more numbers are held at once than `CHUNK`."""
        step = max(1, CHUNK // self.clusters)
        return [min(step, draws - start) for start in range(0, draws, step)]


def at_least(drawn: Floats, independent: Floats) -> Floats:
    """Noise drawn by clusters, each column as wide as that of independent rows where it would be narrower.

    A cell all of whose rows happen to agree, or that one cluster fills, is not without noise.
    """
    seen, least = drawn.std(axis=0), independent.std(axis=0)
    wider = np.divide(least, seen, out=np.ones(len(seen)), where=seen > 0.0)
    return np.where(seen > 1e-9 * least, drawn * np.maximum(wider, 1.0), independent)


# ---- Intervals for the size of a noisy vector: a parametric bootstrap, inverted along the observed direction ----

CLEAR = 4.0  # squared signal over variance, two standard deviations, below which an entry may be noise only
Size = Callable[[Floats], Floats]  # a norm over the last axis


def noise(second: Floats, mean: Floats, rows: float, shocks: Floats) -> Floats:
    """Give unit shocks the covariance ``(diag(second) - mean mean') / rows`` of a mean over rows.

    `second`, `mean` (m,): second moments and means of disjointly supported variables, so that the covariance is of this
    form. `rows`: rows, or effective rows, averaged. `shocks` (draws, m): independent, with mean 0 and variance 1. The
    result has shape (draws, m).
    """
    # A square root of diag(s)(I - u u')diag(s), with u = mean / s and s^2 = second, is diag(s)(I - c u u') where
    # c = (1 - sqrt(1 - |u|^2)) / |u|^2, which tends to one half.
    root = np.sqrt(second)
    u = np.divide(mean, root, out=np.zeros(len(root)), where=root > 0)
    square = min(float(u @ u), 1.0)
    c = (1 - np.sqrt(1 - square)) / square if square > 1e-12 else 0.5
    return (shocks * root - c * (shocks @ u)[:, None] * mean) / np.sqrt(rows)


def shrunken(signal: Floats, variance: Floats, cut: float = 1.0) -> Floats:
    """The positive-part James-Stein rule per entry: ``signal (1 - cut variance / signal^2)+``."""
    square = signal**2
    keep = np.divide(square - cut * variance, square, out=np.zeros(len(square)), where=square > cut * variance)
    return signal * keep


@dataclass(frozen=True)
class Sizes:
    """Point estimate and interval of the size of a vector seen with noise."""

    # `plug_in`, `middle`, `low` and `high`: size of what was seen; size without the noise; ends of the interval.
    plug_in: float
    middle: float
    low: float
    high: float


def size_interval(signal: Floats, draws: Floats, size: Size, alpha: float, plain: Floats, hidden: Floats) -> Sizes:
    r"""Invert a parametric bootstrap of ``T = size(mu + Z)`` for ``size(mu)``.

    Along a direction u, ``T*(c) = size(c u + Z*)`` is stochastically increasing in c (Anderson's lemma). The low
    end is the c at which the observed size is the upper ``alpha / 2`` quantile of ``T*``, along the direction in
    which error of a given size is plainest; the high end that at which it is the lower one, along the direction in
    which error hides best; the middle the c at which it is the mean, along the shrunken signal. The high end is at
    least what was seen. If even noise alone would be seen larger, the noise is not to be trusted, and the high end
    is what was seen plus the upper quantile of the noise (the triangle inequality).

    `signal` (m,). `draws` (draws, m). `size`: a norm over the last axis. `plain`, `hidden` (m,): the two directions;
    `plain` may be all zero, and is then the signal.
    """
    seen = float(size(signal))

    def at(direction: Floats, summary: Callable[[Floats], float]) -> float:
        u = direction if np.any(direction) else signal if np.any(signal) else hidden
        return float(size(_rising(lambda c: summary(size(c * u + draws)) - seen) * u))

    low = at(plain, lambda t: float(np.quantile(t, 1 - alpha / 2)))
    high = at(hidden, lambda t: float(np.quantile(t, alpha / 2)))
    high = max(high, seen) if high > 0 else seen + float(np.quantile(size(draws), 1 - alpha / 2))
    middle = at(shrunken(signal, draws.var(axis=0)), lambda t: float(t.mean()))
    return Sizes(seen, min(max(middle, low), high), min(low, high), high)


def total_interval(signal: Floats, draws: Floats, size: Size, alpha: float) -> Sizes:
    """Interval for a size that adds up over entries.

    Error is plainest where it sits in few clear entries, and hides best spread in proportion to the noise.
    """
    spread = draws.var(axis=0)
    hidden = np.sqrt(spread) * np.where(signal < 0, -1.0, 1.0)
    return size_interval(signal, draws, size, alpha, shrunken(signal, spread, CLEAR), hidden)


def total_size(signal: Floats, draws: Floats, alpha: float) -> float:
    """The middle of `total_interval` of a sum of sizes alone.

    The middle is that of the interval unless an end is beyond it, which is tried at one point in place of finding the
    ends: the upper end is at least what was seen.
    """
    spread, seen = draws.var(axis=0), _total(signal)

    def excess(u: Floats, summary: Callable[[Floats], float]) -> float:
        return summary(np.abs(u + draws).sum(axis=1)) - seen

    shrunk, plain = (v if np.any(v) else signal for v in (shrunken(signal, spread), shrunken(signal, spread, CLEAR)))
    middle = _rising(lambda c: excess(c * shrunk, lambda t: float(t.mean()))) * _total(shrunk)
    at = plain * (middle / max(_total(plain), 1e-300))
    if middle <= seen and excess(at, lambda t: float(np.quantile(t, 1 - alpha / 2))) >= 0.0:
        return middle
    return total_interval(signal, draws, lambda x: np.abs(x).sum(axis=-1), alpha).middle


def _total(x: Floats) -> float:
    return float(np.abs(x).sum())


def peak_interval(signal: Floats, draws: Floats, alpha: float) -> Sizes:
    """Interval for the largest entry.

    Error is plainest where every entry has it, and hides best in the noisiest entry alone.
    """
    spread = draws.var(axis=0)
    sign = np.where(signal < 0, -1.0, 1.0)
    hidden = np.where(np.arange(len(signal)) == int(np.argmax(spread)), sign, 0.0)
    return size_interval(signal, draws, lambda x: np.abs(x).max(axis=-1), alpha, sign, hidden)


def _rising(excess: Callable[[float], float]) -> float:
    """The root of an increasing function on [0, inf), or 0 if it starts above zero."""
    if excess(0.0) >= 0.0:
        return 0.0
    top = 1.25  # a calibration error is at most 1
    while excess(top) < 0.0:
        top *= 2.0
        if top > 1e9:
            return top
    return float(crossing(excess, 0.0, top, xtol=1e-5, rtol=1e-5))  # far below the noise of a bootstrap
