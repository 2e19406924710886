"""CPU seconds to fit and use the maps of the score, beside scikit-learn's and, where installed, netcal's and betacal's.

Run with OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1; ``--rows`` sets the size of the larger fits (default 1,000,000).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant.repair import BBQ, Beta, Histogram, Isotonic, Jitter, Platt, Rounding, ScalingBinning, Temperature

RECIPES = (Platt(), Temperature(), Isotonic(), Beta(), Histogram(), ScalingBinning(), BBQ(), Rounding(), Jitter())


def seconds(task: Callable[[], Any], repeats: int) -> float:
    """Return the least CPU time of some runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        with contextlib.redirect_stderr(io.StringIO()):
            task()
        best = min(best, time.process_time() - start)
    return float(best)


def rows(n: int, ties: bool = False) -> tuple[Any, Any]:
    """Return scores and outcomes."""
    rng = np.random.default_rng([20_261, n])
    p = rng.uniform(size=n)
    p = np.round(p, 3) if ties else p
    return p, (rng.uniform(size=n) < p**2 / (p**2 + (1 - p) ** 2)).astype(int)


def reported(what: str, n: int, ours: float, theirs: float | None, peer: str = "") -> None:
    """Print one line."""
    ratio = "" if theirs is None else f"   {peer} {theirs:8.3f}   ratio {theirs / ours:6.1f}"
    print(f"{what:34s} {n:>10,d}   calibrant {ours:8.3f}{ratio}", flush=True)


def against(n: int) -> None:
    """Time fits beside their peers."""
    for ties in (False, True):
        for size in (n // 10, n):
            p, y = rows(size, ties)
            data = cal.predictions(y, p)
            ours = seconds(lambda d=data: Isotonic(fewest=1).fit(d), 5)  # type: ignore[misc]
            theirs = seconds(lambda p=p, y=y: IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(p, y), 5)  # type: ignore[misc]
            reported(f"Isotonic{', 1,001 scores' if ties else ''}", size, ours, theirs, "scikit-learn")
    if find_spec("betacal"):
        from betacal import BetaCalibration

        p, y = rows(n)
        data = cal.predictions(y, p)
        reported(
            "Beta",
            n,
            seconds(lambda: Beta().fit(data), 2),
            seconds(lambda: BetaCalibration("abm").fit(p, y), 2),
            "betacal",
        )
    if find_spec("netcal"):
        from netcal import binning

        p, y = rows(100_000)
        data = cal.predictions(y, p)
        theirs = seconds(lambda: binning.BBQ(score_function="BIC", equal_intervals=True).fit(p, y), 1)
        reported(
            "BBQ(criterion='bic', strategy='uniform')",
            100_000,
            seconds(lambda: BBQ(criterion="bic", strategy="uniform", fewest=1).fit(data), 3),
            theirs,
            "netcal",
        )
        reported("BBQ()", 100_000, seconds(lambda: BBQ().fit(data), 3), theirs, "netcal")


def alone(n: int) -> None:
    """Time every fit, and every map on ten times the rows."""
    p, y = rows(n)
    data = cal.predictions(y, p)
    many = np.tile(p, 10)
    ids = np.arange(len(many), dtype=np.uint64)
    for recipe in RECIPES:
        made = recipe.fit(data)
        reported(f"fit {type(recipe).__name__}", n, seconds(lambda r=recipe: r.fit(data), 2), None)  # type: ignore[misc]
        reported(f"use {type(recipe).__name__}", len(many), seconds(lambda m=made: m.scores(many, ids=ids), 1), None)  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n = parser.parse_args().rows
    warnings.simplefilter("ignore")  # betacal's and netcal's own
    warm = cal.predictions(*rows(500)[::-1])
    for recipe in RECIPES:
        recipe.fit(warm)(warm)
    against(n)
    alone(n)


if __name__ == "__main__":
    main()
