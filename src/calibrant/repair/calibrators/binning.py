"""Maps through points of the score: histogram binning, scaling-binning, an average of binnings, and isotonic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice, flag
from calibrant.data.predictions import Predictions
from calibrant.errors import NotComputable
from calibrant.kernels.smooth import isotonic
from calibrant.repair.calibrators.curves import Logistic, Platt, ScaleOption
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.disclosure import DECIMALS, MASK, checked_fewest
from calibrant.repair.fitted import Batch, Calibrator, Order, fitted_on, rising, shares, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Formula, Term
from calibrant.repair.regression import Floats, fit_rows, scores_of
from calibrant.stats.strata import Strategy
from calibrant.views.points import weights_of

Places = NDArray[np.intp]

# ---- Maps that are level within bins of the score, and where to cut the bins ----


@dataclass(frozen=True, kw_only=True)
class Steps(Calibrator):
    """The map that shows ``shown[j]`` to scores in bin j; `edges` are inner, and a bin holds its lower one."""

    edges: tuple[float, ...]
    shown: tuple[float, ...]

    @property
    def order(self) -> Order:
        return "kept up to ties" if rising(self.shown) else "may change"

    def check(self) -> None:
        sound(len(self.shown) == len(self.edges) + 1, "there must be one edge less than values shown")
        sound(rising(self.edges), "edges must rise")
        sound(shares(self.shown), "shown must lie within 0 and 1")

    def values(self, rows: Batch) -> Floats:
        return np.array(self.shown)[np.searchsorted(np.array(self.edges), rows.p, side="right")]

    def formula(self, row: Formula) -> Term:
        return expression.stairs(row.score, self.edges, self.shown)


def checked_bins(bins: int) -> int:
    return check_int("bins", bins, 1, 10_000, hint="such as 10")


def cut(scores: Floats, below: Floats, bins: int, strategy: Strategy) -> tuple[Floats, Places]:
    """Inner edges of bins, and which of the distinct scores (increasing) is the first of bins 2, 3, ...

    Bins are of equal weight, given the running weight, each score's included, with edges half-way between neighbouring
    scores; or of equal width. A score is never split, so that there may be fewer bins than asked for.
    """
    if strategy == "uniform":
        edges = np.arange(1, bins) / bins
        return edges, np.searchsorted(scores, edges, side="left")
    first = np.searchsorted(below, below[-1] * np.arange(1, bins) / bins, side="left") + 1
    first = np.unique(first[first < len(below)])
    middle = 0.5 * (scores[first - 1] + scores[first])
    return np.where(middle > scores[first - 1], middle, scores[first]), first


# ---- Histogram binning: in each bin of the score, what happened there ----


@recipe(calibrators=[Steps], words="histogram binning", simplicity=70, command="histogram")
class Histogram(Tunable):
    r"""Histogram binning: show each bin of the score the event rate of its rows.

    Estimand: ``P(Y = 1 | p in bin)``.

    Parameters
    ----------
    bins : int from 1 to 10,000
    strategy : {"quantile", "uniform"}
        Bins of equally many rows (rows of one score stay together), or of equal width.
    fewest : int, 1 or more
        Rows on which every bin rests: neighbouring scores are joined until they are so many, at their mean, and bins
        are made of those. 1 is the textbook's, which can tell the score and outcome of a single person.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** Nothing about the shape; what varies within a bin is lost, and with it some AUROC.
    **Guarantee.** None by itself, but the map takes few values, so that `calibrant.repair.evaluate` or
    `calibrant.certify` can be tight about it. Each rate is off by about ``sqrt(rate (1 - rate) / rows of the bin)``.
    Order is kept only if the rates happen to rise; see `order`. **Method.** Event rates. A bin of equal width without
    rows shows its middle, as netcal's does. A bin whose rows all had one outcome shows 0 or 1, where a single surprise
    makes the log loss infinite. **Cost.** One sort. **Reads.** Rows; weights are used.

    References
    ----------
    Zadrozny, Elkan, "Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers",
    ICML 2001.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**2, p)
    >>> np.array(cal.repair.Histogram(bins=4).fit(data).shown).round(1)
    array([0. , 0.1, 0.4, 0.8])
    """

    bins: int = 10
    strategy: Strategy = "quantile"
    fewest: int = MASK

    def __post_init__(self) -> None:
        checked_bins(self.bins)
        choice("strategy", self.strategy, get_args(Strategy))
        checked_fewest(self.fewest)

    def fit(self, data: Predictions) -> Steps:
        """Fit the rates to rows."""
        rows = fit_rows(data, "Histogram")
        scores, weight, events = scores_of(rows, int(self.fewest))
        edges, first = cut(scores, np.cumsum(weight), int(self.bins), self.strategy)
        start = np.concatenate([[0], first, [len(scores)]])
        kept = np.repeat(np.arange(len(start) - 1), np.diff(start))
        total, happened = (np.bincount(kept, v, len(start) - 1) for v in (weight, events))
        ends = np.concatenate([[0.0], edges, [1.0]])
        middle = 0.5 * (ends[:-1] + ends[1:])  # shown where there are no rows
        shown = np.clip(np.divide(happened, total, out=middle, where=np.diff(start) > 0), 0.0, 1.0)
        return Steps(
            recipe="Histogram",
            settings={"bins": len(shown), "strategy": self.strategy, "fewest": int(self.fewest)},
            fitted_on=fitted_on(rows),
            mask=int(self.fewest),
            edges=tuple(edges.tolist()),
            shown=tuple(shown.tolist()),
        )


# ---- Scaling-binning: a fitted curve, shown in few steps, so that what is left can be measured ----

STREAM = 0x5CA1  # of random numbers, apart from those of other methods at the same seed


@recipe(calibrators=[Steps], words="scaling-binning", simplicity=80, command="scaling-binning")
class ScalingBinning(Tunable):
    r"""Scaling-binning: fit Platt's curve, then show each bin of the score the curve's mean in it.

    Estimand: ``E[g(p) | bin]``, g the curve.

    Parameters
    ----------
    bins : int from 1 to 10,000
        Bins of equally many rows.
    scale : {"auto", "logit", "raw", "log ratio"}
    ridge : float, 0 or more, optional
        Both of the curve; see `Platt`.
    split : bool
        Deal the rows into three equal parts, as the paper proves it: for the curve, for the edges, for the means. False
        uses every row for each, as the authors' program does: better in practice, without the proof.
    fewest : int, 1 or more
        As in `Histogram`, of the rows that cut the bins: with `split` a third of all, so that 600 rows make ten bins
        at most, and 100 rows one.
    seed : int
        Deals the rows.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows, or those dealt to the curve, have one outcome only.

    Notes
    -----
    **Assumes.** That the curve is near the truth: where it is not, the means are off by as much. Unlike those of
    `Histogram`, they do not follow the outcomes of their bin. **Guarantee.** The paper's, with `split`: up to
    logarithms, ``bins + 1 / eps^2`` rows bring the squared calibration error to within eps^2 of twice the best curve's,
    where `Histogram` takes ``bins / eps^2``, since a mean of a smooth curve varies less than a mean of outcomes.
    `settings` states how many rows each step had. Order is kept up to ties if the curve rises. **Method.** Section 4.1
    of the paper: cuts at quantiles of the scores (those of g, which rises), halfway between neighbours; a bin that the
    third part misses takes the mean over the second. ``ScalingBinning(scale="log ratio", ridge=1e-10, split=False,
    fewest=1)`` is the authors' program, but that it cuts scores at 1e-12. **Cost.** That of `Platt`, and a sort.
    **Reads.** Rows; weights are used.

    References
    ----------
    Kumar, Liang, Ma, "Verified uncertainty calibration", NeurIPS 2019.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=30_000)
    >>> data = cal.predictions(rng.uniform(size=30_000) < p**2 / (p**2 + (1 - p) ** 2), p)
    >>> fitted = cal.repair.ScalingBinning(bins=4).fit(data)
    >>> np.array(fitted.shown).round(1), fitted.settings["rows_curve"]
    (array([0. , 0.3, 0.7, 1. ]), 10000)
    """

    bins: int = 10
    scale: ScaleOption = "auto"
    ridge: float | None = None
    split: bool = True
    fewest: int = MASK
    seed: int = 0

    def __post_init__(self) -> None:
        checked_bins(self.bins)
        Platt(scale=self.scale, ridge=self.ridge)
        flag("split", self.split)
        checked_fewest(self.fewest)
        checked_seed(self.seed)

    def fit(self, data: Predictions) -> Steps:
        """Fit curve, edges and means to rows."""
        rows = fit_rows(data, "ScalingBinning", 3)
        scored = replace(rows, covariates=None, cluster=None)
        parts = [scored] * 3
        if self.split:
            order = np.random.default_rng([int(self.seed), STREAM]).permutation(rows.n)
            parts = [scored.part(np.sort(part)) for part in np.array_split(order, 3)]
        first, second, third = parts
        if first.events in (0, first.n):
            raise NotComputable(
                f"ScalingBinning cannot be fitted: the {first.n:,} rows assigned to its curve have one outcome only"
            )
        # (1) Fit the curve g.
        curve = Platt(scale=self.scale, ridge=self.ridge).fit(first)
        # (2) Cut bins of equally many scores g(p), which are those of p, for g rises.
        scores, weight, _ = scores_of(second, int(self.fewest))
        edges, _ = cut(scores, np.cumsum(weight), int(self.bins), "quantile")
        # (3) Show the mean of g in each bin; a bin that the third part misses takes the mean over the second.
        shown = _means(curve, edges, third, _means(curve, edges, second, np.zeros(len(edges) + 1)))
        return Steps(
            recipe="ScalingBinning",
            settings={
                "bins": len(shown),
                "scale": curve.scale,
                "scale_requested": self.scale,
                "ridge": curve.settings["ridge"],
                "split": self.split,
                "fewest": int(self.fewest),
                "seed": int(self.seed),
                "rows_curve": first.n,
                "rows_edges": second.n,
                "rows_means": third.n,
                "slope": curve.slope,
                "intercept": curve.intercept,
            },
            fitted_on=fitted_on(rows),
            mask=int(self.fewest),
            edges=tuple(edges.tolist()),
            shown=tuple(shown.tolist()),
        )


def _means(curve: Logistic, edges: Floats, rows: Predictions, otherwise: Floats) -> Floats:
    """The curve's mean in each bin, `otherwise` in bins without rows."""
    weight, kept = weights_of(rows), np.searchsorted(edges, rows.p, side="right")
    total = np.bincount(kept, weight, len(edges) + 1)
    mean = np.bincount(kept, weight * curve.scores(rows.p), len(edges) + 1)
    shown: Floats = np.clip(np.divide(mean, total, out=otherwise.copy(), where=total > 0), 0.0, 1.0)
    return shown


