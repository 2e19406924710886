"""The smoothed residual with its simulated null: weights, band and p-value from cell totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.diagnose.axis import Scored
from calibrant.errors import NotComputable
from calibrant.stats.local import density, effective, weights
from calibrant.stats.simulate import critical, null_cases, p_value

LEAST_ROWS, LEAST_EVENTS = 20, 5  # effective rows, and effective expected cases and non-cases, of a drawn point
BAND = (
    "simultaneous: if the model is calibrated, it holds zero everywhere with probability at least the level; if not, "
    "an asymptotic band for the smoothed gap"
)


@dataclass(frozen=True)
class Test:
    """What the simulated null says about a curve as a whole."""

    statistic: float
    p_value: float
    critical: float


def smoothed(s: Scored, alpha: float, draws: int, seed: int) -> tuple[dict[str, Any], Test, int]:
    """Return the columns of the smoothed curve, its test, and how many points were left out."""
    runs = s.runs
    w = weights(runs.x, runs.rows, s.grid, s.half)
    rows, says = effective(w, runs.rows), np.clip(w @ runs.score, 0.0, 1.0)
    null = np.sqrt((w * w) @ runs.noise)
    drawn = (rows >= LEAST_ROWS) & (rows * np.minimum(says, 1.0 - says) >= LEAST_EVENTS) & (null > 0)
    if not drawn.any():
        raise NotComputable(
            f"nowhere along the score are there {LEAST_ROWS} people and {LEAST_EVENTS} expected cases and non-cases "
            "within reach: give a wider bandwidth"
        )
    kept = np.flatnonzero(drawn)
    w, rows, says, null = w[kept], rows[kept], says[kept], null[kept]
    gap = w @ (runs.cases - runs.score)
    top, points = _simulated(s, w / null[:, None], draws, seed)
    observed = float(np.max(np.abs(gap) / null))
    test = Test(observed, p_value(observed, top), float(critical(top, alpha)))
    noise = np.maximum(null, _alternative(s, w, gap, kept))
    wide, narrow = test.critical * noise, critical(points, alpha) * noise
    non_cases = runs.rows - runs.cases
    columns = {
        "score": s.scores[kept],
        "predicted": says,
        "observed": np.clip(says + gap, 0.0, 1.0),
        "gap": gap,
        "gap_low": np.maximum(gap - wide, -1.0),
        "gap_high": np.minimum(gap + wide, 1.0),
        "point_low": np.maximum(gap - narrow, -1.0),
        "point_high": np.minimum(gap + narrow, 1.0),
        "rows": rows,
        "density_cases": density(runs.x, runs.cases, s.grid[kept], s.half),
        "density_noncases": density(runs.x, non_cases, s.grid[kept], s.half),
        "stretch": np.cumsum(np.diff(kept, prepend=kept[0]) > 1),
    }
    return columns, test, len(s.grid) - len(kept)


def _simulated(s: Scored, standard: Any, draws: int, seed: int) -> tuple[Any, Any]:
    """Return the largest standardised deviation of each draw, and that of each point."""
    parts = [np.abs((y - s.runs.score) @ standard.T) for y in null_cases(s.runs.rows, s.runs.rate, draws, seed)]
    points = np.concatenate(parts)
    return points.max(axis=1), points


def _alternative(s: Scored, w: Any, gap: Any, kept: Any) -> Any:
    """Return the standard error at the observed rate: what the estimate varies by where the model is off."""
    rate = np.clip(s.runs.rate + np.interp(s.runs.x, s.grid[kept], gap), 0.0, 1.0)
    return np.sqrt((w * w) @ (s.runs.rows * rate * (1.0 - rate)))
