r"""What bets on residuals win, cell by cell: lower bounds of ``sum ln(1 + t (y - p - m))`` from rows or from sums.

A *ledger* is what certificates along a variable read. A bound from below of every logarithm keeps an e-value an
e-value, so a ledger may keep less than the rows, at a price that each class states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

EXACT = 20_000  # rows up to which logarithms are added row by row
TAIL = 4  # powers kept of more rows


class Ledger(Protocol):
    """Residuals ``r = y - p`` of rows in cells of a variable and in random blocks."""

    @property
    def sums(self) -> Any:
        """Rows, sums of residuals and of their squares, per block and cell: shape (blocks, cells, 3)."""

    def growth(self, tilt: Any, shift: float = 0.0, block: int | None = None) -> Any:
        """Return at most ``sum ln(1 + tilt (r - shift))`` per cell, of one block or of all.

        Parameters
        ----------
        tilt : float array of shape (cells,)
            ``|tilt| (1 + |shift|) < 1``.
        shift : float
        block : int, optional
        """

    def merged(self) -> Ledger:
        """Return the ledger of all rows in one cell and one block."""


@dataclass(frozen=True)
class RowLedger:
    """The rows themselves: exact.

    Parameters
    ----------
    residual : float64 array of shape (n,)
    cell : int32 array of shape (n,)
    block : uint8 array of shape (n,)
    cells, blocks : int
    """

    residual: Any
    cell: Any
    block: Any
    cells: int
    blocks: int

    @cached_property
    def sums(self) -> Any:
        """See `Ledger`."""
        return _powers(self)[..., :3]

    def growth(self, tilt: Any, shift: float = 0.0, block: int | None = None) -> Any:
        """See `Ledger`."""
        rows = slice(None) if block is None else self.block == block
        cell = self.cell[rows]
        return np.bincount(cell, np.log1p(tilt[cell] * (self.residual[rows] - shift)), self.cells)

    def merged(self) -> RowLedger:
        """See `Ledger`."""
        return RowLedger(self.residual, np.zeros_like(self.cell), np.zeros_like(self.block), 1, 1)


def _powers(rows: RowLedger) -> Any:
    from calibrant.kernels.strata import power_sums

    return power_sums(rows.residual, rows.cell, rows.block, rows.cells, rows.blocks)


@dataclass(frozen=True)
class PowerLedger:
    """Sums of the first four powers; the logarithm's series to the fourth term, less a bound of the rest.

    Of n rows and the bets in use, the rest is at most about ``n^(-3/2)`` times the fifth power of the stake: nothing.

    Parameters
    ----------
    powers : float64 array of shape (blocks, cells, 5)
        Sums of ``r^0`` to ``r^4``.
    """

    powers: Any

    @classmethod
    def of(cls, rows: RowLedger) -> PowerLedger:
        """Sum the powers of rows."""
        return cls(_powers(rows))

    @property
    def sums(self) -> Any:
        """See `Ledger`."""
        return self.powers[..., :3]

    def growth(self, tilt: Any, shift: float = 0.0, block: int | None = None) -> Any:
        """See `Ledger`."""
        raw = self.powers.sum(axis=0) if block is None else self.powers[block]
        n, a, b, c, d = (raw[:, k] for k in range(TAIL + 1))
        m = -shift
        first, second = a + n * m, b + 2 * a * m + n * m**2
        third = c + 3 * b * m + 3 * a * m**2 + n * m**3
        fourth = d + 4 * c * m + 6 * b * m**2 + 4 * a * m**3 + n * m**4
        most = np.abs(tilt) * (1.0 + abs(shift))
        rest = 0.25 + most / (5.0 * (1.0 - most))
        return tilt * first - tilt**2 * second / 2 + tilt**3 * third / 3 - tilt**4 * fourth * rest

    def merged(self) -> PowerLedger:
        """See `Ledger`."""
        return PowerLedger(self.powers.sum(axis=(0, 1), keepdims=True))


@dataclass(frozen=True)
class ChordLedger:
    """Counts and score sums by range of the score, as a sketch keeps them.

    ``ln(1 + t (y - p - m))`` is concave in p, so the chord through the ends of a range, at the exact mean score, is a
    lower bound; where sums of squares are kept, the series to the second term less a bound of the rest is another,
    and the larger counts.

    Parameters
    ----------
    counts, scores : arrays of shape (blocks, cells, ranges, 2)
        Rows by label, and sums of their scores.
    low, high : arrays of shape (ranges,)
    squares : array of shape (blocks, cells, ranges, 2) or None
        At least the sums of the squared scores.
    """

    counts: Any
    scores: Any
    low: Any
    high: Any
    squares: Any = None

    def turned(self) -> ChordLedger:
        """Return the ledger of the confidence view: outcome and score turned round in the ranges below one half."""
        below = self.high <= 0.5
        flip = below[None, None, :, None]
        counts = np.where(flip, self.counts[..., ::-1], self.counts)
        scores = np.where(flip, (self.counts - self.scores)[..., ::-1], self.scores)
        squares = self.squares
        if squares is not None:
            squares = np.where(flip, (self.counts - 2 * self.scores + squares)[..., ::-1], squares)
        low, high = np.where(below, 1 - self.high, self.low), np.where(below, 1 - self.low, self.high)
        return ChordLedger(counts, scores, low, high, squares)

    @cached_property
    def sums(self) -> Any:
        """See `Ledger`; squares are those of each range's mean residual where only sums are kept."""
        n, s = self.counts, self.scores
        square = self.squares if self.squares is not None else s**2 / np.maximum(n, 1)
        label = np.array([0.0, 1.0])
        first, second = n * label - s, n * label - 2 * s * label + square
        return np.stack([v.sum(axis=(2, 3)) for v in (n, first, second)], axis=-1)

    def growth(self, tilt: Any, shift: float = 0.0, block: int | None = None) -> Any:
        """See `Ledger`."""
        n, s = (v.sum(axis=0) if block is None else v[block] for v in (self.counts, self.scores))
        q = None if self.squares is None else (self.squares.sum(axis=0) if block is None else self.squares[block])
        t, width = tilt[:, None], np.where(self.high > self.low, self.high - self.low, 1.0)
        out = np.zeros(len(tilt))
        for label in (0, 1):
            rows, total = n[..., label], s[..., label]
            left, right = label - shift - self.low, label - shift - self.high
            share = np.clip((total / np.maximum(rows, 1) - self.low) / width, 0.0, 1.0)
            won = rows * ((1.0 - share) * np.log1p(t * left) + share * np.log1p(t * right))
            if q is not None:
                first = rows * (label - shift) - total
                second = rows * (label - shift) ** 2 - 2 * (label - shift) * total + q[..., label]
                most = np.abs(t) * np.maximum(np.abs(left), np.abs(right))
                won = np.maximum(won, t * first - t**2 * second * (0.5 + most / (3.0 * (1.0 - most))))
            out += won.sum(axis=1)
        return out

    def merged(self) -> ChordLedger:
        """See `Ledger`; the chords add up to the same number."""
        squares = None if self.squares is None else self.squares.sum(axis=(0, 1), keepdims=True)
        counts, scores = (v.sum(axis=(0, 1), keepdims=True) for v in (self.counts, self.scores))
        return ChordLedger(counts, scores, self.low, self.high, squares)


def ledger_of(rows: RowLedger) -> RowLedger | PowerLedger:
    """Return rows as they are, or the sums of their powers if they are many."""
    return rows if len(rows.residual) <= EXACT else PowerLedger.of(rows)
