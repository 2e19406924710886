"""CPU time of VECE, curve and largest difference beside scikit-misc's LOESS, and of a ranking; prints a Markdown table.

    python benchmarks/variables/curve.py [--quick]

The other procedure is the paper's: error and predicted error each smoothed by `skmisc.loess` with standard errors and
evaluated at 500 points; it does not include its VECE. Without scikit-misc it is left out. `--quick` ranks 20 variables
of 100,000 rows instead of 100 of a million.
"""

import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal

QUICK = "--quick" in sys.argv


def seconds(call: Callable[[], Any], warm: bool = True) -> float:
    """CPU seconds of one call, after one that loads what is loaded once."""
    if warm:
        call()
    start = time.process_time()
    call()
    return time.process_time() - start


def rows(n: int) -> tuple[Any, Any, Any]:
    """Scores, outcomes and a variable along which the model errs in both directions."""
    rng = np.random.default_rng([n, 6])
    p, x = rng.uniform(0.02, 0.98, n), rng.uniform(20, 80, n)
    return p, rng.random(n) < np.clip(p + 0.04 * np.sin(x / 8), 0, 1), x


def ours(p: Any, y: Any, x: Any) -> None:
    """VECE with its interval and p-values; the curve with both bands and the worst point."""
    data = cal.predictions(y, p, {"x": x})
    cal.measure.vece(data, "x", view="confidence")
    cal.diagnose.variable_curve(data, "x", view="confidence")


def theirs(p: Any, y: Any, x: Any) -> None:
    """Two smooths with standard errors."""
    from skmisc.loess import loess

    grid = np.linspace(*np.quantile(x, [0.05, 0.95]), 500)
    for column in (((p >= 0.5) != y).astype(float), 1.0 - np.maximum(p, 1.0 - p)):
        fit = loess(x, column, span=0.75, degree=2, family="gaussian")
        fit.fit()
        fit.predict(grid, stderror=True).confidence(0.05)


def wide(n: int, columns: int) -> Any:
    """Rows with many variables: numbers, whole numbers, categories."""
    rng = np.random.default_rng([n, columns])
    p = rng.random(n)
    kinds = (
        lambda: rng.normal(size=n),
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, 60, n),
        lambda: np.array(list("abcdefgh"))[rng.integers(0, 8, n)],
    )
    return cal.predictions(rng.random(n) < p, p, {f"v{j}": kinds[j % 4]() for j in range(columns)})


def main() -> None:
    print(f"Python {platform.python_version()}, NumPy {np.__version__}; CPU seconds, one run.\n")
    print("| what | rows | CPU s |\n|---|---|---|")
    table = rows(20_000)
    mine = seconds(lambda: ours(*table))
    print(f"| VECE, curve, bands, worst point | 20,000 | {mine:.3f} |")
    try:
        other = seconds(lambda: theirs(*table), warm=False)
        print(f"| scikit-misc, two smooths with standard errors | 20,000 | {other:.1f} ({other / mine:.0f} times) |")
    except ImportError:
        print("| scikit-misc | | not installed, so not compared |")
    for n in (200_000, 1_000_000):
        table = rows(n)
        print(f"| VECE, curve, bands, worst point | {n:,} | {seconds(lambda: ours(*table), warm=False):.2f} |")  # noqa: B023
    n, columns = (100_000, 20) if QUICK else (1_000_000, 100)
    data = wide(n, columns)
    cal.diagnose.rank_variables(wide(2_000, 4))
    took = seconds(lambda: cal.diagnose.rank_variables(data), warm=False)
    print(f"| ranking of {columns} variables, with certified ranges | {n:,} | {took:.1f} |")


if __name__ == "__main__":
    main()
