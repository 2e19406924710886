"""Is the power that a plan promises that of the certificates? A plan for 80%, and how often the certificates decide.

python benchmarks/certify/decidable.py [--sets 400] [--rows 600]: prints a Markdown table. Four groups of 50, 30, 15 and
5% of the rows, scores beta(2, 5) or beta(1, 49); the second is judged, with the shares of alpha of an audit. All sets
have the same scores, and new outcomes.
"""

from __future__ import annotations

import argparse

import numpy as np

import calibrant as cal

SITES = np.array(["a", "b", "c", "d"])
GROUP = "site = b"
OVER = 0.05 * 0.8  # what an audit spends on groups that are over by their gaps


def simulated(n: int, shape: tuple[float, float], cluster: int, sets: int) -> list[float]:
    """Return how often gap and error are within their limits, and the gap is over none, of the group and everyone."""
    rng = np.random.default_rng([n, cluster])
    p, site = rng.beta(*shape, n), SITES[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    unit = rng.integers(0, n // cluster, n) if cluster else None

    def drawn(more: float = 0.0) -> cal.Predictions:
        rate = np.clip(p + more * (site == "b"), 0, 1)
        return cal.predictions((rng.uniform(size=n) < rate).astype(int), p, {"site": site}, cluster=unit)

    plan = cal.certify.decidable(drawn(), by="site", draws=1_000)
    at = plan.columns["group"].index(GROUP)
    within, over = (plan.columns[k][at] for k in ("gap_within", "gap_over"))
    met = low = shown = 0
    for _ in range(sets):
        data = drawn()
        met += cal.certify.groups(data, by="site", judge="gap", limit=within)[GROUP].settings["verdict"] == "within"
        low += cal.certify.rounded(data, side="upper").interval.high <= plan.columns["error_within"][0]
        moved = cal.certify.groups(drawn(over), by="site", judge="gap", limit=1e-9, alpha=OVER)
        shown += moved[GROUP].settings["verdict"] == "over"
    return [100 * within, 100 * over, met / sets, shown / sets, low / sets]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--rows", type=int, help="lines of so many rows only")
    chosen = parser.parse_args()
    print("| rows | scores | clusters of | gap within, points | gap shown, points | within | shown | error within |")
    print("|---|---|---|---|---|---|---|---|")
    for n, shape, cluster in [
        (600, (2, 5), 0),
        (4000, (2, 5), 0),
        (4000, (1, 49), 0),
        (40_000, (2, 5), 0),
        (900, (2, 5), 3),
        (4000, (2, 5), 3),
    ]:
        if chosen.rows not in (None, n):
            continue
        within, over, *powers = simulated(n, shape, cluster, chosen.sets)
        numbers = " | ".join(f"{v:.2f}" for v in powers)
        print(f"| {n:,} | beta{shape} | {cluster or '–'} | {within:.1f} | {over:.1f} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
