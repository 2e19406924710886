"""Rounding: the probabilities as people see them, in whole per cent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.certify.population import EXACT_LEVELS, checked_levels
from calibrant.data.predictions import MulticlassPredictions
from calibrant.errors import BadInput
from calibrant.kernels.reference import CELL_BITS, SCORE_BITS, fixed_point
from calibrant.repair.fitted import Batch, FittedMap, Order


@dataclass(frozen=True, kw_only=True)
class Rounded(FittedMap):
    """The map to the nearest multiple of ``1 / levels``, exactly as `calibrant.certify.rounded` counts it."""

    levels: int

    @property
    def order(self) -> Order:
        """Kept up to ties."""
        return "kept up to ties"

    def check(self) -> None:
        """Raise `ValueError` if there cannot be so many levels."""
        checked_levels(self.levels)

    def values(self, rows: Batch) -> Any:
        """Return the rounded scores."""
        q, k = fixed_point(rows.p), self.levels
        if k in EXACT_LEVELS or k & (k - 1) == 0:
            step = (q * k + (1 << (SCORE_BITS - 1))) >> SCORE_BITS
        else:  # the middle of the score's cell is rounded
            step = ((2 * (q >> (SCORE_BITS - CELL_BITS)) + 1) * k + (1 << CELL_BITS)) >> (CELL_BITS + 1)
        return step / np.float64(k)


@dataclass(frozen=True, kw_only=True)
class Rounding:
    r"""Rounding: show the score in steps; nothing is fitted.

    Estimand: none. The map gives the score shown, which is the one that `calibrant.certify.rounded` certifies.

    Parameters
    ----------
    levels : int from 2 to 1024
        Steps from 0 to 1: 100 is whole per cent.

    Raises
    ------
    BadInput
        A number of levels that cannot be used.

    Notes
    -----
    **Assumes.** Nothing.
    **Guarantee.** ``certify.rounded(data, levels)`` of the raw data is a certificate of these scores. No score moves by
    more than ``1 / (2 levels)``; order is kept up to ties. **Method.** Integers: with ``q = floor(p 2^30)`` the step is
    ``(q K + 2^29) >> 30`` for K = 10, 20, 50, 100 and powers of two; otherwise the middle of the score's cell, of
    ``2^14``, is rounded, which can move a score by ``2^-15`` more. (Certificates of groups use cells of ``2^10`` for
    those other K.) **Cost.** One pass. **Reads.** Scores.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> cal.repair.Rounding(levels=20).fit().scores(np.array([0.123, 0.5, 0.99])).tolist()
    [0.1, 0.5, 1.0]
    """

    levels: int = 100

    def __post_init__(self) -> None:
        checked_levels(self.levels)

    def fit(self, data: Any = None) -> Rounded:
        """Return the map; the data play no part."""
        two_classes(data, "Rounding")
        return Rounded(recipe="Rounding", settings={"levels": int(self.levels)}, levels=int(self.levels))


def two_classes(data: Any, recipe: str) -> None:
    """Refuse several classes, for a recipe that reads no data."""
    if isinstance(data, MulticlassPredictions):
        raise BadInput(f"{recipe} is for two classes: project with .top_label() or .one_vs_rest(k)")
