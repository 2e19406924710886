"""People of towns in counties: a county less its large towns is its small one. What tests of small groups share."""

from __future__ import annotations

from typing import Any

import numpy as np

TOWNS, COUNTIES = (
    np.repeat(["big", "large", "tiny", "mid"], [300, 200, 12, 88]),
    np.repeat(["n", "s", "s"], [300, 212, 88]),
)


def people(county: np.ndarray = COUNTIES, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 4, len(TOWNS))
    return {"y": (rng.random(len(p)) < p).astype(int), "p": p, "town": TOWNS, "county": county}
