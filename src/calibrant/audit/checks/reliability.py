"""Where along the score it is off: the gap in ranges of the score, certified together, and the smoothed curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.audit import lost
from calibrant.audit.checks.everyone import coarse
from calibrant.audit.context import DRAWS, AuditContext, Check, CheckResult, Cost
from calibrant.audit.rounding import reported_line, reported_sets
from calibrant.certify.closed import SignedEvidence
from calibrant.data.predictions import Predictions
from calibrant.decisions.ladder import Ladder
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.stats.cells import equal_mass
from calibrant.stats.clusters.bounds import gap_of
from calibrant.stats.evidence import Gap
from calibrant.stats.smoothing import run_starts
from calibrant.stats.subgroups.row_gaps import binomial
from calibrant.views.people import people_of
from calibrant.views.population import OfClusters, OfTwoWay, Population, fixed_scores

CURVE_EVENTS = 50  # expected events, and non-events, under which ranges of the gap span the picture
ENOUGH = 100  # people of whom a rate rounded to fives is within a few points
FEW_BINS = 10  # ranges under which steps of the display hide the form of the curve
ALONE = 0.9  # of alpha, for ranges that are not joined; the rest for all runs of several, one of which may be
# Where clusters cross: there are no pilot clusters
FIXED = np.array([0.001, 0.01, *(np.arange(1, 10) / 10), 0.99, 0.999])
POINTS = 101  # of the smoothed curve: about one a pixel of three


def along_the_score(context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Draw the score's error; without the bins the check does not apply, whatever the smoothed curve finds."""
    plan, thresholds = context.judging, () if context.people.one_column else context.judging.thresholds
    acted = tuple(Ladder.of(context.everyone, t) for t in thresholds)  # where people are, as far as it is shown
    few = Few(context.mask, acted, None if context.people.are_rows else context.people.rows)
    curves = {"reliability": smoothed(context)}
    try:
        bins = bins_of(context.everyone, plan.steps, plan.alpha, few)
        curves["bins"] = reported_sets(bins, context.everyone.n, context.sums)
    except NotComputable as e:
        return CheckResult(status="not-applicable", reason=e.reason, curves=curves)
    return CheckResult(status="measured", curves=curves)


@dataclass(frozen=True)
class Few:
    """Of how many people a range of the score may be shown, and next to what."""

    mask: int  # people under whom a count is not shown
    # Where people are acted on, and counted: ranges next to a threshold leave no few people between.
    decisions: Sequence[Ladder] = ()
    rows: Predictions | None = None  # that are held, where rows share clusters: people are clusters then

    def people(self, q: Population, which: NDArray[np.int64]) -> NDArray[np.int64]:
        """People by range, shape (ranges,), of which each cell of the score is in one."""
        if self.rows is None:
            return np.bincount(which, q.counted.totals.sum(axis=1)).astype(np.int64)
        return people_of(self.rows).among(which[_cell(q, self.rows.p)], int(which[-1]) + 1)

    def sides(self, q: Population, which: NDArray[np.int64], of: Ladder) -> NDArray[np.int64]:
        """Those of each range who are left, and who are acted on: shape (ranges, 2)."""
        ranges, cut = int(which[-1]) + 1, of.acts_from * q.grid
        if self.rows is not None:
            acted = self.rows.p >= of.acts_from - 1e-9
            return people_of(self.rows).among(2 * which[_cell(q, self.rows.p)] + acted, 2 * ranges).reshape(ranges, 2)
        people, first = q.counted.totals.sum(axis=1), math.ceil(cut - 1e-9)
        above = np.where(np.arange(q.grid) >= first, people, 0)
        if first > 0:  # the threshold may lie within a cell
            above[first - 1] = of.acted[0] - above.sum()
        return np.stack([np.bincount(which, v, ranges) for v in (people - above, above)], axis=1).astype(np.int64)


@dataclass(frozen=True)
class Ranges:
    """Ranges of the score, and what was found in each."""

    bins: NDArray[np.int64]  # of each cell of the score
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    limits: Sequence[tuple[float, float]]  # of the gap, all at once


def bins_of(q: Population, steps: int, alpha: float, few: Few) -> Curve:
    """The binned reliability of the score, with gaps certified all at once."""
    event_count = q.counted.expected
    if min(event_count, q.n - event_count) < CURVE_EVENTS:
        raise NotComputable(
            f"a curve needs at least {CURVE_EVENTS} expected events and {CURVE_EVENTS} expected non-events"
        )
    result = _ranges(q, steps, alpha, few)
    counts, _, low, high = coarse(q, result.bins)
    columns = {
        "x": result.predicted,
        "x_low": low,
        "x_high": high,
        "predicted": result.predicted,
        "observed": result.observed,
        "gap": result.observed - result.predicted,
        "low": [v[0] for v in result.limits],
        "high": [v[1] for v in result.limits],
        "rows": counts.sum(axis=1).astype(np.int64),
    }
    plain: Mapping[str, tuple[Any, ...]] = {k: tuple(np.asarray(v).tolist()) for k, v in columns.items()}
    settings = {"level": 1.0 - alpha, "simultaneous": True, "target": q.target}
    return Curve(method="reliability", columns=plain, settings=settings)


