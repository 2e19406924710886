"""From rows with units or weights to the ranges of the boxes that their traits make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.units import rows_of_units
from calibrant.errors import NotComputable
from calibrant.stats.cells import summed
from calibrant.stats.pockets.family import STEPS
from calibrant.stats.pockets.ranges import Ranges, RowRanges
from calibrant.stats.pockets.unit_ranges import FEWEST, UnitRanges, unit_rows
from calibrant.stats.units.units import Units
from calibrant.views.boxes import Tables
from calibrant.views.units import units_of

Floats = NDArray[np.float64]

FEW = (
    "there are {:,} units: no box of at least {:g} % of the rows has {} of them, with {} more that have rows elsewhere"
)


def ranges_of(data: Predictions | Sketch, tables: Tables, min_size: float, seed: int) -> Ranges:
    """Return the ranges of the boxes with at least a share of the rows: by units where rows come in them or weigh.

    Raises
    ------
    NotComputable
        No box has rows enough, or units enough inside and outside.
    """
    units = units_of(data, seed)
    if units is None or tables.held is None:
        return RowRanges(tables.family(min_size))
    held = rows_of_units(data).cache
    key = (
        "unit boxes",
        tuple(t.name for t in tables.traits),
        tuple(map(tuple, tables.layout.combined)),
        min_size,
        seed,
    )
    if key not in held:
        rows = unit_rows(tables.held.cells, units.unit, units.p, units.y, units.given)
        held[key] = UnitRanges.of(tables.family(min_size), rows)
    found: UnitRanges | None = held[key]
    if found is None:
        raise NotComputable(FEW.format(units.count, 100 * min_size, FEWEST, FEWEST))
    return found


def told_of_units(units: Units) -> dict[str, float]:
    """Return what the settings of a certificate of boxes tell of units: all certify, and none is made lighter."""
    size = units.given_size
    return {
        "units": units.count,
        "effective_units": float(size.sum() ** 2 / (size**2).sum()),
        "largest_unit": float(size.max()),
    }


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """What rows count in a search for pockets: their weights, one on average, and how much more noise units make.

    Parameters
    ----------
    of : Units
    cells : Tables
    times : float array of shape (boxes,)
        Variance of each box's residual by units over that of independent rows.
    """

    of: Units
    cells: Tables
    times: Floats

    @property
    def shift(self) -> float:
        """Weighted mean residual of everyone."""
        return float((self.of.given * (self.of.y - self.of.p)).sum() / self.of.given.sum())

    def units(self, inside: NDArray[np.bool_]) -> int:
        """Return how many units have some of the rows."""
        return len(np.unique(self.of.unit[inside]))

    def tables(self, rows: NDArray[np.intp]) -> list[Floats]:
        """Return the tables of some rows: weights, weighted cases, scores and null variances, the last two in steps."""
        return [_table(self.of, self.cells, t, rows) for t in range(len(self.cells.layout.combined))]


def _table(units: Units, tables: Tables, number: int, rows: NDArray[np.intp]) -> Floats:
    traits, held = tables.layout.combined[number], tables.held
    w, p, y = units.given[rows] / units.given.mean(), units.p[rows], units.y[rows]
    parts = (w, w * y, w * p * STEPS, w**2 * p * (1.0 - p) * STEPS)
    shape = tuple(tables.traits[t].size for t in traits)
    cells = np.empty((0, 0)) if held is None else held.cells[list(traits)][:, rows]
    where = np.ravel_multi_index(tuple(cells.astype(np.int64)), shape)
    return np.stack([summed(where, v, int(np.prod(shape))) for v in parts], axis=1).reshape(*shape, len(parts))


def weighed_table(units: Units, tables: Tables, number: int) -> Floats:
    """Return one table with every row counted by its weight."""
    return _table(units, tables, number, np.arange(len(units.p)))


def weighed(tables: Tables, ranges: Ranges, units: Units | None) -> Weighed | None:
    """Return what rows count; None where they are independent and alike."""
    if units is None or not isinstance(ranges, UnitRanges):
        return None
    variance = np.maximum(ranges.quiet / ranges.sums[0] ** 2, 1e-300)
    return Weighed(of=units, cells=tables, times=ranges.error**2 / variance)
