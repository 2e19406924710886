"""Maps that are level within bins of the score: histogram binning, scaling-binning, and an average of binnings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibrant.arguments import checked_seed
from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput, NotComputable
from calibrant.repair.catalogue import recipe
from calibrant.repair.fitted import Batch, FittedMap, Order, fitted_on, rising, shares, sound
from calibrant.repair.maps.curves import Logistic, Platt
from calibrant.repair.regression import distinct, fit_rows

# ---- Maps that are level within bins of the score, and where to cut the bins ----

Spacing = Literal["mass", "width"]


@dataclass(frozen=True, kw_only=True)
class Steps(FittedMap):
    """The map that shows ``shown[j]`` to scores in bin j; `edges` are inner, and a bin holds its lower one."""

    edges: tuple[float, ...]
    shown: tuple[float, ...]

    @property
    def order(self) -> Order:
        """Kept up to ties if what is shown never falls."""
        return "kept up to ties" if bool((np.diff(self.shown) >= 0).all()) else "may change"

    def check(self) -> None:
        """Raise `ValueError` if the steps are not in order, or not probabilities."""
        sound(len(self.shown) == len(self.edges) + 1, "there must be one edge less than values shown")
        sound(rising(self.edges), "edges must rise")
        sound(shares(self.shown), "shown must lie within 0 and 1")

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        return np.array(self.shown)[np.searchsorted(np.array(self.edges), rows.p, side="right")]


def checked_bins(bins: Any) -> int:
    """Return the number of bins, or refuse it."""
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or not 1 <= bins <= 10_000:
        raise BadInput(f"bins={bins!r}: pass a whole number from 1 to 10,000, such as 10")
    return int(bins)


def checked_spacing(spacing: Any) -> Spacing:
    """Return how bins are cut, or refuse it."""
    if spacing not in ("mass", "width"):
        raise BadInput(f"spacing={spacing!r}: choose 'mass' (equally many rows a bin) or 'width'")
    return "mass" if spacing == "mass" else "width"


def mass_cuts(heft: Any, bins: int) -> Any:
    """Return which distinct scores start a bin, if bins are to weigh the same; `heft` is the running weight of the scores.

    A score is never split, so that there may be fewer bins.
    """
    wanted = heft[-1] * np.arange(1, bins) / bins
    at = np.searchsorted(heft, wanted, side="left") + 1
    return np.unique(at[at < len(heft)])


def edges_before(scores: Any, at: Any) -> Any:
    """Return edges half-way between the scores at `at` and those before them."""
    middle = 0.5 * (scores[at - 1] + scores[at])
    return np.where(middle > scores[at - 1], middle, scores[at])


def width_edges(bins: int) -> Any:
    """Return the inner edges of bins of equal width."""
    return np.arange(1, bins) / bins


# ---- Histogram binning: in each bin of the score, what happened there ----


@recipe(maps=[Steps], words="histogram binning", simplicity=70, command="histogram")
@dataclass(frozen=True, kw_only=True)
class Histogram:
    r"""Histogram binning: show each bin of the score the event rate of its rows.

    Estimand: ``P(Y = 1 | p in bin)``.

    Parameters
    ----------
    bins : int from 1 to 10,000
    spacing : {"mass", "width"}
        Bins of equally many rows (rows of one score stay together), or of equal width.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** Nothing about the shape; what varies within a bin is lost, and with it some AUROC.
    **Guarantee.** None by itself, but the map takes few values, so that `calibrant.repair.compare` or
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
    spacing: Spacing = "mass"

    def __post_init__(self) -> None:
        checked_bins(self.bins)
        checked_spacing(self.spacing)

    def fit(self, data: Any) -> Steps:
        """Fit the rates to rows."""
        rows = fit_rows(data, "Histogram")
        scores, heft, cases = distinct(rows)
        if self.spacing == "mass":
            cuts = mass_cuts(np.cumsum(heft), int(self.bins))
            edges = edges_before(scores, cuts)
        else:
            edges = width_edges(int(self.bins))
            cuts = np.searchsorted(scores, edges, side="left")
        shown = rates(heft, cases, cuts, edges)
        return Steps(
            recipe="Histogram",
            settings={"bins": len(shown), "spacing": self.spacing},
            fitted_on=fitted_on(rows),
            edges=tuple(edges.tolist()),
            shown=tuple(shown.tolist()),
        )


def rates(heft: Any, cases: Any, cuts: Any, edges: Any) -> Any:
    """Return the event rate of each bin, an empty bin's middle; `cuts` are the first distinct scores of bins 2, 3, ..."""
    rows = np.diff(np.concatenate([[0], cuts, [len(heft)]]))
    held = np.repeat(np.arange(len(rows)), rows)
    total, hits = np.bincount(held, heft, len(rows)), np.bincount(held, cases, len(rows))
    ends = np.concatenate([[0.0], edges, [1.0]])
    return np.clip(np.divide(hits, total, out=0.5 * (ends[:-1] + ends[1:]), where=rows > 0), 0.0, 1.0)


