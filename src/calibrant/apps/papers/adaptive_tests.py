"""Comparators of the strong calibration test: the same residual models, read by simpler statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calibrant import Predictions, Sketch
from calibrant.arguments import check_int, choice
from calibrant.detect import strong_calibration_test
from calibrant.results import Outcome
from calibrant.search.detectors import FOLDS, DetectorInputs, Settings, detector_inputs, detectors_of, halves_of
from calibrant.search.models import Models, Rows, hash_split, predicted
from calibrant.search.nulls import DRAWS, IMPOSSIBLE, LAWS, SALT, checked_draws, law_assumed, may_hold
from calibrant.stats.cusum import Alternative, Detector, Path, binned, squares
from calibrant.stats.nulls import p_value
from calibrant.toolkit.data import takes_arrays

AssumedNull = Literal["auto", "fixed", "split"]
NULLS: tuple[AssumedNull, ...] = ("auto", "fixed", "split")
QUARTERS = 4  # parts of the rows, of which the multicalibration test holds one back: the paper does not say how many


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a comparator reads the rows along a residual model."""

    name: str  # of the test
    bins: int  # groups of equally many rows
    by_size: bool  # scores are multiplied by the predicted residual
    root: bool  # report the square root of the sum of squares


@takes_arrays
def adaptive_score_cusum_test(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    null: Literal["fixed", "split"] = "fixed",
    draws: int = DRAWS,
    seed: int = 0,
    detector: Literal["paper", "authors"] = "paper",
    models: Models | None = None,
    min_size: float = 0.0,
    folds: int = 4,
) -> Outcome:
    r"""Search along residual models for a group that is off beyond the tolerance, by the published score CUSUM.

    Statistic: ``max over models and thresholds of sum_{h > gamma} h sigma (y - t) / sqrt(V)``, with `h` the predicted
    residual beyond the tolerance, `sigma` its sign, t the rate at the edge of the tolerance and V the null variance.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights and clusters are used, as in `strong_calibration_test`.
    variables : str or sequence of str, optional
        Covariates in addition to the score; all of them by default.
    tolerance : float in [0, 1)
        The paper's delta.
    alternative : {"two-sided", "greater", "less"}
    null : {"fixed", "split"}
        Cross-validation with models held (Theorem 3), or one split (Theorem 1).
    draws : int from 19
    seed : int
    detector : {"paper", "authors"}
        The detector as printed, or as in the authors' program.
    models : sequence of (str, estimator), optional
        Your own scikit-learn models.
    min_size : float in [0, 1)
        The paper's epsilon: groups of at least this share of the rows. It restricts the search, and does not test
        whether the group is that large.
    folds : int, 2 to 20
        Of the cross-validation; the paper has 4.

    Returns
    -------
    Outcome
        Parts as of `strong_calibration_test`.

    Raises
    ------
    NotComputable
        Under 20 rows; too few clusters.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** *split:* level at any number of rows. *fixed:* as published, asymptotic; at tolerance 0 it rejected
    19% (16 to 23) of calibrated models where 10% was asked for: there the leading term of Theorem 3 vanishes as fast
    as its remainder. `strong_calibration_test` refits there.
    **Method.** AdaptScoreCUSUM: equations 9 and 12, Theorem 4 for two sides. Departures are those of
    `strong_calibration_test`: p-value ``(1 + #) / (draws + 1)``, sums read at the ends of ties only. **Cost.** A few
    fits. **Reads.** Rows.

    References
    ----------
    Feng, Gossmann, Pirracchio, Petrick, Pennello, Sahiner (2024), "Is this model reliable for everyone? Testing for
    strong calibration", AISTATS, arXiv:2307.15247.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 90, 1000), rng.uniform(0.1, 0.6, 1000)
    >>> data = cal.predictions(rng.random(1000) < np.where(age > 60, p + 0.3, p), p, {"age": age})
    >>> cal.papers.adaptive_score_cusum_test(data, tolerance=0.05).p_value
    0.001
    """
    choice("null", null, ("fixed", "split"))
    choice("detector", detector, ("paper", "authors"))
    result = strong_calibration_test(
        data,
        variables=variables,
        tolerance=tolerance,
        alternative=alternative,
        null=null,
        draws=draws,
        seed=seed,
        detector=detector,
        models=models,
        min_size=min_size,
        folds=folds,
    )
    return replace(result, method="papers.adaptive_score_cusum_test")


