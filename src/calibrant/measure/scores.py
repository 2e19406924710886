"""Brier score, log loss, AUROC, observed over expected, calibration intercept and slope."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, number, one_source
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Estimate
from calibrant.stats.logistic import Recalibration, recalibrate
from calibrant.stats.measures import (
    area_interval,
    isotonic_parts,
    mean_interval,
    normal_quantile,
    ranking,
    ratio_interval,
)
from calibrant.views.points import Points, both_outcomes, points

Floats = NDArray[np.float64]

# ---- Proper scores: Brier score and log loss ----

WALD = "Wald, with noise for outcomes not seen"


@one_source
def brier(data: Predictions | Sketch, *, alpha: float = 0.05) -> Estimate:
    r"""Brier score, with its reliability, resolution and uncertainty.

    Estimand: ``E[(p - Y)^2]``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        Smaller is better. Settings hold ``reliability`` (miscalibration, smaller is better), ``resolution``
        (discrimination, larger is better) and ``uncertainty`` (of the outcome); the score is exactly
        reliability - resolution + uncertainty.

    Raises
    ------
    NotComputable
        The data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage. The parts have no interval; reliability is too large by the noise
    that isotonic regression fits.
    **Method.** The CORP decomposition: reliability is how much isotonic recalibration improves the score, resolution
    how much the recalibrated score improves on the overall rate. No bins, no tuning, never negative. Interval: mean
    and standard error; in each of 15 bins the variance counts an outcome that is rare or absent as `ece` does, so
    that its absence does not make the width zero.
    **Coverage.** 0.939 to 1.00 in nine designs at 200 and 2,000 rows (1,000 samples each). See docs/measures.md.
    **Cost.** A sort of the rows.
    **Reads.** Rows, or the sketch's cells at their mean score: then too small by at most a quarter of the squared
    width of a cell.

    References
    ----------
    Brier, Monthly Weather Review 78 (1950). Dimitriadis, Gneiting, Jordan, "Stable reliability diagrams for
    probabilistic classifiers", PNAS 118 (2021), doi:10.1073/pnas.2016191118.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.measure.brier(cal.predictions([0, 1, 1, 0], [0.5, 0.5, 1.0, 0.0]))
    >>> found.value, found.settings["reliability"], found.settings["uncertainty"]
    (0.125, 0.0, 0.25)
    """
    checked_alpha(alpha)
    q = points(data)
    share, score, missing = q.unseen
    extra = float((share * missing * (1.0 - 2.0 * score) ** 2).sum())
    value, low, high = mean_interval((q.p - q.y) ** 2, q.mass, q.mass * q.each_weighs, extra, normal_quantile(alpha))
    parts = isotonic_parts(q.p, q.y, q.mass)
    return q.estimate(
        "brier",
        value,
        (low, min(high, 1.0)),
        alpha,
        "",
        **parts,
        decomposition="isotonic (CORP)",
        interval=WALD,
    )


@one_source
def log_loss(data: Predictions | Sketch, *, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
    r"""Logarithmic loss (cross-entropy).

    Estimand: ``-E[Y ln p + (1 - Y) ln(1 - p)]``, in nats.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    clip : float in [0, 0.5)
        Probabilities are moved into ``[clip, 1 - clip]``. By default they are not.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        Smaller is better. Settings count the rows that were clipped.

    Raises
    ------
    NotComputable
        A certain prediction was wrong, so the loss is infinite, and `clip` is 0; or the data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights; a loss with finite variance.
    **Guarantee.** Asymptotic: see Coverage. Scores near 0 or 1 that are sometimes wrong make large losses rare,
    and an interval from a sample without any of them too short.
    **Method.** Mean and standard error, as `brier`.
    **Coverage.** 0.938 to 1.00 in nine designs at 200 and 2,000 rows (1,000 samples each). See docs/measures.md.
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
    q = points(data)
    p, clipped = clipped_scores(q, clip)
    wrong = q.times[((p == 0) & (q.y == 1)) | ((p == 1) & (q.y == 0))].sum()
    if wrong:
        raise NotComputable(
            f"log loss is infinite: {int(wrong):,} rows with probability 0 or 1 had the other outcome; pass clip=1e-6"
        )
    sure = (p == 0) | (p == 1)
    if sure.all():
        raise NotComputable("every probability is 0 or 1, and log loss says nothing of such; pass clip=1e-6")
    chance = np.where(q.y == 1, p, 1.0 - p)
    share, score, missing = q.unseen
    edge = max(clip, 1e-12)
    swing = np.log(np.clip(score, edge, 1 - edge) / np.clip(1 - score, edge, 1 - edge))
    extra = float((share * missing * swing**2).sum())
    value, low, high = mean_interval(-np.log(chance), q.mass, q.mass * q.each_weighs, extra, normal_quantile(alpha))
    return q.estimate("log_loss", value, (low, high), alpha, "", clip=clip, clipped=clipped, interval=WALD)


