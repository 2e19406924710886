"""Which rows a map was fitted on, in a few numbers: enough to refuse judging it on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.kernels.reference import mix


@dataclass(frozen=True, kw_only=True)
class FittedOn:
    """The rows of a fit.

    Parameters
    ----------
    rows, cases : int
        0 rows: nothing was fitted.
    digest : str
        Of the scores and labels, whatever their order; empty if nothing was fitted.
    """

    rows: int = 0
    cases: int = 0
    digest: str = ""

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> FittedOn:
        """Rebuild from plain data."""
        return cls(rows=int(d["rows"]), cases=int(d["cases"]), digest=str(d["digest"]))


def fitted_on(data: Any) -> FittedOn:
    """Describe the rows of a fit."""
    return FittedOn(rows=data.n, cases=data.cases, digest=digest(data))


def digest(data: Any) -> str:
    """Return a number of the scores and labels that does not depend on their order."""
    rows = mix(mix(np.ascontiguousarray(data.p).view(np.uint64)) ^ data.y.astype(np.uint64))
    return f"{int(np.add.reduce(rows, dtype=np.uint64)):016x}{int(np.bitwise_xor.reduce(rows)):016x}"
