"""How far a bias map looks: bandwidths chosen from scores and covariates alone, or as asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.diagnose.bias_axes import Axis
from calibrant.errors import BadInput

NARROW = 0.75  # of the width that smooths best: a step of 0.2 is found as often, and its edge is blurred less


def widths_of(
    axes: Sequence[Axis], bandwidth: float | Mapping[str, float] | None, at: Any, noise: Any
) -> tuple[float, ...]:
    """Return the bandwidth along each axis for the rows of one stratum; 1 along a category, where it plays no part.

    Where the rows of the stratum do not differ along a number, all rows set its bandwidth.
    """
    asked = _asked(axes, bandwidth)
    d = sum(a.numeric for a in axes)
    everyone = np.ones(len(at), dtype=bool)
    out = []
    for a in axes:
        own = asked.get(a.name) or (width_of(a, at, noise, d) if a.numeric else 1.0)
        out.append(own or width_of(a, everyone, noise, d) or 1.0)
    return tuple(out)


def _asked(axes: Sequence[Axis], bandwidth: Any) -> dict[str, float]:
    numeric = [a.name for a in axes if a.numeric]
    if bandwidth is None:
        return {}
    if not numeric:
        raise BadInput(f"bandwidth={bandwidth!r}: no axis of this map is a number; leave it out")
    given = dict(bandwidth) if isinstance(bandwidth, Mapping) else {numeric[0]: bandwidth}
    if not isinstance(bandwidth, Mapping) and len(numeric) > 1:
        raise BadInput(f"bandwidth: with axes {', '.join(numeric)} pass a dictionary of widths by axis")
    for name, h in given.items():
        if name not in numeric:
            raise BadInput(f"bandwidth names {name!r}, which is not a number of this map: {', '.join(numeric)}")
        if isinstance(h, bool) or not isinstance(h, (int, float, np.number)) or not 0 < h < float("inf"):
            raise BadInput(f"bandwidth={h!r}: pass a positive width in the unit of {name!r}, or None to choose it")
    return {k: float(v) for k, v in given.items()}


def width_of(axis: Axis, at: Any, noise: Any, axes: int) -> float:
    """Choose a bandwidth from scores and covariates alone: ``0.75 sd V^(-1 / (4 + axes))``; see `local_bias`.

    Parameters
    ----------
    axis : Axis
    at : bool array of shape (n,)
        Rows of the stratum.
    noise : float array of shape (n,)
        Null variance of each row.
    axes : int
        Numeric axes of the map.
    """
    there = at & (axis.level == 0)
    v, x = noise[there], axis.position[there]
    total = float(v.sum())
    if total <= 0.0:
        v = np.ones(len(x))
    middle = np.average(x, weights=v) if len(x) else 0.0
    spread = float(np.sqrt(np.average((x - middle) ** 2, weights=v))) if len(x) else 0.0
    if not spread > 1e-9 * max(float(np.abs(x).max(initial=0.0)), 1e-300):
        return 0.0
    return float(NARROW * spread * max(total, 1.0) ** (-1.0 / (4 + axes)))
