"""What miscalibration costs at a threshold: the net benefit lost against the best use of the same score."""

from __future__ import annotations

from calibrant.arguments import checked_alpha, checked_seed, share
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sketch import Sketch
from calibrant.decisions.ladder import Ladder, ladder
from calibrant.results import Estimate, Interval
from calibrant.stats.decisions.regret import Above, Below, Lots, below
from calibrant.views.points import Points

MISCALIBRATION = "net benefit lost against the best decisions by {}"


@takes_arrays
def regret(data: Predictions | Sketch, *, threshold: float, alpha: float = 0.05, seed: int = 0) -> Estimate:
    r"""Regret of acting at a threshold: the net benefit that miscalibration costs there.

    Estimand: ``max_a NB(a) - NB(p >= t)`` over all rules a that act by steps of the score, with the net benefit ``NB(a)
    = P(a, Y = 1) - P(a, Y = 0) t / (1 - t)``. That is ``sum_c |P(Y = 1, c) - t P(c)| / (1 - t)`` over the steps c that
    are on the wrong side of t: below it, with a share of events above t, or the other way round. In true positives a
    row. The steps are whole percentages of the score, cut at t; the values of the score where it takes few.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights are used; where the data name clusters, clusters of these are independent.
    threshold : float in (0, 1)
        Where acting and not acting are worth the same.
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the truth; half of it an end.
    seed : int
        Deals rows into blocks, and draws pilot clusters; used by the lower end only, where rows are independent.

    Returns
    -------
    Estimate
        Smaller is better; 0 where every step is on the right side. ``settings`` have ``threshold``, and ``acts_from``:
        of a sketch the next score that its counts can tell from those below (multiples of 0.005, values of a score
        that takes few, else 1,024 edges).

    Notes
    -----
    **Assumes.** Independent rows from one distribution, or independent clusters, weights that do not depend on
    outcomes; t chosen without these outcomes.
    **Guarantee.** Finite-sample. The lower end holds for any finer use of the score too, of which regret is no less.
    **Method.** Lower end: bets that another threshold, or other steps, fixed or learnt on other rows, are worth more.
    Upper end: bets against all uses at once, each step at its worst (documentation: net benefit).
    **Cost.** One pass over the rows, then some 50 ms. **Reads.** The sketch; rows, where they have clusters or weights.

    References
    ----------
    B. Van Calster, A. J. Vickers (2015), Calibration of risk prediction models: impact on decision-analytic
    performance, doi:10.1177/0272989X14547233. W. Ehm, T. Gneiting, A. Jordan, F. Kruger (2016), Of quantiles and
    expectiles, doi:10.1111/rssb.12154: the same is the miscalibration part of the elementary score at t.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.integers(0, 5, 20_000) / 10 + 0.05
    >>> found = cal.measure.regret(cal.predictions(rng.uniform(size=20_000) < p + 0.1, p), threshold=0.2)
    >>> bool(found.low <= 0.2 * 0.05 / 0.8 <= found.high)  # a fifth has 0.15, happens 0.25, and is not acted on
    True
    """
    inputs = data if isinstance(data, Points) else checked_data(data, Predictions, Sketch)
    t = share("threshold", threshold, hint="such as 0.2")
    level, seed = 1.0 - checked_alpha(alpha), checked_seed(seed)
    at, q = ladder(inputs, t, seed)
    return regret_of(
        at, (alpha / 2.0, alpha / 2.0), level, seed, q.assumes, {} if isinstance(q, Points) else q.reported
    )


def regret_of(
    at: Ladder, spend: tuple[float, float], level: float, seed: int, assumes: str, reported: dict[str, object]
) -> Estimate:
    """Certify the regret on one ladder; `spend` are the error probabilities of the lower and the upper end."""
    lots, worth = at.lots, 1.0 - at.threshold
    low, high = ends(lots, spend, seed)
    return Estimate(
        method="measure.regret",
        value=min(max(lots.estimate, low), high) / worth,
        unit="",
        n=int(at.counts.sum()),
        interval=Interval(low=low / worth, high=high / worth, level=level, guarantee="finite-sample"),
        assumes=assumes,
        settings={
            "about": MISCALIBRATION.format(at.about),
            "threshold": at.threshold,
            "acts_from": at.acts_from,
            **reported,
            "delta": spend,
            "seed": seed,
        },
    )


def ends(lots: Lots, spend: tuple[float, float], seed: int) -> tuple[float, float]:
    """Return both ends of the loss, times ``1 - t``."""
    from_below: Below = below(lots, spend[0], seed)
    return from_below.limit(spend[0]), Above.of(lots, spend[1]).limit(spend[1])
