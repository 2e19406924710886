"""How often the audit says that rows belong together: where they are independent, and where they are not.

    python benchmarks/audit/dependence.py [--full]

Each design is made anew for every data set. "column" is the share of data sets in which a column is named (check
`dependence`), "copies" the share in which rows are taken for copies, so that nothing is decided.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import calibrant as cal
from calibrant.audit.checks.dependence import dependence
from calibrant.audit.context import AuditContext
from calibrant.audit.judging import Judging

Log = Mapping[str, Any]
Rng = np.random.Generator
Floats = NDArray[np.float64]
QUICK, FULL = 20, 100


def scores(rng: Rng, n: int, decimals: int | None = None) -> Floats:
    p = rng.beta(1.0, 3.0, n)
    return p if decimals is None else np.round(p, decimals)


def named(who: NDArray[np.int64]) -> list[str]:
    return [f"P{k:05d}" for k in who]


def independent(n: int, levels: int, decimals: int | None = None, off: float = 0.0) -> Callable[[Rng], Log]:
    """Rows with a column of so many values that no outcome depends on; the score may be wrong along itself."""

    def make(rng: Rng) -> Log:
        p = scores(rng, n, decimals)
        rate = np.clip(p + off * np.sin(9.0 * p), 0.0, 1.0)
        patient = named(rng.integers(0, levels, n))
        return {"y": (rng.random(n) < rate) * 1, "p": p, "patient": patient, "sex": rng.integers(0, 2, n)}

    return make


def bare(n: int, decimals: int) -> Callable[[Rng], Log]:
    """Rounded scores and one column of two values: nearly every row is there more than once."""

    def make(rng: Rng) -> Log:
        p = scores(rng, n, decimals)
        return {"y": (rng.random(n) < p) * 1, "p": p, "sex": rng.integers(0, 2, n)}

    return make


def clustered_scores(n: int, clusters: int) -> Callable[[Rng], Log]:
    """Scores that depend on the unit, outcomes that do not beyond them; the score is 30 % too low."""

    def make(rng: Rng) -> Log:
        who = rng.integers(0, clusters, n)
        p = norm.cdf(-1.0 + 0.8 * rng.normal(size=clusters)[who] + 0.2 * rng.normal(size=n))
        return {"y": (rng.random(n) < np.minimum(1.3 * p, 1.0)) * 1, "p": p, "patient": named(who)}

    return make


def clinic(icc: float, visits: int) -> Callable[[Rng], Log]:
    """300 patients of one visit to twice as many as `visits`, less one; calibrated, the copula's correlation `icc`."""

    def make(rng: Rng) -> Log:
        who = np.repeat(np.arange(300), rng.integers(1, 2 * visits, 300))
        p = scores(rng, len(who))
        z = np.sqrt(icc) * rng.normal(size=300)[who] + np.sqrt(1.0 - icc) * rng.normal(size=len(who))
        return {"y": (norm.cdf(z) < p) * 1, "p": p, "patient": named(who), "age": rng.normal(size=len(who))}

    return make


def copies(n: int, share: float, times: int, decimals: int | None = None) -> Callable[[Rng], Log]:
    def make(rng: Rng) -> Log:
        p = scores(rng, n, decimals)
        log = {"y": (rng.random(n) < p) * 1, "p": p, "age": rng.normal(size=n), "sex": rng.integers(0, 2, n)}
        again = np.concatenate([np.arange(n), np.repeat(np.arange(int(share * n)), times - 1)])
        return {name: column[again] for name, column in log.items()}

    return make


DESIGNS: dict[str, Callable[[Rng], Log]] = {
    "independent, 2,000 rows, 50 values": independent(2000, 50),
    "independent, 2,000 rows, 500 values": independent(2000, 500),
    "independent, 400 rows, 300 values": independent(400, 300),
    "independent, 2,000 rows, 30 values, whole per cents": independent(2000, 30, 2),
    "independent, off by up to 10 points along the score": independent(2000, 200, None, 0.1),
    "scores by unit and 30 % too low, outcomes independent": clustered_scores(3000, 300),
    "whole per cents and sex alone, 2,000 rows": bare(2000, 2),
    "tenths and sex alone, 2,000 rows": bare(2000, 1),
    "three decimals and sex alone, 500 rows": bare(500, 3),
    "300 patients, 3 visits, correlation .05": clinic(0.05, 3),
    "300 patients, 3 visits, correlation .1": clinic(0.1, 3),
    "300 patients, 3 visits, correlation .2": clinic(0.2, 3),
    "300 patients, 3 visits, correlation .5": clinic(0.5, 3),
    "300 patients, 10 visits, correlation .05": clinic(0.05, 10),
    "300 patients, 10 visits, correlation .1": clinic(0.1, 10),
    "300 patients, 10 visits, correlation .2": clinic(0.2, 10),
    "150 rows five times": copies(150, 1.0, 5),
    "150 rows five times, whole per cents": copies(150, 1.0, 5, 2),
    "1,000 rows, half of them once more": copies(1000, 0.5, 2),
    "1,000 rows, half of them once more, whole per cents": copies(1000, 0.5, 2, 2),
    "5,000 rows, half of them once more, whole per cents": copies(5000, 0.5, 2, 2),
    "20,000 rows, half of them once more, whole per cents": copies(20_000, 0.5, 2, 2),
}


def reported(log: Log, seed: int) -> tuple[bool, bool, float]:
    """Return whether a column is named, whether rows are taken for copies, and the largest design effect."""
    held = cal.sketch(log, label="y", score="p", variables="*", tests=True, seed=seed)
    case = AuditContext(held, Judging.of(gates=()))
    columns = dependence(case, {}).curves["dependence"].columns
    effects = [float(d) for d in columns["design_effect"]]  # type: ignore[arg-type]
    return any(columns["found"]), case.copies, max(effects, default=case.repeats.times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help=f"{FULL} data sets a design, not {QUICK}")
    sets = FULL if parser.parse_args().full else QUICK
    print(f"| design, {sets} data sets | column | copies | median effect |\n|---|---|---|---|")
    for i, (name, make) in enumerate(DESIGNS.items()):
        found = np.array([reported(make(np.random.default_rng([i, s])), s) for s in range(sets)])
        column, copied = found[:, 0].mean(), found[:, 1].mean()
        print(f"| {name} | {column:.3f} | {copied:.3f} | {np.median(found[:, 2]):.2f} |", flush=True)


if __name__ == "__main__":
    main()
