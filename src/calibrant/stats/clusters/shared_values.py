"""Columns whose shared values make outcomes alike, whatever they are called: which rows may be clusters.

Rows that share a value, or values of two or three columns, are held against outcomes drawn independently given the
scores. Residuals are taken off their mean among rows of about the same score, and, of numbers, among rows of about the
same value: a trend is no cluster. What is detected is a cluster where many values share the excess, and groups where a
few values make it: the data of groups that are off, and of clusters, look the same otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Names = tuple[str, ...]

LEVEL = 0.01  # of all that is looked at
SHARES = 0.8, 0.15, 0.05  # of it: for columns, pairs and triples
EFFECT = 1.2  # design effect under which nothing is said
REFUTED = 2.0  # and from which on, without the values that add most, nothing that takes rows as independent is decided
GROUPS = 30  # values of a column that are groups, and no clusters
SHARED = 1.05  # rows a value from which on rows share it
FEWEST = 20  # values that two rows share, at least
EVENTS = 10  # of the rarer label
SCREEN = 2.8, 4.0, 4.0  # standard errors of the sum over pairs of rows, of one, two and three columns
DRAWS, FIRST, FEW = 999, 99, 2  # draws; after so many, no more where over so many exceed
PLAIN, FAR = 199, 8.0  # draws where the first lie so many standard deviations below
MOST = 30_000  # rows that are drawn for
PAIRS, LEAD, LOOKED, NAMED = 300, 10, 40, 4  # pairs screened (and triples), those extended, confirmed, named at most
SIZE = 1.2, 200.0  # rows of a joint cluster
FEW_COLUMNS = 40  # columns up to which triples are looked at though no pair of theirs leads
NEAREST = 3.0  # rows of one: pairs that make about so many are looked at first
TRIMMED, LEFT = 0.05, 0.4  # share of values left out, and of the excess that then remains in clusters
CELLS, ROWS, BINS = 100, 20, 10  # of the score: cells at most, rows of each; of a number: bins of its trend
TINY = 1e-12
SALT = 0x5A4E


@dataclass(frozen=True)
class SharedValue:
    """Columns whose rows of one value are more alike than their scores explain."""

    columns: Names
    kind: Literal["cluster", "group"]  # "group" where a few values make the excess
    clusters: int  # different values
    rows: int  # with a value
    design_effect: float  # variance of the mean residual by clusters, over that of independent rows
    p_value: float  # adjusted for all that was looked at
    trimmed: float  # the design effect without the twentieth of the values that add most
    one_outcome: float  # share of the values of two rows or more whose label never changes

    @property
    def refutes(self) -> bool:
        """Whether ranges that take rows as independent are too narrow to decide anything."""
        return self.trimmed >= REFUTED or self.one_outcome == 1.0


@dataclass(frozen=True)
class Looked:
    """What was detected, and how many columns, and pairs and triples of these, were looked at."""

    detected: tuple[SharedValue, ...]
    columns: int
    joint: int


@dataclass(frozen=True)
class _Screened:
    """One column, or several, that name rows' clusters jointly."""

    names: Names
    rows: Ints  # that have a value; whole clusters
    cluster: Ints  # of each of these rows
    off: tuple[Ints, ...]  # classes of rows, whose means are taken off
    z: float
    clusters: int


