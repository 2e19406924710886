"""The reliability curve: where along the score the probabilities are off, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from calibrant.certify.population import Population, everyone, shares
from calibrant.diagnose import isotonic, smooth
from calibrant.diagnose.axis import TRIM, Axis, scored
from calibrant.errors import BadInput
from calibrant.results import Curve

Method = Literal["smooth", "isotonic"]
METHOD = "diagnose.reliability_curve"
STEPS = 1.0 / 1000  # of the axis, to which an isotonic fit resolves the score


def reliability_curve(
    data: Any,
    grid: int | Sequence[float] = 101,
    bandwidth: float | None = None,
    axis: Axis = "probability",
    method: Method = "smooth",
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
) -> Curve:
    r"""Draw what happened minus what the model says, as a function of the score, with a simultaneous band.

    Estimand: the smoothed gap ``g(t) = sum_i w_i(t) (E[Y | p_i] - p_i)``, with ``w_i(t)`` the weights of a
    local-linear fit at the score ``t``; in probability units, positive where the model says too little. The
    residual itself is smoothed, so that a calibrated model has ``g = 0`` everywhere, without smoothing bias.

    Parameters
    ----------
    data : Predictions or Sketch
    grid : int, or increasing scores in [0, 1]
        Number of points, equally spaced on the axis; or the scores. Trimmed to the 1st to 99th percentile.
    bandwidth : float, optional
        Half-width of the biweight window, in the unit of the axis. By default ``2.65 sd V^(-1/5)``, chosen from
        the scores alone: `V` is the null variance ``sum p (1 - p)`` and `sd` the deviation of the scores.
    axis : {"probability", "logit"}
        What is smoothed and equally spaced; ``"logit"`` for rare events.
    method : {"smooth", "isotonic"}
        ``"isotonic"`` is the monotone fit of CORP instead of the local-linear one.
    alpha : float in (0, 1)
        Error probability of the whole band.
    draws, seed : int
        Simulated data sets, and their seed.

    Returns
    -------
    Curve
        Columns: ``score``; ``predicted`` (smoothed score) and ``observed`` (``predicted + gap``, kept in [0, 1]);
        ``gap``; ``gap_low``, ``gap_high`` (simultaneous); ``point_low``, ``point_high`` (each point by itself);
        ``rows`` (effective rows: whose plain mean would be as noisy; isotonic: rows of the constant stretch);
        ``density_cases``, ``density_noncases`` (of the scores of each class, per unit of the axis); ``stretch``
        (a new number after each hole). In ``settings``: ``p_value`` of the whole curve, ``statistic``,
        ``critical``, the half-width used as ``bandwidth``, and ``masked``, the number of points left out.
        ``.chart()`` draws it.

    Raises
    ------
    NotComputable
        Under 50 expected cases or non-cases; a single score; weights or clusters.

    Notes
    -----
    **Assumes.** Independent rows; bandwidth and grid chosen without the labels.
    **Guarantee.** *Whole curve.* ``p_value = (1 + #{T* >= T}) / (draws + 1)`` with T the largest of
    ``|gap| / null standard error`` over the points: level `alpha` at any number of rows, for scores that are equal
    within a cell; where they differ within a cell (a fiftieth of the half-width at most) the simulated outcomes vary
    very slightly more than real ones, on the safe side. *Band, smooth.* Half-width ``critical`` times the larger of
    two standard errors: at the rate the model says, and at the rate observed. By the first, a calibrated model's
    band excludes zero anywhere with probability at most `alpha` (then too ``p_value <= alpha``). By the second, where
    the model is off, it is a confidence band for the smoothed gap ``g``, asymptotically and simultaneously; it is not
    one for the unsmoothed ``E[Y | p] - p``, whose bumps narrower than the window are averaged. *Band, isotonic.* The
    null band, recentred at the estimate: it tells where the curve departs from zero, and is no confidence band.
    Points with under 20 effective rows, or under 5 effective expected cases or non-cases, are left out (smooth).
    **Method.** Null: ``Y* ~ Binomial(n_cell, mean score of the cell)`` given the scores. Isotonic:
    `sklearn.isotonic` on cells weighted by rows; the scale of each point from 199 draws of their own, so that the
    level stays exact.
    **Cost.** Linear in the rows, then cells times points, and cells times draws: under a second at a million rows
    for the defaults; isotonic a second more.
    **Reads.** The sketch; the same curve from rows.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), doi:10.1073/pnas.2016191118 (CORP, the isotonic curve).
    Copas (1983), doi:10.2307/2347857 (smoothing outcomes on the score).

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**1.3, p)
    >>> curve = cal.diagnose.reliability_curve(data)
    >>> curve.settings["p_value"]
    0.001
    >>> max(curve.columns["gap_high"]) < 0.05, min(curve.columns["gap"]) < -0.05
    (True, True)
    """
    shares(alpha, "two-sided")
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or (draws + 1) * alpha < 1.0 - 1e-9:
        raise BadInput(f"draws={draws!r}: alpha={alpha:g} needs at least {int(np.ceil(1 / alpha)) - 1} draws")
    return curve_of(everyone(data, seed), grid, bandwidth, axis, method, alpha, int(draws), seed)


def curve_of(
    q: Population,
    grid: Any,
    bandwidth: float | None,
    axis: Axis,
    method: Method,
    alpha: float,
    draws: int,
    seed: int,
    smallest: int = 1,
) -> Curve:
    """Draw the curve of one population; cells are joined until they hold `smallest` rows, so that none shows fewer."""
    if method not in ("smooth", "isotonic"):
        raise BadInput(f"method={method!r}: pass 'smooth' or 'isotonic'")
    s = scored(q, axis, grid, bandwidth, STEPS if method == "isotonic" else None, smallest)
    make = isotonic.monotone if method == "isotonic" else smooth.smoothed
    columns, test, masked = make(s, alpha, draws, seed)
    plain: Mapping[str, Any] = {k: tuple(np.asarray(v).tolist()) for k, v in columns.items()}
    return Curve(
        method=METHOD,
        columns=plain,
        settings={
            "alpha": alpha,
            "axis": axis,
            "band": isotonic.BAND if method == "isotonic" else smooth.BAND,
            "bandwidth": s.half,
            "critical": test.critical,
            "draws": draws,
            "masked": masked,
            "method": method,
            "p_value": test.p_value,
            "seed": seed,
            "smallest": smallest,
            "statistic": test.statistic,
            "trim": list(TRIM),
        },
    )
