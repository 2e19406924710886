"""The published formulas and the denoiser against programs not written here (golden/D_certified)."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.apps.papers import bounds as published
from calibrant.apps.papers.bounds import derivative_bounds, gudermannian, perturbed


@pytest.fixture(scope="module")
def golden(shared: Any) -> dict[str, Any]:
    return json.loads((shared / "golden/D_certified/formula_golden.json").read_text())


def table(file: Path) -> dict[str, np.ndarray]:
    lines = file.read_text().split()
    columns = np.array([line.split(",") for line in lines[1:]], dtype=float).T
    return dict(zip(lines[0].split(","), columns, strict=True))


def settings(key: str) -> list[float]:
    return [float(number) for number in re.findall(r"_[a-zA-Z]+([0-9.]+)", key)]


def test_gudermannian_integrates_sech(golden):
    """`Z(p, h)`, the integral of `sech((s - p) / h)` over `s` in [0, 1] (Lemma 7, eq. 24)."""
    keys = [key for key in golden if key.startswith("sech_")]
    assert len(keys) == 12
    for key in keys:
        h, p = settings(key)
        ends = gudermannian(np.array([1.0 - p, p]) / h)
        assert h * ends.sum() == pytest.approx(golden[key]["Z_quad"], abs=1e-12)


def test_perturbed_mean(golden):
    for key in (key for key in golden if key.startswith("sech_")):
        h, p = settings(key)
        s = perturbed(np.full(200_000, p), h, np.random.default_rng(7))
        assert abs(s.mean() - golden[key]["mean"]) < 6 * s.std() / np.sqrt(s.size)


def test_empirical_bernstein(golden):
    keys = [key for key in golden if key.startswith("BB_")]
    assert len(keys) == 3
    for key in keys:
        n, delta, variance = settings(key)
        assert published.empirical_bernstein(int(n), delta, variance) == pytest.approx(golden[key], rel=1e-12)


def test_denoising_error(golden):
    keys = [key for key in golden if key.startswith("TVB_")]
    assert len(keys) == 5
    for key in keys:
        n, delta, variation = settings(key)
        assert published.denoising_error(int(n), delta, variation) == pytest.approx(golden[key], rel=1e-12)


def test_plug_in_bandwidth(golden):
    keys = [key for key in golden if key.startswith("bandwidth_")]
    assert len(keys) == 4
    for key in keys:
        n, h = settings(key)
        raw, clipped = published.plug_in_bandwidth(int(n), *derivative_bounds(h))
        assert raw == pytest.approx(golden[key]["h_raw"], rel=1e-9)
        assert clipped == pytest.approx(golden[key]["h_clipped"], rel=1e-9)
        assert np.sqrt(raw) == pytest.approx(golden[key]["t"], rel=1e-9)


def test_denoising_radius(golden):
    expected = golden["tv_paper_delta1_0.025"]["lam_times_n"]
    assert published.denoising_radius(400, 0.025) == pytest.approx(expected, rel=1e-12)


def test_calibration_function_is_condat(shared):
    """A third of 0.075 is the delta1 of the solution; the curve takes its value at every score."""
    rows, solutions = (table(shared / f"golden/D_certified/{f}_n400.csv") for f in ("input", "tv_solutions"))
    data = cal.predictions(rows["y"].astype(int), rows["s"])
    found = cal.papers.calibration_function(data, method="total-variation", grid=rows["s"], alpha=0.075)
    assert np.max(np.abs(np.array(found.columns["rate"]) - solutions["condat_paper_delta1_0.025"])) < 1e-9


@pytest.mark.parametrize("name", ["paper_delta1_0.025", "lam_0.01", "lam_0.002"])
def test_denoiser_is_condat(shared, golden, name):
    rows, solutions = (table(shared / f"golden/D_certified/{f}_n400.csv") for f in ("input", "tv_solutions"))
    facts = golden[f"tv_{name}"]
    scores, fit = published.denoised(rows["s"], rows["y"], facts["lam"] * 400)
    assert np.array_equal(scores, rows["s"])
    assert np.max(np.abs(fit - solutions[f"condat_{name}"])) < 1e-9
    # CVXPY is an interior-point solver: equal to its own accuracy
    assert np.max(np.abs(fit - solutions[f"cvxpy_{name}"])) < 5e-6
    objective = np.mean((rows["y"] - fit) ** 2) / 2 + facts["lam"] * np.abs(np.diff(fit)).sum()
    assert objective == pytest.approx(facts["obj_condat"], rel=1e-12)
    assert 1 + np.count_nonzero(np.abs(np.diff(fit)) > 1e-9) == facts["pieces"]
