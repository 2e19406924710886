"""The score as it is, from both sides, where it takes few values: nothing is rounded."""

from __future__ import annotations

from calibrant.certify.certificate import certificate
from calibrant.certify.whole import shown_certificate
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.results import Estimate, Side
from calibrant.views.population import shares
from calibrant.views.sample import everyone


@certificate(order=15, usual=True)
@takes_arrays
def values(data: Predictions | Sketch, *, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0) -> Estimate:
    r"""Certify the average calibration error of a score that takes few values, as it is.

    Estimand: ``CE = E|p - E[Y|p]|``, in probability units (0.01 is one point).

    Parameters
    ----------
    data : Predictions or Sketch
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the truth.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end only.

    Returns
    -------
    Estimate
        ``value`` is the debiased plug-in, moved into the interval if it falls outside; smaller is better.
        ``settings["values"]`` is how many values the score takes.

    Raises
    ------
    NotComputable
        The score takes more than 1,024 values, or more than one for ten rows: use `rounded`.

    Notes
    -----
    **Assumes.** Independent rows from one distribution. The values need not be declared.
    **Guarantee.** Finite-sample. The lower end is that of `raw_lower`. The upper end holds for the population, values
    that did not occur in the rows included, where it is no chance that the score takes few values: whole percentages do
    in every sample, a continuous score in none. Where it is chance, an upper end that is reported, by this function or
    in its place by `rounded`, is wrong with at most twice the probability. And given these scores of independent rows,
    however they led to this function, it holds as it is for the mean of ``|p - E[Y|p]|`` over these rows.
    **Method.** Upper end: Theorem U with the notch, a cell for each of the ``2^30`` scores that are
    distinguished; those without rows contribute a factor of 1. Lower end: `raw_lower`. Scores are read to ``2^-30``,
    which is added and subtracted; two that agree to there count as one value. Data with ``cluster=`` or ``weights=``:
    independent clusters, Theorems CL and CU (documentation: Proofs); error and gap are of these weights.
    **Cost.** Linear in the rows, then milliseconds; a tenth of a second of clusters.
    **Reads.** The sketch; rows, where they have clusters or weights.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.integers(10, 91, 20_000) / 100  # whole per cents
    >>> off = np.where(np.arange(10, 91) % 2, 0.025, -0.025)[np.rint(100 * p).astype(int) - 10]
    >>> data = cal.predictions(rng.uniform(size=20_000) < p + off, p)
    >>> found = cal.certify.values(data)
    >>> bool(found.interval.low <= 0.025 <= found.interval.high), found.settings["values"]
    (True, 81)
    """
    spend = shares(alpha, side)
    q = everyone(data, seed)
    return shown_certificate(q, q.as_it_is()).run(spend, 1.0 - alpha, seed)
