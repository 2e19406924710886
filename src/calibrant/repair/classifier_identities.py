"""Who a row of features is, to a map that draws: the same features, the same draw, wherever the row stands."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from calibrant.kernels.reference import mix


def row_identities(X: Any) -> Any:
    """Return one uint64 a row that depends on the row's values and the order of the columns alone."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    out = np.zeros(n, dtype=np.uint64)
    if hasattr(X, "tocoo"):
        cells = X.tocoo()
        row, column = cells.coords if hasattr(cells, "coords") else (cells.row, cells.col)
        np.add.at(out, row, mix(_bits(cells.data) ^ mix(column.astype(np.uint64))))
        return mix(out)
    for column in _columns(X):
        out = mix(out ^ _bits(column))
    return out


def _columns(X: Any) -> list[Any]:
    if hasattr(X, "iloc"):
        return [X.iloc[:, j].to_numpy() for j in range(X.shape[1])]
    if hasattr(X, "columns"):
        return [X[name].to_numpy() for name in X.columns]
    values = np.asarray(X)
    return list(values.reshape(len(values), -1).T)


def _bits(column: Any) -> Any:
    if np.asarray(column).dtype.kind in "fiub":
        return (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)  # + 0.0: -0 is 0
    distinct, which = np.unique(np.asarray(column).astype(str), return_inverse=True)
    hashes = [int.from_bytes(blake2b(v.encode(), digest_size=8).digest(), "little") for v in distinct.tolist()]
    return np.array(hashes, dtype=np.uint64)[which]
