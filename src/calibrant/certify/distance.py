"""How far the score is from some calibrated score: no assumption, nothing changed in production."""

from __future__ import annotations

from calibrant.arguments import one_source
from calibrant.certify.certificate import Certificate, certificate
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.results import Estimate, Side
from calibrant.views.population import Population, shares
from calibrant.views.sample import everyone


@certificate(order=30, usual=True)
@one_source
def distance(data: Predictions | Sketch, *, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0) -> Estimate:
    r"""Certify the distance from calibration of the raw score.

    Estimand: the least ``E|p - u|`` over calibrated predictors u on the same space enlarged by independent noise (the
    lower distance of Blasiok et al.); in probability units. It is at most the calibration error, and unlike it, it
    can be certified from above without rounding, jitter or assumption.

    Parameters
    ----------
    data : Predictions or Sketch
        Where the data name clusters or weights, whole clusters certify, and the distance is of a row drawn by weight.
    alpha : float in (0, 0.5]
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end only. Of clusters it chooses pilot clusters too.

    Returns
    -------
    Estimate
        ``value`` is the middle of a two-sided interval and the certified end of a one-sided one: no debiased
        estimate of the distance is known. Smaller is better. ``settings["route"]`` says which display gave the upper
        end.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters, from one distribution; weights that no outcome changes.
    **Guarantee.** Finite-sample, for every classifier and every distribution.
    **Method.** Upper end: the least over five roundings and four jitters of their certificate plus how far they move a
    score, sharing alpha over the nine. Lower end: ``E[w(p)(Y - p)]`` for a witness with ``sup|w| + Lip(w) <= 1``,
    learnt by a linear programme on earlier blocks (theory 1.1). Data with ``cluster=`` or ``weights=``: Theorems CD and
    CL (documentation: clusters). Upper end: the score rounded, or as it is if it takes few values, each with how far it
    moves in one product over clusters; the mean over these routes is one e-value. No jitter. Lower end: the same
    witnesses, half of the evidence on a plain shift.
    **Cost.** Linear in the rows, then about 0.3 s whatever their number; 10 s for a million rows of 100,000 clusters.
    **Reads.** The sketch; rows, where they have clusters or weights.

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran, A unifying theory of distance from calibration, STOC 2023, arXiv:2211.16886.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> bool(cal.certify.distance(data, side="upper").interval.high < 0.04)
    True
    """
    spend = shares(alpha, side)
    return distance_certificate(everyone(data, seed)).run(spend, 1.0 - alpha, seed)


def distance_certificate(q: Population) -> Certificate:
    """The certificate of one population."""
    about = "the raw score, nothing changed"
    return Certificate("distance", q, about, q.distance_below, q.distance_above, display={"route": ""})
