"""What a screen of many columns costs in power: an error along one column, and a corner of two, among noise.

    python benchmarks/detect/screen.py [--runs 40] [--rows 6000]

Each data set has the quarter of the rows with both columns above their medians off by `--corner`, or one column off
by `--single` times its sign; the other columns are noise. "all": every column is tested on every row, as far as the
tests take them (100). "screen": a third of the rows chooses 24 columns, the others are tested. "told": the columns that
carry the error are named beforehand. Rejections at level 0.05, in percent; of the screen also how often every column
that carries the error was chosen.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.views.features import CHOSEN, hash_split, strongest

COLUMNS = (20, 100, 500)
TAKES = 100


def planted(rng: Any, rows: int, columns: int, corner: float, single: float) -> cal.Predictions:
    """Return rows with an error in a corner of x0 and x1, or along x0."""
    p, x = rng.beta(3, 6, rows), rng.normal(size=(rows, columns)).astype(np.float32)
    off = corner * ((x[:, 0] > 0) & (x[:, 1] > 0)) + single * np.sign(x[:, 0])
    y = rng.random(rows) < np.clip(p + off, 0.0, 1.0)
    return cal.predictions(y, p, {f"x{j}": x[:, j] for j in range(columns)})


def scan(data: cal.Predictions, names: tuple[str, ...], seed: int) -> float:
    """Return the p-value of the scan over pairs of these columns, without simulation: the bound."""
    return float(cal.detect.scan_test(data, variables=names, null="bound", seed=seed).p_value)


def local(data: cal.Predictions, names: tuple[str, ...], seed: int) -> float:
    """Return the p-value of the local test of these columns."""
    return float(cal.detect.local_calibration_test(data, variables=names, draws=199, landmarks=64, seed=seed).p_value)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("runs", 40), ("rows", 6000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--corner", type=float, default=0.08)
    parser.add_argument("--single", type=float, default=0.025)
    parser.add_argument("--columns", type=int, nargs="+", default=COLUMNS)
    asked = parser.parse_args()
    began = time.process_time()
    print("| error | columns | chosen | test | told | all | screen |\n|---|---|---|---|---|---|---|")
    for what, corner, single in (("corner", asked.corner, 0.0), ("one column", 0.0, asked.single)):
        for columns in asked.columns:
            _lines(what, (corner, single), columns, asked)
    print(f"\n{time.process_time() - began:.0f} CPU-s")


def _lines(what: str, off: tuple[float, float], columns: int, asked: Any) -> None:
    """Print the lines of one design."""
    carries = ("x0", "x1")[: 1 + (what == "corner")]
    found = {(name, how): 0 for name in ("scan", "local") for how in ("reported", "all", "screen")}
    chosen = 0
    for run in range(asked.runs):
        data = planted(np.random.default_rng([run, columns]), asked.rows, columns, *off)
        pilot, rest = hash_split(data.n, run)
        kept = strongest(data.part(pilot), CHOSEN)
        chosen += set(carries) <= set(kept)
        ways = {"reported": (data, carries), "screen": (data.part(rest), kept)}
        if columns <= TAKES:
            ways["all"] = data, tuple(data.covariates.column_names)
        for how, (rows, names) in ways.items():
            found["scan", how] += scan(rows, names, run) <= 0.05
            found["local", how] += local(rows, names, run) <= 0.05
    share = {k: f"{100 * v / asked.runs:.0f}" for k, v in found.items()}
    for name in ("scan", "local"):
        every = share[name, "all"] if columns <= TAKES else "-"
        line = (what, columns, f"{100 * chosen / asked.runs:.0f}", name, share[name, "reported"], every)
        print("| " + " | ".join(map(str, (*line, share[name, "screen"]))) + " |", flush=True)


if __name__ == "__main__":
    main()
