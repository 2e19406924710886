"""Brier score, log loss, AUROC, observed over expected, calibration intercept and slope."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.measure.classes import brier_of_classes, log_loss_of_classes
from calibrant.results import Estimate
from calibrant.stats.logistic import Recalibration, recalibrate
from calibrant.stats.measures import (
    Weighed,
    area_interval,
    isotonic_parts,
    loss_interval,
    normal_quantile,
    rate_interval,
)
from calibrant.views.points import HorizonPoints, Points, both_outcomes, points_by_horizon

Floats = NDArray[np.float64]

# ---- Proper scores: Brier score and log loss ----

JOINED = "limits of two bounded means (Clopper and Pearson's, with the variance seen): of likely and unlikely outcomes"
UNLIMITED = (
    "the calibration intercept has no finite limits: so few rows or clusters decide the mean outcome, by their number "
    "or their weights, that it could be 0 or 1"
)
COUNTED = "limits of the rarer outcome's count (Clopper and Pearson's, with the variance of Y less its rate)"
AREA = "score interval with the variance of Hanley and McNeil (Newcombe 2006), or DeLong's on the logit scale if wider"


@takes_arrays
def brier(data: Predictions | MulticlassPredictions | Sketch, *, alpha: float = 0.05) -> Estimate:
    r"""Brier score, with its reliability, resolution and uncertainty.

    Estimand: ``E[(p - Y)^2]``; of several classes ``E[sum_k (p_k - 1{Y = k})^2]``, from 0 to 2, without the parts.

    Parameters
    ----------
    data : Predictions, MulticlassPredictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        Smaller is better. Settings hold ``reliability`` (miscalibration, smaller is better), ``resolution``
        (discrimination, larger is better) and ``uncertainty`` (of the outcome); the score is exactly
        reliability - resolution + uncertainty. By a horizon also ``scaled``: one less the score over that of the
        Aalen-Johansen estimate for everyone (the index of prediction accuracy; larger is better).

    Raises
    ------
    NotComputable
        All rows are one cluster.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage. The parts have no interval; reliability is too large by the noise
    that isotonic regression fits.
    **Method.** The CORP decomposition: reliability is how much isotonic recalibration improves the score, resolution
    how much the recalibrated score improves on the overall rate. No bins, no tuning, never negative. Interval: the
    loss of the likelier outcome is a mean of numbers up to 1/4, what the other one adds a sum over rare rows; each has
    the limits of Clopper and Pearson, with the variance seen (Fay and Feuer's where rows are rare), and they are joined
    as Zou and Donner join two. Absent outcomes and large losses that were not seen have width so.
    **Coverage.** 0.955 or more in the worst designs that a search found, from one expected case. See docs/measures.md.
    **Cost.** A sort of the rows.
    **Reads.** Rows, or the sketch's cells at their mean score: then too small by at most a quarter of the squared
    width of a cell.

    References
    ----------
    Brier, Monthly Weather Review 78 (1950). Dimitriadis, Gneiting, Jordan, "Stable reliability diagrams for
    probabilistic classifiers", PNAS 118 (2021), doi:10.1073/pnas.2016191118. Fay, Feuer, Statistics in Medicine 16
    (1997), doi:10.1002/(SICI)1097-0258(19970415)16:7<791::AID-SIM500>3.0.CO;2-#. Zou, Donner, Statistics in Medicine 27
    (2008), doi:10.1002/sim.3095.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.measure.brier(cal.predictions([0, 1, 1, 0], [0.5, 0.5, 1.0, 0.0]))
    >>> found.value, found.settings["reliability"], found.settings["uncertainty"]
    (0.125, 0.0, 0.25)
    """
    checked_alpha(alpha)
    if isinstance(data, MulticlassPredictions):
        return brier_of_classes(data, alpha)
    q = points_by_horizon(data)
    base, swing = np.minimum(q.p, 1.0 - q.p) ** 2, np.abs(1.0 - 2.0 * q.p)
    value, low, high = loss_interval(q.weighed, q.p, base, swing, 0.25, q.level(alpha))
    parts = isotonic_parts(q.p, q.y, q.mass)
    if isinstance(q, HorizonPoints) and parts["uncertainty"]:
        parts["scaled"] = 1.0 - value / parts["uncertainty"]
    return q.estimate(
        "brier",
        value,
        (low, min(high, 1.0)),
        alpha,
        "",
        **parts,
        decomposition="isotonic (CORP)",
        interval=JOINED,
    )


@takes_arrays
def log_loss(data: Predictions | MulticlassPredictions | Sketch, *, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
    r"""Logarithmic loss (cross-entropy).

    Estimand: ``-E[Y ln p + (1 - Y) ln(1 - p)]``, in nats; of several classes ``-E[ln p_Y]``.

    Parameters
    ----------
    data : Predictions, MulticlassPredictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    clip : float in [0, 0.5)
        Probabilities are moved into ``[clip, 1 - clip]``. By default they are not.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        Smaller is better. Settings count the rows that were clipped.

    Raises
    ------
    NotComputable
        A certain prediction was wrong, so the loss is infinite, and `clip` is 0; or all rows are one cluster.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage. A score that is nearer to 0 or 1 than all in the sample could lose more.
    **Method.** Mean; interval as `brier`: a loss as large as the most certain score's is allowed for, seen or not.
    **Coverage.** 0.950 or more in the worst designs that a search found, from one expected case. See docs/measures.md.
    **Cost.** One pass over the rows.
    **Reads.** Rows, or the sketch's cells at their mean score: then scores within a cell (``2^-14``) of 0 or 1 may
    differ.

    References
    ----------
    Good, "Rational decisions", J. R. Statist. Soc. B 14 (1952), doi:10.1111/j.2517-6161.1952.tb00104.x.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.measure.log_loss(cal.predictions([0, 1], [0.5, 0.5])).value, 4)
    0.6931
    """
    checked_alpha(alpha)
    if isinstance(data, MulticlassPredictions):
        return log_loss_of_classes(data, clip, alpha)
    q = points_by_horizon(data)
    p, clipped = clipped_scores(q, clip)
    wrong = q.times[((p == 0) & (q.y == 1)) | ((p == 1) & (q.y == 0))].sum()
    if wrong:
        raise NotComputable(
            f"log loss is infinite: {int(wrong):,} row{'' if wrong == 1 else 's'} with probability 0 or 1 had the "
            "other outcome; pass clip=1e-6"
        )
    sure = (p == 0) | (p == 1)
    if sure.all():
        raise NotComputable("every probability is 0 or 1, and log loss says nothing of such; pass clip=1e-6")
    edge = max(clip, 1e-12)
    inside = np.where(sure, np.clip(p, edge, 1.0 - edge), p)  # such rows were right, and their swing a guess
    base, swing = -np.log1p(-np.minimum(p, 1.0 - p)), np.abs(np.log(inside) - np.log1p(-inside))
    value, low, high = loss_interval(q.weighed, p, base, swing, float(np.log(2.0)), q.level(alpha))
    return q.estimate("log_loss", value, (low, high), alpha, "", clip=clip, clipped=clipped, interval=JOINED)


def clipped_scores(q: Points, clip: float) -> tuple[Floats, int]:
    """The scores moved into ``[clip, 1 - clip]``, and how many rows moved."""
    clip = number("clip", clip, least=0, below=0.5, hint="such as 1e-6")
    p = np.clip(q.p, clip, 1 - clip) if clip else q.p
    return p, int(q.times[p != q.p].sum())


# ---- Discrimination ----


@takes_arrays
def auroc(data: Predictions | Sketch, *, alpha: float = 0.05) -> Estimate:
    r"""Area under the receiver operating characteristic curve.

    Estimand: ``P(p > p') + P(p = p') / 2`` for an event with score p and a non-event with score p'.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        Larger is better; 0.5 is chance. It says nothing about calibration.

    Raises
    ------
    NotComputable
        Every outcome is the same, or all rows are one cluster.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage.
    **Method.** DeLong's standard error from midranks (Sun & Xu). A score interval with the variance of Hanley and
    McNeil at the area on trial (Newcombe), larger by as much as DeLong's is at the estimate; or a Wald interval on the
    logit scale where that reaches further; the high end with Student's quantile, one degree of freedom fewer than there
    are of the rarer outcome. So one outcome above the other everywhere has width. With weights an
    outcome's squared influence carries the squared weight.
    **Coverage.** 0.940 or more in the worst designs that a search found, from one expected case, where it is wide. See
    docs/measures.md. **Cost.** A sort of the rows. **Reads.** Rows, or the
    sketch's cells: then pairs within a cell count as ties only if their cells' mean scores are equal, and otherwise by
    those means.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson, Biometrics 44 (1988), doi:10.2307/2531595. Sun, Xu, IEEE Signal Processing
    Letters 21 (2014), doi:10.1109/LSP.2014.2337313. Newcombe, Statistics in Medicine 25 (2006), doi:10.1002/sim.2324.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.measure.auroc(cal.predictions([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])).value
    0.75
    """
    checked_alpha(alpha)
    q = points_by_horizon(data)
    both_outcomes(q, "the AUROC")
    result = q.weighed.ranking(q.p, q.times)
    low, high = area_interval(result, q.level(alpha))
    return q.estimate(
        "auroc",
        result.auroc,
        (low, high),
        alpha,
        "probability",
        interval=AREA,
        standard_error=result.error,
        events=q.events,
        others=q.n - q.events,
    )


# ---- Observed over expected ----


@takes_arrays
def observed_expected(data: Predictions | Sketch, *, alpha: float = 0.05) -> Estimate:
    r"""Observed over expected number of events.

    Estimand: ``E[Y] / E[p]``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        1 is best; above 1 the predictions underpredict, below 1 they overpredict. Settings hold both numbers of events.

    Raises
    ------
    NotComputable
        The scores expect less than one event, or all rows are one cluster.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage.
    **Method.** Limits of the rarer outcome's count, those of Clopper and Pearson with the variance of ``Y - R p`` in
    place of a binomial's (Korn and Graubard), taken at the ratio R that they lead to. Scores count as random, as
    outcomes do.
    **Coverage.** 0.950 or more in the worst designs that a search found, from one expected case. See
    docs/measures.md. **Cost.** Twenty passes over the rows. **Reads.** Rows, or the sketch's cells.

    References
    ----------
    Clopper, Pearson (1934), doi:10.1093/biomet/26.4.404. Korn, Graubard, Survey Methodology 24 (1998).
    Debray et al., BMJ 356 (2017), doi:10.1136/bmj.i6460.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.measure.observed_expected(cal.predictions([0, 1, 1, 0], [0.2, 0.3, 0.3, 0.2])).value
    2.0
    """
    checked_alpha(alpha)
    q = points_by_horizon(data)
    if isinstance(q, HorizonPoints):
        return observed_by_horizon(q, alpha)
    expected = float(q.mass @ q.p)
    if expected == 0.0:
        raise NotComputable("observed over expected has no value: every probability is zero")
    w = q.weighed
    mean = w.mean(q.p)
    value = w.mean(w.y) / mean
    if w.rows * mean < 1.0 - 1e-9:
        raise NotComputable(
            f"observed over expected needs one event that the scores expect: they expect {w.rows * mean:.2g} among "
            f"{q.n:,} rows, and a few rows not seen would change the ratio manifold"
        )
    low, high = rate_interval(w, value, lambda t: t * q.p, lambda rate, _: rate / mean, q.level(alpha))
    return q.estimate(
        "observed_expected",
        value,
        (low, high),
        alpha,
        "ratio",
        observed=float(q.mass @ q.y),
        expected=expected,
        interval=COUNTED,
    )


def observed_by_horizon(q: HorizonPoints, alpha: float) -> Estimate:
    """Observed over expected by a horizon: the Aalen-Johansen estimate over the mean score of every row."""
    rows = q.rows
    expected = float(rows.p.mean())
    if not expected or not rows.risk:
        raise NotComputable("observed over expected by the horizon needs an event, and a score above zero")
    value, reach = rows.risk / expected, math.exp(normal_quantile(alpha) * rows.risk_error / rows.risk)
    made = q.estimate(
        "observed_expected",
        value,
        (value / reach, value * reach),
        alpha,
        "ratio",
        observed=rows.risk * len(rows.p),
        expected=expected * len(rows.p),
        interval="of the logarithm, by the variance of the Aalen-Johansen estimate (Greenwood's if nothing competes)",
    )
    return replace(made, assumes=f"independent rows, lost to follow-up independently of the outcome{q.of_levels}")


# ---- Calibration in the large and calibration slope, by logistic recalibration ----

RECALIBRATION_WALD = "Wald, with the larger of the sandwich and the model variance"
STEPS = 100  # of Newton's method, at most; it takes three to ten
FEWEST = 10  # rows of each outcome, below which the slope's interval missed far too often


@takes_arrays
def calibration_intercept(data: Predictions | Sketch, *, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
    r"""Calibration intercept: by how many logits the scores underpredict overall (calibration in the large).

    Estimand: a such that ``E[Y] = E[expit(a + logit p)]``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    clip : float in [0, 0.5)
        Probabilities are moved into ``[clip, 1 - clip]``. By default they are not.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        0 is best; above 0 the predictions underpredict, below 0 they overpredict.

    Raises
    ------
    NotComputable
        Probabilities are exactly 0 or 1 and `clip` is 0, every outcome is the same, all rows are one cluster, or so few
        rows or clusters carry the weight that the mean outcome could be 0 or 1.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage.
    **Method.** Logistic regression of the outcome on a constant with ``logit p`` as offset; Newton's method. Interval
    as that of `observed_expected`, through the intercept that gives each mean outcome.
    **Coverage.** 0.913 or more in the worst designs that a search found, from one expected case. See
    docs/measures.md. **Cost.** About fifty passes over the rows. **Reads.** Rows, or the sketch's cells at
    their mean score.

    References
    ----------
    Cox, Biometrika 45 (1958), doi:10.1093/biomet/45.3-4.562. Van Calster et al., "Calibration: the Achilles heel of
    predictive analytics", BMC Medicine 17 (2019), doi:10.1186/s12916-019-1466-7. White, Econometrica 50 (1982),
    doi:10.2307/1912526.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.measure.calibration_intercept(cal.predictions([1, 1, 1, 0], [0.5] * 4)).value, 4)
    1.0986
    """
    from scipy.special import expit

    checked_alpha(alpha)
    q = points_by_horizon(data)
    logit, clipped = _logits(q, clip, "the calibration intercept")
    fit = recalibrate(logit, q.weighed, False)
    result, w = _estimate(q, "calibration_intercept", fit, alpha, clip=clip, clipped=clipped), q.weighed

    def rates(gap: float) -> Floats:
        return np.asarray(expit(gap + logit))

    low, high = rate_interval(w, result.value, rates, lambda rate, start: _gap(w, logit, rate, start), q.level(alpha))
    interval = replace(result.interval, low=low, high=high)
    return replace(result, interval=interval, settings={**result.settings, "interval": COUNTED})


def _gap(w: Weighed, logit: Floats, rate: float, start: float) -> float:
    """What to add to the logits so that the rates have this mean: Newton's method on a logarithm."""
    from scipy.special import expit

    gap = start
    for _ in range(STEPS):
        there = expit(gap + logit)
        mean, slope = w.mean(there), max(w.mean(there * (1.0 - there)), 1e-300)
        if not (0.0 < rate < 1.0 and 0.0 < mean < 1.0):  # no shift that is finite leads there
            raise NotComputable(UNLIMITED)
        rest = np.log(rate / mean) * mean if rate < 0.5 else np.log((1.0 - mean) / (1.0 - rate)) * (1.0 - mean)
        step = min(max(float(rest) / slope, -5.0), 5.0)
        gap += step
        if abs(step) < 1e-9:
            break
    return gap


