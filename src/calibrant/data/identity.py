"""Who a row is: one number that depends on its key, or on its file and row number, and never on its content."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.spec import Spec
from calibrant.kernels.reference import mix


def identities(n: int, first_row: int, salt: int, keys: Any = None) -> Any:
    """Return one uint64 a row, mixed: `keys` are hashes of key columns, or None to use row numbers."""
    own = np.arange(first_row, first_row + n, dtype=np.uint64) if keys is None else keys
    return mix(own ^ np.uint64(salt))


def identities_of(n: int, seed: int) -> Any:
    """Return the identities of n rows in memory: those of the same rows read from one file."""
    return identities(n, 0, Spec(label="y", score="p", seed=seed).salt(""))
