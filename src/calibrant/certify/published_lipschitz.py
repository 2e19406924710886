"""The Lipschitz bucketing that Ciosek et al. compare to, on the perturbed score."""

from __future__ import annotations

from typing import Any

from calibrant.certify.published_kernel import (
    positive_bandwidth,
    published_estimate,
    published_rows,
    published_stream,
)
from calibrant.results import Estimate
from calibrant.stats.published import BUCKETS, SHIFTS, lipschitz_bound


def published_lipschitz(
    data: Any, bandwidth: float = 2**-6, alpha: float = 0.05, side: str = "upper", seed: int = 0
) -> Estimate:
    r"""Bound the L1 calibration error of the perturbed classifier by Lipschitz buckets with shifts.

    The certified classifier is that of `certify.published_kernel`, with target :math:`CE = E|s -
    \eta(s)|`. Its calibration function is Lipschitz with constant `L = 1 / (2 h)`, so bucket means of the
    labels come with a known bias. A comparator, published in outline only.

    Parameters
    ----------
    data : Predictions
        Rows with labels `y` in {0, 1} and scores `p` in [0, 1]; no weights, no clusters.
    bandwidth : float > 0
        The perturbation `h`, fixed before the labels are seen.
    alpha : float in (0, 1)
        Error probability, shared equally by all pairs of a bucket count and a shift.
    side : {"upper"}
        The paper states upper bounds only.
    seed : int
        Fixes the perturbation.

    Returns
    -------
    Estimate
        `interval.high` is the bound (a probability, smaller is better); `value` is the mean gap between
        score and bucket mean. `settings` also names the winning bucket count and shift.

    Raises
    ------
    BadInput
        A setting out of range, or fewer than two rows.
    NotComputable
        Weights, clusters, or a sketch.

    Notes
    -----
    **Assumes.** Independent, identically distributed rows; nothing about the classifier.

    **Guarantee.** Labelled as published, in outline: Appendix E prints the union over partitions and not
    the bound of one partition. The bound used here is proved below and holds at finite n.

    **Method.** Perturbation by equation 8; Corollary 3; Appendix E. One partition, `delta' = alpha / (B R)`
    with `B` bucket counts and `R` shifts, bucket `b` with `n_b` rows, label mean `ybar_b` and scores
    spread over `w_b = max s - min s`, `m` buckets with rows:

    1. Given the scores, `|eta(s_i) - etabar_b|` averages to at most half its oscillation, `L w_b / 2`,
       over a bucket.
    2. Given the scores, Hoeffding gives `|ybar_b - etabar_b| <= eps_b = sqrt(ln(4 m / delta') / (2 n_b))`
       for all `m` buckets at once with probability `1 - delta' / 2`.
    3. On that event `(1/n) sum_i |s_i - eta(s_i)|` is at most
       `A = (1/n) sum_b min(n_b, sum_(i in b) |s_i - ybar_b| + n_b (eps_b + L w_b / 2))`, as each term is
       at most 1.
    4. `|s_i - eta(s_i)|` are independent in [0, 1] with mean CE, and depend on no label: by Hoeffding
       `CE <= A + sqrt(ln(2 / delta') / (2 n))` with probability `1 - delta'`.

    The least bound over the partitions is reported. Departures: (1) The bound is valid on the rows that
    made the buckets, so nothing is held out, where the paper cross-fits. (2) The bias is `L w_b / 2` with
    the observed spread in place of `L / buckets`. (3) The offset, printed as `r / B`, is read as `r / R`
    of a bucket (a whole bucket changes nothing). (4) The grid, not printed, is 8, 16, ..., 4096 buckets
    and four shifts. (5) The bound is cut at 1.

    **Cost.** One sort and `B R = 40` passes over bucket edges: about 0.4 CPU seconds at n = 1e6.

    **Reads.** Rows.

    References
    ----------
    K. Ciosek, N. Felicioni, S. Ghiassian, J. Elenter Litwin, F. Tonolini, D. Gustafsson, E. Garcia Martin,
    C. Barcena Gonzales, R. Bertrand-Lalo, "Measuring Uncertainty Calibration", ICLR 2026, arXiv:2512.13872.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20000)
    >>> data = cal.predictions(rng.random(20000) < p, p)
    >>> cal.certify.published_lipschitz(data).interval.high < 0.5
    True
    """
    positive_bandwidth(bandwidth)
    p, y = published_rows(data, "published_lipschitz", alpha, side)
    bound = lipschitz_bound(p, y, bandwidth, alpha, published_stream(seed))
    settings = {
        "bandwidth": bandwidth,
        "alpha": alpha,
        "side": side,
        "seed": seed,
        "bucket_counts": BUCKETS,
        "shifts": SHIFTS,
    }
    assumes = "independent rows; about the perturbed classifier, whose calibration function is Lipschitz"
    return published_estimate("published_lipschitz", bound, len(p), alpha, assumes, settings)
