"""The raw score from above, if its event rate does not jump about."""

from __future__ import annotations

from calibrant.arguments import one_source, positive
from calibrant.certify.certificate import Setting, certificate
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.results import Estimate, Interval, Side
from calibrant.views.population import shares
from calibrant.views.sample import everyone


@certificate(order=50, settings=(Setting("variation", 1.0, "V", "1 is a monotone event rate"),))
@one_source
def bounded_variation(
    data: Predictions | Sketch, *, variation: float = 1.0, alpha: float = 0.05, side: Side = "two-sided", seed: int = 0
) -> Estimate:
    r"""Certify the average calibration error of the raw score, assuming bounded variation.

    Estimand: ``CE = E|p - eta(p)|`` with ``eta(p) = E[Y|p]`` of total variation at most V; probability units.

    Parameters
    ----------
    data : Predictions or Sketch
    variation : float, positive
        V. One covers every non-decreasing event rate.
    alpha : float in (0, 0.5]
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Deals the rows into blocks; used by the lower end, which needs no assumption, only.

    Returns
    -------
    Estimate
        ``value`` is the debiased plug-in at 100 levels, moved into the interval; smaller is better.

    Notes
    -----
    **Assumes.** Independent rows from one distribution, and total variation of the event rate at most V, which no
    data can verify.
    **Guarantee.** Finite-sample under that assumption, about the score cut to whole multiples of ``2^-30``: scores
    closer than that count as one.
    **Method.** Theorem 3 of the theory page, the least over three run lengths near ``(0.4 n / V)^(2/3)`` sharing
    alpha. Departure: runs are made of whole sketch cells (``2^14``), so rows and sketch agree and ties are never
    split; where one cell holds more rows than a run should, it counts with its own length unless its rows
    provably share one score. Lower end: `raw_lower`.
    **Cost.** Linear in the rows, then about 0.05 s.
    **Reads.** The sketch.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> bool(cal.certify.bounded_variation(data, side="upper").interval.high < 0.06)
    True
    """
    from calibrant.stats.bounds import debiased_error, lower_bound, variation_upper

    variation = positive(
        "variation", variation, what="a positive bound on the total variation", hint="1.0 for a monotone event rate"
    )
    low_share, high_share = shares(alpha, side)
    population = everyone(data, seed)
    low = lower_bound(population.cells, low_share, seed) if low_share else 0.0
    high, run = variation_upper(population.cells, variation, high_share, population.single) if high_share else (1.0, 0)
    shown = population.levels(100)
    value = debiased_error(shown.low, shown.totals.sum(axis=1), shown.totals[:, 1])
    return Estimate(
        method="certify.bounded_variation",
        value=min(max(value, low), max(high, low)),
        unit="probability",
        n=population.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=f"independent rows; total variation of the event rate at most {variation:g}",
        settings={"about": "the raw score", "variation": variation, "run": run, "seed": seed},
    )
