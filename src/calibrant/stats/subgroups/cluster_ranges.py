r"""Certified ranges of the gaps of boxes, of rows that are in clusters or weighted.

The *gap* of a box is ``sum w (eta - p) / sum w`` over its rows, eta the event rate of each row given scores, covariates
and weights of everyone. Clusters are independent; rows of a cluster need not be. With ``t_g`` and ``W_g`` the cluster's
sums of ``w (y - p)`` and w in the box, and a bet kappa that no outcome changes, ``prod_g (1 + kappa (t_g - m W_g))``
has mean at most one where the gap is at most m: its factors' means, less one, add up to nothing or less. The bound
where it reaches ``1 / delta`` is the box's low end; that of ``1 - y`` with ``1 - p`` its high one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.boxes import BOX_PARTS, CLUSTERS, CROSS, INSIDE, LARGEST, MOST_P, MOST_Q, SPREAD, SQUARE
from calibrant.kernels.boxes import cluster_boxes as boxes_of
from calibrant.stats.betting import log_curvature
from calibrant.stats.cells import summed
from calibrant.stats.evidence import FAR, limit_of, log_mean_exp
from calibrant.stats.subgroups.family import Family, sums_of

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOSS = 0.9  # of what there is, that a bet may lose on one cluster of a box with no gap
BETS = 4  # of each box: the best one if rows are independent, if those of a cluster are all alike, and between
EXACT = 200  # boxes at most whose ends are solved for, those that quick bounds put first; of others the bounds count
HALVINGS = 40  # of [-1, 1]
FEWEST = 20  # clusters in a box, and in the rest
TINY = 1e-300


@dataclass(frozen=True, kw_only=True)
class ClusterRows:
    """Rows in the order of their clusters."""

    cells: NDArray[np.uint8]  # shape (attributes, n)
    cluster: Ints  # shape (n,): from 0, without gaps, increasing
    p: Floats  # shape (n,)
    y: NDArray[np.int8]  # shape (n,)
    weight: Floats  # shape (n,): positive

    @property
    def count(self) -> int:
        """Clusters."""
        return int(self.cluster[-1]) + 1

    @cached_property
    def starts(self) -> Ints:
        """Where clusters begin, and the last ends."""
        return np.searchsorted(self.cluster, np.arange(self.count + 1))

    @cached_property
    def parts(self) -> Floats:
        """One, weight, weighted residual and weighted score of each row."""
        w = self.weight
        return np.stack([np.ones(len(w)), w, w * (self.y - self.p), w * self.p], axis=1)


@dataclass(frozen=True, kw_only=True)
class Side:
    """Boxes seen from one side: by residuals ``y - p``, or by those of ``1 - y`` with ``1 - p``."""

    # `gain` and `mass`, shape (boxes,): sums of the residuals t, and of the weights W.
    gain: Floats
    mass: Floats
    # `square`, `cross` and `spread`, shape (boxes,): sums over clusters of `t^2`, `t W` and `W^2`.
    square: Floats
    cross: Floats
    spread: Floats
    # `largest`, `loss` and `win`, shape (boxes,): of any cluster: weight, most that it can lose, most that it can win.
    largest: Floats
    loss: Floats
    win: Floats
    least: Floats  # shape (boxes,): what no gap is below: the mean score, with a minus

    def of(self, boxes: Ints) -> Side:
        """Some of the boxes."""
        return Side(**{k: getattr(self, k)[boxes] for k in self.__dataclass_fields__})

    def squared(self, mean: Floats) -> Floats:
        """``sum (t - m W)^2``."""
        out: Floats = np.maximum(self.square - 2.0 * mean * self.cross + mean**2 * self.spread, 0.0)
        return out

    def at_least(self, bets: Floats, mean: Floats) -> Floats:
        """A bound from below of the log evidence against "the gap is at most `mean`".

        ``ln(1 + z) >= z - psi(b) z^2`` for ``z >= -b``, psi as in Theorem CU.
        """
        b = bets * (self.loss + np.maximum(mean, 0.0) * self.largest)
        sound = b < 1.0
        psi = log_curvature(np.where(sound, b, 0.0))
        each = bets * (self.gain - mean * self.mass) - psi * bets**2 * self.squared(mean)
        each = np.where(sound, each, -np.inf)
        top = np.maximum(each.max(axis=0), -1e6)
        out: Floats = top + np.log(np.exp(each - top).sum(axis=0) + TINY) - np.log(BETS)
        return out

    def at_most(self, bets: Floats, mean: Floats) -> Floats:
        """A bound from above, for `mean` of at least 0: ``ln(1 + z) <= z - z^2 / (2 (1 + max z))``."""
        each = bets * (self.gain - mean * self.mass) - bets**2 * self.squared(mean) / (2.0 * (1.0 + bets * self.win))
        out: Floats = each.max(axis=0)
        return out


@dataclass(frozen=True, kw_only=True)
class ClusterRanges:
    """Ranges of the boxes of a family."""

    family: Family  # of boxes with clusters enough inside and outside; its events and scores are counted one a row
    rows: ClusterRows
    result: Floats  # shape (boxes, 8): from `cluster_boxes`
    sums: Floats  # shape (3, boxes): sums of w, `w (y - p)` and `w p`
    quiet: Floats  # shape (boxes,): null variance of the residuals if rows are independent: `sum w^2 p (1 - p)`

    @classmethod
    def of(cls, family: Family, rows: ClusterRows) -> ClusterRanges | None:
        """Look at a family of boxes; None if none has clusters enough."""
        result, sums = _result(family, rows)
        outside = rows.count - result[:, INSIDE]
        kept = (result[:, CLUSTERS] >= FEWEST) & (outside >= FEWEST)
        if not kept.any():
            return None
        return cls(family=family.kept(kept), rows=rows, result=result[kept], sums=sums[:3, kept], quiet=sums[3, kept])

    @property
    def count(self) -> int:
        """Clusters."""
        return self.rows.count

    @cached_property
    def gap(self) -> Floats:
        """Weighted mean residual of each box."""
        return self.sums[1] / self.sums[0]

    @cached_property
    def predicted(self) -> Floats:
        """Weighted mean score of each box."""
        return self.sums[2] / self.sums[0]

    @cached_property
    def error(self) -> Floats:
        """Standard errors of the gaps by clusters, never zero."""
        own = self._sides[0]
        soft = 0.25 * own.spread / self.result[:, CLUSTERS]
        return np.sqrt(own.squared(self.gap) + soft) / own.mass

    @property
    def times(self) -> Floats:
        return self.error**2 / np.maximum(self.quiet / self.sums[0] ** 2, 1e-300)

    def observed(self, box: int) -> float:
        return float(self.predicted[box]) + float(self.gap[box])

    def reported(self, box: int) -> Mapping[str, tuple[int, int]]:
        return {"clusters": (int(self.result[box, CLUSTERS]), self.count - int(self.result[box, INSIDE]))}

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        mass, gain, score = self.sums
        f = self.result
        same = {"mass": mass, "square": f[:, SQUARE], "spread": f[:, SPREAD], "largest": f[:, LARGEST]}
        losses = (f[:, MOST_P], f[:, MOST_Q]), (f[:, MOST_Q], f[:, MOST_P])
        means = score / mass, 1.0 - score / mass
        first, second = (
            Side(gain=sign * gain, cross=sign * f[:, CROSS], loss=loss, win=win, least=-mean, **same)
            for sign, (loss, win), mean in zip((1.0, -1.0), losses, means, strict=True)
        )
        return first, second

    def _bets(self, side: int, delta: Floats, boxes: Ints) -> Floats:
        """The bets of boxes, shape (bets, boxes): of covariates, scores and weights alone."""
        own = self._sides[side].of(boxes)
        mean = self.predicted[boxes]
        low = np.maximum(self.quiet[boxes], TINY)
        high = np.maximum(own.spread * mean * (1.0 - mean), low)
        ratio = (high / low) ** (np.arange(BETS) / (BETS - 1.0))[:, None]
        best = np.sqrt(2.0 * -np.log(delta) / (low * ratio))
        return np.minimum(best, LOSS / np.maximum(own.loss, TINY))

    # ---- One box ----

    def _clusters_in(self, box: int) -> tuple[Floats, Floats]:
        """The t and W of the clusters with rows in a box."""
        inside = np.flatnonzero(self.family.inside(box, self.rows.cells))
        cluster = self.rows.cluster[inside]
        number = np.cumsum(np.diff(cluster, prepend=-1) > 0) - 1
        return summed(number, self.rows.parts[inside, 2]), summed(number, self.rows.parts[inside, 1])

    def _log_evidence(self, box: int, side: int, delta: float) -> Callable[[float], float]:
        """The log evidence against "the gap seen from a side is at most m", which falls in m."""
        t, w = self._clusters_in(box)
        t = t if side == 0 else -t
        own = self._sides[side].of(np.array([box]))
        bets = self._bets(side, np.array([delta]), np.array([box]))[:, 0]
        loss, largest = float(own.loss[0]), float(own.largest[0])

        def at(mean: float) -> float:
            sound = bets * (loss + max(mean, 0.0) * largest) < 1.0
            logs = np.full(BETS, -np.inf)
            logs[sound] = np.log1p(bets[sound, None] * (t - mean * w)).sum(axis=1)
            return max(log_mean_exp(logs), -FAR)

        return at

    def _least(self, box: int, side: int, delta: float, above: float = -1.0, below: float = 1.0) -> float:
        """The limit of a box's gap from below, seen from a side, or the nearer of two numbers around it."""
        at, start = self._log_evidence(box, side, delta), max(float(self._sides[side].least[box]), above)
        return limit_of(at, delta, min(start, below), below)

    def ends(self, low: ArrayLike, high: ArrayLike, boxes: Ints | None = None) -> tuple[Floats, Floats]:
        """One-sided limits of gaps; `low` and `high` are the probabilities, at most, that each is wrong."""
        own = np.arange(self.family.size) if boxes is None else np.asarray(boxes, dtype=np.int64)
        deltas = (np.broadcast_to(np.asarray(v, dtype=np.float64), own.shape) for v in (low, high))
        below, above = (
            np.array([self._least(int(b), side, float(d)) for b, d in zip(own, delta, strict=True)])
            for side, delta in enumerate(deltas)
        )
        return below, -above

    def together(self, alpha: float, boxes: Ints | None = None) -> tuple[Floats, Floats]:
        """Ranges that hold the gaps of all boxes together, with probability at least ``1 - alpha``."""
        each = alpha / 2.0 * (self.family.weight if boxes is None else self.family.weight[boxes])
        return self.ends(each, each, boxes)

    # ---- The worst of the family ----

    def floor(self, alpha: float) -> tuple[float, int]:
        """The largest floor of ranges that hold simultaneously, and its box: some gap is at least so large."""
        delta, every = alpha / 2.0 * self.family.weight, np.arange(self.family.size)
        bounds = []
        for side in range(2):
            own, bets = self._sides[side], self._bets(side, delta, every)
            zero = np.zeros(len(every))
            some = np.flatnonzero(own.at_most(bets, zero) >= -np.log(delta))
            part, price, bet_sizes = own.of(some), -np.log(delta[some]), bets[:, some]
            most = zero - 1.0
            most[some] = self._largest_root(part, bet_sizes, price)
            bounds.append(most)
        bound = np.concatenate(bounds)
        best, at = 0.0, int(np.argmax(np.abs(self.gap) / self.error))
        for i in np.argsort(-bound, kind="stable")[:EXACT].tolist():
            if bound[i] <= best:
                break
            side, box = divmod(i, self.family.size)
            low = self._least(box, side, float(delta[box]), above=best)
            if low > best:
                best, at = low, box
        return best, at

    @staticmethod
    def _largest_root(own: Side, bets: Floats, price: Floats) -> Floats:
        """The largest mean at which the bound from above of any bet reaches a price; it is a parabola."""
        c = bets**2 / (2.0 * (1.0 + bets * own.win))
        a, b = c * own.spread, 2.0 * c * own.cross - bets * own.mass
        rest = bets * own.gain - c * own.square - price
        root = b**2 + 4.0 * a * rest
        out: Floats = np.where(root >= 0.0, (b + np.sqrt(np.maximum(root, 0.0))) / (2.0 * a), -1.0).max(axis=0)
        return out

    def ceiling(self, alpha: float, least_rows: float) -> tuple[float, int]:
        """What no gap of a box with at least so many rows exceeds, and the box with the largest limit.

        Nothing is shared: the box that is truly the worst is one box, and its own limit covers it.
        """
        large = np.flatnonzero(self.family.rows >= least_rows)
        if not len(large):
            return 0.0, -1
        delta, bounds = np.full(len(large), alpha), []
        for side in range(2):
            own, bets = self._sides[side].of(large), self._bets(side, np.full(len(large), alpha), large)
            bounds.append(-self._least_quickly(own, bets, delta))
        bound = np.concatenate(bounds)
        best, at, order = 0.0, 0, np.argsort(-bound, kind="stable")
        for done, i in enumerate(order.tolist()):
            if bound[i] <= best:
                break
            side, box = divmod(i, len(large))
            high = -self._least(int(large[box]), side, alpha, below=-best) if done < EXACT else float(bound[i])
            if high > best:
                best, at = high, int(large[box])
        return min(best, 1.0), at

    @staticmethod
    def _least_quickly(own: Side, bets: Floats, delta: Floats) -> Floats:
        """Means up to which all are refuted, by halving, at most 0; `own.least` where none is."""
        price, kept, free = -np.log(delta), own.least.copy(), np.zeros(len(own.least))
        for _ in range(HALVINGS):
            middle = 0.5 * (kept + free)
            out = own.at_least(bets, middle) - price >= 0.0
            kept, free = np.where(out, middle, kept), np.where(out, free, middle)
        return kept

    # ---- Which boxes are over a limit ----

    def over(self, limit: float, alpha: float) -> Flags:
        """Which gaps are larger than a limit, all of these right together with probability ``1 - alpha``."""
        from calibrant.stats.subgroups.ranges import holm

        every, weight = np.arange(self.family.size), self.family.weight
        delta, at = alpha / 2.0 * weight, np.full(self.family.size, limit)
        bets = [self._bets(side, delta, every) for side in range(2)]
        least = np.logaddexp(*(s.at_least(k, at) for s, k in zip(self._sides, bets, strict=True))) - np.log(2.0)
        most = np.maximum(*(s.at_most(k, at) for s, k in zip(self._sides, bets, strict=True)))
        # (1) With evidence that is too little, what is found is over. (2) With too much, others cannot be
        level = np.exp(-np.maximum(least, 0.0))
        result = holm(level, weight, alpha)
        open_to = np.flatnonzero(holm(np.exp(-np.maximum(most, 0.0)), weight, alpha) & ~result)
        # (3) Those between exactly, the likeliest first
        for box in open_to[np.argsort(-least[open_to], kind="stable")][:EXACT].tolist():
            logs = [self._log_evidence(box, side, float(delta[box]))(limit) for side in range(2)]
            level[box] = float(np.exp(-max(float(np.logaddexp(logs[0], logs[1])) - np.log(2.0), 0.0)))
        return holm(level, weight, alpha)


