"""The check that every seed passes where it enters."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import BadInput

LARGEST = 2**63 - 1


def checked_seed(seed: Any) -> int:
    """Return the seed, or refuse what is not a whole number that fits 63 bits."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed <= LARGEST:
        raise BadInput(f"seed={seed!r}: pass a whole number from 0 to 2**63 - 1")
    return int(seed)
