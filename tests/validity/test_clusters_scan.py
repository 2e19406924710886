"""The scan by units rejects calibrated data as often as it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from validity.acceptance import refuted
from validity.cluster_designs import Clusters

RUNS, ALPHA, CEILING, DRAWS = (
    100,
    0.05,
    0.08,
    99,
)  # asymptotic: what `benchmarks/detect/clusters.py` measured, at most, is told in the documentation
DESIGNS = {
    "100 of 20": Clusters(clusters=100),
    "30 of 20": Clusters(clusters=30),
    "100 of 1 to 39": Clusters(clusters=100, unequal=True),
    "100 of 20, weighted": Clusters(clusters=100, weighted=True),
    "scores .005 to .03": Clusters(clusters=200, low=0.005, high=0.03),
}
NIGHTLY = {"30 of 20", "100 of 20, weighted"}


def drawn(design: Clusters, rng: np.random.Generator, **more: Any) -> cal.Predictions:
    """Rows with three traits: alike within units, the same within units, and of a row."""
    data = design.drawn(rng)
    assert data.covariates is not None
    shared = rng.normal(size=design.clusters)[np.asarray(data.cluster)]
    x = {"x": data.covariates.column("x"), "unit's": shared, "g": rng.choice(list("abcd"), data.n)}
    return cal.predictions(data.y, data.p, x, cluster=data.cluster, weights=data.weights)


def rejections(design: Clusters, runs: int = RUNS, tolerance: float = 0.0) -> int:
    rng, found = np.random.default_rng(21), 0
    for seed in range(runs):
        data = drawn(design, rng)
        found += cal.detect.scan_test(data, draws=DRAWS, seed=seed, tolerance=tolerance, min_size=0.05).p_value <= ALPHA
    return found


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.nightly if n in NIGHTLY else ()) for n in DESIGNS])
def test_level_by_units(name: str) -> None:
    assert not refuted(rejections(DESIGNS[name]), RUNS, CEILING)


@pytest.mark.parametrize("gap", [0.05, pytest.param(-0.05, marks=pytest.mark.nightly)])
def test_level_at_the_edge_of_a_tolerance(gap: float) -> None:
    assert not refuted(rejections(Clusters(clusters=100, gap=gap), tolerance=0.05), RUNS, CEILING)


def test_level_with_weights_is_exact() -> None:
    """Independent rows whose weights have a coefficient of variation of 2."""
    rng, found = np.random.default_rng(5), 0
    for k in range(RUNS):
        p, w = rng.uniform(0.05, 0.5, 600), rng.gamma(0.25, size=600) + 1e-6
        data = cal.predictions(rng.random(600) < p, p, {"x": rng.normal(size=600)}, weights=w)
        found += cal.detect.scan_test(data, draws=DRAWS, seed=k).p_value <= ALPHA
    assert not refuted(found, RUNS, ALPHA)
