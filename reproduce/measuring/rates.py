"""Rates of log-log curves of gap against rows, and the rows that a gap takes."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import linregress, t

from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import Row
from reproduce.measuring.functions import CALIBRATED, FUNCTIONS

GAP, MOST = 0.02, 0.95


def listed(values: Iterable[float]) -> str:
    """Return the number of each data set as a row holds them: text."""
    return " ".join(f"{v:.6g}" for v in values)


def numbers(text: str) -> list[float]:
    """Return the number of each data set of a row."""
    return [float(v) for v in text.split()]


def in_most(drawn: Any, means: bool = True) -> Claim:
    """Whether something holds in over 95% of data sets drawn, and in the means of each kind of them."""
    found = claim.share(int(np.sum(drawn)), len(drawn), above=MOST)
    return found if means else replace(found, holds=False)


def gaps(rows: list[Row], method: str, function: str, end: float = 0.0) -> tuple[Any, Any]:
    """Row counts and gaps of one curve, without bounds cut at 1; or an end, -1 or 1, of the interval of each mean."""
    kept = [r for r in rows if (r["method"], r["function"]) == (method, function) and not r["cut"]]
    found = [(r["n"], r["gap"] + (end * half(r) if end else 0.0)) for r in kept]
    n, gap = np.array(found, dtype=float).reshape(-1, 2).T
    return n, np.maximum(gap, 1e-12)


def half(row: Row) -> float:
    """Half of the interval of a mean over data sets, two such means being looked at together."""
    each = numbers(row["gaps"])
    return float(t.ppf(1 - claim.LEVEL / 4, len(each) - 1) * np.std(each, ddof=1) / len(each) ** 0.5)


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
    """Whether the slope of every function lies in a range; each rests on all data sets of its function."""
    sets = drawn(rows) // len(FUNCTIONS)
    found = [(s, s - wide, s + wide) for s, wide in slopes(rows, method) if wide < math.inf]
    ends = [claim.row_attributes(*s, sets, low, None) for s in found if low > -math.inf]
    return claim.every(ends + [claim.row_attributes(*s, sets, None, high) for s in found])


def drawn(rows: list[Row]) -> int:
    """Data sets drawn, of all functions and sizes."""
    return sum(int(r["repeats"]) for r in rows if r["method"] == rows[0]["method"])


def rows_for(rows: list[Row], method: str, function: str = CALIBRATED, end: float = 0.0) -> float:
    """Row count at which the gap is `GAP`, read off the log-log curve; beyond its ends, off its end stretches.

    With `end` -1 or 1, that of the ends of the intervals of the gaps.
    """
    n, gap = (np.log(x) for x in gaps(rows, method, function, end))
    if len(n) < 2:
        return math.inf
    i = min(max(int((gap > math.log(GAP)).sum()), 1), len(n) - 1)
    return float(np.exp(n[i] + (math.log(GAP) - gap[i]) * (n[i] - n[i - 1]) / (gap[i] - gap[i - 1])))
