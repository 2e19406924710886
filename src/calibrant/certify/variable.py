"""Certified intervals of the error along a variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, number
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import is_number
from calibrant.data.layouts import is_date
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities, identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import hash_split
from calibrant.kernels.strata import locate
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.cells import SCALE
from calibrant.stats.clusters.clusters import Clusters
from calibrant.stats.strata import View, equal_mass_edges
from calibrant.stats.variable import (
    NONE,
    ByVariable,
    ChordLedger,
    Ledger,
    RowLedger,
    Smear,
    debiased_error,
    gap_limits,
    ledger_of,
    lower_bound,
    upper_bound,
)
from calibrant.views.by_variable import (
    by_variable_of,
    checked_names,
    checked_rows,
    checked_view,
    covariate,
    fine_ledger,
    numbers_of,
    sketched_strata,
)
from calibrant.views.kinds import ByKind
from calibrant.views.people import assumed, people_of, reported
from calibrant.views.population import INDEPENDENT, QUANTISATION, shares

Floats = NDArray[np.float64]
Names = tuple[str, ...]  # of one covariate, or of two that are crossed

# ---- Rows dealt into blocks and cut along a variable, by edges that no label and no certified row has touched ----

BLOCKS = 8
MOST_OF_CLUSTERS = 1024  # cells along which clusters are certified: of each pair it is asked how alike they are
PILOT = 1000  # rows at most, and a tenth at most, that set a number's edges and then leave


@dataclass(frozen=True)
class Cut:
    """What certificates along one variable read."""

    ledger: Ledger
    ordered: bool  # the cells are in the order of a number or date; that of missing values is last
    points: int  # cells of values, without that of missing values
    cells: int  # cells, empty ones included
    edges_from: str  # "levels", "pilot rows" or "the sketch"
    pilot: int  # rows that set the edges and left
    reads: str = "rows"
    rounding: float = 0.0  # by how much reading the scores to fixed precision can move the estimand
    smear: Smear | None = None  # a jitter of the variable

    def about(self, bandwidth: float | None) -> str:
        """Say in a phrase what the certificate is about."""
        if bandwidth is not None:
            return f"the raw score, by the variable's rank jittered by {bandwidth:g}"
        return f"the raw score, by {self.cells} cells of the variable"

    @property
    def n(self) -> int:
        """Rows that certify."""
        return int(self.ledger.sums[..., 0].sum())

    @property
    def assumes(self) -> str:
        """What is interpreted as granted."""
        return INDEPENDENT

    @property
    def reported(self) -> dict[str, float]:
        """What a result reports about clusters: nothing of independent rows."""
        return {}

    def limits(self, delta: float) -> tuple[float, float]:
        """Limits of the overall mean residual."""
        return gap_limits(self.ledger, delta)

    def upper(self, delta: float, gaps: tuple[float, ...] = NONE) -> float:
        """The upper end, for the worst of the shifts."""
        return min(upper_bound(self.ledger, delta, gaps, self.smear) + self.rounding, 1.0)

    def lower(self, delta: float, seed: int, gaps: tuple[float, ...] = NONE) -> float:
        """The lower end, for the worst of the shifts."""
        return max(lower_bound(self.ledger, delta, seed, self.ordered, gaps, self.smear) - self.rounding, 0.0)

    def debiased(self, beyond_gap: bool) -> float:
        """The estimate."""
        return debiased_error(self.ledger, beyond_gap, self.smear)


@dataclass(frozen=True)
class ClusterCut:
    """What certificates along one variable read of clusters, with the methods of `Cut`."""

    by_variable: ByVariable
    # `ordered`, `points`, `cells` and `edges_from`: as of `Cut`; edges of numbers come from the rows of pilot clusters.
    ordered: bool
    points: int
    cells: int
    edges_from: str
    # `n` and `pilot`: rows, and those of pilot clusters.
    n: int
    pilot: int
    whose: str  # which clusters these are, where a sketch does not hold all
    reads: str = "rows"

    def about(self, _: float | None) -> str:
        """See `Cut`; of clusters nothing is jittered."""
        return f"the raw score, by {self.cells} cells of the variable"

    @property
    def clusters(self) -> Clusters:
        """The clusters."""
        return self.by_variable.tallies.clusters

    @property
    def assumes(self) -> str:
        """See `Cut`."""
        return assumed(self.clusters, self.whose)

    @property
    def reported(self) -> dict[str, object]:
        """See `Cut`."""
        return reported(self.clusters)

    def limits(self, delta: float) -> tuple[float, float]:
        """See `Cut`."""
        return self.by_variable.limits(delta)

    def upper(self, delta: float, gaps: tuple[float, ...] = NONE) -> float:
        """See `Cut`."""
        return self.by_variable.upper(delta, gaps)

    def lower(self, delta: float, seed: int, gaps: tuple[float, ...] = NONE) -> float:
        """See `Cut`."""
        return self.by_variable.lower(delta, seed, gaps)

    def debiased(self, beyond_gap: bool) -> float:
        """See `Cut`."""
        return self.by_variable.debiased(beyond_gap)


@dataclass(frozen=True)
class HashSplit:
    """Rows with what all variables share: residuals of the view, random blocks, pilot rows."""

    rows: Predictions
    view: View
    residual: Floats  # shape (n,)
    block: NDArray[np.int64]  # shape (n,)
    pilot: NDArray[np.intp]  # rows that set edges of numbers
    jitters: ClassVar[bool] = True  # whether a jitter of the variable is proved

    def cut(self, cell: NDArray[np.int32], cut: tuple[int, int, bool], leaves: bool) -> Cut | ClusterCut:
        """Add up rows along cells that are given; `leaves`: pilot rows set edges."""
        points, cells, ordered = cut
        keep: slice | NDArray[np.intp] = slice(None)
        if leaves and len(self.pilot):
            mask = np.ones(self.rows.n, dtype=bool)
            mask[self.pilot] = False
            keep = np.flatnonzero(mask)
        rows = RowLedger(self.residual[keep], cell[keep], self.block[keep], cells, BLOCKS)
        left = len(self.pilot) if leaves else 0
        return Cut(ledger_of(rows), ordered, points, cells, "pilot rows" if leaves else "levels", left)


@dataclass(frozen=True)
class ClusterHashSplit(HashSplit):
    """The same of rows that are not independent, or do not count alike."""

    clusters: Clusters
    whose: str  # which clusters these are, where a sketch does not hold all
    jitters: ClassVar[bool] = False

    def cut(self, cell: NDArray[np.int32], cut: tuple[int, int, bool], leaves: bool) -> ClusterCut:
        points, cells, ordered = cut
        if cells > MOST_OF_CLUSTERS:
            most = f"at most {MOST_OF_CLUSTERS:,}"
            raise NotComputable(f"{cells:,} cells are too many with cluster= or weights= ({most}): pass fewer bins")
        by_variable = ByVariable.of(self.clusters, cell.astype(np.int64), cells, self.residual, ordered)
        edges = "pilot clusters" if leaves else "levels"
        return ClusterCut(by_variable, ordered, points, cells, edges, self.rows.n, len(self.pilot), self.whose)


def hash_split_of(data: Predictions | Sketch, view: View, seed: int) -> HashSplit:
    """Rows dealt by their identity, or by that of their clusters."""
    people = people_of(data)
    clusters, rows = people.clusters(seed), checked_rows(people.alone)
    residual = rows.y - rows.p
    if view == "confidence":
        residual = np.where(rows.p < 0.5, -residual, residual)
    if clusters is not None:
        pilots = np.flatnonzero(~clusters.certified[clusters.cluster])
        block, whose = clusters.block[clusters.cluster], people.holder.whose
        return ClusterHashSplit(rows, view, residual, block, pilots, clusters, whose)
    block = hash_split(identities_of(rows.n, seed), BLOCKS)
    chosen = identities(rows.n, 0, Spec(label="y", score="p", seed=seed).salt("pilot"))
    size = min(PILOT, rows.n // 10)
    pilot = np.argpartition(chosen, size)[:size] if size else np.zeros(0, dtype=np.int64)
    return HashSplit(rows, view, residual, block.astype(np.uint8), np.sort(pilot))


def cut_of(hash_split: HashSplit, names: Names, bins: int, fine: bool) -> Cut | ClusterCut:
    """Cut rows along a variable or a pair; `fine` for a grid of ranks that is to be jittered."""
    if len(names) == 1:
        cell, points, cells, ordered = _cells(hash_split, names[0], bins, fine)
    elif fine:
        raise BadInput(f"variable={names!r}: pass one covariate, or two different ones without bandwidth")
    else:
        first, second = (_cells(hash_split, each, bins, False) for each in names)
        cell, cells, ordered = first[0] * np.int32(second[2]) + second[0], first[2] * second[2], False
        points = cells
        if cells > 1 << 20:
            raise BadInput(f"variable={names!r} has {cells:,} cells: pass fewer bins")
        ordered = first[3] and second[3]
    if fine and not hash_split.jitters:
        raise NotComputable("with cluster= or weights= no jitter of the variable is proved: leave bandwidth out")
    types = [covariate(hash_split.rows, each).type for each in names]
    leaves = any(is_number(t) or is_date(t) for t in types)
    return hash_split.cut(cell, (points, cells, ordered), leaves)


def _cells(hash_split: HashSplit, name: str, bins: int, fine: bool) -> tuple[NDArray[np.int32], int, int, bool]:
    """Each row's cell, how many cells values have, how many cells there are, and whether they are in order."""
    column = covariate(hash_split.rows, name)
    if not (is_number(column.type) or is_date(column.type)):
        if fine:
            raise NotComputable(f"covariate {name!r} is a category: its levels have no order to jitter along")
        result = by_variable_of(hash_split.rows, name, hash_split.view)
        return result.cell, result.strata.there, result.strata.size, False
    values = numbers_of(hash_split.rows, name)
    seen = values[hash_split.pilot]
    seen = np.sort(seen[~np.isnan(seen)])
    if fine:
        cell = _ranks(values, seen, bins)
    else:
        cell = locate(values, _edges(seen, bins))
        bins = len(_edges(seen, bins)) + 1
    return cell, bins, bins + 1, True


