"""How often a planted error of several classes is certified: one certificate of the sum next to one for each class.

    python benchmarks/classes/power.py [--sets 200] [--classes 10,100]

Rows have probabilities from a Dirichlet law; two classes are expected in a fifth of the rows each, the others share the
rest. The class-wise error planted is exact, by a formula, in one of two ways:

one pair       a share of the first class's probability truly belongs to the second
all classes    the truth is drawn towards the mean: every class is overconfident

Certified is an error where the low end of its range is above 0, at alpha / 2 = 0.025. Each class by itself has the low
end of `certify.raw_lower` at alpha / (2 K), and one above 0 is enough. The table (CSV) is kept in
docs/evidence/classes-power.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy.special import betaln

import calibrant as cal

ALPHA, STREAM, ROWS = 0.05, 44, 4000
COMMON, SHARP = 0.2, 4.0  # share of rows of either common class; concentration of the Dirichlet law
PLANTED = 0.05, 0.1, 0.2
PAIR, EVERY = "one pair", "all classes"


def means(k: int) -> np.ndarray:
    """How often each class is expected."""
    result = np.full(k, (1.0 - 2.0 * COMMON) / (k - 2))
    result[:2] = COMMON
    return result


def away(mean: np.ndarray) -> float:
    """``sum_k E|p_k - E p_k|`` of the Dirichlet law, whose parts are beta."""
    a, b = mean * SHARP, (1.0 - mean) * SHARP
    log = a * np.log(a) + b * np.log(b) - betaln(a, b) - (SHARP + 1.0) * np.log(SHARP)
    return float(2.0 * np.exp(log).sum())


def drawn(k: int, error: float, where: str, rng: np.random.Generator) -> cal.MulticlassPredictions:
    """Rows whose class-wise error is `error`."""
    mean = means(k)
    p = rng.dirichlet(mean * SHARP, ROWS)
    if where == PAIR:
        truth = p.copy()
        moved = error / (2.0 * COMMON) * p[:, 0]
        truth[:, 0] -= moved
        truth[:, 1] += moved
    else:
        share = error / away(mean)
        truth = (1.0 - share) * p + share * mean
    y = np.minimum((rng.uniform(size=(ROWS, 1)) > truth.cumsum(axis=1)).sum(axis=1), k - 1)
    return cal.multiclass_predictions(y, p)


def power(sets: int, classes: list[int]) -> Iterator[tuple[object, ...]]:
    """Count the data sets in which error is certified."""
    yield "classes", "rows", "planted", "in", "one certificate", "mean low", "mean high", "each class", "of"
    for k in classes:
        for where in (PAIR, EVERY):
            for error in PLANTED:
                ends, each = [], 0
                for seed in range(sets):
                    data = drawn(k, error, where, np.random.default_rng([seed, k, STREAM]))
                    interval = cal.certify.classwise(data, alpha=ALPHA, seed=seed).interval
                    ends.append((interval.low, interval.high))
                    low = (
                        cal.certify.raw_lower(data.one_vs_rest(i), alpha=ALPHA / k / 2.0, seed=seed).interval.low
                        for i in range(k)
                    )
                    each += any(x > 0.0 for x in low)
                low, high = np.array(ends).T
                means_of = f"{low.mean():.4f}", f"{high.mean():.4f}"
                yield k, ROWS, error, where, int((low > 0.0).sum()), *means_of, each, sets


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sets", type=int, default=200)
    asked.add_argument("--classes", default="10,100")
    a = asked.parse_args()
    for row in power(a.sets, [int(k) for k in a.classes.split(",")]):
        print(",".join(map(str, row)), flush=True)


if __name__ == "__main__":
    main()