# ---- Bayesian binning into quantiles: many histograms, averaged by how well each explains the outcomes ----

Criterion = Literal["bdeu", "bic", "aic"]
BREADTH = 10.0  # binnings have from n^(1/3) / 10 to 10 n^(1/3) bins: the paper's C
EACH = 5  # rows a bin at least, on average
PRIOR = 2.0  # rows that a bin's prior is worth: the paper's N' / B
CLOSEST = 5e-3  # of a prior's mean to 0 and 1, so that an end's bin stays open to a surprise
ELBOW = 1e-3  # of the variance of the weights: a smaller fall ends the average, as in the authors' program


@recipe(calibrators=[Steps], words="Bayesian binning (BBQ)", simplicity=90, command="bbq")
class BBQ(Tunable):
    r"""Bayesian binning into quantiles: an average of histogram binnings with few to many bins.

    Estimand: ``sum_M P(M | data) P(Y = 1 | p, M)`` over binnings M of the score.

    Parameters
    ----------
    criterion : {"bdeu", "bic", "aic"}
        How a binning is judged: the paper's marginal likelihood, or a likelihood less the price of its bins.
    strategy : {"quantile", "uniform"}
        Bins of equally many rows, or of equal width.
    fewest : int, 1 or more
        As in `Histogram`. netcal's BBQ is ``BBQ(criterion="bic", strategy="uniform", fewest=1)``.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** Nothing about the shape.
    **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on other rows. Order is kept only if the
    average happens to rise; see `order`. **Method.** Binnings of ``n^(1/3) / 10`` to ``10 n^(1/3)`` bins (five rows a
    bin at least, ten bins a distinct score at most), each as likely beforehand. "bdeu": the event rate of a bin has the
    prior ``Beta(2 m, 2 (1 - m))``, m the bin's middle kept 0.005 from 0 and 1; the binning is weighed by the
    probability of the outcomes and shows the posterior means, which lie within (0, 1). "bic" and "aic": weighed by
    ``exp(-criterion / 2)``; the binning shows plain event rates, an empty bin its middle. Binnings are dropped beyond
    the "elbow" of the weights, by the authors' rule. Departures from the authors' program: cuts are at the balanced
    quantiles, scores that tie stay together, a binning that ties make equal to another counts once, and a bin shows its
    posterior mean rather than a rate smoothed in another way. **Cost.** One sort, then running sums: ``n^(2/3)``
    whatever the number of binnings: under 0.1 s at 100,000 rows. **Reads.** Rows. A weight counts as so many rows.

    References
    ----------
    Naeini, Cooper, Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**2, p)
    >>> fitted = cal.repair.BBQ().fit(data)
    >>> fitted.scores(np.array([0.3, 0.7])).round(1)
    array([0.1, 0.5])
    """

    criterion: Criterion = "bdeu"
    strategy: Strategy = "quantile"
    fewest: int = MASK

    def __post_init__(self) -> None:
        choice("criterion", self.criterion, get_args(Criterion))
        choice("strategy", self.strategy, get_args(Strategy))
        checked_fewest(self.fewest)

    def fit(self, data: Predictions) -> Steps:
        """Fit the binnings and their weights to rows."""
        rows = fit_rows(data, "BBQ")
        result = _binnings(*scores_of(rows, int(self.fewest)), self.strategy, self.criterion)
        kept, weights = _elbow(np.array([one.log_weight for one in result]))
        edges, shown = _average([result[i] for i in kept], weights)
        return Steps(
            recipe="BBQ",
            settings={
                "criterion": self.criterion,
                "strategy": self.strategy,
                "binnings": len(result),
                "averaged": len(kept),
                "likeliest_bins": len(result[kept[0]].rates),
                "fewest": int(self.fewest),
            },
            fitted_on=fitted_on(rows),
            mask=int(self.fewest),
            edges=tuple(edges.tolist()),
            shown=tuple(shown.tolist()),
        )


