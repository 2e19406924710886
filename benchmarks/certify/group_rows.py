"""Rows of its own that a group needs to be within a limit with probability 80%: the table of docs/plan.md.

    python benchmarks/certify/group_rows.py             the table, in seconds
    python benchmarks/certify/group_rows.py --check     and what `certify.groups` finds at some of its cells

All rows have the share of events as their score, and every group has as many rows. Verdicts are Holm's procedure on
binomial p-values at half of alpha; the rows are the fewest, to one part in a hundred, at which 80% of 8,000 groups are
within the limit.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import binom

import calibrant as cal

GROUPS, RATES, LIMITS = (2, 8, 20), (0.2, 0.05), (0.1, 0.05, 0.03, 0.02)
POWER, DELTA, VERDICTS = 0.8, 0.025, 8000


def power(rows: int, groups: int, rate: float, limit: float) -> float:
    """The share of groups of so many rows that are within the limit."""
    events = np.arange(rows + 1)
    low = binom.sf(events - 1, rows, rate - limit) if rate > limit else np.zeros(rows + 1)
    p_values = np.maximum(binom.cdf(events, rows, rate + limit), low)
    drawn = np.random.default_rng([rows, groups]).binomial(rows, rate, (VERDICTS // groups, groups))
    rejected = np.sort(p_values[drawn], axis=1) <= DELTA / np.arange(groups, 0, -1)
    return float(np.minimum.accumulate(rejected, axis=1).mean())


def needed(groups: int, rate: float, limit: float) -> int:
    """The fewest rows, to one part in a hundred."""
    low, high = 10, 100_000
    while high > 1.01 * low:
        middle = int(np.sqrt(low * high))
        low, high = (low, middle) if power(middle, groups, rate, limit) >= POWER else (middle + 1, high)
    return high


def found(rows: int, groups: int, rate: float, limit: float, sets: int = 40) -> float:
    """The same share by the library."""
    rng = np.random.default_rng([rows, groups, 1])
    names, within = np.repeat(np.arange(groups), rows).astype(str), 0
    for _ in range(sets):
        y = (rng.uniform(size=rows * groups) < rate).astype(int)
        data = cal.predictions(y, np.full(rows * groups, rate), {"group": names})
        ranges = cal.certify.groups(data, by="group", judge="gap", limit=limit)
        within += sum(e.settings["verdict"] == "within" for e in ranges.values())
    return within / (sets * groups)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    print(f"| limit of the gap | {' | '.join(f'{g} groups, {r:.0%} events' for r in RATES for g in GROUPS)} |")
    print("|---|" + "---|" * (len(GROUPS) * len(RATES)))
    for limit in LIMITS:
        rows = [needed(g, r, limit) for r in RATES for g in GROUPS]
        print(f"| {limit * 100:g} points | {' | '.join(f'{round(n, -1):,}' for n in rows)} |", flush=True)
    for groups, rate, limit in ((2, 0.2, 0.05), (20, 0.2, 0.05), (8, 0.05, 0.05)) if check else ():
        n = needed(groups, rate, limit)
        share = found(n, groups, rate, limit)
        print(f"{groups} groups of {n:,} rows, {rate:.0%} events, {limit * 100:g} points: within {share:.0%}")


if __name__ == "__main__":
    main()
