"""The scan over boxes: the largest standardised residual, its exact simulated null, the bound over the family, and what
is left of every box once some people are taken out.

The score of a box is ``S / sqrt(V + c)``: S the events beyond those expected and beyond the tolerance, V their null
variance where the scores are right. What is compared is its margin: the score less the normal quantile at the box's
share of alpha, so that simple boxes, of which there are few, need less. Next to the boxes of the family, which are
fixed, the scan looks for the best subset of a category's levels, alone and within each set of every other attribute.

Boxes overlap: an error of one corner shows in every box that cuts it. So the corner is reported, its people are taken
out, and what is reported next is what the people left still show (`Left`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.boxes import box_peaks, lane_sums, subset_peaks
from calibrant.kernels.draws import LANES, words
from calibrant.stats.betting import rate_evidence
from calibrant.stats.subgroups.family import EVENTS, ROWS, SCORES, STEPS, VARIANCES, Family, Ints, sums_of

Cells = NDArray[np.uint8]
Counts = NDArray[np.int32]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]

# c. Median share of the rows in the box of the largest margin, of 60 calibrated data sets each (8 attributes: 20,000
# rows at 30 % and at 1 % of events, 60,000 at 0.1 %, 500 at 30 %); and how often, in the mean, seven planted corners
# of 1, 4 and 25 % of the rows at these rates are found at the .05 level (40 data sets each):
#   c = 1    6,  4,  5, 12 %   found 72 %
#   c = 4    6,  8, 16, 19 %         75 %   no size dominates at any rate
#   c = 9    6, 15, 20, 21 %         74 %
#   c = 25   8, 30, 40, 39 %         69 %   a corner of 1 % in 50 data sets of 100 in place of 70
EXTRA = 4.0
SALT = 0x5CA4  # of the simulated outcomes
REFERENCE = 0.05  # level at which margins are zero for a normal score; the test has its level whatever this is
ROUNDING = 1e-9
UP, DOWN = 0, 1  # more events than predicted, and fewer
ALL = np.array([[0, 1, 1, 1]], dtype=np.int64)  # the one set of an attribute that is not there


@dataclass(frozen=True, kw_only=True)
class Subset:
    """Levels of a category, and perhaps a set of another attribute."""

    category: int  # the attribute
    levels: tuple[int, ...]  # its cells
    other: int | None  # the other attribute
    within: Ints  # shape (4,): its set of cells


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """A box, such as that of the largest margin."""

    score: float
    margin: float
    side: int  # 0: more events than predicted; 1: fewer
    box: int | Subset  # a box of the family, or a subset of levels
    # `rows`, `mass`, `events` and `expected`: rows, and sums of their weights, of weighted events and of weighted
    # scores.
    rows: float
    mass: float
    events: float
    expected: float


@dataclass(frozen=True, kw_only=True)
class _Within:
    """The levels of a category within a set of another attribute."""

    axis: int  # of the table, along which the category lies
    subset: Subset  # all its levels
    sums: Ints  # shape (levels, 4)

    def levels(self, gap: float) -> Floats:
        """Expected events and `gap` times the rows, null variance and rows of each level."""
        return self._levels + [gap, 0.0, 0.0] * self._levels[:, 2:] if gap else self._levels

    @cached_property
    def _levels(self) -> Floats:
        rows = self.sums[:, ROWS].astype(np.float64)
        return np.stack([self.sums[:, SCORES] / STEPS, self.sums[:, VARIANCES] / STEPS, rows], axis=1)

    def events(self, table: Counts) -> Counts:
        """The events of each level, from those of the table's cells, shape (a, b, draws)."""
        own: Counts = contracted(table, 1 - self.axis, self.subset.within)[list(self.subset.levels)]
        return own


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of a family, of three axes, of which those of attributes that are not there have one cell."""

    attributes: tuple[int, ...]
    shape: tuple[int, int, int]
    sets: tuple[Ints, Ints, Ints]  # each of shape (k, 4)
    mean: Floats  # shape (2, sets of each axis): events beyond which the margin is above zero: too many, and too few
    scale: Floats  # shape (sets of each axis): `1 / sqrt(V + c)`; 0 of what is no box of the family
    needed: float = 0.0  # score that a subset of levels needs: that of the least favoured box
    within: tuple[_Within, ...] = ()  # the searches for a subset of levels

    def peaks(self, events: Counts) -> Floats:
        """The largest margins of the boxes in each draw, given the cells' events, shape (a, b, c, draws)."""
        out = np.full((2, events.shape[-1]), -np.inf)
        for m, own in enumerate(self.sets[2]):
            scale = self.scale[:, :, m]
            if scale.any():
                box_peaks(contracted(events, 2, own), *self.sets[:2], self.mean[:, :, :, m], scale, out)
        return out