@takes_arrays
def adaptive_score_test(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    null: AssumedNull = "auto",
    draws: int = DRAWS,
    seed: int = 0,
    detector: Detector = "default",
    models: Models | None = None,
    folds: int = FOLDS,
) -> Outcome:
    r"""Score test along residual models, threshold 0: do predicted and observed residuals agree over all rows?

    Statistic: ``max over models of max(0, sum h sigma (y - t)) / sqrt(V)``, with `h` the predicted residual beyond the
    tolerance, `sigma` its sign, t the rate at the edge of the tolerance and V the null variance. A comparator: it is
    `strong_calibration_test` without the search for a group.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights and clusters are used, as in `strong_calibration_test`.
    variables : str or sequence of str, optional
        Covariates in addition to the score; all of them by default.
    tolerance : float in [0, 1)
    alternative : {"two-sided", "greater", "less"}
    null : {"auto", "fixed", "split"}
        ``"auto"``: models held for a two-sided tolerance of ``0.5 / sqrt(n)`` or more (n rows, or clusters), else a
        split.
    draws : int from 19
    seed : int
    detector : {"default", "paper", "authors"}
        Residual models as in `strong_calibration_test`: the last two have the paper's. ``"authors"`` weighs rows as the
        authors' program does, by ``max(0, h / sd - mean + 2)`` in place of `h`.
    models : sequence of (str, estimator), optional
        Your own scikit-learn models.
    folds : int, 2 to 20
        Where models are held; the paper has 4.

    Returns
    -------
    Outcome
        Parts: ``models``, their ``statistics`` and ``p_values`` (each by itself), ``chosen``, ``rows_beyond``,
        ``rows_tested``, ``impossible``.

    Raises
    ------
    NotComputable
        Under 20 rows; too few clusters.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** *split:* level at any number of rows. *fixed:* asymptotic; may reject too often at tolerance 0,
    one-sided, and two-sided under ``0.5 / sqrt(n)``. *Clusters:* asymptotic in their number. **Method.** After Jankova
    et al. (2020), as the paper of the strong calibration test extends it (its AdaptScoreSimple); models, folds and
    simulation are those of `strong_calibration_test`. **Cost.** A few fits; they are shared with
    `strong_calibration_test` on the same data where models are held. **Reads.** Rows.

    References
    ----------
    Jankova, Shah, Buhlmann, Samworth (2020), doi:10.1111/rssb.12371. Feng et al. (2024), AISTATS.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 90, 1000), rng.uniform(0.1, 0.6, 1000)
    >>> data = cal.predictions(rng.random(1000) < np.where(age > 60, p + 0.3, p), p, {"age": age})
    >>> cal.papers.adaptive_score_test(data, tolerance=0.05).p_value
    0.001
    """
    settings = Settings(
        variables=variables,
        tolerance=tolerance,
        alternative=alternative,
        seed=seed,
        detector=detector,
        models=models,
        folds=folds,
    )
    reading = Reading(name="adaptive_score_test", bins=1, by_size=True, root=True)
    return _compared(detector_inputs(data, settings), reading, null, draws)


