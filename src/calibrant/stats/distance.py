r"""Bounds on the distance from calibration, which need no assumption and no change to the classifier.

The (lower) distance is the least ``E|p - u|`` over calibrated ``u`` on the same space enlarged by independent
noise (Blasiok, Gopalan, Hu, Nakkiran, STOC 2023).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from calibrant.stats.cells import SCALE, Cells
from calibrant.stats.jitter import jittered_upper, mean_displacement
from calibrant.stats.lower import DEALS, deals, solve, wager
from calibrant.stats.rounded import product_upper

STEPS = (8, 16, 32, 64, 128)
BANDWIDTHS = (2.0**-5, 2.0**-6, 2.0**-7, 2.0**-8)
KNOTS = 16


def distance_upper(cells: Cells, delta: float) -> tuple[float, str]:
    r"""Return an upper bound and the route that gave it.

    ``d <= CE(shown) + E|shown - p|`` for the score rounded to dyadic steps or jittered, because the event rate
    given the score shown is itself calibrated. ``delta`` is shared equally over all routes; each spends nine
    tenths on the certificate and one on Hoeffding's inequality for the mean displacement.
    """
    share = delta / (len(STEPS) + len(BANDWIDTHS))
    routes = []
    for k in STEPS:
        values, rows, cases, moved = dyadic_levels(cells, k)
        moved += np.sqrt(-np.log(0.1 * share) / (2 * cells.n)) / (2 * k)
        routes.append((moved, f"rounded to {k} steps", partial(product_upper, values, rows, cases, 0.9 * share)))
    for h in BANDWIDTHS:
        mean, largest = mean_displacement(cells, h)
        moved = mean + largest * np.sqrt(-np.log(0.1 * share) / (2 * cells.n))
        routes.append((moved, f"jittered by {h:g}", partial(jittered_upper, cells, h, 0.9 * share)))
    best = (1.0, "none")
    for moved, route, certificate in routes[::-1]:
        if moved < best[0]:  # otherwise it cannot win, whatever its certificate
            best = min(best, (float(certificate() + moved), route))
    return best


def dyadic_levels(cells: Cells, steps: int) -> tuple[Any, Any, Any, float]:
    """Levels, rows, cases and mean ``|p - shown|`` of the score rounded to a power of two of steps.

    Exact from the cells: a dyadic level's boundaries, and the level itself, are ends of cells.
    """
    level = np.floor(cells.middle * steps + 0.5).astype(np.int64)
    values = np.arange(steps + 1) / steps
    rows = np.bincount(level, cells.totals.sum(axis=1), steps + 1)
    cases = np.bincount(level, cells.totals[:, 1], steps + 1)
    score = cells.sums.sum(axis=(0, 2)) / SCALE
    moved = np.abs(score - cells.totals.sum(axis=1) * values[level]).sum() / cells.n
    return values, rows, cases, float(moved)


def distance_lower(cells: Cells, delta: float, seed: int = 0) -> float:
    r"""Return a lower bound: ``d >= E[w(p)(Y - p)]`` whenever ``sup|w| + Lip(w) <= 1``.

    The witness w is piecewise linear on `KNOTS` intervals and solves a linear programme on earlier blocks. It
    is evaluated at cell middles, which moves a score, and so the distance, by at most half a cell.
    """
    middle, where = cells.middle, cells.occupied()
    basis = np.stack([np.interp(middle, np.linspace(0, 1, KNOTS + 1), row) for row in np.eye(KNOTS + 1)], axis=1)

    def learn(past: Any) -> tuple[Any, float]:
        residual, variance = cells.residuals[past].sum(axis=0), cells.variances[past].sum(axis=0)
        noise = np.sqrt(basis.T @ variance)
        pull = basis.T @ residual
        w = basis @ _witness(np.sign(pull) * np.maximum(np.abs(pull) - noise, 0.0))
        moment = float((w**2 * variance).sum()) / max(int(cells.block_rows[past].sum()), 1)
        return w[where], moment

    def grow(block: int, tilt: Any) -> float:
        n = cells.counts[block, where]
        return float((n[:, 0] * np.log1p(-tilt * middle[where]) + n[:, 1] * np.log1p(tilt * (1 - middle[where]))).sum())

    wagers = [wager(cells.block_rows, order, delta, learn, grow) for order in deals(cells.blocks, seed)]
    return max(solve(wagers, np.full(DEALS, 1 / DEALS), delta) - 0.5 / cells.size, 0.0)


def _witness(pull: Any) -> Any:
    """Return knot values w that maximise ``pull . w`` subject to ``sup|w| + Lip(w) <= 1``."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    k = len(pull)
    if not np.any(pull):
        return np.zeros(k)
    eye, step = np.eye(k), np.diff(np.eye(k), axis=0) * KNOTS
    height = np.concatenate([np.full(2 * k, -1.0), np.full(2 * (k - 1), 1.0)])
    a = np.column_stack([np.concatenate([eye, -eye, step, -step]), height])
    b = np.concatenate([np.zeros(2 * k), np.ones(2 * (k - 1))])
    bounds = [(-1.0, 1.0)] * k + [(0.0, 1.0)]
    found = linprog(np.append(-pull, 0.0), A_ub=csr_array(a), b_ub=b, bounds=bounds, method="highs")
    return np.clip(found.x[:k], -1.0, 1.0) if found.status == 0 else np.zeros(k)
