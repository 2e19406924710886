"""How often intervals of several classes miss a truth that is a sum or a formula, and how wide they are.

    python benchmarks/classes/misses.py PART [--sets 1000] [--only NAME]

Each part prints a table (CSV); the tables of all designs are in docs/evidence/classes-*.csv. Seeds are fixed.

classwise   both ends of `certify.classwise` at alpha = 0.05: each may miss in 2.5% of data sets
perturbed   the same of `certify.jittered_classes` with 20 steps
audited     `audit`: simultaneous ranges of all classes (gap at 5%, error at 5% from below and 2.5% from above), and
            verdicts at a limit that is the largest true gap or error, where none is over (5%), and at one that is the
            smaller of the first two classes', where neither is within (2.5%)
ordered     the same of ordered classes and their cuts, which share with them
ece         the 95% interval of `measure.classwise_ece`, given its bins: each end misses in 2.5% if it is exact
broken      the same of the library with a mistake: what the tables above would show if it had been made
bonferroni  the class-wise error against certificates of each class at alpha / K, added up; of CIFAR-10 with --cifar
            FILE (Parquet with prob_0 to prob_9 and y_true)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import numpy as np

import calibrant as cal
from calibrant.audit import run
from calibrant.audit.checks import classes as checked
from calibrant.measure.ece import binned_points
from calibrant.stats.clusters.classes import EDGES, Classes
from calibrant.views.points import points

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from validity.class_designs import MOVED, Design, Spread, cancelling

ALPHA, STREAM = 0.05, 43
DESIGNS = {  # rare classes are expected in 0.1 to 1% of rows each, and some never come
    "3, one rare, calibrated": Design(3, 1.0, 1.0, 400, rare=1),
    "3, one rare, overconfident": Design(3, 0.6, 0.5, 400, rare=1),
    "3, one rare, half of one moved": Design(3, 1.0, MOVED, 400, rare=1),
    "10, six rare, calibrated": Design(10, 0.8, 1.0, 1000, rare=6),
    "10, six rare, overconfident": Design(10, 0.6, 0.5, 1000, rare=6),
    "10, six rare, underconfident": Design(10, 1.0, 2.5, 1000, rare=6),
    "100, ninety rare, calibrated": Design(100, 0.4, 1.0, 2000, rare=90),
    "100, ninety rare, overconfident": Design(100, 0.3, 0.5, 2000, rare=90),
    "100, ninety rare, half of one moved": Design(100, 0.4, MOVED, 2000, rare=90),
    "10, six rare, clusters of ten": Design(10, 0.6, 0.5, 1500, 10, rare=6),
}
SPREAD = {
    "3, one rare": Spread(2, 1, 400),
    "10, six rare": Spread(4, 6, 1000),
    "100, ninety rare": Spread(10, 90, 2000),
}
MANY = Spread(40, 0, 2000)  # classes that are all common, so that each range misses nearly as often as it may
Row = tuple[object, ...]


def _rng(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, len(name), STREAM])


def classwise(sets: int, only: str) -> Iterator[Row]:
    """Both ends of the certificate."""
    yield "design", "rows", "class-wise error", "low end above", "high end below", "of", "mean low", "mean high"
    for name, design in DESIGNS.items():
        if only not in name:
            continue
        error, ends = design.truth(), []
        for seed in range(sets):
            interval = cal.certify.classwise(design.drawn(_rng(seed, name)), alpha=ALPHA, seed=seed).interval
            ends.append((interval.low, interval.high))
        low, high = np.array(ends).T
        yield (
            name,
            design.rows,
            _r(error),
            int((low > error).sum()),
            int((high < error).sum()),
            sets,
            *_means(low, high),
        )


def perturbed(sets: int, only: str) -> Iterator[Row]:
    """Both ends of the certificate of perturbed vectors."""
    yield "design", "rows", "error of what is emitted", "low end above", "high end below", "of", "mean low", "mean high"
    for name, design in DESIGNS.items():
        if only not in name or design.size > 1:
            continue
        p, ends = design.vectors(), []
        rates, steps = design.rates(p), 20
        error = sum(
            abs(np.maximum(0.0, 1.0 - abs(steps * p[:, k] - j)) @ (j / steps - rates[:, k]))
            for k in range(design.classes)
            for j in range(steps + 1)
        ) / len(p)
        for seed in range(sets):
            data = design.drawn(_rng(seed, name))
            interval = cal.certify.jittered_classes(data, steps=steps, alpha=ALPHA, seed=seed).interval
            ends.append((interval.low, interval.high))
        low, high = np.array(ends).T
        misses = int((low > error).sum()), int((high < error).sum())
        yield name, design.rows, _r(error), *misses, sets, *_means(low, high)


def audited(sets: int, only: str, ordered: bool = False) -> Iterator[Row]:
    """Ranges and verdicts of all classes: even seeds at a limit that none is over, odd ones at one that two are."""
    yield (
        "design",
        "rows",
        "a gap missed",
        "an error missed below",
        "above",
        "of",
        "wrongly over",
        "wrongly within",
        "of",
    )
    asked = tuple(c for c in run.all_checks() if c.code in ("error-everyone", "error-classes"))  # the rest: time only
    with patch.object(run, "all_checks", lambda: asked):
        for name, design in SPREAD.items():
            if only not in name:
                continue
            counts, raw, rounded = np.zeros(5, dtype=int), design.errors, design.rounded()
            if ordered:
                raw, rounded = np.append(raw, design.cut_errors()), np.append(rounded, design.cut_rounded())
            for seed in range(sets):
                data, gaps = design.drawn(_rng(seed, name), ordered)
                off = np.maximum(np.abs(gaps), np.maximum(raw, rounded))
                none, two = off.max() + 1e-9, min(np.abs(gaps[:2]).min(), rounded[:2].min()) - 1e-9
                record = cal.audit(data, limit=two if seed % 2 else none, alpha=ALPHA, quick=True, seed=seed)
                low, high = np.array([_ends(f.gap.guaranteed) for f in record.classes]).T
                counts += (
                    ((low > gaps) | (gaps > high)).any(),
                    any(f.lower.interval.low > e for f, e in zip(record.classes, raw, strict=True)),
                    any(f.upper.interval.high < e for f, e in zip(record.classes, rounded, strict=True)),
                    not seed % 2 and any(f.verdict == "over" for f in record.classes),
                    seed % 2 and any(f.verdict == "within" for f in record.classes[:2]),
                )
            yield name, design.rows, *counts[:3].tolist(), sets, *counts[3:].tolist(), sets // 2


def ordered(sets: int, only: str) -> Iterator[Row]:
    """The same of ordered classes and their cuts."""
    yield from audited(sets, only, ordered=True)


def ece(sets: int, only: str) -> Iterator[Row]:
    """The ordinary interval, against the error in the bins that the data have."""
    yield "design", "rows", "strategy", "mean truth", "mean plug-in", "mean debiased", "low above", "high below", "of"
    for name, design in DESIGNS.items():
        for strategy in ("quantile", "uniform"):
            if only not in name:
                continue
            seen, misses = [], np.zeros(2, dtype=int)
            for seed in range(sets):
                data = design.drawn(_rng(seed, name))
                e = cal.measure.classwise_ece(data, strategy=strategy, alpha=ALPHA, seed=seed)
                error = binned_error(design, data, strategy)
                misses += e.interval.low > error, e.interval.high < error
                seen.append((error, e.settings["plug_in"], e.settings["without_noise"]))
            yield name, design.rows, strategy, *_means(*np.array(seen).T), *misses.tolist(), sets


def binned_error(design: Design, data: cal.MulticlassPredictions, strategy: str) -> float:
    """The class-wise error in the bins of these data, of the vectors that rows are drawn from."""
    p, total = design.vectors(), 0.0
    off = design.rates(p) - p
    for k in range(design.classes):
        at = binned_points(points(data.one_vs_rest(k)), 15, strategy).cell(np.ascontiguousarray(p[:, k]))
        total += np.abs(np.bincount(at, off[:, k])).sum()
    return total / len(p) / design.classes


def _last_class(self: Classes) -> np.ndarray:
    """Bins of the last class's probability, in place of each class's own."""
    return np.tile(np.searchsorted(EDGES, self.p[:, -1], side="right").astype(np.uint8), (self.k, 1))


def broken(sets: int, only: str) -> Iterator[Row]:
    """A witness that reads another class's probability, and ranges of classes of which each spends all of alpha."""
    yield "mistake", "design", "missed", "missed with the mistake", "of"
    for k, rows in ((4, 400), (10, 1000), (100, 2000)):
        if only not in f"{k}, errors cancel":
            continue
        misses = []
        for mistake in (None, _last_class):
            with ExitStack() as stack:
                if mistake:
                    stack.enter_context(patch.object(Classes, "bins", property(mistake)))
                low = [
                    cal.certify.classwise(cancelling(k, rows, _rng(s, "cancelling")), alpha=ALPHA, seed=s).interval.low
                    for s in range(sets)
                ]
            misses.append(sum(x > 0.0 for x in low))
        yield "the sign of a class's error reads another class's probability", f"{k}, errors cancel", *misses, sets
    real = checked.certified
    asked = tuple(c for c in run.all_checks() if c.code in ("error-everyone", "error-classes"))
    for name, design in (("3, one rare", SPREAD["3, one rare"]), ("40, none rare", MANY)):
        if only not in name:
            continue
        misses = [0, 0]
        for seed in range(sets):
            data, gaps = design.drawn(_rng(seed, name))
            for i, mistake in enumerate((real, lambda *a: real(*a[:-1], 1))):
                with patch.object(checked, "certified", mistake), patch.object(run, "all_checks", lambda: asked):
                    record = cal.audit(data, limit=0.05, alpha=ALPHA, quick=True, seed=seed)
                low, high = np.array([_ends(f.gap.guaranteed) for f in record.classes]).T
                misses[i] += bool(((low > gaps) | (gaps > high)).any())
        yield "the range of each class spends all of alpha", name, *misses, sets


