"""Coverage of the measures' 95 % intervals in the worst designs that a search finds: numbers of docs/measures.md.

    python benchmarks/measure/intervals.py                     # a few minutes: 40 designs, 100 samples, two rounds
    python benchmarks/measure/intervals.py --full              # 400 designs, 400 samples, six rounds: hours
    python benchmarks/measure/intervals.py --measures auroc

A design is a number of rows, the expected number of the rarer outcome, the form and spread of the scores, and how the
event rate follows from the score. Designs are drawn, those in which a measure covers least are changed a little, the
worst of all kept, and so on; at the end the worst are simulated again with other samples, so that bad luck is not
reported. Truths are those of a grid of quantiles. Samples in which the measure refuses are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

import calibrant as cal
from calibrant.errors import NotComputable
from calibrant.stats.strata import equal_mass_edges

LEAST = 0.9  # of the samples, which have an interval: a measure that refuses so few cases is not wrong about them
GRID = (np.arange(20_000) + 0.5) / 20_000
HIGHER = {"two scores": 0.1, "two scores, 2 %": 0.02, "two scores, 1 %": 0.01}  # share of the rows with the higher
CHOICES: dict[str, tuple[Any, ...]] = {
    "rows": (40, 100, 300, 1_000),
    "events": (1.5, 3.0, 5.0, 9.0, 10.0, 15.0, 30.0, 0.5),  # below 1: a share of the rows
    "form": ("normal", "two scores", "two scores, 2 %", "two scores, 1 %", "skew", "one score"),
    "spread": (0.3, 1.0, 2.0, 4.0, 6.0),
    "level": (0.5, 1.0, 2.0, 4.0),
    "tilt": (0.0, 0.5, 1.0, 2.0),
    "floor": (0.0, 0.0, 0.01, 0.05),
}


@dataclass(frozen=True)
class Design:
    """Rows, expected cases, the form and spread of the scores' logits, and the rate: level, tilt and floor."""

    rows: int
    events: float
    form: str
    spread: float
    level: float
    tilt: float
    floor: float

    def scores(self, u: Any) -> Any:
        """Return scores at quantiles u; their place makes as many cases as are expected."""
        return np.clip(expit(_place(self) + self.spread * _shape(self.form, u)), 1e-9, 1.0 - 1e-9)

    def rate(self, p: Any) -> Any:
        """Return the event rate at a score."""
        middle = _place(self)
        found = np.clip(self.level * expit(middle + self.tilt * (logit(p) - middle)), 0.0, 1.0)
        return self.floor + (1.0 - 2.0 * self.floor) * found

    @property
    def share(self) -> float:
        """Expected share of cases."""
        return self.events if self.events < 1.0 else self.events / self.rows

    def drawn(self, seed: int) -> tuple[Any, Any]:
        """Draw scores and outcomes."""
        rng = np.random.default_rng([seed, self.rows, 0xC0FE])
        p = self.scores(rng.random(self.rows))
        return p, rng.random(self.rows) < self.rate(p)

    def __str__(self) -> str:
        return ", ".join(f"{f.name} {getattr(self, f.name)}" for f in fields(self))


def _shape(form: str, u: Any) -> Any:
    if form == "one score":
        return np.zeros_like(u)
    if form in HIGHER:
        return np.where(u < 1.0 - HIGHER[form], -0.5, 1.5)
    return 2.0 * np.expm1(0.5 * ndtri(u)) if form == "skew" else ndtri(u)


@cache
def _place(design: Design) -> float:
    """Return the middle of the logits at which the expected share of cases is right, or as near as it can be."""
    low, high = -15.0, 15.0
    shape = design.spread * _shape(design.form, GRID[::20])
    for _ in range(50):
        at = (low + high) / 2
        found = np.clip(design.level * expit(at + design.tilt * shape), 0.0, 1.0)
        rate = design.floor + (1.0 - 2.0 * design.floor) * found.mean()
        low, high = (at, high) if rate < design.share else (low, at)
    return (low + high) / 2


# ---- truths ----


def _losses(name: str) -> Callable[[Any, Any, Any], float]:
    def truth(p: Any, e: Any, _: Any) -> float:
        own = (1 - p) ** 2, p**2
        if name == "log_loss":
            own = -np.log(p), -np.log1p(-p)
        return float((e * own[0] + (1 - e) * own[1]).mean())

    return truth


def area(p: Any, e: Any, _: Any) -> float:
    """Return the chance that a case outscores another row, ties half."""
    first = np.flatnonzero(np.concatenate([[True], np.diff(p) > 0]))
    case, other = np.add.reduceat(e, first), np.add.reduceat(1 - e, first)
    return float(case @ (np.cumsum(other) - 0.5 * other) / e.sum() / (1 - e).sum())


def _root(function: Callable[[float], float]) -> float:
    low, high = -40.0, 40.0
    for _ in range(60):
        at = (low + high) / 2
        low, high = (at, high) if function(at) < 0 else (low, at)
    return (low + high) / 2


def intercept(p: Any, e: Any, _: Any) -> float:
    """Return what is to be added to the logits."""
    return _root(lambda a: float(expit(a + logit(p)).mean() - e.mean()))