def contracted(table: NDArray[Any], axis: int, own: Ints) -> NDArray[Any]:
    """Add up a set of cells of one attribute, whose axis is lost."""
    first, last, second, end = (int(v) for v in own)
    cells = [*range(first, last), *range(second, end)]
    result: NDArray[Any] = table.take(cells, axis).sum(axis=axis, dtype=table.dtype)
    return result


def placed(sets: Sequence[Ints], place: Sequence[Ints], mean: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """The `mean` and `scale` of a table, given those of its boxes, and the place of each among the sets."""
    sizes = [len(own) for own in sets]
    means, scales = np.zeros((2, *sizes)), np.zeros(sizes)
    means[:, place[0], place[1], place[2]], scales[place[0], place[1], place[2]] = mean, scale
    return means, scales


@dataclass(frozen=True, kw_only=True)
class BoxScan(ABC):
    """A search of boxes for the largest margin."""

    family: Family
    tolerance: float  # how far off a probability may be
    sides: tuple[int, ...]  # 0: more events than predicted; 1: fewer

    @cached_property
    def needed(self) -> Floats:
        """The score that each box needs: the normal quantile at its share of a level, two-sided."""
        from scipy.special import ndtri

        return np.asarray(-ndtri(REFERENCE / 2.0 * self.family.weight))

    @property
    @abstractmethod
    def scores(self) -> Floats:
        """The score of each box, shape (2, boxes): of more events than predicted, and of fewer."""

    @property
    @abstractmethod
    def margins(self) -> Floats:
        """The margin of each box, shape (2, boxes), by the arithmetic of the kernel."""

    @property
    @abstractmethod
    def sums(self) -> tuple[Floats, Floats, Floats]:
        """The weight of each box, its weighted events and its weighted scores."""

    def of_family(self, box: int, side: int) -> ScanResult:
        """A box of the family as it was found."""
        mass, events, expected = (float(v[box]) for v in self.sums)
        return ScanResult(
            score=float(self.scores[side, box]),
            margin=float(self.margins[side, box]),
            side=side,
            box=box,
            rows=float(self.family.rows[box]),
            mass=mass,
            events=events,
            expected=expected,
        )

    def best(self) -> ScanResult:
        """The box of the largest margin."""
        own = self.margins[list(self.sides)]
        side, box = np.unravel_index(int(np.argmax(own)), own.shape)
        return self.of_family(int(box), self.sides[int(side)])

    def by_order(self) -> tuple[float, ...]:
        """The largest score of the boxes of one attribute, of two, and of three where there are any."""
        attributes = np.array([len(c) for c in self.family.combined])[self.family.table]
        largest = self.scores[list(self.sides)].max(axis=0)
        return tuple(float(largest[attributes == k].max()) for k in (1, 2, 3) if (attributes == k).any())


@dataclass(frozen=True, kw_only=True)
class Scan(BoxScan):
    """What is searched where rows are independent and count alike."""

    # Each of shape (cells of each attribute, 4): rows, events, scores and null variances of each cell, as the family
    # was made of.
    tables: Sequence[Ints]
    # Of each attribute, the cells that stand for levels of a category; none of a number.
    levels: tuple[tuple[int, ...], ...]
    fewest: float  # rows that a box must have
    extra: float = EXTRA  # what is added to the null variance
    # Look for the best subset of a category's levels too. Its score may fall where one outcome becomes an event, so
    # that only a null of one law, that every score is right, may simulate it.
    subsets: bool = True

    # ---- The data ----

    @cached_property
    def _spread(self) -> Floats:
        return np.sqrt(self.family.variance + self.extra)

    @cached_property
    def _limits(self) -> Floats:
        """Events of each box beyond which its margin is above zero, shape (2, boxes): too many, and too few."""
        f = self.family
        reach = self.tolerance * f.rows + self.needed * self._spread
        return np.stack([f.expected + reach, f.expected - reach])

    @cached_property
    def scores(self) -> Floats:
        f = self.family
        beyond, allowed = f.events - f.expected, self.tolerance * f.rows
        return np.stack([beyond - allowed, -beyond - allowed]) / self._spread

    @cached_property
    def margins(self) -> Floats:
        events, scale = self.family.events, 1.0 / self._spread
        return np.stack([scale * (events - self._limits[0]), scale * (self._limits[1] - events)])

    def best(self) -> ScanResult:
        """The box of the largest margin; a subset of levels only where it beats every box of the family."""
        result = super().best()
        for table in self._tables:
            for category, s in product(table.within, self.sides):
                floor = np.full((2, 1), result.margin + table.needed)
                peak = float(self._subset_peaks(category, s, category.sums[:, EVENTS, None], floor)[s, 0])
                if peak - table.needed > result.margin:
                    result = self._of_subset(category, s, peak, peak - table.needed)
        return result

    @property
    def sums(self) -> tuple[Floats, Floats, Floats]:
        return self.family.rows, self.family.events, self.family.expected

    def _of_subset(self, w: _Within, side: int, score: float, margin: float) -> ScanResult:
        """The subset of levels that has the largest score of all."""
        expected, variance, rows = w.levels(self._gap(side)).T
        residual = (w.sums[:, EVENTS] - expected) * (1 if side == UP else -1)
        usable = np.flatnonzero(variance > 0)
        order = usable[np.argsort(-residual[usable] / variance[usable], kind="stable")][:-1]
        z = np.cumsum(residual[order]) / np.sqrt(np.cumsum(variance[order]) + self.extra)
        allowed = np.cumsum(rows[order]) >= self.fewest
        taken = np.sort(order[: int(np.argmax(np.where(allowed, z, -np.inf))) + 1])
        sums = w.sums[taken].sum(axis=0)
        levels = tuple(w.subset.levels[i] for i in taken)
        return ScanResult(
            score=score,
            margin=margin,
            side=side,
            box=Subset(category=w.subset.category, levels=levels, other=w.subset.other, within=w.subset.within),
            rows=float(sums[ROWS]),
            mass=float(sums[ROWS]),
            events=float(sums[EVENTS]),
            expected=float(sums[SCORES] / STEPS),
        )

    # ---- Outcomes simulated at the edge of the tolerance ----

    def simulated(self, cells: Cells, p: Floats, ids: Ids, draws: int) -> Floats:
        """The largest margin in each of so many simulated sets of outcomes.

        The outcome of a row is ``U < min(p + tolerance, 1)`` where more events are looked for, and ``U < max(p -
        tolerance, 0)`` where fewer are, U being one uniform number a row and draw.

        `cells` (attributes, n). `p` (n,). `ids` (n,): row identities, which the draws depend on. The result has shape
        (draws,).
        """
        # Outcomes as bits, 64 draws a word: at each edge from the same number, or once where the edges are one.
        low, high = np.maximum(p - self.tolerance, 0.0), np.minimum(p + self.tolerance, 1.0)
        turns = range(0, draws, LANES)
        edges = self.sides if self.tolerance else self.sides[:1]
        bits = {edge: np.empty((len(p), len(turns)), dtype=np.uint64) for edge in edges}
        for turn, first in enumerate(turns):
            drawn = words(ids, low, high, first, SALT)
            for edge, own in bits.items():
                own[:, turn] = drawn[:, 1 - edge]
        return self.largest(cells, bits)[:draws]

    def largest(self, cells: Cells, bits: Mapping[int, Ids], tables: Sequence[int] | None = None) -> Floats:
        """The largest margin in each of several sets of outcomes, of all tables or of some.

        `bits`: outcomes of the rows, 64 sets a word, shape (n, words), at each edge, or at one where both are one. The
        result has shape (64 words,).
        """
        # (1) Table by table: rows cell by cell, events of each cell in each draw, the largest margin of its boxes.
        best = np.full((2, next(iter(bits.values())).shape[1] * LANES), -np.inf)
        for table in self._tables if tables is None else [self._tables[t] for t in tables]:
            order, starts = _sorted_cells(cells[list(table.attributes)], table.shape)
            for edge, own in bits.items():
                events = lane_sums(own.T, order, starts).reshape(*table.shape, -1)
                peaks = table.peaks(events)
                for w in table.within:
                    floor = np.maximum(peaks, best) + table.needed
                    peaks = np.maximum(
                        peaks, self._subset_peaks(w, edge, w.events(events[:, :, 0]), floor) - table.needed
                    )
                looked = [edge] if self.tolerance else [UP, DOWN]
                best[looked] = np.maximum(best[looked], peaks[looked])
        # (2) The largest over tables and sides.
        return best[list(self.sides)].max(axis=0)

    def _subset_peaks(self, w: _Within, edge: int, events: NDArray[Any], floor: Floats) -> Floats:
        """The largest scores of subsets of levels in each draw, given the events of the levels.

        Of those over a floor, shape (2, draws), less what rounding may take: others change no maximum.
        """
        peaks = floor - ROUNDING
        subset_peaks(events, w.levels(self._gap(edge)), self.extra, self.fewest, peaks)
        return peaks

    def _gap(self, side: int) -> float:
        return self.tolerance if side == UP else -self.tolerance

    @cached_property
    def _tables(self) -> list[Table]:
        f = self.family
        first = np.searchsorted(f.table, np.arange(len(f.combined) + 1))
        out = []
        for t, attributes in enumerate(f.combined):
            sets = [f.sets[own] for own in attributes] + [ALL] * (3 - len(attributes))
            boxes = slice(first[t], first[t + 1])
            place = np.maximum(f.place[boxes], 0).T
            mean, scale = placed(sets, tuple(place), self._limits[:, boxes], 1.0 / self._spread[boxes])
            needed = self.needed[boxes] if first[t] < first[t + 1] else self.needed
            out.append(
                Table(
                    attributes=attributes,
                    shape=(*self.tables[t].shape[:-1], 1, 1)[:3],
                    sets=(sets[0], sets[1], sets[2]),
                    mean=mean,
                    scale=scale,
                    needed=float(needed.max()),
                    within=tuple(self._subsets(t)) if self.subsets and len(attributes) < 3 else (),
                )
            )
        return out

    def _subsets(self, table: int) -> Iterator[_Within]:
        """Yield a table's categories: of one attribute alone, of two within each run or level that has rows enough."""
        f, sums, attributes = self.family, self.tables[table], self.family.combined[table]
        for axis, category in enumerate(attributes):
            levels = self.levels[category]
            other = attributes[1 - axis] if len(attributes) > 1 else None
            if not levels:
                continue
            for own in ALL if other is None else f.sets[other][f.sets[other][:, 2] == f.sets[other][:, 3]]:
                inside = contracted(sums[:, None] if other is None else sums, 1 - axis, own)
                rows, named = int(inside[:, ROWS].sum()), inside[list(levels)]
                # of two levels every subset is one level; within a set of all rows the category is alone
                if (named[:, VARIANCES] > 0).sum() > 2 and rows >= self.fewest and (rows < f.n or other is None):
                    whole = Subset(category=category, levels=levels, other=other, within=own)
                    yield _Within(axis=axis, subset=whole, sums=named)


def _sorted_cells(cells: Cells, shape: Sequence[int]) -> tuple[NDArray[np.intp], Ints]:
    """Rows cell by cell of a table, and where each cell begins."""
    code = np.zeros(cells.shape[1], dtype=np.uint16)  # 22 cells each: under 2^14 of three attributes
    for own, size in zip(cells, shape, strict=False):
        code = code * np.uint16(size) + own
    order = np.argsort(code, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(code, minlength=int(np.prod(shape))))])
    return order, starts


