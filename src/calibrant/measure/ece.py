"""Calibration error in bins, in the worst bin, and without bins."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_alpha, checked_seed, choice, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.kernels.strata import spread
from calibrant.results import Estimate
from calibrant.stats.measures import bounded_ends, rate_interval
from calibrant.stats.nulls import ClusterSums, Sizes, noise, peak_interval, total_interval
from calibrant.stats.smoothing import SMALLEST, STEPS, coarser, fixed_point, length, noise_steps, smoothed, steps_for
from calibrant.stats.strata import Bins, Strategy
from calibrant.views.points import Points, points

Floats = NDArray[np.float64]

# ---- Expected calibration error in bins ----

DRAWS = 1000
FEW, FEWEST = 3, 30  # rows of the rarer outcome a bin, and of all, under which counts are not near enough to Gaussian
STREAM = 0x0ECE
INVERSION = "inversion of a parametric bootstrap of the bins"


@takes_arrays
def ece(
    data: Predictions | Sketch,
    *,
    bins: int = 15,
    strategy: Strategy = "quantile",
    norm: Literal[1, 2] = 1,
    debiased: bool = False,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    r"""Expected calibration error of the score in bins.

    Estimand: ``sum_b P(b) |E[Y - p | b]|`` over the bins b (`norm` 1), or ``sqrt(sum_b P(b) E[Y - p | b]^2)`` (`norm`
    2); in probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    bins : int from 1 to 100,000
    strategy : {"quantile", "uniform"}
        Equal scores always share a bin, so ties can leave fewer bins than asked for; settings say how many hold rows.
    norm : {1, 2}
    debiased : bool
        Report the size from which noise would produce the plug-in on average. The plug-in is too large: pure
        noise has a size too, larger with more bins.
    alpha : float in (0, 0.5]
        Probability, about, that the interval misses the estimand.
    seed : int

    Returns
    -------
    Estimate
        Smaller is better. Settings hold both the plug-in and the debiased value, and the plug-in's signed parts:
        ``under_prediction`` (outcomes more frequent than predicted) plus ``over_prediction`` is the plug-in of
        norm 1.

    Raises
    ------
    NotComputable
        All rows are one cluster.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights. The bins count as fixed; the estimand is the
    error in these bins, not the (larger) error of the raw score. For that see `certify.raw_lower`.
    **Guarantee.** Asymptotic, and approximate in small samples: see Coverage.
    **Method.** Bins' residual sums plus simulated binomial noise, whose rates are each bin's, shrunk towards the rate
    that the scores and the overall rate lead one to expect, so that a bin of one class has noise too. The ends invert
    the distribution of the plug-in: the low end along the bins' clear residuals, the high end along the noise's own
    profile, where error hides best. The high end is at least the plug-in. With `debiased` the value is where the
    plug-in is the mean. An ordinary percentile bootstrap is not offered: near calibration it almost never contains the
    truth. The high end also covers the overall gap with the limits of `observed_expected`; where the rarer outcome has
    fewer than three rows a bin, the low end is no more than what those say of the shift.
    **Coverage.** 0.950 or more in the worst designs that a search found, from one expected case; 0.957 for a calibrated
    model at 3,000 rows; conservative for error spread thinly over the bins. See docs/measures.md. **Cost.** One pass
    over the rows; a sort for equal mass; about 10 ms for the interval whatever the rows. **Reads.** Rows, or the
    sketch's cells; equal-width bins of a sketch move rows by at most a cell (``2^-14``).

    References
    ----------
    Naeini, Cooper, Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015,
    doi:10.1609/aaai.v29i1.9602. Kumar, Liang, Ma, "Verified uncertainty calibration", NeurIPS 2019,
    arXiv:1909.10155. Roelofs, Cain, Shlens, Mozer, "Mitigating bias in calibration error estimation", AISTATS 2022,
    arXiv:2012.08668.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> found = cal.measure.ece(data, debiased=True)
    >>> bool(found.value < found.settings["plug_in"]), found.interval.low
    (True, 0.0)
    """
    checked_alpha(alpha)
    seed = checked_seed(seed)
    choice("norm", norm, (1, 2))
    q = points(data)
    binned = binned_points(q, bins, strategy)
    share = binned.share

    def size(gap: Floats) -> Floats:
        sizes: Floats = np.abs(gap).sum(axis=-1) if norm == 1 else np.sqrt((gap**2 / share).sum(axis=-1))
        return sizes

    draws, level = binned.gap_noise(DRAWS, np.random.default_rng([seed, STREAM])), q.level(alpha)
    sizes = _with_gap(q, total_interval(binned.gap, draws, size, level), binned.used, level)
    return q.estimate(
        "ece",
        sizes.middle if debiased else sizes.plug_in,
        (sizes.low, min(sizes.high, 1.0)),
        alpha,
        "probability",
        strategy=strategy,
        bins=bins,
        bins_used=binned.used,
        bins_collapsed=bins - binned.used,
        norm=norm,
        debiased=debiased,
        plug_in=sizes.plug_in,
        without_noise=sizes.middle,
        under_prediction=float(np.maximum(binned.gap, 0.0).sum()),
        over_prediction=float(np.maximum(-binned.gap, 0.0).sum()),
        interval=INVERSION,
        draws=DRAWS,
        seed=seed,
    )


def _with_gap(q: Points, sizes: Sizes, bins: int, alpha: float) -> Sizes:
    """Limits that hold for error on one side too, whose size is the overall gap, however few events there are.

    The noise of the inversion is Gaussian. Where the rarer outcome has under three rows a bin, or 30, the low end is no
    more than the shift's own: of error on both sides so few rows say nothing that can be relied on.
    """
    w, expected = q.weighed, q.weighed.mean(q.p)
    mean = w.mean(w.y)
    low, high = rate_interval(w, mean - expected, lambda t: q.p + t, lambda rate, _: rate - expected, alpha)
    few = w.rows * min(mean, 1.0 - mean) < max(FEW * bins, FEWEST)
    least = min(sizes.low, max(low, -high, 0.0)) if few else sizes.low
    return replace(sizes, low=least, high=max(sizes.high, abs(low), abs(high)))


def binned_points(q: Points, bins: int, strategy: Strategy) -> Bins:
    """The points in bins; refuse settings out of range."""
    bins = check_int("bins", bins, 1, 100_000, hint="such as 15")
    how = choice("strategy", strategy, get_args(Strategy))
    return q.weighed.binned(Bins.of(q.p, q.y, q.count, q.weight, bins, how), q.p)


# ---- The worst bin ----

MAX_CALIBRATION_ERROR_STREAM = 0x03CE


@takes_arrays
def max_calibration_error(
    data: Predictions | Sketch,
    *,
    bins: int = 15,
    strategy: Strategy = "quantile",
    debiased: bool = False,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    r"""Calibration error of the worst bin.

    Estimand: ``max_b |E[Y - p | b]|``; in probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    bins : int from 1 to 100,000
    strategy : {"quantile", "uniform"}
        With equal width a bin may hold a handful of rows, and the maximum is then mostly noise.
    debiased : bool
        Report the size from which noise would produce the plug-in on average.
    alpha : float in (0, 0.5]
    seed : int

    Returns
    -------
    Estimate
        Smaller is better. Settings name the worst bin's mean score, event rate, rows and direction.

    Raises
    ------
    NotComputable
        All rows are one cluster.

    Notes
    -----
    **Assumes.** As `ece`.
    **Guarantee.** Asymptotic: see Coverage.
    **Method.** As `ece`, for the largest mean residual of a bin: the low end along equal error in every bin, where
    a maximum is most visible; the high end along error in the noisiest bin alone, where it hides best, and no less than
    Clopper and Pearson's limit of any bin.
    **Coverage.** 0.953 or more in the worst designs that a search found. See docs/measures.md.
    **Cost.** As `ece`.
    **Reads.** Rows, or the sketch's cells.

    References
    ----------
    Naeini, Cooper, Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015,
    doi:10.1609/aaai.v29i1.9602.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.predictions([0, 0, 1, 1, 0, 0, 0, 1], [0.1] * 4 + [0.25] * 4)
    >>> cal.measure.max_calibration_error(data, bins=2).value
    0.4
    """
    checked_alpha(alpha)
    seed = checked_seed(seed)
    q = points(data)
    binned = binned_points(q, bins, strategy)
    mean, level = binned.gap / binned.share, q.level(alpha)
    noises = binned.mean_noise(DRAWS, np.random.default_rng([seed, MAX_CALIBRATION_ERROR_STREAM]))
    sizes = _with_each_bin(q, peak_interval(mean, noises, level), binned, noises, level)
    worst = binned.sums[int(np.argmax(np.abs(mean)))]
    return q.estimate(
        "max_calibration_error",
        sizes.middle if debiased else sizes.plug_in,
        (sizes.low, min(sizes.high, 1.0)),
        alpha,
        "probability",
        strategy=strategy,
        bins=bins,
        bins_used=binned.used,
        bins_collapsed=bins - binned.used,
        debiased=debiased,
        plug_in=sizes.plug_in,
        without_noise=sizes.middle,
        worst_score=float(worst[3] / worst[1]),
        worst_rate=float(worst[2] / worst[1]),
        worst_rows=int(worst[0]),
        worst_direction="under-prediction" if worst[2] > worst[3] else "over-prediction",
        interval=INVERSION,
        draws=DRAWS,
        seed=seed,
    )


def _with_each_bin(q: Points, sizes: Sizes, binned: Bins, noises: Floats, alpha: float) -> Sizes:
    """Limits that hold however few events a bin has: the worst bin is one, and its own high end is enough.

    Where the rarer outcome has under three rows a bin, or 30, the low end is no more than the largest of all bins' low
    ends, which share alpha.
    """
    low = high = 0.0
    spread = binned.clusters.spread_of(noises)
    for (rows, weight, events, score), by_cluster in zip(binned.sums[:, :4].tolist(), spread.tolist(), strict=True):
        rate, says, n = events / weight, score / weight, rows * q.effective / q.n
        seen = max(rate * (1.0 - rate) / n, by_cluster)
        below, above = bounded_ends(rate, seen, n, alpha)
        high = max(high, above - says, says - below)
        below, above = bounded_ends(rate, seen, n, alpha / binned.used)
        low = max(low, below - says, says - above)
    mean = q.weighed.mean(q.y)
    few = q.weighed.rows * min(mean, 1.0 - mean) < max(FEW * binned.used, FEWEST)
    return replace(sizes, low=min(sizes.low, low) if few else sizes.low, high=max(sizes.high, high))


# ---- Calibration error without bins ----

SMOOTH_ECE_DRAWS = 400
BINS = 15  # to which its points are likened where events are few
SMOOTH_ECE_STREAM = 0x53CE


@takes_arrays
def smooth_ece(
    data: Predictions | Sketch, *, bandwidth: float | None = None, alpha: float = 0.05, seed: int = 0
) -> Estimate:
    r"""Smooth expected calibration error (SmoothECE).

    Estimand: ``S(s) = integral over t in [0, 1] of |E[(Y - p) K_s(t, p)]| dt`` with K_s the Gaussian kernel of standard
    deviation s reflected at 0 and 1; by default at the bandwidth ``s = S(s)``. In probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    bandwidth : float from 2**-10 to 1, optional
        By default the one that equals the error it finds, and at least ``2**-10``.
    alpha : float in (0, 0.5]
    seed : int

    Returns
    -------
    Estimate
        Smaller is better; at the automatic bandwidth within constant factors of the distance from calibration. The
        value is the plug-in, like that of `relplot`; ``settings["without_noise"]`` is the debiased size at the
        same bandwidth. Settings also hold the bandwidth and the signed parts, which add up to the value.

    Raises
    ------
    NotComputable
        All rows are one cluster.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage. The interval is for S at the bandwidth used, and so for the fixed point
    as well: S does not increase with the bandwidth, so the population's fixed point lies between S at any bandwidth
    and that bandwidth, and the interval holds both.
    **Method.** Definition 4.1 and Algorithm 1 of the paper. Residuals are shared between the points of a grid of
    ``2^12`` steps (``2^15`` for small bandwidths) and smoothed by cosine transforms, which reflect exactly however wide
    the kernel. Departures from `relplot`: it cuts the kernel half a unit either side, which matters from a bandwidth
    of about 0.15; it finds the bandwidth by ten bisections, so to ``2^-10``, and here it is solved. Noise for the
    interval: Gaussian per grid point, smoothed in the same way, and inverted as in `ece`.
    **Coverage.** 0.945 where it was least in nine designs at 300 rows (error on one side, 400 samples). See
    docs/measures.md.
    **Cost.** One pass over the rows and about twenty transforms of 4,097 numbers; ten to forty milliseconds for the
    interval.
    **Reads.** Rows, or the sketch's cells.

    References
    ----------
    Blasiok, Nakkiran, "Smooth ECE: principled reliability diagrams via kernel smoothing", ICLR 2024,
    arXiv:2309.12236.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**2, p)
    >>> round(cal.measure.smooth_ece(data).value, 2)
    0.17
    """
    checked_alpha(alpha)
    seed = checked_seed(seed)
    if bandwidth is not None:
        number("bandwidth", bandwidth, least=SMALLEST, most=1, hint="or None for the automatic one")
    q = points(data)
    total = float(q.mass.sum())
    sums = _spread(q, STEPS if bandwidth is None else steps_for(bandwidth)) / total
    width = float(bandwidth) if bandwidth is not None else fixed_point(sums[:, 0])
    if steps_for(width) > len(sums) - 1:
        sums = _spread(q, steps_for(width)) / total
        width = fixed_point(sums[:, 0]) if bandwidth is None else width
    density = smoothed(sums[:, 0], width)
    value = float(length(density))
    level = q.level(alpha)
    sizes = _sizes(q, sums, width, level, np.random.default_rng([seed, SMOOTH_ECE_STREAM]))
    sizes = _with_gap(q, sizes, BINS, level)
    return q.estimate(
        "smooth_ece",
        value,
        (min(sizes.low, value), min(max(sizes.high, value), 1.0)),
        alpha,
        "probability",
        bandwidth=width,
        automatic=bandwidth is None,
        without_noise=min(sizes.middle, max(sizes.high, value)),
        under_prediction=float(length(np.maximum(density, 0.0))),
        over_prediction=float(length(np.minimum(density, 0.0))),
        grid=len(sums) - 1,
        interval="inversion of a parametric bootstrap of the smoothed residuals",
        draws=SMOOTH_ECE_DRAWS,
        seed=seed,
    )


def _spread(q: Points, steps: int) -> Floats:
    return spread(q.p, q.y, q.count, q.weight, steps)


def _cluster_sums(q: Points, cluster: NDArray[np.intp], steps: int) -> ClusterSums:
    """What each cluster adds to each grid point: a row is shared by the two next to its score."""
    below = np.minimum((q.p * steps).astype(np.intp), steps - 1)
    part = np.stack([1.0 - (q.p * steps - below), q.p * steps - below], axis=1) * q.each_weighs[:, None]
    return ClusterSums.of(np.stack([below, below + 1], axis=1), cluster, steps + 1, part * (q.y - q.p)[:, None], part)


def _sizes(q: Points, sums: Floats, width: float, alpha: float, rng: np.random.Generator) -> Sizes:
    """Interval at a fixed bandwidth; `sums` are those of the grid, over the total weight.

    The noise is that of the residuals, and where one outcome is rare or absent that of one more of each.
    """
    steps = noise_steps(width)
    mean, square, weight = (coarser(column, steps) for column in sums.T)
    rows = q.effective
    rate = float((q.mass * q.y).sum() / q.mass.sum())
    likely = (rate * rows + 1) / (rows + 2)
    extra = max(likely * (1 - likely) - rate * (1 - rate), 0.0)
    second = (square + extra * weight) / weight.sum()
    draws = smoothed(noise(second, mean, rows, rng.standard_normal((SMOOTH_ECE_DRAWS, len(mean)))), width)
    draws = q.weighed.noisier(
        draws, lambda cluster: smoothed(_cluster_sums(q, cluster, steps).gap_noise(SMOOTH_ECE_DRAWS, rng), width)
    )
    return total_interval(smoothed(mean, width), draws, length, alpha)