def slope(p: Any, e: Any, _: Any) -> float:
    """Return the slope of the best logistic recalibration."""
    x, b = np.column_stack([np.ones(len(p)), logit(p)]), np.array([logit(e.mean()), 0.0])
    for _step in range(100):
        r = expit(x @ b)
        move = np.linalg.solve((x * (r * (1 - r))[:, None]).T @ x + 1e-12 * np.eye(2), x.T @ (e - r))
        b += move * min(1.0, 2.0 / max(np.abs(move).max(), 1e-12))
    return float(b[1])


def in_bins(p: Any, e: Any, sample: Any) -> float:
    """Return the error in the sample's bins."""
    where = np.searchsorted(equal_mass_edges(sample, None, 15), p, side="right")
    return float(np.abs(np.bincount(where, e - p) / len(p)).sum())


def worst_bin(p: Any, e: Any, sample: Any) -> float:
    """Return the largest mean residual of a bin of the sample's."""
    where = np.searchsorted(equal_mass_edges(sample, None, 15), p, side="right")
    return float(np.abs(np.bincount(where, e - p) / np.maximum(np.bincount(where), 1)).max())


def ratio(p: Any, e: Any, _: Any) -> float:
    """Return cases over those expected."""
    return float(e.mean() / p.mean())


TRUTHS: dict[str, Callable[[Any, Any, Any], float]] = {
    "auroc": area,
    "brier": _losses("brier"),
    "log_loss": _losses("log_loss"),
    "observed_expected": ratio,
    "calibration_intercept": intercept,
    "calibration_slope": slope,
    "ece": in_bins,
    "max_calibration_error": worst_bin,
}
IN_BINS = ("ece", "max_calibration_error")  # what is estimated depends on the sample


# ---- coverage, and the search for where it is least ----


@dataclass(frozen=True)
class Found:
    """How often an interval held the truth in a design, its median width, and in how many samples there was one."""

    design: Design
    sample_rows: int
    samples: int
    options: int
    width: float

    @property
    def coverage(self) -> float:
        """Share of the samples that had an interval; designs in which many have none are not looked for."""
        return self.sample_rows / self.samples if self.samples >= LEAST * self.options else 1.0


def coverage(name: str, design: Design, samples: int, first: int) -> Found:
    """Simulate a design."""
    p = design.scores(GRID)
    e, truth = design.rate(p), TRUTHS[name]
    known = None if name in IN_BINS else truth(p, e, None)
    held, widths = 0, []
    for seed in range(first, first + samples):
        score, y = design.drawn(seed)
        try:
            found = getattr(cal.measure, name)(cal.predictions(y, score)).interval
        except NotComputable:
            continue
        true = truth(p, e, score) if known is None else known
        held += bool(found.low - 1e-9 <= true <= found.high + 1e-9)
        widths.append(found.high - found.low)
    return Found(design, held, len(widths), samples, float(np.median(widths)) if widths else 0.0)


def sound(design: Design) -> bool:
    """Tell whether the rarer outcome is expected once at least, and no number is out of range."""
    rate = float(design.rate(design.scores(GRID[::20])).mean())
    return design.rows * min(rate, 1.0 - rate) >= 1.0 and abs(rate - design.share) < 0.2 * design.share


def designs(rng: np.random.Generator) -> Iterator[Design]:
    """Draw designs."""
    while True:
        made = Design(**{k: v[int(rng.integers(len(v)))] for k, v in CHOICES.items()})
        if sound(made):
            yield made


def changed(design: Design, rng: np.random.Generator) -> Design:
    """Change one thing about a design: to another choice, or by a factor."""
    while True:
        name = str(rng.choice(list(CHOICES)))
        value = getattr(design, name)
        if name in ("form", "floor") or rng.random() < 0.3:
            new = CHOICES[name][int(rng.integers(len(CHOICES[name])))]
        else:
            new = type(value)(value * rng.choice([0.7, 0.85, 1.2, 1.4]))
        made = replace(design, **{name: new})
        if sound(made) and made.rows <= 2_000:
            return made


def worst(name: str, many: int, samples: int, rounds: int) -> list[Found]:
    """Search, and simulate the five worst designs again with four times as many other samples."""
    rng = np.random.default_rng([len(name), 0x5EA6])
    drawn = designs(rng)
    found = [coverage(name, next(drawn), samples, 0) for _ in range(many)]
    for _ in range(rounds):
        found = sorted(found, key=lambda f: f.coverage)[: max(many // 6, 5)]
        found += [coverage(name, changed(f.design, rng), samples, 0) for f in found]
    last = sorted(found, key=lambda f: f.coverage)[:5]
    again = [coverage(name, f.design, 4 * samples, 1 << 20) for f in last]
    return sorted(again, key=lambda f: f.coverage)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--measures", nargs="*", default=list(TRUTHS))
    requested = parser.parse_args()
    size = (400, 400, 6) if requested.full else (40, 100, 2)
    print("| measure | covers | of samples | median width | design |\n|---|---|---|---|---|")
    for name in requested.measures:
        for f in worst(name, *size):
            print(f"| `{name}` | {f.coverage:.3f} | {f.samples:,} | {f.width:.3g} | {f.design} |", flush=True)
