"""Errors over three attributes: how often the strong calibration test finds them, and its level; prints Markdown.

    python benchmarks/detect/three.py power [--sets 20] [--only parity] [--first 0] [--keep FILE]
    python benchmarks/detect/three.py level [--sets 1000] [--rows 300,2000] [--only plain] [--first 0] [--keep FILE]
    python benchmarks/detect/three.py speed

Ten attributes, five of them yes or no and five normal, unless a line says otherwise; scores from .2 to .75 of mean
.36. `models` is the largest sum of the models alone, what the test was before products were joined to it; `joined` the
test; `subgroups` the audit's p-value, which joins it with the scan of all boxes of two attributes, and `before` what
that p-value was with the models alone. The share of data sets with a p-value of at most .05; `seconds` is CPU time of
one joined test. The level is measured with 199 simulated outcomes, power with 999.

parity: the score is off by `size` where an odd number of three attributes is "yes", and by as much the other way where
an even number is. no triple: the score is a logistic regression on all main effects and products of two, fitted to
100,000 rows; the truth has a product of three too. corner of three, of two: `size` in 10 % of a box of three attributes
and 5 % of one of two. smooth: along the sum of two.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.detect.subgroup_tests import WEIGHT

ALPHA = 0.05
BINARY, NORMAL = 5, 5


def expit(v: Any) -> Any:
    """The inverse of the logit."""
    return 1.0 / (1.0 + np.exp(-v))


def attributes(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Attributes of two values, -1 and 1, and normal ones."""
    return rng.choice([-1.0, 1.0], (n, BINARY)), rng.standard_normal((n, NORMAL))


def scores(rng: np.random.Generator, b: Any, c: Any) -> Any:
    """Scores that depend on two attributes and on what is not known."""
    return np.clip(expit(-0.6 + 0.4 * b[:, 0] + 0.4 * c[:, 0] + 0.5 * rng.standard_normal(len(b))), 0.2, 0.75)


def terms(b: Any, c: Any) -> Any:
    """Main effects and all products of two."""
    z = np.hstack([b, c])
    i, j = np.triu_indices(z.shape[1], 1)
    return np.hstack([z, z[:, i] * z[:, j]])


def three_way(b: Any, c: Any, size: float) -> Any:
    """Rates with main effects, products of two, and one of three."""
    pairs = 0.3 * b[:, 0] * b[:, 1] + 0.3 * b[:, 1] * c[:, 0]
    return expit(-0.4 + 0.4 * b[:, 0] + 0.3 * b[:, 1] + 0.4 * c[:, 0] + pairs + size * b[:, 0] * b[:, 1] * c[:, 0])


@cache
def of_pairs(size: float) -> Any:
    """A model of all main effects and products of two, fitted to 100,000 rows."""
    rng = np.random.default_rng(5)
    b, c = attributes(rng, 100_000)
    y = rng.random(len(b)) < three_way(b, c, size)
    return LogisticRegression(C=1e6, max_iter=200).fit(terms(b, c), y)


def above(x: Any, j: int, share: float) -> Any:
    """The rows with the largest values of an attribute."""
    return x[:, j] > np.quantile(x[:, j], 1.0 - share)


ERRORS: dict[str, Callable[[Any], Any]] = {  # of the attributes: five of two values, then the normal ones
    "parity": lambda x: x[:, :3].prod(axis=1),
    "parity of normal attributes": lambda x: np.sign(x[:, 5:8]).prod(axis=1),
    "corner of three": lambda x: above(x, 5, 0.7) & above(x, 6, 0.5) & above(x, 7, 0.2857),
    "corner of two": lambda x: above(x, 5, 0.15) & above(x, 6, 0.333),
    "smooth": lambda x: np.tanh((x[:, 5] + x[:, 6]) / 1.4),
    "calibrated": lambda x: np.zeros(len(x)),
}


def drawn(name: str, n: int, size: float, replicate: int, kind: str = "plain") -> Any:
    """One data set, its seed its own; `kind` says what is unlike the plain one."""
    rng = np.random.default_rng([0x333, replicate, n, round(1000 * size), len(name), len(kind)])
    b, c = attributes(rng, n)
    if name == "no triple":
        p, rate = of_pairs(size).predict_proba(terms(b, c))[:, 1], three_way(b, c, size)
    else:
        p = scores(rng, b, c) * {"rare": 0.02, "uneven clusters": 0.1}.get(kind, 1.0)
        rate = p + size * ERRORS[name](np.hstack([b, c]))
    columns: dict[str, Any] = {f"b{j}": np.where(v > 0, "yes", "no") for j, v in enumerate(b.T)}
    columns |= {f"c{j}": v for j, v in enumerate(c.T)}
    if kind == "levels":  # three categories of 20 levels besides
        columns |= {f"k{j}": np.array([f"k{v}" for v in rng.integers(0, 20, n)]) for j in range(3)}
    if kind == "wide":  # 30 columns besides
        columns |= {f"d{j}": rng.standard_normal(n) for j in range(30)}
    if kind == "few values":  # nothing but attributes of two values, and one score
        columns, p = {k: v for k, v in columns.items() if k.startswith("b")}, np.full(n, 0.3)
        rate = p + size * ERRORS[name](np.hstack([b, c]))
    if kind == "ties":  # ten scores, and whole numbers in place of the normal attributes
        columns = {k: v if k.startswith("b") else v.round() for k, v in columns.items()}
        p = p.round(1)
        rate = p + size * ERRORS[name](np.hstack([b, c]))
    more: dict[str, Any] = {"weights": rng.pareto(2.5, n) + 0.5} if kind == "weights" else {}
    if kind.endswith("clusters"):  # of five rows, or from one to dozens; rates move together, up and down by a sixth
        sizes = np.full(n, 5) if kind == "clusters" else 1 + np.minimum(rng.pareto(1.5, n), 30.0).astype(int)
        more["cluster"] = np.repeat(np.arange(n), sizes)[:n]
        rate = np.clip(rate + p / 6.0 * rng.choice([-1.0, 1.0], n)[more["cluster"]], 0.0, 1.0)
    return cal.predictions(rng.random(n) < rate, p, columns, **more)


