"""Coverage of the intervals of measures where rows come in units, and beside it that of the same rows as independent.

    python benchmarks/measure/clusters.py [SETS | --full]       # one line of JSON a design
    python benchmarks/measure/clusters.py table < FILE          # what was printed, as a table

Every interval is asked for at 95 %. Truths are formulas, of one row each: a measure of few units has a truth that its
own data do not hold. By rows one data set in five is taken. A share of `sets` is held against 93 % by an exact binomial
test at one in a million, for intervals of measures are asymptotic.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.stats import binom

import calibrant as cal

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from validity.cluster_designs import Clusters, alone

SETS, FULL = 50, 1000
SOME = 5  # of so many data sets one is taken by rows
MISSES = 0.07  # at most, of an interval at 95 % that is asymptotic
DESIGNS = {
    "200 units of 20": Clusters(),
    "200 units of 1 to 39": Clusters(unequal=True),
    "200 units of 1 to 39, weights of CV .6": Clusters(unequal=True, weighted=True),
    "200 units of 1 to 39, weights of CV 2": Clusters(unequal=True, weighted=True, shape=0.25),
    "200 units of 20, scores .005 to .03": Clusters(low=0.005, high=0.03),
    "30 units of 20": Clusters(clusters=30),
    "30 units of 1 to 39": Clusters(clusters=30, unequal=True),
    "12 units of 20": Clusters(clusters=12),
    "40 units of 1 to 199": Clusters(clusters=40, size=100, unequal=True),
    "200 units of 20, correlation .7": Clusters(intraclass_correlation=0.7),
    "200 units of 20, rates .1 above the scores": Clusters(gap=0.1),
}
TRUTHS: dict[str, Callable[[Clusters], float | None]] = {
    "brier": lambda d: d.brier,
    "log_loss": lambda d: d.log_loss,
    "auroc": lambda d: d.auroc,
    "observed_expected": lambda d: d.observed_expected,
    "calibration_intercept": lambda d: None if d.gap else 0.0,
    "calibration_slope": lambda d: None if d.gap else 1.0,
    "ece": lambda d: d.gap,
    "max_calibration_error": lambda d: d.gap,
    "smooth_ece": lambda d: None if d.gap else 0.0,
}
NAMES = ("Brier", "log loss", "AUROC", "O/E", "intercept", "slope", "ECE", "worst bin", "smooth ECE")


def measured(design: Clusters, sets: int) -> dict[str, dict[str, list[int]]]:
    """Return of each measure how many intervals miss the truth, by units and by rows, and how many there were."""
    out = {name: {"clusters": [0, 0], "rows": [0, 0]} for name in TRUTHS}
    for k in range(sets):
        data = design.drawn(np.random.default_rng([29, k]))
        kinds = {"clusters": data} | ({"rows": alone(data)} if k % SOME == 0 else {})
        for name, truth in TRUTHS.items():
            true = truth(design)
            if true is None:
                continue
            for kind, seen in kinds.items():
                try:
                    e = getattr(cal.measure, name)(seen)
                except cal.NotComputable:
                    continue
                out[name][kind][0] += not e.low <= true <= e.high
                out[name][kind][1] += 1
    return out


def accepted(found: dict[str, dict[str, list[int]]]) -> bool:
    """Tell whether no count goes against the rate."""
    return all(binom.sf(m - 1, n, MISSES) >= 1e-6 for m, n in (kinds["clusters"] for kinds in found.values()) if n)


def table(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table of what was printed: shares that hold the truth, in brackets by rows."""
    yield f"| design | {' | '.join(NAMES)} |"
    yield f"|{'---|' * (len(NAMES) + 1)}"
    for d in map(json.loads, lines):
        cells = []
        for kinds in d["misses"].values():
            (m, n), (wrong, of) = kinds["clusters"], kinds["rows"]
            cells.append(f"{1 - m / n:.3f} ({1 - wrong / of:.2f})".replace("0.", ".") if n else "")
        yield f"| {d['design']} | {' | '.join(cells)} |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["table"]:
        print("\n".join(table(iter(sys.stdin))))
        sys.exit()
    sets = FULL if "--full" in sys.argv else int(sys.argv[1]) if len(sys.argv) > 1 else SETS
    for label, design in DESIGNS.items():
        found = measured(design, sets)
        print(json.dumps({"design": label, "sets": sets, "misses": found, "accepted": accepted(found)}), flush=True)
