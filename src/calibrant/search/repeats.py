"""The whole search, from fits to peaks, on the data and on many simulated data sets at once.

Plain arrays serve up to `SMALL` rows, kernels beyond; both do the same. Every row is predicted from the other folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.draws import LANES, Bars, Draws, Ids, Refits, Tables, refit_peaks, table_sums
from calibrant.kernels.runtime import one_thread
from calibrant.search.corners import CORNERS, PART, STEPS, Codes, Cuts, Overlaps, Singles, Sum, boosted
from calibrant.search.detectors import DetectorInputs, Fits
from calibrant.search.models import Floats, Rows
from calibrant.search.products import Products, log_factor, pooled, standardised
from calibrant.stats.cusum import EVENTS, SHARE, Path, beyond, by_variable

LEVELS = 512  # of predicted residuals, from none to the most they can be: rows of one level are taken together
SMALL = 4_000  # rows up to which compiling costs more than it spares
VALUES = 1 << 20  # rows times data sets that are looked at together, for memory
FEWEST = EVENTS * (1.0 - SHARE)  # null variance from which on a level is looked at
MOST = 512  # data sets looked at together; 64 at first, as ten of them often decide


class SearchResult(NamedTuple):
    """What the search finds in the data: each model's peak, its path, the fits that predict the rows, and sums."""

    peaks: Floats
    paths: tuple[Path, ...]
    fits: Fits
    sums: Singles  # shape (1, m): weighted residuals in each step and corner


class Batch(NamedTuple):
    """What the search finds in several simulated data sets."""

    peaks: Floats  # shape (sets, models)
    refits: Refits
    sums: Singles  # shape (sets, m): weighted residuals in each step and corner


