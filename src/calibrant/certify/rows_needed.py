"""Planning: how many rows a certificate of a given tightness takes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calibrant.certify.population import Population, checked_bandwidth, checked_levels, everyone, shares
from calibrant.errors import BadInput
from calibrant.results import Estimate, Interval, Side

Method = Literal["rounded", "jittered"]
PLAN_GRID = 1024


def rows_needed(
    gap: float,
    data: Any = None,
    method: Method = "rounded",
    levels: int = 100,
    bandwidth: float = 2**-6,
    alpha: float = 0.05,
    side: Side = "upper",
    seed: int = 0,
) -> Estimate:
    r"""Plan a sample: rows for a certificate to come within `gap` of the truth, on average.

    Estimand: the least n at which the expected bound of a calibrated model (upper), or of a model whose signs of
    error are known (lower), is within `gap` of its error.

    Parameters
    ----------
    gap : float in (0, 1)
        In probability units: 0.02 is two points.
    data : Predictions or Sketch, optional
        Pilot rows whose *scores* set the distribution to plan for; uniform on [0, 1] if left out.
    method : {"rounded", "jittered"}
        The upper end planned for; the lower end is `raw_lower` either way.
    levels : int
    bandwidth : float
    alpha : float in (0, 1)
    side : {"upper", "lower", "two-sided"}
        Two-sided plans for both ends at ``alpha / 2`` each and returns the larger number.
    seed : int
        Not used by the number.

    Returns
    -------
    Estimate
        ``value`` in rows, infinite beyond 1e12. The interval is trivial: a plan is not a certificate.

    Notes
    -----
    **Assumes.** The distribution of scores; normal approximations of counts.
    **Guarantee.** None: an average case. Individual bounds scatter by 10 to 15 % of the gap.
    **Method.** Expected, label-free costs of every level are put into Theorem U and solved for n. A jitter's own
    error is not counted in the gap. Lower: ``sqrt(2 v L / n)`` with v the mean of
    ``p (1 - p)`` and L raised by what learning signs and averaging e-values cost, set by simulation.
    **Cost.** Milliseconds.
    **Reads.** Nothing, or the sketch's scores.

    Examples
    --------
    >>> import calibrant as cal
    >>> bool(1e4 < cal.certify.rows_needed(0.02, method="jittered").value < 2e4)
    True
    """
    from calibrant.stats.planning import least_rows

    if not (isinstance(gap, (int, float)) and 0.0 < gap < 1.0):
        raise BadInput(f"gap={gap!r}: pass a number between 0 and 1; 0.02 is two points")
    if method not in ("rounded", "jittered"):
        raise BadInput(f"method={method!r}: pass 'rounded' or 'jittered'")
    low_share, high_share = shares(alpha, side)
    mass = _masses(None if data is None else everyone(data, seed))
    needed = []
    if high_share:
        needed.append(least_rows(_upper_gap(mass, method, levels, bandwidth, high_share), gap))
    if low_share:
        needed.append(least_rows(_lower_gap(mass, low_share), gap))
    return Estimate(
        method="certify.rows_needed",
        value=float(np.ceil(max(needed))),
        unit="rows",
        n=0 if data is None else int(data.n),
        interval=Interval(low=0.0, high=float("inf"), level=1.0 - alpha, guarantee="asymptotic"),
        assumes="scores distributed as given" if data is not None else "uniform scores",
        settings={"gap": gap, "method": method, "levels": levels, "bandwidth": bandwidth, "side": side},
    )


def _masses(population: Population | None) -> Any:
    """Return probabilities of the score on the planning grid."""
    if population is None:
        return np.full(PLAN_GRID, 1.0 / PLAN_GRID)
    rows = population.cells.totals.sum(axis=1).reshape(PLAN_GRID, -1).sum(axis=1)
    return rows / rows.sum()


def level_masses(mass: Any, levels: int) -> tuple[Any, Any]:
    """Return shown values and their probabilities, from masses on the planning grid."""
    middle = (np.arange(len(mass)) + 0.5) / len(mass)
    level = np.floor(middle * levels + 0.5).astype(np.int64)
    return np.arange(levels + 1) / levels, np.bincount(level, mass, levels + 1)


def _upper_gap(mass: Any, method: Method, levels: int, bandwidth: float, delta: float) -> Any:
    from calibrant.stats.planning import jittered_gap, jittered_truth, rounded_gap

    if method == "rounded":
        s, shown = level_masses(mass, checked_levels(levels))
        return lambda n: rounded_gap(s, shown, n, delta)
    h = checked_bandwidth(bandwidth, len(mass))
    own = jittered_truth(mass, h)
    return lambda n: jittered_gap(mass, h, n, delta) - own


def _lower_gap(mass: Any, delta: float) -> Any:
    from calibrant.stats.planning import lower_gap

    middle = (np.arange(len(mass)) + 0.5) / len(mass)
    moment = float((mass * middle * (1 - middle)).sum())
    return lambda n: lower_gap(moment, n, delta)


def rows_to_decide(
    population: Population, error: float, limit: float, levels: int, spend: tuple[float, float]
) -> int | None:
    """Return about how many rows of this population would decide a limit, if its error is as estimated.

    None when the estimate sits on the limit (no number of rows decides) or beyond 1e12 rows. At least half as many
    again as there are, which did not decide.
    """
    from calibrant.stats.planning import least_rows

    gap = abs(limit - error)
    if gap < 1e-4:
        return None
    mass = _masses(population)
    shrinking = _upper_gap(mass, "rounded", levels, 0.0, spend[1]) if error < limit else _lower_gap(mass, spend[0])
    found = least_rows(shrinking, gap, max(population.n / 2.0, 20.0))
    return None if not np.isfinite(found) else max(int(np.ceil(found)), population.n + population.n // 2)
