"""The reliability curve: where along the score the probabilities are off, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.nulls import critical, null_cases, p_value
from calibrant.stats.smoothing import WIDTH_STEPS as STEPS
from calibrant.stats.smoothing import Runs, density, effective, half_width, runs_of, weights
from calibrant.views.population import Population, everyone, shares

# ---- The axis a curve is drawn along, and the cells and points on it; nothing here looks at an outcome ----

Axis = Literal["probability", "logit"]
TRIM = (0.01, 0.99)
EVENTS = 50  # expected cases, and expected non-cases, that a curve needs
NEAREST = 2.0**-15  # half a cell: the logit of a score is cut off there
SAME = "every row has the same score: there is nothing to draw a curve along"


@dataclass(frozen=True)
class Scored:
    """The occupied cells of a population on an axis, and where a curve is drawn.

    Parameters
    ----------
    runs : Runs
    half : float
        Half-width of the smoothing window, in the unit of the axis.
    grid : float array of shape (points,)
        Positions on the axis, increasing.
    scores : float array of shape (points,)
        The scores at those positions.
    """

    runs: Runs
    half: float
    grid: Any
    scores: Any


def to_axis(axis: Axis) -> Callable[[Any], Any]:
    """Return what places a score on the axis."""
    if axis == "probability":
        return lambda s: np.asarray(s, dtype=float)
    if axis != "logit":
        raise BadInput(f"axis={axis!r}: pass 'probability' or 'logit'")

    def logit(s: Any) -> Any:
        p = np.clip(np.asarray(s, dtype=float), NEAREST, 1.0 - NEAREST)
        return np.log(p) - np.log1p(-p)

    return logit


def scored(
    q: Population, axis: Axis, grid: Any, bandwidth: float | None, width: float | None = None, smallest: int = 1
) -> Scored:
    """Place a population on an axis.

    Parameters
    ----------
    q : Population
    axis : {"probability", "logit"}
    grid : int or sequence of scores
    bandwidth : float or None
        Half-width; None chooses it from the scores.
    width : float, optional
        Neighbouring cells are joined up to this share of the axis; by default up to a fiftieth of the half-width.
    smallest : int
        Cells are joined until they hold so many rows.
    """
    place = to_axis(axis)
    expected = q.cells.expected
    if min(expected, q.n - expected) < EVENTS:
        raise NotComputable(f"a curve needs at least {EVENTS} expected cases and {EVENTS} expected non-cases")
    at = q.cells.occupied()
    totals, score = q.cells.totals[at], q.cells.score_sums[at].sum(axis=1)
    rows = totals.sum(axis=1).astype(float)
    x = place(score / rows)
    if x[-1] - x[0] <= 1e-9:
        raise NotComputable(SAME)
    mean = score / rows
    half = _checked_bandwidth(bandwidth) if bandwidth is not None else half_width(x, rows * mean * (1.0 - mean))
    if half <= 0.0:
        raise NotComputable("every score is 0 or 1: there is no curve between two points")
    joined = half / STEPS if width is None else width * (x[-1] - x[0])
    runs = runs_of(x, rows, totals[:, 1], score, joined, smallest)
    points = _grid(grid, runs, place)
    back = points if axis == "probability" else 1.0 / (1.0 + np.exp(-points))
    return Scored(runs, float(half), points, back)


def _grid(grid: Any, runs: Runs, place: Callable[[Any], Any]) -> Any:
    """Return the points: equally spaced between the 1st and the 99th percentile, or those given, trimmed to it."""
    share = np.cumsum(runs.rows) / runs.rows.sum()
    low, high = (float(runs.x[min(int(np.searchsorted(share, t)), len(share) - 1)]) for t in TRIM)
    if isinstance(grid, (int, np.integer)) and not isinstance(grid, bool):
        if not 2 <= grid <= 2000:
            raise BadInput(f"grid={grid!r}: pass a number of points from 2 to 2000, or the scores themselves")
        return np.linspace(low, high, int(grid)) if high > low else np.array([low])
    scores = np.asarray(grid, dtype=float)
    if scores.ndim != 1 or not len(scores) or not ((scores >= 0) & (scores <= 1)).all() or (np.diff(scores) <= 0).any():
        raise BadInput("grid: pass a number of points, or increasing scores between 0 and 1")
    points = place(scores)
    inside = points[(points >= low) & (points <= high)]
    if not len(inside):
        raise NotComputable("no score of the grid lies between the 1st and the 99th percentile of the scores")
    return inside


def _checked_bandwidth(bandwidth: Any) -> float:
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, (int, float, np.floating)) or not bandwidth > 0:
        raise BadInput(f"bandwidth={bandwidth!r}: pass a positive half-width, such as 0.1, or None to choose it")
    return float(bandwidth)


# ---- The smoothed residual with its simulated null: weights, band and p-value from cell totals ----

LEAST_ROWS, LEAST_EVENTS = 20, 5  # effective rows, and effective expected cases and non-cases, of a drawn point
BAND = (
    "simultaneous: if the model is calibrated, it holds zero everywhere with probability at least the level; if not, "
    "an asymptotic band for the smoothed gap"
)


@dataclass(frozen=True)
class Test:
    """What the simulated null says about a curve as a whole."""

    statistic: float
    p_value: float
    critical: float


def smoothed(s: Scored, alpha: float, draws: int, seed: int) -> tuple[dict[str, Any], Test, int]:
    """Return the columns of the smoothed curve, its test, and how many points were left out."""
    runs = s.runs
    w = weights(runs.x, runs.rows, s.grid, s.half)
    rows, says = effective(w, runs.rows), np.clip(w @ runs.score, 0.0, 1.0)
    null = np.sqrt((w * w) @ runs.noise)
    drawn = (rows >= LEAST_ROWS) & (rows * np.minimum(says, 1.0 - says) >= LEAST_EVENTS) & (null > 0)
    if not drawn.any():
        raise NotComputable(
            f"nowhere along the score are there {LEAST_ROWS} people and {LEAST_EVENTS} expected cases and non-cases "
            "within reach: give a wider bandwidth"
        )
    kept = np.flatnonzero(drawn)
    w, rows, says, null = w[kept], rows[kept], says[kept], null[kept]
    gap = w @ (runs.cases - runs.score)
    top, points = _simulated(s, w / null[:, None], draws, seed)
    observed = float(np.max(np.abs(gap) / null))
    test = Test(observed, p_value(observed, top), float(critical(top, alpha)))
    noise = np.maximum(null, _alternative(s, w, gap, kept))
    wide, narrow = test.critical * noise, critical(points, alpha) * noise
    non_cases = runs.rows - runs.cases
    columns = {
        "x": s.scores[kept],
        "predicted": says,
        "observed": np.clip(says + gap, 0.0, 1.0),
        "gap": gap,
        "low": np.maximum(gap - wide, -1.0),
        "high": np.minimum(gap + wide, 1.0),
        "low_point": np.maximum(gap - narrow, -1.0),
        "high_point": np.minimum(gap + narrow, 1.0),
        "rows": rows,
        "density_cases": density(runs.x, runs.cases, s.grid[kept], s.half),
        "density_noncases": density(runs.x, non_cases, s.grid[kept], s.half),
        "stretch": np.cumsum(np.diff(kept, prepend=kept[0]) > 1),
    }
    return columns, test, len(s.grid) - len(kept)


def _simulated(s: Scored, standard: Any, draws: int, seed: int) -> tuple[Any, Any]:
    """Return the largest standardised deviation of each draw, and that of each point."""
    parts = [np.abs((y - s.runs.score) @ standard.T) for y in null_cases(s.runs.rows, s.runs.rate, draws, seed)]
    points = np.concatenate(parts)
    return points.max(axis=1), points


def _alternative(s: Scored, w: Any, gap: Any, kept: Any) -> Any:
    """Return the standard error at the observed rate: what the estimate varies by where the model is off."""
    rate = np.clip(s.runs.rate + np.interp(s.runs.x, s.grid[kept], gap), 0.0, 1.0)
    return np.sqrt((w * w) @ (s.runs.rows * rate * (1.0 - rate)))


# ---- The monotone reliability curve (CORP): the outcome regressed on the score under the one assumption of ----

SCALE_DRAWS = 199  # of a stream of their own, which only set the scale of each point
ISOTONIC_BAND = (
    "simultaneous null band, recentred at the estimate: where it excludes zero the model is off; not a confidence "
    "band for the gap"
)


def monotone(s: Scored, alpha: float, draws: int, seed: int) -> tuple[dict[str, Any], Test, int]:
    """Return the columns of the isotonic curve, its test, and 0: no point is left out."""
    runs = s.runs
    says = np.interp(s.grid, runs.x, runs.rate)
    fit = fitted(runs.cases, runs.rows)
    gap = np.interp(s.grid, runs.x, fit) - says

    def deviations(drawn: Iterable[Any]) -> Any:
        return np.array([np.interp(s.grid, runs.x, fitted(y, runs.rows)) - says for part in drawn for y in part])

    scale = np.sqrt((deviations(null_cases(runs.rows, runs.rate, SCALE_DRAWS, seed, stream=1)) ** 2).mean(axis=0))
    scale = np.maximum(scale, 1e-3 * max(float(scale.max()), 1e-12))
    points = np.abs(deviations(null_cases(runs.rows, runs.rate, draws, seed))) / scale
    observed = float(np.max(np.abs(gap) / scale))
    top = points.max(axis=1)
    test = Test(observed, p_value(observed, top), float(critical(top, alpha)))
    wide, narrow = test.critical * scale, critical(points, alpha) * scale
    columns = {
        "x": s.scores,
        "predicted": says,
        "observed": np.clip(says + gap, 0.0, 1.0),
        "gap": gap,
        "low": np.maximum(gap - wide, -1.0),
        "high": np.minimum(gap + wide, 1.0),
        "low_point": np.maximum(gap - narrow, -1.0),
        "high_point": np.minimum(gap + narrow, 1.0),
        "rows": _block_rows(s, fit),
        "density_cases": density(runs.x, runs.cases, s.grid, s.half),
        "density_noncases": density(runs.x, runs.rows - runs.cases, s.grid, s.half),
        "stretch": np.zeros(len(s.grid), dtype=np.int64),
    }
    return columns, test, 0


def fitted(cases: Any, rows: Any) -> Any:
    """Return the non-decreasing event rates closest to the observed ones, weighted by rows."""
    from sklearn.isotonic import isotonic_regression

    return isotonic_regression(cases / rows, sample_weight=rows, y_min=0.0, y_max=1.0)


def _block_rows(s: Scored, fit: Any) -> Any:
    """Return the rows of the constant stretch that each point lies in."""
    block = np.cumsum(np.diff(fit, prepend=fit[0]) != 0)
    rows = np.bincount(block, s.runs.rows)
    nearest = np.clip(np.searchsorted(s.runs.x, s.grid, side="right") - 1, 0, len(fit) - 1)
    return rows[block[nearest]]


# ---- The reliability curve: where along the score the probabilities are off, and by how much ----

Method = Literal["smooth", "isotonic"]
METHOD = "diagnose.reliability_curve"
GRID_STEPS = 1.0 / 1000  # of the axis, to which an isotonic fit resolves the score


def reliability_curve(
    data: Any,
    grid: int | Sequence[float] = 101,
    bandwidth: float | None = None,
    axis: Axis = "probability",
    method: Method = "smooth",
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
) -> Curve:
    r"""Draw what happened minus what the model says, as a function of the score, with a simultaneous band.

    Estimand: the smoothed gap ``g(t) = sum_i w_i(t) (E[Y | p_i] - p_i)``, with ``w_i(t)`` the weights of a
    local-linear fit at the score ``t``; in probability units, positive where the model says too little. The
    residual itself is smoothed, so that a calibrated model has ``g = 0`` everywhere, without smoothing bias.

    Parameters
    ----------
    data : Predictions or Sketch
    grid : int, or increasing scores in [0, 1]
        Number of points, equally spaced on the axis; or the scores. Trimmed to the 1st to 99th percentile.
    bandwidth : float, optional
        Half-width of the biweight window, in the unit of the axis. By default ``2.65 sd V^(-1/5)``, chosen from
        the scores alone: `V` is the null variance ``sum p (1 - p)`` and `sd` the deviation of the scores.
    axis : {"probability", "logit"}
        What is smoothed and equally spaced; ``"logit"`` for rare events.
    method : {"smooth", "isotonic"}
        ``"isotonic"`` is the monotone fit of CORP instead of the local-linear one.
    alpha : float in (0, 1)
        Error probability of the whole band.
    draws, seed : int
        Simulated data sets, and their seed.

    Returns
    -------
    Curve
        Columns: ``x`` (the score); ``predicted`` (smoothed score) and ``observed`` (``predicted + gap``, kept in
        [0, 1]); ``gap``; ``low``, ``high`` (simultaneous); ``low_point``, ``high_point`` (each point by itself);
        ``rows`` (effective rows: whose plain mean would be as noisy; isotonic: rows of the constant stretch);
        ``density_cases``, ``density_noncases`` (of the scores of each class, per unit of the axis); ``stretch``
        (a new number after each hole). In ``settings``: ``p_value`` of the whole curve, ``statistic``,
        ``critical``, the half-width used as ``bandwidth``, and ``masked``, the number of points left out.
        ``.chart()`` draws it.

    Raises
    ------
    NotComputable
        Under 50 expected cases or non-cases; a single score; weights or clusters.

    Notes
    -----
    **Assumes.** Independent rows; bandwidth and grid chosen without the labels.
    **Guarantee.** *Whole curve.* ``p_value = (1 + #{T* >= T}) / (draws + 1)`` with T the largest of
    ``|gap| / null standard error`` over the points: level `alpha` at any number of rows, for scores that are equal
    within a cell; where they differ within a cell (a fiftieth of the half-width at most) the simulated outcomes vary
    very slightly more than real ones, on the safe side. *Band, smooth.* Half-width ``critical`` times the larger of
    two standard errors: at the rate the model says, and at the rate observed. By the first, a calibrated model's
    band excludes zero anywhere with probability at most `alpha` (then too ``p_value <= alpha``). By the second, where
    the model is off, it is a confidence band for the smoothed gap ``g``, asymptotically and simultaneously; it is not
    one for the unsmoothed ``E[Y | p] - p``, whose bumps narrower than the window are averaged. *Band, isotonic.* The
    null band, recentred at the estimate: it tells where the curve departs from zero, and is no confidence band.
    Points with under 20 effective rows, or under 5 effective expected cases or non-cases, are left out (smooth).
    **Method.** Null: ``Y* ~ Binomial(n_cell, mean score of the cell)`` given the scores. Isotonic:
    `sklearn.isotonic` on cells weighted by rows; the scale of each point from 199 draws of their own, so that the
    level stays exact.
    **Cost.** Linear in the rows, then cells times points, and cells times draws: under a second at a million rows
    for the defaults; isotonic a second more.
    **Reads.** The sketch; the same curve from rows.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), doi:10.1073/pnas.2016191118 (CORP, the isotonic curve).
    Copas (1983), doi:10.2307/2347857 (smoothing outcomes on the score).

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> data = cal.predictions(rng.uniform(size=20_000) < p**1.3, p)
    >>> curve = cal.diagnose.reliability_curve(data)
    >>> curve.settings["p_value"]
    0.001
    >>> max(curve.columns["high"]) < 0.05, min(curve.columns["gap"]) < -0.05
    (True, True)
    """
    shares(alpha, "two-sided")
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or (draws + 1) * alpha < 1.0 - 1e-9:
        raise BadInput(f"draws={draws!r}: alpha={alpha:g} needs at least {int(np.ceil(1 / alpha)) - 1} draws")
    return curve_of(everyone(data, seed), grid, bandwidth, axis, method, alpha, int(draws), seed)


def curve_of(
    q: Population,
    grid: Any,
    bandwidth: float | None,
    axis: Axis,
    method: Method,
    alpha: float,
    draws: int,
    seed: int,
    smallest: int = 1,
) -> Curve:
    """Draw the curve of one population; cells are joined until they hold `smallest` rows, so that none shows fewer."""
    if method not in ("smooth", "isotonic"):
        raise BadInput(f"method={method!r}: pass 'smooth' or 'isotonic'")
    s = scored(q, axis, grid, bandwidth, GRID_STEPS if method == "isotonic" else None, smallest)
    make = monotone if method == "isotonic" else smoothed
    columns, test, masked = make(s, alpha, draws, seed)
    plain: Mapping[str, Any] = {k: tuple(np.asarray(v).tolist()) for k, v in columns.items()}
    return Curve(
        method=METHOD,
        columns=plain,
        settings={
            "alpha": alpha,
            "axis": axis,
            "band": ISOTONIC_BAND if method == "isotonic" else BAND,
            "bandwidth": s.half,
            "critical": test.critical,
            "draws": draws,
            "masked": masked,
            "method": method,
            "p_value": test.p_value,
            "seed": seed,
            "smallest": smallest,
            "statistic": test.statistic,
            "trim": list(TRIM),
        },
    )