@dataclass(frozen=True)
class Binning:
    """One binning: inner edges, the rate that each bin shows, and the logarithm of its weight among binnings."""

    edges: Floats
    rates: Floats
    log_weight: float


def _binnings(
    scores: Floats, weight: Floats, events: Floats, strategy: Strategy, criterion: Criterion
) -> list[Binning]:
    """Every binning once, all from two running sums."""
    below, happened = (np.concatenate([[0.0], np.cumsum(v)]) for v in (weight, events))
    n = float(below[-1])
    fewest = max(1, int(n ** (1 / 3) / BREADTH))
    most = max(1, int(min(np.ceil(n / EACH), np.ceil(n ** (1 / 3) * BREADTH), BREADTH * len(scores))))
    out: list[Binning] = []
    for bins in range(min(fewest, most), most + 1):
        edges, first = cut(scores, below[1:], bins, strategy)
        if out and np.array_equal(edges, out[-1].edges):  # ties made it equal to the one before
            continue
        start = np.concatenate([[0], first, [len(scores)]])
        ends = np.concatenate([[0.0], edges, [1.0]])
        total = np.diff(below[start])
        within = np.minimum(np.diff(happened[start]), total)
        rates, log_weight = _judged(total, within, 0.5 * (ends[:-1] + ends[1:]), criterion)
        out.append(Binning(edges, rates, log_weight))
    return out