def shared_values(
    columns: Mapping[str, tuple[Ints, bool]],
    y: NDArray[np.int8],
    p: Floats,
    seed: int = 0,
    share: float = 1.0,
    *,
    apart: Collection[Names] = (),
) -> Looked:
    """Columns, pairs and triples whose shared values make outcomes more alike than independent rows'.

    Parameters
    ----------
    columns : mapping of str to (int64 array of shape (n,), bool)
        Codes from 0, negative where missing, in the order of values; and whether these are numbers. Neither columns of
        continuous numbers, nor columns that reproduce the outcome.
    y : int8 array of shape (n,)
    p : float64 array of shape (n,)
    seed : int
    share : float in (0, 1]
        Of all rows that these are, a uniform sample: of the pairs that a row has, so many are left.
    apart : names alone, and pairs of them
        Of one: a group by declaration, no cluster by itself, but where the label never changes within its values. Of
        two: they are not looked at together, for together they reproduce the outcome.

    Notes
    -----
    **Assumes.** Given scores, outcomes are independent, with rates that are those of rows of about the same score.
    **Guarantee.** None that is proved: at most 1 % of independent logs are named, as measured over 20 kinds of logs.
    **Method.** `S`, the sum of ``r_i r_j`` over pairs of rows that share a value, in standard errors for independent
    rows, screens; what passes is confirmed by simulated outcomes, whose tail beyond all draws is a gamma law of their
    three moments. The level is shared .8, .15, .05 among columns, pairs and triples, and equally within each.
    **Cost.** O(c^2 n) to screen c columns; O(999 n) for each of at most 40 that are confirmed, at 30,000 rows at most.
    """
    least = 1.0 + (SHARED - 1.0) * share
    kept = {name: c for name, c in columns.items() if 2 <= _many(c[0]) * least <= np.count_nonzero(c[0] >= 0)}
    groups = frozenset(names[0] for names in apart if len(names) == 1)
    alone = sum(name not in groups for name in kept)
    events = int(y.sum(dtype=np.int64))
    if min(events, len(y) - events) < EVENTS:
        return Looked((), alone, 0)
    rng, never = np.random.default_rng([SALT, seed]), tuple(frozenset(names) for names in apart if len(names) > 1)
    return _Log(kept, y.astype(np.float64), p, rng, share, groups, never).looked()


