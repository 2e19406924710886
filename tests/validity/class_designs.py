"""Rows of several classes whose class-wise error, errors of classes and errors in bins are sums or formulas."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

import calibrant as cal

Floats = NDArray[np.float64]

VECTORS = 40  # that the classifier takes, so that the truth is a sum
MOVED = 0.0  # in place of a temperature: half of the first class's probability is truly the second's
SWAPPED = -1.0  # each class's probability is truly the next one's: the error exceeds 1
RARE = 0.05  # a rare class's concentration, of a common one's
HALF = 0.5


class Design(NamedTuple):
    """Rows that take `VECTORS` probability vectors in whole percent, each as often, and what truly happens."""

    classes: int
    concentration: float
    temperature: float  # of the truth: 1 is calibrated, below it the classifier is overconfident
    rows: int
    size: int = 1  # rows of a cluster
    rare: int = 0  # classes that are rare

    def vectors(self, seed: int = 0) -> Floats:
        """The vectors, shape (VECTORS, classes)."""
        rng = np.random.default_rng(seed)
        conc = np.full(self.classes, self.concentration)
        conc[self.classes - self.rare :] *= RARE
        return np.array([rng.multinomial(100, rng.dirichlet(conc)) for _ in range(VECTORS)]) / 100

    def rates(self, p: Floats) -> Floats:
        """How probable each class truly is."""
        if self.temperature == MOVED:
            return moved(p)
        if self.temperature == SWAPPED:
            return np.roll(p, 1, axis=1)
        raised = p**self.temperature
        return raised / raised.sum(axis=1, keepdims=True)

    def truth(self) -> float:
        """The class-wise error: sums over the values of each class's probability."""
        total, p = 0.0, self.vectors()
        for own, rate in zip(p.T, self.rates(p).T, strict=True):
            total += sum(abs((own - rate)[own == value].sum()) for value in np.unique(own))
        return total / len(p)

    def drawn(self, rng: np.random.Generator) -> cal.MulticlassPredictions:
        """Rows; those of a cluster have one vector and, two times of three, one outcome."""
        p = self.vectors()
        at = rng.integers(0, len(p), self.rows)
        u = rng.uniform(size=self.rows)
        if self.size > 1:
            at = np.repeat(at[: self.rows // self.size], self.size)
            alike = np.repeat(rng.uniform(size=self.rows // self.size), self.size)
            u = np.where(rng.uniform(size=self.rows) < 2 / 3, alike, u)
        cluster = np.arange(self.rows) // self.size if self.size > 1 else None
        return cal.multiclass_predictions(_classes(self.rates(p)[at], u), p[at], cluster=cluster)


def moved(p: Floats) -> Floats:
    """The rates where half of the first class's probability is truly the second's."""
    eta = p.copy()
    eta[:, 1] += HALF * p[:, 0]
    eta[:, 0] *= 1.0 - HALF
    return eta


def cancelling(classes: int, rows: int, rng: np.random.Generator) -> cal.MulticlassPredictions:
    """Every class's probability is true, and the vector is not: class-wise error 0.

    Where the last class but one has the mass the first class comes true more often and the second less, where the last
    has it the reverse; what the first and the second are given is the same in both.
    """
    p = np.tile(np.array([0.4, 0.4, *np.zeros(classes - 2)]), (rows, 1))
    last = rng.uniform(size=rows) < HALF
    p[np.arange(rows), np.where(last, classes - 1, classes - 2)] = 0.2
    eta = p.copy()
    eta[:, 0] += np.where(last, -0.3, 0.3)
    eta[:, 1] -= np.where(last, -0.3, 0.3)
    return cal.multiclass_predictions(_classes(eta, rng.uniform(size=rows)), p)


class Spread(NamedTuple):
    """Rows of scores that are all different, Dirichlet, of which half of the first class is truly the second's."""

    common: int
    rare: int
    rows: int

    @property
    def concentration(self) -> Floats:
        """Of each class."""
        return np.repeat([0.5, 0.5 * RARE], [self.common, self.rare])

    @property
    def errors(self) -> Floats:
        """``E|p_k - P(Y = k | p_k)|`` of each class: that of the first two, and no error of the others."""
        return np.where(np.arange(self.common + self.rare) < 2, HALF * self._mean(0), 0.0)

    def _mean(self, k: int) -> float:
        return float(self.concentration[k] / self.concentration.sum())

    def rounded(self, steps: int = 100) -> Floats:
        """The same of each class's probability rounded to whole steps, from the mass and the mean in each step."""
        conc, edges = self.concentration, np.concatenate([[0.0], (np.arange(steps) + 0.5) / steps, [1.0]])
        total, errors = conc.sum(), []
        for k, a in enumerate(conc):
            mass = np.diff(beta.cdf(edges, a, total - a))
            mean = np.diff(beta.cdf(edges, a + 1.0, total - a)) * a / total  # of p_k, in the step
            rate = mean * (1.0 - HALF * (k == 0)) + (k == 1) * HALF * (mass - mean) * conc[0] / (total - a)
            errors.append(np.abs(np.arange(steps + 1) / steps * mass - rate).sum())
        return np.array(errors)

    def cut_errors(self) -> Floats:
        """``E|F_k - P(Y <= k | F_k)|`` of each cut but the outer: none, as what moved stays below all of them."""
        return np.zeros(self.common + self.rare - 3)

    def cut_rounded(self, steps: int = 100) -> Floats:
        """The same of each cut's probability rounded to whole steps, a beta variable as well."""
        edges, total = np.concatenate([[0.0], (np.arange(steps) + 0.5) / steps, [1.0]]), self.concentration.sum()
        errors = []
        for a in self.concentration.cumsum()[1:-2]:
            mass, mean = (np.diff(beta.cdf(edges, a + i, total - a)) for i in (0.0, 1.0))
            errors.append(np.abs(np.arange(steps + 1) / steps * mass - mean * a / total).sum())
        return np.array(errors)

    def drawn(self, rng: np.random.Generator, ordered: bool = False) -> tuple[cal.MulticlassPredictions, Floats]:
        """Rows, and each class's gap given the scores; of ordered classes each cut's after them."""
        p = rng.dirichlet(self.concentration, self.rows)
        eta = moved(p)
        gaps = (eta - p).mean(axis=0)
        data = cal.multiclass_predictions(_classes(eta, rng.uniform(size=self.rows)), p, ordered=ordered)
        return data, np.concatenate([gaps, gaps.cumsum()[1:-2]]) if ordered else gaps


def _classes(rates: Floats, u: Floats) -> NDArray[np.int64]:
    """The class that each row's uniform number draws."""
    return np.minimum((u[:, None] > rates.cumsum(axis=1)).sum(axis=1), rates.shape[1] - 1)
