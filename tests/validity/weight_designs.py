"""Rows of one population weighted to another, whose errors are formulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import calibrant as cal

BANDS, SEXES, VALUES = ("a", "b", "c"), ("f", "m"), np.arange(1, 11) / 20


@dataclass(frozen=True)
class Design:
    """How many rows, how they are weighted, how far the populations differ, how far scores are off by band."""

    method: str
    n: int = 600
    strong: bool = False
    off: tuple[float, float, float] = (0.0, 0.0, 0.0)
    pilot: float = 0.0
    cap: float | None = None
    rare: bool = False

    @property
    def values(self) -> NDArray[np.float64]:
        return VALUES / 20 if self.rare else VALUES

    def shares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bands of the rows and of the population."""
        return (np.array([0.8, 0.15, 0.05] if self.strong else [0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]))

    def errors(self) -> NDArray[np.float64]:
        """Law of the score times what it is off by, for each band: of shape (3, values)."""
        k = np.arange(len(VALUES))
        law = np.array([np.exp(-0.2 * band * k) for band in range(3)])
        return law / law.sum(axis=1, keepdims=True)

    def draw(self, rng: np.random.Generator) -> tuple[cal.Predictions, NDArray[np.int64]]:
        """Rows and their bands."""
        x = rng.choice(3, self.n, p=self.shares()[0])
        x[:3] = range(3)
        law = self.errors()
        k = np.array([rng.choice(len(VALUES), p=law[band]) for band in x])
        p = self.values[k]
        rate = np.clip(p + np.array(self.off)[x] * (0.05 if self.rare else 1.0), 0, 1)
        table = {"band": np.array(BANDS)[x], "sex": rng.choice(SEXES, self.n)}
        return cal.predictions(rng.uniform(size=self.n) < rate, p, table), x

    def weigh(self, data: cal.Predictions, rng: np.random.Generator) -> cal.weights.Weighting:
        """Weights to the population, by the design's method."""
        more = {"pilot": self.pilot, "cap": self.cap}
        if self.method == "margins":
            bands = dict(zip(BANDS, self.shares()[1], strict=True))
            return cal.weights.to(data, {"band": bands, "sex": {"f": 0.7, "m": 0.3}}, leave_out=True, **more)
        people = {"band": rng.choice(BANDS, 1000, p=self.shares()[1]), "sex": rng.choice(SEXES, 1000, p=(0.7, 0.3))}
        return cal.weights.to(
            data, people, columns=["band", "sex"], method=self.method, leave_out=self.method == "cells", **more
        )

    def truth(self, weights: NDArray[np.float64], x: NDArray[np.int64], sex: NDArray[np.int64]) -> float:
        """The error of the population that the weights make: sum over values of what its bands are off by."""
        share = np.bincount(x, weights, 3)
        if self.pilot:  # weights are a function of band and sex: times the rows' own law, in which sexes are alike
            cell, kept = 2 * x + sex, np.flatnonzero(weights > 0)
            rows = np.bincount(cell[kept], minlength=6)
            each = np.bincount(cell[kept], weights[kept], 6) / np.maximum(rows, 1)
            share = self.shares()[0] * each.reshape(3, 2).mean(axis=1)
        share = share / share.sum()
        off = np.array(self.off)[:, None] * (0.05 if self.rare else 1.0)
        rate = np.clip(self.values + off, 0, 1)
        return float(np.abs(share @ (self.errors() * (rate - self.values))).sum())


def ends(design: Design, seed: int) -> tuple[bool, bool, float, float]:
    """Whether the low and the high end miss, the high end, and the effective share of rows."""
    rng = np.random.default_rng(seed)
    data, x = design.draw(rng)
    w = design.weigh(data, rng)
    found = cal.certify.values(w.of(data), seed=seed).interval
    true = design.truth(w.weights, x, np.array(data.covariates["sex"].to_pylist()) == "m")
    return found.low > true + 1e-12, found.high < true - 1e-12, found.high, w.effective / data.n
