"""The local calibration bias: for whom the probabilities are off, along any covariate, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from calibrant.arguments import checked_seed
from calibrant.data.predictions import Predictions
from calibrant.diagnose.bias_axes import MOST, SCORE, Axis, axes_of, checked, names_of, said, widths_of
from calibrant.diagnose.bias_map import METHOD, Asked, curve_of, mapped, noise_of, part_of, sample_of, scaled
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.smoothing import Sample, Spots, kernel_bias
from calibrant.views.population import shares

# ---- The local calibration bias as published: one kernel on the unscaled covariates and the score ----


def published_axes(data: Predictions, names: tuple[str, ...]) -> tuple[Axis, ...]:
    """Return numbers as they are, and the score last."""
    axes = axes_of(data, names, score=True, delta=False)
    for a in axes:
        if not a.numeric or (a.level != 0).any():
            raise BadInput(f"kernel='published' takes numbers without missing values; {a.name!r} is none")
    if any(a.ranks for a in axes):
        axes = tuple(Axis(a.name, a.kind, a.valued(a.position), a.level, whole=a.whole) for a in axes)
    return axes


def published_map(data: Predictions, names: tuple[str, ...], grid: Any, gamma: float, ask: Asked) -> Curve:
    """Draw eq. 7 at given points."""
    axes = published_axes(data, names)
    points = _points(grid, [a.name for a in axes])
    widths = [(2.0 * gamma) ** -0.5] * len(axes)
    s = sample_of(data, axes, ask.seed)
    s = Sample(s.y, s.p, s.weight, s.ids, scaled(s.spots, widths))
    there = scaled(Spots(points, np.zeros(points.shape, dtype=np.int64)), widths)
    part = part_of(there, s, data.cluster is not None, ask)
    kept = points[part.kept]
    called = ["x", *(f"x{j}" for j in range(2, len(names) + 1)), SCORE]
    columns: dict[str, Any] = {name: tuple(kept[:, j].tolist()) for j, name in enumerate(called)}
    columns["label"] = tuple(", ".join(said(v, "number") for v in line) for line in kept.tolist())
    settings = {
        "axes": tuple({"name": a.name, "kind": a.kind, "scaling": "as it is"} for a in axes),
        "gamma": gamma,
        "kernel": "published",
        "strata": (),
        "strata_left_out": (),
    }
    return curve_of(data, columns, [part], len(points), ask, settings)


def _points(grid: Any, axes: list[str]) -> Any:
    try:
        points = np.asarray(grid, dtype=float)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1] != len(axes) or not np.isfinite(points).all() or len(points) > MOST:
        raise BadInput(
            f"grid: kernel='published' needs an array of at most {MOST:,} points by {len(axes)} columns, "
            f"{', '.join(axes)}"
        )
    return points


# ---- The local calibration bias at every row, from the other rows, and the probabilities it corrects ----

MOST_ROWS = 100_000


def bias_at_rows(data: Predictions, names: tuple[str, ...], score: bool, bandwidth: Any, gamma: float | None) -> Curve:
    """Return eq. 7 at the rows, each left out of its own mean; `gamma` selects the published kernel."""
    if data.n > MOST_ROWS:
        raise NotComputable(f"at='rows' compares all pairs of rows: {data.n:,} are over {MOST_ROWS:,}; pass a sample")
    if gamma is None:
        axes = axes_of(data, names, score)
        widths = widths_of(axes, bandwidth, np.ones(data.n, dtype=bool), noise_of(data))
    else:
        axes = published_axes(data, names)
        widths = ((2.0 * gamma) ** -0.5,) * len(axes)
    s = sample_of(data, axes, 0)
    spots = scaled(s.spots, widths)
    bias, rows = kernel_bias(spots, s.weight, s.y - s.p, spots, same=True)
    columns = {"predicted": s.p, "gap": bias, "corrected": np.clip(s.p + bias, 0.0, 1.0), "rows": rows}
    return Curve(
        method=METHOD,
        columns={"row": tuple(range(data.n))} | {k: tuple(v.tolist()) for k, v in columns.items()},
        settings={
            "axes": tuple({"name": a.name, "kind": a.kind, "scaling": "rank" if a.ranks else "as it is"} for a in axes),
            "bandwidths": {"everyone": {a.name: w for a, w in zip(axes, widths, strict=True) if a.numeric}},
            "gamma": gamma,
            "kernel": "local" if gamma is None else "published",
            "left_out": "the row itself",
            "n": data.n,
            "weights": data.weights is not None,
        },
    )


# ---- The local calibration bias: for whom the probabilities are off, along any covariate, and by how much ----


def local_bias(
    data: Any,
    by: str | Sequence[str],
    strata: str | Sequence[str] | None = None,
    grid: int | Sequence[Any] | Mapping[str, Any] | None = None,
    bandwidth: float | Mapping[str, float] | None = None,
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
    kernel: Literal["local", "published"] = "local",
    gamma: float | None = None,
    score: bool = False,
    at: Literal["grid", "rows"] = "grid",
) -> Curve:
    r"""Map the local calibration bias: what happened minus what the model says, for people with given covariates.

    Estimand: ``b(x) = E[K(x, X)(Y - P)] / E[K(x, X)]``, the mean residual of the people near ``x`` (eq. 7 of the
    paper, with its kernel on the score left out unless ``score=True``); in probability units, positive where the model
    says too little. A calibrated model has ``b = 0`` everywhere, without smoothing bias.

    Parameters
    ----------
    data : Predictions
    by : str or sequence of one or two str
        Covariates along which the map is drawn: one for a curve, two for a heat map, in any mix of numbers, dates and
        categories. With ``at="rows"`` or ``kernel="published"``, any number of them.
    strata : str or sequence of str, optional
        Covariates whose combinations each get a map of their own; categories, or numbers of at most ten values.
    grid : int, sequence, or mapping of axis to either, optional
        Points along a number or a date, equally spaced from the 1st to the 99th percentile of all rows (101; 21 for
        each of two), or the values. Whole numbers and dates keep to whole values. Of a category, its levels.
        ``kernel="published"``: array of shape (points, variables + 1), the covariates and the score of each point.
    bandwidth : float or mapping of axis to float, optional
        Standard deviation of the Gaussian kernel, in the unit of the covariate: days for a date, share of the rows
        (0 to 1) for a heavy-tailed number. By default ``0.75 sd V^(-1/(4+d))`` in each stratum.
    alpha : float in (0, 1)
        Error probability of the whole map.
    draws, seed : int
        Simulated data sets, and their seed.
    kernel : {"local", "published"}
        ``"published"``: one Gaussian kernel ``exp(-gamma |z - z'|^2)`` on the unscaled covariates and the score.
    gamma : float, optional
        Of the published kernel.
    score : bool
        Add the score as an axis.
    at : {"grid", "rows"}
        ``"rows"``: the bias at every row from the other rows, and the probability corrected by it.

    Returns
    -------
    Curve
        A line for each point that at least ten effective rows support: ``x``, with two axes ``x2``, with strata
        ``stratum`` (numbers in the user's unit, dates as ISO text, names of levels, None where the value is missing:
        missing is a point of its own); ``label`` (the point in text); ``gap``; ``predicted``, ``observed``
        (``observed - predicted = gap``); ``rows`` (effective: ``(sum K)^2 / sum K^2``); ``people`` (rows nearest to
        the point); ``share`` (mean kernel weight, proportional to the density); ``null_sd``; ``low``,
        ``high`` (simultaneous); ``low_point``, ``high_point``; ``p_adjusted`` (over the map), ``p_point``.
        In ``settings``: ``p_value`` of the whole map, ``masked`` (points left out), ``contradicted``, ``axes``,
        ``bandwidths``, and more. ``.chart()`` draws it. With ``at="rows"``: ``row``, ``predicted``, ``gap``,
        ``corrected`` (``predicted + gap``, kept in [0, 1]) and ``rows``.

    Raises
    ------
    BadInput
        No such covariate, three of them, values that are not on an axis, strata that are not categories.
    NotComputable
        A covariate of one value; no point with ten effective rows.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters if the data name them; covariates, weights and bandwidth
    fixed without the labels.
    **Guarantee.** *Rows.* ``p_adjusted`` and ``p_value`` are ``(1 + #{max T* >= T}) / (draws + 1)``, with ``T = |bias|
    / sqrt(null_sd^2 + 1 / rows^2)``: exact at any number of rows, over all points and strata together. The second term
    is one event, so that points with hardly any expected event do not widen the band of all. *Bands* hold the values
    b with ``|bias - b|`` at most the critical value times a standard error, which is that of the null (as in T) at
    ``b = 0``, that of the residuals at the estimate, of variance linear between and growing on beyond. So the
    simultaneous band excludes zero exactly where ``p_adjusted <= alpha``, the pointwise one where ``p_point <= alpha``;
    and where the model is off, the simultaneous band holds the smoothed bias everywhere, asymptotically. It does not
    hold the unsmoothed one: near a step, the map is off up to about a bandwidth beyond it. *Clusters.* Random signs of
    whole clusters: asymptotic in their number; points with under ten effective clusters are left out.
    **Method.** Eq. 7, local constant as in the paper: residuals are smoothed, so that a calibrated model shows no bias
    at the ends of the data either; where it is off, a trend is flattened within a bandwidth of the ends, at a smaller
    variance than that of a local line. Null outcomes ``Y* ~ Bernoulli(p)`` keyed by row. Departures from the paper:
    no kernel on the score by default, bandwidths scaled to each covariate, heavy-tailed numbers on the scale of ranks,
    categories by level; ``kernel="published"`` has none of these. Default bandwidth: `sd` is the standard deviation of
    the covariate, V the null variance ``sum p (1 - p)`` of the stratum (with weights, its effective size), d the
    numeric axes; 0.75 trades a little noise for sharper edges. Over 20,000 distinct places, rows are moved by at most a
    hundredth of a bandwidth (a twentieth along two numbers). A score of 0 or 1 that an outcome contradicts refutes
    calibration by itself: the p-value of the map is then 0, and ``contradicted`` counts such rows.
    **Cost.** Rows times draws, and places times points times draws; memory does not grow with the rows times draws.
    At rows: rows squared, by tiles.
    **Reads.** Rows.

    References
    ----------
    Vashistha, Farahi (2025), I-trustworthy models, AISTATS, PMLR 258: eq. 7 and Figure 6.
    Luo et al. (2022), Local calibration: metrics and recalibration, UAI, 1286-1295: no kernel on the score.
    Wu (1986), doi:10.1214/aos/1176350142: random signs.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 80, 5000), rng.uniform(0.2, 0.7, 5000)
    >>> y = rng.random(5000) < p + 0.15 * (age > 60)
    >>> curve = cal.diagnose.local_bias(cal.predictions(y, p, {"age": age}), "age", grid=[30, 50, 70], draws=199)
    >>> [round(b, 2) for b in curve.columns["gap"]], curve.columns["p_adjusted"]
    ([-0.02, -0.01, 0.13], (0.68, 0.93, 0.005))
    """
    rows, names, split = checked(data), names_of(by, "by"), () if strata is None else names_of(strata, "strata")
    published = _kernel(kernel, gamma)
    if not isinstance(score, (bool, np.bool_)):
        raise BadInput(f"score={score!r}: pass True to add the score as an axis, or False")
    ask = _asked(alpha, draws, seed)
    both = sorted(set(names) & set(split))
    if both:
        raise BadInput(f"{both[0]!r} is in by and in strata: name it once")
    if published is not None and (split or score or bandwidth is not None):
        raise BadInput("kernel='published' takes no strata, score or bandwidth: its one kernel has gamma")
    if at == "rows":
        if split or grid is not None:
            raise BadInput("at='rows' takes no strata or grid: name all covariates in by")
        return bias_at_rows(rows, names, score, bandwidth, published)
    if at != "grid":
        raise BadInput(f"at={at!r}: pass 'grid' or 'rows'")
    if published is not None:
        return published_map(rows, names, grid, published, ask)
    if len(names) + score > 2:
        raise BadInput(f"by names {len(names) + score} axes: a map has one or two; put the others in strata")
    return mapped(rows, names, split, score, grid, bandwidth, ask)


def _asked(alpha: float, draws: Any, seed: int) -> Asked:
    shares(alpha, "two-sided")
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or (draws + 1) * alpha < 1.0 - 1e-9:
        raise BadInput(f"draws={draws!r}: alpha={alpha:g} needs at least {int(np.ceil(1 / alpha)) - 1} draws")
    return Asked(float(alpha), int(draws), checked_seed(seed))


def _kernel(kernel: Any, gamma: Any) -> float | None:
    """Return gamma of the published kernel, or None for ours."""
    if kernel not in ("local", "published"):
        raise BadInput(f"kernel={kernel!r}: pass 'local' or 'published'")
    if kernel == "local":
        if gamma is not None:
            raise BadInput("gamma belongs to kernel='published'; give bandwidth instead")
        return None
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float, np.number)) or not 0 < gamma < float("inf"):
        raise BadInput(f"gamma={gamma!r}: kernel='published' needs a positive number, such as 0.5")
    return float(gamma)
