"""Figure 2 of the strong calibration paper as a table: power of the test beside every comparator, in one run.

    python benchmarks/detect/strong_power.py [--replicates 100] [--rows 400,800,1600] [--out strong-power.md] [--chart strong-power.svg]

Ten covariates, uniform on [-5, 5]; logit of the event rate ``0.8 x0 + 0.4 x1 + 0.2 x2``, but ``0.2 x1 + 0.2 x2`` where
``x0 < -2`` and ``x1 > 2``. Audited: a logistic regression fitted on 10,000 rows, and a forest (300 trees of depth 8, half
of the features a split) fitted on 2,000. Two-sided, level 0.10, models held where a test cross-fits them. The same data sets, residual
models and folds serve all tests and tolerances; "authors" has the paper's models and weights. CPU seconds are of the three tolerances;
a fit counts where it is first made, so that the tests that share it look free.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import calibrant as cal

ALPHA = 0.1
TOLERANCES = (0.025, 0.05, 0.075)
D = cal.detect
TESTS: dict[str, Callable[[Any, float, int], Any]] = {
    "Hosmer-Lemeshow, 2 groups": lambda d, t, r: D.hosmer_lemeshow_test(d, bins=2, tolerance=t, seed=r),
    "Hosmer-Lemeshow, 10 groups": lambda d, t, r: D.hosmer_lemeshow_test(d, bins=10, tolerance=t, seed=r),
    "score along the logit (Platt)": lambda d, t, r: D.score_test(d, tolerance=t, seed=r),
    "multicalibration score": lambda d, t, r: D.multicalibration_score_test(d, tolerance=t, seed=r),
    "adaptive chi-square, 2 groups": lambda d, t, r: D.adaptive_chi_square_test(d, tolerance=t, seed=r),
    "adaptive chi-square, 10 groups": lambda d, t, r: D.adaptive_chi_square_test(d, tolerance=t, seed=r, bins=10),
    "adaptive score": lambda d, t, r: D.adaptive_score_test(d, tolerance=t, seed=r),
    "strong, authors": lambda d, t, r: D.strong_calibration_test(
        d, tolerance=t, null="fixed", detector="authors", seed=r
    ),
    "strong, default": lambda d, t, r: D.strong_calibration_test(d, tolerance=t, null="fixed", seed=r),
}
AUDITED: dict[str, tuple[int, Callable[[int], Any]]] = {
    "logistic": (10_000, lambda _: LogisticRegression()),
    "forest": (2_000, lambda r: RandomForestClassifier(300, max_depth=8, max_features=0.5, random_state=r)),
}


def drawn(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Covariates and outcomes."""
    x = rng.uniform(-5, 5, (n, 10))
    eta = 0.8 * x[:, 0] + 0.4 * x[:, 1] + 0.2 * x[:, 2]
    eta = np.where((x[:, 0] < -2) & (x[:, 1] > 2), 0.2 * x[:, 1] + 0.2 * x[:, 2], eta)
    return x, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)


def audited(kind: str, replicate: int, n: int) -> Any:
    """Predictions of the audited model on new rows."""
    size, make = AUDITED[kind]
    rng = np.random.default_rng([0xF162, replicate, n])
    model = make(replicate).fit(*drawn(rng, size))
    x, y = drawn(rng, n)
    return cal.predictions(y, model.predict_proba(x)[:, 1], {f"x{j}": x[:, j] for j in range(10)})


def rejected(kind: str, n: int, replicates: int) -> tuple[Any, Any]:
    """Shares of replicates rejected, shape (tests, tolerances), and CPU seconds a data set of each test."""
    hits, took = np.zeros((len(TESTS), len(TOLERANCES))), np.zeros(len(TESTS))
    for r in range(replicates):
        data = audited(kind, r, n)
        for i, test in enumerate(TESTS.values()):
            start = time.process_time()
            hits[i] += [test(data, t, r).p_value <= ALPHA for t in TOLERANCES]
            took[i] += time.process_time() - start
    return hits / replicates, took / replicates


def main() -> None:
    """Write the table, and the chart if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--rows", default="400,800,1600")
    parser.add_argument("--audited", default="logistic,forest")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--chart", type=Path)
    a = parser.parse_args()
    head = " | ".join(f"{t:g}" for t in TOLERANCES)
    lines = [f"{a.replicates} replicates; a share has a standard error of up to {0.5 / a.replicates**0.5:.2f}.\n"]
    lines += [f"| audited | rows | test | {head} | CPU s |\n|---|---|---|" + "---|" * (len(TOLERANCES) + 1)]
    points = []
    for kind in a.audited.split(","):
        for n in map(int, a.rows.split(",")):
            share, took = rejected(kind, n, a.replicates)
            for name, row, seconds in zip(TESTS, share, took, strict=True):
                lines.append(
                    f"| {kind} | {n:,} | {name} | " + " | ".join(f"{v:.2f}" for v in row) + f" | {seconds:.1f} |"
                )
                points += [
                    {"audited": kind, "rows": n, "test": name, "tolerance": t, "power": float(v)}
                    for t, v in zip(TOLERANCES, row, strict=True)
                ]
            print("\n".join(lines[-len(TESTS) :]), flush=True)
    if a.out:
        a.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if a.chart:
        draw(points, a.chart)


def draw(points: list[dict[str, Any]], path: Path) -> None:
    """Draw power against rows: a row of panels for each audited model, a column for each tolerance."""
    import altair as alt
    import vl_convert

    chart = alt.Chart(alt.InlineData(values=points)).mark_line(point=True).encode(
        x=alt.X("rows:Q", title="rows audited"), y=alt.Y("power:Q", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("test:N", sort=list(TESTS), title=None), column=alt.Column("tolerance:N"), row=alt.Row("audited:N"),
    ).properties(width=180, height=150)  # fmt: skip
    path.write_text(vl_convert.vegalite_to_svg(chart.to_json()), encoding="utf-8")


if __name__ == "__main__":
    main()
