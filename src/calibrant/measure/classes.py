"""Measures of a classifier over several classes: its proper scores, and the error of every class in bins."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, checked_seed, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import MulticlassPredictions, checked_data
from calibrant.errors import NotComputable
from calibrant.kernels.runtime import parts_of
from calibrant.measure.ece import binned_points
from calibrant.results import Estimate
from calibrant.stats.measures import bounded_ends
from calibrant.stats.nulls import total_interval
from calibrant.stats.strata import Bins, Strategy
from calibrant.views.points import Points, points

Floats = NDArray[np.float64]
DRAWS, STREAM = 300, 0x0C1A
TIED = 1e-12  # sums of sizes that differ by less are equal but for rounding


def brier_of_classes(data: MulticlassPredictions, alpha: float) -> Estimate:
    """The mean of ``sum_k (p_k - 1{Y = k})^2``, from 0 to 2: see `calibrant.measure.brier`."""
    return _mean(data, "brier", brier_losses(data), 2.0, alpha, classes=data.p.shape[1])


def log_loss_of_classes(data: MulticlassPredictions, clip: float, alpha: float) -> Estimate:
    """The mean of ``-ln p_Y``: see `calibrant.measure.log_loss`."""
    clip = number("clip", clip, least=0, below=0.5, hint="such as 1e-6")
    own = own_class(data)
    if not clip and (wrong := int((own == 0.0).sum())):
        raise NotComputable(
            f"the log loss is infinite: {wrong:,} {'row has' if wrong == 1 else 'rows have'} probability 0 of the "
            "class that came true; pass clip=1e-6, or report the Brier score"
        )
    least = max(float(data.p[data.p > 0.0].min()), clip)  # of a class that could have come true
    return _mean(
        data,
        "log_loss",
        log_losses(data, clip),
        max(-np.log(least), 1e-12),
        alpha,
        classes=data.p.shape[1],
        clip=clip,
        clipped=int((own < clip).sum()),
    )


@takes_arrays
def ranked_probability_score(data: MulticlassPredictions, *, alpha: float = 0.05) -> Estimate:
    r"""Ranked probability score of ordered classes, such as grades: the Brier score of cumulative probabilities.

    Estimand: ``E[sum_{k < K} (F_k - 1{Y <= k})^2] / (K - 1)`` with ``F_k = p_1 + ... + p_k``, from 0 to 1.

    Parameters
    ----------
    data : MulticlassPredictions
        Classes in their order. Weights are used; of clusters the interval is by these clusters.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        Smaller is better.

    Notes
    -----
    **Assumes.** Independent rows or clusters, or rows sampled with known weights.
    **Guarantee.** Asymptotic: limits of the mean of a bounded variable with the variance seen (Clopper and Pearson's).
    **Cost.** One pass over the rows. **Reads.** Rows.

    References
    ----------
    Epstein, Journal of Applied Meteorology 8 (1969). Murphy, Journal of Applied Meteorology 10 (1971).

    Examples
    --------
    >>> import calibrant as cal
    >>> grades = cal.multiclass_predictions([0, 2], [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    >>> cal.measure.ranked_probability_score(grades).value
    0.0625
    """
    rows, alpha = checked_data(data, MulticlassPredictions), checked_alpha(alpha)
    k = rows.p.shape[1]
    below, loss = np.zeros(rows.n), np.zeros(rows.n)
    for i in range(k - 1):
        below += rows.p[:, i]
        loss += (below - (rows.y <= i)) ** 2
    return _mean(rows, "ranked_probability_score", loss / (k - 1), 1.0, alpha, classes=k)


@takes_arrays
def classwise_ece(
    data: MulticlassPredictions,
    *,
    bins: int = 15,
    strategy: Strategy = "quantile",
    debiased: bool = False,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    r"""Class-wise expected calibration error: the error of each class in bins, averaged over the classes.

    Estimand: ``1 / K sum_k sum_b P(b) |E[1{Y = k} - p_k | b]|`` over the bins b of class k's probability; in
    probability units. Times K it is what `certify.classwise` certifies, but for the bins.

    Parameters
    ----------
    data : MulticlassPredictions
        Weights are used; of clusters the interval is by these clusters.
    bins, strategy, debiased, alpha, seed
        As `ece`.

    Returns
    -------
    Estimate
        Smaller is better. Settings hold the plug-in, the value without noise, and the class with the largest error.

    Notes
    -----
    **Assumes.** Independent rows or clusters, or rows sampled with known weights. The bins count as fixed.
    **Guarantee.** Asymptotic. Of independent rows the low end is above 0 with probability ``alpha / 2`` at most if the
    probabilities are right, at any number of rows: it is 0 unless so few of the draws are as far off.
    **Coverage.** Of 300 calibrated data sets of 400 rows and 3 classes, one of them rare, 10 had a low end above 0.
    **Method.** As `ece` with the bins of all classes in one vector. Its noise is that of classes drawn by each row's
    probabilities, so that classes depend on one another as they do in rows; of clusters that of residuals times one
    normal number a cluster.
    **Cost.** Rows times classes times 300 draws, or ``4 / alpha`` if that is more. **Reads.** Rows.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach, "Beyond temperature scaling", NeurIPS 2019,
    arXiv:1910.12656.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([0.5] * 3, 5000)
    >>> y = (rng.uniform(size=(5000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> shown = cal.measure.classwise_ece(cal.multiclass_predictions(y, p), debiased=True)
    >>> bool(shown.value < shown.settings["plug_in"]), shown.interval.low
    (True, 0.0)
    """
    seed, alpha, rows = checked_seed(seed), checked_alpha(alpha), checked_data(data, MulticlassPredictions)
    q, k = points(rows.top_label()), rows.p.shape[1]
    every = [_binned(rows, q, i, bins, strategy) for i in range(k)]
    gaps, rng = [b.gap for b, _ in every], np.random.default_rng([seed, STREAM])
    draws, signal, shown = max(DRAWS, math.ceil(4.0 / alpha)), np.concatenate(gaps), True
    if q.cluster is None:
        calibrated, scale = _drawn(rows, q, every, draws, rng)
        noise, shown = calibrated * scale, _shown(signal, calibrated, alpha / 2.0)
    else:
        noise = _multiplied(rows, q.each_weighs, q.cluster, every, draws, rng)
    sizes = total_interval(signal, noise, lambda v: np.abs(v).sum(axis=-1), q.level(alpha))
    each = [float(np.abs(gap).sum()) for gap in gaps]
    return q.estimate(
        "classwise_ece",
        (sizes.middle if debiased else sizes.plug_in) / k,
        (sizes.low / k if shown else 0.0, min(sizes.high / k, 1.0)),
        alpha,
        "probability",
        classes=k,
        strategy=strategy,
        bins=bins,
        debiased=debiased,
        plug_in=sizes.plug_in / k,
        without_noise=sizes.middle / k,
        largest=max(each),
        largest_class=rows.name_of(int(np.argmax(each))),
        draws=draws,
        seed=seed,
    )


def _binned(
    rows: MulticlassPredictions, q: Points, k: int, bins: int, strategy: Strategy
) -> tuple[Bins, NDArray[np.intp]]:
    """A class's bins, and that of each row."""
    p = np.ascontiguousarray(rows.p[:, k])
    binned = binned_points(Points(p, (rows.y == k).astype(np.int8), None, q.weight, q.n, q.reads), bins, strategy)
    return binned, binned.cell(p)


def _drawn(
    rows: MulticlassPredictions,
    q: Points,
    every: Sequence[tuple[Bins, NDArray[np.intp]]],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Noise of the bins of all classes, of classes drawn by each row's probabilities, shape (draws, bins).

    A row adds to the bins of one class and misses those that are expected, so that classes depend on one another as
    they do in rows. Next to it, by bin, what takes the noise to the rate by which `ece` judges it, shape (bins,).
    """
    start = np.cumsum([0, *(b.used for b, _ in every)])
    cell = np.stack([bin_of + at for (_, bin_of), at in zip(every, start[:-1], strict=True)])
    weight, total = q.each_weighs / q.each_weighs.sum(), rows.p.cumsum(axis=1)
    mean, square = np.zeros(start[-1]), np.zeros(start[-1])
    for k, at in enumerate(cell):
        mean += np.bincount(at, weight * rows.p[:, k], start[-1])
        square += np.bincount(at, weight**2 * rows.p[:, k] * (1.0 - rows.p[:, k]), start[-1])
    out, row = np.empty((draws, start[-1])), np.arange(rows.n)
    total[:, -1] = 1.0
    ahead = (total + row[:, None]).reshape(-1)  # of all rows, one after another: increasing
    for draw in out:
        drawn = np.searchsorted(ahead, row + rng.uniform(size=rows.n)) - row * total.shape[1]
        draw[:] = np.bincount(cell[drawn, row], weight, start[-1]) - mean
    judged = np.concatenate([b.second_moment / b.effective for b, _ in every])
    scale: Floats = np.sqrt(judged / np.maximum(square, 1e-300))
    return out, np.where(square > 0.0, scale, 1.0)


def _shown(signal: Floats, calibrated: Floats, share: float) -> bool:
    """Whether probabilities that are right would be seen as far off with probability `share` at most, whatever n is.

    The errors seen and drawn are exchangeable if they are right, so the rank of the one seen is exact.
    """
    seen, drawn = np.abs(signal).sum(), np.abs(calibrated).sum(axis=1)
    return bool(1 + np.count_nonzero(drawn >= seen - TIED) <= share * (len(drawn) + 1))


def _multiplied(
    rows: MulticlassPredictions,
    each: Floats,
    who: NDArray[np.intp],
    every: Sequence[tuple[Bins, NDArray[np.intp]]],
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """The same of clusters, whose rows depend on one another: residuals times one normal number a cluster."""
    from scipy.sparse import csr_array

    weight = each / each.sum()
    count = int(who.max()) + 1
    shocks = rng.standard_normal((count, draws)) * np.sqrt(count / (count - 1.0))
    out = []
    for k, (binned, bin_of) in enumerate(every):
        rate = np.bincount(bin_of, weight * ((rows.y == k) - rows.p[:, k])) / np.bincount(bin_of, weight)
        residual = weight * ((rows.y == k) - rows.p[:, k] - rate[bin_of])
        out.append((csr_array((residual, (bin_of, who)), shape=(binned.used, count)) @ shocks).T)
    result: Floats = np.concatenate(out, axis=1)
    return result


def brier_losses(data: MulticlassPredictions) -> Floats:
    """``sum_k (p_k - 1{Y = k})^2`` of each row."""
    squares = np.empty(data.n)
    for some in parts_of(data.n):
        squares[some] = (data.p[some] ** 2).sum(axis=1)
    losses: Floats = squares - 2.0 * own_class(data) + 1.0
    return losses


def log_losses(data: MulticlassPredictions, clip: float) -> Floats:
    """``-ln p_Y`` of each row, of a probability of at least `clip`."""
    losses: Floats = -np.log(np.maximum(own_class(data), clip))
    return losses


def own_class(data: MulticlassPredictions) -> Floats:
    """The probability of the class that came true."""
    result: Floats = np.take_along_axis(data.p, data.y[:, None].astype(np.intp), axis=1)[:, 0]
    return result


def _mean(
    data: MulticlassPredictions, name: str, loss: Floats, most: float, alpha: float, **settings: object
) -> Estimate:
    """The mean of a loss of rows, in [0, most], with large-sample limits."""
    q = points(data.top_label())
    w = q.weighed
    value = w.mean(loss)
    low, high = bounded_ends(value / most, w.variance(loss) / most**2, w.rows, q.level(checked_alpha(alpha)))
    return q.estimate(name, value, (low * most, high * most), alpha, "", **settings)
