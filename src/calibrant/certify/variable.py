"""Certified intervals of the error along a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_seed, number, one_source, shown, whole
from calibrant.data.columns import is_number
from calibrant.data.dates import is_date
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities, identities_of
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import dealt
from calibrant.kernels.strata import locate
from calibrant.results import Estimate, Interval, Side
from calibrant.stats.cells import SCALE
from calibrant.stats.strata import View, equal_mass_edges
from calibrant.stats.variable import (
    NONE,
    ChordLedger,
    Ledger,
    RowLedger,
    Smear,
    debiased_error,
    ledger_of,
    lower_bound,
    shift_limits,
    upper_bound,
)
from calibrant.views.along import (
    along_of,
    checked_rows,
    checked_view,
    covariate,
    fine_ledger,
    numbers_of,
    sketched_strata,
)
from calibrant.views.population import INDEPENDENT, QUANTISATION, shares

Floats = NDArray[np.float64]
Name = str | tuple[str, str]  # of one covariate, or of two that are crossed

# ---- Rows dealt into blocks and cut along a variable, by edges that no label and no certified row has touched ----

BLOCKS = 8
PILOT = 1000  # rows at most, and a tenth at most, that set a number's edges and then leave


@dataclass(frozen=True)
class Cut:
    """What certificates along one variable read.

    Parameters
    ----------
    ledger : Ledger
    ordered : bool
        The cells are in the order of a number or date; that of missing values is last.
    points : int
        Cells of values, without that of missing values.
    cells : int
        Cells, empty ones included.
    edges_from : str
        ``"levels"``, ``"pilot rows"`` or ``"the sketch"``.
    pilot : int
        Rows that set the edges and left.
    reads : str
    rounding : float
        By how much reading the scores to fixed precision can move the estimand.
    """

    ledger: Ledger
    ordered: bool
    points: int
    cells: int
    edges_from: str
    pilot: int
    reads: str = "rows"
    rounding: float = 0.0

    def about(self, bandwidth: float | None) -> str:
        """Say in a phrase what the certificate is about."""
        if bandwidth is not None:
            return f"the raw score, along the variable's rank jittered by {bandwidth:g}"
        return f"the raw score, along {self.cells} cells of the variable"


@dataclass(frozen=True)
class Dealt:
    """Rows with what all variables share: residuals of the view, random blocks, pilot rows.

    Parameters
    ----------
    rows : Predictions
    view : {"probability", "confidence"}
    residual : float64 array of shape (n,)
    block : uint8 array of shape (n,)
    pilot : int array
        Rows that set edges of numbers.
    """

    rows: Predictions
    view: View
    residual: Floats
    block: NDArray[np.int64]
    pilot: NDArray[np.intp]


def dealt_of(data: Predictions | Sketch, view: View, seed: int) -> Dealt:
    """Return rows dealt by their identity; refuse what no proof covers."""
    rows = checked_rows(data)
    if rows.weights is not None:
        raise NotComputable("no certificate here is proved for weights=: leave weights out")
    residual = rows.y - rows.p
    if view == "confidence":
        residual = np.where(rows.p < 0.5, -residual, residual)
    block = dealt(identities_of(rows.n, seed), BLOCKS)
    chosen = identities(rows.n, 0, Spec(label="y", score="p", seed=seed).salt("pilot"))
    size = min(PILOT, rows.n // 10)
    pilot = np.argpartition(chosen, size)[:size] if size else np.zeros(0, dtype=np.int64)
    return Dealt(rows, view, residual, block.astype(np.uint8), np.sort(pilot))


def cut_of(dealt: Dealt, name: Name, bins: int, fine: bool) -> Cut:
    """Cut rows along a variable or a pair; `fine` for a grid of ranks that is to be jittered."""
    if isinstance(name, str):
        cell, points, cells, ordered = _cells(dealt, name, bins, fine)
    elif fine or len(name) != 2 or name[0] == name[1]:
        raise BadInput(f"variable={name!r}: pass one covariate, or two different ones without bandwidth")
    else:
        first, second = (_cells(dealt, each, bins, False) for each in name)
        cell, cells, ordered = first[0] * np.int32(second[2]) + second[0], first[2] * second[2], False
        points = cells
        if cells > 1 << 20:
            raise BadInput(f"variable={name!r} has {cells:,} cells: pass fewer bins")
        ordered = first[3] and second[3]
    leaves = _is_cut(dealt, name)
    keep: slice | NDArray[np.intp] = slice(None)
    if leaves and len(dealt.pilot):
        mask = np.ones(dealt.rows.n, dtype=bool)
        mask[dealt.pilot] = False
        keep = np.flatnonzero(mask)
    rows = RowLedger(dealt.residual[keep], cell[keep], dealt.block[keep], cells, BLOCKS)
    left = len(dealt.pilot) if leaves else 0
    return Cut(ledger_of(rows), ordered, points, cells, "pilot rows" if leaves else "levels", left)


def _is_cut(dealt: Dealt, name: Name) -> bool:
    types = [covariate(dealt.rows, each).type for each in ((name,) if isinstance(name, str) else name)]
    return any(is_number(t) or is_date(t) for t in types)


def _cells(dealt: Dealt, name: str, bins: int, fine: bool) -> tuple[NDArray[np.int32], int, int, bool]:
    """Return each row's cell, how many cells values have, how many cells there are, and whether they are in order."""
    column = covariate(dealt.rows, name)
    if not (is_number(column.type) or is_date(column.type)):
        if fine:
            raise NotComputable(f"covariate {name!r} is a category: its levels have no order to jitter along")
        found = along_of(dealt.rows, name, dealt.view)
        return found.cell, found.strata.there, found.strata.size, False
    values = numbers_of(dealt.rows, name)
    seen = values[dealt.pilot]
    seen = np.sort(seen[~np.isnan(seen)])
    if fine:
        cell = _ranks(values, seen, bins)
    else:
        cell = locate(values, _edges(seen, bins))
        bins = len(_edges(seen, bins)) + 1
    return cell, bins, bins + 1, True


