"""The errors of Kelly and Smyth as published: reliability diagram, curve along a variable, and ranking of variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant import MulticlassPredictions, Predictions
from calibrant.arguments import check_int, choice, names, number, shown
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.smoothing import interpolated
from calibrant.stats.strata import quantile_cells
from calibrant.toolkit.data import as_covariates, decoded, finite_numbers, is_number, require, takes_arrays
from calibrant.toolkit.methods import refuse_rows

UNKNOWN = "the published procedure knows no {}: use measure.vece"

Floats = NDArray[np.float64]
View = Literal["confidence", "probability"]
VIEWS: tuple[View, ...] = ("confidence", "probability")
POINTS, ENDS = 500, (0.05, 0.95)  # at which the authors look for the worst, between these quantiles of the variable
AT_ONCE = 1 << 23  # weights held at once


class Errors(NamedTuple):
    """Scores and outcomes of a view."""

    score: Floats  # shape (n,)
    outcome: Floats  # shape (n,)
    classes: int
    covariates: pa.Table  # of no columns where there are none

    def by_bins(self, values: Floats, bins: int) -> Bins:
        """Both in quantile bins of some values."""
        cell = quantile_cells(values, bins)
        rows = np.bincount(cell).astype(np.float64)
        sums = (np.bincount(cell, v) for v in (values, self.score, self.outcome))
        return Bins(rows, *(v / rows for v in sums))

    def variable(self, name: object) -> Floats:
        """The values of a covariate: numbers, none missing."""
        if not isinstance(name, str):
            raise BadInput(f"variable={shown(name)}: pass the name of one covariate")
        require([name], tuple(self.covariates.schema.names), "covariate")
        column = decoded(self.covariates.column(name))
        if not is_number(column.type):
            raise NotComputable(f"covariate {name!r} is no number: the published curve is drawn along a number")
        values: Floats = finite_numbers(column, name, "covariate")
        if np.isnan(values).any():
            raise NotComputable(f"covariate {name!r} has missing values, which the published procedure does not know")
        return values


class Bins(NamedTuple):
    """Rows of each bin, and means in it."""

    rows: Floats
    value: Floats
    score: Floats
    outcome: Floats

    @property
    def error(self) -> float:
        """The mean absolute difference of outcome and score, as ECE and VECE have it."""
        return float(self.rows @ np.abs(self.outcome - self.score) / self.rows.sum())


def _viewed(data: Predictions | MulticlassPredictions, view: View) -> Errors:
    """The rows in a view; refuse what the procedure does not know."""
    choice("view", view, VIEWS)
    if not hasattr(data, "p") or not hasattr(data, "y"):
        raise NotComputable("the published procedure sorts rows: pass calibrant.predictions(y_true, y_prob)")
    refuse_rows(data, weights=UNKNOWN.format("weights"), cluster=UNKNOWN.format("cluster"))
    if data.n == 0:
        raise NotComputable("there are no rows")
    x = pa.table({}) if data.covariates is None else as_covariates(data.covariates)
    if isinstance(data, MulticlassPredictions):
        if view == "probability":
            raise BadInput("view='probability' is of two classes: pass data.one_vs_rest(k), or view='confidence'")
        top = data.top_label()
        return Errors(top.p, top.y.astype(np.float64), data.p.shape[1], x)
    p, y = data.p, data.y.astype(np.float64)
    if view == "confidence":
        first = p >= 0.5
        p, y = np.where(first, p, 1.0 - p), np.where(first, y, 1.0 - y)
    return Errors(p, y, 2, x)


@takes_arrays
def reliability_diagram(
    data: Predictions | MulticlassPredictions, *, bins: int = 10, view: View = "confidence"
) -> Curve:
    r"""Reliability diagram and ECE of the confidence in bins of equal support, as the papers use them.

    Estimand: ``ECE = sum_b n_b / n |acc(b) - conf(b)|`` over bins of the confidence, the probability of the more
    probable class; its outcome is that this class comes true.

    Parameters
    ----------
    data : Predictions or MulticlassPredictions
        Of several classes the most probable one.
    bins : int from 1 to 1,000
        The paper has 10.
    view : {"confidence", "probability"}
        The larger of p and 1 - p (class 1 from 0.5), or the probability of class 1.

    Returns
    -------
    Curve
        Columns ``x`` (mean confidence of each bin), ``rate`` (share in which the class came true), ``gap`` (rate less
        confidence), ``rows``. Settings hold ``ece``, ``max_error`` (the largest gap of a bin), ``confidence`` and
        ``accuracy`` of all rows, ``classes``. ``.chart()`` draws it.

    Raises
    ------
    NotComputable
        Weights, clusters, or a sketch.

    Notes
    -----
    **Assumes.** Nothing: the numbers describe these rows.
    **Guarantee.** None: the plain ECE is too large, by more the more bins there are. `measure.ece` subtracts the
    noise and has an interval.
    **Method.** Equations 1 to 3; bins by interpolated quantiles, closed on the right, equal edges joined, as in the
    authors' program.
    **Cost.** A sort.
    **Reads.** Rows.

    References
    ----------
    Kelly, Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.predictions([0, 1, 0, 1], [0.1, 0.8, 0.4, 0.6])
    >>> diagram = cal.papers.reliability_diagram(data, bins=2)
    >>> diagram.columns["x"], diagram.columns["rate"]
    ((0.6, 0.85), (1.0, 1.0))
    """
    seen = _viewed(data, view)
    made = seen.by_bins(seen.score, check_int("bins", bins, 1, 1000, of="bins", hint="such as 10"))
    gap = made.outcome - made.score
    columns = {"x": made.score, "rate": made.outcome, "gap": gap, "rows": made.rows.astype(int)}
    return Curve(
        method="papers.reliability_diagram",
        columns={k: tuple(np.round(v, 15).tolist()) for k, v in columns.items()},
        settings={
            "method": "bins",
            "view": view,
            "bins": bins,
            "bins_used": len(gap),
            "n": len(seen.score),
            "classes": seen.classes,
            "ece": made.error,
            "max_error": float(np.abs(gap).max()),
            "confidence": float(seen.score.mean()),
            "accuracy": float(seen.outcome.mean()),
        },
    )


@takes_arrays
def published_variable_curve(
    data: Predictions | MulticlassPredictions,
    variable: str,
    *,
    view: View = "confidence",
    span: float = 0.9,
    bins: int = 10,
) -> Curve:
    r"""VCE along a variable, its worst point and VECE, as published: LOESS on the authors' interpolated surface.

    Estimand: ``VCE(v) = |P(right | v) - E[confidence | v]|``, and ``v* = argmax VCE(v)``; ``VECE = sum_b n_b / n
    |acc(b) - conf(b)|`` over bins of the variable.

    Parameters
    ----------
    data : Predictions or MulticlassPredictions
        Of several classes the most probable one.
    variable : str
        A number, none missing.
    view : {"confidence", "probability"}
        The larger of p and 1 - p (class 1 from 0.5), or the probability of class 1.
    span : float in (0, 1]
        Share of the rows in a window; the paper has 0.8 to 0.9.
    bins : int from 1 to 1,000
        Of VECE and ECE; the paper has 10.

    Returns
    -------
    Curve
        Columns ``x``, ``observed`` and ``predicted`` (both smoothed), ``gap`` (observed less predicted). Settings hold
        ``worst_at`` (v*), ``worst_gap`` and ``worst`` (VCE(v*)), ``vece``, ``ece``, ``most_apart`` (so large
        one can be while the other is 0), and ``one_sided``: ``"over"`` or ``"under"`` where scores and
        variable are off to one side in every bin, so that ECE and VECE are equal; else None.

    Raises
    ------
    NotComputable
        Weights, clusters, a sketch; a category, one value only, or missing values.

    Notes
    -----
    **Assumes.** Nothing: the numbers describe these rows.
    **Guarantee.** None, and no bars: `diagnose.variable_curve` smooths the difference exactly, with simultaneous bands
    and an interval for the worst; `certify.variable` is certified.
    **Method.** Equations 4, 6, 7 and 8, Appendix B: local quadratic regression, tricube weights, no iterations of the
    robust kind ("symmetric" in print, with one fit in the authors' program), 500 points from the 5% to the 95%
    quantile. The surface is exact at the vertices of a k-d tree and cubic in between, which is the default of the
    program that the authors call; `diagnose.variable_curve` has the exact one, and differs by up to 1.2 points on the
    authors' data. Departure: equal values are joined before the tree is cut, so that the order of rows plays no part.
    Theorems 5.1 and 5.2: ``most_apart = 0.5 - 1 / (2 K)`` of K classes. Definition 5.3 and Theorem 5.4: ``one_sided``.
    **Cost.** A sort, and the distinct values times a few vertices.
    **Reads.** Rows.

    References
    ----------
    Kelly, Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154.
    Cleveland, Devlin (1988), doi:10.1080/01621459.1988.10478639 (LOESS). Cleveland, Grosse (1991),
    doi:10.1007/BF01890836 (the surface).

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.6, 0.9, 4000), rng.uniform(20, 80, 4000)
    >>> data = cal.predictions(rng.uniform(size=4000) < np.where(age > 50, p, p - 0.2), p, {"age": age})
    >>> curve = cal.papers.published_variable_curve(data, "age")
    >>> bool(curve.settings["worst"] > 0.15), bool(curve.settings["worst_at"] < 45)
    (True, True)
    """
    seen = _viewed(data, view)
    bins = check_int("bins", bins, 1, 1000, of="bins", hint="such as 10")
    values = seen.variable(variable)
    at, observed, predicted = _smoothed(seen, values, variable, _span(span))
    gap = observed - predicted
    worst = int(np.argmax(np.abs(gap)))
    by_value, by_score = seen.by_bins(values, bins), seen.by_bins(seen.score, bins)
    columns = {"x": at, "observed": observed, "predicted": predicted, "gap": gap}
    return Curve(
        method="papers.published_variable_curve",
        columns={k: tuple(v.tolist()) for k, v in columns.items()},
        settings={
            "variable": variable,
            "view": view,
            "span": span,
            "degree": 2,
            "surface": "interpolated",
            "n": len(values),
            "worst_at": float(at[worst]),
            "worst_gap": float(gap[worst]),
            "worst": float(abs(gap[worst])),
            "bins": bins,
            "vece": by_value.error,
            "ece": by_score.error,
            "most_apart": 0.5 - 1.0 / (2.0 * seen.classes),
            "one_sided": _one_sided(by_value, by_score),
        },
    )


@takes_arrays
def published_variable_table(
    data: Predictions | MulticlassPredictions,
    *,
    variables: Iterable[str] | str | None = None,
    view: View = "confidence",
    span: float = 0.9,
    bins: int = 10,
) -> Curve:
    r"""Rank variables by VECE, with VCE at its worst point, as the paper's Tables 1 and 7 do.

    Estimand: VECE and ``VCE(v*)`` of `published_variable_curve`, for each variable.

    Parameters
    ----------
    data : Predictions or MulticlassPredictions
        Of several classes the most probable one.
    variables : str or sequence of str, optional
        Covariates; all by default. Only numbers of two values or more, none missing, have a curve.
    view, span, bins
        As in `published_variable_curve`.

    Returns
    -------
    Curve
        A line for each variable, the largest VECE first: ``variable``, ``vece``, ``worst`` (VCE(v*)), ``worst_at``.
        Settings hold ``ece``, and ``left_out``, the covariates that have no curve.

    Raises
    ------
    NotComputable
        Weights, clusters, a sketch; no variable.

    Notes
    -----
    **Assumes.** Nothing: the numbers describe these rows.
    **Guarantee.** None: plain VECE is too large, by more the more bins there are. `diagnose.rank_variables` subtracts
    the noise and the overall gap, with p-values and certified ranges.
    **Method.** As in `published_variable_curve`. **Cost.** As many sorts as there are variables. **Reads.** Rows.

    References
    ----------
    Kelly, Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, x = rng.uniform(0.6, 0.9, 4000), {"age": rng.uniform(20, 80, 4000), "size": rng.uniform(size=4000)}
    >>> data = cal.predictions(rng.uniform(size=4000) < np.where(x["age"] > 50, p, p - 0.2), p, x)
    >>> cal.papers.published_variable_table(data).columns["variable"]
    ('age', 'size')
    """
    seen = _viewed(data, view)
    bins, span = check_int("bins", bins, 1, 1000, of="bins", hint="such as 10"), _span(span)
    every = tuple(seen.covariates.column_names)
    wanted = names("variables", variables, what="a covariate", distinct=True) or every
    require(wanted, every, "covariate")
    usable = [name for name in wanted if _has_curve(seen.covariates.column(name))]
    lines = []
    for name in usable:
        values = seen.variable(name)
        at, observed, predicted = _smoothed(seen, values, name, span)
        worst = int(np.argmax(np.abs(observed - predicted)))
        off = float(abs(observed[worst] - predicted[worst]))
        lines.append((name, seen.by_bins(values, bins).error, off, float(at[worst])))
    if not lines:
        raise NotComputable("no covariate is a number without missing values: name one in variables")
    lines.sort(key=lambda line: -line[1])
    return Curve(
        method="papers.published_variable_table",
        columns=dict(zip(("variable", "vece", "worst", "worst_at"), zip(*lines, strict=True), strict=True)),
        settings={
            "view": view,
            "span": span,
            "bins": bins,
            "n": len(seen.score),
            "ece": seen.by_bins(seen.score, bins).error,
            "left_out": tuple(name for name in wanted if name not in usable),
        },
    )


def _span(span: float) -> float:
    return number("span", span, above=0, most=1, what="a share of the rows", hint="such as 0.9")


def _has_curve(column: pa.ChunkedArray) -> bool:
    """Whether it is a number of two values or more, none missing."""
    column = decoded(column)
    return bool(is_number(column.type)) and not column.null_count and len(column.unique()) > 1


def _one_sided(*binned: Bins) -> str | None:
    """The side to which every bin is off, of scores and variable alike (Definition 5.3 and its mirror image)."""
    gap = np.concatenate([b.outcome - b.score for b in binned])
    return "over" if (gap < 0).all() else "under" if (gap > 0).all() else None


def _smoothed(seen: Errors, values: Floats, name: str, span: float) -> tuple[Floats, Floats, Floats]:
    """Both curves at the authors' points."""
    x, cell = np.unique(values, return_inverse=True)
    if len(x) < 2:
        raise NotComputable(f"covariate {name!r} has one value only: there is no curve along it")
    rows = np.bincount(cell).astype(np.float64)
    sums = np.column_stack([np.bincount(cell, v) for v in (seen.outcome, seen.score)])
    first, last = np.quantile(values, ENDS)
    at = np.linspace(first, last, POINTS)
    step = max(1, AT_ONCE // len(x))
    both = [interpolated(x, rows, rows, at[i : i + step], span, 2) @ sums for i in range(0, POINTS, step)]
    observed, predicted = np.concatenate(both).T
    return at, observed, predicted
