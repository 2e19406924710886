"""Every pair of variables: does the error along both show more than the errors along each?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from calibrant.data.predictions import Predictions
from calibrant.diagnose.lines import (
    EXACT,
    GAUSSIAN,
    GAUSSIAN_DRAWS,
    affordable,
    gaussian_residuals,
    shared_residuals,
    standard_noise,
)
from calibrant.diagnose.panels import FEW, PAIR_BINS
from calibrant.diagnose.ranked import MEAN, Line
from calibrant.kernels.strata import strata_sums
from calibrant.measure.along import along_of
from calibrant.stats.multiplicity import holm, step_down
from calibrant.stats.simulate import p_value
from calibrant.stats.strata import SUMS, Strata, View

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
    middle: float
    spread: float

    def statistic(self, residual: Any) -> Any:
        """Return the standardised size of the remainder, over the last axis."""
        return (np.abs(residual @ self.remainder.T).sum(axis=-1) - self.middle) / max(self.spread, 1e-300)


def pair_lines(data: Predictions, names: Sequence[str], view: View, draws: int, seed: int) -> tuple[list[Tested], str]:
    """Test what each pair shows beyond its two variables; p-values are adjusted over all pairs."""
    cut = [_cut(data, name, view) for name in names]
    chosen = [(a, b) for a, b in combinations(cut, 2) if a.bins.size * b.bins.size <= MOST]
    exact = affordable(data, len(chosen), draws)
    kept: list[_Pair] = []
    observed: list[float] = []
    drawn: list[Any] = []
    own: list[float] = []
    for start in range(0, len(chosen), AT_ONCE):
        pairs = [_pair(data, a, b, view) for a, b in chosen[start : start + AT_ONCE]]
        sums = (
            shared_residuals(data, [p.line for p in pairs], draws, seed)
            if exact
            else [gaussian_residuals(p.line, standard_noise([p.line], seed, GAUSSIAN_DRAWS)) for p in pairs]
        )
        for p, s in zip(pairs, sums, strict=True):
            kept.append(_without_cells(p))
            observed.append(float(p.statistic(p.line.bins.residual / p.line.bins.total)))
            top = p.statistic(s)
            own.append(p_value(observed[-1], top))
            drawn.append(top if exact else None)
    if not kept:
        return [], EXACT
    adjusted = step_down(np.array(observed), np.stack(drawn)) if exact else holm(own)
    rows = zip(kept, observed, own, adjusted.tolist(), strict=True)
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
    sums = strata_sums(code, None, data.y, data.p, data.weights, a.bins.size * width, view == "confidence")
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
    remainder = _remainder(first, second, bins.weight)
    noise = (remainder**2) @ bins.noise / bins.total**2
    middle, spread = MEAN * float(np.sqrt(noise).sum()), float(np.sqrt((1.0 - MEAN**2) * noise.sum()))
    return _Pair(line, (a, b), remainder, middle, spread)


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
    return _Pair(line, p.singles, p.remainder, p.middle, p.spread)