def _result(family: Family, rows: ClusterRows) -> tuple[Floats, Floats]:
    """What clusters add up to in every box, and sums of w, ``w (y - p)``, ``w p`` and ``w^2 p (1 - p)``."""
    result, sums = np.zeros((family.size, BOX_PARTS)), np.zeros((4, family.size))
    values = np.concatenate([rows.parts[:, 1:], (rows.weight**2 * rows.p * (1.0 - rows.p))[:, None]], axis=1)
    ends = np.searchsorted(family.table, np.arange(len(family.combined) + 1))
    for t, attributes in enumerate(family.combined):
        boxes = np.arange(ends[t], ends[t + 1])
        if not len(boxes):
            continue
        # (1) Sums of rows by cell, and of all boxes from these
        shape, own = family.shapes[t], rows.cells[list(attributes)].astype(np.int64)
        where = np.ravel_multi_index(tuple(own), shape)
        table = np.stack([summed(where, v, int(np.prod(shape))) for v in values.T], axis=1).reshape(*shape, 4)
        place = tuple(family.place[boxes, axis] for axis in range(len(attributes)))
        sums[:, boxes] = sums_of(table, [family.sets[j] for j in attributes])[place].T  # type: ignore[arg-type]
        # (2) Those of clusters
        result[boxes] = _table(own, rows, [family.sets[j] for j in attributes], place)
    return result, sums


