"""Power beside the hand analysis that was made for the error; prints a Markdown table.

    python benchmarks/detect/hand.py power [--runs 200]
    python benchmarks/detect/hand.py level [--runs 1000]
    python benchmarks/detect/hand.py speed

Each error has the one test that an analyst who guesses it would do by hand: chi-square over levels, a score test, an
exact count. calibrant's tests do not guess. 1,600 rows; shares of data sets with p <= 0.05. Ranking and local test see
the trait that the error follows, and then four more that have nothing to do with it.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import chdtrc, expit, logit, ndtr
from scipy.stats import binom

import calibrant as cal
from calibrant.diagnose.ranking import Counted, Line, lines_of, ranked

ALPHA = 0.05
ROWS, LEVELS, OTHERS = 1600, 40, 4
Drawn = tuple[Any, Any, Any]  # scores, true rates, the trait


def level_of_forty(rng: Any, by: float = 0.28) -> Drawn:
    """One level of forty is off by 28 points."""
    g, p = rng.integers(0, LEVELS, ROWS), rng.beta(2, 8, ROWS)
    return p, np.clip(p + by * (g == 7), 0, 1), g


def by_sign(rng: Any, by: float = 0.6) -> Drawn:
    """Events are rare, and more often than said where a trait is positive, less often where it is negative."""
    x, p = rng.normal(size=ROWS), expit(-4 + 0.5 * rng.normal(size=ROWS))
    return p, p * (1 + by * np.where(x > 0, 1.0, -0.6)), x


def trend(rng: Any, by: float = 0.13) -> Drawn:
    """The log odds are off in proportion to a trait."""
    x, eta = rng.normal(size=ROWS), -0.5 + 1.2 * rng.normal(size=ROWS)
    return expit(eta), expit(eta + by * x), x


def rare_for_everyone(rng: Any, by: float = 0.5) -> Drawn:
    """Events are rare, and half as many again as said for everyone."""
    x, p = rng.normal(size=ROWS), expit(-4 + 0.5 * rng.normal(size=ROWS))
    return p, p * (1 + by), x


def too_sure(rng: Any, by: float = 0.13) -> Drawn:
    """All log odds are 13 % too far from their mean."""
    x, eta = rng.normal(size=ROWS), 1.2 * rng.normal(size=ROWS)
    return expit(eta - 0.5), expit((1 - by) * eta - 0.5), x


# ---- by hand ----


def chi_square(y: Any, p: Any, x: Any) -> float:
    """Squared standardised residuals of the levels, added up."""
    sums, noise = np.bincount(x, y - p, LEVELS), np.bincount(x, p * (1 - p), LEVELS)
    return float(chdtrc(LEVELS, (sums**2 / noise).sum()))


def scored(weights: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], float]:
    """Score test along weights, two-sided."""

    def test(y: Any, p: Any, x: Any) -> float:
        v, w = p * (1 - p), weights(p, x)
        w = w - np.average(w, weights=v)
        return float(2 * ndtr(-abs(w @ (y - p)) / np.sqrt(w**2 @ v)))

    return test


def counted(y: Any, p: Any, _: Any) -> float:
    """Cases against the binomial with the mean and the variance expected, the smaller tail doubled."""
    mean, spread, events = p.sum(), p @ (1 - p), y.sum()
    n = round(mean / (1 - spread / mean))
    return float(min(1.0, 2 * min(binom.cdf(events, n, mean / n), binom.sf(events - 1, n, mean / n))))


DESIGNS: dict[str, tuple[Callable[..., Drawn], str, Callable[[Any, Any, Any], float]]] = {
    "one level of forty off by 28 points": (level_of_forty, "chi-square over levels", chi_square),
    "rare events, by the sign of a trait": (by_sign, "score test of the sign", scored(lambda _, x: np.sign(x))),
    "a trend along a trait": (trend, "score test of the trait", scored(lambda _, x: x)),
    "rare events, too low for everyone": (rare_for_everyone, "exact count of cases", counted),
    "too sure": (too_sure, "score test of the slope", scored(lambda p, _: logit(p))),
}
TESTS = ("ranking", "ranking, five traits", "local", "local, five traits", "global part of local")


def rows(design: Callable[..., Drawn], run: int, **more: float) -> tuple[Any, Drawn, dict[str, Any]]:
    """Outcomes, scores and the trait of one run, and all traits."""
    rng = np.random.default_rng([0x4A4D, run, *design.__name__.encode()])
    p, rate, x = design(rng, **more)
    y = (rng.random(ROWS) < rate).astype(float)
    named = np.array([f"level {k:02d}" for k in range(LEVELS)])[x] if x.dtype.kind == "i" else x
    return y, (p, rate, x), {"attribute": named, **{f"other {j}": rng.normal(size=ROWS) for j in range(OTHERS)}}


def adjusted_p(rows: Counted, lines: list[Line], run: int) -> Any:
    """p-values of variables, adjusted for all."""
    null = rows.null(len(lines), 999, run, 2)
    return null.judged(null.measures(lines, lines))[1]


def p_values(y: Any, p: Any, attributes: dict[str, Any], run: int) -> tuple[float, ...]:
    """What calibrant finds: adjusted for all traits."""
    both: list[Any] = [cal.predictions(y, p, t) for t in ({"attribute": attributes["attribute"]}, attributes)]
    asked = [ranked(d) for d in both]
    lines = [lines_of(a, a.available, "probability", 10, True)[0] for a in asked]
    least = [float(adjusted_p(a, v, run).min()) for a, v in zip(asked, lines, strict=True)]
    local = [cal.detect.local_calibration_test(d, seed=run) for d in both]
    return *least, *(o.p_value for o in local), float(local[0].parts["p_global"])


def shares(runs: int, right: bool) -> None:
    """Print how often each test rejects, of models that are off, or right."""
    print("| error | by hand | " + " | ".join(TESTS) + " |\n|---|---|" + "---:|" * len(TESTS))
    for name, (design, words, by_hand) in DESIGNS.items():
        hits = np.zeros(1 + len(TESTS))
        for run in range(runs):
            y, (p, _, x), attributes = rows(design, run, **({"by": 0.0} if right else {}))
            hits += np.array([by_hand(y, p, x), *p_values(y, p, attributes, run)]) <= ALPHA
        found = [f"{h / runs:.3f}" if right else f"{h / runs:.2f}" for h in hits]
        print(f"| {name} | {words}: {found[0]} | " + " | ".join(found[1:]) + " |", flush=True)


def cpu(call: Callable[[], Any], times: int) -> float:
    """Least CPU seconds of a call."""
    took = []
    for _ in range(times):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return min(took)


def speed() -> None:
    """Print CPU seconds of the ranking's p-values and of the local test."""
    print("| rows | p-values of a ranking of ten | from sums alone | local test |\n|---:|---:|---:|---:|")
    for n in (1600, 200_000):
        rng = np.random.default_rng([0x4A4D, n])
        p, x = rng.uniform(0.1, 0.9, n), rng.normal(size=(n, 8))
        attributes: dict[str, Any] = {f"x{j}": x[:, j] for j in range(8)}
        attributes |= {"g": rng.integers(0, 40, n).astype(str), "h": rng.integers(0, 4, n).astype(str)}
        data: Any = cal.predictions(rng.random(n) < p, p, attributes)
        sketch: Any = cal.sketch(data, variables=list(attributes))
        rows, counts = ranked(data), ranked(sketch)
        lines, _ = lines_of(rows, list(attributes), "probability", 10, True)
        calls = (
            lambda rows=rows, lines=lines: adjusted_p(rows, lines, 0),
            lambda counts=counts, lines=lines: adjusted_p(counts, lines, 0),
            lambda data=data: cal.detect.local_calibration_test(data),
        )
        calls[0](), calls[2]()
        took = [cpu(call, 3 if n > 10_000 else 9) for call in calls]
        print(f"| {n:,} | " + " | ".join(f"{t:.3f}" for t in took) + " |", flush=True)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("power", "level", "speed"))
    parser.add_argument("--runs", type=int)
    a = parser.parse_args()
    if a.what == "speed":
        speed()
    else:
        shares(a.runs or (200 if a.what == "power" else 1000), a.what == "level")


if __name__ == "__main__":
    main()
