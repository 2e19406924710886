"""The kernel statistics of local miscalibration for the data and for simulated outcomes, in one pass over tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.kernels.draws import outcomes
from calibrant.kernels.threads import one_thread
from calibrant.stats.kernel_sum import TILE, Kernel, off_diagonal

NAMES = ("raw", "centred", "intercept", "intercept and slope")
STREAM = 0x4B4C
HELD = 1 << 26  # residuals held at once
CHUNK = 1 << 12  # rows turned into residuals at once
TIE = 1e-5  # null standard deviations within which two statistics are equal


@dataclass(frozen=True)
class Rows:
    """Rows given their scores; equal rows may be joined into cells.

    Parameters
    ----------
    rate : float64 array of shape (cells,)
        Score.
    rows, cases : float64 arrays of shape (cells,)
        One and the label, if rows are not joined.
    ids : uint64 array of shape (cells,), or None
        Identities that key the simulated outcomes; None for joined rows, whose cases are drawn as Binomial.
    clusters : int64 array of shape (cells,), or None
        Cluster of each row, numbered from 0: the null then keeps the residuals and flips the sign of whole clusters.
    start : int
        Number of the first cell, which keys the draws of a part of joined rows.
    """

    rate: Any
    rows: Any
    cases: Any
    ids: Any = None
    clusters: Any = None
    start: int = 0

    @cached_property
    def n(self) -> int:
        """Rows, counted before joining."""
        return int(self.rows.sum())

    @cached_property
    def contradicted(self) -> int:
        """Rows whose outcome the score called impossible."""
        return int(self.cases[self.rate == 0].sum() + (self.rows - self.cases)[self.rate == 1].sum())

    @cached_property
    def residual(self) -> Any:
        """Cases minus expected cases, shape (cells,)."""
        return self.cases - self.rows * self.rate

    def drawn(self, first: int, count: int, seed: int) -> Any:
        """Return simulated cases, or signs as 0 and 1 for clusters, of draws `first` and after, shape (cells, count)."""
        if self.clusters is not None:
            ids = np.arange(int(self.clusters.max()) + 1, dtype=np.uint64)
            salt = int(np.random.default_rng([STREAM, seed]).integers(1 << 62))
            return outcomes(ids, np.full(len(ids), 0.5), first, count, salt)[self.clusters]
        if self.ids is not None:
            return outcomes(self.ids, self.rate, first, count, STREAM)
        n = self.rows.astype(np.int64)
        streams = (np.random.default_rng([STREAM, seed, b, self.start]) for b in range(first, first + count))
        return np.stack([rng.binomial(n, self.rate) for rng in streams], axis=1)

    def part(self, at: slice) -> Rows:
        """Return some of the cells, with draws of their own that are independent of those of other parts."""
        ids, clusters = (None if v is None else v[at] for v in (self.ids, self.clusters))
        return Rows(self.rate[at], self.rows[at], self.cases[at], ids, clusters, self.start + at.start)

    def with_data(self, drawn: Any) -> Any:
        """Return simulated cases with those of the data (for clusters: signs that change nothing) as first column."""
        own = np.ones(len(self.rate)) if self.clusters is not None else self.cases
        return np.column_stack([own.astype(drawn.dtype), drawn])

    def residuals(self, drawn: Any, at: slice) -> Any:
        """Return residuals of some cells for `drawn`, float64."""
        if self.clusters is not None:
            return self.residual[at, None] * (2.0 * drawn[at] - 1.0)
        return drawn[at] - (self.rows * self.rate)[at, None]

    def squares(self, drawn: Any, at: slice, weights: Any) -> Any:
        """Return ``sum_i w_i e_i^2`` over the single rows of some cells, of each row of `weights`."""
        w, p = weights[:, at], self.rate[at]
        if self.clusters is not None:
            return (w @ self.residual[at] ** 2)[:, None]
        return (w * (1.0 - 2.0 * p)) @ drawn[at].astype(np.float64) + (w @ (self.rows[at] * p**2))[:, None]


@dataclass(frozen=True)
class Basis:
    """What is projected out: ``B = [1, logit p]`` with weights ``p (1 - p)``; the slope only where scores differ.

    Parameters
    ----------
    columns : float64 array of shape (cells, k)
        B, the logit standardised.
    each : float64 array of shape (cells, k)
        ``p (1 - p) B`` of one row.
    inverse : float64 array of shape (k, k)
        Of ``B' V B``, diagonal.
    """

    columns: Any
    each: Any
    inverse: Any


def basis_of(rows: Rows) -> Basis:
    """Return the basis, its columns orthogonal under the weights."""
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
        if spread > 1e-9:
            columns = np.column_stack([columns, logit / spread])
    gram = (weight[:, None] * columns**2).sum(axis=0)
    inverse = np.diag(np.divide(1.0, gram, out=np.zeros_like(gram), where=gram > 0))
    return Basis(columns, variance[:, None] * columns, inverse)


def statistics(kernel: Kernel, rows: Rows, draws: int, seed: int, tile: int = TILE) -> Any:
    r"""Return the four statistics of the data (first column) and of each draw, float64 of shape (4, draws + 1).

    In the order of `NAMES`: ``sum_{i != j} e_i K_ij e_j``; the same with ``P' K P`` in place of K, where
    ``P e = e - V B (B' V B)^-1 B' e`` takes intercept and slope out; and the score statistics
    ``e' B (B' V B)^-1 B' e`` of the first and of both columns of B. The tiles multiply centred residuals only; the raw
    sum is put together from them in float64. Both sums leave out the pairs of a row with itself, so that under the
    null they have mean zero, whatever the spread of the outcomes.
    """
    basis, held = basis_of(rows), max(1, HELD // len(rows.rate))
    found: list[Any] = []
    for first in range(-1, draws, held):
        count = min(held, draws - first)
        drawn = rows.drawn(max(first, 0), count - (first < 0), seed)
        if first < 0:
            drawn = rows.with_data(drawn)
        with one_thread():
            found.append(_block(kernel, rows, basis, drawn, tile))
    return np.concatenate(found, axis=1)


def _block(kernel: Kernel, rows: Rows, basis: Basis, drawn: Any, tile: int) -> Any:
    """Return the statistics of some draws."""
    cells, width = basis.columns.shape[0], drawn.shape[1]
    parts = [slice(s, s + CHUNK) for s in range(0, cells, CHUNK)]
    score = np.zeros((basis.columns.shape[1], width))
    for at in parts:
        score += basis.columns[at].T @ rows.residuals(drawn, at)
    slope = basis.inverse @ score
    expected = rows.rows[:, None] * basis.each
    centred, square = np.empty(drawn.shape, np.float32), np.zeros(width)
    for at in parts:
        e = rows.residuals(drawn, at) - expected[at] @ slope
        centred[at] = e
        square += np.einsum("ib,ib->b", e, e)
    inner, across = off_diagonal(kernel, centred, expected, tile)
    across += expected  # the kernel of a row with itself
    inside = expected.T @ across
    mixed, own = np.zeros_like(score), np.zeros((2, width))
    diagonal = np.stack([np.ones(cells), _diagonal(basis, across, inside)])
    for at in parts:
        mixed += across[at].T @ centred[at].astype(np.float64)
        own += rows.squares(drawn, at, diagonal)
    local = inner + square
    whole = local + 2.0 * (slope * mixed).sum(axis=0) + (slope * (inside @ slope)).sum(axis=0)
    tests = np.cumsum(score * slope, axis=0)
    return np.stack([whole - own[0], local - own[1], tests[0], tests[-1]])


def _diagonal(basis: Basis, across: Any, inside: Any) -> Any:
    """Return the diagonal of ``P' K P``."""
    b = basis.columns @ basis.inverse
    return 1.0 - 2.0 * (b * across).sum(axis=1) + np.einsum("ij,jk,ik->i", b, inside, b)


def ranked(statistics: Any, tie: float = TIE) -> Any:
    """Return the p-value of every column among all columns, shape as given: ``#{T >= T_b - tie sd} / columns``."""
    values = np.atleast_2d(statistics)
    out = np.empty(values.shape)
    for row, into in zip(values, out, strict=True):
        ordered = np.sort(row)
        into[:] = (len(row) - np.searchsorted(ordered, row - tie * row.std(), side="left")) / len(row)
    return out


def smallest(ranks: Any) -> float:
    """Return the p-value of the smallest of several p-values in the first column, calibrated by the other columns.

    Columns with the same smallest one are told apart by the product of all: otherwise each of k statistics would give
    its own largest draw the smallest rank, and no p-value could be under ``k / columns``.
    """
    least, product = ranks.min(axis=0), np.log(ranks).sum(axis=0)
    same = np.abs(least - least[0]) <= 1e-12
    before = (least < least[0]) & ~same | same & (product <= product[0] + 1e-9)
    return float(before.mean())
