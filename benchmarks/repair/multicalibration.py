"""Multicalibration of 1e5 rows with ten covariates: against mcgrad, in one run on one thread; prints a Markdown table.

    OMP_NUM_THREADS=1 python benchmarks/repair/multicalibration.py [--rows 100000] [--gap 0.8]

Needs `mcgrad` (and its pandas). The error is planted: a corner of two covariates, two of twelve levels at high scores,
and a wave along a number. Errors are of 100,000 other rows: to the truth (known here), mcgrad's own
`MulticalibrationError` (largest over segments of up to two covariates), and the largest `measure.ece` over the levels
of both categories. CPU seconds.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.repair import Groups, Multicalibrator

NUMBERS = [f"x{j}" for j in range(8)]
LEVELS = ["a", "b"]


def drawn(n: int, gap: float, seed: int) -> tuple[Any, Any]:
    """Return rows and the true probabilities."""
    from scipy.special import expit

    g = np.random.default_rng([99, seed])
    x, a, b = g.normal(size=(n, 10)), g.integers(0, 4, n), g.integers(0, 12, n)
    eta = 0.8 * x[:, 0] + 0.5 * x[:, 1] - 0.3 * (a == 1)
    p = expit(eta)
    off = ((a == 2) & (x[:, 2] > 0.5)) - 0.5 * ((b == 3) | (b == 7)) * (p > 0.5) + 0.4 * np.sin(2 * x[:, 3])
    true = expit(eta + gap * off)
    columns = {name: x[:, j] for j, name in enumerate(NUMBERS)} | {"a": np.array(list("abcd"))[a], "b": b.astype(str)}
    return cal.predictions(g.uniform(size=n) < true, p, columns), true


def frame(data: Any) -> Any:
    """Return the rows as mcgrad takes them."""
    out = data.covariates.to_pandas()
    out["p"], out["y"] = data.p, data.y
    return out


def mcgrads(train: Any, held: Any) -> tuple[Any, float]:
    """Return mcgrad's repaired scores and the CPU seconds of its fit."""
    from mcgrad.methods import MCGrad

    columns = {"categorical_feature_column_names": LEVELS, "numerical_feature_column_names": NUMBERS}
    table, start = frame(train), time.process_time()
    model = MCGrad().fit(table, "p", "y", **columns)
    spent = time.process_time() - start
    return model.predict(frame(held), "p", **columns), spent


def errors(held: Any, true: Any, p: Any) -> tuple[float, float, float]:
    """Return the three errors of scores."""
    from mcgrad.metrics import MulticalibrationError

    table = frame(held)
    table["q"] = p
    segments = {"categorical_segment_columns": LEVELS, "numerical_segment_columns": NUMBERS}
    error = MulticalibrationError(table, "y", "q", max_depth=2, **segments)
    again = cal.predictions(held.y, p, held.covariates)
    worst = max(v.value for by in LEVELS for v in cal.measure.by_group(cal.measure.ece, again, by=by).values())
    return float(np.sqrt(np.mean((p - true) ** 2))), float(error.mce), worst


def main() -> None:
    """Fit each and print."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, default=100_000)
    ask.add_argument("--gap", type=float, default=0.8)
    given = ask.parse_args()
    warnings.simplefilter("ignore")
    train, (held, true) = drawn(given.rows, given.gap, 1)[0], drawn(100_000, given.gap, 2)
    for warm in (Multicalibrator(), Multicalibrator(learner=Groups())):
        warm.fit(drawn(400, 1.0, 3)[0])
    lines: list[tuple[str, Any, float]] = [("none", held.p, 0.0)]
    for name, recipe in (("trees", Multicalibrator()), ("groups", Multicalibrator(learner=Groups()))):
        start = time.process_time()
        fitted = recipe.fit(train)
        spent = time.process_time() - start
        lines.append((name, fitted(held).p, spent))
    theirs = mcgrads(train, held)
    lines.append(("mcgrad", *theirs))
    print("| repair | CPU s of the fit | mcgrad's over it | RMSE to the truth | mcgrad's MCE | worst ECE of a level |")
    print("|---|---|---|---|---|---|")
    for name, p, spent in lines:
        ratio = f"{theirs[1] / spent:.1f}" if spent else ""
        print(f"| {name} | {spent:.1f} | {ratio} | {' | '.join(f'{e:.4f}' for e in errors(held, true, p))} |")


if __name__ == "__main__":
    main()