# ---- Scaling-binning: a fitted curve, shown in few steps, so that what is left can be measured ----


@recipe(maps=[Steps], words="scaling-binning", simplicity=80, command="scaling-binning")
@dataclass(frozen=True, kw_only=True)
class ScalingBinning:
    r"""Scaling-binning: fit Platt's curve, then show each bin of the score the curve's mean in it.

    Estimand: ``E[g(p) | bin]``, g the curve.

    Parameters
    ----------
    bins : int from 1 to 10,000
        Bins of equally many rows.
    scale : {"logit", "raw"}
        Of the curve; see `Platt`.
    split : bool
        Deal the rows into three equal parts, as the paper proves it: for the curve, for the edges, for the means. False
        uses every row for each, as the authors' program does: better in practice, without the proof.
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
    third part misses takes the mean over the second. **Cost.** That of `Platt`, and a sort. **Reads.** Rows; weights
    are used.

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
    scale: Literal["logit", "raw"] = "logit"
    split: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        checked_bins(self.bins)
        Platt(scale=self.scale)
        if not isinstance(self.split, bool):
            raise BadInput(f"split={self.split!r}: pass True or False")
        checked_seed(self.seed)

    def fit(self, data: Any) -> Steps:
        """Fit curve, edges and means to rows."""
        rows = fit_rows(data, "ScalingBinning", 3)
        parts = [np.arange(rows.n)] * 3
        if self.split:
            dealt = np.random.default_rng([checked_seed(self.seed), 0x5CA1]).permutation(rows.n)
            parts = [np.sort(part) for part in np.array_split(dealt, 3)]
        first, second, third = (_part(rows, at) for at in parts)
        if first.cases in (0, first.n):
            raise NotComputable(
                f"ScalingBinning cannot be fitted: the {first.n:,} rows dealt to its curve have one outcome only"
            )
        curve = Platt(scale=self.scale).fit(first)
        scores, heft, _ = distinct(second)
        edges = edges_before(scores, mass_cuts(np.cumsum(heft), int(self.bins)))
        shown = _means(curve, edges, third, _means(curve, edges, second, None))
        return Steps(
            recipe="ScalingBinning",
            settings={
                "bins": len(shown),
                "scale": self.scale,
                "split": self.split,
                "seed": int(self.seed),
                "rows_curve": first.n,
                "rows_edges": second.n,
                "rows_means": third.n,
                "slope": curve.slope,
                "intercept": curve.intercept,
            },
            fitted_on=fitted_on(rows),
            edges=tuple(edges.tolist()),
            shown=tuple(shown.tolist()),
        )


def _part(rows: Predictions, at: Any) -> Predictions:
    weights = None if rows.weights is None else rows.weights[at]
    return replace(rows, y=rows.y[at], p=rows.p[at], weights=weights, covariates=None, cluster=None, cache={})


def _means(curve: Logistic, edges: Any, rows: Predictions, otherwise: Any) -> Any:
    """Return the curve's mean in each bin, `otherwise` in bins without rows."""
    shown = curve.values(Batch(rows.p, None, None))
    heft = np.ones(rows.n) if rows.weights is None else rows.weights
    held = np.searchsorted(edges, rows.p, side="right")
    total = np.bincount(held, heft, len(edges) + 1)
    mean = np.bincount(held, heft * shown, len(edges) + 1)
    start = np.zeros(len(total)) if otherwise is None else otherwise.copy()
    return np.clip(np.divide(mean, total, out=start, where=total > 0), 0.0, 1.0)


# ---- Bayesian binning into quantiles: many histograms, averaged by how well each explains the outcomes ----

Score = Literal["bdeu", "bic", "aic"]
BREADTH = 10.0  # binnings have from n^(1/3) / 10 to 10 n^(1/3) bins
PRIOR = 2.0  # rows that a bin's prior is worth
CLOSEST = 5e-3  # of a prior's mean to 0 and 1
ELBOW = 1e-3


