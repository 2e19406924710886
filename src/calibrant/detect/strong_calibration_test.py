"""The strong calibration test: is there any group of rows for whom the probabilities are off by more than a tolerance?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from calibrant.errors import BadInput
from calibrant.results import Outcome
from calibrant.search import nulls as strong_nulls
from calibrant.search.detectors import FOLDS, Question, check_choice, detectors_of, halves_of, question_of
from calibrant.search.models import TRAIN
from calibrant.stats.cusum import Alternative, Detector
from calibrant.views.features import rows_of

METHOD = "detect.strong_calibration_test"
Null = Literal["auto", "refit", "fixed", "split", "forward", "eprocess"]
NULLS = ("auto", "refit", "fixed", "split", "forward", "eprocess")
DRAWS, REFITS = 999, 99
FEW = 2_000  # rows up to which `auto` refits
IMPOSSIBLE = "exact: outcomes of probability zero under every rate within the tolerance happened: {}"


def strong_calibration_test(
    data: Any,
    variables: Sequence[str] | None = None,
    tolerance: float = 0.0,
    alternative: Alternative = "two-sided",
    null: Null = "auto",
    draws: int | None = None,
    seed: int = 0,
    *,
    detector: Detector = "default",
    models: Sequence[tuple[str, Any]] | None = None,
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
    data : Predictions or Sketch
        Of a sketch (made with ``tests=True``) its uniform sample of rows is tested. Weights enter the fits, the scores
        and their law. Clusters share a fold, and a sign under the null.
    variables : sequence of str, optional
        Covariates beside the score that groups may depend on; all of them by default.
    tolerance : float in [0, 1)
        How far off a probability may be, in probability units.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"``: somewhere more happens than the model says.
    null : {"auto", "refit", "fixed", "split", "forward", "eprocess"}
        Where the p-value comes from; see Guarantee. ``"auto"``: ``"fixed"`` for a two-sided tolerance of ``0.5 /
        sqrt(n)`` or more, n the number of rows, or clusters; else ``"refit"`` up to 2,000 rows where it can be had, and
        ``"split"``.
    draws : int, optional
        Simulated outcomes, 19 or more: by default 999; at most 99 for ``"refit"``.
    seed : int
    detector : {"default", "paper", "authors"}
        The paper's ``h 1{h > gamma}`` as printed, or as in its authors' program, with the paper's models.
    models : sequence of (str, estimator), optional
        Your own scikit-learn models instead: regressors of ``Y - p``, or classifiers of Y from whose probability
        the score is subtracted. Columns: the logit of the score, numbers, the 20 most frequent levels of categories.
        Of two or more, the mean joins them.
    min_size : float in [0, 1)
        A restriction of the search to groups of at least this share of the rows (of weight). It is no test of whether
        the badly served are more than that share.
    folds : int, 2 to 20
        For ``"refit"`` and ``"fixed"``; blocks for ``"forward"`` and ``"eprocess"``.

    Returns
    -------
    Outcome
        ``settings["null"]`` names the null used. In ``parts``: ``models``, their ``statistics`` and ``p_values`` (each
        by itself), ``chosen``; at the peak of that model's path ``peak_rows``, ``peak_share`` (of the rows tested, by
        weight), ``threshold`` (predicted residual beyond the tolerance), ``peak_cases``, ``peak_expected`` (by the
        score); ``rows_beyond`` and ``rows_tested``; ``impossible``; what the null adds, such as ``refits``. The peak
        was chosen by these outcomes: its rates are no fair estimate. For ``"forward"`` and ``"eprocess"``, whose
        statistics are Fisher's sum and the logarithm of the largest wealth, it is that of all blocks' rows together.

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
    *fixed:* asymptotic (Theorem 3). At tolerance 0, one-sided, and two-sided under ``0.5 / sqrt(n)``, it may reject too
    often: in simulations of calibrated models up to 18 % where 10 % was asked (100 to 1,000 rows). *Clusters:*
    asymptotic in their number. Elsewhere ``p = (1 + #{T* >= T}) / (draws + 1)``. **Method.** Default models, from
    ``[logit p, x]``: mean of two forests on ``Y - p`` (half the features, depth 10, leaf 5; all, depth 6, leaf 10; 50
    trees each, 10 for ``"refit"``), a ridge logistic regression on all terms of degree two (C = 10, at most 300
    products), and their mean. Departures from the paper: predictions beyond the tolerance are soft-thresholded, sums
    studentised (once they cover a null variance of 2 events), the sequence is evaluated only where the prediction
    changes, and folds are sorted together. Not offered: a test of prevalence (appendix A of the paper), whose level
    failed in simulation. **Cost.** A few fits, then draws x rows x models additions: 2 s at a thousand rows and 30 s at
    a million for ``"fixed"``; up to a hundred times the fits for ``"refit"``. A fit sees at most 20,000 rows, a uniform
    sample of its folds (5,000 a tree); every row is tested. **Reads.** Rows, or the sketch's sample of rows.

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
    rows = rows_of(data)
    q = question_of(
        rows, variables, tolerance, alternative, seed, detector=detector, models=models, min_size=min_size, folds=folds
    )
    used = chosen_null(q, null)
    count = checked_draws(draws, used)
    if used == "fixed":
        v = strong_nulls.fixed(detectors_of(q, rows, variables), count)
    elif used == "split":
        v = strong_nulls.split(q, halves_of(q, rows, variables), count)
    elif used == "eprocess":
        v = strong_nulls.eprocess(q)
    else:
        v = {"refit": strong_nulls.refit, "forward": strong_nulls.forward}[used](q, count)
    impossible = contradictions(q)
    return Outcome(
        method=METHOD,
        statistic=v.statistic,
        p_value=0.0 if impossible else v.p_value,
        alternative=alternative_of(q),
        null=hypothesis_of(q),
        law=IMPOSSIBLE.format(impossible) if impossible else v.law,
        settings={
            "alternative": q.alternative,
            "asked": null,
            "detector": detector,
            "draws": 0 if used == "eprocess" else count,
            "folds": q.folds,
            "min_size": q.min_size,
            "null": used,
            "products_left_out": q.sample.x.left_out,
            "reads": "rows" if rows is data else "a uniform sample of the rows of a sketch",
            "seed": q.seed,
            "tolerance": q.edge.tolerance,
            "train": TRAIN,
            "variables": tuple(dict.fromkeys((*q.sample.x.tree_of, *q.sample.x.flat_of)))[1:],
        },
        parts=_parts(q, v) | {"impossible": impossible},
    )


def chosen_null(q: Question, null: Any) -> str:
    """Return the null to use: what is asked for, or by guarantee and size."""
    check_choice("null", null, NULLS)
    wide = q.edge.tolerance > 0 and q.alternative == "two-sided"
    if null == "refit" and wide:
        raise BadInput(
            "null='refit' simulates no single law for a two-sided tolerance above 0: pass 'fixed' or 'forward'"
        )
    if null != "auto":
        return str(null)
    if strong_nulls.may_hold(q):
        return "fixed"
    return "split" if wide or q.cluster is not None or q.n > FEW else "refit"


def contradictions(q: Question) -> int:
    """Count outcomes that have probability zero under every rate within the tolerance."""
    y = q.sample.y > 0
    up = int((y & (q.edge.high <= 0.0)).sum()) if q.alternative != "less" else 0
    down = int((~y & (q.edge.low >= 1.0)).sum()) if q.alternative != "greater" else 0
    return up + down


def checked_draws(draws: Any, null: str = "fixed") -> int:
    """Return how many draws to make, by default as many as the null takes."""
    if draws is None:
        return REFITS if null == "refit" else DRAWS
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 19:
        raise BadInput(f"draws={draws!r}: pass a whole number, 19 or more")
    return int(draws)


def alternative_of(q: Question) -> str:
    """Say what the test looks for."""
    by = f" by more than {q.edge.tolerance:g}" if q.edge.tolerance else ""
    return {
        "two-sided": f"for some group the event rate is off the score{by}",
        "greater": f"for some group the event rate is above the score{by}",
        "less": f"for some group the event rate is below the score{by}",
    }[q.alternative]


def hypothesis_of(q: Question) -> str:
    """Say what the test doubts."""
    t = f"{q.edge.tolerance:g}"
    return {
        "two-sided": f"|E[Y | p, x] - p| <= {t} for every row",
        "greater": f"E[Y | p, x] - p <= {t} for every row",
        "less": f"p - E[Y | p, x] <= {t} for every row",
    }[q.alternative]


def _parts(q: Question, v: strong_nulls.Verdict) -> dict[str, Any]:
    """Return the models' results, and the group at the peak of the chosen one."""
    y, weights = q.sample.y[v.rows], q.sample.heft(v.rows)
    curve = v.path.curve(y)
    top = int(np.nanargmax(curve)) + 1 if np.isfinite(curve).any() and np.nanmax(curve) > 0 else 0
    inside = v.path.rows[:top]
    w = np.ones(len(v.rows)) if weights is None else weights
    return {
        "models": q.pool.names,
        "statistics": v.statistics,
        "p_values": v.p_values,
        "chosen": q.pool.names[v.chosen],
        "peak_rows": top,
        "peak_share": float(w[inside].sum() / w.sum()),
        "threshold": float(v.path.excess[top - 1]) if top else 0.0,
        "peak_cases": int(y[inside].sum()),
        "peak_expected": float(q.edge.p[v.rows][inside].sum()),
        "rows_beyond": len(v.path.rows),
        "rows_tested": len(v.rows),
        **v.facts,
    }
