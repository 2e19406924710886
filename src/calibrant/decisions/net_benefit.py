"""Net benefit: what acting above a threshold is worth, and what miscalibration costs of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant import arguments
from calibrant.arguments import checked_alpha, checked_seed, names, share
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sketch import Sketch
from calibrant.decisions.ladder import Ladder, ladder
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Interval
from calibrant.stats.cells import summed
from calibrant.stats.decisions.net_benefit import Sums, widths
from calibrant.stats.decisions.regret import Above, Below, Lots, below
from calibrant.views.points import Points, parts, points, weights_of
from calibrant.views.population import QUANTISATION
from calibrant.views.sample import keyed

Floats = NDArray[np.float64]

EFFECTIVE = 50  # clusters from which on a band by clusters drawn again holds: of 20 it missed 6 % of data sets at 5 %
ROWS, EXPECTED = 100, 10  # rows on either side of a threshold that bands need; of them events, and others, as expected
HUNDREDTHS = np.arange(1, 100) / 100
DRAWS = 4000  # of a normal vector, which set how much wider a band is than an interval, at least
STREAM = 0x0DEC
EVERYONE = "everyone"
COLUMNS = (
    "group",
    "threshold",
    "net_benefit",
    "low",
    "high",
    "treat_all",
    "over_all",
    "over_all_low",
    "over_all_high",
    "rows",
    "guarantee",
)
Band = tuple[Floats, Floats, Floats]


@takes_arrays
def net_benefit(data: Predictions | Sketch, *, threshold: float, alpha: float = 0.05, seed: int = 0) -> Estimate:
    r"""Net benefit of acting where the score is at least a threshold, certified.

    Estimand: ``P(p >= t, Y = 1) - P(p >= t, Y = 0) t / (1 - t)``: true positives, less false positives at the price
    that makes t the point where acting and not acting are worth the same. In true positives a row.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights are used; where the data name clusters, clusters of these are independent.
    threshold : float in (0, 1)
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the truth; half of it an end.
    seed : int
        Puts rows, or clusters, in a random order, and draws pilot clusters.

    Returns
    -------
    Estimate
        Larger is better; 0 is acting for nobody. ``settings`` hold ``treat_all``, the net benefit of acting for
        everyone, ``rows`` at or above the threshold, and ``acts_from``: of a sketch the next score that its counts can
        tell from those below, as of `measure.regret`.

    Raises
    ------
    NotComputable
        Nobody is at or above the threshold, or everyone is one cluster.

    Notes
    -----
    **Assumes.** Independent rows from one distribution, or independent clusters, weights that do not depend on
    outcomes; t chosen without these outcomes.
    **Guarantee.** Finite-sample, at every number of rows or clusters. Of clusters it is about the net benefit in which
    none weighs more than the largest pilot cluster; the value is that of all rows as they are.
    **Method.** Bets on rows, or clusters, in a random order, block after block (documentation: net benefit).
    **Cost.** One pass over the rows, then some ms. **Reads.** The sketch; rows, where they have clusters or weights.

    References
    ----------
    A. J. Vickers, E. B. Elkin (2006), Decision curve analysis, doi:10.1177/0272989X06295361. I. Waudby-Smith, A. Ramdas
    (2024), Estimating means of bounded random variables by betting, doi:10.1093/jrsssb/qkad009.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.predictions([1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1])
    >>> cal.measure.net_benefit(data, threshold=0.5).value  # (1 - 1 * 1) / 4
    0.0
    """
    inputs = data if isinstance(data, Points) else checked_data(data, Predictions, Sketch)
    t = share("threshold", threshold, hint="such as 0.2")
    level, seed = 1.0 - checked_alpha(alpha), checked_seed(seed)
    at, q = ladder(inputs, t, seed)
    seen = Seen.of(inputs, at)
    if not seen.rows:
        raise NotComputable(f"no score is {t:g} or more: nobody is acted for")
    low, high = (v / (1.0 - t) for v in at.gains(False, seed).limits(alpha / 2.0))
    return Estimate(
        method="measure.net_benefit",
        value=seen.acting,
        unit="",
        n=seen.n,
        interval=Interval(
            low=min(low, seen.acting), high=max(high, seen.acting), level=level, guarantee="finite-sample"
        ),
        assumes=q.assumes,
        settings={
            "threshold": t,
            "acts_from": at.acts_from,
            "treat_all": seen.everyone,
            "rows": seen.rows,
            **({} if isinstance(q, Points) else q.reported),
            "seed": seed,
        },
    )


@dataclass(frozen=True)
class Seen:
    """What acting at a threshold was worth to the rows at hand, of the weights that they have."""

    # `acting` and `everyone`: net benefit of acting at the threshold, and in any case.
    acting: float
    everyone: float
    # `rows` and `n`: acted on, and all.
    rows: int
    n: int

    @classmethod
    def of(cls, data: Points | Predictions | Sketch, at: Ladder) -> Seen:
        """Count; of a sketch's cells as the ladder does."""
        if isinstance(data, Predictions):
            on, weight = data.p >= at.threshold - QUANTISATION, weights_of(data)
            event, n, rows = data.y == 1, data.n, int(np.count_nonzero(on))
            classes = (on & event, on & ~event, ~on & event, ~on & ~event)
            mass = [float(weight[c].sum()) for c in classes]
        else:
            (rows, events), (left, missed) = at.acted, at.left
            n, mass = rows + left, [float(v) for v in (events, rows - events, missed, left - missed)]
        true, false, missing, spared = mass
        odds, total = at.threshold / (1.0 - at.threshold), sum(mass)
        every = (true + missing - (false + spared) * odds) / total
        return cls((true - false * odds) / total, every, rows, n)


