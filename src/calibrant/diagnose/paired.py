"""Every pair of variables: does the error along both show more than the errors along each?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.diagnose.panels import FEW, PAIR_BINS
from calibrant.diagnose.ranked import (
    EXACT,
    GAUSSIAN,
    GAUSSIAN_DRAWS,
    MEAN,
    STREAM,
    Line,
    affordable,
    gaussian_residuals,
    judged_together,
    shared_residuals,
    standard_noise,
)
from calibrant.kernels.strata import Seen, strata_sums
from calibrant.stats.nulls import holm, p_value
from calibrant.stats.strata import SUMS, Strata, View, widened
from calibrant.views.along import along_of

AT_ONCE = 40  # pairs whose outcomes are simulated together
MOST = 400  # cells of a pair, at most: a pair of long categories is left out


@dataclass(frozen=True)
class Tested:
    """A pair, its two variables in the same cut, and what its test found."""

    line: Line
    singles: tuple[Line, Line]
    statistic: float
    p_value: float
    adjusted: float


@dataclass(frozen=True)
class _Pair:
    line: Line
    singles: tuple[Line, Line]
    remainder: Any  # (cells, cells): turns residual sums into what an additive fit leaves of them

    def statistic(self, residual: Any, variance: Any) -> Any:
        """Return the size of the remainder, over the last axis, standardised by sums that are noise of this variance."""
        noise = (self.remainder**2) @ variance / self.line.bins.total**2
        middle, spread = MEAN * float(np.sqrt(noise).sum()), float(np.sqrt((1.0 - MEAN**2) * noise.sum()))
        return (np.abs(residual @ self.remainder.T).sum(axis=-1) - middle) / max(spread, 1e-300)

    def measured(self, sums: Any, variance: Any) -> tuple[float, Any]:
        """Return the statistic as observed, and of simulated sums, shape (draws,)."""
        bins = self.line.bins
        return float(self.statistic(bins.residual / bins.total, variance)), self.statistic(sums, variance)


def pair_lines(data: Predictions, names: Sequence[str], view: View, draws: int, seed: int) -> tuple[list[Tested], str]:
    """Test what each pair shows beyond its two variables; p-values are adjusted over all pairs."""
    cut = [_cut(data, name, view) for name in names]
    chosen = [(a, b) for a, b in combinations(cut, 2) if a.bins.size * b.bins.size <= MOST]
    exact = affordable(data, len(chosen), draws)
    kept: list[_Pair] = []
    found: list[list[tuple[float, Any]]] = []  # of each pair: observed and simulated, with either noise
    rng = np.random.default_rng([seed, STREAM, 3])
    for start in range(0, len(chosen), AT_ONCE):
        pairs = [_pair(data, a, b, view) for a, b in chosen[start : start + AT_ONCE]]
        kept += [_without_cells(p) for p in pairs]
        if exact:
            sums = shared_residuals(data, [p.line for p in pairs], draws, seed)
            found += [
                [p.measured(s, p.line.bins.noise), p.measured(widened(s, p.line.bins, rng), p.line.bins.variance)]
                for p, s in zip(pairs, sums, strict=True)
            ]
            continue
        for p in pairs:
            s = gaussian_residuals(p.line, standard_noise([p.line], seed, GAUSSIAN_DRAWS))
            observed, top = p.measured(s, p.line.bins.variance)
            found.append([(observed, np.array([p_value(observed, top)]))])
    if not kept:
        return [], EXACT
    if exact:
        judged = [judged_together(*map(np.stack, zip(*each, strict=True))) for each in zip(*found, strict=True)]
        own, adjusted = (np.maximum(*v) for v in zip(*judged, strict=True))
    else:
        own = np.array([f[0][1][0] for f in found])
        adjusted = holm(own)
    rows = zip(kept, [f[0][0] for f in found], own.tolist(), adjusted.tolist(), strict=True)
    return [Tested(k.line, k.singles, t, p, a) for k, t, p, a in rows], EXACT if exact else GAUSSIAN


def _cut(data: Predictions, name: str, view: View) -> Line:
    along = along_of(data, name, view)
    s = along.strata
    group = s.bin_of(PAIR_BINS) if s.ordered and s.there > FEW else np.arange(s.size)
    kind = "date" if s.date else "number" if s.ordered else "category"
    return Line(name, kind, s.joined(group), 0, group[along.cell].astype(np.int32))


def _pair(data: Predictions, a: Line, b: Line, view: View) -> _Pair:
    width = b.bins.size
    code = a.cell * np.int32(width) + b.cell
    sums = strata_sums(code, a.bins.size * width, data.y, Seen(data.p, data.weights, view == "confidence"))
    held = np.flatnonzero(sums[:, 0])
    first, second = held // width, held % width
    titles = a.bins.titles(), b.bins.titles()
    labels = tuple(
        f"{a.name} {titles[0][i]}, {b.name} {titles[1][j]}"
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    )
    x = np.arange(len(held), dtype=np.float64)
    own: dict[str, Any] = {k: np.ascontiguousarray(sums[held, j]) for j, k in enumerate(SUMS)}
    bins = Strata(name=f"{a.name} x {b.name}", labels=labels, x=x, low=x, high=x, view=view, **own)
    cell = (np.cumsum(sums[:, 0] > 0) - 1).astype(np.int32)[code]
    line = Line(bins.name, "pair", bins, 0, cell)
    return _Pair(line, (a, b), _remainder(first, second, bins.weight))


def _remainder(first: Any, second: Any, mass: Any) -> Any:
    """Return what turns residual sums by cell into those that a weighted additive fit of the means leaves."""
    design = np.concatenate([first[:, None] == np.unique(first), second[:, None] == np.unique(second)], axis=1) * 1.0
    root = np.sqrt(mass)
    basis, size, _ = np.linalg.svd(root[:, None] * design, full_matrices=False)
    basis = basis[:, size > 1e-9 * size[0]]
    return np.eye(len(mass)) - (root[:, None] * basis) @ (basis / root[:, None]).T


def _without_cells(p: _Pair) -> _Pair:
    """Drop the rows' cells once they are no longer needed."""
    line = Line(p.line.name, p.line.kind, p.line.bins, 0, None)
    return _Pair(line, p.singles, p.remainder)