def _edges(seen: Floats, bins: int) -> Floats:
    """Inner edges from pilot values: a cell for each where they are few."""
    if not len(seen):
        return np.zeros(0)
    distinct = np.unique(seen)
    return distinct[1:] if len(distinct) <= bins else equal_mass_edges(seen, None, bins)


def _ranks(values: Floats, seen: Floats, points: int) -> NDArray[np.int32]:
    """The cell of each value's middle rank among pilot values; `points` for a missing one."""
    if not len(seen):
        return np.where(np.isnan(values), points, 0).astype(np.int32)
    distinct, first = np.unique(seen, return_index=True)
    after = np.append(first[1:], len(seen))
    # a value between two pilot values ranks between them; one that equals a pilot value ranks in its middle
    at = locate(values, distinct).astype(np.int64)
    below, equal = np.concatenate([[0], after]), np.concatenate([[0], first])
    missing = np.isnan(values)
    at = np.minimum(at, len(distinct))
    hit = (at > 0) & (distinct[np.maximum(at - 1, 0)] == values)
    rank = np.where(hit, 0.5 * (equal[at] + below[at]), below[at]) / len(seen)
    cell = np.minimum((rank * points).astype(np.int64), points - 1)
    return np.where(missing, points, cell).astype(np.int32)


# ---- From a sketch to what certificates along a variable read ----


