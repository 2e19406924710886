"""Rates of log-log curves of gap against rows, and the rows that a gap takes."""

import math
from typing import Any

import numpy as np
from scipy.stats import linregress, t

from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import Row
from reproduce.measuring.functions import CALIBRATED, FUNCTIONS

GAP = 0.02


def gaps(rows: list[Row], method: str, function: str) -> tuple[Any, Any]:
    """Row counts and gaps of one curve, without bounds cut at 1."""
    kept = [(r["n"], r["gap"]) for r in rows if (r["method"], r["function"]) == (method, function) and not r["cut"]]
    n, gap = np.array(kept, dtype=float).reshape(-1, 2).T
    return n, gap


def slopes(rows: list[Row], method: str) -> list[tuple[float, float]]:
    """Slope of each function's log-log curve, and the half-width of its 95% interval (least squares), in order."""
    out = []
    for function in FUNCTIONS:
        n, gap = gaps(rows, method, function)
        if len(n) > 1:
            line = linregress(np.log(n), np.log(gap))
            wide = t.ppf(0.975, len(n) - 2) * line.stderr if len(n) > 2 else math.inf
            out.append((float(line.slope), float(wide)))
    return sorted(out)


def inside(rows: list[Row], method: str, low: float, high: float) -> Claim:
    """Whether the slope of every function lies in a range."""
    sets = min(int(r["repeats"]) for r in rows)
    found = [(s, s - wide, s + wide) for s, wide in slopes(rows, method) if wide < math.inf]
    ends = [claim.beside(*s, sets, low, None) for s in found]
    return claim.every(ends + [claim.beside(*s, sets, None, high) for s in found])


def rows_for(rows: list[Row], method: str, function: str = CALIBRATED) -> float:
    """Row count at which the gap is `GAP`, read off the log-log curve; beyond its ends, off its end stretches."""
    n, gap = (np.log(x) for x in gaps(rows, method, function))
    if len(n) < 2:
        return math.inf
    i = min(max(int((gap > math.log(GAP)).sum()), 1), len(n) - 1)
    return float(np.exp(n[i] + (math.log(GAP) - gap[i]) * (n[i] - n[i - 1]) / (gap[i] - gap[i - 1])))