def _edges(seen: Floats, bins: int) -> Floats:
    """Return inner edges from pilot values: a cell for each where they are few."""
    if not len(seen):
        return np.zeros(0)
    distinct = np.unique(seen)
    return distinct[1:] if len(distinct) <= bins else equal_mass_edges(seen, None, bins)


def _ranks(values: Floats, seen: Floats, points: int) -> NDArray[np.int32]:
    """Return the cell of each value's middle rank among pilot values; `points` for a missing one."""
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


def sketched_cut(sketch: Sketch, name: Name, bins: int, bandwidth: float | None, view: View) -> Cut:
    """Return the cut along a variable or pair that a sketch grouped by."""
    sketch.checked()
    wanted = (name,) if isinstance(name, str) else tuple(name)
    if bandwidth is not None:
        raise NotComputable("a jitter of the variable is certified from rows only: pass rows")
    found = [i for i, g in enumerate(sketch.spec.groupings) if sorted(g) == sorted(wanted)]
    return _grouped(sketch, found[0], view) if found else _fine(sketch, wanted, bins, view)


def _fine(sketch: Sketch, wanted: tuple[str, ...], bins: int, view: View) -> Cut:
    """Return the cells along a variable joined to bins; there are no random blocks."""
    strata = sketched_strata(sketch, wanted, view)
    held = sketch.parts["fine"].held[strata.name]
    kept = held[np.flatnonzero(held[..., 0].sum(axis=(1, 2)))]
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
        "the sketch's cells along the variable",
        QUANTISATION,
    )


def _grouped(sketch: Sketch, grouping: int, view: View) -> Cut:
    """Return the cells of the groups of one grouping: levels of the variable, and the score in 1,024 ranges."""
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
FOR_SHIFT = 0.1  # share of each end's error probability that pays for the unknown overall shift


