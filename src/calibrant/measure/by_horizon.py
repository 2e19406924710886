"""How far observed probabilities by a horizon are from the score, by a smooth curve: ICI, E50 and E90."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_alpha, checked_seed
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Interval
from calibrant.stats.missing.survival import Cohort, cloglog, fit, knots_of, splines
from calibrant.views.unlabelled import FollowedRows

Floats = NDArray[np.float64]
DRAWS, FEWEST, EVENTS = 200, 0.9, 10  # bootstrap samples, the share of them that must fit, and events at least
EDGE = 1e-9  # scores nearer to 0 or 1 are moved to it: their cloglog is infinite
POINTS = 101
SAMPLE = 0x1C1  # stream of random numbers
ASSUMES = "independent rows, lost to follow-up independently of the outcome given the score"
COX, FINE_GRAY = "Cox's model", "Fine and Gray's model"
MODEL = "{} on restricted cubic splines of ln(-ln(1 - p)), Efron's ties"


@dataclass(frozen=True)
class Smoothed:
    """Observed probabilities at some scores: of the data, and of bootstrap samples."""

    at: Floats  # shape (points,)
    observed: Floats  # shape (points,)
    again: Floats  # shape (draws, points)


def smoothed(rows: FollowedRows, at: Floats, knots: int, draws: int, seed: int) -> Smoothed:
    """Fit the curve, and again in bootstrap samples; knots stay where they are."""
    events = (rows.kind == 1) & (rows.time <= rows.horizon)
    if int(events.sum()) < EVENTS:
        raise NotComputable(f"a smooth curve by a horizon needs at least {EVENTS} events by it")
    if len(rows.levels) > 1:
        raise NotComputable(
            "a smooth curve by a horizon takes being lost as independent given the score alone, and levels of within= "
            "(--within) are not read: leave it out, or read the Brier score, AUROC and O/E, which weigh by level"
        )
    z, ends = (cloglog(np.clip(p, EDGE, 1.0 - EDGE)) for p in (rows.p, at))
    if np.ptp(z) == 0.0:
        raise NotComputable("all scores are equal, so that no curve runs through them")
    where = knots_of(z, knots)
    x, points = splines(z, where), splines(ends, where)
    scale = x.std(axis=0)
    x, points = x / scale, points / scale
    cohort = Cohort.of(rows.time, rows.kind, x)
    observed = fit(cohort, rows.horizon).risk(points)
    rng, again = np.random.default_rng([seed, SAMPLE]), []
    for _ in range(draws):
        times = np.bincount(rng.integers(0, len(z), len(z)), minlength=len(z))
        try:
            again.append(fit(cohort.again(times), rows.horizon).risk(points))
        except NotComputable:
            continue
    if len(again) < FEWEST * draws:
        raise NotComputable("Cox's model of the score did not converge in too many bootstrap samples")
    return Smoothed(at, observed, np.array(again).reshape(-1, len(points)))


def smoother(rows: FollowedRows) -> str:
    """What the curve is, in words."""
    return MODEL.format(FINE_GRAY if (rows.kind > 1).any() else COX)


def checked_knots(knots: int) -> int:
    """From 3 to 5 knots."""
    return check_int("knots", knots, 3, 5)


@takes_arrays
def integrated_calibration_index(
    data: Predictions | Sketch, *, knots: int = 3, alpha: float = 0.05, seed: int = 0
) -> Estimate:
    r"""Integrated calibration index by a horizon (ICI), with E50, E90 and the largest difference.

    Estimand: ``E|o(p) - p|``, where ``o(p)`` is the smoothed probability of the event by the horizon at the score p.
    With competing events it is the absolute risk.

    Parameters
    ----------
    data : Predictions
        From `calibrant.at_horizon` with ``way="weights"``.
    knots : int from 3 to 5
        Of the restricted cubic spline, at Harrell's quantiles of ``ln(-ln(1 - p))``.
    alpha : float in (0, 0.5]
    seed : int
        Of the bootstrap samples.

    Returns
    -------
    Estimate
        Smaller is better; never negative, and above 0 by chance where the score is calibrated. Settings hold ``e50``,
        ``e90`` and ``emax``: the median, the ninth decile and the largest of ``|o(p) - p|``.

    Raises
    ------
    NotComputable
        Fewer than ten events, clusters or weights, one score, or levels of `within`.

    Notes
    -----
    **Assumes.** Independent rows; being lost independent of the outcome given the score; hazards proportional in it,
    with competing events those of the absolute risk, and then being lost independent of the score too.
    **Guarantee.** Asymptotic, of the smoothed curve: percentiles of 200 bootstrap samples. Where the score is
    calibrated the interval lies above 0.
    **Method.** Austin, Harrell and van Klaveren's, by Cox's model on splines; the numbers are those of R's ``coxph``
    with Efron's ties. They use ``log(-log(1 - p))`` too, and compute o(p) from the baseline hazard by the horizon. With
    competing events Fine and Gray's model, as Austin and others have it: rows that had another event stay at risk, by
    weights of censoring; the numbers are those of ``coxph`` after ``finegray``.
    **Cost.** 201 fits. **Reads.** Rows.

    References
    ----------
    Austin, Harrell, van Klaveren, Statistics in Medicine 39 (2020), doi:10.1002/sim.8570.
    Austin, Putter, Giardiello, van Klaveren, Diagnostic and Prognostic Research 6 (2022),
    doi:10.1186/s41512-021-00114-6.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scale = rng.uniform(500, 2000, 2000)
    >>> ends, lost = rng.exponential(scale), rng.exponential(2000, 2000)
    >>> log = {"t": np.minimum(ends, lost), "e": ends <= lost, "p": 1 - np.exp(-365 / scale)}
    >>> rows = cal.at_horizon(log, score="p", time="t", event="e", horizon=365, way="weights")
    >>> cal.measure.integrated_calibration_index(rows).value < 0.02
    True
    """
    alpha, knots, seed = checked_alpha(alpha), checked_knots(knots), checked_seed(seed)
    rows = FollowedRows.of(data)
    curve = smoothed(rows, rows.p, knots, DRAWS, seed)
    off = np.abs(curve.observed - rows.p)
    low, high = np.quantile(np.abs(curve.again - rows.p).mean(axis=1), [alpha / 2.0, 1.0 - alpha / 2.0])
    value = float(off.mean())
    return Estimate(
        method="measure.integrated_calibration_index",
        value=value,
        unit="probability",
        n=len(rows.p),
        interval=Interval(
            low=min(float(low), value), high=max(float(high), value), level=1.0 - alpha, guarantee="asymptotic"
        ),
        assumes=ASSUMES,
        settings={
            "horizon": rows.horizon,
            "unknown": int((~rows.known).sum()),
            "e50": float(np.quantile(off, 0.5)),
            "e90": float(np.quantile(off, 0.9)),
            "emax": float(off.max()),
            "knots": knots,
            "smoother": smoother(rows),
            "draws": len(curve.again),
            "seed": seed,
        },
    )


@takes_arrays
def curve_by_horizon(
    data: Predictions | Sketch, *, knots: int = 3, grid: int = POINTS, alpha: float = 0.05, seed: int = 0
) -> Curve:
    r"""Draw the smoothed probability of the event by a horizon against the score, with a simultaneous band.

    Estimand: ``o(p)`` as of `integrated_calibration_index`, from the 1st to the 99th percentile of the score.

    Parameters
    ----------
    data : Predictions
        From `calibrant.at_horizon` with ``way="weights"``.
    knots : int from 3 to 5
    grid : int from 2 to 1001
        Number of scores.
    alpha : float in (0, 0.5]
        Error probability of the whole band.
    seed : int
        Of the bootstrap samples.

    Returns
    -------
    Curve
        Columns ``x`` (the score), ``observed``, ``gap`` (observed minus the score), ``low`` and ``high`` of the gap,
        simultaneous.

    Raises
    ------
    NotComputable
        As `integrated_calibration_index`.

    Notes
    -----
    **Assumes.** As `integrated_calibration_index`.
    **Guarantee.** Asymptotic, of the smoothed curve: the largest deviation of 200 bootstrap samples, in their standard
    deviations of ``ln(-ln(1 - o))``.
    **Cost.** 201 fits. **Reads.** Rows.

    References
    ----------
    Austin, Harrell, van Klaveren, Statistics in Medicine 39 (2020), doi:10.1002/sim.8570.
    Austin, Putter, Giardiello, van Klaveren, Diagnostic and Prognostic Research 6 (2022),
    doi:10.1186/s41512-021-00114-6.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scale = rng.uniform(500, 2000, 2000)
    >>> ends, lost = rng.exponential(scale), rng.exponential(2000, 2000)
    >>> log = {"t": np.minimum(ends, lost), "e": ends <= lost, "p": 1 - np.exp(-365 / scale)}
    >>> rows = cal.at_horizon(log, score="p", time="t", event="e", horizon=365, way="weights")
    >>> curve = cal.diagnose.curve_by_horizon(rows, grid=5)
    >>> all(low <= 0 <= high for low, high in zip(curve.columns["low"], curve.columns["high"]))
    True
    """
    alpha, knots, seed = checked_alpha(alpha), checked_knots(knots), checked_seed(seed)
    grid = check_int("grid", grid, 2, 1001)
    rows = FollowedRows.of(data)
    first, last = np.quantile(rows.p, [0.01, 0.99])
    x = np.linspace(float(first), float(last), grid)
    curve = smoothed(rows, x, knots, DRAWS, seed)
    z, again = (cloglog(np.clip(o, EDGE, 1.0 - EDGE)) for o in (curve.observed, curve.again))
    noise = np.maximum(again.std(axis=0, ddof=1), 1e-12)
    reach = float(np.quantile((np.abs(again - z) / noise).max(axis=1), 1.0 - alpha))
    low, high = (-np.expm1(-np.exp(z + side * reach * noise)) for side in (-1.0, 1.0))
    columns = {"x": x, "observed": curve.observed, "gap": curve.observed - x, "low": low - x, "high": high - x}
    return Curve(
        method="diagnose.curve_by_horizon",
        columns={k: tuple(v.tolist()) for k, v in columns.items()},
        settings={
            "horizon": rows.horizon,
            "alpha": alpha,
            "knots": knots,
            "smoother": smoother(rows),
            "draws": len(curve.again),
            "seed": seed,
            "assumes": ASSUMES,
            "guarantee": "asymptotic",
        },
    )
