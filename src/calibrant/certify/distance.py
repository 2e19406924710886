"""How far the score is from some calibrated score: no assumption, nothing changed in production."""

from __future__ import annotations

from calibrant.arguments import one_source
from calibrant.certify.certificate import certificate
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.results import Estimate, Interval, Side
from calibrant.views.population import INDEPENDENT, everyone, shares


@certificate(order=30, usual=True)
@one_source
def distance(data: Predictions | Sketch, *, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0) -> Estimate:
    r"""Certify the distance from calibration of the score as it is.

    Estimand: the least ``E|p - u|`` over calibrated predictors u on the same space enlarged by independent
    noise (the lower distance of Blasiok et al.); in probability units. It is at most the calibration error, and
    unlike it, it can be certified from above without rounding, jitter or assumption.

    Parameters
    ----------
    data : Predictions or Sketch
    alpha : float in (0, 1)
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end only.

    Returns
    -------
    Estimate
        ``value`` is the middle of a two-sided interval and the certified end of a one-sided one: no debiased
        estimate of the distance is known. Smaller is better. ``settings["route"]`` says which display gave the upper
        end.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample, for every classifier and every distribution.
    **Method.** Upper end: the least over five roundings and four jitters of their certificate plus how far they
    move a score, sharing alpha over the nine. Lower end: ``E[w(p)(Y - p)]`` for a witness with
    ``sup|w| + Lip(w) <= 1``, learnt by a linear programme on earlier blocks (theory 1.1).
    **Cost.** Linear in the rows, then about 0.3 s whatever their number.
    **Reads.** The sketch.

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
    from calibrant.stats.bounds import distance_lower, distance_upper

    low_share, high_share = shares(alpha, side)
    population = everyone(data, seed)
    low = distance_lower(population.cells, low_share, seed) if low_share else 0.0
    high, route = distance_upper(population.cells, high_share) if high_share else (1.0, "")
    return Estimate(
        method="certify.distance",
        value=0.5 * (low + high) if low_share and high_share else low if low_share else high,
        unit="probability",
        n=population.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=INDEPENDENT,
        settings={"about": "the raw score, nothing changed", "route": route, "seed": seed},
    )