def bound(scan: Scan) -> tuple[float, ScanResult]:
    """The p-value of the family without simulation, and the box that it comes from.

    Each box's exact binomial tail at the edge of the tolerance, over the box's share of alpha. The binomial tail at the
    mean rate bounds that of unequal rates (Hoeffding 1956).
    """
    f = scan.family
    low = np.maximum(f.expected / f.rows - scan.tolerance, 0.0)
    high = np.minimum((f.expected / f.rows + 1.0 / STEPS) + scan.tolerance, 1.0)  # scores are read rounded down
    tails = np.stack([rate_evidence(f.events, f.rows, high), rate_evidence(f.rows - f.events, f.rows, 1.0 - low)])
    level = len(scan.sides) * tails[list(scan.sides)] / f.weight
    side, box = np.unravel_index(int(np.argmin(level)), level.shape)
    return min(1.0, float(level[side, box])), scan.of_family(int(box), scan.sides[int(side)])


# ---- What is left once some people are taken out ----

NEARLY = 3.0  # of the evidence: a box twenty times less likely is still nearly as good, if it is simpler
FAR = 3.0  # squared, in null standard deviations: nearer, even no case at all has a probability of over 0.03


def sums_in(family: Family, tables: Sequence[Ints]) -> Ints:
    """The sums of every box of a family, from tables of some rows, shape (4, boxes)."""
    out = np.empty((4, family.size), dtype=tables[0].dtype)
    for same_cuts in family.same_cuts:
        result = sums_of(np.stack([tables[t] for t in same_cuts.tables]), same_cuts.sets, 1)
        out[:, same_cuts.boxes] = result.reshape(-1, 4)[same_cuts.at].T
    return out


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left of the boxes of a family."""

    weight: Floats  # shape (boxes,): share of alpha of each box
    # `rows`, `events` and `expected`, shape (boxes,): of the people left.
    rows: Floats
    events: Floats
    expected: Floats
    variance: Floats  # shape (boxes,): null variance of the events left
    noise: Floats  # shape (boxes,): what is added to it where the people taken out were counted in a sample

    @classmethod
    def of(cls, family: Family, sums: Ints | Floats) -> Left:
        """What some rows hold of the boxes of a family, given their sums in each, shape (4, boxes)."""
        return cls(
            weight=family.weight,
            rows=sums[ROWS].astype(np.float64),
            events=sums[EVENTS].astype(np.float64),
            expected=sums[SCORES] / STEPS,
            variance=sums[VARIANCES] / STEPS,
            noise=np.zeros(family.size),
        )

    def without(self, taken: Ints, times: float = 1.0) -> Left:
        """Take people out.

        `taken` (4, boxes): sums over these people in every box; of those in a sample, if there is only one. `times`:
        for how many rows each of the sample stands.

        With ``S`` the residual of a box, ``T`` that of the people taken and ``t`` that of those of them in the sample,
        ``S - times t`` has the mean of ``S - T``, and the null variance of ``S - T`` plus ``times (times - 1)`` that
        of ``t``: those of the sample count ``times - 1`` too often, the others once.
        """
        variance = taken[VARIANCES] * (times / STEPS)
        return Left(
            weight=self.weight,
            rows=np.maximum(self.rows - taken[ROWS] * times, 0.0),
            events=np.maximum(self.events - taken[EVENTS] * times, 0.0),
            expected=np.maximum(self.expected - taken[SCORES] * (times / STEPS), 0.0),
            variance=np.maximum(self.variance - variance, 0.0),
            noise=np.maximum(self.noise + (times - 1.0) * variance, 0.0),
        )

    def noisier(self, times: Floats) -> Left:
        """The same with so many times the null variance, at least once: of clusters, whose rows are alike."""
        return replace(self, noise=self.noise + (np.maximum(times, 1.0) - 1.0) * self.variance)

    @cached_property
    def residual(self) -> Floats:
        """Events beyond those expected."""
        return self.events - self.expected

    @cached_property
    def score(self) -> Floats:
        """The scan's statistic: the residual in null standard deviations, in which a few events count for less."""
        out: Floats = np.abs(self.residual) / np.sqrt(self.variance + self.noise + EXTRA)
        return out

    def gap(self, box: int) -> float:
        """The observed minus the predicted rate of those left in a box."""
        return float(self.residual[box] / self.rows[box])

    def beyond_chance(self, alpha: float, among: Flags) -> Flags:
        """Which boxes are further off than any would be by chance: by exact tails, at shares of alpha."""
        # (1) No tail is so small that is nearer to what is expected.
        spread = self.variance + self.noise
        far = (np.abs(self.residual) >= 1.0) & (self.residual**2 >= FAR * spread)
        boxes = np.flatnonzero(among & far & (self.rows > 0.0))
        # (2) The tail on the side where a box errs; the noise of a sample is that of so many fewer rows.
        part = np.divide(self.variance[boxes], spread[boxes], out=np.ones(len(boxes)), where=spread[boxes] > 0.0)
        rows, events = part * self.rows[boxes], part * self.events[boxes]
        more = self.residual[boxes] > 0.0
        score = self.expected[boxes] / self.rows[boxes] + more / STEPS  # scores are read rounded down
        tail = rate_evidence(np.where(more, events, rows - events), rows, np.where(more, score, 1.0 - score))
        out = np.zeros(len(self.weight), dtype=bool)
        out[boxes] = tail <= alpha / 2.0 * self.weight[boxes]
        return out


def nearly_best(score: Floats, weight: Floats, among: Flags) -> Ints:
    """The box with the most evidence and, before it, simpler ones with nearly as much, the simplest first.

    Evidence is about the log likelihood ratio of an error, half the squared score, plus the log of the share of alpha.
    Simpler is what has a larger share: fewer attributes, then fewer conditions.
    """
    boxes = np.flatnonzero(among)
    if not len(boxes):
        return boxes
    evidence = score[boxes] ** 2 / 2.0 + np.log(weight[boxes])
    near = np.flatnonzero(evidence >= evidence.max() - NEARLY)
    ordered = near[np.lexsort((-evidence[near], -weight[boxes[near]]))]
    return boxes[ordered[: int(np.argmax(evidence[ordered])) + 1]]


def both(left: Left, full: Left) -> tuple[Floats, Flags]:
    """How far off boxes are at least, of those left and of all their people, and which may be reported next.

    One that lost half of its people was reported in part; one that errs on the other side as a whole would be misread.
    """
    same = left.residual * full.residual > 0.0
    return np.minimum(left.score, full.score), same & (2.0 * left.rows > full.rows)
