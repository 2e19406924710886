"""Planning: how many rows a certificate of a given tightness takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, singledispatch
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed, checked_steps, choice, share
from calibrant.certify.closed import Judge
from calibrant.data.calls import takes_arrays
from calibrant.data.inputs import ALL_AS_ONE, ClustersCross
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.betting import JITTERED, gammas, solve_upper
from calibrant.stats.bounds import SLACK, expected_linear_cost, penalty_normaliser, penalty_width, upper_bets
from calibrant.stats.cells import summed
from calibrant.stats.clusters.bounds import Above, Pairs, bets, residuals
from calibrant.stats.clusters.clusters import PILOT, SHARE, Clusters
from calibrant.stats.jitter import jitter
from calibrant.views.population import OfClusters, OfTwoWay, Population, checked_bandwidth, shares
from calibrant.views.sample import everyone

Floats = NDArray[np.float64]

# ---- How many rows a certificate needs: expected bounds at a sample size not yet collected. Guides, not ----

MOST = 10**12
AVERAGING, LEARNING, BLOCKS = 2.5, 1.4, 8


def least_rows(shrinking: Callable[[float], float], gap: float, start: float = 1000.0) -> float:
    """About the least n at which a decreasing function of n falls to `gap`; infinity beyond 1e12.

    Bounds shrink about like ``n^(-1/2)``, so each step multiplies n by the squared ratio to the target.
    """
    n = start
    for _ in range(40):
        ratio = shrinking(n) / gap
        if abs(ratio - 1.0) < 0.005 or (n <= 20.0 and ratio < 1.0):
            break
        n = max(n * min(max(ratio**2, 0.05), 20.0), 20.0)
        if n > MOST:
            return float("inf")
    return n


def rounded_gap(s: Floats, mass: Floats, n: float, delta: float) -> float:
    """Expected upper bound of a calibrated score shown at levels `s` with probabilities `mass`.

    Plugs the expected cost of each level, its label-free choice included, into Theorem U.
    """
    keep = mass > 0
    s, rows = s[keep], np.maximum(n * mass[keep], 1.0)
    gamma, weights, paid = upper_bets(int(n), float(mass[keep] @ (s * (1.0 - s)) / mass[keep].sum()))
    bets = gamma[:, None]
    inner = (s > 0) & (s < 1)
    linear = expected_linear_cost(s, rows, bets)
    quadratic_penalty = np.full(linear.shape, np.inf)
    t, m = s[inner], np.rint(rows[inner])
    a = penalty_width(bets * np.sqrt(m * t * (1 - t)))
    quadratic_penalty[:, inner] = 0.5 * a + penalty_normaliser(t, m, bets, a / (m * t * (1 - t))) - SLACK
    phi = np.stack([linear.sum(axis=1), np.minimum(linear, quadratic_penalty).sum(axis=1)], axis=1).ravel()
    return solve_upper(phi, np.repeat(gamma, 2), weights, paid, delta)


def jittered_gap(mass: Floats, bandwidth: float, n: float, delta: float) -> float:
    """Expected upper bound of a calibrated, then jittered, score with probabilities `mass` per grid cell."""
    kernel = jitter(len(mass), bandwidth)
    t, bets = kernel.points, gammas(int(n))
    c = kernel.points
    positive, negative = n * kernel.spread(mass * c), n * kernel.spread(mass * (1 - c))
    noise = np.sqrt(n * kernel.spread_square(mass * c * (1 - c)))
    phi = []
    for g in bets:
        plus = positive * np.log1p(g * (1 - t)) + negative * np.log1p(-g * t)
        minus = positive * np.log1p(-g * (1 - t)) + negative * np.log1p(g * t)
        slope = np.log1p(g * (1 - t)) - np.log1p(-g * t) - np.log1p(-g * (1 - t)) + np.log1p(g * t)
        phi.append(-0.5 * (plus + minus).sum() + 0.5 * _mean_absolute(plus - minus, slope * noise).sum())
    return solve_upper(np.array(phi), bets, JITTERED.shares, int(n), delta)


def jittered_truth(mass: Floats, bandwidth: float) -> float:
    """Calibration error that the jitter itself causes in a calibrated score."""
    kernel = jitter(len(mass), bandwidth)
    t = kernel.points
    return float(np.abs(t * kernel.spread(mass) - kernel.spread(mass * t)).sum())


def lower_gap(moment: float, n: float, delta: float) -> float:
    """Expected shortfall of Theorem L: ``sqrt(2 v L / n)``, with what learning and averaging cost.

    Averaging e-values costs about `AVERAGING` nats; learning signs on early blocks makes rows worth less by `LEARNING`.
    Both are set by simulation, so that about half of the bounds reach the target where the error has one sign or
    changes it once; an error that alternates over narrow ranges takes several times as many.
    """
    nats = (-np.log(delta) + AVERAGING) * LEARNING
    return float(np.sqrt(2.0 * moment * nats * BLOCKS / ((BLOCKS - 1) * n)))


def _mean_absolute(mean: Floats, sd: Floats) -> Floats:
    """``E|N(mean, sd^2)|``."""
    from scipy.special import ndtr

    sd = np.maximum(np.abs(sd), 1e-300)
    z = mean / sd
    folded: Floats = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * z * z) + mean * (2 * ndtr(z) - 1)
    return folded


# ---- Planning: how many rows a certificate of a given tightness takes ----

Method = Literal["rounded", "jittered"]
PLAN_GRID = 1024
MOST_DRAWN = 20_000  # clusters drawn for a plan; from there on bounds shrink as the root of their number
# Clusters drawn to say how many decide: of one row each, or of several
ALONE, TOGETHER, FEWEST_DRAWN = 4_000, 1_000, 200
PAIRS = 50_000  # of clusters and values of the score, that those of several rows may have
RELAXED = 0.9  # of an upper end without the relaxation is that with it, which takes longer
CLUSTERS_PASSED = "clusters as given: of their sizes, with rows as much correlated"
WEIGHTED = "scores and weights distributed as given"


@takes_arrays
def rows_needed(
    gap: float,
    data: Predictions | Sketch | None = None,
    *,
    method: Method = "rounded",
    steps: int = 100,
    bandwidth: float = 2**-6,
    alpha: float = 0.05,
    side: Side = "upper",
    seed: int = 0,
) -> Estimate:
    r"""Plan a sample: rows for a certificate to come within `gap` of the truth, on average.

    Estimand: the least n at which the expected bound of a calibrated model (upper), or of a model whose signs of
    error are known (lower), is within `gap` of its error.

    Parameters
    ----------
    gap : float in (0, 1)
        In probability units: 0.02 is two points.
    data : Predictions or Sketch, optional
        Pilot rows whose *scores* set the distribution to plan for; uniform on [0, 1] if left out.
    method : {"rounded", "jittered"}
        The upper end planned for; the lower end is `raw_lower` either way.
    steps : int
    bandwidth : float
    alpha : float in (0, 0.5]
    side : {"upper", "lower", "two-sided"}
        Two-sided plans for both ends at ``alpha / 2`` each and returns the larger number.
    seed : int
        Draws clusters; not used by a number of rows.

    Returns
    -------
    Estimate
        ``value`` in rows, or in units of data that have them (``cluster`` says which), infinite beyond 1e12. The
        interval is trivial: a plan is not a certificate.

    Notes
    -----
    **Assumes.** The distribution of scores; normal approximations of counts.
    **Guarantee.** None: an average case. Individual bounds scatter by 10 to 15% of the gap.
    **Method.** Expected, label-free costs of every level are put into Theorem U and solved for n. A jitter's own error
    is not counted in the gap. Lower: ``sqrt(2 v L / n)`` with v the mean of ``p (1 - p)`` and L raised by what learning
    signs and averaging e-values cost, set by simulation. Clusters of the data are drawn with replacement, each with a
    random sign, and certified; the pilot clusters that leave are added.
    **Cost.** Milliseconds.
    **Reads.** Nothing, or the sketch's scores.

    Examples
    --------
    >>> import calibrant as cal
    >>> bool(1e4 < cal.certify.rows_needed(0.02, method="jittered").value < 2e4)
    True
    """
    gap = share("gap", gap, hint="such as 0.02 for two points")
    choice("method", method, get_args(Method))
    low_share, high_share = shares(alpha, side)
    plan = _Plan() if data is None else _plan_of(everyone(data, seed))
    above, below = plan.gaps(method, (steps, bandwidth), (low_share, high_share), checked_seed(seed))
    needed = max(least_rows(each, gap) for each, spent in ((above, high_share), (below, low_share)) if spent)
    return Estimate(
        method="certify.rows_needed",
        value=float(np.ceil(needed + plan.pilots(needed))),
        unit=plan.unit,
        n=0 if data is None else int(data.n),
        interval=Interval(low=0.0, high=float("inf"), level=1.0 - alpha, guarantee="asymptotic"),
        assumes=plan.assumes,
        settings={"gap": gap, "method": method, "steps": steps, "bandwidth": bandwidth, "side": side},
    )


def level_masses(mass: Floats, steps: int) -> tuple[Floats, Floats]:
    """Shown values and their probabilities, from masses on the planning grid."""
    middle = (np.arange(len(mass)) + 0.5) / len(mass)
    level = np.floor(middle * steps + 0.5).astype(np.int64)
    return np.arange(steps + 1) / steps, np.bincount(level, mass, steps + 1).astype(np.float64)


def _lower_gap(mass: Floats, delta: float) -> Callable[[float], float]:
    middle = (np.arange(len(mass)) + 0.5) / len(mass)
    moment = float((mass * middle * (1 - middle)).sum())
    return lambda n: lower_gap(moment, n, delta)


class Need(NamedTuple):
    """How many times as many rows would decide: about so many, or at least."""

    times: float
    at_least: bool

    def rows(self, n: int) -> int:
        """How many rows that is, of a log of n rows."""
        return math.ceil(self.times * n)


def rows_to_decide(
    population: Population,
    results: tuple[float, float, float],
    limit: float,
    steps: int,
    spend: tuple[float, float],
    judge: Judge,
) -> Need | None:
    """How many times as many rows of this population would decide a limit.

    Where the estimate is clear of the limit by its own noise: about so many, if it is off as estimated. They are
    planned as for an error that is easy to learn, and no fewer than at which the end found now comes to the limit, if
    its distance from the estimate shrinks as ``n^(-1/2)``: so an error that alternates is planned for as it is found.
    Elsewhere, at least as many as show a calibrated score to be within, if that is the side of the estimate. None where
    it is not, where those are fewer than there are, or beyond 1e12: the estimate is too close to the limit to say. None
    of clusters that cross. `results` are its error,
    or the size of its gap: at least, as estimated, and at most; `spend` shows it over the limit, and within.

    Of clusters, or rows that weigh: the same, with the upper end of clusters drawn from these with random signs, as of
    a calibrated score, which comes to the limit as ``m^(-1/2)``, and the lower end by the clusters' squares.
    """
    least, off, most = results
    room, within, plan = abs(limit - off), off < limit, _plan_of(population)
    now = most - off if within else off - least
    clear = room > max(plan.noise(steps, judge), 1e-4)
    if not clear and not within:
        return None  # what shows a calibrated score to be within is no plan for one that is estimated over
    aim = room if clear else limit
    planned = plan.times(within, aim, spend[1] if within else spend[0], steps, judge)
    times = max(planned, (now / room) ** 2 if clear else 0.0)
    return Need(times, not clear) if 1.0 < times < np.inf else None


# ---- What a plan reads of a population: uniform scores, independent rows, or clusters ----

Gaps = tuple[Callable[[float], float], Callable[[float], float]]  # from above and from below, of so many rows


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Independent rows, by the probabilities of their scores."""

    assumes: str = "uniform scores"
    unit: str = "rows"

    @cached_property
    def mass(self) -> Floats:
        """The probabilities of the scores on the planning grid."""
        return np.full(PLAN_GRID, 1.0 / PLAN_GRID)

    def gaps(self, method: Method, display: tuple[int, float], spend: tuple[float, float], _: int) -> Gaps:
        """The expected upper bound of a calibrated score, and the expected shortfall from below."""
        (steps, bandwidth), below = display, _lower_gap(self.mass, spend[0])
        if method == "rounded":
            s, shown = level_masses(self.mass, checked_steps(steps))
            return lambda n: rounded_gap(s, shown, n, spend[1]), below
        h = checked_bandwidth(bandwidth, len(self.mass))
        own = jittered_truth(self.mass, h)
        return lambda n: jittered_gap(self.mass, h, n, spend[1]) - own, below

    def pilots(self, _: float) -> float:
        """How many more it takes, which leave."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class _OfRows(_Plan):
    """Independent rows at hand."""

    population: Population

    @cached_property
    def mass(self) -> Floats:
        rows = self.population.cells.totals.sum(axis=1).reshape(PLAN_GRID, -1).sum(axis=1).astype(np.float64)
        return np.asarray(rows / rows.sum())

    def noise(self, steps: int, judge: Judge) -> float:
        """How far the estimate may be from the truth: two standard errors, and of an error its bias.

        The debiased plug-in is too high by up to 0.4 standard errors of every shown value, if the score is calibrated,
        and too low by somewhat less, if errors are of the size of that noise.
        """
        variance, of = self._variance(steps)
        noise = 2.0 * float(np.sqrt(variance.sum()))
        if judge == "error":
            noise += 0.4 * float(np.sqrt(variance).sum())
        return noise / of

    def _variance(self, steps: int) -> tuple[Floats, float]:
        """The variance of each shown value's sum, and how much there is."""
        shown = self.population.judged(steps)
        rows = shown.cells.totals.sum(axis=1)
        return rows * shown.cells.low * (1.0 - shown.cells.low), float(self.population.n)

    def times(self, within: bool, aim: float, delta: float, steps: int, judge: Judge) -> float:
        """How many times as many it takes until the end that decides is off by no more."""
        n = self.population.n
        if judge == "gap":
            shrinking = _signed_gap(self.mass, delta if within else delta / 2.0)
        elif within:
            shown = self.population.judged(steps).cells
            shrinking = partial(rounded_gap, shown.low, shown.totals.sum(axis=1) / n, delta=delta)
        else:
            shrinking = _lower_gap(self.mass, delta)
        return least_rows(shrinking, aim, max(n / 2.0, 20.0)) / n


