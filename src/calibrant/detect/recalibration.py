"""Tests of intercept and slope of the logistic recalibration: by likelihood (Cox) and by score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.detect.classical import Finding, Floats, Null, ScoreTestOptions, Tested, chi_square, tested
from calibrant.errors import NotComputable
from calibrant.results import Outcome
from calibrant.stats.classical import (
    Scored,
    by_logit,
    efficient_scores,
)
from calibrant.stats.cusum import Alternative
from calibrant.stats.logistic import compressed, recalibrate, recalibrations
from calibrant.stats.nulls import p_value

SANDWICH = "asymptotic: Wald test by the sandwich of clusters or weighted rows, adjusted for their number"
FEWEST = 20  # clusters, or weighted rows: a sandwich of fewer is too narrow
SPEAKS_FOR = "the intercept is not 0 or the slope is not 1 in logits"


@takes_arrays
def cox_test(data: Predictions | Sketch, *, draws: int = 999, null: Null = "simulated", seed: int = 0) -> Outcome:
    r"""Cox's test: are intercept 0 and slope 1 in ``logit P(Y = 1) = a + b logit p``? By likelihood ratio.

    Statistic: twice the log-likelihood gained by fitting a and b. Large values speak against calibration.

    Parameters
    ----------
    data : Predictions or Sketch
        With weights or clusters the test is Wald's, with the sandwich of weighted rows or of clusters.
    draws : int from 19
        Simulated data sets.
    null : {"simulated", "asymptotic"}
        ``"asymptotic"`` is chi-square with 2 degrees of freedom, 1 for each part; with weights or clusters it is F.
    seed : int

    Returns
    -------
    Outcome
        Parts: ``intercept`` with the slope kept at 1 (above 0 the scores underpredict), its ``intercept_error`` and
        ``intercept_p``; ``slope`` (below 1 the scores are too extreme), ``slope_error``, ``slope_p`` given a free
        intercept, and ``slope_intercept`` next to it; ``left_out``, rows whose score is exactly 0 or 1. The two
        statistics add up to the whole, but for Wald's.

    Raises
    ------
    NotComputable
        Every outcome is the same, or the scores separate the outcomes: the fit is infinite, use `score_test`. Scores do
        not differ; under 20 clusters or weighted rows.

    Notes
    -----
    **Assumes.** Independent rows; the scores were made without their outcomes. **Guarantee.** Simulated: level alpha at
    every number of rows. Asymptotic: with many expected events and non-events. With clusters or weights: asymptotic in
    clusters, or rows. **Method.** Cox (1958); likelihood ratios in the order of Miller et al. (1991). Estimates are by
    Newton's method over all rows, standard errors from the information there. A likelihood ratio depends on the
    outcomes through ``sum Y`` and ``sum Y logit p`` alone, so that simulated data sets are refitted all at once, with
    the sum over rows taken on at most 128 nodes; the observed sums are treated alike, which keeps the p-value exact.
    Rows with scores of exactly 0 or 1 say nothing of a and b and are left out; one that has the other outcome refutes
    calibration: p-value 0. With weights or clusters ``W = (a, b - 1) C^{-1} (a, b - 1)'``, C the sandwich (Liang and
    Zeger 1986), and ``W (d - 1) / (2 d)`` is held against F with 2 and ``d - 1`` degrees, d being clusters less one
    (Korn and Graubard 1990). **Cost.** A sort, then rows times draws (about 4 s for a million rows and 999 draws, in
    bounded memory; far less with ties). **Reads.** Rows, or the sketch's cells at their mean score.

    References
    ----------
    Cox (1958), doi:10.1093/biomet/45.3-4.562. Miller, Hui, Tierney (1991), doi:10.1002/sim.4780100805. Liang, Zeger
    (1986), doi:10.1093/biomet/73.1.13. Korn, Graubard (1990), doi:10.1080/00031305.1990.10475737.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> found = cal.detect.cox_test(cal.predictions(rng.uniform(size=2000) < 0.25 + 0.5 * p, p))
    >>> found.p_value, found.parts["slope"] < 0.5, found.parts["intercept_p"] > 0.05
    (0.001, True, True)
    """
    whole = tested(data, ScoreTestOptions(draws, null, seed, sandwich=True), "Cox's test")
    t, x = _informative(whole, "Cox's test")
    _refuse_infinite(t.q, x)
    if not t.q.equal_rows:
        return _by_sandwich(whole, t.q, x)
    # (1) Fit a and b, and a alone with b = 1; their gains over a = 0, b = 1 are the parts of the statistic.
    observed = np.array([[t.q.residual.sum(), t.q.residual @ x]])
    free, gap = (recalibrations(observed, x, t.q.times, slope) for slope in (True, False))
    if not (free.settled & gap.settled).all():
        raise NotComputable("Cox's fit has no finite solution, or almost none: use score_test")
    gains = np.array([free.gain[0], gap.gain[0], max(free.gain[0] - gap.gain[0], 0.0)])
    # (2) Chi-square tails, or ranks among the gains of simulated data sets.
    p = [chi_square(float(g), d) for g, d in zip(gains, (2, 1, 1), strict=True)]
    if t.simulates:
        # The data are refitted like the draws.
        nodes, mass = compressed(x, t.q.times)
        excess = np.concatenate([observed, t.q.sums(np.stack([np.ones(len(x)), x], axis=1), t.drawing)])
        free_gain, gap_gain = (recalibrations(excess, nodes, mass, slope).gain for slope in (True, False))
        every = (free_gain, gap_gain, np.maximum(free_gain - gap_gain, 0.0))
        p = [t.judge(float(v[0]), v[1:], 1.0) for v in every]
    return whole.outcome(
        "cox_test",
        Finding(gains[0], p[0], SPEAKS_FOR),
        {"degrees": 2},
        {
            "intercept": float(gap.intercept[0]),
            "intercept_error": float(gap.information[0, 0, 0] ** -0.5),
            "intercept_statistic": float(gains[1]),
            "intercept_p": p[1],
            "slope": float(free.slope[0]),
            "slope_error": float(np.sqrt(np.linalg.inv(free.information[0])[1, 1])),
            "slope_statistic": float(gains[2]),
            "slope_p": p[2],
            "slope_intercept": float(free.intercept[0]),
            "left_out": whole.q.n - t.q.n,
        },
    )


def _by_sandwich(full: Tested, q: Scored, x: Floats) -> Outcome:
    """Adjusted Wald tests with the sandwich of clusters, or of weighted rows."""
    from scipy.special import fdtrc

    points = q.weighed(x)
    count = q.clusters or q.n
    free, gap = (recalibrate(*points, slope) for slope in (True, False))
    if not (free.converged and gap.converged) or count < FEWEST:
        why = f"{count:,} clusters are under {FEWEST}" if count < FEWEST else "the fit has no finite solution"
        raise NotComputable(f"Cox's test by its sandwich: {why}; use score_test, with cluster= and weights= too")
    # W of k parameters: W (d - k + 1) / (k d) is as F with k and d - k + 1 degrees, d = clusters - 1.
    d = count - 1.0
    away = free.coefficients - [0.0, 1.0]
    wald = float(away @ np.linalg.solve(free.sandwich, away))
    own = float(gap.coefficients[0] ** 2 / gap.sandwich[0, 0]), float(away[1] ** 2 / free.sandwich[1, 1])
    parts = {
        "intercept": float(gap.coefficients[0]),
        "intercept_error": float(gap.sandwich[0, 0] ** 0.5),
        "intercept_statistic": own[0],
        "intercept_p": float(fdtrc(1.0, d, own[0])),
        "slope": float(free.coefficients[1]),
        "slope_error": float(free.sandwich[1, 1] ** 0.5),
        "slope_statistic": own[1],
        "slope_p": float(fdtrc(1.0, d, own[1])),
        "slope_intercept": float(free.coefficients[0]),
        "left_out": full.q.n - q.n,
    }
    finding = Finding(wald, float(fdtrc(2.0, d - 1.0, wald * (d - 1.0) / (2.0 * d))), SPEAKS_FOR)
    reported = replace(full, options=replace(full.options, null="asymptotic")).outcome(
        "cox_test", finding, {"degrees": 2}, parts
    )
    return reported if reported.parts["impossible"] else replace(reported, law=SANDWICH)


def _refuse_infinite(q: Scored, x: Floats) -> None:
    if q.events.sum() in (0.0, q.times.sum()):
        raise NotComputable("Cox's test needs both outcomes; all are the same: use score_test, which fits nothing")
    if np.ptp(x) == 0.0:
        raise NotComputable("Cox's test needs scores that differ; all are equal: use score_test")
    event, other = x[q.events > 0], x[q.times > q.events]
    if event.min() >= other.max() or event.max() <= other.min():
        raise NotComputable(
            "Cox's fit is infinite: the scores separate the outcomes; use score_test, which fits nothing"
        )


@takes_arrays
def score_test(
    data: Predictions | Sketch,
    *,
    draws: int = 999,
    null: Null = "simulated",
    seed: int = 0,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
) -> Outcome:
    r"""Score test of intercept 0 and slope 1 in ``logit P(Y = 1) = a + b logit p``: Cox's question without a fit.

    Statistic: ``U' I^{-1} U`` with ``U = sum (y - p)(1, logit p)`` and `I` its variance, both under calibration. Large
    values speak against calibration.

    Parameters
    ----------
    data : Predictions or Sketch
        Sampling weights are used; where the data name clusters, whole clusters have random signs.
    draws : int from 19
        Simulated data sets.
    null : {"simulated", "asymptotic"}
        ``"asymptotic"`` is chi-square with 2 degrees of freedom, 1 for each part.
    seed : int
    tolerance : float in [0, 1)
        How far off the event rate may be at any score. Each row is held against the edge on the side of its detector,
        up and down; intercept and slope (of the logit less its mean) add the squares of their larger positive side.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: somewhere more happens than the model says. One-sided detectors keep their sign: the constant, p,
        ``1 - p``; the largest counts. Without the default, or with a tolerance, the null is simulated.

    Returns
    -------
    Outcome
        Parts: ``intercept_statistic`` and ``intercept_p`` (``sum y`` against ``sum p``), ``slope_statistic`` and
        ``slope_p`` given a free intercept, ``surplus`` (mean of ``y - p``; above 0 the scores underpredict), and
        ``left_out``, rows whose score is exactly 0 or 1. The two statistics add up to the whole. One-sided there is one
        statistic, and no parts of it.

    Raises
    ------
    NotComputable
        Every score is 0 or 1; a tolerance or one side with the asymptotic null; one cluster only.

    Notes
    -----
    **Assumes.** Independent rows; the scores were made without their outcomes.
    **Guarantee.** Simulated: level alpha at every number of rows; with clusters asymptotic in their number. Asymptotic:
    with many expected events and non-events.
    **Method.** Rao's score test of Cox's model at ``a = 0, b = 1``; nothing is fitted, so it exists where `cox_test`
    does not (a non-event at all, separated outcomes). Where all scores are equal, only the intercept is tested (1
    degree of freedom). Weights multiply residuals, their squares the variance. Rows with scores of exactly 0 or 1 are
    left out; one that has the other outcome refutes calibration: p-value 0. With a tolerance this is the score test for
    Platt scaling of the strong calibration test's paper, which reads up along the logit only; here both directions are
    tested at one level, by outcomes drawn at both edges from one uniform number a row. **Cost.** A sort, then rows
    times draws (about 4 s for a million rows and 999 draws, in bounded memory; far less with ties). **Reads.** Rows, or
    the sketch's cells at their mean score.

    References
    ----------
    Rao (1948), doi:10.1017/S0305004100023987. Cox (1958), doi:10.1093/biomet/45.3-4.562.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> found = cal.detect.score_test(cal.predictions(rng.uniform(size=2000) < 0.9 * p, p))
    >>> found.p_value, found.parts["surplus"] < -0.02
    (0.001, True)
    """
    whole = tested(data, ScoreTestOptions(draws, null, seed, tolerance, alternative), "the score test")
    t, x = _informative(whole, "the score test")
    degrees = 2 if np.ptp(x) > 0.0 else 1
    values, p = _scores(t, x, degrees) if t.options.exact else _scores_beyond_tolerance(t, x)
    names = ("intercept_statistic", "intercept_p", "slope_statistic", "slope_p")
    each = dict(zip(names, (values[1], p[1], values[2], p[2]), strict=True)) if len(values) == 3 else {}
    return whole.outcome(
        "score_test",
        Finding(values[0], p[0], SPEAKS_FOR),
        {"degrees": degrees},
        {**each, "surplus": float(whole.q.residual.sum()) / whole.mass, "left_out": whole.q.n - t.q.n},
    )


def _scores(t: Tested, x: Floats, degrees: int) -> tuple[list[float], list[float]]:
    """The statistics of the whole, the intercept and the slope once that is free, and their p-values."""
    q, terms = t.q, np.stack([np.ones(len(x)), x], axis=1)
    information = q.covariance(terms)
    if not information[0, 0] > 0.0:
        raise NotComputable("every cluster's residuals add up to nothing: the score test has no law")
    first, second = efficient_scores(np.array([q.residual.sum(), q.residual @ x]), information)
    values = [float(first + second), float(first), float(second)]
    if not t.simulates:
        parts = zip(values, (degrees, 1, degrees - 1), strict=True)
        return values, [chi_square(v, d) if d else 1.0 for v, d in parts]
    drawn = efficient_scores(q.sums(terms, t.drawing), information)
    return values, [p_value(v, d) for v, d in zip(values, (drawn[0] + drawn[1], *drawn), strict=True)]


def _scores_beyond_tolerance(t: Tested, x: Floats) -> tuple[list[float], list[float]]:
    """The statistics beyond a tolerance (whole, intercept, slope; one-sided: one alone), and their p-values.

    Outcomes are drawn at both edges from one uniform number a row, so that the drawn statistics dominate.
    """
    contrasts = by_logit(t.q, x, t.options.alternative)
    result = contrasts.observed(t.q, t.options.tolerance)
    drawn = contrasts.simulated(t.q, t.options.tolerance, t.drawing)
    values = [float(result.sum()), *result.tolist()]
    columns = [drawn.sum(axis=1), *drawn.T]
    return values, [p_value(v, d) for v, d in zip(values, columns, strict=True)]


def _informative(t: Tested, what: str) -> tuple[Tested, Floats]:
    """The rows whose outcome is uncertain, and their logits."""
    keep = (t.q.p > 0.0) & (t.q.p < 1.0)
    if not keep.any():
        raise NotComputable(f"{what} needs scores other than 0 and 1")
    kept = t if keep.all() else replace(t, q=t.q.where(keep))
    return kept, np.log(kept.q.p) - np.log1p(-kept.q.p)
