"""The local calibration bias: for whom the probabilities are off, along any covariate, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, checked_draws, checked_seed, choice, flag, names, positive
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sample import identities_of
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.nulls import critical, p_value
from calibrant.stats.smoothing import Means, Sample, Spots, kernel_bias, means, signed, simulated
from calibrant.views.axes import (
    PAIR_POINTS,
    POINTS,
    SCORE,
    Axis,
    Bandwidth,
    Floats,
    Grid,
    Ints,
    Places,
    axes_of,
    grid_for,
    groups_of,
    places_of,
    stated,
    widths_of,
)
from calibrant.views.people import people_of
from calibrant.views.points import even_weights

Kernel = Literal["local", "published"]
At = Literal["grid", "rows"]
MOST_ROWS = 100_000  # of which all pairs are compared: about a minute


@takes_arrays
def local_bias(
    data: Predictions,
    variables: str | Sequence[str],
    *,
    by: str | Sequence[str] | None = None,
    grid: Grid = None,
    bandwidth: Bandwidth = None,
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
    kernel: Kernel = "local",
    gamma: float | None = None,
    by_score: bool = False,
    at: At = "grid",
) -> Curve:
    r"""Map the local calibration bias: what happened minus what the model says, for people with given covariates.

    Estimand: ``b(x) = E[K(x, X)(Y - P)] / E[K(x, X)]``, the mean residual of the people near ``x`` (eq. 7 of the paper,
    with its kernel on the score left out unless ``by_score=True``); in probability units, positive where the model
    underpredicts. A calibrated model has ``b = 0`` everywhere, without smoothing bias.

    Parameters
    ----------
    data : Predictions
    variables : str or sequence of one or two str
        Covariates along which the map is drawn: one for a curve, two for a heat map, in any mix of numbers, dates and
        categories. With ``at="rows"`` or ``kernel="published"``, any number of them.
    by : str or sequence of str, optional
        Groups that each get a map of their own: combinations of categories, or of numbers of at most ten values.
    grid : int, sequence, or mapping of axis to either, optional
        Points along a number or a date, equally spaced from the 1st to the 99th percentile of all rows (101; 21 for
        each of two), or the values. Whole numbers and dates keep to whole values. Of a category, its levels.
        ``kernel="published"``: array of shape (points, variables + 1), the covariates and the score of each point.
    bandwidth : float or mapping of axis to float, optional
        Standard deviation of the Gaussian kernel, in the unit of the covariate: days for a date, share of the rows
        (0 to 1) for a heavy-tailed number. By default ``0.75 sd V^(-1/(4+d))`` in each group.
    alpha : float in (0, 0.5]
        Error probability of the whole map.
    draws, seed : int
        Simulated data sets, and their seed.
    kernel : {"local", "published"}
        ``"published"``: one Gaussian kernel ``exp(-gamma |z - z'|^2)`` on the unscaled covariates and the score.
    gamma : float, optional
        Of the published kernel.
    by_score : bool
        Add the score as an axis.
    at : {"grid", "rows"}
        ``"rows"``: the bias at every row from the other rows, and the probability corrected by it.

    Returns
    -------
    Curve
        A line for each point that at least ten effective rows support: ``x``, with two axes ``x2``, with `by`
        ``group`` (numbers in the user's unit, dates as ISO text, names of levels, None where the value is missing:
        missing is a point of its own); ``label`` (the point in text); ``gap``; ``predicted``, ``observed``
        (``observed - predicted = gap``); ``rows`` (effective: ``(sum K)^2 / sum K^2``); ``people`` (rows nearest to
        the point); ``share`` (mean kernel weight, proportional to the density); ``null_sd``; ``low``,
        ``high`` (simultaneous); ``low_point``, ``high_point``; ``p_adjusted`` (over the map), ``p_point``.
        In ``settings``: ``p_value`` of the whole map, ``masked`` (points left out), ``contradicted``, ``axes``,
        ``bandwidths``, of clusters ``people`` (with rows nearest to each point), and more. ``.chart()`` draws it. With
        ``at="rows"``: ``row``, ``predicted``, ``gap``, ``corrected`` (``predicted + gap``, kept in [0, 1]), ``rows``.

    Raises
    ------
    BadInput
        No such covariate, three of them, values that are not on an axis, groups that are not categories.
    NotComputable
        A covariate of one value; no point with ten effective rows.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters if the data name them; covariates, weights and bandwidth
    fixed without the labels.
    **Guarantee.** *Rows.* ``p_adjusted`` and ``p_value`` are ``(1 + #{max T* >= T}) / (draws + 1)``, with ``T = |bias|
    / sqrt(null_sd^2 + 1 / rows^2)``: exact at any number of rows, over all points and groups together. The second term
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
    the covariate, V the null variance ``sum p (1 - p)`` of the group (with weights, its effective size), d the
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
    rows = checked_data(data, Predictions)
    if not rows.n:
        raise NotComputable("there are no rows")
    level = checked_alpha(alpha)
    ask = BiasMapOptions(
        variables=names("variables", variables, what="a covariate", least=1, distinct=True),
        by=names("by", by, what="a covariate", distinct=True),
        by_score=flag("by_score", by_score),
        grid=grid,
        bandwidth=bandwidth,
        alpha=level,
        draws=checked_draws(draws, level),
        seed=checked_seed(seed),
    )
    published = _gamma(choice("kernel", kernel, ("local", "published")), gamma)
    both = sorted(set(ask.variables) & set(ask.by))
    if both:
        raise BadInput(f"{both[0]!r} is in variables and in by: name it once")
    if published is not None and (ask.by or ask.by_score or bandwidth is not None):
        raise BadInput("kernel='published' takes no by, by_score or bandwidth: its one kernel has gamma")
    if choice("at", at, ("grid", "rows")) == "rows":
        if ask.by or grid is not None:
            raise BadInput("at='rows' takes no by or grid: name all covariates in variables")
        return _at_rows(rows, ask, published)
    if published is not None:
        return _published_map(rows, ask, published)
    if len(ask.variables) + ask.by_score > 2:
        axes = len(ask.variables) + ask.by_score
        raise BadInput(f"variables names {axes} axes: a map has one or two; put the others in by")
    return mapped(rows, ask)


# ---- The bias as published: one kernel on the unscaled covariates and the score, at scattered points ----


def _gamma(kernel: Kernel, gamma: float | None) -> float | None:
    """The gamma of the published kernel; None for ours."""
    if kernel == "published":
        return positive("gamma", gamma, hint="such as 0.5, with kernel='published'")
    if gamma is not None:
        raise BadInput("gamma belongs to kernel='published'; give bandwidth instead")
    return None


def _published_axes(data: Predictions, wanted: tuple[str, ...]) -> tuple[Axis, ...]:
    """Numbers as they are, and the score last."""
    axes = axes_of(data, wanted, by_score=True, delta=False)
    for a in axes:
        if not a.numeric or (a.level != 0).any():
            raise BadInput(f"kernel='published' takes numbers without missing values; {a.name!r} is none")
    if any(a.ranks for a in axes):
        axes = tuple(Axis(a.name, a.kind, a.valued(a.position), a.level, whole=a.whole) for a in axes)
    return axes


def _width(gamma: float) -> float:
    """The standard deviation of ``exp(-gamma d^2)``."""
    return float((2.0 * gamma) ** -0.5)


def _published_map(data: Predictions, ask: BiasMapOptions, gamma: float) -> Curve:
    """Draw eq. 7 at given points."""
    axes = _published_axes(data, ask.variables)
    points, widths = _points(ask.grid, [a.name for a in axes]), [_width(gamma)] * len(axes)
    there = scaled(Spots(points, np.zeros(points.shape, dtype=np.int64)), widths)
    part = part_of(there, rescaled(sample_of(data, axes, ask.seed), widths), data.cluster is not None, ask)
    kept = points[part.kept]
    called = ["x", *(f"x{j}" for j in range(2, len(ask.variables) + 1)), SCORE]
    columns: dict[str, Any] = {name: tuple(kept[:, j].tolist()) for j, name in enumerate(called)}
    columns["label"] = tuple(", ".join(stated(v, "number") for v in line) for line in kept.tolist())
    settings = {
        "axes": tuple({"name": a.name, "kind": a.kind, "scaling": "as it is"} for a in axes),
        "gamma": gamma,
        "kernel": "published",
        "by": (),
        "groups_left_out": (),
    }
    return curve_of(data, Table(columns, [part], len(points), settings), ask)


def _points(grid: Any, axes: list[str]) -> Floats:
    try:
        points = np.asarray(grid, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1] != len(axes) or not np.isfinite(points).all() or len(points) > MOST:
        raise BadInput(
            f"grid: kernel='published' needs an array of at most {MOST:,} points by {len(axes):,} columns, "
            f"{', '.join(axes)}"
        )
    return points


# ---- The bias at every row, from the other rows, and the probabilities it corrects ----


def _at_rows(data: Predictions, ask: BiasMapOptions, gamma: float | None) -> Curve:
    """Eq. 7 at the rows, each left out of its own mean; `gamma` selects the published kernel."""
    if data.n > MOST_ROWS:
        raise NotComputable(f"at='rows' compares all pairs of rows: {data.n:,} are over {MOST_ROWS:,}; pass a sample")
    if gamma is None:
        axes = axes_of(data, ask.variables, ask.by_score)
        widths = widths_of(axes, ask.bandwidth, np.ones(data.n, dtype=bool), noise_of(data))
    else:
        axes = _published_axes(data, ask.variables)
        widths = (_width(gamma),) * len(axes)
    s = rescaled(sample_of(data, axes, 0), widths)
    bias, rows = kernel_bias(s.spots, s.weight, s.y - s.p, s.spots, same=True)
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


METHOD = "diagnose.local_bias"
LEAST, NEAR = 10, 5  # effective rows (and clusters), and rows within reach, of a point that is kept
MOST = 10_000  # points of a map: its table is still read in a moment
STREAM = 0xB1A5  # of random numbers, before the seed; the repair `LocalBias` has it after the seed
BAND = (
    "simultaneous over the whole map: if the model is calibrated it excludes zero anywhere with probability at most "
    "alpha; if not, an asymptotic band for the smoothed bias"
)
EXACT, SIGNS = "exact simulation", "asymptotic: random signs of whole clusters"
TOO_FEW = f"no point has {LEAST} effective rows within reach: give a wider bandwidth, fewer groups or more data"


@dataclass(frozen=True, kw_only=True)
class BiasMapOptions:
    """Settings of a map, checked; as in `diagnose.local_bias`."""

    variables: tuple[str, ...]
    by: tuple[str, ...] = ()
    by_score: bool = False
    grid: Grid = None
    bandwidth: Bandwidth = None
    alpha: float = 0.05
    draws: int = 999
    seed: int = 0

    @property
    def salt(self) -> int:
        """The key of the simulation."""
        return int(np.random.default_rng([STREAM, self.seed]).integers(1 << 62))


def mapped(data: Predictions, ask: BiasMapOptions) -> Curve:
    """Draw the map of one or two axes, over everyone or in each group."""
    # (1) Axes and places, and the groups, from covariates alone.
    axes = axes_of(data, ask.variables, ask.by_score)
    groups, row = groups_of(data, ask.by)
    called = tuple(a.name for a in axes)
    points = POINTS if len(axes) == 1 else PAIR_POINTS
    places = tuple(places_of(a, grid_for(a.name, ask.grid, called), points) for a in axes)
    index = np.array(list(product(*(range(len(p.values)) for p in places))))
    if len(index) * len(groups) > MOST:
        raise BadInput(f"the map would have {len(index) * len(groups):,} points, over {MOST:,}: give a coarser grid")
    there = Spots(
        np.column_stack([p.position[index[:, j]] for j, p in enumerate(places)]),
        np.column_stack([p.level[index[:, j]] for j, p in enumerate(places)]),
    )
    # (2) Each group by itself: its bandwidths, the points that enough of its rows support, its simulated draws.
    whole, noise = sample_of(data, axes, ask.seed), noise_of(data)
    parts, widths = [], []
    for k in range(len(groups)):
        mine = row == k
        widths.append(widths_of(axes, ask.bandwidth, mine, noise))
        s = rescaled(whole[np.flatnonzero(mine)], widths[-1])
        parts.append(part_of(scaled(there, widths[-1]), s, data.cluster is not None, ask))
    # (3) All groups judged together.
    columns = _coordinates(places, index, parts, groups if ask.by else ())
    nearest = np.column_stack([p.nearest(a) for a, p in zip(axes, places, strict=True)])
    columns["people"], people = _people(data, nearest, index, (parts, row), [len(p.values) for p in places])
    settings = {
        "axes": tuple(
            {"name": a.name, "kind": a.kind, "places": p.values, "scaling": "rank" if a.ranks else "as it is"}
            for a, p in zip(axes, places, strict=True)
        ),
        "bandwidths": {
            g: {a.name: w[j] for j, a in enumerate(axes) if a.numeric} for g, w in zip(groups, widths, strict=True)
        },
        "kernel": "local",
        "by": ask.by,
        "groups_left_out": tuple(g for g, p in zip(groups, parts, strict=True) if ask.by and not len(p.kept)),
        **({} if data.cluster is None else {"people": people}),
    }
    return curve_of(data, Table(columns, parts, len(index) * len(groups), settings), ask)


def _coordinates(places: Sequence[Places], index: Ints, parts: Sequence[Part], groups: Sequence[str]) -> dict[str, Any]:
    """The columns that say where each point is."""
    lines = [(k, *index[i]) for k, part in enumerate(parts) for i in part.kept]
    out: dict[str, Any] = {
        name: tuple(p.values[line[1 + j]] for line in lines)
        for j, (name, p) in enumerate(zip(("x", "x2"), places, strict=False))
    }
    if groups:
        out["group"] = tuple(groups[line[0]] for line in lines)
    out["label"] = tuple(", ".join(p.labels[line[1 + j]] for j, p in enumerate(places)) for line in lines)
    return out


def _people(
    data: Predictions, nearest: Ints, index: Ints, groups: tuple[Sequence[Part], Ints], sizes: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Count the rows nearest to each kept point, and the people whose they are."""
    inside, (parts, row) = (nearest >= 0).all(axis=1), groups
    at = np.ravel_multi_index(tuple(np.where(inside, nearest[:, j], 0) for j in range(len(sizes))), sizes)
    rows: list[int] = []
    people: list[int] = []
    for k, part in enumerate(parts):
        code = np.where(inside & (row == k), at, len(index))  # the last: rows near no point of this group
        rows += np.bincount(code, minlength=len(index) + 1)[part.kept].tolist()
        people += people_of(data).among(code, len(index) + 1)[part.kept].tolist()
    return tuple(rows), tuple(people)


# ---- Rows and points of one group ----


@dataclass(frozen=True)
class Part:
    """The kept points of one group: their numbers in its grid, means, variances, and simulated draws."""

    kept: Ints
    means: Means
    null: Floats
    spread: Floats
    draws: Floats


def part_of(points: Spots, s: Sample, clustered: bool, ask: BiasMapOptions) -> Part:
    """Look at the points of one group; leave out those that too few rows support."""
    m = means(points, s)
    kept = np.flatnonzero((m.rows >= LEAST) & (m.near >= NEAR))
    points, m = points[kept], m[kept]
    if not len(kept):
        return Part(kept, m, m.null, m.spread, np.zeros((0, ask.draws)))
    if not clustered:
        return Part(kept, m, m.null, m.spread, simulated(points, s, ask.draws, ask.salt))
    result = signed(points, s, ask.draws, ask.salt)
    enough = (result.clusters >= LEAST) & (result.noise > 0)
    noise = result.noise[enough]
    return Part(kept[enough], m[enough], noise, noise, result.draws[enough])


def sample_of(data: Predictions, axes: Sequence[Axis], seed: int) -> Sample:
    """The rows on the axes, in the unit of each: bandwidths come later."""
    code, weight = people_of(data).codes, even_weights(data)
    ids = identities_of(int(code.max()) + 1, seed)[code]
    spots = Spots(np.column_stack([a.position for a in axes]), np.column_stack([a.level for a in axes]))
    return Sample(data.y.astype(float), data.p, weight, ids, spots)


def scaled(spots: Spots, widths: Sequence[float]) -> Spots:
    """Spots in bandwidths."""
    return Spots(spots.position / np.asarray(widths), spots.level)


def rescaled(s: Sample, widths: Sequence[float]) -> Sample:
    """Rows whose spots are in bandwidths."""
    return Sample(s.y, s.p, s.weight, s.ids, scaled(s.spots, widths))


def noise_of(data: Predictions) -> Floats:
    """The null variance of each row; with weights, scaled to the effective number of rows."""
    v = data.p * (1.0 - data.p)
    w = data.weights
    return v if w is None else v * w * (w.sum() / (w @ w))


# ---- What the simulated null says about a map: p-values and bands, at each point and over all of them ----

GUARD = 1.0  # events added to the null variance of each point, so that no point of rare events sets the band of all


@dataclass(frozen=True)
class Variances:
    """Variances of the bias at points, arrays of shape (points,)."""

    null: Floats  # if the model is calibrated; positive
    spread: Floats  # from the residuals; positive
    per: Floats  # what the variance grows by per unit of bias, at most: one over the effective rows


@dataclass(frozen=True)
class Judged:
    """The p-values and bands of a map; arrays of shape (points,)."""

    # `statistic`, `p_value` and `critical`: of the whole map.
    statistic: float
    p_value: float
    critical: float
    # `low` and `high`: simultaneous band.
    low: Floats
    high: Floats
    # `low_point` and `high_point`: band of each point by itself.
    low_point: Floats
    high_point: Floats
    # `adjusted` and `single`: p-values over the map, and of each point by itself.
    adjusted: Floats
    single: Floats


def judged(bias: Floats, v: Variances, drawn: Floats, alpha: float) -> Judged:
    """Compare a map with its simulated ones, `drawn` of shape (points, draws), which are overwritten."""
    scale = np.sqrt(v.null)
    observed = np.abs(bias) / scale
    np.abs(drawn, out=drawn)
    drawn /= scale[:, None]
    top = drawn.max(axis=0)
    wide, narrow = float(critical(top, alpha)), critical(drawn.T, alpha)
    limit = observed - 1e-9 * np.maximum(1.0, observed)  # 1e-9: ties are distinguished from rounding
    above = len(top) - np.searchsorted(np.sort(top), limit, side="left")
    single = (1 + (drawn >= limit[:, None]).sum(axis=1)) / (len(top) + 1)
    statistic = float(observed.max())
    bands = (*band(bias, v, wide), *band(bias, v, narrow))
    return Judged(statistic, p_value(statistic, top), wide, *bands, (1 + above) / (len(top) + 1), single)


def band(bias: Floats, v: Variances, c: Floats | float) -> tuple[Floats, Floats]:
    r"""The values ``b`` not rejected: ``|bias - b| <= c sd(b)``, a score interval.

    ``sd(b)^2`` is `null` at ``b = 0`` and `spread` at the estimate, linear between, `null` on the other side of zero,
    and from the larger of the two on beyond the estimate, where it grows on at the same rate, at most `per`. The
    interval excludes zero exactly where ``|bias| > c sd(0)``.
    """
    size, null, spread = np.abs(bias), v.null, v.spread
    known = np.isfinite(c).all()  # too few draws for alpha: nothing is rejected, and the band is everything
    c = np.where(np.isfinite(c), c, 0.0) + np.zeros_like(size) if known else np.full_like(size, np.inf)
    with np.errstate(invalid="ignore"):
        # Towards zero, b = t size: size^2 (1 - t)^2 = c^2 (null + t (spread - null)), the smaller root.
        over = size**2 - c**2 * null
        q = 2 * size**2 + c**2 * (spread - null)
        root = np.sqrt(np.maximum(q * q - 4 * size**2 * over, 0.0))
        t = 2 * over / np.where(over > 0, q + root, 1.0)
        inner = np.where(over > 0, t * size, size - c * np.sqrt(null))
        # Away from zero, b = size + d: d^2 = c^2 max(null, spread) + grows d.
        grows = c**2 * np.clip((spread - null) / np.maximum(size, 1e-12), 0.0, v.per)
        outer = size + (grows + np.sqrt(grows**2 + 4 * c**2 * np.maximum(null, spread))) / 2
    low, high = np.where(bias < 0, -outer, inner), np.where(bias < 0, -inner, outer)
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


@dataclass(frozen=True)
class Table:
    """Where the kept points of a map are, what was found there, how many there were, and what else is said of it."""

    columns: Mapping[str, Any]
    parts: Sequence[Part]
    points: int
    settings: Mapping[str, Any]


def curve_of(data: Predictions, table: Table, ask: BiasMapOptions) -> Curve:
    """Judge all parts together, and put the table in order."""
    parts, clustered = table.parts, data.cluster is not None
    kept = sum(len(part.kept) for part in parts)
    if not kept:
        raise NotComputable(TOO_FEW.replace("rows", "rows and clusters") if clustered else TOO_FEW)
    m = Means(**{k: np.concatenate([getattr(p.means, k) for p in parts]) for k in vars(parts[0].means)})
    null, spread = (np.concatenate([getattr(p, k) for p in parts]) for k in ("null", "spread"))
    none = np.zeros(kept)
    guard, per = (none, none) if clustered else (GUARD / m.rows**2, 1.0 / m.rows)
    v, drawn = Variances(null + guard, spread + guard, per), np.concatenate([p.draws for p in parts])
    j = judged(m.bias, v, drawn, ask.alpha)
    contradicted = int(((data.p == 0) & (data.y == 1)).sum() + ((data.p == 1) & (data.y == 0)).sum())
    made: dict[str, NDArray[Any]] = {
        "gap": m.bias,
        "predicted": m.predicted,
        "observed": m.observed,
        "rows": m.rows,
        "share": m.near / data.n,
        "null_sd": np.sqrt(null),
        "low": j.low,
        "high": j.high,
        "low_point": j.low_point,
        "high_point": j.high_point,
        "p_adjusted": j.adjusted,
        "p_point": j.single,
    }
    return Curve(
        method=METHOD,
        columns={**table.columns, **{k: tuple(v.astype(float).tolist()) for k, v in made.items()}},
        settings={
            "alpha": ask.alpha,
            "band": BAND,
            "clusters": clustered,
            "contradicted": contradicted,
            "critical": j.critical,
            "draws": ask.draws,
            "law": SIGNS if clustered else EXACT,
            "masked": table.points - kept,
            "n": data.n,
            "p_value": 0.0 if contradicted else j.p_value,
            "seed": ask.seed,
            "statistic": j.statistic,
            "weights": data.weights is not None,
            **table.settings,
        },
    )
