"""The strong calibration test: are the probabilities of any group of rows off by more than a tolerance?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.detect.class_tests import ClassRows
from calibrant.errors import BadInput
from calibrant.results import Outcome
from calibrant.search.detectors import FOLDS, ClassInputs, DetectorInputs, Settings, detector_inputs
from calibrant.search.models import Models
from calibrant.search.nulls import IMPOSSIBLE, Null, Verdict, question_of, verdict_of
from calibrant.stats.cusum import Alternative, Detector
from calibrant.stats.local.spectra import adjusted, combined
from calibrant.stats.nulls import ranked
from calibrant.views.kernel_rows import checked_classes


@takes_arrays
def strong_calibration_test(
    data: Predictions | MulticlassPredictions | Sketch,
    *,
    variables: Iterable[str] | str | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    null: Null = "auto",
    draws: int | None = None,
    seed: int = 0,
    detector: Detector = "default",
    models: Models | None = None,
    min_size: float = 0.0,
    folds: int = FOLDS,
) -> Outcome:
    r"""Test whether the probabilities are within a tolerance of the event rate for everyone.

    Null hypothesis: ``|E[Y | p, x] - p| <= tolerance`` with probability one (two-sided), ``E[Y | p, x] - p <=
    tolerance`` (greater), ``p - E[Y | p, x] <= tolerance`` (less). Models of the residual, fitted to other rows, order
    the rows; the statistic is the largest cumulative score along any model's order,

    .. math:: T = \max_{\text{models}} \max_k \sum_{i \le k} h_i \sigma_i (y_i - t_i) \big/ (V_k V_K)^{1/4},

    with `h` the predicted residual beyond the tolerance, `sigma` its sign, ``t = p + sigma x tolerance`` kept in
    [0, 1], and V the null variance of the sum.

    Parameters
    ----------
    data : Predictions, MulticlassPredictions or Sketch
        Several classes are tested at once at tolerance 0, each against the rest.
        Of a sketch (made with ``tests=True``) its uniform sample of rows is tested. Weights enter the fits, the scores
        and their law. Clusters share a fold, and a sign under the null.
    variables : str or sequence of str, optional
        Covariates in addition to the score that groups may depend on; all that can be used by default, so no
        identifiers.
    tolerance : float in [0, 1)
        How far off a probability may be, in probability units.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: somewhere more happens than the model says.
    null : {"auto", "refit", "fixed", "split", "forward", "eprocess"}
        Where the p-value comes from; see Guarantee. ``"auto"``: ``"fixed"`` for a two-sided tolerance of ``0.5 /
        sqrt(n)`` or more, n the number of rows, or clusters; else ``"refit"`` at tolerance 0 up to 50,000 rows (with
        your own models, a published detector or one-sided with a tolerance up to 2,000), and ``"split"`` with more,
        and always with clusters.
    draws : int, optional
        Simulated outcomes, 19 or more: by default 999. For ``"refit"`` 999 up to 20,000 rows, then 499, and at most so
        many where no product is tested; 99 with your own models or a published detector.
    seed : int
    detector : {"default", "paper", "authors"}
        The paper's ``h 1{h > gamma}`` as printed, or as in its authors' program, with the paper's models.
    models : sequence of (str, estimator), optional
        Your own scikit-learn models instead: regressors of ``Y - p``, or classifiers of Y from whose probability
        the score is subtracted. They are given an array without names, of standardised columns: the logit of the
        score, numbers, the 20 most frequent levels of categories. A pipeline gets weights in its last step.
        Of two or more, the mean joins them.
    min_size : float in [0, 1)
        A restriction of the search to groups of at least this share of the rows (of weight). It is no test of whether
        the badly served are more than that share.
    folds : int, 2 to 20
        For ``"refit"`` and ``"fixed"``; blocks for ``"forward"`` and ``"eprocess"``.

    Returns
    -------
    Outcome
        ``settings["null"]`` names the null used, ``settings["train"]`` how many rows a fit of each learner may see. In
        ``parts``: ``models``, their ``statistics`` and ``p_values`` (each by itself), ``chosen``; at the peak of that
        model's path ``peak_rows``, ``peak_share`` (of the rows tested, by weight), ``threshold`` (predicted residual
        beyond the tolerance), ``peak_events``, ``peak_expected`` (by the score), of clusters ``peak_clusters`` (up to
        the peak, and beyond it); ``rows_beyond`` and ``rows_tested``;
        ``impossible``; what the null adds, such as ``refits``; where products are tested, ``p_models`` and
        ``p_bayes_factor`` (each by itself), ``weights`` of the two, ``smaller`` (whose weighted p-value it is),
        ``products`` (triples of columns of which a product has events enough to count), ``triples`` of columns there
        are, ``largest`` (the features with the largest part of the Bayes factor in the data: "steps", "corners",
        "products"), ``strongest`` (the variables of the product with the largest score). The peak was chosen by these
        outcomes: its rates are no fair estimate. For ``"forward"`` and ``"eprocess"``, whose statistics are Fisher's
        sum and the logarithm of the largest wealth, it is that of all blocks' rows together. With several classes also
        ``classes``, ``class_p`` and ``class_adjusted_p``; models and peak are of ``peak_class``, and
        ``peak_over_class`` gets too much at the peak, mostly at the cost of ``peak_under_class``.

    Raises
    ------
    BadInput
        An argument that cannot be used; ``null="refit"`` for a two-sided tolerance above 0.
    NotComputable
        Under 20 rows; fewer than two clusters a fold; clusters with ``"refit"``; clusters or weights with
        ``"eprocess"``.

    Notes
    -----
    **Assumes.** Rows (or clusters) independent given scores and covariates.
    **Guarantee.** *split, forward:* level at any number of rows; outcomes are simulated at the edge of the tolerance
    for rows no model has seen (Theorems 1 and 4: one uniform number a row serves both signs, so that the simulated
    statistic dominates). *eprocess:* the same, and the test may be stopped early; little power at a fixed number of
    rows. *refit:* level at any number of rows at tolerance 0, the whole procedure being repeated on simulated outcomes
    (sequential Monte Carlo of Besag and Clifford, 10 exceedances); one-sided with a tolerance, at the edge of the null.
    With products: exact at any number of rows, as ranks of the data among outcomes that are exchangeable with them,
    features chosen without labels and every draw made. *fixed:* asymptotic (Theorem 3). At tolerance 0, one-sided, and
    two-sided under ``0.5 / sqrt(n)``, it may reject too often: at tolerance 0 it rejects 19% [16, 23] of calibrated
    models where 10% is asked for, since the leading term of Theorem 3 vanishes as fast as its remainder (the paper
    simulates a tolerance of 0.025 only); 13% of 600 where every row is off by a tolerance of 0.025.
    *Several classes:* as refit, jointly: one class is drawn for each row of a simulated data set, each class's search
    is ranked among the sets, and so is the mean of one over the ranks; clusters are refused.
    *Clusters:* asymptotic in their number. Elsewhere ``p = (1 + #{T* >= T}) / (draws + 1)``. **Method.** Default
    models, from ``[logit p, x]``: 50 boosted trees on ``Y - p`` (steps of 0.03, 8 leaves of at least 20 and
    ``sqrt(rows) / 2`` rows, half the features at each split, 64 bins), a ridge logistic regression on all terms of
    degree two (at most 300 products; C = 0.1 up to 2,000 rows, else 10), up to 2,000 rows steps and corners (below),
    and the mean of these. For ``"refit"``, and ``"split"`` at tolerance 0 of more than 50,000 rows: boosting over steps
    of one column (20 steps of 0.2, cuts at tenths of the rows), over steps and corners of two columns (10 steps, cut at
    0.1, 0.3, 0.7 and 0.9), and their mean; coarser with many columns, so that there are at most 3,000. Cuts see no
    labels; a fit needs sums in steps and corners alone, so that hundreds of draws are refitted at once. For ``"refit"``
    predictions are rounded to 512 levels. *Products*, with ``"refit"`` by these models and no `min_size`, and where
    ``"auto"`` splits more than 50,000 rows or clusters: of three columns of different variables, each above its median
    or not, or by ranks where there is room; at most 3,000, of more the most balanced and of equals a random part. Each
    standardised sum of residuals z counts with the Bayes factor of an effect of variance 20 against none; T' is the
    mean of these factors over steps (0.4), corners (0.4) and products (0.2). The smaller of ``p(T) / 0.6`` and ``p(T')
    / 0.4`` is ranked among those of the draws. Where rows are split (many rows, clusters) T' is of products alone; with
    clusters a sum is over the root of the squares that clusters add to it, which random signs leave as they are.
    Departures from the paper: predictions beyond the tolerance are
    soft-thresholded, sums studentised (once they cover a null variance of 2 events), the sequence is evaluated only
    where the prediction changes, and folds are sorted together. Not offered: a test of prevalence (appendix A of the
    paper), whose level failed in simulation. **Cost.** A few fits, then draws x rows x models additions: 0.4 s at a
    thousand rows, 2 s at 100,000 and 15 s at a million for ``"fixed"`` with ten covariates; at tolerance 0, 0.5 s at
    2,000 rows, 2.5 s at 50,000 with nine, and split 1.5 s at 280,000 (your own models: up to a hundred times their
    fits). A fit sees all rows of its folds, or a uniform sample: of 1.7e7 values (rows times columns) for boosted
    trees, 4e8 products (rows times squared terms) for the regression, 20,000 rows for your own models and the paper's
    forests (5,000 a tree). Every row is tested. **Reads.** Rows, or the sketch's sample of rows.

    References
    ----------
    Feng, Gossmann, Pirracchio, Petrick, Pennello, Sahiner (2024), "Is this model reliable for everyone? Testing for
    strong calibration", AISTATS. Besag, Clifford (1991), doi:10.1093/biomet/78.2.301.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 90, 2000), rng.uniform(0.1, 0.6, 2000)
    >>> y = rng.random(2000) < np.where(age > 75, p + 0.3, p)
    >>> data = cal.predictions(y, p, {"age": age})
    >>> found = cal.detect.strong_calibration_test(data, tolerance=0.05)
    >>> found.p_value, found.settings["null"]
    (0.001, 'fixed')
    """
    if isinstance(data, MulticlassPredictions):
        own = {"tolerance": tolerance, "alternative": alternative, "null": null, "detector": detector, "models": models}
        _refuse_of_classes(own)
        return _of_classes(data, variables, draws, Settings(seed=seed, min_size=min_size, folds=folds).checked())
    settings = Settings(
        variables=variables,
        tolerance=tolerance,
        alternative=alternative,
        seed=seed,
        detector=detector,
        models=models,
        min_size=min_size,
        folds=folds,
    )
    # (1) Features, folds and the edge of the tolerance, without looking at labels.
    q, used, count = question_of(detector_inputs(data, settings), null, draws)
    # (2) Residual models, fitted to other rows. (3) Rows in the order in which each suspects them, scores added up
    # along it; the largest sum over thresholds and models counts (equations 9 and 12). (4) The same under the null.
    v = verdict_of(q, used, count)
    impossible = q.impossible
    return Outcome(
        method="detect.strong_calibration_test",
        statistic=v.statistic,
        p_value=0.0 if impossible else v.p_value,
        alternative=q.looks_for,
        null=q.doubts,
        law=IMPOSSIBLE.format(impossible) if impossible else v.law,
        settings={
            "alternative": q.settings.alternative,
            "requested": null,
            "detector": q.settings.detector,
            "draws": 0 if used == "eprocess" else count,
            "folds": q.settings.folds,
            "min_size": q.settings.min_size,
            "null": used,
            "products_left_out": q.sample.x.left_out,
            "reads": "rows" if isinstance(data, Predictions) else "a uniform sample of the rows of a sketch",
            "seed": q.settings.seed,
            "tolerance": q.edge.tolerance,
            "train": q.train,
            "variables": q.sample.x.variables[1:],
        },
        parts=_parts(q, v) | {"impossible": impossible},
    )


# ---- Several classes: each against the rest, of data sets in which one class is drawn for each row ----


def _refuse_of_classes(settings: Mapping[str, object]) -> None:
    """Refuse what has no proof for several classes."""
    usual = {"tolerance": (0, 0.0), "alternative": ("two-sided",), "null": ("auto", "refit"), "detector": ("default",)}
    for name, value in settings.items():
        if value not in usual.get(name, (None,)):
            raise BadInput(
                f"{name}={value!r}: several classes are tested at once at tolerance 0, by refits alone; leave it out, "
                "or pass data.top_label(), or data.one_vs_rest(k) with alpha / K"
            )


def _of_classes(
    data: MulticlassPredictions, variables: Iterable[str] | str | None, draws: int | None, settings: Settings
) -> Outcome:
    """Rank the strong test of each class among its simulated data sets, and the ranks of all classes again.

    In every data set one class is drawn for each row, so that ranks of several classes are exchangeable with the data's
    together. The predicted class is one more covariate. No draw is left out, whatever the data reach.
    """
    independent = "several classes with cluster=: repeated fitting is exact for independent rows only"
    checked = checked_classes(data, cluster=independent)
    rows = ClassRows.of(checked, variables, settings.seed)
    each = []
    for k in rows.classes:
        inputs = detector_inputs(rows.joined.one_vs_rest(k), replace(settings, variables=rows.variables))
        low, high = (np.ascontiguousarray(rows.edges[:, j]) for j in (k, k + 1))
        q, null, count = question_of(ClassInputs.of(inputs, low, high), "refit", draws)
        each.append((q, verdict_of(q, null, count)))
    names = tuple(map(rows.joined.name_of, rows.classes))
    # What each data set is ranked by, the data first: the smaller weighted p-value, or the rank of the largest sum.
    least = [v.joint.least if v.joint is not None else ranked(np.append(v.statistic, v.peaks))[0] for _, v in each]
    ranks = ranked(-np.log(np.stack(least)))
    by_class = adjusted({name: -np.log(own) for name, own in zip(names, ranks, strict=True)})
    worst, impossible = int(np.argmin(ranks[:, 0])), rows.contradicted
    q, v = each[worst]
    parts = {k: value for k, value in _parts(q, v).items() if k not in ("statistics", "p_values")}
    inside = np.zeros(rows.data.n, dtype=np.bool_)
    inside[v.rows[v.path.rows[: parts["peak_rows"]]]] = True
    pair = {f"peak_{name}": value for name, value in rows.exchanged(inside).items()} if inside.any() else {}
    return Outcome(
        method="detect.strong_calibration_test",
        statistic=v.statistic,
        p_value=0.0 if impossible else float(combined(ranks, [1.0] * len(names))[0]),
        alternative="for some group the rate of some class is not its score",
        null="given scores and covariates, classes are independent with the probabilities stated",
        law=IMPOSSIBLE.format(impossible) if impossible else v.law,
        settings={
            "n": rows.data.n,
            "rows": checked.n,
            "draws": int(v.facts["refits"]),
            "folds": settings.folds,
            "min_size": settings.min_size,
            "null": "refit",
            "seed": settings.seed,
            "tolerance": 0.0,
            "classes": len(names),
            "left_out": tuple(tuple(one) for one in rows.left_out),
            "variables": rows.variables[:-1],
        },
        parts={
            "classes": names,
            "class_p": tuple(0.0 if rows.refuted(k) else by_class[name][0] for k, name in enumerate(names)),
            "class_adjusted_p": tuple(0.0 if rows.refuted(k) else by_class[name][1] for k, name in enumerate(names)),
            "peak_class": names[worst],
            **pair,
            **parts,
            "impossible": impossible,
        },
    )


def _parts(q: DetectorInputs, v: Verdict) -> dict[str, Any]:
    """The models' results, and the group at the peak of the chosen one."""
    y, w = q.sample.y[v.rows], q.sample.mass_of(v.rows)
    curve = v.path.curve(y)
    top = int(np.nanargmax(curve)) + 1 if np.isfinite(curve).any() and np.nanmax(curve) > 0 else 0
    inside = v.path.rows[:top]
    return {
        "models": q.pool.names,
        "statistics": v.statistics,
        "p_values": v.p_values,
        "chosen": q.pool.names[v.chosen],
        "peak_rows": top,
        "peak_share": float(w[inside].sum() / w.sum()),
        "threshold": float(v.path.excess[top - 1]) if top else 0.0,
        "peak_events": int(y[inside].sum()),
        "peak_expected": float(q.edge.p[v.rows][inside].sum()),
        "rows_beyond": len(v.path.rows),
        "rows_tested": len(v.rows),
        **q.reported(peak_clusters=q.people(v.rows, np.isin(np.arange(len(v.rows)), inside))),
        **v.facts,
    }
