"""From a sketch to the cells and levels that one certificate reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.read import sketch_rows
from calibrant.data.seed import checked_seed
from calibrant.data.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
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

    raw: Any
    fine: Any

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
    def single(self) -> Any:
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


def sketch_of(data: Any, seed: int, by: Sequence[str] = (), intersections: bool = False) -> Sketch:
    """Return a sketch of predictions, or the sketch itself."""
    seed = checked_seed(seed)
    if isinstance(data, Sketch):
        return data.checked()
    if isinstance(data, Predictions):
        return sketch_rows(data, tuple(by), intersections, {}, seed)
    if isinstance(data, MulticlassPredictions):
        raise BadInput("several classes: pass data.top_label(), or data.one_vs_rest(k) with alpha / K")
    raise BadInput(
        f"data is a {type(data).__name__}: pass calibrant.predictions(...), calibrant.read(...) or calibrant.sketch(...)"
    )


def everyone(data: Any, seed: int = 0) -> Population:
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
    if not (isinstance(alpha, (int, float)) and 0.0 < alpha < 1.0):
        raise BadInput(f"alpha={alpha!r}: pass an error probability between 0 and 1, such as 0.05")
    if side not in ("two-sided", "lower", "upper"):
        raise BadInput(f"side={side!r}: pass 'two-sided', 'lower' or 'upper'")
    return {"two-sided": (alpha / 2, alpha / 2), "lower": (alpha, 0.0), "upper": (0.0, alpha)}[side]


def checked_levels(levels: Any) -> int:
    """Return the number of steps, or refuse it."""
    if isinstance(levels, bool) or not isinstance(levels, (int, np.integer)) or not 2 <= levels <= 1024:
        raise BadInput(f"levels={levels!r}: pass a whole number of steps from 2 to 1024, such as 50 or 100")
    return int(levels)


def checked_bandwidth(bandwidth: Any, grid: int) -> float:
    """Return the bandwidth, or refuse it."""
    if not (isinstance(bandwidth, (int, float, np.floating)) and 2.0 / grid <= bandwidth <= 0.5):
        raise BadInput(f"bandwidth={bandwidth!r}: pass a number from {2.0 / grid:g} to 0.5, such as 2**-6")
    return float(bandwidth)
