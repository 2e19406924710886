"""Calibration in the large and calibration slope, by logistic recalibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import NotComputable
from calibrant.measure.points import Points, both_outcomes, checked_alpha, points
from calibrant.measure.scores import clipped_scores
from calibrant.results import Estimate
from calibrant.stats.scoring import normal_quantile, recalibrate

WALD = "Wald, with the larger of the sandwich and the model variance"
FEWEST = 10  # rows of each outcome, below which the slope's interval missed far too often


def calibration_intercept(data: Any, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
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
    return _estimate(q, "calibration_intercept", logit, False, alpha, clip, clipped)


def calibration_slope(data: Any, clip: float = 0.0, alpha: float = 0.05) -> Estimate:
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
    return _estimate(q, "calibration_slope", logit, True, alpha, clip, clipped)


def _logits(q: Points, clip: Any, what: str) -> tuple[Any, int]:
    p, clipped = clipped_scores(q, clip)
    extreme = q.times[(p == 0) | (p == 1)].sum()
    if extreme:
        raise NotComputable(
            f"{what} needs finite logits: {int(extreme):,} rows have probability exactly 0 or 1; pass clip=1e-6"
        )
    both_outcomes(q, what)
    return np.log(p) - np.log1p(-p), clipped


def _estimate(q: Points, name: str, logit: Any, slope: bool, alpha: float, clip: float, clipped: int) -> Estimate:
    fit = recalibrate(logit, q.y, q.times, q.heft, slope)
    if not fit.converged:
        raise NotComputable("the recalibration has no finite solution: the scores separate the outcomes, or almost do")
    value, half = float(fit.coefficients[-1]), normal_quantile(alpha) * float(fit.errors[-1])
    more = {"intercept": float(fit.coefficients[0])} if slope else {}
    return q.estimate(
        name,
        value,
        (value - half, value + half),
        alpha,
        "",
        **more,
        clip=clip,
        clipped=clipped,
        interval=WALD,
        standard_error=float(fit.errors[-1]),
    )