@one_source
def variable(
    data: Predictions | Sketch,
    variable: str | Sequence[str],
    *,
    bins: int = 10,
    bandwidth: float | None = None,
    beyond_shift: bool = False,
    view: View = "probability",
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> Estimate:
    r"""Certify the average error along a variable: how far probabilities are off for people who differ in it.

    Estimand: ``sum_c |E[(Y - p) 1_c]|`` over the bins or levels c of the variable (or of a pair); with `bandwidth`
    ``sum_t |E[(Y - p) K(t | V)]|``, the error after the variable's rank is jittered; with `beyond_shift` of
    ``Y - p - E[Y - p]`` in place of ``Y - p``. In probability units.

    Parameters
    ----------
    data : Predictions or Sketch
        A sketch brings its own bins and levels.
    variable : str or pair of str
        Covariates. Missing values are a level.
    bins : int from 1 to 4096
        Of a number or date, about equally many rows in each; equal values share one.
    bandwidth : float from 0.01 to 0.5, optional
        Jitter a number's rank instead of cutting bins: ``K(t | v)`` proportional to ``sech((t - v) / h)`` on 256 ranks.
        Fixed before the labels are seen.
    beyond_shift : bool
        Certify what is left when everyone's probability is moved by the overall mean residual.
    view : {"probability", "confidence"}
        As in `measure.vece`.
    alpha : float in (0, 1)
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
        There are weights or clusters; a category is to be jittered; or the sketch did not count the variable.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample, for every classifier and every distribution. Unlike the lower end for a displayed or
    jittered *score*, this lower end is evidence against the model: binning or jittering the *variable* can only average
    its error away (Jensen), so the error given the variable itself is at least as large.
    **Method.** Upper end: Theorem U (theory 1.3, 1.4) in its linear form with the raw residuals as bets, four stakes.
    Lower end: Theorem L, signs learnt on earlier blocks, mixed with an average over all signs and, where no shift is
    taken out, with one sign for all. Bins of a number are cut at quantiles of at most 1,000 pilot rows, a tenth at
    most, which then leave the certificate. With `beyond_shift` a
    tenth of each end's alpha pays for limits of the mean residual, and the worst mean in them is taken; the bounds are
    monotone towards the ends of the limits. Above 20,000 rows logarithms are replaced by their series to the fourth
    power less a bound of the rest. **Cost.** Linear in the rows, then about 10 ms. **Reads.** Rows; or the cells of the
    sketch's groups, if the variable is one of `by`, else its cells along the variable (whose lower end learns no
    signs). Bins that a sketch fixed at its first look count as fixed.

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
    name = _named(variable)
    checked = Asked(bins, bandwidth, beyond_shift, view, side, checked_seed(seed))
    return _family(data, (name,), checked, alpha)[name]


def _named(variable: str | Sequence[str]) -> Name:
    """Return one covariate or a pair, or refuse it."""
    if isinstance(variable, str):
        return variable
    if isinstance(variable, (list, tuple)) and len(variable) == 2 and variable[0] != variable[1]:
        return variable[0], variable[1]
    raise BadInput(f"variable={shown(variable)}: pass the name of one covariate, or two different names")


@dataclass(frozen=True)
class Asked:
    """Settings of a certificate along a variable, checked."""

    bins: int
    bandwidth: float | None
    beyond_shift: bool
    view: View
    side: Side
    seed: int

    def __post_init__(self) -> None:
        whole("bins", self.bins, 1, 4096, hint="such as 10")  # 4,096: as many cells as `views.along` keeps
        if self.bandwidth is not None:
            number("bandwidth", self.bandwidth, least=0.01, most=0.5, hint="such as 0.05, or None for bins")
        checked_view(self.view)


def _family(data: Predictions | Sketch, names: tuple[Name, ...], asked: Asked, alpha: float) -> dict[Name, Estimate]:
    low_share, high_share = shares(alpha, asked.side)
    if not names:
        raise BadInput("no variables: name at least one")
    spend = low_share / len(names), high_share / len(names)
    if isinstance(data, Sketch):
        cuts = {name: sketched_cut(data, name, asked.bins, asked.bandwidth, asked.view) for name in names}
    else:
        dealt, fine = dealt_of(data, asked.view, asked.seed), asked.bandwidth is not None
        cuts = {name: cut_of(dealt, name, GRID if fine else asked.bins, fine) for name in names}
    return {name: _certified(cut, name, asked, spend, alpha) for name, cut in cuts.items()}


def _certified(cut: Cut, name: Name, asked: Asked, spend: tuple[float, float], alpha: float) -> Estimate:
    smear = None if asked.bandwidth is None else Smear(cut.points, float(asked.bandwidth))
    shifts: tuple[float, ...] = NONE
    low_share, high_share = spend
    if asked.beyond_shift:
        pays = FOR_SHIFT * (low_share + high_share)
        shifts = shift_limits(cut.ledger, pays)
        low_share, high_share = low_share * (1 - FOR_SHIFT), high_share * (1 - FOR_SHIFT)
    high = upper_bound(cut.ledger, high_share, shifts, smear) + cut.rounding if high_share else 1.0
    low = 0.0
    if low_share:
        low = max(lower_bound(cut.ledger, low_share, asked.seed, cut.ordered, shifts, smear) - cut.rounding, 0.0)
    n = int(cut.ledger.sums[..., 0].sum())
    if n == 0:
        raise NotComputable("there are no rows")
    value = debiased_error(cut.ledger, asked.beyond_shift, smear)
    return Estimate(
        method="certify.variable",
        value=max(min(value, high), low),
        unit="probability",
        n=n,
        interval=Interval(low=low, high=min(high, 1.0), level=1.0 - alpha, guarantee="finite-sample"),
        assumes=INDEPENDENT,
        settings={
            "variable": name,
            "about": cut.about(asked.bandwidth),
            "view": asked.view,
            "bins": cut.cells,
            "bandwidth": asked.bandwidth,
            "beyond_shift": asked.beyond_shift,
            "edges_from": cut.edges_from,
            "pilot": cut.pilot,
            "reads": cut.reads,
            "delta": spend,
            "seed": asked.seed,
        },
    )
