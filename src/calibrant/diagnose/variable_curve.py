"""The curve along a variable: where along age, income or text length the probabilities are off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.arguments import checked_alpha, checked_draws, checked_seed, choice, number
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.diagnose.bands import Band, Banded, Layout, banded, gap_columns, plan_of
from calibrant.results import Curve
from calibrant.stats.strata import View
from calibrant.views.by_variable import checked_view

BAND = (
    "simultaneous over every point: if the model is calibrated, it holds zero everywhere with probability at least the "
    "level; if not, an asymptotic band for the smoothed gap"
)


@takes_arrays
def variable_curve(
    data: Predictions | Sketch,
    variable: str | Sequence[str],
    *,
    view: View = "probability",
    span: float = 0.75,
    degree: int = 2,
    grid: int | Sequence[Any] = 41,
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
    by: str | None = None,
) -> Curve:
    r"""Draw what happened minus what the model says, along a variable, with a simultaneous band.

    Estimand: ``g(v) = sum_i l_i(v) (E[Y | x_i] - p_i)``, with ``l_i(v)`` the weights of a local quadratic regression
    (LOESS) at the value v; the paper's ``VCE(v)`` is ``|g(v)|``. In probability units, positive where the model
    underpredicts. The residual itself is smoothed: that equals the difference of the two smoothed curves, with the
    variance of a difference.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights are used; where the data name clusters, band and p-value are by these clusters.
    variable : str, or two
        A number, a date or a category. A category, and a number of at most ten values, has a point for each level
        instead of a curve; missing values are a level. Two variables make a table for a heat map: numbers of more
        than ten values are cut into six bins of about equally many rows.
    view : {"probability", "confidence"}
        The outcome, or whether the more probable class is right (the paper's view: error rate and predicted error).
    span : float in (0, 1]
        Share of the rows in a window.
    degree : int from 0 to 2
        Of the local polynomial.
    grid : int, or increasing values of the variable
        Number of points, from the 1st to the 99th percentile; or the points.
    alpha : float in (0, 0.5]
        Error probability of the whole band.
    draws, seed : int
        Simulated data sets, and their seed.
    by : str, optional
        A second variable: a curve for each of its levels (a number is cut into four), under one band.

    Returns
    -------
    Curve
        Columns: ``group`` (level of `by`, or of the pair's second variable; empty without); ``x`` (value in the
        variable's units, days since 1970 for a date; None for a level without one); ``label`` (the value or level as
        text, ISO for a date); ``predicted``, ``observed``, ``gap``; ``low``, ``high`` (simultaneous); ``low_point``,
        ``high_point`` (each point by itself); ``rows`` (effective rows: whose plain mean would be as noisy);
        ``density`` (rows per unit of the variable; of a level its share); ``stretch`` (a new number after each hole, -1
        for a level). In ``settings``: ``p_value`` of all points together; ``worst_at``, ``worst_gap``, ``worst_low``
        and ``worst_high`` (the largest ``|g|`` over 500 points between the 5th and the 95th percentile, and over
        levels, with an interval that holds for the maximum: what an audit reports, there rounded); ``consistent``
        (``"over"``, ``"under"`` or None, Definition 5.3) and ``consistent_how``; ``masked``, the number of points left
        out. ``.chart()`` draws it.

    Raises
    ------
    NotComputable
        One value only; nowhere enough rows; one cluster; a sketch that keeps no cells of the variable, or with `by`.

    Notes
    -----
    **Assumes.** Independent rows; span and grid chosen without the labels.
    **Guarantee.** ``p_value = (1 + #{T* >= T}) / (draws + 1)`` with T the largest ``|gap| / null standard error`` over
    all points, drawn and searched: exact at any number of rows where the outcomes of all rows are simulated
    (``settings["null"]`` says so), otherwise asymptotic; with clusters whole clusters have random signs, asymptotic in
    their number, and the band is at least as wide as the standard error of sums over clusters asks.
    *Band.* Half-width ``critical`` times the larger of two
    standard errors: with the variance ``p (1 - p)`` of a calibrated model, and with squared residuals about the fitted
    gap. By the first, a calibrated model's band excludes zero anywhere with probability at most `alpha` (then too
    ``p_value <= alpha``). By the second it is, where the model is off, asymptotically and simultaneously a confidence
    band for the smoothed ``g``, not for bumps narrower than the window. *Worst.* ``worst_low`` to ``worst_high`` holds
    ``max |g|`` over the points whenever the band holds g.
    **Method.** Paper: Section 6 and equation (8), LOESS with quadratic local fit; error and predicted error were
    smoothed apart, with pointwise bars. Here: the exact ("direct") surface, one smoother for both, bands that hold
    simultaneously. Cells: distinct values, at most 1024 of about equally many rows. Points with under 20 effective
    rows, or under 5 effective expected events or non-events, or farther than a tenth of the axis from every row, are
    left out. Consistent: every point's gap on one side, and the band clear of zero somewhere; then ``VECE = |mean
    residual|``, and equals the ECE if the score is one-sided too (Theorem 5.4). **Cost.** A sort of the rows; points
    times cells; draws times rows up to 2e10 together (about 2 ns each for one variable), beyond that Gaussian sums,
    whose cost does not grow with the rows. **Reads.** Rows; one variable of a sketch that keeps its cells.

    References
    ----------
    Kelly, Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154.
    Cleveland, Devlin (1988), doi:10.1080/01621459.1988.10478639 (LOESS).

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.2, 0.8, 20_000), rng.uniform(20, 80, 20_000)
    >>> y = rng.uniform(size=20_000) < p + 0.1 * np.sin(age / 10)
    >>> curve = cal.diagnose.variable_curve(cal.predictions(y, p, {"age": age}), "age")
    >>> curve.settings["p_value"], curve.settings["consistent"]
    (0.001, None)
    >>> curve.settings["worst_low"] > 0.05
    True
    """
    layout = Layout(
        variable=variable,
        by=by,
        view=checked_view(view),
        span=number("span", span, above=0, most=1, what="a share of the rows", hint="such as 0.75"),
        degree=choice("degree", degree, (0, 1, 2)),
        grid=grid,
    )
    level, seed = checked_alpha(alpha), checked_seed(seed)
    draws = checked_draws(draws, level)
    plan = plan_of(data, layout)
    result = banded(plan, level, draws, seed)
    parts = [_points(b) for b in result.bands]
    pair = not isinstance(variable, str)
    return Curve(
        method="diagnose.variable_curve",
        columns={k: tuple(v for part in parts for v in part[k]) for k in parts[0]},
        settings={
            "variable": variable if isinstance(variable, str) else tuple(variable),
            "by": by,
            "view": layout.view,
            "kind": "pair" if pair else "levels" if plan.levels else "curve",
            "date": plan.whole.date and not pair,
            "span": layout.span,
            "degree": layout.degree,
            "alpha": level,
            "draws": draws,
            "seed": seed,
            "n": plan.whole.n,
            "gap": plan.whole.gap,
            "p_value": result.p_value,
            "statistic": result.statistic,
            "critical": result.critical,
            "null": result.law,
            "band": BAND,
            "masked": result.masked,
            **_worst(result),
            **_consistency(result),
        },
    )


def _points(b: Band) -> dict[str, list[Any]]:
    """One panel's points that are drawn, in order of the variable, levels last."""
    kind = b.panel.kind[b.kept]
    shown = np.flatnonzero(kind != 1)
    at = b.kept[shown]
    hole = np.diff(at, prepend=at[0] if len(at) else 0) > 1
    numbers = gap_columns(b.predicted[shown], b.gap[shown], b.wide[shown], b.narrow[shown]) | {
        "rows": b.rows[shown],
        "density": b.panel.density[at],
        "stretch": np.where(kind[shown] == 2, -1, np.cumsum(hole)),
    }
    return {
        "group": [b.panel.group] * len(at),
        "x": [None if np.isnan(v) else v for v in b.panel.x[at].tolist()],
        "label": [b.panel.labels[i] for i in at.tolist()],
        **{k: v.tolist() for k, v in numbers.items()},
    }