@recipe(maps=[Steps], words="Bayesian binning (BBQ)", simplicity=90, command="bbq")
@dataclass(frozen=True, kw_only=True)
class BBQ:
    r"""Bayesian binning into quantiles: an average of histogram binnings with few to many bins.

    Estimand: ``sum_M P(M | data) P(Y = 1 | p, M)`` over binnings M of the score.

    Parameters
    ----------
    score : {"bdeu", "bic", "aic"}
        How a binning is judged: the paper's marginal likelihood, or a likelihood less the price of its bins.
    spacing : {"mass", "width"}
        Bins of equally many rows, or of equal width. netcal's BBQ is ``BBQ(score="bic", spacing="width")``.

    Raises
    ------
    BadInput
        A setting that cannot be used.
    NotComputable
        The rows have one outcome only.

    Notes
    -----
    **Assumes.** Nothing about the shape.
    **Guarantee.** None by itself: judge with `calibrant.repair.compare` on other rows. Order is kept only if the
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

    score: Score = "bdeu"
    spacing: Spacing = "mass"

    def __post_init__(self) -> None:
        if self.score not in ("bdeu", "bic", "aic"):
            raise BadInput(f"score={self.score!r}: choose 'bdeu', 'bic' or 'aic'")
        checked_spacing(self.spacing)

    def fit(self, data: Any) -> Steps:
        """Fit the binnings and their weights to rows."""
        rows = fit_rows(data, "BBQ")
        found = _binnings(*distinct(rows), self.spacing, self.score)
        kept, weights = _elbow(np.array([value for _, _, value in found]))
        edges, shown = _average([found[i][:2] for i in kept], weights)
        return Steps(
            recipe="BBQ",
            settings={
                "score": self.score,
                "spacing": self.spacing,
                "binnings": len(found),
                "averaged": len(kept),
                "likeliest_bins": len(found[kept[0]][1]),
            },
            fitted_on=fitted_on(rows),
            edges=tuple(edges.tolist()),
            shown=tuple(shown.tolist()),
        )


def _binnings(scores: Any, heft: Any, cases: Any, spacing: Spacing, score: Score) -> list[tuple[Any, Any, float]]:
    """Return edges, rates and logarithm of the weight of every binning, all from two running sums."""
    below, hits = (np.concatenate([[0.0], np.cumsum(v)]) for v in (heft, cases))
    n = float(below[-1])
    fewest = max(1, int(n ** (1 / 3) / BREADTH))
    most = max(1, int(min(np.ceil(n / 5), np.ceil(n ** (1 / 3) * BREADTH), BREADTH * len(scores))))
    out: list[tuple[Any, Any, float]] = []
    for bins in range(min(fewest, most), most + 1):
        if spacing == "mass":
            cuts = mass_cuts(below[1:], bins)
            edges = edges_before(scores, cuts)
        else:
            edges = width_edges(bins)
            cuts = np.searchsorted(scores, edges, side="left")
        if out and np.array_equal(edges, out[-1][0]):
            continue
        bounds = np.concatenate([[0], cuts, [len(scores)]])
        ends = np.concatenate([[0.0], edges, [1.0]])
        total = np.diff(below[bounds])
        rates, value = _judged(total, np.minimum(np.diff(hits[bounds]), total), 0.5 * (ends[:-1] + ends[1:]), n, score)
        out.append((edges, rates, value))
    return out


def _judged(total: Any, hits: Any, middle: Any, n: float, score: Score) -> tuple[Any, float]:
    """Return the rates that one binning shows and the logarithm of its weight."""
    from scipy.special import betaln, xlogy

    if score == "bdeu":
        a = PRIOR * np.clip(middle, CLOSEST, 1.0 - CLOSEST)
        value = betaln(hits + a, total - hits + PRIOR - a) - betaln(a, PRIOR - a)
        return (hits + a) / (total + PRIOR), float(value.sum())
    rates = np.clip(np.divide(hits, total, out=middle.copy(), where=total > 0), 0.0, 1.0)
    likelihood = float((xlogy(hits, rates) + xlogy(total - hits, 1.0 - rates)).sum())
    return rates, likelihood - len(rates) * (0.5 * np.log(n) if score == "bic" else 1.0)


def _elbow(value: Any) -> tuple[Any, Any]:
    """Return which binnings to average, the likeliest first, and their weights: until neighbours differ too little to matter."""
    weights = np.exp(value - value.max())
    order = np.argsort(-weights, kind="stable")
    falling, last = weights[order], 0
    spread = float(weights.var())
    while last < len(order) - 1 and falling[last] == falling[last + 1]:
        last += 1
    while last < len(order) - 1 and falling[last] - falling[last + 1] > ELBOW * spread:
        last += 1
    kept = order[: last + 1]
    return kept, weights[kept] / weights[kept].sum()


def _average(binnings: list[tuple[Any, Any]], weights: Any) -> tuple[Any, Any]:
    """Return the weighted mean of step functions, as a step function: the sum of their jumps."""
    edges, place = np.unique(np.concatenate([e for e, _ in binnings]), return_inverse=True)
    jumps = np.concatenate([w * np.diff(r) for (_, r), w in zip(binnings, weights, strict=True)])
    start = sum(w * r[0] for (_, r), w in zip(binnings, weights, strict=True))
    shown = start + np.concatenate([[0.0], np.cumsum(np.bincount(place, jumps, len(edges)))])
    return edges, np.clip(shown, 0.0, 1.0)
