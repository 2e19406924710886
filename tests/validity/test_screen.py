"""Covariates chosen on other rows: the level of what is tested then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.diagnose import ranking
from calibrant.diagnose.ranking import Line, gaussian_measures
from calibrant.stats.strata import Strata
from calibrant.views.features import hash_split, strongest
from validity.acceptance import count, refuted

ALPHA, COLUMNS, KEPT = 0.05, 120, 5
RUNS = [150, pytest.param(400, marks=pytest.mark.nightly)]


def calibrated(seed: int, n: int = 240) -> cal.Predictions:
    """Return rows of which no covariate matters: numbers, and levels of which some are rare."""
    rng = np.random.default_rng([77, seed])
    p = rng.beta(2, 4, n)
    x: dict[str, Any] = {f"x{j}": rng.normal(size=n) for j in range(COLUMNS)}
    x |= {f"x{j}": rng.choice(list("abcd"), n, p=[0.6, 0.3, 0.06, 0.04]) for j in range(0, COLUMNS, 4)}
    return cal.predictions(rng.random(n) < p, p, x)


def scan(data: cal.Predictions, chosen: tuple[str, ...], seed: int) -> float:
    return cal.detect.scan_test(data, variables=chosen, order=1, draws=99, seed=seed).p_value


def local(data: cal.Predictions, chosen: tuple[str, ...], seed: int) -> float:
    return cal.detect.local_calibration_test(data, variables=chosen, draws=99, landmarks=16, seed=seed).p_value


TESTS = {"scan": scan, "local": local}


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("name", TESTS)
def test_a_test_of_covariates_that_other_rows_chose_keeps_its_level(name: str, runs: int) -> None:
    def miss(run: int) -> bool:
        data = calibrated(run)
        pilot, rest = hash_split(data.n, run)
        chosen = strongest(data.part(pilot), KEPT)
        return TESTS[name](data.part(rest), chosen, run) <= ALPHA

    misses = count(miss, runs)
    assert not refuted(misses, runs, ALPHA), misses


# ---- two stages of draws under the normal law ----


class _Sum:
    """A statistic of normal sums: the largest in absolute value."""

    def __init__(self, observed: np.ndarray[Any, Any]) -> None:
        self.observed = observed

    def measured(self, sums: Any, _: Any) -> tuple[float, Any]:
        """Return it as observed, and of simulated sums."""
        return float(np.abs(self.observed).max()), np.abs(sums).max(axis=1)


def _line(bins: int) -> Line:
    ones = np.ones(bins)
    own: dict[str, Any] = dict.fromkeys(("rows", "weight", "weight2", "events", "score", "noise", "resid2"), ones)
    axis = {"x": np.arange(bins) * 1.0, "low": np.arange(bins) * 1.0, "high": np.arange(bins) * 1.0}
    return Line(
        "x", "category", Strata(name="x", labels=tuple("abcd")[:bins], view="probability", **axis, **own), 0, None
    )


def _two_stages(run: int, seed: int) -> float:
    line = _line(4)
    scale = np.sqrt(line.bins.variance) / line.bins.total
    observed = np.random.default_rng([5, run]).standard_normal(4) * scale
    return float(gaussian_measures([_Sum(observed)], [line], seed)[0][0][1][0])


@pytest.mark.parametrize("level", [0.02, 0.05, 0.1, 0.15, 0.3])
def test_two_stages_of_draws_keep_every_level(level: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "FIRST_DRAWS", 19)
    monkeypatch.setattr(ranking, "GAUSSIAN_DRAWS", 199)
    monkeypatch.setattr(ranking, "UNREMARKABLE", 0.1)
    misses = count(lambda run: _two_stages(run, run) <= level, 2000)
    assert not refuted(misses, 2000, level), misses
