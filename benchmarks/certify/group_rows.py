"""Rows of its own that a group needs to be within a limit with probability 80%: the table of docs/plan.md.

    python benchmarks/certify/group_rows.py     two CPU minutes

Scores are right and have a Beta distribution with the share of events as their mean; all groups have as many rows. The
rows are those from which `certify.decidable` gives the median group that probability, to one part in fifty. Of 500
drawn sets.
"""

from __future__ import annotations

import numpy as np

import calibrant as cal

GROUPS, RATES, LIMITS = (2, 8, 20), (0.2, 0.05), (0.1, 0.05, 0.03, 0.02)
POWER = 0.8


def power(rows: int, groups: int, rate: float, limit: float) -> float:
    """The probability that a group of so many rows is certified within the limit."""
    rng = np.random.default_rng([rows, groups])
    scores = np.concatenate([rng.permutation(beta_scores(rows, rate)) for _ in range(groups)])
    data = cal.predictions(np.zeros(rows * groups), scores, {"group": np.repeat(np.arange(groups), rows).astype(str)})
    found = cal.certify.decidable(data, by="group", limit=limit, judge="gap", draws=500)
    return float(np.median(found.columns["power_within"][1:]))


def beta_scores(rows: int, rate: float) -> np.ndarray:
    """Scores at equal steps of their distribution, so that two groups differ in no score."""
    from scipy.stats import beta

    return beta.ppf((np.arange(rows) + 0.5) / rows, 10 * rate, 10 * (1 - rate))


def needed(groups: int, rate: float, limit: float) -> int:
    """The fewest rows, to one part in fifty."""
    low = high = max(20, int(4 * rate * (1 - rate) / limit**2))
    while power(high, groups, rate, limit) < POWER:
        low, high = high, 2 * high
    while high - low > high / 50:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, groups, rate, limit) >= POWER else (middle, high)
    return high


def main() -> None:
    print(f"| limit of the gap | {' | '.join(f'{g} groups, {r:.0%} events' for r in RATES for g in GROUPS)} |")
    print("|---|" + "---|" * (len(GROUPS) * len(RATES)))
    for limit in LIMITS:
        cells = (needed(g, r, limit) for r in RATES for g in GROUPS)
        print(f"| {limit * 100:g} points | {' | '.join(f'{round(n, -1):,}' for n in cells)} |", flush=True)


if __name__ == "__main__":
    main()