def clipped_scores(q: Points, clip: float) -> tuple[Floats, int]:
    """Return the scores moved into ``[clip, 1 - clip]``, and how many rows moved."""
    clip = number("clip", clip, least=0, below=0.5, hint="such as 1e-6")
    p = np.clip(q.p, clip, 1 - clip) if clip else q.p
    return p, int(q.times[p != q.p].sum())


# ---- Discrimination ----


@one_source
def auroc(data: Predictions | Sketch, *, alpha: float = 0.05) -> Estimate:
    r"""Area under the receiver operating characteristic curve.

    Estimand: ``P(p > p') + P(p = p') / 2`` for a case with score p and a non-case with score p'.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        Larger is better; 0.5 is chance. It says nothing about calibration.

    Raises
    ------
    NotComputable
        Every outcome is the same, or the data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage.
    **Method.** DeLong's standard error from midranks (Sun & Xu), and a Wald interval on the logit scale. Where the
    standard error is zero or unknown (one outcome above the other everywhere, or fewer than two rows of one), a score
    interval with the variance of Hanley and McNeil (Newcombe); settings say which. With weights an outcome's squared
    influence carries the squared weight.
    **Coverage.** 0.938 to 0.955 in eight designs at 200 and 2,000 rows (1,000 samples each); too short with few cases:
    0.89 with one to three, 0.93 with ten. See docs/measures.md. **Cost.** A sort of the rows. **Reads.** Rows, or the
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
    q = points(data)
    both_outcomes(q, "the AUROC")
    found = ranking(q.p, q.y, q.times, q.each_weighs)
    low, high, name = area_interval(found, normal_quantile(alpha))
    return q.estimate(
        "auroc",
        found.auroc,
        (low, high),
        alpha,
        "probability",
        interval=name,
        standard_error=found.error,
        cases=q.cases,
        others=q.n - q.cases,
    )


# ---- Observed over expected ----


@one_source
def observed_expected(data: Predictions | Sketch, *, alpha: float = 0.05) -> Estimate:
    r"""Observed over expected number of cases.

    Estimand: ``E[Y] / E[p]``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        1 is best; above 1 the predictions are too low, below 1 too high. Settings hold both numbers of cases.

    Raises
    ------
    NotComputable
        Every score is zero, or the data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage.
    **Method.** A score interval (Wilson's, for a ratio of means): the variance is that of ``Y - R p`` under the
    ratio R on trial, and so has width with no case at all. Scores count as random, as outcomes do.
    **Coverage.** 0.943 to 0.965 in nine designs at 200 and 2,000 rows (1,000 samples each), but 0.926 where one case
    was expected. See docs/measures.md. **Cost.** One pass over the rows. **Reads.** Rows, or the sketch's cells.

    References
    ----------
    Wilson, J. Am. Statist. Assoc. 22 (1927), doi:10.1080/01621459.1927.10502953. Debray et al., BMJ 356 (2017),
    doi:10.1136/bmj.i6460.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.measure.observed_expected(cal.predictions([0, 1, 1, 0], [0.2, 0.3, 0.3, 0.2])).value
    2.0
    """
    checked_alpha(alpha)
    q = points(data)
    expected = float(q.mass @ q.p)
    if expected == 0.0:
        raise NotComputable("observed over expected has no value: every probability is zero")
    value, low, high = ratio_interval(q.p, q.y, q.times, q.each_weighs, normal_quantile(alpha))
    return q.estimate(
        "observed_expected",
        value,
        (low, high),
        alpha,
        "ratio",
        observed=float(q.mass @ q.y),
        expected=expected,
        interval="score interval for a ratio of means",
    )


# ---- Calibration in the large and calibration slope, by logistic recalibration ----

RECALIBRATION_WALD = "Wald, with the larger of the sandwich and the model variance"
FEWEST = 10  # rows of each outcome, below which the slope's interval missed far too often


@one_source
def calibration_intercept(data: Predictions | Sketch, *, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
    r"""Calibration intercept: by how many logits the scores are too low overall (calibration in the large).

    Estimand: a such that ``E[Y] = E[expit(a + logit p)]``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    clip : float in [0, 0.5)
        Probabilities are moved into ``[clip, 1 - clip]``. By default they are not.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        0 is best; above 0 the predictions are too low, below 0 too high.

    Raises
    ------
    NotComputable
        Probabilities are exactly 0 or 1 and `clip` is 0, every outcome is the same, or the data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic: see Coverage.
    **Method.** Logistic regression of the outcome on a constant with ``logit p`` as offset; Newton's method; Wald
    interval with the larger of the model's variance and the sandwich's, which does not need the logistic form to hold.
    **Coverage.** 0.943 to 0.962 in eight designs at 200 and 2,000 rows (1,000 samples each); 0.932 with one case
    expected. See docs/measures.md. **Cost.** About six passes over the rows. **Reads.** Rows, or the sketch's cells at
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
    checked_alpha(alpha)
    q = points(data)
    logit, clipped = _logits(q, clip, "the calibration intercept")
    fit = recalibrate(logit, q.y.astype(np.float64), q.times, q.each_weighs, False)
    return _estimate(q, "calibration_intercept", fit, alpha, clip=clip, clipped=clipped)


@one_source
def calibration_slope(data: Predictions | Sketch, *, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
    r"""Calibration slope: whether the scores are too extreme or too timid.

    Estimand: b in the best ``logit P(Y = 1) = a + b logit p``.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; clusters are refused.
    clip : float in [0, 0.5)
        Probabilities are moved into ``[clip, 1 - clip]``. By default they are not. The slope depends on it strongly
        where many scores are extreme.
    alpha : float in (0, 1)

    Returns
    -------
    Estimate
        1 is best; below 1 the predictions are too extreme (overfitted), above 1 too timid. ``settings["intercept"]``
        is the a beside it, not the `calibration_intercept`.

    Raises
    ------
    NotComputable
        Probabilities are exactly 0 or 1 and `clip` is 0, an outcome has fewer than 10 rows, every score is the same,
        the scores separate the outcomes, or the data has clusters.

    Notes
    -----
    **Assumes.** Independent rows, or rows sampled with known weights.
    **Guarantee.** Asymptotic, for the best logistic recalibration, true or not: see Coverage.
    **Method.** Logistic regression of the outcome on ``logit p``; Newton's method; Wald interval with the larger of
    the sandwich's and the model's variance.
    **Coverage.** 0.927 to 0.959 in eight designs at 200 and 2,000 rows (1,000 samples each, with the sandwich alone);
    0.96 with about fifteen cases. See docs/measures.md. **Cost.** About eight passes over the rows. **Reads.** Rows, or
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
    q = points(data)
    logit, clipped = _logits(q, clip, "the calibration slope")
    few = min(q.cases, q.n - q.cases)
    if few < FEWEST:
        raise NotComputable(f"the calibration slope needs {FEWEST} rows of each outcome; one has {few}")
    if np.ptp(logit) == 0:
        raise NotComputable("the calibration slope needs scores that differ; all are equal")
    case, other = logit[q.y == 1], logit[q.y == 0]
    if case.min() >= other.max() or case.max() <= other.min():
        raise NotComputable("the calibration slope is infinite: the scores separate the outcomes")
    fit = recalibrate(logit, q.y.astype(np.float64), q.times, q.each_weighs, True)
    return _estimate(q, "calibration_slope", fit, alpha, clip=clip, clipped=clipped)


def _logits(q: Points, clip: float, what: str) -> tuple[Floats, int]:
    p, clipped = clipped_scores(q, clip)
    extreme = q.times[(p == 0) | (p == 1)].sum()
    if extreme:
        raise NotComputable(
            f"{what} needs finite logits: {int(extreme):,} rows have probability exactly 0 or 1; pass clip=1e-6"
        )
    both_outcomes(q, what)
    return np.log(p) - np.log1p(-p), clipped


def _estimate(q: Points, name: str, fit: Recalibration, alpha: float, **clipping: float) -> Estimate:
    """Return the last coefficient of a logistic recalibration with its Wald interval."""
    if not fit.converged:
        raise NotComputable("the recalibration has no finite solution: the scores separate the outcomes, or almost do")
    value, half = float(fit.coefficients[-1]), normal_quantile(alpha) * float(fit.errors[-1])
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
