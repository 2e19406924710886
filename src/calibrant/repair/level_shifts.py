"""Shifts of the score in cells (group x level of the score), one grouping after another, until no cell is off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, codings, encode
from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput
from calibrant.kernels.level_shifts import cell_sums, shift
from calibrant.kernels.level_shifts_reference import cell_count
from calibrant.kernels.trees_reference import BINS
from calibrant.repair.binned import Edges, binned, number_edges
from calibrant.repair.fitted import Batch, FittedMap
from calibrant.repair.provenance import fitted_on
from calibrant.repair.soundness import inputs_of, rising, sound

MOST = 100  # levels
SWEEPS = 500  # over all groupings, at most
Judge = Callable[[Any, Any], Any]  # event rates and mean scores of cells -> which are off


@dataclass(frozen=True, kw_only=True)
class LevelShifts(FittedMap):
    """Shifts in cells of groups and levels of the score, made one after another.

    Parameters
    ----------
    levels : int
        Levels of the score, of equal width.
    edges : tuple of tuple of float
        Where the bins of each number begin.
    grouping : tuple of tuple of int
        The two columns of each step (0 none, then numbers, then levels), -1 for none.
    cells : tuple of tuple of int
        The cells each step shifts: ``(first bin * 52 + second bin) * levels + level``.
    shifts : tuple of tuple of float
        By how much.
    """

    levels: int
    edges: Edges = ()
    grouping: tuple[tuple[int, int], ...] = ()
    cells: tuple[tuple[int, ...], ...] = ()
    shifts: tuple[tuple[float, ...], ...] = ()

    def check(self) -> None:
        """Raise `ValueError` if a step is about columns or cells that are not there."""
        x = inputs_of(self.codings)
        sound(1 <= self.levels <= MOST, f"levels must be from 1 to {MOST}")
        sound(len(self.edges) == x.numbers and all(len(e) < BINS and rising(e) for e in self.edges), "edges must rise")
        sound(len(self.grouping) == len(self.cells) == len(self.shifts), "every step needs columns, cells and shifts")
        for (first, second), cells, by in zip(self.grouping, self.cells, self.shifts, strict=True):
            sound(-1 <= first <= x.columns and -1 <= second <= x.columns, "a step asks for a column that is not there")
            top = cell_count(first, second, self.levels)
            sound(len(cells) == len(by) and all(0 <= c < top for c in cells), "a step shifts a cell that is not there")

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores."""
        out = np.array(rows.p, dtype=np.float64)
        codes = binned(rows.covariates, self.codings, self.edges, len(out))
        for (first, second), cells, by in zip(self.grouping, self.cells, self.shifts, strict=True):
            table = np.zeros(cell_count(first, second, self.levels))
            table[list(cells)] = by
            shift(codes, first, second, table, self.levels, out)
        return out


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Which cells are looked at.

    Parameters
    ----------
    variables : sequence of str or None
    cuts : int
        Groups that a number is cut into, of equal size.
    depth : int
        1: groups of one variable; 2: of each pair too.
    levels : int
    fewest : int
        Rows that a cell must hold.
    """

    variables: Sequence[str] | None
    cuts: int
    depth: int
    levels: int
    fewest: int

    def check(self) -> None:
        """Refuse settings that cannot be used."""
        for name, low, high in (("cuts", 2, BINS), ("depth", 1, 2), ("levels", 1, MOST), ("fewest", 1, 10**9)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
                raise BadInput(f"{name}={value!r}: pass a whole number from {low} to {high}")


def groupings(columns: int, depth: int) -> tuple[tuple[int, int], ...]:
    """Return everyone, each column of covariates, and each pair of them if the depth is 2."""
    alone = ((-1, -1), *((-1, j) for j in range(1, columns)))
    return (*alone, *combinations(range(1, columns), 2)) if depth > 1 else alone


def shifted(rows: Predictions, cells: Cells, off: Judge, recipe: str, settings: dict[str, Any]) -> LevelShifts:
    """Shift cells that are off until none is, and return the map that does the same to other rows."""
    how: tuple[Coding, ...] = codings(rows.covariates, cells.variables)
    columns = encode(rows.covariates.select([c.name for c in how]), how) if how else None
    edges = () if columns is None else number_edges(columns, how, cells.cuts)
    codes = binned(columns, how, edges, rows.n)
    weight = np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()
    p = np.array(rows.p, dtype=np.float64)
    every = groupings(codes.shape[1], cells.depth)
    steps: list[tuple[tuple[int, int], tuple[int, ...], tuple[float, ...]]] = []
    done, sweeps = False, 0
    while not done and sweeps < SWEEPS:
        done, sweeps = True, sweeps + 1
        for first, second in every:
            held, by = _step(codes, first, second, rows.y, p, weight, cells.levels, cells.fewest, off)
            if len(held):
                done = False
                steps.append(((first, second), tuple(int(c) for c in held), tuple(float(v) for v in by[held])))
                shift(codes, first, second, by, cells.levels, p)
    grouping, held_cells, shifts = tuple(zip(*steps, strict=True)) if steps else ((), (), ())
    return LevelShifts(
        recipe=recipe,
        settings={**settings, "sweeps": sweeps, "reached": done, "groupings": len(every)},
        codings=how,
        fitted_on=fitted_on(rows),
        levels=cells.levels,
        edges=edges,
        grouping=grouping,
        cells=held_cells,
        shifts=shifts,
    )


def _step(
    codes: Any, first: int, second: int, y: Any, p: Any, weight: Any, levels: int, fewest: int, off: Judge
) -> tuple[Any, Any]:
    """Return the cells of one grouping that are large enough and off, and what each cell is to be shifted by."""
    sums = cell_sums(codes, first, second, y, p, weight, levels)
    heft = np.maximum(sums[:, 0], np.finfo(float).tiny)
    rate, score = sums[:, 1] / heft, sums[:, 2] / heft
    held = np.flatnonzero((sums[:, 0] >= fewest * (1.0 - 1e-12)) & off(rate, score))
    by = np.zeros(len(sums))
    by[held] = (rate - score)[held]
    return held, by
