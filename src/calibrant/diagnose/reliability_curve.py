"""The reliability curve: where along the score the probabilities are off, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, checked_draws, checked_seed, choice, positive
from calibrant.data.calls import takes_arrays
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.diagnose.bands import (
    LEAST_EVENTS,
    LEAST_ROWS,
    MOST_POINTS,
    TRIM,
    Floats,
    Ints,
    gap_columns,
    supported,
)
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import Draws, tallies
from calibrant.kernels.smooth import isotonic
from calibrant.results import Curve
from calibrant.stats.cells import summed
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.nulls import CHUNK, ClusterSums, critical, null_events, p_value
from calibrant.stats.smoothing import (
    WIDTH_STEPS,
    Runs,
    clusters_new,
    density,
    effective,
    half_width,
    runs_of,
    starts_of,
    weights,
)
from calibrant.views.points import SIGNS
from calibrant.views.population import OfClusters, Population
from calibrant.views.sample import everyone

Axis = Literal["probability", "logit"]
Method = Literal["smooth", "isotonic"]
METHOD = "diagnose.reliability_curve"
EVENTS = 50  # expected events, and expected non-events, that a curve needs: ten windows of five
NEAREST = 2.0**-15  # half a cell of the sketch: the logit of a score is cut off there
GRID_STEPS = 1.0 / 1000  # of the axis, to which an isotonic fit resolves the score
CELLS = 1 << 14  # of the score, in which rows of clusters are joined before smoothing: as many as a sketch has
FEWEST = 20  # clusters under which random signs say little: 30 keep the level, of 10 every tenth is one large one
LEAST_CLUSTERS = 10  # effective clusters that a drawn point rests on
STREAM = 0x5CA1E  # of the signs and outcomes of clusters, apart from other methods at the same seed
SIMULATED = "exact: outcomes of every weighted row simulated at its score"
SCALE_DRAWS = 199  # of a stream of their own, which only set the scale of each point of an isotonic curve
BAND = (
    "simultaneous: if the model is calibrated, it holds zero everywhere with probability at least the level; if not, "
    "an asymptotic band for the smoothed gap"
)
ISOTONIC_BAND = (
    "simultaneous null band, recentred at the estimate: where it excludes zero the model is off; not a confidence "
    "band for the gap"
)


@takes_arrays
def reliability_curve(
    data: Predictions | Sketch,
    *,
    grid: int | Sequence[float] = 101,
    bandwidth: float | None = None,
    axis: Axis = "probability",
    method: Method = "smooth",
    alpha: float = 0.05,
    draws: int = 999,
    seed: int = 0,
) -> Curve:
    r"""Draw what happened minus what the model says, as a function of the score, with a simultaneous band.

    Estimand: the smoothed gap ``g(t) = sum_i w_i(t) (E[Y | p_i] - p_i)``, with ``w_i(t)`` the weights of a local-linear
    fit at the score ``t``; in probability units, positive where the model underpredicts. The residual itself is
    smoothed, so that a calibrated model has ``g = 0`` everywhere, without smoothing bias.

    Parameters
    ----------
    data : Predictions or Sketch
        Weights are used; where the data name clusters, band and p-value are by these clusters.
    grid : int, or increasing scores in [0, 1]
        Number of points, equally spaced on the axis; or the scores. Trimmed to the 1st to 99th percentile.
    bandwidth : float, optional
        Half-width of the biweight window, in the unit of the axis. By default ``2.65 sd V^(-1/5)``, chosen from the
        scores alone: `V` is the null variance ``sum p (1 - p)`` and `sd` the deviation of the scores.
    axis : {"probability", "logit"}
        What is smoothed and equally spaced; ``"logit"`` for rare events.
    method : {"smooth", "isotonic"}
        ``"isotonic"`` is the monotone fit of CORP instead of the local-linear one.
    alpha : float in (0, 0.5]
        Error probability of the whole band.
    draws, seed : int
        Simulated data sets, and their seed.

    Returns
    -------
    Curve
        Columns: ``x`` (the score); ``predicted`` (smoothed score) and ``observed`` (``predicted + gap``, kept in [0,
        1]); ``gap``; ``low``, ``high`` (simultaneous); ``low_point``, ``high_point`` (each point by itself); ``rows``
        (effective rows: whose plain mean would be as noisy; isotonic: rows of the constant stretch);
        ``density_events``, ``density_nonevents`` (of the scores of each class, per unit of the axis); ``stretch`` (a
        new number after each hole). In ``settings``: ``p_value`` of the whole curve, ``statistic``, ``critical``, the
        half-width used as ``bandwidth``, and ``masked``, the number of points left out; of clusters or weighted rows
        also ``null`` (where it comes from), ``clusters`` and ``effective_clusters``. ``.chart()`` draws it.

    Raises
    ------
    NotComputable
        Under 50 expected events or non-events; a single score; under 20 clusters; ``"isotonic"`` with clusters.

    Notes
    -----
    **Assumes.** Independent rows; bandwidth and grid chosen without the labels.
    **Guarantee.** *Whole curve.* ``p_value = (1 + #{T* >= T}) / (draws + 1)`` with T the largest of ``|gap| / null
    standard error`` over the points: level `alpha` at any number of rows, for scores that are equal within a cell;
    where they differ within a cell (a fiftieth of the half-width at most) the simulated outcomes vary very slightly
    more than real ones, on the safe side. *Band, smooth.* Half-width ``critical`` times the larger of two standard
    errors: at the rate the model says, and at the rate observed. By the first, a calibrated model's band excludes zero
    anywhere with probability at most `alpha` (then too ``p_value <= alpha``). By the second, where the model is off, it
    is a confidence band for the smoothed gap ``g``, asymptotically and simultaneously; it is not one for the unsmoothed
    ``E[Y | p] - p``, whose bumps narrower than the window are averaged. *Band, isotonic.* The null band, recentred at
    the estimate: it says where the curve departs from zero, and is no confidence band. Points with under 20 effective
    rows, or under 5 effective expected events or non-events, are left out (smooth).
    *Weights.* Residuals are weighted, and so is ``g``; every row's outcome is simulated: the level is exact.
    *Clusters.* Random signs of whole clusters: level alpha asymptotically in their number; each standard error is at
    least that of sums over clusters, and points with under 10 effective clusters are left out. Of 100 calibrated data
    sets a design, 3 to 6 were rejected at 5% with equal clusters (20 to 100 of 20 rows), 8 with 100 clusters of 1 to 39
    rows.
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
    level, seed = checked_alpha(alpha), checked_seed(seed)
    how = Drawing(
        grid=grid,
        bandwidth=bandwidth,
        axis=axis,
        method=method,
        alpha=level,
        draws=checked_draws(draws, level),
        seed=seed,
    )
    return curve_of(everyone(data, seed), how)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How a curve is drawn; as in `reliability_curve`, but for `smallest`, the people whom cells are joined to hold."""

    grid: int | Sequence[float] = 101
    bandwidth: float | None = None
    axis: Axis = "probability"
    method: Method = "smooth"
    alpha: float = 0.05
    draws: int = 999
    seed: int = 0
    smallest: int = 1


def curve_of(q: Population, how: Drawing) -> Curve:
    """Draw the curve of one population; cells are joined until they hold `smallest` rows, or clusters."""
    isotonic = choice("method", how.method, ("smooth", "isotonic")) == "isotonic"
    s = scored(q, how)
    if isotonic and not s.rows.monotone:
        raise NotComputable("random signs of clusters do not keep the level of a monotone fit: use method='smooth'")
    # (1) The estimate, and its standardised deviations in data simulated under calibration.
    fit = (_monotone if isotonic else _smoothed)(s, how)
    # (2) One p-value for all points, and the bands: simultaneous, and of each point by itself.
    observed, top = float(np.max(np.abs(fit.gap) / fit.null)), fit.deviations.max(axis=1)
    limit = float(critical(top, how.alpha))
    columns: dict[str, Any] = {
        "x": s.scores[fit.kept],
        **gap_columns(fit.predicted, fit.gap, limit * fit.noise, critical(fit.deviations, how.alpha) * fit.noise),
        "rows": fit.rows,
        "density_events": density(s.runs.x, s.runs.events, s.grid[fit.kept], s.half),
        "density_nonevents": density(s.runs.x, s.runs.rows - s.runs.events, s.grid[fit.kept], s.half),
        "stretch": np.cumsum(np.diff(fit.kept, prepend=fit.kept[0]) > 1),
    }
    return Curve(
        method=METHOD,
        columns={k: tuple(v.tolist()) for k, v in columns.items()},
        settings={
            "alpha": how.alpha,
            "axis": how.axis,
            "band": ISOTONIC_BAND if isotonic else BAND,
            "bandwidth": s.half,
            "critical": limit,
            "draws": how.draws,
            "masked": len(s.grid) - len(fit.kept),
            "method": how.method,
            "p_value": p_value(observed, top),
            "seed": how.seed,
            "smallest": how.smallest,
            "statistic": observed,
            "trim": list(TRIM),
            **s.rows.reported,
        },
    )


# ---- The axis a curve is drawn along, and the cells and points on it; nothing here looks at an outcome ----


@dataclass(frozen=True)
class Scored:
    """The occupied cells of a population on an axis, and where a curve is drawn."""

    runs: Runs
    half: float  # half-width of the smoothing window, in the unit of the axis
    grid: Floats  # shape (points,): positions on the axis, increasing
    scores: Floats  # shape (points,): the scores at those positions
    rows: RowsInRuns


class RowsInRuns:
    """Independent rows that count alike, in runs of the score."""

    monotone = True  # whether a monotone fit keeps its level
    wanted = ""  # what a point asks for besides rows and events

    @property
    def reported(self) -> dict[str, str | float]:
        """What settings tell of clusters and weights."""
        return {}

    def events(self, runs: Runs, draws: int, seed: int, stream: int = 0) -> Iterator[Floats]:
        """Yield simulated events of each run under calibration, shape (some draws, runs)."""
        return null_events(runs.rows, runs.rate, draws, seed, stream)

    def wider(self, by_rows: Floats, _average: Floats) -> Floats:
        """The null standard error of means of runs, at least that of independent rows."""
        return by_rows

    def enough(self, average: Floats) -> NDArray[np.bool_]:
        """Which means of runs rest on enough clusters."""
        return np.ones(len(average), dtype=bool)


@dataclass(frozen=True)
class WeightedRows(RowsInRuns):
    """Rows that do not count alike."""

    clusters: Clusters  # with the rows' weights as given, none of them a pilot's
    run: NDArray[np.int32]  # shape (n,)
    wanted = f", of {LEAST_CLUSTERS} clusters"
    null = SIMULATED

    @property
    def reported(self) -> dict[str, str | float]:
        u = self.clusters
        kish = float(u.size_at.sum() ** 2 / (u.size_at**2).sum())
        return {"null": self.null, "clusters": u.count, "effective_clusters": kish}

    def events(self, runs: Runs, draws: int, seed: int, stream: int = 0) -> Iterator[Floats]:
        for drawn in self.drawn(runs, draws, seed, np.random.default_rng([STREAM, stream, seed])):
            yield runs.score + drawn

    def drawn(self, runs: Runs, draws: int, seed: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield residual sums of each run of simulated outcomes."""
        u, ids, size = self.clusters, identities_of(len(self.run), seed), len(runs.x)
        salt, step = int(rng.integers(2**63)), max(CHUNK // size, 1)
        expected = summed(self.run, u.input_weights * u.p, size)
        for first in range(0, draws, step):
            options = Draws(first, min(step, draws - first), salt)
            yield tallies(ids, u.p, u.input_weights, self.run[:, None], size, options).T - expected


@dataclass(frozen=True)
class ClusteredRows(WeightedRows):
    """Rows that come in clusters: whole clusters have random signs."""

    sums: ClusterSums  # by run
    monotone = False
    null = SIGNS

    def drawn(self, _runs: Runs, draws: int, _seed: int, rng: np.random.Generator) -> Iterator[Floats]:
        yield self.sums.signed(draws, rng)

    def wider(self, by_rows: Floats, average: Floats) -> Floats:
        return np.maximum(by_rows, self.sums.spread(average), dtype=np.float64)

    def enough(self, average: Floats) -> NDArray[np.bool_]:
        enough: NDArray[np.bool_] = self.sums.effective(average) >= LEAST_CLUSTERS
        return enough


def to_axis(axis: Axis) -> Callable[[Floats], Floats]:
    """What places a score on the axis."""
    if choice("axis", axis, ("probability", "logit")) == "probability":
        return lambda s: s

    def logit(s: Floats) -> Floats:
        p = np.clip(s, NEAREST, 1.0 - NEAREST)
        return np.log(p) - np.log1p(-p)

    return logit


def scored(q: Population, how: Drawing) -> Scored:
    """Place a population on an axis: neighbouring cells are joined up to a fiftieth of the half-width."""
    place = to_axis(how.axis)
    cells = _WeighedCells.of_clusters(q) if isinstance(q, OfClusters) else _Cells.of(q)
    expected, n = float(cells.mean @ cells.rows), float(cells.rows.sum())
    if min(expected, n - expected) < EVENTS:
        raise NotComputable(f"a curve needs at least {EVENTS} expected events and {EVENTS} expected non-events")
    x = place(cells.mean)
    if x[-1] - x[0] <= 1e-9:
        raise NotComputable("every row has the same score: there is nothing to draw a curve by")
    half = half_width(x, cells.information)
    if how.bandwidth is not None:
        half = positive(
            "bandwidth", how.bandwidth, what="a positive half-width", hint="such as 0.1, or None to choose it"
        )
    if half <= 0.0:
        raise NotComputable("every score is 0 or 1: there is no curve between two points")
    joined = GRID_STEPS * (x[-1] - x[0]) if how.method == "isotonic" else half / WIDTH_STEPS
    runs, rows = cells.joined(x, joined, how.smallest)
    points = _grid(how.grid, runs, place)
    back = points if how.axis == "probability" else 1.0 / (1.0 + np.exp(-points))
    return Scored(runs, float(half), points, back, rows)


@dataclass(frozen=True)
class _Cells:
    """Occupied cells of the score, of independent rows that count alike."""

    # `rows`, `mass`, `events` and `score`, shape (cells,): rows; what they weigh; weighted events and scores.
    rows: Floats
    mass: Floats
    events: Floats
    score: Floats

    @classmethod
    def of(cls, q: Population) -> _Cells:
        """Those of a population."""
        at = q.cells.occupied()
        totals = q.cells.totals[at]
        rows = totals.sum(axis=1).astype(float)
        return cls(rows, rows, totals[:, 1].astype(float), q.cells.score_sums[at].sum(axis=1))

    @property
    def mean(self) -> Floats:
        """The mean score of each."""
        return self.score / self.mass

    @property
    def information(self) -> Floats:
        """Null variance of the events of each, in rows of equal weight that say as much as all."""
        return self.mass * self.mean * (1.0 - self.mean)

    def joined(self, x: Floats, width: float, smallest: int) -> tuple[Runs, RowsInRuns]:
        """Join neighbours, and place rows in what comes of it."""
        return runs_of(x, self.rows, self.events, self.score, width, smallest), RowsInRuns()


@dataclass(frozen=True)
class _WeighedCells(_Cells):
    """Those of rows that come in clusters or are weighted, at their weights as given."""

    square: Floats  # shape (cells,): squared weights
    clusters: Clusters  # the rows themselves
    cell: Ints  # shape (n,): the cell of each

    @classmethod
    def of_clusters(cls, q: OfClusters) -> _WeighedCells:
        """Join rows in cells."""
        u = q.clusters
        if u.count < FEWEST:
            raise NotComputable(f"{u.count:,} clusters: random signs need at least {FEWEST} to say how far chance goes")
        cells, cell = np.unique(np.minimum((u.p * CELLS).astype(np.int64), CELLS - 1), return_inverse=True)
        cell, w = cell.reshape(-1), u.input_weights
        sums = [summed(cell, v, len(cells)) for v in (np.ones(len(cell)), w, w * u.y, w * u.p, w**2)]
        return cls(sums[0], sums[1], sums[2], sums[3], sums[4], u, cell)

    @property
    def information(self) -> Floats:
        spread = super().information
        squared = float((self.square * self.mean * (1.0 - self.mean)).sum())
        return spread * (float(spread.sum()) / max(squared, 1e-300))

    def joined(self, x: Floats, width: float, smallest: int) -> tuple[Runs, RowsInRuns]:
        u = self.clusters
        starts = starts_of(len(x), clusters_new(self.cell, u.cluster, len(x)), smallest, x, width)
        mass, at, events, score, square = (
            np.add.reduceat(v, starts) for v in (self.mass, self.mass * x, self.events, self.score, self.square)
        )
        runs = Runs(at / mass, mass, events, score, square)
        run = np.searchsorted(starts, self.cell, side="right") - 1
        if u.count == len(u.cluster):
            return runs, WeightedRows(u, run.astype(np.int32))
        residual = u.input_weights * (u.y - u.p)
        sums = ClusterSums.of(run, u.cluster, len(starts), residual, u.input_weights)
        return runs, ClusteredRows(u, run.astype(np.int32), sums)


def _grid(grid: int | Sequence[float], runs: Runs, place: Callable[[Floats], Floats]) -> Floats:
    """The points: equally spaced between the 1st and the 99th percentile, or those given, trimmed to it."""
    share = np.cumsum(runs.rows) / runs.rows.sum()
    low, high = (float(runs.x[min(int(np.searchsorted(share, t)), len(share) - 1)]) for t in TRIM)
    if isinstance(grid, (int, np.integer)) and not isinstance(grid, bool):
        if not 2 <= grid <= MOST_POINTS:
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


# ---- The estimates: the residual smoothed, and the monotone fit of CORP ----


@dataclass(frozen=True)
class _Fit:
    """An estimate at the points that are drawn, with what simulated data make of it."""

    kept: Ints  # shape (points,): which of the grid
    predicted: Floats  # shape (points,)
    gap: Floats  # shape (points,)
    rows: Floats  # shape (points,)
    # `null` and `noise`, shape (points,): what deviations are divided by, and what the band is a multiple of.
    null: Floats
    noise: Floats
    deviations: Floats  # shape (draws, points): of simulated data, standardised, without sign


def _smoothed(s: Scored, how: Drawing) -> _Fit:
    """Smooth the residual: a local-linear fit with the biweight kernel."""
    runs = s.runs
    w = weights(runs.x, runs.rows, s.grid, s.half)
    rows, says = effective(w, runs.squares), np.clip(w @ runs.score, 0.0, 1.0)
    null = s.rows.wider(np.sqrt((w * w) @ runs.noise), w)
    kept = np.flatnonzero(supported(rows, says, null) & s.rows.enough(w))
    if not len(kept):
        raise NotComputable(
            f"at no score are there {LEAST_ROWS} people and {LEAST_EVENTS} expected events and non-events "
            f"within reach{s.rows.wanted}: give a wider bandwidth"
        )
    w, rows, says, null = w[kept], rows[kept], says[kept], null[kept]
    gap = w @ (runs.events - runs.score)
    standard = (w / null[:, None]).T
    deviations = np.concatenate([np.abs((y - runs.score) @ standard) for y in s.rows.events(runs, how.draws, how.seed)])
    # Where the model is off, outcomes vary by the observed rate: the band takes the larger of the two errors.
    rate = np.clip(runs.rate + np.interp(runs.x, s.grid[kept], gap), 0.0, 1.0)
    noise = np.maximum(null, np.sqrt((w * w) @ runs.noise_at(rate)))
    return _Fit(kept, says, gap, rows, null, noise, deviations)


def _monotone(s: Scored, how: Drawing) -> _Fit:
    """Regress the outcome on the score under the one assumption that it does not fall (CORP); no point is left out."""
    runs, says = s.runs, np.interp(s.grid, s.runs.x, s.runs.rate)
    fit = _isotonic(runs.events, runs.rows)

    def deviations(drawn: Iterable[Floats]) -> Floats:
        fits = (_isotonic(y, runs.rows) for part in drawn for y in part)
        return np.array([np.interp(s.grid, runs.x, f) - says for f in fits])

    scale = np.sqrt((deviations(s.rows.events(runs, SCALE_DRAWS, how.seed, stream=1)) ** 2).mean(axis=0))
    scale = np.maximum(scale, 1e-3 * max(float(scale.max()), 1e-12))  # a point that never moves counts little, not all
    result = np.abs(deviations(s.rows.events(runs, how.draws, how.seed))) / scale
    # Rows of a point are those of the constant stretch that it lies in.
    block = np.cumsum(np.diff(fit, prepend=fit[0]) != 0)
    nearest = np.clip(np.searchsorted(runs.x, s.grid, side="right") - 1, 0, len(fit) - 1)
    rows = np.bincount(block, runs.rows)[block[nearest]]
    gap = np.interp(s.grid, runs.x, fit) - says
    return _Fit(np.arange(len(s.grid)), says, gap, rows, scale, scale, result)


def _isotonic(events: Floats, rows: Floats) -> Floats:
    """The non-decreasing event rates closest to the observed ones, weighted by rows."""
    return np.clip(isotonic(events / rows, rows), 0.0, 1.0)
