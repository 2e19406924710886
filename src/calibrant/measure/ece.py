"""Expected calibration error in bins."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calibrant.data.seed import checked_seed
from calibrant.errors import BadInput
from calibrant.measure.points import Points, checked_alpha, points
from calibrant.results import Estimate
from calibrant.stats.binning import Bins
from calibrant.stats.resample import total_interval

Strategy = Literal["equal-mass", "equal-width"]
DRAWS = 1000
STREAM = 0x0ECE
INVERSION = "inversion of a parametric bootstrap of the bins"


def ece(
    data: Any,
    bins: int = 15,
    strategy: Strategy = "equal-mass",
    norm: Literal[1, 2] = 1,
    debiased: bool = False,
    alpha: float = 0.05,
    seed: int = 0,
) -> Estimate:
    r"""Expected calibration error of the score in bins.

    Estimand: ``sum_b P(b) |E[Y - p | b]|`` over the bins b (`norm` 1), or
    ``sqrt(sum_b P(b) E[Y - p | b]^2)`` (`norm` 2); in probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    bins : int from 1 to 100,000
    strategy : {"equal-mass", "equal-width"}
        Equal scores always share a bin, so ties can leave fewer bins than asked for; settings say how many hold rows.
    norm : {1, 2}
    debiased : bool
        Report the size from which noise would produce the plug-in on average. The plug-in is too large: pure
        noise has a size too, larger with more bins.
    alpha : float in (0, 1)
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
        The data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights. The bins count as fixed; the estimand is the
    error in these bins, not the (larger) error of the raw score. For that see `certify.raw_lower`.
    **Guarantee.** Asymptotic, and approximate in small samples: see Coverage.
    **Method.** Bins' residual sums plus simulated binomial noise, whose rates are each bin's, shrunk towards the
    rate that the scores and the overall rate lead one to expect, so that a bin of one class has noise too. The
    ends invert the distribution of the plug-in: the low end along the bins' clear residuals, the high end along the
    noise's own profile, where error hides best. The high end is at least the plug-in. With `debiased` the value is
    where the plug-in is the mean. An ordinary percentile bootstrap is not offered: near calibration it almost never
    contains the truth.
    **Coverage.** 0.96 to 1.00 in nine designs at 300 rows (300 samples each), 0.957 for a calibrated model at 3,000;
    conservative for error spread thinly over the bins. See docs/measures.md. **Cost.** One pass over the rows; a sort
    for equal mass; about 10 ms for the interval whatever the rows. **Reads.** Rows, or the sketch's cells; equal-width
    bins of a sketch move rows by at most a cell (``2^-14``).

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
    if norm not in (1, 2):
        raise BadInput(f"norm={norm!r}: pass 1 or 2")
    q = points(data)
    binned = binned_points(q, bins, strategy)
    share = binned.share

    def size(gap: Any) -> Any:
        return np.abs(gap).sum(axis=-1) if norm == 1 else np.sqrt((gap**2 / share).sum(axis=-1))

    draws = binned.gap_noise(DRAWS, np.random.default_rng([seed, STREAM]))
    sizes = total_interval(binned.gap, draws, size, alpha)
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


def binned_points(q: Points, bins: Any, strategy: Any) -> Bins:
    """Return the points in bins, or refuse the settings."""
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or not 1 <= bins <= 100_000:
        raise BadInput(f"bins={bins!r}: pass a whole number from 1 to 100,000, such as 15")
    if strategy not in ("equal-mass", "equal-width"):
        raise BadInput(f"strategy={strategy!r}: pass 'equal-mass' or 'equal-width'")
    return Bins.of(q.p, q.y, q.count, q.weight, int(bins), strategy)