def _table(cells: Ints, rows: ClusterRows, sets: list[Ints], place: tuple[Ints, ...]) -> Floats:
    """What clusters add up to in the boxes of one table: of three attributes, for each set of the first."""
    if len(cells) == 1:
        one = np.array([[0, 1, 1, 1]])
        both = np.stack([cells[0], np.zeros_like(cells[0])])
        return _pair(both, rows.starts, rows.parts, [sets[0], one])[place[0], 0]
    if len(cells) == 2:
        return _pair(cells, rows.starts, rows.parts, sets)[place]
    out = np.empty((len(place[0]), BOX_PARTS))
    whole = np.diff(rows.starts)
    for m in np.unique(place[0]).tolist():
        first, last, second, end = sets[0][m].tolist()
        inside = ((cells[0] >= first) & (cells[0] < last)) | ((cells[0] >= second) & (cells[0] < end))
        cluster, count = np.unique(rows.cluster[inside], return_counts=True)
        starts = np.concatenate([[0], np.cumsum(count)])
        mine = place[0] == m
        part = _pair(cells[1:, inside], starts, rows.parts[inside], sets[1:])[place[1][mine], place[2][mine]]
        # of the rows in the set, all are in the box: at most so many have no row elsewhere
        part[:, INSIDE] = np.minimum(part[:, INSIDE], float((count == whole[cluster]).sum()))
        out[mine] = part
    return out


