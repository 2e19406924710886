"""The strong calibration test: power, level and speed on the simulation design of its paper; prints Markdown tables.

    python benchmarks/detect/strong.py power [--replicates 100] [--rows 800,1600] [--authors]
    python benchmarks/detect/strong.py models [--replicates 40] [--rows 400]
    python benchmarks/detect/strong.py shapes [--replicates 40] [--rows 500]
    python benchmarks/detect/strong.py zero [--replicates 100] [--rows 400,800,1600]
    python benchmarks/detect/strong.py level [--replicates 200] [--rows 100,300] [--null fixed,refit,split,forward]
    python benchmarks/detect/strong.py speed [--largest 1000000]
    python benchmarks/detect/strong.py growth [--replicates 30] [--rows 5000,20000,60000,300000] [--shapes corner,step]

Ten covariates, uniform on [-5, 5]; logit of the event rate ``0.8 x0 + 0.4 x1 + 0.2 x2``, but ``0.2 x1 + 0.2 x2`` where
``x0 < -2`` and ``x1 > 2``. Audited: a logistic regression fitted on 10,000 rows. Times are CPU seconds of one run.

`models` changes one thing at a time, on the same data sets: of the residual models that were the default's before (two
forests, a regression with a light ridge, and their mean), then of those that are; `shapes` compares the first and the
last of these on errors of other shapes, of scores that a logistic model of two of eight traits gives.

`growth` has designs of its own: eight traits, uniform on [0, 1], scores of mean 0.28 (0.007 where events are rare), and
an error of one shape, planted as many standard errors deep at every number of rows: so its size falls with their root.
"""

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.data.sketches.sample import identities_of
from calibrant.search.corners import BOOSTED, CORNERED, CORNERS
from calibrant.search.detectors import DetectorInputs, Settings, detector_inputs, detectors_of, halves_of
from calibrant.search.models import Forest, Learner, Quadratic
from calibrant.search.nulls import judged, refit, split
from calibrant.stats.cusum import Boundary, observed, path, simulated

TOLERANCES = (0.025, 0.05, 0.075)
ALPHA = 0.1