@singledispatch
def _ranges(q: Population, steps: int, alpha: float, few: Few) -> Ranges:
    """Take the steps of the display, neighbours joined until each holds enough people to show.

    Where fewer than ten come of that (rare events), they are twenty ranges of the raw score with about equally many
    people.
    """
    bins = _people(q, np.floor(q.counted.middle * steps + 0.5).astype(np.int64), few)
    if bins[-1] + 1 < FEW_BINS:
        bins = max(bins, _people(q, q.counted.equal_mass(2 * FEW_BINS), few), key=lambda b: int(b[-1]))
    counts, sums, *_ = coarse(q, bins)
    n, events, expected, each = counts.sum(axis=1), counts[:, 1], sums.sum(axis=1), alpha / (2.0 * len(counts))
    of = (SignedEvidence(binomial(*one)) for one in zip(events.tolist(), n.tolist(), expected, strict=True))
    return Ranges(bins, expected / n, events / n, [gap.ends(each, each) for gap in of])


@_ranges.register
def _by_clusters(q: OfClusters, _: int, alpha: float, few: Few) -> Ranges:
    """Take ranges that no score of a certified cluster decides, joined where too few people would be shown.

    Given all scores of a cluster, a rate is not that of its score alone: a score that moved an edge would choose which
    rates are looked at. Where clusters cross, a range has the blocks of every shift. Scores are no part of the design,
    so that no block of a range may be taken to be smaller than the largest with all of its rows, and a shift without
    rows in it is evidence of 1.
    """
    fixed = _fixed_ranges(q)
    bins = _people(q, fixed, few)
    gaps = q.diagonals
    of_row = [bins[_cell(q, u.p)] for u in gaps]
    means, limits = [], []
    for i, delta in enumerate(_shares(fixed, bins, alpha)):
        kept = [(u, of == i) for u, of in zip(gaps, of_row, strict=True)]
        parts = [replace(u.within(own), most=u.largest) for u, own in kept if own.any()]
        if not parts:
            raise NotComputable("a range of the score has none of the rows whose clusters are held")
        weight = np.concatenate([u.weight for u in parts])
        values = [u.p for u in parts], [u.y for u in parts]
        means.append([np.average(np.concatenate(v), weights=weight) for v in values])
        limits.append(Gap.mean([gap_of(u, delta / 2.0) for u in parts], len(gaps)).limits(delta))
    predicted, observed = np.array(means).T
    return Ranges(bins, predicted, observed, limits)


@singledispatch
def _fixed_ranges(q: OfClusters) -> NDArray[np.int64]:
    """The range of each cell of the score: of about equally many rows of pilot clusters."""
    clusters = q.diagonals[0]
    pilot = _cell(q, clusters.p[~clusters.certified[clusters.cluster]])
    return equal_mass(np.bincount(pilot, minlength=q.grid), FEW_BINS)


@_fixed_ranges.register
def _two_way(q: OfTwoWay) -> NDArray[np.int64]:
    return np.digitize(q.counted.middle, FIXED).astype(np.int64)


def _shares(fixed: NDArray[np.int64], bins: NDArray[np.int64], alpha: float) -> list[float]:
    """The alpha of each bin, a run of ranges: every run that people might have asked for has its share."""
    kept = [len(np.unique(fixed[bins == i])) for i in range(int(bins[-1]) + 1)]
    k = len(np.unique(fixed))
    if k == 1:
        return [alpha]
    return [ALONE * alpha / k if one == 1 else (1.0 - ALONE) * alpha / (k * (k - 1) / 2) for one in kept]


def _cell(q: Population, p: NDArray[np.float64]) -> NDArray[np.int64]:
    cell: NDArray[np.int64] = np.minimum(fixed_scores(p) * q.grid >> 30, q.grid - 1)
    return cell


def _people(q: Population, first: NDArray[np.int64], few: Few) -> NDArray[np.int64]:
    """Join runs of cells, numbered without gaps or not, until each holds enough people to show.

    A tenth of all, up to a hundred: rounded to multiples of five, the rates of fewer would be noise. And one in 500, or
    the ranges would fill the page.
    """
    rows = np.bincount(first, q.counted.totals.sum(axis=1))
    starts = run_starts(rows, max(few.mask, min(q.n // FEW_BINS, ENOUGH), q.n // 500))

    def which() -> NDArray[np.int64]:
        return (np.searchsorted(starts, first, side="right") - 1).astype(np.int64)

    while len(starts) > 1 and (people := few.people(q, which())).min() < few.mask:
        del starts[max(int(people.argmin()), 1)]
    for ladder in few.decisions:
        while (at := _splits(few.sides(q, which(), ladder), few.mask)) > 0:
            del starts[at]
    return which()


def _splits(sides: NDArray[np.int64], mask: int) -> int:
    """The range to join to the one before it, where few of a range's people are on one side of a threshold; else 0."""
    for at, (low, high) in enumerate(sides.tolist()):
        if low and high and min(low, high) < mask:
            if low < mask and at:
                return at
            return at + 1 if high < mask and at + 1 < len(sides) else 0
    return 0


def smoothed(context: AuditContext) -> Curve:
    """The smoothed reliability curve, from cells of at least as many people as may be shown.

    Without columns where it cannot be computed: the check of the bins says why.
    """
    from calibrant.diagnose.reliability_curve import METHOD, Drawing, curve_of

    if reason := context.people.one_column:
        return Curve(method=METHOD, columns={}, settings={"reason": reason})
    how = Drawing(grid=POINTS, alpha=context.judging.alpha, draws=DRAWS, seed=context.seed, smallest=context.mask)
    try:
        return reported_line(curve_of(context.everyone, how))
    except NotComputable as e:
        return Curve(method=METHOD, columns={}, settings={"reason": e.reason})


DECLARED = (
    Check(
        code="reliability",
        order=60,
        make=along_the_score,
        make_of_lost=lost.along_the_score,
        cost=Cost(flat=0.05, sample_rows=0.001),
        crosses=True,
    ),
)
