"""Rows to fit on and rows to judge on: by hashed identity, whole clusters together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.identity import identities_of
from calibrant.data.predictions import Predictions
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.reference import mix

SALT = np.uint64(0x7B1D4C9A52E6F083)  # so that the halves are independent of blocks and samples


def dealt(data: Predictions, parts: int, seed: int, salt: np.uint64 = SALT) -> Any:
    """Return the part of each row, 0 to `parts` - 1: equally many rows each, or as nearly as whole clusters allow."""
    if data.clusters is None:
        unit, size = np.arange(data.n), np.ones(data.n, dtype=np.int64)
    else:
        unit = clusters_of(data)
        size = np.bincount(unit)
    if len(size) < parts:
        what = "rows" if data.clusters is None else "clusters"
        raise NotComputable(f"{len(size)} {what} cannot be dealt into {parts} parts: pass fit_on=, or more {what}")
    order = np.argsort(mix(identities_of(len(size), seed) ^ salt), kind="stable")
    before = np.cumsum(size[order]) - 0.5 * size[order]
    part = np.empty(len(size), dtype=np.int64)
    part[order] = np.minimum((before * parts / data.n).astype(np.int64), parts - 1)
    out = part[unit]
    if len(np.unique(out)) < parts:
        raise NotComputable("one cluster holds most of the rows: pass fit_on= with other clusters")
    return out


def clusters_of(data: Predictions) -> Any:
    """Return each row's cluster as a number counted from 0, or None."""
    return None if data.clusters is None else np.unique(data.clusters, return_inverse=True)[1].reshape(-1)


def taken(data: Predictions, rows: Any) -> Predictions:
    """Return some of the rows, given by their numbers in increasing order."""
    import pyarrow as pa

    def some(v: Any) -> Any:
        return None if v is None else v[rows]

    table = None if data.covariates is None else data.covariates.take(pa.array(rows))
    y, p = data.y[rows], data.p[rows]
    y.flags.writeable = p.flags.writeable = False
    return replace(
        data, y=y, p=p, covariates=table, weights=some(data.weights), clusters=some(data.clusters), dropped=0, cache={}
    )


def sampled(data: Predictions, most: int, seed: int) -> Any:
    """Return the numbers of at most about `most` rows, uniform by identity; whole clusters."""
    return np.arange(data.n) if data.n <= most else np.flatnonzero(dealt(data, -(-data.n // most), seed, ~SALT) == 0)


def checked_folds(folds: Any) -> int:
    """Return the number of folds, or refuse it."""
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds not in (0, *range(2, 21)):
        raise BadInput(f"folds={folds!r}: pass a whole number from 2 to 20, or 0 for two halves")
    return int(folds)
