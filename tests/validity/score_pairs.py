"""Models whose every measure is a finite sum, so that how much worse one is than another is known exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

import calibrant as cal
from calibrant.decisions.comparison import Decision, ModelComparison
from validity.compare_designs import row_attributes

CUT = 0.5
SLACK = 1e-9


@dataclass(frozen=True)
class Kinds:
    """Rows are of finitely many kinds; a kind has a share, a rate of cases, and a score by each model.

    Parameters
    ----------
    n : int
        Rows.
    share, eta : arrays of shape (k,)
    scores : mapping of str to array of shape (k,)
        The first is the reference.
    size : int
        Rows of a unit, which are copies of its first.
    groups : int
        Levels of a covariate that says nothing.
    weighted : bool
        Weights from 0.5 to 1.5 that say nothing.
    """

    n: int
    share: np.ndarray
    eta: np.ndarray
    scores: Mapping[str, np.ndarray]
    size: int = 1
    groups: int = 1
    weighted: bool = False
    how: Mapping[str, object] = field(default_factory=dict)

    def drawn(self, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, object]]:
        """Return models, outcomes, and what else `compare` takes."""
        rng = np.random.default_rng([seed, 17])
        m = self.n // self.size
        kind = rng.choice(len(self.share), m, p=self.share)
        y = (rng.uniform(size=m) < self.eta[kind]).astype(int)
        group, weight = rng.integers(0, self.groups, m), rng.uniform(0.5, 1.5, m)
        kind, y, group, cluster, weight = (np.repeat(v, self.size) for v in (kind, y, group, np.arange(m), weight))
        more = {**self.how, **row_attributes(self, cluster, weight, group)}
        return {name: p[kind] for name, p in self.scores.items()}, y, more

    # ---- exact values ----

    def value(self, measure: str, score: np.ndarray) -> float:
        """Return what a measure is of a score, over all rows there could be."""
        q, eta = self.share, self.eta
        if measure == "brier":
            return float(q @ (eta * (1 - score) ** 2 + (1 - eta) * score**2))
        if measure == "log_loss":
            p = np.clip(score, 0.001, 0.999)
            return float(-q @ (eta * np.log(p) + (1 - eta) * np.log1p(-p)))
        if measure == "error":
            return float(q @ np.where(score >= CUT, 1 - eta, eta))
        if measure == "auroc":
            above = (score[:, None] > score) + 0.5 * (score[:, None] == score)
            return float((q * eta) @ above @ (q * (1 - eta)) / ((q @ eta) * (q @ (1 - eta))))
        return self.off(score, score)

    def off(self, score: np.ndarray, reported: np.ndarray) -> float:
        """Return the calibration error of `reported`, of which each value of `score` has one."""
        _, cell = np.unique(score, return_inverse=True)
        return float(np.abs(np.bincount(cell, self.share * (reported - self.eta))).sum())

    def shown(self, score: np.ndarray) -> float:
        """Return the calibration error of a score as shown in whole per cent, half up."""
        reported = np.floor(100 * score + 0.5) / 100
        return self.off(reported, reported)

    def truth(self, measure: str, model: str) -> tuple[float, float]:
        """Return how much worse a model is: what the low end must not exceed, and what the high end must reach.

        One number, but of the calibration error: the raw score of one against what the other shows.
        """
        old, new = self.scores[next(iter(self.scores))], self.scores[model]
        if measure == "calibration_error":
            return self.value(measure, new) - self.shown(old), self.shown(new) - self.value(measure, old)
        worse = self.value(measure, new) - self.value(measure, old)
        return (-worse, -worse) if measure == "auroc" else (worse, worse)

    # ---- what was said, and whether it is wrong ----

    def error_shown(self, seed: int, measure: str, margin: float) -> ModelComparison:
        """Compare on one data set."""
        models, y, more = self.drawn(seed)
        return cal.compare(models, y, measure=measure, margin=margin, seed=seed, **more)

    def wrong(self, seed: int, measure: str, margin: float) -> bool:
        """Tell whether an interval misses, or a verdict is wrong, on one data set."""
        found = self.error_shown(seed, measure, margin)
        at = {model: self.truth(measure, model) for model in self.scores}
        return any(
            missed((d.interval.low, d.interval.high), at[d.model]) or false(d.verdict, at[d.model], margin)
            for d in found.differences
        ) or any(bound < at[model][1] - SLACK for model, bound in found.worst.items())

    def tight(self, measure: str) -> float:
        """Return the largest margin at which "no worse" of a model that is worse would be wrong."""
        return max(min((self.truth(measure, m)[1] for m in list(self.scores)[1:]), default=0.0) * (1 - 1e-7), 0.0)


def missed(ends: tuple[float, float], truth: tuple[float, float]) -> bool:
    """Tell whether an interval misses."""
    return ends[0] > truth[0] + SLACK or ends[1] < truth[1] - SLACK


def false(verdict: Decision, truth: tuple[float, float], margin: float) -> bool:
    """Tell whether a verdict is wrong."""
    low, high = truth
    return (
        (verdict == "better" and high >= SLACK)
        or (verdict in ("no worse", "worse within margin") and high > margin + 1e-12)
        or (verdict == "worse within margin" and low <= -SLACK)
        or (verdict == "worse" and low <= margin)
    )


def even(k: int) -> np.ndarray:
    return np.full(k, 1.0 / k)


GRID = np.round(np.linspace(0.05, 0.90, 18), 2)
CONSTANT = np.full(18, 0.47)
MIXED = GRID.copy()
MIXED[[3, 9, 5, 14]] = GRID[[9, 3, 14, 5]]
LIFTED = np.round(np.minimum(GRID + 0.06, 1.0), 2)
HALVES = np.linspace(0.1053, 0.9037, 40)  # no whole per cent, so that what is shown is another score
TAIL = np.append(np.linspace(0.1, 0.5, 9).round(2), 0.9)
RARE = np.geomspace(0.002, 0.2, 12).round(3)
FEW = np.geomspace(1.0, 0.01, 12) / np.geomspace(1.0, 0.01, 12).sum()
TIES = np.array([0.2, 0.6, 0.8])
APART = np.array([0.0, 0.001, 0.02, 0.9, 0.97, 0.99])

ranked = Kinds(300, even(18), GRID, {"old": GRID, "new": MIXED})
DESIGNS = {
    "ranked worse": ranked,
    "ranked worse, few rows": replace(ranked, n=60),
    "ranked worse, many rows": replace(ranked, n=4000),
    "too high by six points": replace(ranked, n=2000, scores={"old": GRID, "new": LIFTED}),
    "three values, ties": Kinds(
        400, np.array([0.5, 0.25, 0.25]), np.array([0.2, 0.6, 0.8]), {"old": TIES, "new": np.array([0.2, 0.7, 0.7])}
    ),
    "the new says a constant": replace(ranked, scores={"old": GRID, "new": CONSTANT}),
    "the old says a constant": replace(ranked, scores={"old": CONSTANT, "new": GRID}),
    "identical": replace(ranked, scores={"old": GRID, "new": GRID}),
    "one row in two hundred is turned": Kinds(
        300, np.append(even(9) * 0.995, 0.005), TAIL, {"old": TAIL, "new": np.append(TAIL[:9], 0.01)}
    ),
    "rare events": Kinds(3000, FEW, RARE, {"old": RARE, "new": np.roll(RARE, 1)}),
    "apart, and few cases": Kinds(
        150, np.array([0.5, 0.44, 0.03, 0.01, 0.01, 0.01]), APART, {"old": APART, "new": APART[[0, 1, 3, 2, 4, 5]]}
    ),
    "not in whole per cent": Kinds(1500, even(40), HALVES, {"old": HALVES, "new": np.minimum(HALVES + 0.0349, 1.0)}),
    "six groups": replace(ranked, n=1200, groups=6),
    "units of five alike": replace(ranked, n=1500, size=5),
    "units in groups": replace(ranked, n=2400, size=4, groups=3),
    "weights": replace(ranked, n=800, weighted=True),
    "three models": replace(ranked, scores={"old": GRID, "new": MIXED, "third": CONSTANT, "fourth": LIFTED}),
}