@takes_arrays
def decision_curve(
    data: Predictions | Sketch,
    *,
    thresholds: Sequence[float] | None = None,
    by: Iterable[str] | str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Curve:
    r"""Draw net benefit against the threshold, and acting for everyone and nobody, with simultaneous bands.

    Estimand: that of `measure.net_benefit`, for every threshold t; and how much more it is than acting for everyone.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, bands are by these clusters.
    thresholds : float or sequence of float in (0, 1), optional
        By default whole percentages. Those are left out that have under 100 rows, or under 10 events or 10 others as
        expected, on either side of them.
    by : str or sequence of str, optional
        Covariates whose levels are the groups; each has a curve of its own.
    alpha : float in (0, 0.5]
        Error probability of a band, of one group.
    seed : int
        Draws what widens the bands: normal numbers, and clusters again; of few clusters their order, and pilot
        clusters.

    Returns
    -------
    Curve
        Columns: ``group`` (``"everyone"`` without `by`), ``threshold``, ``net_benefit`` with ``low`` and ``high``;
        ``treat_all``, the net benefit of acting for everyone (for nobody it is 0); ``over_all``, how much more the
        score gains than that, with ``over_all_low`` and ``over_all_high``; ``rows`` at or above the threshold;
        ``guarantee`` of its group's bands. The score is worth using where both ``low`` and ``over_all_low`` are above
        0. ``settings["left_out"]`` counts thresholds.

    Raises
    ------
    NotComputable
        No threshold has so many rows.

    Notes
    -----
    **Assumes.** As `measure.net_benefit`; thresholds and groups chosen without looking at outcomes.
    **Guarantee.** Asymptotic; each band holds at all thresholds of a group at once, groups each by itself. At 5% it
    missed in at most 5% of simulated data sets, of rows and of 50 to 300 clusters. Of fewer than 50 clusters, counted
    as so many of equal weight, it is finite-sample: that of `measure.net_benefit`, alpha shared by all thresholds
    asked.
    **Method.** Covariance of the means at all thresholds, by clusters where there are any; it reaches as far as holds
    at all of them for clusters drawn again (studentised), and for normal numbers with that correlation.
    **Cost.** One pass over the rows, then 2,000 resamples of at most 2,000 clusters or bundles of them.
    **Reads.** Rows, or the sketch's cells at their mean score.

    References
    ----------
    A. J. Vickers, E. B. Elkin (2006), doi:10.1177/0272989X06295361. K. F. Kerr, M. D. Brown, K. Zhu, H. Janes (2016),
    doi:10.1200/JCO.2015.65.5654.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=5000)
    >>> curve = cal.diagnose.decision_curve(cal.predictions(rng.uniform(size=5000) < p, p), thresholds=[0.2, 0.5])
    >>> [round(v, 2) for v in curve.columns["net_benefit"]], all(v > 0 for v in curve.columns["over_all_low"])
    ([0.39, 0.24], True)
    """
    level, seed = checked_alpha(alpha), checked_seed(seed)
    at = HUNDREDTHS if thresholds is None else np.array(arguments.thresholds("thresholds", thresholds))
    rows: list[tuple[object, ...]] = []
    left_out = 0
    for name, part in _parts(data, names("by", by)):
        reported = list(_rows(name, part, at, level, seed))
        left_out += len(at) - len(reported)
        rows += reported
    if not rows:
        raise NotComputable(
            f"no threshold has {ROWS} rows on both sides, {EXPECTED} events and {EXPECTED} others expected among each"
        )
    return Curve(
        method="diagnose.decision_curve",
        columns=dict(zip(COLUMNS, map(tuple, zip(*rows, strict=True)), strict=True)),
        settings={"alpha": level, "level": 1.0 - level, "left_out": left_out, "least_rows": ROWS, "seed": seed},
    )


def _parts(data: Predictions | Sketch, by: tuple[str, ...]) -> Iterator[tuple[str, Predictions | Sketch | Points]]:
    if not by:
        yield EVERYONE, checked_data(data, Predictions, Sketch)
    else:
        yield from ((keyed(name), part) for name, part in parts(data, by))


def _rows(
    name: str, part: Predictions | Sketch | Points, at: Floats, alpha: float, seed: int
) -> Iterator[tuple[object, ...]]:
    q = points(part)
    enough = _enough(q, at)
    if not enough.any():
        return
    worth = Worth.of(q, at[enough])
    if q.effective_clusters < EFFECTIVE:
        guarantee = "finite-sample"
        acting, more = _certified(part, worth, at[enough], alpha / len(at), seed)
    else:
        guarantee = "asymptotic"
        acting, more = (_band(worth, v, alpha, seed) for v in (worth.acting, worth.acting - worth.everyone))
    all_in = worth.means(worth.everyone)
    for i, t in enumerate(at[enough]):
        ends = (float(v[i]) for band in (acting, (all_in,), more) for v in band)
        yield (name, float(t), *ends, int(worth.rows[i]), guarantee)


def _certified(
    part: Predictions | Sketch | Points, worth: Worth, at: Floats, alpha: float, seed: int
) -> tuple[Band, Band]:
    """Means with certified ends, each threshold at its share of alpha: of acting, and over acting on everyone.

    All thresholds that were asked share alpha, and not those alone that have rows enough, which scores decide.
    """
    ladders = [ladder(part, float(t), seed)[0] for t in at]
    means = worth.means(worth.acting), worth.means(worth.acting - worth.everyone)
    out: list[Band] = []
    for over_all, mean in zip((False, True), means, strict=True):
        ends = np.array([rung.gains(over_all, seed).limits(alpha / 2.0) for rung in ladders]) / (1.0 - at)[:, None]
        out.append((mean, np.minimum(ends[:, 0], mean), np.maximum(ends[:, 1], mean)))
    return out[0], out[1]


def _enough(q: Points, at: Floats) -> NDArray[np.bool_]:
    """Which thresholds have rows, and expected rows of both outcomes, enough on both sides: by scores alone."""
    place, size = np.searchsorted(at - QUANTISATION, q.p, side="right"), len(at) + 1
    counts = [summed(place, v, size) for v in (q.times, q.times * q.p, q.times * (1.0 - q.p))]
    below = np.array([np.cumsum(v)[:-1] for v in counts])
    above = np.array([v.sum() for v in counts])[:, None] - below
    least = np.array([ROWS, EXPECTED, EXPECTED])[:, None]
    result: NDArray[np.bool_] = ((below >= least) & (above >= least)).all(axis=0)
    return result


def _band(worth: Worth, value: Floats, alpha: float, seed: int) -> Band:
    """Means with a simultaneous band: none where the value does not vary."""
    square = worth.square(value)
    error = np.sqrt(np.diag(square))
    free = error > 0.0
    below = above = 0.0
    if free.any():
        rng = np.random.default_rng([seed, STREAM])
        correlation = square[np.ix_(free, free)] / np.outer(error[free], error[free])
        values, vectors = np.linalg.eigh(correlation)
        drawn = rng.normal(size=(DRAWS, len(values)))
        peaks = np.abs(drawn @ (vectors * np.sqrt(np.maximum(values, 0.0))).T).max(axis=1)
        below, above = widths(worth.won(value[:, free]), float(np.quantile(peaks, 1.0 - alpha)), alpha, rng)
    mean, least, most = worth.means(value), value.min(axis=0), value.max(axis=0)
    return mean, np.maximum(mean - below * error, least), np.minimum(mean + above * error, most)


@dataclass(frozen=True)
class Worth:
    """What acting is worth at each threshold, by class: rows between the same thresholds with the same outcome."""

    mass: Floats  # shape (c,): weights of the rows of each class
    # Shape (u, c): weights by cluster and class; of independent rows the root of each class's sum of squares, on the
    # diagonal.
    sums: Floats
    count: float  # clusters, or rows
    # `acting` and `everyone`, shape (c, t): of acting at or above the threshold, and in any case: 1 for a case, minus
    # `t / (1 - t)` for another.
    acting: Floats
    everyone: Floats
    rows: Floats  # shape (t,): at or above each threshold
    rows_alone: bool  # no clusters: `sums` is diagonal

    @classmethod
    def of(cls, q: Points, thresholds: Floats) -> Worth:
        """Value acting at increasing thresholds."""
        classes = 2 * (len(thresholds) + 1)
        at = 2 * np.searchsorted(thresholds - QUANTISATION, q.p, side="right") + q.y
        mass, rows = summed(at, q.mass, classes), summed(at, q.times, classes)
        sums, count = q.by_class(at, classes)
        place, event = np.arange(classes) // 2, np.arange(classes) % 2 == 1
        above = place[:, None] > np.arange(len(thresholds))[None, :]
        everyone = np.where(event[:, None], 1.0, -(thresholds / (1.0 - thresholds))[None, :])
        return cls(mass, sums, count, np.where(above, everyone, 0.0), everyone, rows @ above, q.cluster is None)

    def won(self, value: Floats) -> Sums:
        """What clusters, or rows of a class, add to the means; weighted rows as so many of equal weight."""
        if not self.rows_alone:
            return Sums(self.sums @ value, self.sums.sum(axis=1), np.ones(len(self.sums)), self.count)
        is_kept = self.mass > 0.0
        each = np.diag(self.sums)[is_kept] ** 2 / self.mass[is_kept]
        return Sums(each[:, None] * value[is_kept], each, self.mass[is_kept] / each, self.count)

    def means(self, value: Floats) -> Floats:
        """Weighted means, shape (t,)."""
        result: Floats = self.mass @ value / self.mass.sum()
        return result

    def square(self, value: Floats) -> Floats:
        """The covariance of these means, by clusters where there are any, shape (t, t)."""
        off = self.sums @ (value - self.means(value))
        result: Floats = off.T @ off * (self.count / max(self.count - 1.0, 1.0)) / float(self.mass.sum()) ** 2
        return result


# ---- regret: what miscalibration costs ----

MISCALIBRATION = "net benefit lost against the best decisions by {}"


@takes_arrays
def regret(data: Predictions | Sketch, *, threshold: float, alpha: float = 0.05, seed: int = 0) -> Estimate:
    r"""Regret of acting at a threshold: the net benefit that miscalibration costs there.

    Estimand: ``max_a NB(a) - NB(p >= t)`` over all rules a that act by steps of the score, with the net benefit ``NB(a)
    = P(a, Y = 1) - P(a, Y = 0) t / (1 - t)``. That is ``sum_c |P(Y = 1, c) - t P(c)| / (1 - t)`` over the steps c that
    are on the wrong side of t: below it, with a share of events above t, or the other way round. In true positives a
    row. The steps are whole percentages of the score, cut at t; the values of the score where it takes few.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights are used; where the data name clusters, clusters of these are independent.
    threshold : float in (0, 1)
        Where acting and not acting are worth the same.
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the truth; half of it an end.
    seed : int
        Deals rows into blocks, and draws pilot clusters; used by the lower end only, where rows are independent.

    Returns
    -------
    Estimate
        Smaller is better; 0 where every step is on the right side. ``settings`` have ``threshold``, and ``acts_from``:
        of a sketch the next score that its counts can tell from those below (multiples of 0.005, values of a score
        that takes few, else 1,024 edges).

    Notes
    -----
    **Assumes.** Independent rows from one distribution, or independent clusters, weights that do not depend on
    outcomes; t chosen without these outcomes.
    **Guarantee.** Finite-sample. The lower end holds for any finer use of the score too, of which regret is no less.
    **Method.** Lower end: bets that another threshold, or other steps, fixed or learnt on other rows, are worth more.
    Upper end: bets against all uses at once, each step at its worst (documentation: net benefit).
    **Cost.** One pass over the rows, then some 50 ms. **Reads.** The sketch; rows, where they have clusters or weights.

    References
    ----------
    B. Van Calster, A. J. Vickers (2015), Calibration of risk prediction models: impact on decision-analytic
    performance, doi:10.1177/0272989X14547233. W. Ehm, T. Gneiting, A. Jordan, F. Kruger (2016), Of quantiles and
    expectiles, doi:10.1111/rssb.12154: the same is the miscalibration part of the elementary score at t.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.integers(0, 5, 20_000) / 10 + 0.05
    >>> found = cal.measure.regret(cal.predictions(rng.uniform(size=20_000) < p + 0.1, p), threshold=0.2)
    >>> bool(found.low <= 0.2 * 0.05 / 0.8 <= found.high)  # a fifth has 0.15, happens 0.25, and is not acted on
    True
    """
    inputs = data if isinstance(data, Points) else checked_data(data, Predictions, Sketch)
    t = share("threshold", threshold, hint="such as 0.2")
    level, seed = 1.0 - checked_alpha(alpha), checked_seed(seed)
    at, q = ladder(inputs, t, seed)
    return regret_of(
        at, (alpha / 2.0, alpha / 2.0), level, seed, q.assumes, {} if isinstance(q, Points) else q.reported
    )


def regret_of(
    at: Ladder, spend: tuple[float, float], level: float, seed: int, assumes: str, reported: dict[str, object]
) -> Estimate:
    """Certify the regret on one ladder; `spend` are the error probabilities of the lower and the upper end."""
    lots, worth = at.lots, 1.0 - at.threshold
    low, high = ends(lots, spend, seed)
    return Estimate(
        method="measure.regret",
        value=min(max(lots.estimate, low), high) / worth,
        unit="",
        n=int(at.counts.sum()),
        interval=Interval(low=low / worth, high=high / worth, level=level, guarantee="finite-sample"),
        assumes=assumes,
        settings={
            "about": MISCALIBRATION.format(at.about),
            "threshold": at.threshold,
            "acts_from": at.acts_from,
            **reported,
            "delta": spend,
            "seed": seed,
        },
    )


def ends(lots: Lots, spend: tuple[float, float], seed: int) -> tuple[float, float]:
    """Both ends of the loss, times ``1 - t``."""
    from_below: Below = below(lots, spend[0], seed)
    return from_below.limit(spend[0]), Above.of(lots, spend[1]).limit(spend[1])
