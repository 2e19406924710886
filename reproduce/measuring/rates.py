"""Rates of log-log curves of gap against rows, and the rows that a gap takes."""

import math
from typing import Any

import numpy as np

from reproduce.experiment import Row
from reproduce.measuring.functions import CALIBRATED, FUNCTIONS

GAP = 0.02


def gaps(rows: list[Row], method: str, function: str) -> tuple[Any, Any]:
    """Row counts and gaps of one curve, without bounds cut at 1."""
    kept = [(r["n"], r["gap"]) for r in rows if (r["method"], r["function"]) == (method, function) and not r["cut"]]
    n, gap = np.array(kept, dtype=float).reshape(-1, 2).T
    return n, gap


def slopes(rows: list[Row], method: str) -> list[float]:
    """Slope of each function's log-log curve, the steepest first."""
    curves = [gaps(rows, method, f) for f in FUNCTIONS]
    return sorted(float(np.polyfit(np.log(n), np.log(g), 1)[0]) for n, g in curves if len(n) > 1)


def rows_for(rows: list[Row], method: str, function: str = CALIBRATED) -> float:
    """Row count at which the gap is `GAP`, read off the log-log curve; beyond its ends, off its end stretches."""
    n, gap = (np.log(x) for x in gaps(rows, method, function))
    if len(n) < 2:
        return math.inf
    i = min(max(int((gap > math.log(GAP)).sum()), 1), len(n) - 1)
    return float(np.exp(n[i] + (math.log(GAP) - gap[i]) * (n[i] - n[i - 1]) / (gap[i] - gap[i - 1])))