# ---- What the curve says as a whole: where it is worst, and whether it lies on one side ----


def _worst(result: Banded) -> dict[str, Any]:
    """The point of the largest gap, and an interval for the largest gap wherever it is.

    The low end is the largest distance from zero that the band shows anywhere, the high end the farthest that it
    reaches: both hold for ``max |g|`` whenever the band holds g at every point.
    """
    best: tuple[float, Band | None, int] = (-1.0, None, 0)
    low = high = 0.0
    for b in result.bands:
        looked = np.flatnonzero(b.panel.kind[b.kept] != 0)
        if not len(looked):
            continue
        size, wide = np.abs(b.gap[looked]), b.wide[looked]
        low, high = max(low, float((size - wide).max())), max(high, float((size + wide).max()))
        i = int(np.argmax(size))
        if size[i] > best[0]:
            best = float(size[i]), b, int(looked[i])
    _, b_, i = best
    if b_ is None:
        return dict.fromkeys(("worst_group", "worst_at", "worst_label", "worst_gap", "worst_low", "worst_high"))
    at = int(b_.kept[i])
    x = float(b_.panel.x[at])
    return {
        "worst_group": b_.panel.group,
        "worst_at": None if np.isnan(x) else x,
        "worst_label": b_.panel.labels[at],
        "worst_gap": float(b_.gap[i]),
        "worst_low": low,
        "worst_high": min(high, 1.0),
    }


def _consistency(result: Banded) -> dict[str, Any]:
    """The side on which the curve lies everywhere, if it does, and what that rests on (Definition 5.3)."""
    gap = np.concatenate([b.gap for b in result.bands])
    wide = np.concatenate([b.wide for b in result.bands])
    side = "over" if (gap < 0).all() else "under" if (gap > 0).all() else None
    clear = np.abs(gap) > wide
    if side is None:
        how = "the gap is on both sides of zero"
    elif clear.all():
        how = "shown: the simultaneous band is on this side of zero at every point"
    elif clear.any():
        how = f"estimated: the gap is on this side at every point, the simultaneous band at {100 * clear.mean():.0f}%"
    else:
        side, how = None, "the simultaneous band holds zero at every point"
    return {"consistent": side, "consistent_how": how}
