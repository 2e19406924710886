"""Simulated outcomes added up by cell, for several ways of cutting the rows: NumPy twin of `tallies`."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.draws_reference import outcomes


def tallies(ids: Any, rate: Any, weight: Any, codes: Any, first: int, draws: int, salt: int, cells: int) -> Any:
    """Return weighted sums of a calibrated model's simulated outcomes in each cell, a draw a column.

    Every cutting sees the same outcomes, so that their joint law is that of the data. Outcomes are those of
    `draws_reference.outcomes`: they depend on a row's identity, not on chunks.

    Parameters
    ----------
    ids : uint64 array of shape (n,)
    rate : float64 array of shape (n,)
    weight : float64 array of shape (n,), or None
    codes : int32 array of shape (n, cuttings)
        Cell of each row in each cutting, numbered through; negative where the row belongs to none.
    first, draws, salt : int
    cells : int
        Of all cuttings together.

    Returns
    -------
    float64 array of shape (cells, draws)
    """
    y = outcomes(ids, rate, first, draws, salt).astype(float)
    y *= 1.0 if weight is None else np.asarray(weight)[:, None]
    out = np.zeros((cells, draws))
    for code in np.asarray(codes).T:
        held = code >= 0
        np.add.at(out, code[held], y[held])
    return out
