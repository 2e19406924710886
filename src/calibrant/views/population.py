"""From a sketch to the cells and levels that one certificate reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import checked_alpha, checked_seed, choice, number
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.read import sketch_rows
from calibrant.data.reading import Reading
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable
from calibrant.results import Side
from calibrant.stats.cells import Cells

FINE = 200  # levels a sketch keeps
EXACT_LEVELS = (10, 20, 50, 100)
INDEPENDENT = "independent rows from one distribution"


@dataclass(frozen=True)
class Population:
    """One population's counts: everyone, a group, or several groups pooled.

    Parameters
    ----------
    raw : int64 array of shape (blocks, cells, 4 or more)
        Rows and remainder sums by label.
    fine : int64 array of shape (blocks, 200, 2)
    """

    raw: NDArray[np.int64]
    fine: NDArray[np.int64]

    @cached_property
    def cells(self) -> Cells:
        """Cells of the raw score; sums of scores are exact to a float's 53 bits."""
        counts = self.raw[..., :2]
        width = float((1 << 30) // self.raw.shape[1])
        start = np.arange(self.raw.shape[1])[None, :, None] * width
        return Cells.grid(counts, counts * start + self.raw[..., 2:4])

    @cached_property
    def n(self) -> int:
        """Rows."""
        return int(self.fine.sum())

    @cached_property
    def cases(self) -> int:
        """Rows with the outcome."""
        return int(self.fine[..., 1].sum())

    @property
    def grid(self) -> int:
        """Cells of the raw score."""
        return int(self.raw.shape[1])

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Cells whose rows provably share one score: the variance of the remainder is zero."""
        if self.raw.shape[2] < 6:
            return np.zeros(self.grid, dtype=bool)
        total = self.raw.sum(axis=0)
        rows, remainder, low, high = total[:, :2].sum(axis=1), total[:, 2:4].sum(axis=1), total[:, 4], total[:, 5]
        square = [(int(h) << 32) + int(v) for v, h in zip(low, high, strict=True)]
        flat = [int(a) * b == int(r) ** 2 for a, b, r in zip(rows, square, remainder, strict=True)]
        return np.array(flat)

    def levels(self, steps: int) -> Cells:
        """Return the score rounded to multiples of ``1 / steps``, one cell a level.

        Exact for 10, 20, 50, 100 and powers of two; otherwise the middle of the score's cell is rounded.
        """
        values = np.arange(steps + 1) / steps
        if steps in EXACT_LEVELS:
            ratio = FINE // steps
            level, counts = (np.arange(FINE) + ratio // 2) // ratio, self.fine
        else:
            middle = (np.arange(self.grid) + 0.5) / self.grid
            level, counts = np.floor(middle * steps + 0.5).astype(np.int64), self.raw[..., :2]
        out = np.zeros((counts.shape[0], steps + 1, 2), dtype=np.int64)
        for label in (0, 1):
            for block in range(len(out)):
                out[block, :, label] = np.bincount(level, counts[block, :, label], steps + 1)
        return Cells.levels(out, values)


def sketch_of(data: Predictions | Sketch, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    """Return a sketch of predictions, or the sketch itself."""
    seed = checked_seed(seed)
    given = checked_data(data, Predictions, Sketch)
    if isinstance(given, Sketch):
        return given.checked()
    return sketch_rows(given, Reading(by=tuple(by), intersections=intersections, seed=seed))


def everyone(data: Predictions | Sketch, seed: int = 0) -> Population:
    """Return the population of all rows."""
    whole = sketch_of(data, seed)
    if whole.n == 0:
        raise NotComputable("there are no rows")
    return Population(whole.cells, whole.levels)


def group(whole: Sketch, index: int) -> Population:
    """Return the population of one group of a sketch."""
    return Population(whole.group_cells[index], whole.group_levels[index])


def pooled(whole: Sketch, indices: Sequence[int]) -> Population:
    """Return several groups of a sketch as one population."""
    rows = list(indices)
    return Population(whole.group_cells[rows].sum(axis=0), whole.group_levels[rows].sum(axis=0))


def shares(alpha: float, side: Side) -> tuple[float, float]:
    """Return the error probabilities of the lower and the upper end; zero for a trivial end.

    A two-sided interval spends half of alpha on each end.
    """
    alpha = checked_alpha(alpha)
    ends = {"two-sided": (alpha / 2, alpha / 2), "lower": (alpha, 0.0), "upper": (0.0, alpha)}
    return ends[choice("side", side, get_args(Side))]


def checked_bandwidth(bandwidth: float, grid: int) -> float:
    """Return the bandwidth of the jitter: at least two cells of the grid wide, so that the grid resolves it."""
    return number("bandwidth", bandwidth, least=2.0 / grid, most=0.5, hint="such as 2**-6")
