"""Do the curves of the score lower the calibration error, on rows that they were not fitted on? Over random splits.

Networks on Bank Marketing, on the cardiovascular data and on Adult (the predictions of Kelly and Smyth, 2023, in
``../shared/data``; what is absent is left out), the bundled classifier, and scores that are right. Each split fits on
so many rows and judges on at most 10,000 others. A cell: the expected calibration error in ten bins, free of noise, in
percent, mean over splits; the range of the middle 95 % of splits; and in how many of them the Brier score rises.

Run with OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1; ``--splits`` sets their number (default 100, 90 CPU seconds) and
``--data`` takes one of the five.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import calibrant as cal
from calibrant.repair import Beta, Platt, Temperature

SHARED = Path(os.environ.get("CALIBRANT_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
RECIPES = {
    "Platt()": Platt(),
    'Platt(scale="logit")': Platt(scale="logit"),
    'Platt(scale="raw")': Platt(scale="raw"),
    "Temperature()": Temperature(),
    "Beta()": Beta(),
}
FILES = {
    "Bank Marketing": ("bank_out", "prob_1", "actual"),
    "cardiovascular": ("cardio_out", "prob_1", "actual"),
    "Adult": ("adult_out", "prob_1", "actual"),
    "employment": ("employment_ma", "predicted_probability", "employed"),
}


def sources() -> dict[str, tuple[Any, Any]]:
    """Return scores and outcomes by name."""
    out = {}
    for name, (file, *columns) in FILES.items():
        path = SHARED / f"{file}.parquet"
        if path.is_file():
            table = pq.read_table(path, columns=columns)
            p, y = (table.column(c).to_numpy() for c in columns)
            out[name] = (p.astype(float), y)
    rng = np.random.default_rng(20_271)
    p = rng.uniform(size=100_000)
    out["scores that are right"] = (p, rng.uniform(size=len(p)) < p)
    return out


def error(y: Any, p: Any) -> float:
    """Return the expected calibration error, free of noise, in percent."""
    return 100.0 * float(cal.measure.ece(cal.predictions(y, p), bins=10, debiased=True).value)


def splits(p: Any, y: Any, rows: int, number: int) -> dict[str, Any]:
    """Return the error, whether the Brier score rises and whether the raw score was taken, a row a split."""
    out: dict[str, Any] = {"as it is": []} | {name: [] for name in RECIPES}
    for split in range(number):
        order = np.random.default_rng([20_272, rows, split]).permutation(len(p))[: rows + 10_000]
        fit, judge = order[:rows], order[rows:]
        given, before = cal.predictions(y[fit], p[fit]), float(np.mean((p[judge] - y[judge]) ** 2))
        out["as it is"].append((error(y[judge], p[judge]), 0.0, 0.0))
        for name, recipe in RECIPES.items():
            fitted = recipe.fit(given)
            q = fitted.scores(p[judge])
            rises = float(np.mean((q - y[judge]) ** 2)) > before
            out[name].append((error(y[judge], q), rises, getattr(fitted, "scale", "") == "raw"))
    return {name: np.array(v, dtype=float) for name, v in out.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--data", default="", help="the name of one")
    asked = parser.parse_args()
    names = " | ".join(f"`{name}`" for name in RECIPES)
    print(f"| data | rows to fit | as it is | {names} | `Platt()` took the score |")
    print("|---|---:|---:|" + "---:|" * len(RECIPES) + "---:|")
    for name, (p, y) in ((k, v) for k, v in sources().items() if asked.data in ("", k)):
        for rows in (300, 1_000, 3_000):
            found = splits(p, y, rows, asked.splits)
            cells = [f"{found['as it is'][:, 0].mean():.2f}"]
            for recipe in RECIPES:
                error_, rises, _ = found[recipe].T
                low, high = np.quantile(error_, [0.025, 0.975])
                cells.append(f"{error_.mean():.2f} ({low:.1f} to {high:.1f}), {100 * rises.mean():.0f} %")
            cells.append(f"{100 * found['Platt()'][:, 2].mean():.0f} %")
            print(f"| {name} | {rows:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