def drawn(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Covariates and outcomes."""
    x = rng.uniform(-5, 5, (n, 10))
    apart = (x[:, 0] < -2) & (x[:, 1] > 2)
    eta = np.where(apart, 0.0, 0.8 * x[:, 0] + 0.4 * x[:, 1] - 0.2 * x[:, 1]) + 0.2 * x[:, 1] + 0.2 * x[:, 2]
    return x, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)


def audited(replicate: int, n: int, calibrated: bool = False) -> Any:
    """Predictions of the audited model on new rows; outcomes at its own probabilities if `calibrated`."""
    rng = np.random.default_rng([0xBE7C, replicate, n])
    model = LogisticRegression().fit(*drawn(rng, 10_000))
    x, y = drawn(rng, n)
    p = model.predict_proba(x)[:, 1]
    if calibrated:
        y = rng.random(n) < p
    return cal.predictions(y, p, {f"x{j}": x[:, j] for j in range(10)})


def power(rows: list[int], replicates: int, authors: bool) -> None:
    """Share of replicates rejected at 0.10, two-sided, models held; one fit serves the three tolerances."""
    print("| rows | detector | " + " | ".join(f"{t:g}" for t in TOLERANCES) + " |\n|---|---|---|---|---|")
    for n in rows:
        for detector in ("default", "authors") if authors else ("default",):
            hits = np.zeros(len(TOLERANCES))
            for r in range(replicates):
                data = audited(r, n)
                found = (
                    cal.detect.strong_calibration_test(data, tolerance=t, null="fixed", detector=detector, seed=r)
                    for t in TOLERANCES
                )
                hits += [f.p_value <= ALPHA for f in found]
            print(f"| {n:,} | {detector} | " + " | ".join(f"{h / replicates:.2f}" for h in hits) + " |", flush=True)


# ---- models: what is the power due to? ----

FOREST = (Forest("deep", 50, 0.5, 10, 5), Forest("shallow", 50, 1.0, 6, 10))
BIG = tuple(replace(f, trees=300) for f in FOREST)
LIGHT, TREES, CORNER = Quadratic("light", 10.0), CORNERED.learners[0], CORNERED.learners[2]
BEFORE = ((0.5, 0.5, 0), (0, 0, 1), (0.25, 0.25, 0.5))  # the forests' mean, the regression, the mean of both
Way = tuple[tuple[Learner, ...], Any, int, Any]  # learners, how they are mixed into models, folds, detector


def ways() -> dict[str, Way]:
    """What is compared: each row differs from the first, or from the last, in one thing."""
    old = (*FOREST, LIGHT)
    third, now = CORNERED.mix, CORNERED.learners
    halved = [(v[0] / 2, v[0] / 2, *v[1:]) for v in third]
    return {
        "two forests, light ridge, their mean": (old, BEFORE, 5, "default"),
        "ten folds": (old, BEFORE, 10, "default"),
        "300 trees a forest": ((*BIG, LIGHT), BEFORE, 5, "default"),
        "the authors' weights": (old, BEFORE, 5, "authors"),
        "the statistic in print": (old, BEFORE, 5, "paper"),
        "no mean of both": (old, BEFORE[:2], 5, "default"),
        "forests alone": (FOREST, ((0.5, 0.5),), 5, "default"),
        "regression alone": ((LIGHT,), ((1,),), 5, "default"),
        "strong ridge (C = 0.1)": ((*FOREST, now[1]), BEFORE, 5, "default"),
        "boosted trees in place of forests": ((TREES, LIGHT), BOOSTED.mix, 5, "default"),
        "with corners and a strong ridge": ((*FOREST, *now[1:]), halved, 5, "default"),
        "the default: boosted trees, corners, strong ridge, mean": (now, third, 5, "default"),
    }


OFF: dict[str, Callable[[Any], Any]] = {  # of eight traits, uniform on [0, 1]: by how much the event rate is off
    "corner of two traits": lambda x: 0.3 * ((x[1] > 0.75) & (x[2] > 0.75)),
    "corner of three": lambda x: 0.35 * ((x[1] > 0.6) & (x[2] > 0.6) & (x[4] > 0.6)),
    "small corner": lambda x: 0.45 * ((x[1] > 0.83) & (x[2] > 0.83)),
    "step": lambda x: 0.25 * (x[1] > 0.88),
    "smooth": lambda x: 0.9 * (x[1] - 0.5) * (x[2] - 0.5) + 0.2 * (x[4] - 0.5),
    "two corners, both ways": lambda x: 0.2 * ((x[1] > 0.7) & (x[2] < 0.4)) - 0.2 * ((x[4] > 0.6) & (x[5] > 0.65)),
    "half of the rows": lambda x: 0.16 * (x[6] > 0.5),
}


def shaped(shape: str, replicate: int, n: int) -> Any:
    """Predictions that are off in this shape."""
    rng = np.random.default_rng([0x5A9F, list(OFF).index(shape), replicate, n])
    x = rng.random((8, n))
    p = 1 / (1 + np.exp(1 - 1.6 * (x[0] - 0.5) - 1.2 * (x[3] - 0.5)))
    return cal.predictions(rng.random(n) < np.clip(p + OFF[shape](x), 0, 1), p, {f"x{j}": v for j, v in enumerate(x)})


def found(data: Any, every: dict[str, Way], replicate: int) -> dict[str, list[bool]]:
    """Tell whether each way rejects at each tolerance, models held; each learner is fitted once."""
    kept: dict[Any, Any] = {}

    def predictions(q: DetectorInputs, learner: Learner) -> Any:
        key = (learner, q.settings.folds)
        if key not in kept:
            kept[key] = np.empty(q.n)
            for f in range(q.settings.folds):
                here = np.flatnonzero(q.fold == f)
                fitted = learner.fit(q.sample, np.flatnonzero(q.fold != f), replicate)
                kept[key][here] = fitted.predict(q.sample.x, q.sample.p, here)
        return kept[key]

    out: dict[str, list[bool]] = {name: [] for name in every}
    for t, (name, (learners, mix, folds, detector)) in product(TOLERANCES, every.items()):
        q = detector_inputs(data, Settings(tolerance=t, seed=replicate, folds=folds, detector=detector))
        paths = q.paths(np.array(mix) @ np.stack([predictions(q, one) for one in learners]))
        out[name].append(judged(q, paths, np.arange(q.n), 499, "").p_value <= ALPHA)
    return out


def compared(words: str, make: Callable[[int], Any], every: dict[str, Way], replicates: int) -> None:
    """Print shares found, and how many data sets more and fewer than by the first."""
    each = [found(make(r), every, r) for r in range(replicates)]
    hits = {k: np.array([one[k] for one in each]) for k in every}
    first = next(iter(hits.values()))
    for k, v in hits.items():
        more = zip(v.mean(axis=0), (v & ~first).sum(axis=0), (first & ~v).sum(axis=0), strict=True)
        print(f"| {words} | {k} | " + " | ".join(f"{m:.2f} (+{a} -{b})" for m, a, b in more) + " |", flush=True)


def models(rows: list[int], replicates: int, shapes: bool) -> None:
    """Compare models on the paper's simulation, or the default's with those before on errors of other shapes."""
    print("| data | models | " + " | ".join(f"{t:g}" for t in TOLERANCES) + " |\n|---|---|" + "---:|" * len(TOLERANCES))
    every = ways()
    first, *_, last = every
    for n in rows:
        if not shapes:
            compared(f"{n:,} rows", partial(audited, n=n), every, replicates)
        for name in OFF if shapes else ():
            compared(name, partial(shaped, name, n=n), {k: every[k] for k in (first, last)}, replicates)


def zero(rows: list[int], replicates: int) -> None:
    """Share of replicates rejected at 0.10, two-sided, tolerance 0: refits by sums, and rows split."""
    print("| rows | refit | CPU s | split | CPU s |\n|---:|---:|---:|---:|---:|")
    for n in rows:
        hits, spent = [0, 0], [0.0, 0.0]
        for r in range(replicates):
            for k, null in enumerate(("refit", "split")):
                data, test = audited(r, n), cal.detect.strong_calibration_test
                took, found = cpu(lambda d=data, r=r, k=null, t=test: t(d, null=k, seed=r, draws=999))
                hits[k] += found.p_value <= ALPHA
                spent[k] += took
        both = " | ".join(f"{h / replicates:.2f} | {s / replicates:.2f}" for h, s in zip(hits, spent, strict=True))
        print(f"| {n:,} | {both} |", flush=True)


def level(rows: list[int], replicates: int, nulls: list[str]) -> None:
    """Share of calibrated models rejected at 0.10, two-sided, tolerance 0."""
    print("| null | rows | rejected at 0.10 | CPU s a test |\n|---|---|---|---|")
    for null in nulls:
        for n in rows:
            hits, start = 0, time.process_time()
            for r in range(replicates):
                found = cal.detect.strong_calibration_test(audited(r, n, True), null=null, seed=r)
                hits += found.p_value <= ALPHA
            took = (time.process_time() - start) / replicates
            print(f"| {null} | {n:,} | {hits / replicates:.3f} | {took:.2f} |", flush=True)


def published_draws(g: Any, p: Any, tolerance: float, draws: int, seed: int) -> Any:
    """The published Monte Carlo, one draw at a time: sort, weight, accumulate and take the maximum for each model."""
    rng = np.random.default_rng(seed)
    high, low = np.minimum(p + tolerance, 1), np.maximum(p - tolerance, 0)
    out = np.empty(draws)
    for b in range(draws):
        u = rng.random(len(p))
        up, down = (u < high) - high, (u < low) - low
        best = -np.inf
        for v in g:
            soft = np.sign(v) * np.maximum(np.abs(v) - tolerance, 0)
            order = np.argsort(-np.abs(soft))
            signed = np.where(soft > 0, up, -down)[order]
            size = np.abs(soft)[order]
            size, signed = size[size > 0], signed[size > 0]
            weight = np.maximum(0, size / size.std() - (size / size.std()).mean() + 2)
            best = max(best, float((np.cumsum(signed * weight) / np.sqrt(len(size))).max()))
        out[b] = best
    return out


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and what it returned."""
    start = time.process_time()
    out = call()
    return time.process_time() - start, out


def speed(largest: int) -> None:
    """The Monte Carlo part beside the published one, and whole tests."""
    d = detectors_of(detector_inputs(audited(0, 5_000), Settings(tolerance=0.05)))
    edge, ids, draws = Boundary.of(d.question.edge.p, 0.05), identities_of(5_000, 0), 999
    paths = [path(g, edge, detector="authors") for g in d.g]
    simulated(paths, edge, ids, 64, 1, "authors")
    ours, null = min(
        (cpu(lambda: simulated(paths, edge, ids, draws, 1, "authors")) for _ in range(3)), key=lambda v: v[0]
    )
    theirs, plain = cpu(lambda: published_draws(d.g, d.question.edge.p, 0.05, draws, 1))
    print(
        f"Monte Carlo, n = 5,000, 3 models, {draws} draws: {theirs:.2f} s a draw at a time, {ours:.4f} s here, "
        f"{theirs / ours:.0f} times; 90th percentiles {np.quantile(plain, 0.9):.2f} and "
        f"{np.quantile(null.max(axis=1), 0.9):.2f}. "
        f"Statistic {observed(paths, d.question.sample.y, 'authors').max():.2f}.\n"
    )
    print("| null | rows | CPU s | peak memory of the process |\n|---|---|---|---|")
    plan = [("fixed", n) for n in (1_000, 100_000, 1_000_000) if n <= largest] + [("split", 100_000), ("refit", 1_000)]
    for null, n in plan:
        data = audited(1, n, calibrated=null == "refit")
        t = 0.05 if null == "fixed" else 0.0
        took, found = cpu(lambda d=data, t=t, k=null: cal.detect.strong_calibration_test(d, tolerance=t, null=k))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        more = f" ({found.parts['refits']} refits)" if null == "refit" else ""
        print(f"| {null}{more} | {n:,} | {took:.1f} | {memory:.2f} GiB |", flush=True)


# ---- growth: does a test find more with more rows, and what does it cost? ----

# Shape of the error, and how many standard errors it is deep for one who knows where it is, so that about half of the
# data sets tell it.
SHAPES: dict[str, tuple[Callable[[Any], Any], float]] = {
    "corner of two traits, 4 %": (lambda x: (x[1] > 0.8) & (x[2] > 0.8), 7.5),
    "corner of three, 2.7 %": (lambda x: (x[1] > 0.7) & (x[2] > 0.7) & (x[4] > 0.7), 8.0),
    "small corner, 1 %": (lambda x: (x[1] > 0.9) & (x[2] > 0.9), 8.0),
    "corner, none along either trait": (lambda x: ((x[1] > 0.8) - 0.2) * ((x[2] > 0.8) - 0.2), 9.0),
    "step, 10 %": (lambda x: x[1] > 0.9, 6.0),
    "smooth": (lambda x: (x[1] - 0.5) * (x[2] - 0.5) + x[4] - 0.5, 6.0),
    "rare events, corner": (lambda x: (x[1] > 0.8) & (x[2] > 0.8), 7.0),
    "none": (lambda x: 0.0 * x[1], 0.0),
}


def planted(shape: str, replicate: int, n: int) -> Any:
    """Predictions that are off in this shape."""
    rng = np.random.default_rng([0x6F0, replicate, n])
    x = rng.random((8, n))
    p = 1 / (1 + np.exp((5 if shape.startswith("rare") else 1) - 0.8 * (x[0] - 0.5) - 0.6 * (x[3] - 0.5)))
    off = SHAPES[shape][0](x) * (p * (1 - p) if shape.startswith("rare") else 1.0)
    deep = np.sqrt((off**2 / (p * (1 - p))).sum())
    rate = np.clip(p + SHAPES[shape][1] * off / max(deep, 1e-12), 0, 1)
    return cal.predictions(rng.random(n) < rate, p, {f"x{j}": v for j, v in enumerate(x)})


def growth(shapes: list[str], rows: list[int], replicates: int) -> None:
    """Share of data sets found at 0.05, tolerance 0: refits by sums, and rows split between fit and test."""
    ways = (("refit", CORNERS, 199), ("split", CORNERS, 999), ("split", BOOSTED, 999))
    print("| error | rows | refit | CPU s | split | CPU s | boosted trees, split | CPU s |\n|---|" + "---:|" * 7)
    for shape in shapes:
        for n in rows:
            hits, spent = [0] * len(ways), [0.0] * len(ways)
            for r in range(replicates):
                for k, (null, pool, draws) in enumerate(ways):
                    q = replace(detector_inputs(planted(shape, r, n), Settings(seed=r)), pool=pool)
                    took, found = cpu(
                        lambda q=q, null=null, b=draws: refit(q, b) if null == "refit" else split(halves_of(q), b)
                    )
                    hits[k] += found.p_value <= 0.05
                    spent[k] += took
            both = " | ".join(f"{h / replicates:.2f} | {s / replicates:.2f}" for h, s in zip(hits, spent, strict=True))
            print(f"| {shape} | {n:,} | {both} |", flush=True)


def main() -> None:
    """Run one of the seven."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("power", "models", "shapes", "zero", "level", "speed", "growth"))
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--rows", default="")
    parser.add_argument("--shapes", default="", help="those whose names begin so; all by default")
    parser.add_argument("--null", default="fixed,refit,split,forward")
    parser.add_argument("--authors", action="store_true")
    parser.add_argument("--largest", type=int, default=1_000_000)
    a = parser.parse_args()
    rows = [int(v) for v in a.rows.split(",") if v]
    if a.what == "power":
        power(rows or [800, 1600], a.replicates, a.authors)
    elif a.what == "models":
        models(rows or [400], a.replicates, False)
    elif a.what == "shapes":
        models(rows or [500], a.replicates, True)
    elif a.what == "zero":
        zero(rows or [400, 800, 1600], a.replicates)
    elif a.what == "level":
        level(rows or [100, 300], a.replicates, a.null.split(","))
    elif a.what == "growth":
        shapes = [k for k in SHAPES if k.startswith(tuple(a.shapes.split(",")))]
        growth(shapes, rows or [5_000, 20_000, 60_000, 300_000], a.replicates)
    else:
        speed(a.largest)


if __name__ == "__main__":
    main()
