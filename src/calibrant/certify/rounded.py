"""The certificate most audits need: the calibration error of probabilities shown in steps."""

from __future__ import annotations

from calibrant.arguments import checked_steps, one_source
from calibrant.certify.certificate import Setting, certificate
from calibrant.certify.shown import shown_certificate
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.results import Estimate, Side
from calibrant.views.population import shares
from calibrant.views.sample import everyone


@certificate(order=20, usual=True, settings=(Setting("steps", 100, "K", "rounding steps of the score"),))
@one_source
def rounded(
    data: Predictions | Sketch, *, steps: int = 100, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0
) -> Estimate:
    r"""Certify the average calibration error of the score rounded to `steps` steps.

    Estimand: ``CE = E|r - E[Y|r]|`` with r the score rounded to the nearest multiple of ``1 / steps`` (halves up:
    0.005 becomes 0.01 at 100 levels; scores are read to ``2^-30``, so that those less than that below a half go up with
    it); in probability units. ``steps=100`` is whole percent.

    Parameters
    ----------
    data : Predictions or Sketch
    steps : int from 2 to 1024
        Fewer levels give a tighter certificate of a coarser display.
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

    Notes
    -----
    **Assumes.** Independent rows from one distribution; levels fixed before the labels are seen. Rows drawn to a quota
    of events are not independent: then only Theorem U's linear form is proved, and the notch is not.
    **Guarantee.** Finite-sample, for every classifier and every distribution. The lower end is about the rounded
    score; the raw score may be better calibrated, so it is evidence against the display and not the model.
    **Method.** Upper end: Theorem U with the notch (theory 1.4), four bets, linear form and notch averaged half and
    half. Lower end: Theorem L on the levels. Rounding is exact for 10, 20, 50 and 100 levels and powers of two;
    otherwise the middle of the score's cell (of ``2^14``) is rounded, which is the classifier certified. Data with
    ``cluster=`` or ``weights=``: independent clusters, Theorems CL and CU (documentation: clusters); error and gap are
    of these weights.
    **Cost.** Linear in the rows, then milliseconds; a tenth of a second of clusters.
    **Reads.** The sketch; rows, where they have clusters or weights.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> bool(cal.certify.rounded(data, steps=50, side="upper").interval.high < 0.03)
    True
    """
    steps = checked_steps(steps)
    spend = shares(alpha, side)
    q = everyone(data, seed)
    return shown_certificate(q, q.as_shown(steps)).run(spend, 1.0 - alpha, seed)
