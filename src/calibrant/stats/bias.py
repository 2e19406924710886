"""Kernel-weighted mean residuals: at the points of a map with their simulated null, and at rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.kernels.draws import outcomes

BLOCK = 8192  # rows taken at once, at most
HELD = 1 << 22  # kernel weights held at once, about
PLACES = 20_000  # distinct places up to which every row stays where it is
FAR = -300.0  # least exponent of a kernel weight: smaller ones are slow subnormal numbers, and their squares nothing
REACH = 0.01  # kernel weights in all, under which a row has no others within reach
PARTS = (50, 10)  # parts of a bandwidth to which more rows are placed: along one number, along several


@dataclass(frozen=True)
class Spots:
    """Where rows or points lie.

    Parameters
    ----------
    position : float array of shape (m, axes)
        Along each number, in bandwidths; 0 along a category, and where missing.
    level : int array of shape (m, axes)
        Of each category; along a number 0, or 1 where missing.
    """

    position: Any
    level: Any

    def __getitem__(self, at: Any) -> Spots:
        return Spots(self.position[at], self.level[at])

    def __len__(self) -> int:
        return len(self.position)


def affinity(points: Spots, rows: Spots) -> Any:
    """Return the kernel ``exp(-d^2 / 2)`` along numbers, times one for equal levels, shape (points, rows)."""
    out: Any = np.ones((1, 1))
    for j in range(points.position.shape[1]):
        pairs = np.column_stack([points.position[:, j], points.level[:, j]])
        places, index = np.unique(pairs, axis=0, return_inverse=True)
        near = (places[:, 1:] == rows.level[None, :, j]).astype(float)
        if places[:, 0].any() or rows.position[:, j].any():
            near *= np.exp(np.maximum(-0.5 * (places[:, :1] - rows.position[None, :, j]) ** 2, FAR / 2))
        out = out * near[index.reshape(-1)]
    return out


@dataclass(frozen=True)
class Sample:
    """Rows with what is averaged over them.

    Parameters
    ----------
    y, p, weight : float arrays of shape (n,)
    ids : uint64 array of shape (n,)
        Identities, of rows or of the clusters they belong to, which key the simulation.
    spots : Spots
    """

    y: Any
    p: Any
    weight: Any
    ids: Any
    spots: Spots

    def __getitem__(self, at: Any) -> Sample:
        return Sample(self.y[at], self.p[at], self.weight[at], self.ids[at], self.spots[at])

    @cached_property
    def cells(self) -> Cells:
        """The rows in order of their place."""
        return cells_of(self.spots)


@dataclass(frozen=True)
class Cells:
    """Rows that lie at one place, together: rows ``order[starts[c] : starts[c + 1]]`` at ``spots[c]``."""

    order: Any
    starts: Any
    spots: Spots

    def sums(self, values: Any) -> Any:
        """Add row values (n, k) up by cell."""
        return np.add.reduceat(values[self.order], self.starts, axis=0)


def cells_of(spots: Spots) -> Cells:
    """Put rows of one place together; where there are many places, neighbours a fraction of a bandwidth apart too."""
    for step in (0.0, 1.0 / PARTS[0] if spots.position.any(axis=0).sum() < 2 else 1.0 / PARTS[1]):
        key = np.zeros(len(spots), dtype=np.int64)
        for j in range(spots.position.shape[1]):
            x = spots.position[:, j]
            for column in (np.round(x / step) if step else x, spots.level[:, j]):
                values, code = np.unique(column, return_inverse=True)
                key = np.unique(key * len(values) + code.reshape(-1), return_inverse=True)[1].reshape(-1)
        if key.max(initial=0) < PLACES:
            break
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    first = order[starts]
    rows = np.diff(starts, append=len(key))[:, None]
    middle = np.add.reduceat(spots.position[order], starts, axis=0) / rows if step else spots.position[first]
    return Cells(order, starts, Spots(middle, spots.level[first]))


@dataclass(frozen=True)
class Means:
    """What eq. 7 is made of at each point, arrays of shape (points,).

    Parameters
    ----------
    near : rows near the point, each counted by its kernel weight
    mass : the same in sample weights
    rows : effective rows ``(sum w K)^2 / sum (w K)^2``
    predicted, observed : kernel-weighted mean of the score and of the outcome
    null : variance of ``observed - predicted`` if the model is calibrated
    spread : its variance from the residuals themselves
    """

    near: Any
    mass: Any
    rows: Any
    predicted: Any
    observed: Any
    null: Any
    spread: Any

    @property
    def bias(self) -> Any:
        """Kernel-weighted mean residual."""
        return self.observed - self.predicted

    def __getitem__(self, at: Any) -> Means:
        return Means(**{k: v[at] for k, v in vars(self).items()})


def means(points: Spots, s: Sample) -> Means:
    """Return the kernel-weighted means at every point; zero where no row is within reach."""
    w, e, v = s.weight, s.y - s.p, s.p * (1.0 - s.p)
    columns = (np.ones(len(w)), w, w * s.p, w * s.y, w * w, w * w * v, w * w * e * e, w * w * e)
    sums = s.cells.sums(np.column_stack(columns))
    total = np.zeros((len(points), 8))
    step = max(1, min(BLOCK, HELD // len(points)))
    for a in range(0, len(sums), step):
        k = affinity(points, s.cells.spots[a : a + step])
        total[:, :4] += k @ sums[a : a + step, :4]
        total[:, 4:] += (k * k) @ sums[a : a + step, 4:]
    near, mass, says, happened, square, null, e2, e1 = total.T
    there = square > 0
    one, two = np.where(there, mass, 1.0), np.where(there, square, 1.0)
    rows = np.where(there, mass / two * mass, 0.0)
    b = (happened - says) / one
    few = rows / np.maximum(rows - 1.0, 0.5)
    spread = np.maximum(e2 - 2 * b * e1 + b * b * square, 0.0) * few / one**2
    return Means(near, mass, rows, says / one, happened / one, null / one**2, spread)


def simulated(points: Spots, s: Sample, draws: int, salt: int) -> Any:
    """Return the mean residuals at the points of outcomes ``Y* ~ Bernoulli(p)``, shape (points, draws)."""
    total, mass, says = np.zeros((len(points), draws)), np.zeros(len(points)), np.zeros(len(points))
    weighted = bool((s.weight != 1.0).any())
    for at, cells, starts in _blocks(s.cells, len(points)):
        k = affinity(points, s.cells.spots[cells])
        drawn: Any = outcomes(s.ids[at], s.p[at], 0, draws, salt)
        w = s.weight[at]
        if weighted:
            drawn = drawn * w[:, None]
        mass += k @ np.add.reduceat(w, starts)
        says += k @ np.add.reduceat(w * s.p[at], starts)
        total += k @ _added(drawn, starts)
    return (total - says[:, None]) / mass[:, None]


def _added(drawn: Any, starts: Any) -> Any:
    """Add rows up from each start to the next."""
    if len(starts) == len(drawn):
        return drawn.astype(float)
    if len(drawn) < 8 * len(starts):
        return np.add.reduceat(drawn, starts, axis=0, dtype=float)
    ends = np.append(starts[1:], len(drawn))
    return np.stack([drawn[a:b].sum(axis=0, dtype=float) for a, b in zip(starts, ends, strict=True)])


def _blocks(c: Cells, points: int) -> Iterator[tuple[Any, slice, Any]]:
    """Yield rows, the cells they lie in, and where each cell starts among them."""
    step = max(512, min(BLOCK, HELD // points))
    for a in range(0, len(c.order), step):
        b = min(a + step, len(c.order))
        first, last = np.searchsorted(c.starts, a, side="right") - 1, np.searchsorted(c.starts, b)
        yield c.order[a:b], slice(first, last), np.maximum(c.starts[first:last] - a, 0)


@dataclass(frozen=True)
class Signed:
    """A map by clusters: variance, effective clusters and random-sign draws at each point.

    Parameters
    ----------
    noise, clusters : float arrays of shape (points,)
    draws : float array of shape (points, draws)
    """

    noise: Any
    clusters: Any
    draws: Any


def signed(points: Spots, s: Sample, draws: int, salt: int) -> Signed:
    """Give the residuals of whole clusters random signs; `ids` are those of clusters, equal within each.

    With ``S_c`` the kernel-weighted residual sum of cluster c, the variance is ``sum S_c^2`` and a draw
    ``sum +-S_c``, both divided by the total weight (the wild bootstrap with the null imposed).
    """
    order = np.argsort(s.ids, kind="stable")
    ids = s.ids[order]
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    ends = np.append(starts[1:], len(ids))
    total, noise = np.zeros((len(points), draws)), np.zeros(len(points))
    mass, square = np.zeros(len(points)), np.zeros(len(points))
    a, step = 0, max(512, min(BLOCK, HELD // len(points)))
    while a < len(starts):
        b = max(a + 1, int(np.searchsorted(ends, starts[a] + step, side="right")))
        rows = order[starts[a] : ends[b - 1]]
        k = affinity(points, s.spots[rows]) * s.weight[rows]
        cut = starts[a:b] - starts[a]
        sums, held = (np.add.reduceat(v, cut, axis=1) for v in (k * (s.y[rows] - s.p[rows]), k))
        signs = 2.0 * outcomes(ids[starts[a:b]], np.full(b - a, 0.5), 0, draws, salt) - 1.0
        total += sums @ signs
        noise += (sums * sums).sum(axis=1)
        mass += held.sum(axis=1)
        square += (held * held).sum(axis=1)
        a = b
    one = np.where(square > 0, mass, 1.0)
    clusters = np.where(square > 0, mass / np.where(square > 0, square, 1.0) * mass, 0.0)
    return Signed(noise / one**2, clusters, total / one[:, None])


def kernel_bias(rows: Spots, weight: Any, residual: Any, at: Spots, same: bool) -> tuple[Any, Any]:
    r"""Return eq. 7 at any spots, by tiles, and the effective rows it rests on.

    Parameters
    ----------
    rows : Spots of n rows
    weight, residual : float arrays of shape (n,)
    at : Spots of m rows
        Where the bias is wanted, coded and scaled as `rows` are.
    same : bool
        `at` are the rows themselves: each is left out of its own mean.

    Returns
    -------
    bias, effective : float arrays of shape (m,)
        Both zero where the weights of the other rows add up to under a hundredth of a row.
    """
    m = len(at)
    sums = np.zeros((m, 3))
    levels = np.unique(np.concatenate([rows.level, at.level]), axis=0, return_inverse=True)[1].reshape(-1)
    mine, theirs = levels[: len(rows)], levels[len(rows) :]
    order, places = np.argsort(mine, kind="stable"), np.argsort(theirs, kind="stable")
    counts = np.arange(levels.max(initial=-1) + 2)
    cut, edge = np.searchsorted(mine[order], counts), np.searchsorted(theirs[places], counts)
    for level in counts[:-1]:
        block, wanted = order[cut[level] : cut[level + 1]], places[edge[level] : edge[level + 1]]
        if len(block):
            _tiles(sums, rows.position, weight, residual, at.position, block, wanted, same)
    there = sums[:, 1] >= REACH
    mass, square = np.where(there, sums[:, 1], 1.0), np.where(there, sums[:, 2], 1.0)
    return np.where(there, sums[:, 0] / mass, 0.0), np.where(there, mass / square * mass, 0.0)


def _tiles(sums: Any, x: Any, weight: Any, residual: Any, z: Any, block: Any, wanted: Any, same: bool) -> None:
    """Add the kernel sums of one set of equal levels to `sums`; ``-d^2 / 2`` of a tile is one product."""
    side, w = 512, weight[block]
    middle = x[block].mean(axis=0)
    right = _lifted(x[block] - middle)[:, [*range(x.shape[1]), -1, -2]].T
    terms, square = np.column_stack([w * residual[block], w]), w * w
    spot = {int(row): i for i, row in enumerate(block)} if same else {}
    for a in range(0, len(wanted), side):
        to = wanted[a : a + side]
        left = _lifted(z[to] - middle)
        own = np.array([spot[int(row)] for row in to]) if same else None
        for b in range(0, len(block), side):
            k = left @ right[:, b : b + side]
            np.exp(np.clip(k, FAR, 0.0, out=k), out=k)
            if own is not None:
                mine = np.flatnonzero((own >= b) & (own < b + side))
                k[mine, own[mine] - b] = 0.0
            sums[to, :2] += k @ terms[b : b + side]
            np.multiply(k, k, out=k)
            sums[to, 2] += k @ square[b : b + side]


def _lifted(x: Any) -> Any:
    """Return ``[x, -|x|^2 / 2, 1]``."""
    return np.column_stack([x, -0.5 * (x * x).sum(axis=1), np.ones(len(x))])
