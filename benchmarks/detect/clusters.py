"""How often tests reject calibrated rows that come in units, by units and with the same rows taken as independent.

    python benchmarks/detect/clusters.py [--full] [--only NAME]

Prints a row a test: shares of data sets rejected at 5 %, and in brackets by rows.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import calibrant as cal

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from validity.cluster_designs import Clusters, alone

DESIGNS = {
    "100 of 20": Clusters(clusters=100),
    "30 of 20": Clusters(clusters=30),
    "20 of 20": Clusters(clusters=20),
    "100 of 1 to 39": Clusters(clusters=100, unequal=True),
    "100 of 20, weights CV 2": Clusters(clusters=100, weighted=True, shape=0.25),
    "100 of 20, correlation .7": Clusters(clusters=100, intraclass_correlation=0.7),
}
DRAWS = 199
TESTS = {
    "reliability_curve": lambda d: cal.diagnose.reliability_curve(d, draws=DRAWS).settings["p_value"],
    "scan_test": lambda d: cal.detect.scan_test(d, draws=DRAWS).p_value,
    "its band": lambda d: _excludes(cal.diagnose.reliability_curve(d, draws=DRAWS)),
}


def _four(data: cal.Predictions) -> cal.Predictions:
    """Return the rows with four traits: two alike within units, one the same within them, and one of rows."""
    rng = np.random.default_rng(data.n + int(data.y.sum()))
    cluster_code = np.unique(data.cluster, return_inverse=True)[1]
    shared = rng.normal(size=cluster_code.max() + 1)[cluster_code]
    x = {"x": data.covariates.column("x"), "z": rng.normal(size=data.n) + 0.7 * shared, "unit's": shared}
    x["g"] = rng.choice(list("abcd"), data.n)
    return cal.predictions(data.y, data.p, x, cluster=data.cluster, weights=data.weights)


def _excludes(curve: cal.Curve) -> float:
    """Return 0 if the band excludes zero somewhere."""
    c = curve.columns
    return float(not any(low > 0.0 or high < 0.0 for low, high in zip(c["low"], c["high"], strict=True)))


def share(name: str, design: Clusters, sets: int, by_rows: bool) -> float:
    """Return the share of data sets that a test rejects at 5 %; not a number where it refuses all."""
    rng, found, made = np.random.default_rng(9), 0, 0
    for _ in range(sets):
        data = _four(design.drawn(rng))
        try:
            found += TESTS[name](alone(data) if by_rows else data) <= 0.05
            made += 1
        except cal.NotComputable:
            continue
    return found / made if made else float("nan")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--full", action="store_true")
    asked.add_argument("--only", default="")
    args = asked.parse_args()
    sets = 1000 if args.full else 100
    print(" | ".join(["test", *DESIGNS]))
    for name in TESTS:
        if args.only in ("", name):
            cells = [f"{share(name, d, sets, False):.3f} ({share(name, d, sets, True):.3f})" for d in DESIGNS.values()]
            print(" | ".join([name, *cells]), flush=True)


if __name__ == "__main__":
    main()