@dataclass(frozen=True, eq=False)
class Repeats:
    """The search over steps and corners of one question, whatever the outcomes."""

    q: DetectorInputs  # without clusters; one-sided, or of tolerance 0
    salt: int  # of simulated outcomes

    # ---- Fixed before any outcome is seen; rows stand in the order of their folds ----

    @cached_property
    def order(self) -> Rows:
        """Rows by fold."""
        return np.argsort(self.q.fold, kind="stable")

    @cached_property
    def ends(self) -> Rows:
        """Where each fold starts, and the last ends."""
        result: Rows = np.searchsorted(self.q.fold[self.order], np.arange(self.q.settings.folds + 1))
        return result

    @cached_property
    def folds(self) -> tuple[slice, ...]:
        """The rows of each fold."""
        return tuple(slice(int(a), int(b)) for a, b in zip(self.ends[:-1], self.ends[1:], strict=True))

    @cached_property
    def p(self) -> Floats:
        """Scores."""
        return self.q.edge.p[self.order]

    @cached_property
    def bars(self) -> Bars:
        """What a prediction must exceed, the rate of simulated outcomes, the weight."""
        edge, side = self.q.edge.rows(self.order), self.q.settings.alternative
        never = np.full(self.q.n, np.inf)
        above = never if side == "less" else np.where(edge.high < 1.0, edge.high - edge.p, np.inf)
        below = never if side == "greater" else np.where(edge.low > 0.0, edge.p - edge.low, np.inf)
        return Bars(above, below, edge.low if side == "less" else edge.high, self.q.sample.mass_of(self.order))

    @cached_property
    def _open(self) -> bool:
        """Whether any prediction, up or down, is past every bar."""
        return not (self.bars.above.any() or self.bars.below.any())

    @cached_property
    def cuts(self) -> Cuts:
        """Steps and corners."""
        return Cuts.of(self.q.sample.x)

    @cached_property
    def codes(self) -> Codes:
        """Places of the rows among the cuts, shape (columns, n)."""
        flat = self.q.sample.x.flat
        return np.hstack([self.cuts.codes(flat[self.order[i : i + PART]]) for i in range(0, self.q.n, PART)])

    @cached_property
    def overlaps(self) -> Overlaps:
        """How steps and corners overlap, in as many rows as a fit sees."""
        weight = self._added(self.bars.weight)  # in each step and corner, of all rows
        return Overlaps.of(self.cuts, self.codes, self.bars.weight, weight * (1.0 - 1.0 / len(self.folds)))

    def _added(self, values: Floats) -> Floats:
        """The sum of some values, a number a row, in each step and corner."""
        if self.few:
            own = zip(self.folds, self._member, strict=True)
            parts = [kept @ values[rows].astype(np.float32) for rows, kept in own]
            return np.asarray(np.sum(parts, axis=0), dtype=np.float64)
        return np.asarray(self._corners(self._in_cells(values, slice(None)))[0], dtype=np.float64)

    @cached_property
    def products(self) -> Products | None:
        """Products of three columns that are tested; None where none is."""
        return Products.chosen(self.q, self.order)

    @property
    def least(self) -> float:
        """Weight that a group must have."""
        return (self.q.settings.min_size - SHARE) * self.q.n

    # ---- One data set ----

    def result(self) -> SearchResult:
        """Search the data themselves."""
        y = self.q.sample.y
        bits = (y[self.order] > 0).astype(np.uint8)
        with one_thread():
            sums = self._sums_few(bits[None]) if self.few else self._sums_one(bits)
            refits = self._fitted(sums)
        fits, stated, tops = self.fits(refits), self._stated(refits, 0), refits.tops()[0]
        paths = tuple(self._path(v, top) for v, top in zip(stated, tops, strict=True))
        peaks = np.array([max(0.0, float(np.nanmax(v.curve(y), initial=0.0))) for v in paths])
        return SearchResult(peaks, paths, fits, sums.sum(axis=0))

    def path(self, refits: Refits, b: int, model: int) -> Path:
        """The path that one model makes in one of several data sets."""
        return self._path(self._stated(refits, b)[model], refits.tops()[b, model])

    def fits(self, refits: Refits) -> Fits:
        """The fits to the first data set."""
        fitted = tuple(self._fold_fits(refits, f, 0) for f in range(len(self.folds)))
        return Fits(pool=CORNERS, fitted=fitted, part=self.q.fold)

    def _fold_fits(self, refits: Refits, f: int, b: int) -> tuple[Sum, Sum]:
        bounds, far, k = refits.bounds[f, b], refits.size[f, b], refits.second
        return Sum(self.cuts, bounds[:k], far[:k]), Sum(self.cuts, bounds[k:], far[k:])

    def _stated(self, refits: Refits, b: int) -> Singles:
        """What the models of one data set predict, shape (models, n)."""
        predicted = np.empty((3, self.q.n), dtype=np.float32)
        for f, rows in enumerate(self.folds):
            for m, one in enumerate(self._fold_fits(refits, f, b)):
                predicted[m, rows] = one.add_up(self.codes[:, rows])
        predicted[2] = np.float32(0.5) * predicted[0] + np.float32(0.5) * predicted[1]
        return predicted

    def _path(self, stated: Singles, top: float) -> Path:
        """The path of a model's predictions, cut into levels as everywhere here."""
        s, g = self.q.settings, np.empty(self.q.n)
        g[self.order] = stated
        excess, upper = beyond(g, self.q.edge, s.alternative)
        level = np.minimum((excess * (LEVELS / top)).astype(np.int64), LEVELS - 1)
        excess = np.where(excess > 0.0, (level + 0.5) / LEVELS * top, 0.0)
        return by_variable((excess, upper), self.q.edge, s.detector, self.q.sample.mass, s.min_size)

    # ---- Simulated data sets ----

    def simulated(self, most: int) -> Iterator[Batch]:
        """Yield what the search finds in simulated data sets, in batches."""
        first, size = 0, min(LANES, most)
        while first < most:
            if self.few:
                yield self.of_few(self.outcomes(first, size))
            else:
                drawn = self.q.simulated_words(self.order, self.bars.rate, first, self.salt)
                yield self.of_many(drawn, size)
            first += size
            size = min(max(2 * size, VALUES // self.q.n), MOST) if self.few else LANES
            size = min(size, most - first)

    @property
    def few(self) -> bool:
        """Whether plain arrays serve."""
        return self.q.n <= SMALL

    def outcomes(self, first: int, count: int) -> NDArray[np.uint8]:
        """Simulated outcomes, shape (sets, n)."""
        return np.ascontiguousarray(self.q.simulated(self.order, self.bars.rate, Draws(first, count, self.salt)).T)

    def drawn(self, draw: int) -> Floats:
        """One simulated data set, rows in the question's order."""
        y = np.empty(self.q.n)
        y[self.order] = self.outcomes(draw, 1)[0]
        return y

    def of_few(self, y: NDArray[np.uint8]) -> Batch:
        """The peaks of data sets of few rows, outcomes of shape (sets, n), and their fits."""
        with one_thread():
            sums = self._sums_few(y)
            chosen, far = self._chosen(sums)
        predicted = np.zeros((2, *y.shape), dtype=np.float32)
        for f, (rows, kept) in enumerate(zip(self.folds, self._member, strict=True)):
            for s in range(sum(STEPS)):
                predicted[int(s >= STEPS[0]), :, rows] += far[f, :, s, None] * kept[chosen[f, :, s]]
        refits = Refits(self.cuts.rules[chosen], far, STEPS[0])
        every = (*predicted, np.float32(0.5) * predicted[0] + np.float32(0.5) * predicted[1])
        residual = (y - self.bars.rate) * self.bars.weight
        peaks = np.stack([self._peaks(*v, residual) for v in zip(every, refits.tops().T, strict=True)], axis=1)
        return Batch(peaks, refits, sums.sum(axis=0))

    def of_many(self, bits: Ids, count: int) -> Batch:
        """The peaks of up to 64 data sets of many rows, outcomes as bits, and their fits."""
        with one_thread():
            sums = self._sums_many(bits, count)
            refits = self._fitted(sums)
        peaks = refit_peaks(bits, self.codes, self.ends, refits, self.bars, (LEVELS, self.least, FEWEST))
        return Batch(peaks, refits, sums.sum(axis=0))

    # ---- The mean Bayes factor over steps, corners and products ----

    def factors(self, products: Products, sums: Singles) -> tuple[Floats, dict[str, Any]]:
        """The logarithm of the mean Bayes factor, shape (sets,), and what is reported of it in the data.

        `sums` (sets, m): weighted residuals in each step and corner, the data's first, then the first draws'.
        """
        scores = products.scores(self.q, self.order, len(sums) - 1, self.salt)
        mean, largest = self.evidence(sums, scores)
        return mean, products.facts(self.q, scores, largest)

    def evidence(self, sums: Singles, scores: Singles) -> tuple[Floats, str]:
        """The logarithm of the mean Bayes factor, shape (sets,), and which features it is due to in the first set.

        `sums` (sets, m): weighted residuals in each step and corner. `scores` (products, sets).
        """
        spread, w = self.p * (1.0 - self.p), self.bars.weight
        squares, fourths = (self._added(w**k * spread) for k in (2, 4))
        # but the first, which holds every row
        boxes = {"steps": slice(1, self.cuts.alone), "corners": slice(self.cuts.alone, None)}
        z = {name: standardised(sums[:, at].T, squares[at], fourths[at]) for name, at in boxes.items()}
        return pooled({name: log_factor(one) for name, one in {**z, "products": scores}.items()})

    def _fitted(self, sums: Singles) -> Refits:
        chosen, far = self._chosen(sums)
        return Refits(self.cuts.rules[chosen], far, STEPS[0])

    def _chosen(self, sums: Singles) -> tuple[Rows, Singles]:
        """Rules and sizes of both learners fitted to the other folds, each of shape (folds, sets, steps)."""
        chosen, far = [], []
        for f in range(len(sums)):
            left = np.delete(sums, f, axis=0).sum(axis=0)  # not all less its own, whose rounding would stay
            one = boosted(left, self.overlaps, self.cuts.alone, STEPS[0])
            other = boosted(left, self.overlaps, len(self.cuts.rules), STEPS[1])
            chosen.append(np.hstack([one[0], other[0]]))
            far.append(np.hstack([one[1], other[1]]))
        return np.stack(chosen), np.stack(far)

    # ---- Sums of residuals in steps and corners, by fold ----

    @cached_property
    def _member(self) -> list[Singles]:
        return [self.cuts.member(self.codes[:, rows]) for rows in self.folds]

    def _sums_few(self, y: NDArray[np.uint8]) -> Singles:
        """Add up so that the number of data sets makes no difference, not even of rounding: counts are exact."""
        out = []
        for rows, kept, expected in zip(self.folds, self._member, self._expected_few, strict=True):
            events = self.q.sample.added(y[:, rows], kept, self.order[rows])
            out.append((events - expected).astype(np.float32))
        return np.stack(out)

    @cached_property
    def _expected_few(self) -> list[Floats]:
        expected = self.p * self.bars.weight
        return [kept.astype(np.float64) @ expected[rows] for rows, kept in zip(self.folds, self._member, strict=True)]

    def _sums_many(self, bits: Ids, count: int) -> Singles:
        """Add up outcomes of data sets in tables of two columns, and those to residuals in steps and corners."""
        (tables, cells), weight = self._tables, self.q.sample.weights_of
        each = (
            table_sums(bits[rows], weight(self.order[rows]), self._both[rows], tables, cells)[:, :count]
            for rows in self.folds
        )
        return self._residuals(each)

    def _sums_one(self, y: NDArray[np.uint8]) -> Singles:
        """The same of one data set."""
        return self._residuals(self._in_cells(y[rows] * self.bars.weight[rows], rows) for rows in self.folds)

    def _residuals(self, events: Iterable[Floats]) -> Singles:
        return np.stack([self._corners(own - less) for own, less in zip(events, self._expected, strict=True)])

    def _in_cells(self, values: Floats, rows: slice) -> Floats:
        """Sums of values of some rows in the cells of the tables, shape (cells, 1)."""
        (tables, cells), codes = self._tables, self._both[rows]
        out = np.empty((cells, 1))
        for first, second, start, width, stop in zip(*tables, np.append(tables.start[1:], cells), strict=True):
            at = codes[:, first] * width + codes[:, second]
            out[start:stop, 0] = np.bincount(at, values, stop - start)
        return out

    @cached_property
    def _both(self) -> Codes:
        """Codes among all cuts of a column, then among those of corners, shape (n, 2 columns)."""
        coarse = [np.searchsorted(at, c).astype(np.uint8) for at, c in zip(self.cuts.coarse, self.codes, strict=True)]
        return np.ascontiguousarray(np.concatenate([self.codes, np.stack(coarse)]).T)

    @cached_property
    def _expected(self) -> list[Floats]:
        return [self._in_cells(self.bars.weight[rows] * self.p[rows], rows) for rows in self.folds]

    @cached_property
    def _tables(self) -> tuple[Tables, int]:
        """The tables, one a column along all its cuts, one a pair along those of corners, and their cells."""
        columns, (high, wide) = len(self.cuts.knots), self._shapes
        starts = np.cumsum(np.append(0, high * wide))
        first = np.concatenate([np.arange(columns), columns + self.cuts.pairs[:, 0]])
        second = np.concatenate([np.arange(columns), columns + self.cuts.pairs[:, 1]])
        return Tables(first, second, starts[:-1], np.where(np.arange(len(wide)) < columns, 0, wide)), int(starts[-1])

    @property
    def _shapes(self) -> tuple[Rows, Rows]:
        """Rows and columns of each table."""
        own, sides = (np.array([len(at) + 1 for at in cuts]) for cuts in (self.cuts.knots, self.cuts.coarse))
        one, other = self.cuts.pairs.T
        return np.concatenate([np.ones_like(own), sides[one]]), np.concatenate([own, sides[other]])

    def _corners(self, cells: Floats) -> Singles:
        """The sums in steps and corners, shape (data sets, m), from those in cells."""
        (tables, _), (high, wide), columns = self._tables, self._shapes, len(self.cuts.knots)
        sets = cells.shape[1]
        out = np.empty((len(self.cuts.rules), sets), dtype=np.float32)
        out[0] = cells[: wide[0]].sum(axis=0)
        pair = np.arange(len(wide)) >= columns
        # a column has a step above each cut; a pair a corner for each two sides, above and up to each cut
        first = 1 + np.cumsum(sizes := np.where(pair, 4 * (high - 1) * (wide - 1), wide - 1)) - sizes
        for kind in {*zip(pair.tolist(), high.tolist(), wide.tolist(), strict=True)}:  # all tables of a shape at once
            corner, a, b = kind
            own = np.flatnonzero((pair == corner) & (high == a) & (wide == b))
            block = cells[tables.start[own, None] + np.arange(a * b)].reshape(len(own), a, b, sets)
            sums = _sides(_sides(block, 1), 2) if corner else _sides(block, 2)[:, :, : b - 1]
            out[first[own, None] + np.arange(sizes[own[0]])] = sums.reshape(len(own), sizes[own[0]], sets)
        return out.T

    # ---- Peaks over levels ----

    def _peaks(self, stated: Singles, tops: Floats, residual: Floats) -> Floats:
        """The peak of each data set: `kernels.draws.refit_peaks` in plain NumPy."""
        sets, per = len(stated), (LEVELS / tops)[:, None]
        if self._open:
            excess, signed = np.abs(stated), np.where(stated > 0.0, residual, -residual)
        else:
            up, down = stated - self.bars.above, -stated - self.bars.below
            excess, signed = np.maximum(up, down), np.where(up > down, residual, -residual)
        level = np.minimum(np.maximum(excess, 0.0) * per, LEVELS - 1).astype(np.int64)
        at = np.arange(1, sets + 1)[:, None] * LEVELS - 1 - level
        at[excess <= 0.0] = sets * LEVELS
        rate, w = self.bars.rate, self.bars.weight
        spread = rate * (1.0 - rate)

        def added(values: Floats) -> Floats:
            weights = np.broadcast_to(values, at.shape).ravel()
            each = np.bincount(at.ravel(), weights=weights, minlength=sets * LEVELS + 1)
            return np.asarray(each[:-1], dtype=np.float64).reshape(sets, LEVELS)

        h = (np.arange(LEVELS)[::-1] + 0.5) / LEVELS
        scores = np.cumsum(h * added(signed), axis=1)
        events = added(spread)
        plain = self.q.sample.weights is None
        seen = np.cumsum(h**2 * (events if plain else added(w**2 * spread)), axis=1)
        ready = (np.cumsum(events, axis=1) >= FEWEST) & (seen > 0.0)
        if self.q.settings.min_size > 0.0:
            ready &= np.cumsum(added(w), axis=1) >= self.least
        scale = np.where(ready, seen * seen[:, -1:], 1.0) ** -0.25
        peaks: Floats = np.where(ready, scores * scale, 0.0).max(axis=1, initial=0.0)
        return peaks


def _sides(block: Floats, axis: int) -> Floats:
    """Sums above each cut along an axis, then those up to it."""
    up_to = np.cumsum(block, axis=axis)
    cuts = block.shape[axis] - 1
    some, every = up_to.take(range(cuts), axis=axis), up_to.take([cuts], axis=axis)
    return np.concatenate([every - some, some], axis=axis)