def sketched_cut(sketch: Sketch, names: Names, bins: int, bandwidth: float | None, view: View) -> Cut:
    """The cut along a variable or pair that a sketch grouped by."""
    sketch.checked()
    if bandwidth is not None:
        raise NotComputable("a jitter of the variable is certified from rows only: pass rows")
    results = [i for i, g in enumerate(sketch.spec.groupings) if sorted(g) == sorted(names)]
    return _grouped(sketch, results[0], view) if results else _fine(sketch, names, bins, view)


def _fine(sketch: Sketch, wanted: tuple[str, ...], bins: int, view: View) -> Cut:
    """The cells along a variable joined to bins; there are no random blocks."""
    strata = sketched_strata(sketch, wanted, view)
    stored = sketch.parts["fine"].stored[strata.name]
    kept = stored[np.flatnonzero(stored[..., 0].sum(axis=(1, 2)))]
    group = strata.bin_of(bins)
    joined = np.zeros((int(group.max()) + 1, *kept.shape[1:]), dtype=np.int64)
    np.add.at(joined, group, kept)
    cells = len(joined)
    return Cut(
        fine_ledger(joined, view),
        strata.ordered,
        cells - int(strata.missing),
        cells,
        "the sketch",
        0,
        "the sketch's cells by the variable",
        QUANTISATION,
    )