@takes_arrays
def calibration_slope(data: Predictions | Sketch, *, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
    r"""Calibration slope: whether the scores are too extreme or too timid.

    Estimand: b in the best ``logit P(Y = 1) = a + b logit p``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, the interval is by these clusters.
    clip : float in [0, 0.5)
        Probabilities are moved into ``[clip, 1 - clip]``. By default they are not. The slope depends on it strongly
        where many scores are extreme.
    alpha : float in (0, 0.5]

    Returns
    -------
    Estimate
        1 is best; below 1 the predictions are too extreme (overfitted), above 1 too timid. ``settings["intercept"]`` is
        the a next to it, not the `calibration_intercept`.

    Raises
    ------
    NotComputable
        Probabilities are exactly 0 or 1 and `clip` is 0, an outcome has fewer than 10 rows, every score is the same,
        the scores separate the outcomes, or all rows are one cluster.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic, for the best logistic recalibration, true or not: see Coverage.
    **Method.** Logistic regression of the outcome on ``logit p``; Newton's method; Wald interval with the larger of
    the sandwich's and the model's variance.
    **Coverage.** 0.945 or more in the worst designs that a search found. See docs/measures.md.
    **Cost.** About eight passes over the rows. **Reads.** Rows, or
    the sketch's cells at their mean score.

    References
    ----------
    As `calibration_intercept`.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.01, 0.99, size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p, p)
    >>> found = cal.measure.calibration_slope(data).interval
    >>> bool(found.low < 1 < found.high)
    True
    """
    checked_alpha(alpha)
    q = points_by_horizon(data)
    logit, clipped = _logits(q, clip, "the calibration slope")
    few = min(q.events, q.n - q.events)
    if few < FEWEST:
        raise NotComputable(f"the calibration slope needs {FEWEST} rows of each outcome; one has {few}")
    if np.ptp(logit) == 0:
        raise NotComputable("the calibration slope needs scores that differ; all are equal")
    event, other = logit[q.y == 1], logit[q.y == 0]
    if event.min() >= other.max() or event.max() <= other.min():
        raise NotComputable("the calibration slope is infinite: the scores separate the outcomes")
    fit = recalibrate(logit, q.weighed, True)
    return _estimate(q, "calibration_slope", fit, alpha, clip=clip, clipped=clipped)


def _logits(q: Points, clip: float, what: str) -> tuple[Floats, int]:
    p, clipped = clipped_scores(q, clip)
    extreme = q.times[(p == 0) | (p == 1)].sum()
    if extreme:
        raise NotComputable(
            f"{what} needs finite logits: {int(extreme):,} row{' has' if extreme == 1 else 's have'} probability "
            "exactly 0 or 1; pass clip=1e-6"
        )
    both_outcomes(q, what)
    return np.log(p) - np.log1p(-p), clipped


def _estimate(q: Points, name: str, fit: Recalibration, alpha: float, **clipping: float) -> Estimate:
    """The last coefficient of a logistic recalibration with its Wald interval."""
    if not fit.converged:
        raise NotComputable("the recalibration has no finite solution: the scores separate the outcomes, or almost do")
    value, half = float(fit.coefficients[-1]), normal_quantile(q.level(alpha)) * float(fit.errors[-1])
    more = {"intercept": float(fit.coefficients[0])} if len(fit.coefficients) > 1 else {}
    return q.estimate(
        name,
        value,
        (value - half, value + half),
        alpha,
        "",
        **more,
        **clipping,
        interval=RECALIBRATION_WALD,
        standard_error=float(fit.errors[-1]),
    )
