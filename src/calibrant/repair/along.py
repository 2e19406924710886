"""Error along each audited variable, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.kernels.strata import strata_sums
from calibrant.measure.along import along_of
from calibrant.repair.judged import Judged
from calibrant.stats.binning import Bins
from calibrant.stats.resample import total_interval
from calibrant.stats.strata import beyond_shift

BINS = 10
DRAWS = 200
STREAM = 0xA10F


def bins_along(judged: Judged, variable: str) -> Any:
    """Return each row's bin along a variable, as `measure.vece` cuts it: ten of equal mass, or the levels."""
    from dataclasses import replace

    found = along_of(replace(judged.data, clusters=None, cache={}), variable)
    return found.strata.bin_of(BINS)[found.cell].astype(np.int32)


def variable_rows(judged: Judged, variables: Sequence[str], delta: float, seed: int) -> list[dict[str, Any]]:
    """Return one row for each probability and variable; `delta` is shared by variables and repairs.

    ``vece`` is `measure.vece`'s value. What is judged is its square's cousin, ``sum_b P(b) E[Y - p | b]^2``: a repair
    that moves a bin's mean score by d changes it by ``P(b) (d^2 - 2 d E[Y - p | b])``, which is linear in the outcomes.
    """
    out = []
    share = delta / max(len(variables) * len(judged.repairs), 1)
    for variable in variables:
        bin_ = bins_along(judged, variable)
        for name, q in judged.scores.items():
            vece, beyond = _sizes(judged, bin_, q, seed)
            change = _squared_change(judged, bin_, name, share) if name in judged.repairs else (0.0, 0.0, 0.0)
            shown = "better" if change[2] < 0 else "worse" if change[1] > 0 else "undecided"
            out.append(
                {
                    "probability": name,
                    "variable": variable,
                    "vece": vece,
                    "beyond_shift": beyond,
                    "change_squared": change[0],
                    "change_low": change[1],
                    "change_high": change[2],
                    "shown": shown,
                }
            )
    order = {name: i for i, name in enumerate(judged.scores)}
    return sorted(out, key=lambda row: order[row["probability"]])


def _sizes(judged: Judged, bin_: Any, q: Any, seed: int) -> tuple[float, float]:
    data, size = judged.data, int(bin_.max()) + 1
    sums = strata_sums(bin_, None, data.y, np.ascontiguousarray(q), data.weights, size, False)
    rows, weight, weight2, cases, score, _, resid2 = (sums[:, j] for j in range(7))
    bins = Bins(np.stack([rows, weight, cases, score, resid2, weight2], axis=1), size)
    noise = bins.gap_noise(DRAWS, np.random.default_rng([seed, STREAM]))
    left = [beyond_shift(v, bins.share) for v in (bins.gap, noise)]
    return tuple(total_interval(g, z, _total, 0.05).middle for g, z in ((bins.gap, noise), left))  # type: ignore[return-value]


def _total(gap: Any) -> Any:
    return np.abs(gap).sum(axis=-1)


def _squared_change(judged: Judged, bin_: Any, name: str, delta: float) -> tuple[float, float, float]:
    p, q = judged.data.p, judged.scores[name]
    weight = np.ones(judged.data.n) if judged.data.weights is None else judged.data.weights
    moved = np.empty(judged.data.n)
    for rows, _ in judged.each_fold():
        mass = np.bincount(bin_[rows], weight[rows])
        step = np.bincount(bin_[rows], weight[rows] * (q[rows] - p[rows]))
        moved[rows] = (step / np.where(mass > 0, mass, 1.0))[bin_[rows]]
    return judged.mean_range(moved**2 + 2.0 * moved * p, moved**2 - 2.0 * moved * (1.0 - p), delta)