@takes_arrays
def adaptive_chi_square_test(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    null: AssumedNull = "auto",
    draws: int = DRAWS,
    seed: int = 0,
    bins: int = 2,
    detector: Detector = "default",
    models: Models | None = None,
    folds: int = FOLDS,
) -> Outcome:
    r"""Chi-square test over groups of equal predicted residual: is some group off beyond the tolerance?

    Statistic: ``max over models of sum_b max(0, sum_{i in b} sigma (y - t))^2 / V_b`` over groups of equally many rows
    in order of the predicted residual beyond the tolerance, with `sigma` its sign, t the rate at the edge of the
    tolerance and V the null variance. A comparator of `strong_calibration_test`.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights and clusters are used, as in `strong_calibration_test`.
    variables : str or sequence of str, optional
        Covariates in addition to the score; all of them by default.
    tolerance : float in [0, 1)
    alternative : {"two-sided", "greater", "less"}
    null : {"auto", "fixed", "split"}
        ``"auto"``: models held for a two-sided tolerance of ``0.5 / sqrt(n)`` or more (n rows, or clusters), else a
        split.
    draws : int from 19
    seed : int
    bins : int from 1 to 1,000
        Groups; the paper tries 2 and 10.
    detector : {"default", "paper", "authors"}
        Residual models as in `strong_calibration_test`: the last two have the paper's, and are alike here.
    models : sequence of (str, estimator), optional
        Your own scikit-learn models.
    folds : int, 2 to 20
        Where models are held; the paper has 4.

    Returns
    -------
    Outcome
        Parts as of `adaptive_score_test`.

    Raises
    ------
    NotComputable
        Under 20 rows; too few clusters.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** *split:* level at any number of rows. *fixed:* asymptotic; may reject too often at tolerance 0,
    one-sided, and two-sided under ``0.5 / sqrt(n)``. *Clusters:* asymptotic in their number. **Method.** After Zhang et
    al. (2021), as the paper of the strong calibration test extends it (its AdaptChiSq). Departure: rows predicted to be
    within the tolerance fill groups and add nothing, for one-sided alternatives too. **Cost.** A few fits; they are
    shared with `strong_calibration_test` on the same data where models are held. **Reads.** Rows.

    References
    ----------
    Zhang, Ding, Yang (2021), "Is a classification procedure good enough? A goodness-of-fit assessment tool for
    classification learning", arXiv:1911.03063. Feng et al. (2024), AISTATS.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 90, 1000), rng.uniform(0.1, 0.6, 1000)
    >>> data = cal.predictions(rng.random(1000) < np.where(age > 60, p + 0.3, p), p, {"age": age})
    >>> cal.papers.adaptive_chi_square_test(data, tolerance=0.05).p_value
    0.001
    """
    groups = check_int("bins", bins, 1, 1000, of="groups", hint="such as 2")
    settings = Settings(
        variables=variables,
        tolerance=tolerance,
        alternative=alternative,
        seed=seed,
        detector=detector,
        models=models,
        folds=folds,
    )
    reading = Reading(name="adaptive_chi_square_test", bins=groups, by_size=False, root=False)
    return _compared(detector_inputs(data, settings), reading, null, draws)


