"""The smoothed residual of every panel with its simulated null: gaps, bands and one p-value for all points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data.identity import identities_of
from calibrant.data.predictions import Predictions
from calibrant.diagnose.panels import Panel, Plan
from calibrant.errors import NotComputable
from calibrant.kernels.tallies import tallies
from calibrant.stats.simulate import critical, p_value

LEAST_ROWS, LEAST_EVENTS = 20, 5  # effective rows, and effective expected cases and non-cases, of a drawn point
AFFORDABLE = 20_000_000_000  # outcomes added to cells, about five seconds
STREAM = 0xC0A57
EXACT = "exact: outcomes of every row simulated at its score"
GAUSSIAN = "asymptotic: Gaussian residual sums with the exact variance of each cell"


@dataclass(frozen=True)
class Band:
    """One panel's drawn points: positions in the panel, the means, and the two kinds of band."""

    panel: Panel
    kept: Any
    predicted: Any
    gap: Any
    wide: Any
    narrow: Any
    rows: Any


@dataclass(frozen=True)
class Banded:
    """All panels' bands, and what the simulated null says about them together."""

    bands: tuple[Band, ...]
    statistic: float
    p_value: float
    critical: float
    masked: int
    law: str


def simulated(data: Any, plan: Plan, draws: int, seed: int) -> tuple[Any, str]:
    """Return residual sums of every cell if the model is calibrated, shape (cells, draws), and where they come from.

    Rows whose outcomes can be simulated at a bearable cost are; otherwise the sums are drawn as Gaussian with the
    exact variance ``sum w^2 p (1 - p)``.
    """
    cells = [p.cells for p in plan.panels]
    if plan.code is None or len(plan.code) * draws > AFFORDABLE:
        noise = np.concatenate([c.noise for c in cells])
        rng = np.random.default_rng([seed, STREAM])
        return rng.standard_normal((draws, len(noise))).T * np.sqrt(noise)[:, None], GAUSSIAN
    rows: Predictions = data
    rate = np.where(rows.p < 0.5, 1.0 - rows.p, rows.p) if plan.whole.view == "confidence" else rows.p
    score = np.concatenate([c.score for c in cells])
    salt = salt_of(seed)
    sums = tallies(identities_of(rows.n, seed), rate, rows.weights, plan.code[:, None], 0, draws, salt, len(score))
    return sums - score[:, None], EXACT


def salt_of(seed: int) -> int:
    """Return what sets the simulated outcomes of this seed apart from those of other methods."""
    return int(np.random.default_rng([seed, STREAM]).integers(2**63))


def banded(data: Any, plan: Plan, alpha: float, draws: int, seed: int) -> Banded:
    """Smooth, simulate and judge all panels together."""
    sums, law = simulated(data, plan, draws, seed)
    parts, top, masked = [], np.zeros(draws), 0
    for panel in plan.panels:
        kept, rows, says, null = _drawn(panel)
        masked += int((panel.kind != 1).sum() - (panel.kind[kept] != 1).sum())
        if not len(kept):
            continue
        standard = panel.average[kept] / null[:, None]
        own = np.abs(standard @ sums[panel.first : panel.first + panel.cells.size])
        top = np.maximum(top, own.max(axis=0))
        parts.append((panel, kept, rows, says, null, critical(own.T, alpha)))
    if not parts:
        raise NotComputable(
            f"nowhere along the variable are there {LEAST_ROWS} people and {LEAST_EVENTS} expected cases and non-cases "
            "within reach"
        )
    limit, bands, observed = float(critical(top, alpha)), [], 0.0
    for panel, kept, rows, says, null, point in parts:
        w, c = panel.average[kept], panel.cells
        gap = w @ c.residual
        observed = max(observed, float(np.max(np.abs(gap) / null)))
        noise = np.maximum(null, _alternative(panel, kept, gap))
        bands.append(Band(panel, kept, says, gap, limit * noise, point * noise, rows))
    return Banded(tuple(bands), observed, p_value(observed, top), limit, masked, law)


def _drawn(panel: Panel) -> tuple[Any, Any, Any, Any]:
    """Return which points rest on enough, their effective rows, their mean score and their null standard error."""
    w, c = panel.average, panel.cells
    square = w * w
    rows = 1.0 / np.maximum(square @ c.weight2, 1e-300)
    says, null = np.clip(w @ c.score, 0.0, 1.0), np.sqrt(square @ c.noise)
    enough = (rows >= LEAST_ROWS * (1 - 1e-9)) & (rows * np.minimum(says, 1.0 - says) >= LEAST_EVENTS)
    kept = np.flatnonzero(enough & panel.near & (null > 0))
    return kept, rows[kept], says[kept], null[kept]


def _alternative(panel: Panel, kept: Any, gap: Any) -> Any:
    """Return the standard error where the model is off, from squared residuals about the fitted gap."""
    c, on = panel.cells, panel.kind[kept] != 2
    own = np.zeros(c.size)
    if on.any():
        order = np.argsort(panel.x[kept][on], kind="stable")
        own[: c.there] = np.interp(c.x[: c.there], panel.x[kept][on][order], gap[on][order])
    for point in kept[~on].tolist():
        at = int(np.argmax(panel.average[point]))
        own[at] = c.residual[at] / c.weight[at]
    return np.sqrt(np.maximum((panel.average[kept] ** 2) @ (c.resid2 - c.weight2 * own**2), 0.0))
