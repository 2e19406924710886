"""Covariates as a few bins each, by rules fixed without a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.data.coding import Coding, Encoded
from calibrant.kernels.strata import locate
from calibrant.kernels.trees_reference import BINS

RARE, LAST = BINS - 3, 2  # levels beyond the 49 most frequent share a bin; unseen and missing ones keep their own
Edges = tuple[tuple[float, ...], ...]


def edges_of(values: Any, bins: int) -> tuple[float, ...]:
    """Return inner edges of at most `bins` bins: between the values if they are few, at quantiles otherwise."""
    found = np.unique(values)
    if len(found) > bins:
        cut = np.quantile(values, np.linspace(0.0, 1.0, bins + 1)[1:-1])
        return tuple(float(v) for v in np.unique(cut) if v > found[0])
    return tuple(float(v) for v in (found[1:] + found[:-1]) / 2.0)


def filled(columns: Encoded, how: Sequence[Coding]) -> Any:
    """Return the numbers with each missing one replaced by its median."""
    fill = np.array([c.fill for c in how if c.kind in ("number", "date")])
    return np.where(np.isnan(columns.numbers), fill, columns.numbers)


def number_edges(columns: Encoded, how: Sequence[Coding], bins: int) -> Edges:
    """Return the edges of every number."""
    numbers = filled(columns, how)
    return tuple(edges_of(numbers[:, j], bins) for j in range(numbers.shape[1]))


def binned(columns: Encoded | None, how: Sequence[Coding], edges: Edges, n: int) -> Any:
    """Return the bins of numbers and levels, uint8 of shape (n, 1 + d); the first column is left at 0 for the score."""
    if columns is None:
        return np.zeros((n, 1), dtype=np.uint8)
    numbers = filled(columns, how)
    width = len(edges)
    out = np.zeros((n, 1 + width + columns.codes.shape[1]), dtype=np.uint8)
    for j, cuts in enumerate(edges):
        out[:, 1 + j] = locate(numbers[:, j], np.array(cuts))
    for j, labels in enumerate(columns.level_labels):
        code, held = columns.codes[:, j], len(labels)
        if held > BINS:
            kept = held - LAST
            code = np.where(code >= kept, code - kept + RARE + 1, np.minimum(code, RARE))
        out[:, 1 + width + j] = code
    return out


def ordered(columns: int, edges: Edges) -> Any:
    """Return whether the bins of each column have an order: those of the score and of numbers do."""
    return np.arange(columns) <= len(edges)
