"""The monotone reliability curve (CORP): the outcome regressed on the score under the one assumption of order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrant.diagnose.axis import Scored
from calibrant.diagnose.smooth import Test
from calibrant.stats.local import density
from calibrant.stats.simulate import critical, null_cases, p_value

SCALE_DRAWS = 199  # of a stream of their own, which only set the scale of each point
BAND = (
    "simultaneous null band, recentred at the estimate: where it excludes zero the model is off; not a confidence "
    "band for the gap"
)


def monotone(s: Scored, alpha: float, draws: int, seed: int) -> tuple[dict[str, Any], Test, int]:
    """Return the columns of the isotonic curve, its test, and 0: no point is left out."""
    runs = s.runs
    says = np.interp(s.grid, runs.x, runs.rate)
    fit = fitted(runs.cases, runs.rows)
    gap = np.interp(s.grid, runs.x, fit) - says

    def deviations(drawn: Iterable[Any]) -> Any:
        return np.array([np.interp(s.grid, runs.x, fitted(y, runs.rows)) - says for part in drawn for y in part])

    scale = np.sqrt((deviations(null_cases(runs.rows, runs.rate, SCALE_DRAWS, seed, stream=1)) ** 2).mean(axis=0))
    scale = np.maximum(scale, 1e-3 * max(float(scale.max()), 1e-12))
    points = np.abs(deviations(null_cases(runs.rows, runs.rate, draws, seed))) / scale
    observed = float(np.max(np.abs(gap) / scale))
    top = points.max(axis=1)
    test = Test(observed, p_value(observed, top), float(critical(top, alpha)))
    wide, narrow = test.critical * scale, critical(points, alpha) * scale
    columns = {
        "score": s.scores,
        "predicted": says,
        "observed": np.clip(says + gap, 0.0, 1.0),
        "gap": gap,
        "gap_low": np.maximum(gap - wide, -1.0),
        "gap_high": np.minimum(gap + wide, 1.0),
        "point_low": np.maximum(gap - narrow, -1.0),
        "point_high": np.minimum(gap + narrow, 1.0),
        "rows": _block_rows(s, fit),
        "density_cases": density(runs.x, runs.cases, s.grid, s.half),
        "density_noncases": density(runs.x, runs.rows - runs.cases, s.grid, s.half),
        "stretch": np.zeros(len(s.grid), dtype=np.int64),
    }
    return columns, test, 0


def fitted(cases: Any, rows: Any) -> Any:
    """Return the non-decreasing event rates closest to the observed ones, weighted by rows."""
    from sklearn.isotonic import isotonic_regression

    return isotonic_regression(cases / rows, sample_weight=rows, y_min=0.0, y_max=1.0)


def _block_rows(s: Scored, fit: Any) -> Any:
    """Return the rows of the constant stretch that each point lies in."""
    block = np.cumsum(np.diff(fit, prepend=fit[0]) != 0)
    rows = np.bincount(block, s.runs.rows)
    nearest = np.clip(np.searchsorted(s.runs.x, s.grid, side="right") - 1, 0, len(fit) - 1)
    return rows[block[nearest]]
