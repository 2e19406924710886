"""Sums of outcomes and scores in cells along a variable, in plain NumPy; twin of `strata`, meant to be read first."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.draws_reference import outcomes

COLUMNS = 8


def locate(x: Any, edges: Any) -> Any:
    """Return the cell of each value: the number of edges at or below it; one more than there are edges for NaN.

    Parameters
    ----------
    x : float64 array of shape (n,)
    edges : increasing float64 array of shape (c - 1,)

    Returns
    -------
    int32 array of shape (n,)
    """
    return np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x, side="right")).astype(np.int32)


def strata_sums(cell: Any, x: Any, y: Any, p: Any, weight: Any, cells: int, confidence: bool) -> Any:
    """Return eight sums a cell: rows, weights, their squares, outcomes, scores, null variance, squared residuals, x.

    Parameters
    ----------
    cell : int32 array of shape (n,)
    x : float64 array of shape (n,) or None
        Summed without weight.
    y, p : arrays of shape (n,)
    weight : float64 array of shape (n,) or None
    cells : int
    confidence : bool
        Turn outcome and score round where ``p < 0.5``.

    Returns
    -------
    float64 array of shape (cells, 8)
    """
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=float)
    turned = (np.asarray(p) < 0.5) & confidence
    hit, s = np.where(turned, 1.0 - y, y), np.where(turned, 1.0 - p, p)
    at = np.zeros(len(p)) if x is None else x
    columns = (np.ones(len(p)), w, w**2, w * hit, w * s, w**2 * s * (1.0 - s), w**2 * (hit - s) ** 2, at)
    return np.stack([np.bincount(cell, c, cells) for c in columns], axis=1)


def null_sums(
    ids: Any, p: Any, weight: Any, cell: Any, cells: int, first: int, draws: int, salt: int, confidence: bool
) -> Any:
    """Return weighted sums of the outcomes that `draws.outcomes` simulates for a calibrated model, a column a draw.

    Parameters
    ----------
    ids : uint64 array of shape (n,)
    p : float64 array of shape (n,)
    weight : float64 array of shape (n,) or None
    cell : int32 array of shape (n,)
    cells, first, draws, salt : int
    confidence : bool
        Count outcomes 0 where ``p < 0.5``.

    Returns
    -------
    float64 array of shape (cells, draws)
    """
    hit = outcomes(ids, p, first, draws, salt).astype(float)
    hit = np.where((np.asarray(p) < 0.5)[:, None] & confidence, 1.0 - hit, hit)
    out = np.zeros((cells, draws))
    np.add.at(out, cell, hit if weight is None else hit * np.asarray(weight)[:, None])
    return out


def power_sums(residual: Any, cell: Any, block: Any, cells: int, blocks: int) -> Any:
    """Return sums of ``r^0`` to ``r^4`` per block and cell.

    Parameters
    ----------
    residual : float64 array of shape (n,)
    cell : int32 array of shape (n,)
    block : uint8 array of shape (n,)
    cells, blocks : int

    Returns
    -------
    float64 array of shape (blocks, cells, 5)
    """
    at = np.asarray(block, dtype=np.int64) * cells + cell
    columns = [np.bincount(at, np.asarray(residual) ** k, blocks * cells) for k in range(5)]
    return np.stack(columns, axis=1).reshape(blocks, cells, 5)


def fine_sums(cell: Any, x: Any, ends: Any, p: Any, y: Any, out: Any) -> None:
    """Add rows to four integer sums per cell, side of the score and label.

    Parameters
    ----------
    cell : int32 array of shape (n,)
    x : float64 array of shape (n,) or None
    ends : float64 array of shape (c + 1,) or None
        Ends of the cells of values; the cell after them is for missing values.
    p : float64 array of shape (n,)
    y : int8 array of shape (n,)
    out : int64 array of shape (cells, 2, 2, 4)
        Rows, ``q = min(floor(p 2^30), 2^30 - 1)``, ``(q >> 14)^2``, place in the cell in 65,535 steps.
    """
    q = np.minimum((np.asarray(p) * 2.0**30).astype(np.int64), (1 << 30) - 1)
    place = np.zeros(len(q), dtype=np.int64)
    if x is not None:
        known = np.flatnonzero(cell < len(ends) - 1)
        low, high = ends[cell[known]], ends[cell[known] + 1]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(high > low, (x[known] - low) / (high - low), 0.0)
        place[known] = (np.clip(share, 0.0, 1.0) * 65535.0).astype(np.int64)
    at = (cell, (q >> 29).astype(np.int64), np.asarray(y).astype(np.int64))
    for field, value in enumerate((np.ones_like(q), q, (q >> 14) ** 2, place)):
        np.add.at(out[..., field], at, value)