class _OfClusters(_OfRows):
    """The same of clusters, or of rows that weigh."""

    population: OfClusters

    @property
    def clusters(self) -> Clusters:
        """Whose rows these are."""
        return self.population.clusters

    def pilots(self, needed: float) -> float:
        return min(needed / (SHARE - 1), PILOT)

    def gaps(self, method: Method, display: tuple[int, float], spend: tuple[float, float], seed: int) -> Gaps:
        steps = checked_steps(display[0])
        if method != "rounded":
            raise NotComputable(
                f"method={method!r} is proved for independent rows of equal weight: use method='rounded'"
            )
        q, largest = Pairs.of(self.population.as_shown(steps).tallies[0]), self.clusters.largest
        moment = float((residuals(self.clusters)[self.clusters.certified] ** 2).mean())
        mean = self.clusters.total / len(q.size)

        def above(m: float) -> float:
            count = min(max(round(m), 2), MOST_DRAWN)
            end = Above.of_pairs(q.drawn(count, seed), bets(count, largest)).limit(spend[1])
            return end * float(np.sqrt(count / m))

        return above, lambda m: lower_gap(moment, m, spend[0]) / mean

    def noise(self, steps: int, judge: Judge) -> float:
        if judge == "gap":  # rows of one cluster err together
            return 2.0 * float(np.sqrt(_squares(self.clusters))) / max(self.clusters.total, 1e-300)
        return super().noise(steps, judge)

    def _variance(self, steps: int) -> tuple[Floats, float]:
        tallies = self.population.judged(steps).tallies[0]
        return tallies.squares, max(tallies.clusters.total, 1e-300)

    def times(self, within: bool, aim: float, delta: float, steps: int, judge: Judge) -> float:
        if self.clusters.total <= 0.0:
            return np.inf
        if judge == "gap":
            spent = delta if within else delta / 2.0
            width = float(np.sqrt(2.0 * _squares(self.clusters) * -np.log(spent))) / self.clusters.total
        elif within:
            width = self._above(steps, delta)
        else:  # the shortfall expected of the lower end, of so many clusters as there are
            m = int(np.count_nonzero(self.clusters.certified))
            width = lower_gap(_squares(self.clusters) / m, m, delta) * m / self.clusters.total
        return (width / aim) ** 2

    def _above(self, steps: int, delta: float) -> float:
        """The upper end expected of a calibrated score, of so many clusters; above 1 where these are few.

        It shrinks as the root of their number, so that a set of another size shows it too.
        """
        q = Pairs.of(self.population.judged(steps).tallies[0])
        drawn = ALONE if q.apart else max(min(TOGETHER, PAIRS * len(q.size) // max(len(q.cluster), 1)), FEWEST_DRAWN)
        end = Above.plain(q.drawn(drawn, 0), bets(drawn, self.clusters.largest)).limit(delta)
        return end * float(np.sqrt(drawn / len(q.size))) * (1.0 if q.apart else RELAXED)


class _TwoWay(_OfClusters):
    """Clusters that cross, of which there is no plan."""

    def gaps(self, *_: object, **__: object) -> Gaps:
        raise ClustersCross(ALL_AS_ONE.format(*self.clusters.columns))

    def noise(self, *_: object, **__: object) -> float:
        return np.inf

    def times(self, *_: object, **__: object) -> float:
        return np.inf


@singledispatch
def _plan_of(q: Population) -> _OfRows:
    return _OfRows(assumes="scores distributed as given", population=q)


@_plan_of.register
def _of_clusters(q: OfClusters) -> _OfRows:
    alone = len(q.clusters.cluster) == q.clusters.count
    assumes, unit = (WEIGHTED, "rows") if alone else (CLUSTERS_PASSED, "clusters")
    kind = _TwoWay if isinstance(q, OfTwoWay) else _OfClusters
    return kind(assumes=assumes, unit=unit, population=q)


def _squares(clusters: Clusters) -> float:
    """The sum of the squares of the certified clusters' sums of ``w (y - p)``."""
    own = summed(clusters.cluster, clusters.weight * (clusters.y - clusters.p), clusters.count)
    return float((own[clusters.certified] ** 2).sum())


def _signed_gap(mass: Floats, delta: float) -> Callable[[float], float]:
    """The distance expected of an end of the gap of n rows from the gap: binomial, or by bets if that is less."""
    from scipy.special import ndtri

    middle = (np.arange(len(mass)) + 0.5) / len(mass)
    mean, moment = float(mass @ middle), float(mass @ (middle * (1 - middle)))
    square = min(float(ndtri(delta)) ** 2 * mean * (1.0 - mean), -2.0 * moment * float(np.log(delta)))
    return lambda n: float(np.sqrt(square / n))