@takes_arrays
def multicalibration_score_test(
    data: Predictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    draws: int = DRAWS,
    seed: int = 0,
    detector: Detector = "default",
    models: Models | None = None,
) -> Outcome:
    r"""Score test of a multicalibration audit: models fitted to three quarters of the rows, tested on the fourth.

    Statistic: that of `adaptive_score_test`, over the rows held back. A comparator of `strong_calibration_test`.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights and clusters are used, as in `strong_calibration_test`.
    variables : str or sequence of str, optional
        Covariates in addition to the score; all of them by default.
    tolerance : float in [0, 1)
    alternative : {"two-sided", "greater", "less"}
    draws : int from 19
    seed : int
    detector : {"default", "paper", "authors"}
        Residual models and weights, as in `adaptive_score_test`.
    models : sequence of (str, estimator), optional
        Your own scikit-learn models.

    Returns
    -------
    Outcome
        Parts as of `adaptive_score_test`; ``rows_tested`` is about a quarter of the rows.

    Raises
    ------
    NotComputable
        Under 20 rows; too few clusters.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** Level at any number of rows; for clusters, asymptotic in their number.
    **Method.** The audit step of Kim et al. (2019) as the paper of the strong calibration test runs it (its
    Multicalib): a single split, threshold 0, the largest statistic of the models. **Cost.** One fit of each model.
    **Reads.** Rows.

    References
    ----------
    Kim, Ghorbani, Zou (2019), doi:10.1145/3306618.3314287. Feng et al. (2024), AISTATS.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 90, 1000), rng.uniform(0.1, 0.6, 1000)
    >>> data = cal.predictions(rng.random(1000) < np.where(age > 60, p + 0.3, p), p, {"age": age})
    >>> cal.papers.multicalibration_score_test(data, tolerance=0.05).p_value
    0.001
    """
    settings = Settings(
        variables=variables,
        tolerance=tolerance,
        alternative=alternative,
        seed=seed,
        detector=detector,
        models=models,
    )
    q = detector_inputs(data, settings)
    reading = Reading(name="multicalibration_score_test", bins=1, by_size=True, root=True)
    count, part = checked_draws(draws), hash_split(q.n, QUARTERS, q.settings.seed, q.cluster)
    rows = np.flatnonzero(part == QUARTERS - 1)
    fitted = q.pool.fitted(q.sample, np.flatnonzero(part < QUARTERS - 1), q.settings.seed)
    paths = q.paths(predicted(fitted, q.sample, q.pool, rows), rows)
    return _judged(q, paths, rows, reading, _Law("split", LAWS["split"], count))


@dataclass(frozen=True)
class _Law:
    """The null used, what it rests on, and how many outcomes are drawn."""

    null: str
    says: str
    draws: int


def _compared(q: DetectorInputs, reading: Reading, null: AssumedNull, draws: int) -> Outcome:
    """The outcome under the null asked for."""
    options, count = choice("null", null, NULLS), checked_draws(draws)
    if options == "split" or (options == "auto" and not may_hold(q)):
        d, law = halves_of(q), _Law("split", LAWS["split"], count)
    else:
        d, law = detectors_of(q), _Law("fixed", law_assumed(q), count)
    return _judged(q, d.paths, d.rows, reading, law)


def _judged(q: DetectorInputs, paths: Sequence[Path], rows: Rows, reading: Reading, law: _Law) -> Outcome:
    """Compare the paths of some rows with outcomes simulated for those rows, models held."""
    steps = [binned(path, len(rows), reading.bins, q.sample.mass_of(rows), reading.by_size) for path in paths]
    result = squares(steps, q.sample.y[rows])
    drawn = q.drawn_squares(steps, rows, law.draws, SALT)
    best, impossible = int(np.argmax(result)), q.impossible
    shown = np.sqrt(result) if reading.root else result
    return Outcome(
        method=f"papers.{reading.name}",
        statistic=float(shown[best]),
        p_value=0.0 if impossible else p_value(float(result[best]), drawn.max(axis=1)),
        alternative=q.looks_for,
        null=q.doubts,
        law=IMPOSSIBLE.format(impossible) if impossible else q.law(law.says),
        settings={
            "alternative": q.settings.alternative,
            "bins": reading.bins,
            "detector": q.settings.detector,
            "draws": law.draws,
            "null": law.null,
            "seed": q.settings.seed,
            "tolerance": q.edge.tolerance,
            "train": q.train,
        },
        parts={
            "models": q.pool.names,
            "statistics": tuple(shown.tolist()),
            "p_values": tuple(p_value(float(v), drawn[:, m]) for m, v in enumerate(result)),
            "chosen": q.pool.names[best],
            "rows_beyond": len(paths[best].rows),
            "rows_tested": len(rows),
            "impossible": impossible,
        },
    )