@dataclass(frozen=True)
class _Log:
    columns: Mapping[str, tuple[Ints, bool]]
    y: Floats
    p: Floats
    rng: np.random.Generator
    share: float
    groups: frozenset[str]
    apart: tuple[frozenset[str], ...]

    @cached_property
    def cell(self) -> Ints:
        """Rows of about the same score."""
        many = min(max(len(self.p) // ROWS, 1), CELLS)
        return _codes(np.searchsorted(np.sort(self.p), self.p) * many // len(self.p))

    @cached_property
    def rate(self) -> Floats:
        """The rates of events of rows of about the same score."""
        off = self.y - self.p
        return np.clip(self.p + off - _less(off, self.cell), 0.0, 1.0)

    @cached_property
    def levels(self) -> dict[str, int]:
        return {name: _many(code) for name, (code, _) in self.columns.items()}

    def looked(self) -> Looked:
        """Screen all, and confirm what stands out most."""
        one = [s for name in self.columns if (s := self.screened((name,)))]
        two = [s for names in self.near(2, PAIRS) if (s := self.screened(names))]
        lead = sorted((s for s in two if s.z > SCREEN[0]), key=lambda s: -s.z)[:LEAD]
        most = LEAD * len(self.columns) + PAIRS  # triples that may be looked at, whichever pairs lead
        longer = {tuple(sorted((*s.names, name))) for s in lead for name in self.columns if name not in s.names}
        if len(self.columns) <= FEW_COLUMNS:
            longer |= {tuple(sorted(names)) for names in self.near(3, most - len(longer))}
        three = [s for names in sorted(longer) if (s := self.screened(names))]
        many = len(one), len(two), most
        shares = [LEVEL * share / max(n, 1) for share, n in zip(SHARES, many, strict=True)]
        out = [s for s in (*one, *two, *three) if s.z > SCREEN[len(s.names) - 1]]
        detected: list[tuple[_Screened, SharedValue]] = []
        for s in sorted(out, key=lambda s: (-round(s.z, 6), len(s.names)))[:LOOKED]:
            if len(detected) == NAMED:
                break
            if not any(self.explained(s, other) for other, f in detected if f.kind == "cluster"):
                confirmed = self.confirmed(s, shares[len(s.names) - 1])
                detected += [(s, confirmed)] if confirmed else []
        alone = {name for name in self.columns if name not in self.groups} | {s.names[0] for s in one}
        return Looked(tuple(f for _, f in detected), len(alone), len(two) + len(three))

    def near(self, columns: int, most: int) -> list[Names]:
        """So many columns that can make small clusters together: the nearest to three rows each first."""
        n, fits = len(self.p) / self.share, []  # of all rows
        for names in itertools.combinations(self.columns, columns):
            levels = [self.levels[name] for name in names]
            every = math.prod(levels)
            if every >= n / SIZE[1] and max(levels) < n / SIZE[0]:
                fits.append((abs(math.log(NEAREST * min(every, n) / n)), names))
        return [names for _, names in sorted(fits)[:most]]

    def screened(self, names: Names) -> _Screened | None:
        """Clusters of some columns; None where they are too few, or too small, or large."""
        if any(pair <= {*names} for pair in self.apart):
            return None
        codes = [self.columns[name][0] for name in names]
        rows, cluster = _joint(codes)
        size = np.bincount(cluster)
        each = (len(rows) / max(len(size), 1) - 1.0) / self.share
        if len(size) <= GROUPS or each < SHARED - 1.0 or int((size > 1).sum()) < FEWEST:
            return None
        if len(names) > 1 and not SIZE[0] - 1.0 <= each <= SIZE[1] - 1.0:
            return None
        if len(names) == 1 and names[0] in self.groups and _one_outcome(cluster, self.y[rows]) < 1.0:
            return None
        off = tuple(self.taken_off(names, rows, len(size)))
        r = (self.y - self.rate)[rows]
        for code in off:
            r = _less(r, code)
        variance = (self.rate * (1.0 - self.rate))[rows]
        z = float(_excess(cluster, r).sum()) / np.sqrt(2.0 * max(float(_excess(cluster, variance).sum()), TINY))
        return _Screened(names, rows, cluster, off, z, len(size))

    def taken_off(self, names: Names, rows: Ints, clusters: int) -> Iterator[Ints]:
        """Yield classes whose means are taken off: bins of numbers, levels of columns that name clusters jointly."""
        for name in names:
            code, is_number = self.columns[name]
            if len(names) > 1 and (self.levels[name] <= GROUPS or clusters >= 2 * self.levels[name]):
                yield _codes(code[rows])
            elif is_number and self.levels[name] > 2 * BINS:
                yield _codes(np.searchsorted(np.sort(code[rows]), code[rows]) * BINS // len(rows))

    def confirmed(self, s: _Screened, share: float) -> SharedValue | None:
        """What simulated outcomes leave of it."""
        cell, rate = _codes(self.cell[s.rows]), self.rate[s.rows]
        classes = [(code, np.maximum(np.bincount(code), 1)) for code in (cell, *s.off)]
        keep = s.clusters - max(int(np.ceil(TRIMMED * s.clusters)), 1)

        def effects(off: Floats) -> tuple[float, float]:
            """The excess of pairs over that of rows, of all clusters and without the largest twentieth."""
            for code, many in classes:
                off = off - (np.bincount(code, off) / many)[code]
            part = _excess(s.cluster, off)
            each = max(float(off @ off), TINY)
            return float(part.sum()) / each, float(np.partition(part, keep)[:keep].sum()) / each

        result = effects(self.y[s.rows] - rate)
        drawn: list[tuple[float, float]] = []
        enough = DRAWS
        while len(drawn) < enough:
            drawn.append(effects((self.rng.random(len(rate)) < rate) - rate))
            if len(drawn) == FIRST:
                first = np.array(drawn)
                far = bool(np.all(result > first.mean(axis=0) + FAR * first.std(axis=0)))
                enough = FIRST if int((first[:, 0] >= result[0]).sum()) > FEW else PLAIN if far else DRAWS
        all_draws = np.array(drawn)
        p, trimmed = (_tail(all_draws[:, k], result[k]) for k in (0, 1))
        more, left = ((result[k] - float(all_draws[:, k].mean())) / self.share for k in (0, 1))
        adjusted = min(p / share * LEVEL, 1.0)
        if adjusted > LEVEL or 1.0 + more <= EFFECT:
            return None
        constant = _one_outcome(s.cluster, self.y[s.rows])
        is_cluster = trimmed <= LEVEL and left >= LEFT * more
        kind: Literal["cluster", "group"] = "cluster" if is_cluster else "group"
        return SharedValue(s.names, kind, s.clusters, len(s.rows), 1.0 + more, adjusted, 1.0 + left, constant)

    def explained(self, s: _Screened, other: _Screened) -> bool:
        """Whether rows of different clusters of the other that share this value are no more alike than chance."""
        rows, at, there = np.intersect1d(s.rows, other.rows, assume_unique=True, return_indices=True)
        if len(rows) < 2 * FEWEST:
            return True
        one, two = s.cluster[at], other.cluster[there]
        pair = _codes(one * (int(two.max()) + 1) + two)
        total = np.bincount(pair, (self.y - self.rate)[rows]).astype(np.float64)
        of = np.zeros(int(pair.max()) + 1, dtype=np.int64)
        of[pair] = one
        noise = np.sqrt(2.0 * max(float(_excess(of, total**2).sum()), TINY))
        return bool(_excess(of, total).sum() < 4.0 * noise)


# ---- Sums over rows that share a code ----


def _codes(values: Ints | NDArray[np.uint64]) -> Ints:
    """Codes 0 to k - 1, all of which occur."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _many(code: Ints) -> int:
    return int(code.max(initial=-1)) + 1


def _less(off: Floats, code: Ints) -> Floats:
    """Take off the mean of rows of one code."""
    return off - (np.bincount(code, off) / np.maximum(np.bincount(code), 1))[code]


def _excess(cluster: Ints, off: Floats) -> Floats:
    """What pairs of different rows of each cluster add."""
    sums, squares = (np.bincount(cluster, v).astype(np.float64) for v in (off, off * off))
    return np.asarray(sums**2 - squares)


def _one_outcome(cluster: Ints, y: Floats) -> float:
    """The share of the clusters of two rows or more whose label never changes."""
    several = np.bincount(cluster)
    mean = np.bincount(cluster, y) / several
    return float(np.mean((mean == 0.0) | (mean == 1.0), where=several > 1))


def _joint(codes: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Rows that have all values, and their joint cluster; of many rows those of whole clusters whose hash is small."""
    mix = np.zeros(len(codes[0]), dtype=np.uint64)
    there = np.ones(len(mix), dtype=bool)
    for code in codes:
        there &= code >= 0
        mix = (mix ^ (code.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
        mix ^= mix >> np.uint64(29)
    rows = np.flatnonzero(there)
    if len(rows) > MOST:
        some = rows[mix[rows] <= np.partition(mix[rows], MOST - 1)[MOST - 1]]
        rows = some if len(some) <= 2 * MOST else rows  # one huge cluster
    return rows, _codes(mix[rows])


def _tail(draws: Floats, at: float) -> float:
    """The share of draws at least as large; beyond all but four of them, a gamma law of the draws' three moments."""
    from scipy.special import gammaincc

    more, spread = int((draws >= at - TINY).sum()), float(draws.std())
    if more >= 5 or spread < TINY:
        return (1 + more) / (1 + len(draws))
    skew = max(float(((draws - draws.mean()) ** 3).mean()) / spread**3, 0.05)
    shape = 4.0 / skew**2
    scaled = max((at - float(draws.mean())) / spread + 2.0 / skew, 0.0) * 2.0 / skew
    return max(float(gammaincc(shape, scaled)), 1e-300)