def bonferroni(sets: int, only: str, cifar: str = "") -> Iterator[Row]:
    """The class-wise error, and certificates of each class that share alpha, added up."""
    yield "design", "rows", "class-wise error", "low", "high", "low, added up", "high, added up"
    for name, design in DESIGNS.items():
        if only not in name or design.size > 1:
            continue
        ends = [_both(design.drawn(_rng(seed, name)), seed) for seed in range(min(sets, 20))]
        yield name, design.rows, _r(design.truth()), *_means(*np.array(ends).T)
    if cifar:
        import pyarrow.parquet as pq

        t = pq.read_table(cifar)
        p = np.stack([t[f"prob_{k}"].to_numpy() for k in range(10)], axis=1).astype(float)
        y = t["y_true"].to_numpy()
        data = cal.multiclass_predictions(y, p / p.sum(axis=1, keepdims=True))
        yield "CIFAR-10H test images, DenseNet", data.n, "", *(_r(x) for x in _both(data, 0))


def _both(data: cal.MulticlassPredictions, seed: int) -> tuple[float, float, float, float]:
    k = data.p.shape[1]
    whole = cal.certify.classwise(data, alpha=ALPHA, seed=seed).interval
    each = [cal.certify.rounded(data.one_vs_rest(i), alpha=ALPHA / k, seed=seed).interval for i in range(k)]
    return whole.low, whole.high, sum(e.low for e in each), sum(e.high for e in each)


def _ends(interval: cal.Interval) -> tuple[float, float]:
    return interval.low, interval.high


def _means(*columns: np.ndarray) -> list[str]:
    return [_r(c.mean()) for c in columns]


def _r(x: float) -> str:
    return f"{x:.4f}"


PARTS: dict[str, Callable[..., Iterator[Row]]] = {
    "classwise": classwise,
    "perturbed": perturbed,
    "audited": audited,
    "ordered": ordered,
    "ece": ece,
    "broken": broken,
    "bonferroni": bonferroni,
}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("part", choices=PARTS)
    asked.add_argument("--sets", type=int, default=1000)
    asked.add_argument("--only", default="")
    asked.add_argument("--cifar", default="")
    a = asked.parse_args()
    extra = {"cifar": a.cifar} if a.part == "bonferroni" else {}
    for row in PARTS[a.part](a.sets, a.only, **extra):
        print(",".join(f'"{x}"' if "," in str(x) else str(x) for x in row), flush=True)


if __name__ == "__main__":
    main()
