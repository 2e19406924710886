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
from calibrant.data.dates import is_date
from calibrant.data.layouts import decoded
from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sample import identities
from calibrant.data.specs.local import MOST
from calibrant.data.specs.spec import Spec
from calibrant.kernels.strata import locate
from calibrant.stats.screening import BINS, departure
from calibrant.views.along import finite_values

Rows = NDArray[np.intp]

CHOSEN = 30  # covariates that the tests read where there are more than they take: 496 tables with the score's
PILOT = 1.0 / 3.0  # share of the rows that choose them


@dataclass(frozen=True, kw_only=True)
class Screen:
    """What was chosen, and by whom.

    Parameters
    ----------
    chosen : tuple of str
        Covariates that are tested: those asked for in any case, then the largest departure first.
    of : int
        Covariates in all.
    pilot, tested : int
        Rows that chose, and rows that are tested.
    """

    chosen: tuple[str, ...]
    of: int
    pilot: int
    tested: int

    def to_dict(self) -> dict[str, Any]:
        """Return what a record says of it."""
        return {"chosen": self.chosen, "of": self.of, "rows_chose": self.pilot, "rows_tested": self.tested}


def too_many(covariates: int) -> bool:
    """Tell whether there are more covariates than the tests take at once."""
    return covariates > MOST


def dealt(n: int, seed: int) -> tuple[Rows, Rows]:
    """Return the rows that choose, and the rows that are tested; labels play no part."""
    ids = identities(n, 0, Spec(label="y", score="p", seed=seed).salt("screen"))
    pilot = ids < np.uint64(PILOT * 2.0**64)
    return np.flatnonzero(pilot), np.flatnonzero(~pilot)


def strongest(pilot: Predictions, most: int = CHOSEN, always: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the covariates along which residuals depart most from noise, those of `always` first.

    Notes
    -----
    **Assumes.** Rows that no test reads afterwards. **Cost.** Rows times covariates: two sums each.
    **Reads.** Rows, and their labels.
    """
    table = pilot.covariates if pilot.covariates is not None else pa.table({})
    residual, variance = pilot.y - pilot.p, pilot.p * (1.0 - pilot.p)
    first = [name for name in dict.fromkeys(always) if name in table.column_names][:most]
    found = {}
    for name in table.column_names:
        if name not in first:
            cell, ordered = _cells(decoded(table.column(name), name), name)
            found[name] = departure(cell, residual, variance, ordered)
    rest = sorted(found, key=lambda name: -found[name])  # of equal ones the first column
    return (*first, *rest[: most - len(first)])


def _cells(column: Any, name: str) -> tuple[NDArray[np.integer], int]:
    """Return the cell of each row of a covariate, and how many of the cells are in order."""
    if is_number(column.type) or is_date(column.type):
        values = finite_values(column, name)
        there = np.sort(values[~np.isnan(values)])
        edges = np.unique(there[np.arange(1, BINS) * len(there) // BINS]) if len(there) else there
        return np.where(np.isnan(values), len(edges) + 1, locate(values, edges)), len(edges) + 1
    coded = column.dictionary_encode()
    return coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False), 0
