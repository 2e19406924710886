"""The local calibration bias as published: one kernel on the unscaled covariates and the score."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.diagnose.bias_axes import MOST, SCORE, Axis, axes_of, said
from calibrant.diagnose.bias_map import Asked, curve_of, part_of, sample_of, scaled
from calibrant.errors import BadInput
from calibrant.results import Curve
from calibrant.stats.bias import Sample, Spots


def published_axes(data: Predictions, names: tuple[str, ...]) -> tuple[Axis, ...]:
    """Return numbers as they are, and the score last."""
    axes = axes_of(data, names, score=True, delta=False)
    for a in axes:
        if not a.numeric or (a.level != 0).any():
            raise BadInput(f"kernel='published' takes numbers without missing values; {a.name!r} is none")
    if any(a.ranks for a in axes):
        axes = tuple(Axis(a.name, a.kind, a.valued(a.position), a.level, whole=a.whole) for a in axes)
    return axes


def published_map(data: Predictions, names: tuple[str, ...], grid: Any, gamma: float, ask: Asked) -> Curve:
    """Draw eq. 7 at given points."""
    axes = published_axes(data, names)
    points = _points(grid, [a.name for a in axes])
    widths = [(2.0 * gamma) ** -0.5] * len(axes)
    s = sample_of(data, axes, ask.seed)
    s = Sample(s.y, s.p, s.weight, s.ids, scaled(s.spots, widths))
    there = scaled(Spots(points, np.zeros(points.shape, dtype=np.int64)), widths)
    part = part_of(there, s, data.clusters is not None, ask)
    kept = points[part.kept]
    called = ["x", *(f"x{j}" for j in range(2, len(names) + 1)), SCORE]
    columns: dict[str, Any] = {name: tuple(kept[:, j].tolist()) for j, name in enumerate(called)}
    columns["label"] = tuple(", ".join(said(v, "number") for v in line) for line in kept.tolist())
    settings = {
        "axes": tuple({"name": a.name, "kind": a.kind, "scaling": "as it is"} for a in axes),
        "gamma": gamma,
        "kernel": "published",
        "strata": (),
        "strata_left_out": (),
    }
    return curve_of(data, columns, [part], len(points), ask, settings)


def _points(grid: Any, axes: list[str]) -> Any:
    try:
        points = np.asarray(grid, dtype=float)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1] != len(axes) or not np.isfinite(points).all() or len(points) > MOST:
        raise BadInput(
            f"grid: kernel='published' needs an array of at most {MOST:,} points by {len(axes)} columns, "
            f"{', '.join(axes)}"
        )
    return points
