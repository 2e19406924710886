"""Planning: how many rows a certificate of a given tightness takes."""

from __future__ import annotations

import math
from collections.abc import Callable
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
from calibrant.views.population import Population, checked_bandwidth, shares
from calibrant.views.sample import everyone

Floats = NDArray[np.float64]

# ---- How many rows a certificate needs: expected bounds at a sample size not yet collected. Guides, not ----

MOST = 10**12
AVERAGING, LEARNING = 2.5, 1.4


def least_rows(shrinking: Callable[[float], float], gap: float, start: float = 1000.0) -> float:
    """Return about the least n at which a decreasing function of n falls to `gap`; infinity beyond 1e12.

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


def lower_gap(moment: float, n: float, delta: float, blocks: int = 8) -> float:
    """Expected shortfall of Theorem L: ``sqrt(2 v L / n)``, with what learning and averaging cost.

    Averaging e-values costs about `AVERAGING` nats; learning signs on early blocks makes rows worth less by `LEARNING`.
    Both are set by simulation, so that about half of the bounds reach the target where the error has one sign or
    changes it once; an error that alternates over narrow ranges takes several times as many.
    """
    nats = (-np.log(delta) + AVERAGING) * LEARNING
    return float(np.sqrt(2.0 * moment * nats * blocks / ((blocks - 1) * n)))


def _mean_absolute(mean: Floats, sd: Floats) -> Floats:
    """Return ``E|N(mean, sd^2)|``."""
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
    population = None if data is None else everyone(data, seed)
    if population is not None and population.two_way:
        raise ClustersCross(ALL_AS_ONE.format(*population.diagonals[0].columns))
    clusters = None if population is None else population.clusters
    if population is not None and clusters is not None:
        above, below = _cluster_gaps(
            population, method, checked_steps(steps), (low_share, high_share), checked_seed(seed)
        )
    else:
        mass = _masses(population)
        above, below = _upper_gap(mass, method, steps, bandwidth, high_share), _lower_gap(mass, low_share)
    alone = clusters is None or len(clusters.cluster) == clusters.count
    planned = "scores distributed as given" if clusters is None else WEIGHTED if alone else CLUSTERS_PASSED
    needed = [least_rows(each, gap) for each, options in ((above, high_share), (below, low_share)) if options]
    return Estimate(
        method="certify.rows_needed",
        value=float(np.ceil(max(needed) + (0.0 if clusters is None else min(max(needed) / (SHARE - 1), PILOT)))),
        unit="rows" if alone else "clusters",
        n=0 if data is None else int(data.n),
        interval=Interval(low=0.0, high=float("inf"), level=1.0 - alpha, guarantee="asymptotic"),
        assumes="uniform scores" if data is None else planned,
        settings={"gap": gap, "method": method, "steps": steps, "bandwidth": bandwidth, "side": side},
    )


def _cluster_gaps(
    population: Population, method: Method, steps: int, spend: tuple[float, float], seed: int
) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """The expected upper bound of a calibrated score by clusters, and the expected shortfall from below."""
    clusters, tallies = population.clusters, population.as_shown(steps).tallies
    if clusters is None or not tallies or method != "rounded":
        raise NotComputable(f"method={method!r} is proved for independent rows of equal weight: use method='rounded'")
    q, largest = Pairs.of(tallies[0]), clusters.largest
    moment, mean = float((residuals(clusters)[clusters.certified] ** 2).mean()), clusters.total / len(q.size)

    def above(m: float) -> float:
        count = min(max(round(m), 2), MOST_DRAWN)
        return Above.of_pairs(q.drawn(count, seed), bets(count, largest)).limit(spend[1]) * float(np.sqrt(count / m))

    return above, lambda m: lower_gap(moment, m, spend[0]) / mean


def _masses(population: Population | None) -> Floats:
    """Return probabilities of the score on the planning grid."""
    if population is None:
        return np.full(PLAN_GRID, 1.0 / PLAN_GRID)
    rows: Floats = population.cells.totals.sum(axis=1).reshape(PLAN_GRID, -1).sum(axis=1).astype(np.float64)
    masses: Floats = rows / rows.sum()
    return masses


def level_masses(mass: Floats, steps: int) -> tuple[Floats, Floats]:
    """Return shown values and their probabilities, from masses on the planning grid."""
    middle = (np.arange(len(mass)) + 0.5) / len(mass)
    level = np.floor(middle * steps + 0.5).astype(np.int64)
    return np.arange(steps + 1) / steps, np.bincount(level, mass, steps + 1).astype(np.float64)


def _upper_gap(mass: Floats, method: Method, steps: int, bandwidth: float, delta: float) -> Callable[[float], float]:
    if method == "rounded":
        s, shown = level_masses(mass, checked_steps(steps))
        return lambda n: rounded_gap(s, shown, n, delta)
    h = checked_bandwidth(bandwidth, len(mass))
    own = jittered_truth(mass, h)
    return lambda n: jittered_gap(mass, h, n, delta) - own


def _judged_gap(population: Population, steps: int, delta: float) -> Callable[[float], float]:
    shown = population.judged(steps).cells
    mass = shown.totals.sum(axis=1) / population.n
    return lambda n: rounded_gap(shown.low, mass, n, delta)


def _lower_gap(mass: Floats, delta: float) -> Callable[[float], float]:
    middle = (np.arange(len(mass)) + 0.5) / len(mass)
    moment = float((mass * middle * (1 - middle)).sum())
    return lambda n: lower_gap(moment, n, delta)


class Need(NamedTuple):
    """How many times as many rows would decide: about so many, or at least."""

    times: float
    at_least: bool

    def rows(self, n: int) -> int:
        """Return them, of a log of n rows."""
        return math.ceil(self.times * n)


def rows_to_decide(
    population: Population,
    results: tuple[float, float, float],
    limit: float,
    steps: int,
    spend: tuple[float, float],
    judge: Judge,
) -> Need | None:
    """Return how many times as many rows of this population would decide a limit.

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
    if population.two_way:
        return None
    least, off, most = results
    room, within = abs(limit - off), off < limit
    now = most - off if within else off - least
    clear = room > max(_noise(population, steps, judge), 1e-4)
    if not clear and not within:
        return None  # what shows a calibrated score to be within is no plan for one that is estimated over
    if population.clusters is not None:
        if clear and not within:
            width, gap = _below_by_clusters(population, spend[0], judge), room
        else:
            width, gap = _above_by_clusters(population, steps, spend[1], judge), room if clear else limit
        times = max((width / gap) ** 2, (now / room) ** 2 if clear else 0.0)
        return Need(times, not clear) if 1.0 < times < np.inf else None
    mass = _masses(population)
    above = _signed_gap(mass, spend[1]) if judge == "gap" else _judged_gap(population, steps, spend[1])
    if not clear:
        needed = least_rows(above, limit, max(population.n / 2.0, 20.0)) / population.n
        return Need(needed, True) if 1.0 < needed < np.inf else None
    below = _signed_gap(mass, spend[0] / 2.0) if judge == "gap" else _lower_gap(mass, spend[0])
    planned = least_rows(above if within else below, room, max(population.n / 2.0, 20.0)) / population.n
    times = max(planned, (now / room) ** 2)
    return Need(times, False) if 1.0 < times < np.inf else None