def _judged(total: Floats, happened: Floats, middle: Floats, criterion: Criterion) -> tuple[Floats, float]:
    """The rates that one binning shows and the logarithm of its weight."""
    from scipy.special import betaln, xlogy

    if criterion == "bdeu":  # the likelihood integrated over rates with priors Beta(2 m, 2 (1 - m))
        a = PRIOR * np.clip(middle, CLOSEST, 1.0 - CLOSEST)
        evidence = betaln(happened + a, total - happened + PRIOR - a) - betaln(a, PRIOR - a)
        posterior: Floats = (happened + a) / (total + PRIOR)
        return posterior, float(evidence.sum())
    rates: Floats = np.clip(np.divide(happened, total, out=middle.copy(), where=total > 0), 0.0, 1.0)
    likelihood = float((xlogy(happened, rates) + xlogy(total - happened, 1.0 - rates)).sum())
    return rates, likelihood - len(rates) * (0.5 * np.log(total.sum()) if criterion == "bic" else 1.0)


def _elbow(log_weight: Floats) -> tuple[Places, Floats]:
    """The binnings to average and their weights: the likeliest first, until neighbours hardly differ."""
    weights = np.exp(log_weight - log_weight.max())
    order = np.argsort(-weights, kind="stable")
    falling, last = weights[order], 0
    least = ELBOW * float(weights.var())
    while last < len(order) - 1 and falling[last] == falling[last + 1]:
        last += 1
    while last < len(order) - 1 and falling[last] - falling[last + 1] > least:
        last += 1
    kept = order[: last + 1]
    return kept, weights[kept] / weights[kept].sum()


def _average(binnings: list[Binning], weights: Floats) -> tuple[Floats, Floats]:
    """The weighted mean of step functions, as a step function: the sum of their jumps."""
    edges, place = np.unique(np.concatenate([one.edges for one in binnings]), return_inverse=True)
    jumps = np.concatenate([w * np.diff(one.rates) for one, w in zip(binnings, weights, strict=True)])
    start = sum(w * one.rates[0] for one, w in zip(binnings, weights, strict=True))
    shown = start + np.concatenate([[0.0], np.cumsum(np.bincount(place, jumps, len(edges)))])
    return edges, np.clip(shown, 0.0, 1.0)