def _grouped(sketch: Sketch, grouping: int, view: View) -> Cut:
    """The cells of the groups of one grouping: levels of the variable, and the score in 1,024 ranges."""
    sizes, names = sketch.spec.sizes, sketch.spec.groupings[grouping]
    start = sum(sizes[:grouping])
    raw = np.moveaxis(sketch.group_cells[start : start + sizes[grouping]], 1, 0)
    ranges = raw.shape[2]
    counts = raw[..., :2].astype(np.float64)
    width = SCALE / ranges
    scores = (counts * (np.arange(ranges) * width)[None, None, :, None] + raw[..., 2:4]) / SCALE
    edges = np.arange(ranges + 1) / ranges
    ledger = ChordLedger(counts, scores, edges[:-1], edges[1:])
    ordered = len(names) == 1 and sketch.spec.by_name[names[0]].kind != "category"
    cells = sizes[grouping]
    return Cut(
        ledger.turned() if view == "confidence" else ledger,
        ordered,
        cells - int(ordered),
        cells,
        "the sketch",
        0,
        f"{ranges} score ranges of each group",
        QUANTISATION,
    )


# ---- Certified intervals of the error along a variable ----

GRID = 256  # cells of a jittered variable's ranks
FOR_GAP = 0.1  # share of each end's error probability that pays for the unknown overall shift