def _noise(population: Population, steps: int, judge: Judge) -> float:
    """Return how far the estimate may be from the truth: two standard errors, and of an error its bias.

    The debiased plug-in is too high by up to 0.4 standard errors of every shown value, if the score is calibrated, and
    too low by somewhat less, if errors are of the size of that noise.
    """
    if judge == "gap" and population.clusters is not None:  # rows of one cluster err together
        return 2.0 * float(np.sqrt(_squares(population.clusters))) / max(population.clusters.total, 1e-300)
    shown = population.judged(steps)
    if shown.tallies:
        variance, of = shown.tallies[0].squares, max(shown.tallies[0].clusters.total, 1e-300)
    else:
        rows, of = shown.cells.totals.sum(axis=1), float(population.n)
        variance = rows * shown.cells.low * (1.0 - shown.cells.low)
    noise = 2.0 * float(np.sqrt(variance.sum()))
    if judge == "error":
        noise += 0.4 * float(np.sqrt(variance).sum())
    return noise / of


def _above_by_clusters(population: Population, steps: int, delta: float, judge: Judge) -> float:
    """The upper end expected of a calibrated score, of so many clusters; above 1 where these are few.

    It shrinks as the root of their number, so that a set of another size shows it too.
    """
    clusters, tallies = population.clusters, population.judged(steps).tallies
    if clusters is None or not tallies or clusters.total <= 0.0:
        return np.inf
    q = Pairs.of(tallies[0])
    if judge == "gap":
        return _signed_by_clusters(clusters, delta)
    drawn = ALONE if q.apart else max(min(TOGETHER, PAIRS * len(q.size) // max(len(q.cluster), 1)), FEWEST_DRAWN)
    end = Above.plain(q.drawn(drawn, 0), bets(drawn, clusters.largest)).limit(delta)
    return end * float(np.sqrt(drawn / len(q.size))) * (1.0 if q.apart else RELAXED)


def _below_by_clusters(population: Population, delta: float, judge: Judge) -> float:
    """The shortfall expected of the lower end, of so many clusters as there are."""
    clusters = population.clusters
    if clusters is None or clusters.total <= 0.0:
        return np.inf
    if judge == "gap":
        return _signed_by_clusters(clusters, delta / 2.0)
    m = int(np.count_nonzero(clusters.certified))
    return lower_gap(_squares(clusters) / m, m, delta) * m / clusters.total


def _signed_by_clusters(clusters: Clusters, delta: float) -> float:
    """The distance expected of an end of the gap from the gap, of so many clusters as there are."""
    return float(np.sqrt(2.0 * _squares(clusters) * -np.log(delta))) / clusters.total


def _squares(clusters: Clusters) -> float:
    """The sum of the squares of the certified clusters' sums of ``w (y - p)``."""
    return float(
        (
            summed(clusters.cluster, clusters.weight * (clusters.y - clusters.p), clusters.count)[clusters.certified]
            ** 2
        ).sum()
    )


def _signed_gap(mass: Floats, delta: float) -> Callable[[float], float]:
    """The distance expected of an end of the gap of n rows from the gap: binomial, or by bets if that is less."""
    from scipy.special import ndtri

    middle = (np.arange(len(mass)) + 0.5) / len(mass)
    mean, moment = float(mass @ middle), float(mass @ (middle * (1 - middle)))
    square = min(float(ndtri(delta)) ** 2 * mean * (1.0 - mean), -2.0 * moment * float(np.log(delta)))
    return lambda n: float(np.sqrt(square / n))
