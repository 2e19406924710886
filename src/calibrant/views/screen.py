"""Many covariates: which of them the dear tests read, chosen on rows that are not tested.

A test of some covariates is valid whatever chose them, as long as the labels that it reads had no part in the choice.
So a third of the rows, dealt by number and seed, chooses; the tests read the other two thirds. Given the third, those
rows are independent as before, and every level, range and p-value of theirs holds as if the covariates had been named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.columns import is_number
from calibrant.data.layouts import decoded, is_date
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities
from calibrant.data.specs.local import MOST
from calibrant.data.specs.spec import Spec
from calibrant.kernels.strata import locate
from calibrant.views.by_variable import finite_values

Floats = NDArray[np.float64]
Places = NDArray[np.integer]
Rows = NDArray[np.intp]

CHOSEN = 24  # covariates next to those named that are read where there are too many: 325 tables with the score's
PILOT = 1.0 / 3.0  # share of the rows that choose them
BINS = 10  # of a number, of about equally many rows
LEAST = 2.0  # null variance of a level that is looked at by itself, in expected events; the others are together


@dataclass(frozen=True, kw_only=True)
class Screen:
    """What was chosen, and by whom."""

    chosen: tuple[str, ...]  # covariates that are tested: those asked for in any case, then the largest departure first
    of: int  # covariates in all
    # `pilot` and `tested`: rows that chose, none where there was no choice, and rows that are tested.
    pilot: int
    tested: int

    def to_dict(self) -> dict[str, Any]:
        """Return what a record says of it."""
        return {"chosen": self.chosen, "of": self.of, "rows_chose": self.pilot, "rows_tested": self.tested}


def hash_split(n: int, seed: int) -> tuple[Rows, Rows]:
    """The rows that choose, and the rows that are tested; labels play no part."""
    ids = identities(n, 0, Spec(label="y", score="p", seed=seed).salt("screen"))
    pilot = ids < np.uint64(PILOT * 2.0**64)
    return np.flatnonzero(pilot), np.flatnonzero(~pilot)


def strongest(pilot: Predictions, most: int = CHOSEN, always: Sequence[str] = ()) -> tuple[str, ...]:
    """Return those of `always`, then the others along which residuals depart most from noise: `most`, while all fit.

    Notes
    -----
    **Assumes.** Rows that no test reads afterwards. **Cost.** Rows times covariates: two sums each.
    **Reads.** Rows, and their labels.
    """
    table = pilot.covariates if pilot.covariates is not None else pa.table({})
    residual, variance = pilot.y - pilot.p, pilot.p * (1.0 - pilot.p)
    first = [name for name in dict.fromkeys(always) if name in table.column_names][:MOST]
    results = {}
    for name in table.column_names:
        if name not in first:
            cell, ordered = _cells(decoded(table.column(name), name), name)
            results[name] = departure(cell, residual, variance, ordered)
    rest = sorted(results, key=lambda name: -results[name])  # of equal ones the first column
    return (*first, *rest[: min(most, MOST - len(first))])


def _cells(column: Any, name: str) -> tuple[Places, int]:
    """The cell of each row of a covariate, and how many of the cells are in order."""
    if is_number(column.type) or is_date(column.type):
        values = finite_values(column, name)
        there = np.sort(values[~np.isnan(values)])
        edges = np.unique(there[np.arange(1, BINS) * len(there) // BINS]) if len(there) else there
        return np.where(np.isnan(values), len(edges) + 1, locate(values, edges)), len(edges) + 1
    coded = column.dictionary_encode()
    return coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False), 0


def departure(cell: Places, residual: Floats, variance: Floats, ordered: int) -> float:
    """The largest standardised departure of residual sums from noise, in about standard normal deviations.

    The overall mean residual is taken out. Looked at are the level that stands out most, the sum of squares over all
    cells and, of cells in order, the trend and the bend over their ranks: score statistics of a linear, a quadratic and
    a level-wise term.

    Parameters
    ----------
    cell : int array of shape (n,)
        From 0 on.
    residual, variance : float64 arrays of shape (n,)
        Outcome less probability, and its null variance.
    ordered : int
        How many of the first cells are in order; those after them, such as the one of missing values, are not.

    Notes
    -----
    **Cost.** Two sums over the rows. **Reads.** Labels: use it on rows that are not tested afterwards.
    """
    # (1) Sums of each cell, small cells joined, less the overall mean residual by the share of the variance
    sums, noise = np.bincount(cell, residual), np.bincount(cell, variance)
    total = float(noise.sum())
    if total <= 0.0:
        return 0.0
    left = sums - noise / total * sums.sum()
    # (2) Trend and bend over the ranks of the cells in order
    results = [0.0]
    there = np.flatnonzero(noise[:ordered] > 0.0)
    if len(there) > 1:
        rank, root = np.cumsum(noise[there]) - 0.5 * noise[there], np.sqrt(noise[there])
        basis = np.ones((len(there), 1))
        for power in (1, 2):
            column = (rank / rank[-1]) ** power
            column = column - basis @ np.linalg.lstsq(basis * root[:, None], column * root, rcond=None)[0]
            size = float(column**2 @ noise[there])
            if size > 1e-12 * total:
                results.append(abs(float(column @ left[there])) / np.sqrt(size))
                basis = np.column_stack([basis, column])
    # (3) Cell by cell: the one that stands out most, less what the most of so many do, and all of them together
    few = noise < LEAST
    if few.any():
        left = np.append(left[~few], left[few].sum())
        noise = np.append(noise[~few], noise[few].sum())
    kept = (noise >= LEAST) & (noise < total)
    cells = int(kept.sum())
    if cells > 1:
        squares = left[kept] ** 2 / (noise[kept] * (1.0 - noise[kept] / total))
        results.append(float(np.sqrt(squares.max())) - np.sqrt(2.0 * np.log(cells)) + 1.0)
        mean = float(squares.sum()) / cells  # by Wilson and Hilferty's cube root a chi-square is about normal
        results.append((mean ** (1.0 / 3.0) - (1.0 - 2.0 / (9.0 * cells))) / np.sqrt(2.0 / (9.0 * cells)))
    return float(max(results))
