"""Deliberately broken ranges of boxes. Each differs from the library's in one step."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv
from scipy.stats import norm

from calibrant.stats.subgroups.family import Family
from calibrant.stats.subgroups.ranges import ends


def plain_lower_rates(k: Any, n: Any, delta: Any) -> Any:
    """Clopper and Pearson's limits without Hoeffding's condition: right for equal rates only."""
    return np.where(np.asarray(k) > 0, betaincinv(np.maximum(k, 1), np.asarray(n) - k + 1, delta), 0.0)


def one_event_short(k: Any, n: Any, delta: Any) -> Any:
    """The limit of k cases from the tail beyond k: P(more than k), not P(at least k)."""
    later = np.minimum(np.asarray(k) + 1.0, n)
    return betaincinv(later, n - later + 1.0, delta)


def normal_ends(family: Family, low: Any, high: Any) -> tuple[Any, Any]:
    """Limits by the normal approximation: none for rare events that did not happen."""
    error = np.sqrt(family.events * (family.rows - family.events) / family.rows) / family.rows
    return family.gap - norm.isf(low) * error, family.gap + norm.isf(high) * error


def unshared(family: Family, alpha: float) -> tuple[Any, Any]:
    """Ranges of all boxes, each end at alpha / 2."""
    return ends(family, alpha / 2, alpha / 2)


def unshared_ends(family: Family, alpha: float) -> tuple[Any, Any]:
    """Ranges of all boxes, alpha shared over boxes but not over the two ends of each."""
    return ends(family, alpha * family.weight, alpha * family.weight)


def worst_seen(family: Family, alpha: float, least_rows: float) -> float:
    """The limit of the box with the largest gap seen, in place of the largest limit."""
    low, high = ends(family, alpha, alpha)
    size = np.where(family.rows >= least_rows, np.abs(family.gap), -1.0)
    box = int(size.argmax())
    return float(max(high[box], -low[box]))


def one_sign(family: Family, alpha: float, least_rows: float) -> float:
    """The largest upper limit alone: gaps below zero are forgotten."""
    return float(ends(family, alpha, alpha)[1][family.rows >= least_rows].max())


def found_and_reported(family: Family, alpha: float) -> float:
    """The floor of the box found, as if it had been the only one looked at: one-sided, at all of alpha."""
    low, high = ends(family, alpha, alpha)
    return float(max(low.max(), (-high).max(), 0.0))


def holm_without_shares(level: Any, alpha: float) -> Any:
    """Boxes whose own p-value is small."""
    return level <= alpha
