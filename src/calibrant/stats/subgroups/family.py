"""A family of boxes, fixed before any outcome is read, and what the cells of each add up to.

A *attribute* is a variable cut into cells; a *set* is one or two runs of its cells; a *box* is a set of one attribute,
or one set each of two or three: the rows that lie in all of them. Which boxes belong to the family depends on numbers
of rows only, so that given the covariates and the scores it is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

ROWS, EVENTS, SCORES, VARIANCES = range(4)  # sums of a cell; the last two in steps
STEPS = float(1 << 30)  # of one score, or null variance
# Shares of alpha, fixed before any outcome is read: by number of attributes, of conditions, and then by size, as
# 1 / sqrt(rows), which makes ranges shortest on average. Boxes of fewer conditions are fewer and easier to act on:
# "x over 8 and z over 3" makes two conditions, "x over 2 and up to 5" is two on one. With eight attributes and the
# score, a corner of two has a range of 4.6 standard errors either way if it holds one row in 25, and 4.8 if it holds
# one in four; other boxes have 5.0 to 5.5. Were alpha shared equally, it would be 5.1 for all.
SHARES = ((1.0,), (0.2, 0.8), (0.15, 0.35, 0.5))
SIMPLER = ((0.65, 0.35), (0.65, 0.22, 0.13), (0.4, 0.3, 0.2, 0.1))


# ---- Sets of cells: rows of two runs, from column 0 to below 1 and from 2 to below 3 ----


def runs(first: int, last: int) -> Ints:
    """All runs of the cells from `first` to below `last`."""
    ends = [(i, j, j, j) for i in range(first, last) for j in range(i + 1, last + 1)]
    return np.array(ends, dtype=np.int64).reshape(-1, 4)


def singles_and_pairs(cells: Sequence[int]) -> Ints:
    """Each of some cells, and each pair of them."""
    own = [(i, i + 1, i + 1, i + 1) for i in cells]
    two = [(i, i + 1, j, j + 1) for i, j in combinations(cells, 2)]
    return np.array(own + two, dtype=np.int64).reshape(-1, 4)


def sums_of(table: NDArray[np.int64], sets: Sequence[Ints], first: int = 0) -> Ints:
    """The sums of all boxes of a table, or of several tables cut alike.

    `table` (..., cells of each attribute, sums). `sets` (k, 4): of each attribute. `first`: axis of the first
    attribute: those before it distinguish tables. The result has shape (..., sets of each attribute, sums).
    """
    out = table
    for axis, own in enumerate(sets, first):
        below = np.concatenate([np.zeros_like(out.take([0], axis)), np.cumsum(out, axis=axis)], axis=axis)
        ends = [below.take(own[:, k].astype(np.intp), axis) for k in range(4)]
        out = ends[1] - ends[0] + ends[3] - ends[2]
    return out


# ---- The family ----


@dataclass(frozen=True, kw_only=True)
class SameCuts:
    """Tables whose attributes are cut alike, so that one cumulative sum serves all of them."""

    tables: tuple[int, ...]
    sets: tuple[Ints, ...]  # each of shape (k, 4): of each of their attributes
    boxes: Ints  # boxes of the family that lie in them
    at: Ints  # where the sums of those boxes lie among those of all boxes of these tables


@dataclass(frozen=True, kw_only=True)
class Family:
    """Boxes, one entry each; those of one table lie together."""

    combined: tuple[tuple[int, ...], ...]  # the attributes of each table
    sets: tuple[Ints, ...]  # each of shape (k, 4): of each attribute
    shapes: tuple[tuple[int, ...], ...]  # how many cells each table has along each of its attributes
    n: int  # rows in all
    table: Ints  # shape (boxes,)
    place: Ints  # shape (boxes, 3): set of each of its attributes; -1 where it has fewer
    # `rows`, `events`, `expected` and `variance`, shape (boxes,): expected events, and null variance of the events.
    rows: Floats
    events: Floats
    expected: Floats
    variance: Floats
    weight: Floats  # shape (boxes,): share of alpha; they add up to one, or to less where attributes were left out

    @property
    def size(self) -> int:
        """Boxes."""
        return len(self.table)

    @property
    def gap(self) -> Floats:
        """Observed minus predicted rate of each box."""
        return (self.events - self.expected) / self.rows

    @cached_property
    def same_cuts(self) -> tuple[SameCuts, ...]:
        """The tables, those that are cut alike together."""
        ends = np.searchsorted(self.table, np.arange(len(self.combined) + 1))
        cuts = [(own.shape, own.tobytes()) for own in self.sets]
        groups: dict[tuple[object, ...], list[int]] = {}
        for t, attributes in enumerate(self.combined):
            groups.setdefault((self.shapes[t], *(cuts[attribute] for attribute in attributes)), []).append(t)
        out = []
        for tables in groups.values():
            sets = tuple(self.sets[attribute] for attribute in self.combined[tables[0]])
            sizes = [len(own) for own in sets]
            boxes = np.concatenate([np.arange(ends[t], ends[t + 1]) for t in tables])
            at = np.repeat(np.arange(len(tables)), [ends[t + 1] - ends[t] for t in tables])
            for axis, size in enumerate(sizes):
                at = at * size + self.place[boxes, axis]
            out.append(SameCuts(tables=tuple(tables), sets=sets, boxes=boxes, at=at))
        return tuple(out)

    def attributes(self, box: int) -> tuple[tuple[int, Ints], ...]:
        """The attributes of a box, and its set of cells in each."""
        own = self.combined[int(self.table[box])]
        return tuple((t, self.sets[t][int(self.place[box, axis])]) for axis, t in enumerate(own))

    def kept(self, some: Flags) -> Family:
        """The family of some of the boxes, which share what all had of alpha."""
        own = {
            k: getattr(self, k)[some] for k in ("table", "place", "rows", "events", "expected", "variance", "weight")
        }
        return replace(self, **own | {"weight": own["weight"] * (self.weight.sum() / own["weight"].sum())})

    def inside(self, box: int, cells: NDArray[np.uint8]) -> Flags:
        """Which rows lie in a box, given their cells, shape (attributes, n)."""
        out = np.ones(cells.shape[1], dtype=bool)
        for attribute, (first, last, second, end) in self.attributes(box):
            own = cells[attribute]
            out &= ((own >= first) & (own < last)) | ((own >= second) & (own < end))
        return out


def family_of(
    tables: Sequence[Ints],
    combined: Sequence[tuple[int, ...]],
    sets: Sequence[Ints],
    conditions: Sequence[Ints],
    n: int,
    fewest: float,
) -> Family:
    """Every box of at least so many rows, and fewer than all.

    `tables` (cells of each attribute, 4): rows, events, scores and null variances of each cell, the last two in steps
    of 2^-30. `combined`: the attributes of each table. `sets` (k, 4): of each attribute. `conditions` (k,): how many
    conditions describe each set, 1 or 2. `n`: rows in all. `fewest`: rows that a box must have; at least one.
    """
    parts, places, owners, options = [], [], [], []
    whole: dict[int, Flags] = {}  # by attribute, the sets that hold every row
    for t, (table, own) in enumerate(zip(tables, combined, strict=True)):
        result = sums_of(table, [sets[attribute] for attribute in own])
        kept = (result[..., ROWS] >= max(fewest, 1)) & (result[..., ROWS] < n)
        if len(own) > 1:  # a set of all rows adds nothing: the box is one of fewer attributes
            for axis, attribute in enumerate(own):
                if attribute not in whole:
                    alone = table.sum(axis=tuple(a for a in range(len(own)) if a != axis))
                    whole[attribute] = sums_of(alone, [sets[attribute]])[:, ROWS] == n
                kept &= ~whole[attribute].reshape([-1 if a == axis else 1 for a in range(len(own))])
        where = np.argwhere(kept)
        place = np.full((len(where), 3), -1, dtype=np.int64)
        place[:, : len(own)] = where
        parts.append(result[kept])
        places.append(place)
        owners.append(np.full(len(where), t, dtype=np.int64))
        options.append(sum(conditions[attribute][where[:, axis]] for axis, attribute in enumerate(own)))
    sums, table_of = np.concatenate(parts), np.concatenate(owners)
    return Family(
        combined=tuple(combined),
        sets=tuple(sets),
        shapes=tuple(table.shape[:-1] for table in tables),
        n=n,
        table=table_of,
        place=np.concatenate(places),
        rows=sums[:, ROWS].astype(np.float64),
        events=sums[:, EVENTS].astype(np.float64),
        expected=sums[:, SCORES] / STEPS,
        variance=sums[:, VARIANCES] / STEPS,
        weight=_weights(np.array([len(c) for c in combined])[table_of], np.concatenate(options), sums[:, ROWS]),
    )


def _weights(order: Ints, conditions: Ints, rows: Ints) -> Floats:
    """Share alpha over numbers of attributes, then over numbers of conditions, then over boxes by their size."""
    out = np.zeros(len(order))
    orders = [k for k in (1, 2, 3) if (order == k).any()]
    for k, share in zip(orders, SHARES[len(orders) - 1] if orders else (), strict=True):
        there = [c for c in range(k, 2 * k + 1) if ((order == k) & (conditions == c)).any()]
        parts = np.array([SIMPLER[k - 1][c - k] for c in there])
        for c, part in zip(there, share * parts / parts.sum(), strict=True):
            own = (order == k) & (conditions == c)
            small = 1.0 / np.sqrt(rows[own])
            out[own] = part * small / small.sum()
    return out
