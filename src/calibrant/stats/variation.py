r"""Theorem 3: an upper bound on the raw L1 calibration error when the event rate has bounded variation.

Scores are cut into runs of whole sketch cells, intervals of the score, so ties are never split. Within a run
the mean absolute deviation of ``eta`` from its mean is at most half its oscillation, and oscillations over
disjoint intervals add up to at most V.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.stats.cells import SCALE, Cells

SHARES = (0.9, 0.1)  # of delta: the sum over rows, and the step from sample to population


def variation_upper(cells: Cells, variation: float, delta: float, single: Any) -> tuple[float, int]:
    """Return the bound and the run length it used.

    Parameters
    ----------
    cells : Cells
    variation : float
        V, an upper bound on the total variation of ``E[Y|p]``.
    delta : float
    single : bool array of shape (cells,)
        Cells whose rows all share one score; they have no oscillation.
    """
    n = cells.n
    best = 0.5 * np.log2(0.4 * n / max(variation, 1e-9)) * (4.0 / 3.0)
    targets = sorted({int(np.clip(2.0 ** np.round(best + j), 1, n)) for j in (-1.0, 0.0, 1.0)})
    l1, l2 = -np.log(SHARES[0] * delta / len(targets)), -np.log(SHARES[1] * delta)
    bounds = []
    for m in targets:
        plug_in, longest = _plug_in(cells, m, single)
        sample = plug_in + longest * variation / (2 * n) + np.sqrt(l1 / (2 * n))
        bounds.append(float((np.sqrt(l2 / (2 * n)) + np.sqrt(sample + l2 / (2 * n))) ** 2))
    i = int(np.argmin(bounds))
    return min(bounds[i], 1.0), targets[i]


def _runs(rows: Any, m: int) -> Any:
    """Assign consecutive cells to runs that close as soon as another cell would take them over `m` rows."""
    out, run, held = np.empty(len(rows), dtype=np.int64), 0, 0
    for i, r in enumerate(rows):
        if held and held + r > m:
            run, held = run + 1, 0
        out[i] = run
        held += int(r)
    return out


def _plug_in(cells: Cells, m: int, single: Any) -> tuple[float, float]:
    """Upper bound on ``sum |run mean - p| / n``, and the largest run that is not a single score."""
    where = cells.occupied()
    counts = cells.totals[where].sum(axis=1)
    cases = cells.totals[where, 1]
    score = cells.sums[:, where].sum(axis=(0, 2)) / SCALE
    run = _runs(counts, m)
    size = np.bincount(run, counts)
    mean = (np.bincount(run, cases) / size)[run]
    low, high = cells.low[where], cells.high[where]
    inside = (low < mean) & (mean < high)
    share = np.clip((score / counts - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    chord = counts * ((1 - share) * np.abs(mean - low) + share * np.abs(mean - high))
    total = np.where(inside, chord, np.abs(counts * mean - score)).sum()
    spread = (np.bincount(run, counts > 0) > 1) | (np.bincount(run, ~single[where]) > 0)
    return float(total / cells.n), float(size[spread].max(initial=0.0))