def p_values(data: Any, seed: int, draws: int, subgroups: bool) -> tuple[list[float], float]:
    """P-values of the models and of the joined test, alone and beside the scan, and CPU seconds."""
    start = time.process_time()
    test = cal.detect.strong_calibration_test(data, seed=seed, draws=draws)
    seconds = time.process_time() - start
    out = [test.parts.get("p_models", test.p_value), test.p_value]
    if subgroups:
        scan = cal.detect.scan_test(data, draws=draws, seed=seed).p_value
        out += [min(1.0, scan / WEIGHT, p / (1.0 - WEIGHT)) for p in out]
    return out, seconds


KINDS = ("plain", "weights", "levels", "rare", "few values", "ties", "wide", "clusters", "uneven clusters")
POWER = (
    ("parity", 1_000, 0.10, "plain"),
    ("parity", 4_000, 0.06, "plain"),
    ("parity", 4_000, 0.12, "plain"),
    ("parity", 4_000, 0.06, "weights"),
    ("parity", 4_000, 0.06, "levels"),
    ("parity", 4_000, 0.06, "wide"),
    ("parity", 4_000, 0.06, "clusters"),
    ("parity", 4_000, 0.12, "clusters"),
    ("parity of normal attributes", 4_000, 0.06, "plain"),
    ("parity", 20_000, 0.02, "plain"),
    ("no triple", 4_000, 0.20, "plain"),
    ("corner of three", 4_000, 0.12, "plain"),
    ("corner of three", 20_000, 0.06, "plain"),
    ("corner of two", 4_000, 0.18, "plain"),
    ("corner of two", 20_000, 0.07, "plain"),
    ("smooth", 1_000, 0.10, "plain"),
    ("smooth", 4_000, 0.035, "plain"),
)


def table(head: str, lines: Sequence[tuple[str, Callable[[int], tuple[list[float], float]]]], args: Any) -> None:
    """Run the data sets of each line, keep their p-values if a file is given, and print what all that are kept say."""
    print(f"| {head} | seconds |\n|{'---|' * (head.count('|') + 2)}")
    for words, once in lines:
        if not words.replace(" |", "").startswith(args.only):
            continue
        runs = []
        for replicate in range(args.first, args.first + args.sets):
            runs.append((replicate, *once(replicate)))
            if args.keep:
                with args.keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([words, *runs[-1]]) + "\n")
        if args.keep:
            kept = map(json.loads, args.keep.read_text(encoding="utf-8").splitlines())
            runs = list({k: (k, p, s) for name, k, p, s in kept if name == words}.values())
        p = np.array([p for _, p, _ in runs])
        found = p <= ALPHA if args.what == "power" else np.hstack([p <= ALPHA, p <= 2 * ALPHA])
        shares = " | ".join(f"{v:.3g}" for v in found.mean(axis=0))
        print(f"| {words} | {len(runs)} | {shares} | {np.mean([s for *_, s in runs]):.2f} |", flush=True)


def power(args: Any) -> None:
    """Print how often each error is found."""

    def once(name: str, n: int, size: float, kind: str, r: int) -> tuple[list[float], float]:
        return p_values(drawn(name, n, size, r, kind), r, 999, subgroups=True)

    lines = [
        (f"{name} | {n:,} | {100 * size:g} | {kind}", partial(once, name, n, size, kind))
        for name, n, size, kind in POWER
    ]
    table("error | rows | size, points | data | sets | models | joined | before | subgroups", lines, args)


def level(args: Any) -> None:
    """Print how often calibrated scores are said to be off, at .05 and .10."""

    def once(n: int, kind: str, r: int) -> tuple[list[float], float]:
        return p_values(drawn("calibrated", n, 0.0, r, kind), r, 199, subgroups=False)

    rows = map(int, args.rows.split(","))
    lines = [(f"{kind} | {n:,}", partial(once, n, kind)) for n, kind in product(rows, KINDS)]
    table("data | rows | sets | models, .05 | joined, .05 | models, .10 | joined, .10", lines, args)


def speed() -> None:
    """Print CPU seconds of the test and of a whole audit, the second of two runs each."""
    print("| rows | test, CPU s | audit, CPU s |")
    print("|---|---|---|")
    for n in (500, 2_000, 4_000, 20_000, 50_000):
        seconds = []
        for call in (cal.detect.strong_calibration_test, cal.audit):
            for _ in range(2):
                data, start = drawn("calibrated", n, 0.0, 0), time.process_time()
                call(data)
                last = time.process_time() - start
            seconds.append(last)
        print(f"| {n:,} | {seconds[0]:.2f} | {seconds[1]:.2f} |", flush=True)


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("power", "level", "speed"))
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--rows", default="300,2000", help="of `level`")
    parser.add_argument("--only", default="", help="lines that begin so; all by default")
    parser.add_argument("--keep", type=Path, help="file of p-values, to which runs add")
    args = parser.parse_args()
    {"power": power, "level": level, "speed": lambda _: speed()}[args.what](args)


if __name__ == "__main__":
    main()