@takes_arrays
def variable(
    data: Predictions | Sketch,
    variable: str | Sequence[str],
    *,
    bins: int = 10,
    bandwidth: float | None = None,
    beyond_gap: bool = False,
    view: View = "probability",
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> Estimate:
    r"""Certify the calibration error along a variable: how far probabilities are off for people who differ in it.

    Estimand: ``sum_c |E[(Y - p) 1_c]|`` over the bins or levels c of the variable (or of a pair); with `bandwidth`
    ``sum_t |E[(Y - p) K(t | V)]|``, the error after the variable's rank is jittered; with `beyond_gap` of ``Y - p -
    E[Y - p]`` in place of ``Y - p``. In probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch brings its own bins and levels. Where the data name clusters or weights, whole clusters certify.
    variable : str or pair of str
        Covariates. Missing values are a level.
    bins : int from 1 to 4096
        Of a number or date, about equally many rows in each; equal values share one.
    bandwidth : float from 0.01 to 0.5, optional
        Jitter a number's rank instead of cutting bins: ``K(t | v)`` proportional to ``sech((t - v) / h)`` on 256 ranks.
        Fixed before the labels are seen.
    beyond_gap : bool
        Certify what is left when everyone's probability is moved by the overall mean residual.
    view : {"probability", "confidence"}
        As in `measure.vece`.
    alpha : float in (0, 0.5]
        Probability, at most, that the interval misses the estimand.
    side : {"two-sided", "lower", "upper"}
        Two-sided spends ``alpha / 2`` on each end.
    seed : int
        Picks the pilot rows and deals the others into blocks.

    Returns
    -------
    Estimate
        ``value`` is the debiased plain error, moved into the interval; smaller is better.

    Raises
    ------
    BadInput
        No such variable, or a setting out of range.
    NotComputable
        A category is to be jittered, or a variable of clusters; the sketch did not count the variable; all rows are one
        cluster.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters, from one distribution; weights that no outcome changes.
    **Guarantee.** Finite-sample, for every classifier and every distribution. Unlike the lower end for a displayed or
    jittered *score*, this lower end is evidence against the model: binning or jittering the *variable* can only average
    its error away (Jensen), so the error given the variable itself is at least as large.
    **Method.** Upper end: Theorem U in its linear form with the raw residuals as bets, four stakes.
    Lower end: Theorem L, signs learnt on earlier blocks, mixed with an average over all signs and, where no shift is
    taken out, with one sign for all. Bins of a number are cut at quantiles of at most 1,000 pilot rows, a tenth at
    most, which then leave the certificate. Clusters: Theorems CU and CL on the variable's cells, edges from the rows of
    pilot clusters. With `beyond_gap` a tenth of alpha pays for limits of the mean residual, which both ends need (one
    of two is wrong with at most ``.55 alpha``), and the worst mean in them is taken; the bounds are monotone towards
    the ends of the limits. Above 20,000 rows logarithms are replaced by their series to the fourth power less a bound
    of the rest.
    **Cost.** Linear in the rows, then about 10 ms.
    **Reads.** Rows; or the cells of the sketch's groups, if the variable is one of `by`, else its cells along the
    variable (whose lower end learns no signs). Bins that a sketch fixed at its first look count as fixed.

    References
    ----------
    Kelly and Smyth, "Variable-based calibration for machine learning classifiers", AAAI 2023, arXiv:2209.15154 (the
    quantity; the certificates are this project's). Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = np.full(20_000, 0.5), rng.integers(18, 90, 20_000)
    >>> y = rng.uniform(size=20_000) < np.where(age < 50, 0.4, 0.6)
    >>> found = cal.certify.variable(cal.predictions(y, p, {"age": age}), "age")
    >>> bool(0.08 < found.interval.low < 0.1 < found.interval.high < 0.13)
    True
    """
    names = checked_names(variable)
    options = VariableOptions(bins, bandwidth, beyond_gap, view, side, checked_seed(seed))
    spend = shares(alpha, side)
    return _certified(cuts_of(data, options)(names), names, options, spend, alpha)


@dataclass(frozen=True)
class VariableOptions:
    """Settings of a certificate along a variable, checked."""

    bins: int
    bandwidth: float | None
    beyond_gap: bool
    view: View
    side: Side
    seed: int

    def __post_init__(self) -> None:
        check_int("bins", self.bins, 1, 4096, hint="such as 10")  # 4,096: as many cells as `views.by_variable` keeps
        if self.bandwidth is not None:
            number("bandwidth", self.bandwidth, least=0.01, most=0.5, hint="such as 0.05, or None for bins")
        checked_view(self.view)


def _rows_cut(data: Predictions | Sketch, options: VariableOptions) -> Callable[[Names], Cut | ClusterCut]:
    fine = options.bandwidth is not None
    hash_split = hash_split_of(data, options.view, options.seed)
    return partial(cut_of, hash_split, bins=GRID if fine else options.bins, fine=fine)


def _sketch_cut(data: Sketch, options: VariableOptions) -> Callable[[Names], Cut | ClusterCut]:
    if data.by_clusters:
        return _rows_cut(data, options)
    return partial(sketched_cut, data, bins=options.bins, bandwidth=options.bandwidth, view=options.view)


# What cuts data along a variable or pair.
cuts_of = ByKind(rows=_rows_cut, sketches=_sketch_cut)


def _certified(
    cut: Cut | ClusterCut, names: Names, options: VariableOptions, spend: tuple[float, float], alpha: float
) -> Estimate:
    if options.bandwidth is not None and isinstance(cut, Cut):
        cut = replace(cut, smear=Smear(cut.points, float(options.bandwidth)))
    gaps: tuple[float, ...] = NONE
    low_share, high_share = spend
    if options.beyond_gap:
        pays = FOR_GAP * (low_share + high_share)
        gaps = cut.limits(pays)
        low_share, high_share = low_share * (1 - FOR_GAP), high_share * (1 - FOR_GAP)
    high = cut.upper(high_share, gaps) if high_share else 1.0
    low = cut.lower(low_share, options.seed, gaps) if low_share else 0.0
    if cut.n == 0:
        raise NotComputable("there are no rows")
    value = cut.debiased(options.beyond_gap)
    return Estimate(
        method="certify.variable",
        value=max(min(value, high), low),
        unit="probability",
        n=cut.n,
        interval=Interval(low=low, high=high, level=1.0 - alpha, guarantee="finite-sample"),
        assumes=cut.assumes,
        settings={
            "variable": names[0] if len(names) == 1 else names,
            "about": cut.about(options.bandwidth),
            "view": options.view,
            "bins": cut.cells,
            "bandwidth": options.bandwidth,
            "beyond_gap": options.beyond_gap,
            "edges_from": cut.edges_from,
            "pilot": cut.pilot,
            "reads": cut.reads,
            "delta": spend,
            "seed": options.seed,
            **cut.reported,
        },
    )