# ---- Isotonic regression: the best increasing map, whatever its shape ----


@dataclass(frozen=True, kw_only=True)
class Piecewise(Calibrator):
    """The map through the points ``(scores, shown)``, straight between them and level outside."""

    knots: tuple[float, ...]
    shown: tuple[float, ...]

    @property
    def order(self) -> Order:
        return "kept up to ties" if rising(self.shown) else "may change"

    def check(self) -> None:
        sound(len(self.knots) == len(self.shown) > 0, "knots and shown must be equally many")
        sound(rising(self.knots, strictly=True), "knots must rise")
        sound(shares(self.shown), "shown must lie within 0 and 1")

    def values(self, rows: Batch) -> Floats:
        x, v = np.array(self.knots), np.array(self.shown)
        if len(x) == 1:
            return np.full(len(rows.p), v[0])
        at = np.clip(np.searchsorted(x, rows.p, side="right") - 1, 0, len(x) - 2)
        left, right = v[at], v[at + 1]
        share = (np.clip(rows.p, x[at], x[at + 1]) - x[at]) / (x[at + 1] - x[at])
        low, high = np.minimum(left, right), np.maximum(left, right)
        out: Floats = np.clip(left + share * (right - left), low, high)  # rounding must not swap two scores
        return out

    def formula(self, row: Formula) -> Term:
        return expression.broken_line(row.score, self.knots, self.shown)


@recipe(calibrators=[Piecewise], words="isotonic regression", simplicity=60, command="isotonic", tried="always")
class Isotonic(Tunable):
    r"""Isotonic regression: the increasing function of the score nearest to the outcomes.

    Estimand: the increasing f that minimises ``E (Y - f(p))^2`` (and the log loss).

    Parameters
    ----------
    fewest : int, 1 or more
        Rows on which every point of the map rests: neighbouring scores are joined until they are so many, at their
        mean. 1 is the textbook's function, which reveals the scores and outcomes of single people.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** The true curve never falls. Needs rows: below a thousand or so `Platt` or `Beta` is usually nearer.
    **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on other rows. Order is kept up to ties: the
    fitted function has level stretches, which tie the scores within. Its ends may be exactly 0 and 1, where a single
    surprise makes the log loss infinite. **Method.** Rows of one score are pooled, and neighbours up to `fewest`, then
    SciPy's pool-adjacent-violators. Between the ends of neighbouring level stretches the map is straight, and beyond
    the outermost scores level: with ``fewest=1`` scikit-learn's ``IsotonicRegression(out_of_bounds="clip")``. **Cost.**
    One sort: less than scikit-learn's fit, a third of it at a million rows. **Reads.** Rows; weights are used.

    References
    ----------
    Zadrozny, Elkan, "Transforming classifier scores into accurate multiclass probability estimates", KDD 2002.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**2, p)
    >>> fitted = cal.repair.Isotonic().fit(data)
    >>> fitted.scores(np.array([0.3, 0.6])).round(1), fitted.order
    (array([0.1, 0.4]), 'kept up to ties')
    """

    fewest: int = MASK

    def __post_init__(self) -> None:
        checked_fewest(self.fewest)

    def fit(self, data: Predictions) -> Piecewise:
        """Fit the function to rows."""
        rows = fit_rows(data, "Isotonic")
        scores, weight, events = scores_of(rows, int(self.fewest))
        result = isotonic(events / weight, weight)
        # Both ends of each level stretch are enough to draw it; of stretches at one height only the outer ends.
        first = np.flatnonzero(np.diff(result, prepend=-np.inf))
        at = np.unique(np.concatenate([first, first - 1, [len(result) - 1]]))[1:]
        shown = np.clip(result[at], 0.0, 1.0)
        shown = shown if self.fewest == 1 else np.round(shown, DECIMALS)
        inner = np.ones(len(at), dtype=bool)
        inner[1:-1] = (shown[1:-1] != shown[:-2]) | (shown[1:-1] != shown[2:])
        return Piecewise(
            recipe="Isotonic",
            settings={"fewest": int(self.fewest)},
            fitted_on=fitted_on(rows),
            mask=int(self.fewest),
            knots=tuple(scores[at][inner].tolist()),
            shown=tuple(shown[inner].tolist()),
        )