def _pair(cells: Ints, starts: Ints, parts: Floats, sets: list[Ints]) -> Floats:
    """What clusters add up to in all boxes of two attributes, (k, l, 8): clusters of one row by their cells."""
    count = np.diff(starts)
    alone = starts[:-1][count == 1]
    out = np.zeros((len(sets[0]), len(sets[1]), BOX_PARTS))
    if len(alone):
        shape = tuple(max(int(c.max()) + 1, int(own[:, 1::2].max())) for c, own in zip(cells, sets, strict=True))
        where = np.ravel_multi_index(tuple(cells[:, alone]), shape)
        w, t, p = parts[alone, 1:].T
        one, size = np.ones(len(w)), int(np.prod(shape))
        table = np.stack([summed(where, v, size) for v in (one, one, t * t, t * w, w * w)], axis=1)
        out[..., :LARGEST] = sums_of(table.reshape(*shape, LARGEST), sets)  # type: ignore[arg-type]
        most = np.zeros((size, BOX_PARTS - LARGEST))
        np.maximum.at(most, where, np.stack([w, p, w - p], axis=1))
        out[..., LARGEST:] = _most(_most(most.reshape(*shape, -1), sets[0], 0), sets[1], 1)
    if len(alone) < len(count):
        several = np.repeat(count > 1, count)
        ends = np.concatenate([[0], np.cumsum(count[count > 1])])
        result = boxes_of(cells[:, several], ends, parts[several], *sets)
        out[..., :LARGEST] += result[..., :LARGEST]
        out[..., LARGEST:] = np.maximum(out[..., LARGEST:], result[..., LARGEST:])
    return out


def _most(table: Floats, sets: Ints, axis: int) -> Floats:
    """The largest values over sets of cells along an axis; no value is below 0."""
    parts = [
        table.take([*range(s, e), *range(s2, e2)], axis).max(axis=axis, initial=0.0) for s, e, s2, e2 in sets.tolist()
    ]
    return np.stack(parts, axis=axis)


def cluster_rows(
    cells: NDArray[np.uint8], cluster: Ints, p: Floats, y: NDArray[np.int8], weight: Floats
) -> ClusterRows:
    """Rows in the order of their clusters."""
    order = np.argsort(cluster, kind="stable")
    return ClusterRows(cells=cells[:, order], cluster=cluster[order], p=p[order], y=y[order], weight=weight[order])
