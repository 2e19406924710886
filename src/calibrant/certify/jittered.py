"""The seed paper's setting: the certificate of a classifier that perturbs its score a little."""

from __future__ import annotations

from typing import Any

from calibrant.certify.population import INDEPENDENT, checked_bandwidth, everyone, shares
from calibrant.results import Estimate, Interval, Side


def jittered(
    data: Any, bandwidth: float = 2**-6, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0
) -> Estimate:
    r"""Certify the average calibration error of the score after a hyperbolic-secant jitter.

    Estimand: ``CE = E|s - E[Y|s]|`` where s is drawn with density proportional to ``sech((s - p) / h)`` on
    [0, 1]; in probability units. On the grid of the sketch: p is rounded to the middle of one of ``2^14`` cells
    and s is the middle of another.

    Parameters
    ----------
    data : Predictions or Sketch
    bandwidth : float
        h. Fixed before the labels are seen: choosing it on these rows voids the guarantee; see `jitter_bandwidth`.
    alpha : float in (0, 1)
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end only. Nothing is sampled.

    Returns
    -------
    Estimate
        ``value`` is the debiased plug-in, moved into the interval; smaller is better.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample, about the jittered classifier. Where scores pile up on one value the jitter alone
    costs about ``1.17 h``, so the lower end is no evidence against the model; use `raw_lower` for that.
    **Method.** Upper end: Theorem U for the jitter; lower end: Theorem L with a sign per grid point. Both are
    sums over the grid by FFT; there is no smoothing bias, no derivative bound and no quadrature, which is why a
    gap of 0.02 takes about 1e4 rows and not 1e7.
    **Cost.** Linear in the rows, then about 0.2 s whatever their number.
    **Reads.** The sketch.

    References
    ----------
    Ciosek et al., Measuring Uncertainty Calibration, section 5 (the jitter). The certificates are this project's.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> bool(cal.certify.jittered(data, side="upper").interval.high < 0.02)
    True
    """
    from calibrant.stats.jitter import jittered_estimate, jittered_lower, jittered_upper

    low_share, high_share = shares(alpha, side)
    population = everyone(data, seed)
    h = checked_bandwidth(bandwidth, population.grid)
    low = jittered_lower(population.cells, h, low_share, seed) if low_share else 0.0
    high = jittered_upper(population.cells, h, high_share) if high_share else 1.0
    return Estimate(
        method="certify.jittered",
        value=min(max(jittered_estimate(population.cells, h), low), high),
        unit="probability",
        n=population.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=INDEPENDENT,
        settings={"about": f"the score jittered by {h:g}", "bandwidth": h, "grid": population.grid, "seed": seed},
    )
