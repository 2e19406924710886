"""Rows summed by score cell: what every certificate reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FINE_GRID = 1 << 14  # cells of a sketch: steps of 6e-5 in the score
SCALE = float(1 << 30)  # scores are integers out of 2**30


def summed(at: NDArray[np.integer], values: Floats | Ints, size: int = 0) -> Floats:
    """Sums of values by the number, from 0 on, that each has in `at`; as many as the largest asks, or `size`."""
    return np.asarray(np.bincount(at, values, size), dtype=np.float64)


@dataclass(frozen=True)
class Cells:
    """Counts and exact score sums per random block and score cell."""

    counts: Ints  # shape (blocks, cells, 2): rows with label 0 and with label 1
    # Shape (blocks, cells, 2): sums of the scores of those rows, out of 2**30; exact integers for a grid.
    sums: Ints | Floats
    # `low` and `high`, shape (cells,): ends of each cell, increasing; equal where the score takes one value.
    low: Floats
    high: Floats
    few: bool = False  # the score takes few values, so that the error's sign can be learnt for each cell
    # What was made of these cells before, by who made it and with what.
    cache: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def grid(cls, counts: Ints, sums: Ints) -> Cells:
        """Cells of equal width that cover [0, 1]."""
        edges = np.arange(counts.shape[1] + 1) / counts.shape[1]
        return cls(counts, sums, edges[:-1], edges[1:])

    @classmethod
    def levels(cls, counts: Ints, values: Floats) -> Cells:
        """Cells of a score that takes only the given values."""
        return cls(counts, counts * (values * SCALE)[None, :, None], values, values)

    @classmethod
    def of_rows(cls, y: NDArray[np.integer], p: Floats) -> Cells:
        """Cells of rows, one for each value of the score, as one block."""
        values, at = np.unique(p, return_inverse=True)
        counts = np.bincount(2 * at.reshape(-1) + y, minlength=2 * len(values)).reshape(1, -1, 2)
        return cls.levels(counts, values)

    def thinned(self) -> Cells:
        """Join sixteen cells to one in the middle of a fine grid, keeping it fine within 1/64 of 0 and of 1.

        The partition is fixed, whatever the data, so that nothing learnt on it looks ahead. Coarser grids, and scores
        of few values, are returned as they are.
        """
        if self.size != FINE_GRID or self.low[1] == self.low[0]:
            return self
        starts = thin_starts()
        ends = np.append(starts[1:], FINE_GRID) - 1
        counts, sums = (np.add.reduceat(v, starts, axis=1) for v in (self.counts, self.sums))
        return Cells(counts, sums, self.low[starts], self.high[ends], self.few)

    @cached_property
    def nonempty(self) -> Cells:
        """The thinned cells that hold rows: all that a bet can be about."""
        cells = self.thinned()
        where = cells.occupied()
        if len(where) == cells.size:
            return cells
        return Cells(cells.counts[:, where], cells.sums[:, where], cells.low[where], cells.high[where], cells.few)

    @cached_property
    def joined(self) -> Cells:
        """The rows of all blocks as one block."""
        return Cells(self.counts.sum(axis=0)[None], self.sums.sum(axis=0)[None], self.low, self.high, self.few)

    @cached_property
    def chords(self) -> Chords:
        """Where the rows of each block are put, so that sums of scores are enough."""
        block, cell, label = np.nonzero(self.counts)
        rows, low, high = self.counts[block, cell, label], self.low[cell], self.high[cell]
        wide = high > low
        mean = self.sums[block, cell, label] / SCALE / rows
        share = np.where(wide, (mean - low) / np.where(wide, high - low, 1.0), 0.0)
        weight = np.stack([rows * (1.0 - share), rows * share], axis=1).ravel()
        at = np.stack([label - low, label - high], axis=1).ravel()
        kept = np.flatnonzero(weight)
        starts = np.searchsorted(np.repeat(block, 2)[kept], np.arange(self.blocks + 1))
        return Chords(np.repeat(cell, 2)[kept], at[kept], weight[kept], starts, np.repeat(label, 2)[kept])

    @property
    def blocks(self) -> int:
        """Random blocks."""
        return int(self.counts.shape[0])

    @property
    def size(self) -> int:
        """Cells."""
        return int(self.counts.shape[1])

    @property
    def middle(self) -> Floats:
        """Middles of the cells, shape (cells,)."""
        return 0.5 * (self.low + self.high)

    @cached_property
    def rows(self) -> Ints:
        """Rows of either label, shape (blocks, cells)."""
        return self.counts[..., 0] + self.counts[..., 1]  # twenty times as fast as a sum along two numbers

    @cached_property
    def block_rows(self) -> Ints:
        """Rows per block, shape (blocks,)."""
        return self.rows.sum(axis=1)

    @cached_property
    def residuals(self) -> Floats:
        """Residual sums ``sum (y - p)``, shape (blocks, cells)."""
        return self.counts[..., 1] - (self.sums[..., 0] + self.sums[..., 1]) / SCALE

    @cached_property
    def variances(self) -> Floats:
        """Null variances ``sum p (1 - p)`` at the middle of each cell, shape (blocks, cells): a scale for noise."""
        return self.rows * (self.middle * (1.0 - self.middle))

    @cached_property
    def totals(self) -> Ints:
        """Counts over all blocks, shape (cells, 2)."""
        return self.counts.sum(axis=0)

    @cached_property
    def score_sums(self) -> Floats:
        """Sums of scores over all blocks, as floats, shape (cells, 2)."""
        return self.sums.sum(axis=0) / SCALE

    @cached_property
    def n(self) -> int:
        """Rows."""
        return int(self.block_rows.sum())

    @cached_property
    def events(self) -> int:
        """Rows with label 1."""
        return int(self.totals[:, 1].sum())

    @cached_property
    def expected(self) -> float:
        """Sum of the scores."""
        return float(self.score_sums.sum())

    def occupied(self) -> NDArray[np.intp]:
        """Indices of the cells that hold rows."""
        return np.flatnonzero(self.rows.any(axis=0))

    def equal_mass(self, bins: int, blocks: NDArray[np.intp] | None = None) -> Ints:
        """Assign each cell to one of at most `bins` runs of consecutive cells with about equally many rows.

        `blocks`: blocks whose rows set the edges; all by default. The result has shape (cells,): non-decreasing bin
        numbers from 0.
        """
        return equal_mass((self.rows if blocks is None else self.rows[blocks]).sum(axis=0), bins)


def equal_mass(rows: Ints, bins: int) -> Ints:
    """Assign each cell, of so many rows, to one of at most `bins` runs of cells with about equally many rows."""
    before = np.cumsum(rows) - rows
    middle = before + 0.5 * rows
    raw = np.floor(bins * middle / max(rows.sum(), 1)).astype(np.int64)
    return np.minimum(np.maximum.accumulate(raw), bins - 1)


def thin_starts() -> Ints:
    """The first fine cell of each thinned one."""
    edge = FINE_GRID // 64
    middle = np.arange(edge, FINE_GRID - edge, 16)
    return np.concatenate([np.arange(edge), middle, np.arange(FINE_GRID - edge, FINE_GRID)])


class Chords(NamedTuple):
    """Rows of each block, cell and label, put at the ends of their cell with their mean score kept."""

    cell: NDArray[np.intp]  # shape (m,): sorted by block
    at: Floats  # shape (m,): label less score there
    weight: Floats  # shape (m,): rows put there, above zero
    starts: NDArray[np.intp]  # shape (blocks + 1,): where each block begins
    label: NDArray[np.intp]  # shape (m,)


def log_growth(cells: Cells, block: int, tilt: Floats) -> float:
    r"""A lower bound of ``sum ln(1 + tilt(p) (y - p))`` over one block's rows.

    Within a cell the tilt is constant and ``ln(1 + t (y - p))`` is concave in ``p``; the chord through the ends
    of the cell, at the exact mean score, is therefore a lower bound, and the sum of scores is all it needs.

    `tilt` (cells,) or (): in (-1, 1).
    """
    result = cells.chords
    own = slice(result.starts[block], result.starts[block + 1])
    here = tilt[result.cell[own]] if tilt.ndim else tilt
    return float(result.weight[own] @ np.log1p(here * result.at[own]))
