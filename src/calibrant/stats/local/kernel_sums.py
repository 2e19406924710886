"""Sums over all pairs of rows under a kernel, Gaussian, Laplace or polynomial, and their null."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.draws import outcomes
from calibrant.kernels.runtime import one_thread
from calibrant.stats.nulls import ROUNDING

Floats = NDArray[np.float64]
Ids = NDArray[np.uint64]
Real = TypeVar("Real", np.float32, np.float64)
Single = type[np.float32] | type[np.float64]
Block = NDArray[np.floating]
Fill = Callable[[slice, slice, Block], None]  # writes the kernel between some rows and others
Family = Literal["gaussian", "laplace", "polynomial"]
FAMILIES: tuple[Family, ...] = get_args(Family)
DEGREE = 3  # of a polynomial kernel, as in scikit-learn

# ---- Sums over all pairs of rows under a kernel, a tile at a time: the matrix is never held ----

TILE = 256  # rows and columns: a tile of 256 kB stays in the cache while it is exponentiated and multiplied
SAMPLE = 512  # rows whose distances set the width: 130,000 pairs
EQUAL = 1e-12  # squared distance, next to the largest from the middle, that is rounding


@dataclass(frozen=True)
class Kernel:
    r"""A kernel of score times one of covariates, ``k(p, p') l(x, x')``; one at i = j.

    With u the leading coordinates, v the others and the levels c, every distance in widths:

    * ``"gaussian"``: ``exp(-(|u - u'|^2 + D^2) / 2)`` with ``D^2 = |v - v'|^2 + 2 sum_a g_a 1{c_a != c'_a}``;
    * ``"laplace"``: ``exp(-|u - u'| - D)``, lengths Euclidean;
    * ``"polynomial"``: ``(1 + u.u')^q (1 + v.v' + sum_a g_a 1{c_a = c'_a})^q``, over the root of what it is at (i, i)
      times at (j, j).
    """

    points: Floats  # shape (rows, d): coordinates, already divided by their widths
    codes: NDArray[np.int32]  # shape (rows, categories): levels
    penalties: Floats  # shape (categories,): `g`; infinite for a delta kernel, which a polynomial cannot be
    family: Family = "gaussian"
    lead: int = 1  # leading coordinates, those of the score
    degree: int = DEGREE  # `q` of a polynomial

    @cached_property
    def rows(self) -> int:
        """Rows."""
        return len(self.points)

    def tiles(self, dtype: Single, size: int) -> Iterator[tuple[slice, slice, Block]]:
        """Yield ``(rows, columns, block)`` of the upper triangle, row block by row block; zero where i = j.

        A block is valid until the next one is asked for.
        """
        fills = {"gaussian": self._gaussian, "laplace": self._laplace, "polynomial": self._polynomial}
        fill, space = fills[self.family](dtype), np.empty(size * size, dtype)
        for i in range(0, self.rows, size):
            mine = slice(i, min(i + size, self.rows))
            for j in range(i, self.rows, size):
                other = slice(j, min(j + size, self.rows))
                shape = mine.stop - i, other.stop - j
                block = space[: shape[0] * shape[1]].reshape(shape)
                fill(mine, other, block)
                if i == j:
                    np.fill_diagonal(block, 0.0)
                yield mine, other, block

    def _gaussian(self, dtype: Single) -> Fill:
        """The exponent is one product of ``[w, -|w|^2 / 2, 1]`` with ``[w, 1, -|w|^2 / 2]``."""
        w = self.points - self.points.mean(axis=0)  # nearer the origin the exponent cancels less
        half, one = -0.5 * np.einsum("ij,ij->i", w, w)[:, None], np.ones((len(w), 1))
        left, right = np.hstack([w, half, one]).astype(dtype), np.hstack([w, one, half]).astype(dtype)

        def fill(mine: slice, other: slice, block: Block) -> None:
            np.matmul(left[mine], right[other].T, out=block)
            np.minimum(block, 0.0, out=block)
            for a, penalty in enumerate(self.penalties):
                block[self._differ(a, mine, other)] -= dtype(penalty)
            np.exp(block, out=block)

        return fill

    def _laplace(self, dtype: Single) -> Fill:
        """Distances are in double precision, for a root magnifies rounding near zero."""
        w = self.points - self.points.mean(axis=0)
        parts = w[:, : self.lead], w[:, self.lead :]
        own = [np.einsum("ij,ij->i", part, part) for part in parts]

        def fill(mine: slice, other: slice, block: Block) -> None:
            near, far = (
                np.maximum(o[mine, None] + o[other] - 2.0 * (part[mine] @ part[other].T), 0.0)
                for part, o in zip(parts, own, strict=True)
            )
            for a, penalty in enumerate(self.penalties):
                far[self._differ(a, mine, other)] += 2.0 * penalty
            block[...] = np.exp(-np.sqrt(near) - np.sqrt(far)).astype(dtype)

        return fill

    def _polynomial(self, dtype: Single) -> Fill:
        u, v = self.points[:, : self.lead], self.points[:, self.lead :]
        at_u, at_v = (np.sqrt(1.0 + np.einsum("ij,ij->i", w, w) + g) for w, g in ((u, 0.0), (v, self.penalties.sum())))

        def fill(mine: slice, other: slice, block: Block) -> None:
            near, far = 1.0 + u[mine] @ u[other].T, 1.0 + v[mine] @ v[other].T
            for a, penalty in enumerate(self.penalties):
                far[~self._differ(a, mine, other)] += penalty
            near /= at_u[mine, None] * at_u[other]
            far /= at_v[mine, None] * at_v[other]
            block[...] = ((near * far) ** self.degree).astype(dtype)

        return fill

    def _differ(self, category: int, mine: slice, other: slice) -> NDArray[np.bool_]:
        apart: NDArray[np.bool_] = self.codes[mine, category][:, None] != self.codes[other, category]
        return apart


def off_diagonal(
    kernel: Kernel, vectors: NDArray[Real], fixed: Floats | None = None, tile: int = TILE
) -> tuple[Floats, Floats]:
    r"""``sum_{i != j} v_i K_ij v_j`` of each column v, and ``sum_{j != i} K_ij f_j`` of each column f.

    `vectors` (rows, m): their type is that of the tiles and the products; sums over tiles are in float64. `fixed`
    (rows, k). `tile`: rows and columns of a tile: memory, and rounding, but no other effect. The result has shapes (m,)
    and (rows, k).
    """
    dtype = vectors.dtype.type
    f = np.zeros((kernel.rows, 0)) if fixed is None else fixed
    g = f.astype(dtype)
    total, product = np.zeros(vectors.shape[1]), np.zeros(f.shape)
    space = np.empty((tile, vectors.shape[1]), dtype)
    for mine, other, block in kernel.tiles(dtype, tile):
        out = space[: mine.stop - mine.start]
        np.matmul(block, vectors[other], out=out)
        out *= vectors[mine]
        total += (1.0 if mine == other else 2.0) * out.sum(axis=0, dtype=np.float64)
        if g.shape[1]:
            product[mine] += block @ g[other]
            if mine != other:
                product[other] += block.T @ g[mine]
    return total, product


def pair_tail(over: float, pairs: int, bound: float = 1.0) -> float:
    """Hoeffding's bound on the probability that a mean over pairs lies this far above what is expected.

    `over`: at least 0. `pairs`: pairs of rows without a row in common: ``floor(n / 2)`` of n rows. `bound`: half of the
    interval that holds a pair's term; its largest size, if it can be as far above 0 as below.
    """
    return math.exp(-pairs * over**2 / (2.0 * bound**2))


def pair_radius(alpha: float, pairs: int, bound: float = 1.0) -> float:
    """What `pair_tail` gives the probability `alpha`."""
    return bound * math.sqrt(-2.0 * math.log(alpha) / pairs)


def typical_distance(kernel: Kernel, order: ArrayLike) -> float:
    """The median non-zero distance, ``sqrt(-2 log K)``, among the rows that come first in `order`; or 1.

    `order` (rows,): anything that sorts the rows at random, such as their identities.
    """
    rows = kernel.rows
    at = np.argpartition(order, SAMPLE)[:SAMPLE] if rows > SAMPLE else np.arange(rows)
    few = Kernel(kernel.points[at], kernel.codes[at], kernel.penalties)
    w = few.points - few.points.mean(axis=0)
    own = np.einsum("ij,ij->i", w, w)
    square = own[:, None] + own - 2.0 * (w @ w.T)
    square[square < EQUAL * own.max(initial=0.0)] = 0.0
    for a, penalty in enumerate(few.penalties):
        square += 2.0 * penalty * (few.codes[:, a][:, None] != few.codes[:, a])
    result = square[square > 0]
    return float(np.sqrt(np.median(result))) if len(result) else 1.0


# ---- A Gaussian kernel on the score alone, exact to rounding through a few dozen points: linear in the rows ----

PRECISION = 1e-12  # largest error of the kernel, which is at most one
NARROWEST = 1.0 / 250.0  # of the range of the scores: some 900 points
PROBES, FEW = 1001, 25  # points between which the interpolated kernel is checked: every one, and some at random


@dataclass(frozen=True)
class Nodes:
    """``exp(-(p - q)^2 / (2 w^2)) = L(p) K L(q)'``, by interpolation at Chebyshev points of both scores."""

    at: Floats  # shape (nodes,): the points
    kernel: Floats  # shape (nodes, nodes): between them

    def weights(self, p: Floats) -> Floats:
        """L, shape (rows, nodes): Lagrange's polynomials in barycentric form."""
        if len(self.at) == 1:
            return np.ones((len(p), 1))
        k = np.arange(len(self.at))
        sign = np.where(k % 2 == 0, 1.0, -1.0) * np.where((k == 0) | (k == len(k) - 1), 0.5, 1.0)
        gap = p[:, None] - self.at
        hit = gap == 0
        out = sign / np.where(hit, 1.0, gap)
        out /= out.sum(axis=1, keepdims=True)
        some = hit.any(axis=1)
        out[some] = hit[some]
        return out


def nodes_of(p: Floats, width: float) -> Nodes:
    """Points that reproduce the kernel on the range of `p`.

    Raises ValueError: the width is under 1/250 of the range.
    """
    low, high = float(p.min()), float(p.max())
    if low == high:
        return Nodes(np.array([low]), np.ones((1, 1)))
    if width < NARROWEST * (high - low):
        raise ValueError(f"width {width:g}")
    ratio = (high - low) / width
    probe, few = np.linspace(low, high, PROBES), low + (high - low) * np.random.default_rng(0).random(FEW)
    want, number = _gauss(probe, few, width), 14.0 + 3.4 * ratio  # near enough to where rounding is reached
    while True:  # convergence is geometric
        m = int(number)
        at = low + (high - low) * (0.5 - 0.5 * np.cos(np.pi * np.arange(m) / (m - 1)))
        result = Nodes(at, _gauss(at, at, width))
        if np.abs(result.weights(probe) @ (result.kernel @ result.weights(few).T) - want).max() < PRECISION:
            return result
        number *= 1.2


def _gauss(a: Floats, b: Floats, width: float) -> Floats:
    return np.exp(-0.5 * ((a[:, None] - b) / width) ** 2)


# ---- The kernel statistics of local miscalibration, of the data and of simulated outcomes in one pass ----

NAMES = ("raw", "centred", "intercept", "intercept and slope")
STREAM = 0x4B4C  # of random numbers, apart from those of other methods at the same seed
AT_ONCE = 1 << 26  # residuals held at once: 256 MB
CHUNK = 1 << 12  # rows turned into residuals at once


Drawn = NDArray[np.uint8] | NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Rows given their scores, which are independent; equal rows may be joined into cells."""

    law = "exact simulation"
    rate: Floats  # shape (cells,): score
    # `rows` and `events`, shape (cells,): one and the label, if rows are not joined.
    rows: Floats
    events: Floats | NDArray[np.intp]
    # Shape (cells,): identities that key the simulated outcomes; None for joined rows, whose events are drawn as
    # Binomial.
    ids: Ids | None = None
    start: int = 0  # number of the first cell, which keys the draws of a part of joined rows

    @cached_property
    def n(self) -> int:
        """Rows, counted before joining."""
        return int(self.rows.sum())

    @cached_property
    def contradicted(self) -> int:
        """Rows whose outcome the score called impossible."""
        return int(self.events[self.rate == 0].sum() + (self.rows - self.events)[self.rate == 1].sum())

    @cached_property
    def residual(self) -> Floats:
        """Events minus expected events, shape (cells,)."""
        return self.events - self.rows * self.rate

    def drawn(self, first: int, count: int, seed: int) -> Drawn:
        """Simulated events from draw `first` on, shape (cells, count)."""
        if self.ids is not None:
            return outcomes(self.ids, self.rate, first, count, STREAM)
        n = self.rows.astype(np.int64)
        streams = (np.random.default_rng([STREAM, seed, b, self.start]) for b in range(first, first + count))
        return np.stack([rng.binomial(n, self.rate) for rng in streams], axis=1)

    def part(self, at: slice) -> Self:
        """Some of the cells, with draws of their own that are independent of those of other parts."""
        there = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "start"}
        return replace(self, start=self.start + at.start, **{k: v[at] for k, v in there.items() if v is not None})

    def joined(self, table: Floats) -> tuple[NDArray[np.intp] | slice, Rows]:
        """Equal rows of a table as cells if at most half as many are left, and the row that stands for each."""
        order = np.lexsort(table.T)
        ordered = table[order]
        starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
        if len(starts) > len(order) // 2:
            return slice(None), self
        count, events = (np.add.reduceat(v[order], starts) for v in (self.rows, self.events))
        return order[starts], Rows(self.rate[order[starts]], count, events)

    def with_data(self, drawn: Drawn) -> Drawn:
        """Simulated events with those of the data as first column."""
        return np.column_stack([self.events.astype(drawn.dtype), drawn])

    def residuals(self, drawn: Drawn, at: slice) -> Floats:
        """Residuals of some cells for `drawn`, float64."""
        return drawn[at] - (self.rows * self.rate)[at, None]

    def squares(self, drawn: Drawn, at: slice, weights: Floats) -> Floats:
        """``sum_i w_i e_i^2`` over the single rows of some cells, of each row of `weights`."""
        w, p = weights[:, at], self.rate[at]
        return (w * (1.0 - 2.0 * p)) @ drawn[at].astype(np.float64) + (w @ (self.rows[at] * p**2))[:, None]


@dataclass(frozen=True, kw_only=True)
class ClusterRows(Rows):
    """Single rows in clusters: the null keeps the residuals and flips the sign of whole clusters, drawn as 0 and 1."""

    clusters: NDArray[np.int64]  # shape (cells,): numbered from 0
    law = "sign flips of whole clusters, asymptotic in their number"

    def drawn(self, first: int, count: int, seed: int) -> Drawn:
        ids = np.arange(int(self.clusters.max()) + 1, dtype=np.uint64)
        salt = int(np.random.default_rng([STREAM, seed]).integers(1 << 62))
        return outcomes(ids, np.full(len(ids), 0.5), first, count, salt)[self.clusters]

    def joined(self, _table: Floats) -> tuple[NDArray[np.intp] | slice, Rows]:
        return slice(None), self

    def with_data(self, drawn: Drawn) -> Drawn:
        return np.column_stack([np.ones(len(self.rate), dtype=drawn.dtype), drawn])

    def residuals(self, drawn: Drawn, at: slice) -> Floats:
        return self.residual[at, None] * (2.0 * drawn[at] - 1.0)

    def squares(self, _drawn: Drawn, at: slice, weights: Floats) -> Floats:
        return (weights[:, at] @ self.residual[at] ** 2)[:, None]


@dataclass(frozen=True)
class Basis:
    """What is projected out: ``B = [1, logit p]`` with weights ``p (1 - p)``; the slope only where scores differ."""

    columns: Floats  # shape (cells, k): B, the logit standardised
    each: Floats  # shape (cells, k): `p (1 - p) B` of one row
    inverse: Floats  # shape (k, k): of `B' V B`, diagonal


FLAT = 1e-9  # deviation of the logit below which it is constant


def basis_of(rows: Rows) -> Basis:
    """The basis, its columns orthogonal under the weights."""
    variance = rows.rate * (1.0 - rows.rate)
    weight = rows.rows * variance
    total = float(weight.sum())
    columns = np.ones((len(weight), 1))
    if total > 0:
        inside = variance > 0
        p = np.where(inside, rows.rate, 0.5)
        logit = np.log(p) - np.log1p(-p)
        logit = np.where(inside, logit - (weight @ logit) / total, 0.0)
        spread = float(np.sqrt(weight @ logit**2 / total))
        if spread > FLAT:
            columns = np.column_stack([columns, logit / spread])
    gram = (weight[:, None] * columns**2).sum(axis=0)
    inverse = np.diag(np.divide(1.0, gram, out=np.zeros_like(gram), where=gram > 0))
    return Basis(columns, variance[:, None] * columns, inverse)


def statistics(kernel: Kernel, rows: Rows, draws: int, seed: int, tile: int = TILE) -> Floats:
    r"""The four statistics of the data (first column) and of each draw, float64 of shape (4, draws + 1).

    In the order of `NAMES`: ``sum_{i != j} e_i K_ij e_j``; the same with ``P' K P`` in place of K, where
    ``P e = e - V B (B' V B)^-1 B' e`` takes intercept and slope out; and the score statistics
    ``e' B (B' V B)^-1 B' e`` of the first and of both columns of B. The tiles multiply centred residuals only; the raw
    sum is put together from them in float64. Both sums leave out the pairs of a row with itself, so that under the
    null they have mean zero, whatever the spread of the outcomes.
    """
    kept = max(1, AT_ONCE // len(rows.rate))
    results: list[Floats] = []
    for first in range(-1, draws, kept):
        count = min(kept, draws - first)
        drawn = rows.drawn(max(first, 0), count - (first < 0), seed)
        results.append(statistics_of(kernel, rows, rows.with_data(drawn) if first < 0 else drawn, tile))
    return np.concatenate(results, axis=1)


def statistics_of(kernel: Kernel, rows: Rows, drawn: Drawn, tile: int = TILE) -> Floats:
    """The four statistics of the outcomes in each column of `drawn`, float64 of shape (4, columns)."""
    basis, kept = basis_of(rows), max(1, AT_ONCE // len(rows.rate))
    with one_thread():
        parts = [_block(kernel, rows, basis, drawn[:, b : b + kept], tile) for b in range(0, drawn.shape[1], kept)]
    return np.concatenate(parts, axis=1)


def _block(kernel: Kernel, rows: Rows, basis: Basis, drawn: Drawn, tile: int) -> Floats:
    """The statistics of some draws."""
    cells, width = basis.columns.shape[0], drawn.shape[1]
    parts = [slice(s, s + CHUNK) for s in range(0, cells, CHUNK)]
    # (1) S = B' e, and what it takes out of each residual: V B (B' V B)^-1 S.
    score = np.zeros((basis.columns.shape[1], width))
    for at in parts:
        score += basis.columns[at].T @ rows.residuals(drawn, at)
    slope = basis.inverse @ score
    expected = rows.rows[:, None] * basis.each
    # (2) Centred residuals, in single precision for the tiles, and their squares in double.
    centred, square = np.empty(drawn.shape, np.float32), np.zeros(width)
    for at in parts:
        e = rows.residuals(drawn, at) - expected[at] @ slope
        centred[at] = e
        square += np.einsum("ib,ib->b", e, e)
    # (3) Sums over pairs, of centred residuals and of the columns that were taken out.
    inner, across = off_diagonal(kernel, centred, expected, tile)
    across += expected  # the kernel of a row with itself
    inside = expected.T @ across
    # (4) The raw sum from the centred one: e = P e + V B slope; and what pairs of a row with itself add to both.
    mixed, own = np.zeros_like(score), np.zeros((2, width))
    b = basis.columns @ basis.inverse
    of_centred = 1.0 - 2.0 * (b * across).sum(axis=1) + np.einsum("ij,jk,ik->i", b, inside, b)  # diagonal of P' K P
    diagonal = np.stack([np.ones(cells), of_centred])
    for at in parts:
        mixed += across[at].T @ centred[at].astype(np.float64)
        own += rows.squares(drawn, at, diagonal)
    local = inner + square
    whole = local + 2.0 * (slope * mixed).sum(axis=0) + (slope * (inside @ slope)).sum(axis=0)
    tests = np.cumsum(score * slope, axis=0)
    return np.stack([whole - own[0], local - own[1], tests[0], tests[-1]])


def smallest(ranks: Floats) -> float:
    """The p-value of the smallest of several p-values in the first column, calibrated by the other columns.

    Columns with the same smallest one are distinguished by the product of all: otherwise each of k statistics would
    give its own largest draw the smallest rank, and no p-value could be under ``k / columns``.
    """
    least, product = ranks.min(axis=0), np.log(ranks).sum(axis=0)
    same = np.abs(least - least[0]) <= 1e-12  # ranks are whole numbers over the columns: rounding
    before = (least < least[0]) & ~same | same & (product <= product[0] + ROUNDING)
    return float(before.mean())
