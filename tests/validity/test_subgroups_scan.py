"""Levels of the scan over boxes under both nulls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

import calibrant as cal
from validity.acceptance import LEAST, count, refuted

ALPHA = 0.05
DRAWS = 99  # the level is exact at any number
NULLS = ("simulated", "bound")


@dataclass(frozen=True)
class Design:
    """Calibrated data, or data at the edge of a tolerance.

    Parameters
    ----------
    n, attributes, runs : int
        Rows, uniform covariates, and replicates in an ordinary run.
    mean : float
        Event rate at the middle of the covariates.
    truth : callable
        Scores to event rates.
    ties : bool
        Scores in five values, whole covariates and categories.
    settings : Mapping
        Of the test.
    """

    n: int
    attributes: int = 4
    runs: int = 60
    mean: float = 0.3
    truth: Callable[[Any], Any] = lambda p: p
    ties: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, replicate: int) -> Any:
        rng = np.random.default_rng([0x5CA, self.n, self.attributes, replicate])
        x = rng.uniform(size=(self.n, self.attributes))
        noise = 0.5 * rng.normal(size=self.n)
        p = expit(np.log(self.mean / (1 - self.mean)) + 0.8 * (x[:, 0] - 0.5) + 0.6 * (x[:, 1] - 0.5) + noise)
        columns: dict[str, Any] = {f"x{j}": x[:, j] for j in range(self.attributes)}
        if self.ties:
            p = np.round(5 * p) / 10 + 0.1
            columns = {f"x{j}": np.floor(6 * x[:, j]) for j in range(self.attributes - 2)}
            names = np.array(["a", "b", "c", "d", "e", "f", "g", "h"])
            columns |= {f"c{j}": names[np.floor(8 * x[:, -j] ** 2).astype(int)] for j in (1, 2)}
        return cal.predictions(rng.random(self.n) < self.truth(p), p, columns)

    def rejects(self, null: str, draws: int = DRAWS) -> Callable[[int], bool]:
        def once(replicate: int) -> bool:
            found = cal.detect.scan_test(self.draw(replicate), null=null, draws=draws, seed=replicate, **self.settings)
            assert 0.0 < found.p_value <= 1.0
            return found.p_value <= ALPHA

        return once


CALIBRATED = {
    "smooth scores": Design(2_000),
    "1 % of events": Design(5_000, mean=0.01),
    "0.1 % of events": Design(20_000, mean=0.001),
    "ties": Design(2_000, ties=True),
    "100 traits": Design(1_000, attributes=100, runs=5),
    "50 rows": Design(50, runs=100),
    "200 rows": Design(200, runs=100),
    "20,000 rows": Design(20_000, attributes=8, runs=30),
    "one trait": Design(2_000, settings={"order": 1}, runs=100),
    "three traits": Design(1_000, attributes=3, settings={"order": 3}, runs=30),
}
AT_EDGE = {
    "above by the tolerance": Design(2_000, truth=lambda p: p + 0.05, settings={"tolerance": 0.05}),
    "above, one-sided": Design(2_000, truth=lambda p: p + 0.05, settings={"tolerance": 0.05, "alternative": "greater"}),
    "below, one-sided": Design(
        2_000, truth=lambda p: np.maximum(p - 0.05, 0), settings={"tolerance": 0.05, "alternative": "less"}
    ),
    "above, rare": Design(
        5_000, mean=0.01, truth=lambda p: p + 0.01, settings={"tolerance": 0.01, "alternative": "greater"}
    ),
    "above, ties": Design(
        2_000, ties=True, truth=lambda p: p + 0.05, settings={"tolerance": 0.05, "alternative": "greater"}
    ),
}


# Designs that take a minute, or are like another, wait for the night: `test_level_at_length` has them all.
LONG = (
    "100 traits",
    "20,000 rows",
    "0.1 % of events",
    "above by the tolerance",
    "smooth scores",
    "above, rare",
    "above, ties",
)


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("name", [n for n in CALIBRATED | AT_EDGE if n not in LONG])
def test_level(name: str, null: str) -> None:
    design = (CALIBRATED | AT_EDGE)[name]
    assert not refuted(count(design.rejects(null), design.runs), design.runs, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("name", CALIBRATED | AT_EDGE)
def test_level_at_length(name: str, null: str) -> None:
    design = (CALIBRATED | AT_EDGE)[name]
    runs = 20 if design.attributes > 50 else 100  # half a minute each of a hundred traits
    assert not refuted(count(design.rejects(null, 999), runs), runs, ALPHA)


# ---- The level from both sides ----

SMALL = Design(300, attributes=3, runs=300)


def exact(design: Design, runs: int) -> bool:
    """Tell whether the simulated null rejects neither too often nor too seldom."""
    found = count(design.rejects("simulated"), runs)
    return not refuted(found, runs, ALPHA) and bool(binom.cdf(found, runs, ALPHA) >= LEAST)


def test_the_simulated_level_is_neither_above_nor_below() -> None:
    assert exact(SMALL, 300)
