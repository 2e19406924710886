"""The surrogates as curves: their oracles, points, steps, refusals and chart."""

from typing import Any

import numpy as np
import pytest

import calibrant as cal
import oracles.smooth
from calibrant.apps.papers.bounds import denoising_radius, derivative_bounds, plug_in_bandwidth
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve

METHODS = ("kernel", "total-variation")


def rows(n: int = 400, **extra: Any) -> Any:
    rng = np.random.default_rng(3)
    p = np.round(rng.random(n), 3)
    return cal.predictions((rng.random(n) < p**2).astype(int), p, **extra)


def columns(curve: Curve) -> dict[str, np.ndarray]:
    return {k: np.array(v) for k, v in curve.columns.items()}


def test_kernel_is_its_oracle():
    data, h = rows(), 2**-4
    found = cal.papers.calibration_function(data, bandwidth=h, perturb=False)
    c, order = columns(found), np.argsort(data.p, kind="stable")
    slopes = derivative_bounds(h)
    width = plug_in_bandwidth(400, *slopes)[1]
    expected = oracles.smooth.smooth(c["x"], data.p[order], data.y[order].astype(float), width, *slopes)
    assert np.allclose(c["rate"], expected.fit, atol=1e-12)
    assert np.allclose(c["error"], np.minimum(expected.error, 1.0), atol=1e-12)
    assert c["rows"].tolist() == [int((np.abs(data.p - x) < width).sum()) for x in c["x"]]
    assert found.settings["smoothing_bandwidth"] == width
    assert found.settings["nearest_neighbour"] == expected.alone


def test_total_variation_is_its_oracle():
    data, alpha = rows(), 0.3
    found = cal.papers.calibration_function(data, method="total-variation", alpha=alpha)
    values, counts = np.unique(data.p, return_counts=True)
    sums = np.array([data.y[data.p == v].sum() for v in values], dtype=float)
    fit = oracles.smooth.taut_string(counts.astype(float), sums, denoising_radius(400, alpha / 3))
    c = columns(found)
    assert np.allclose(c["rate"], [fit[values <= x][-1] for x in c["x"]], atol=1e-9)
    assert c["rows"].tolist() == [int(counts[np.abs(fit - r) < 1e-9].sum()) for r in c["rate"]]
    assert found.settings["pieces"] == len(np.unique(np.round(fit, 9)))
    assert found.settings["surrogate_variation"] == pytest.approx(np.abs(np.diff(fit)).sum())


@pytest.mark.parametrize("method", METHODS)
def test_points_and_gaps(method):
    made = cal.papers.calibration_function(rows(), method=method, grid=[0.0, 0.25, 1.0])
    c = columns(made)
    assert made.method == "papers.calibration_function"
    assert c["x"].tolist() == [0.0, 0.25, 1.0]
    assert np.array_equal(c["gap"], c["rate"] - c["x"])
    assert ((c["rate"] >= 0) & (c["rate"] <= 1)).all()
    assert len(cal.papers.calibration_function(rows(), method=method, grid=7).columns["x"]) == 7


def test_the_perturbation_has_a_seed():
    found = [cal.papers.calibration_function(rows(), seed=s).columns["rate"] for s in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_a_single_score_is_one_point():
    data = cal.predictions([0, 1, 1, 1], [0.5] * 4)
    for method in METHODS:
        made = cal.papers.calibration_function(data, method=method, perturb=False)
        assert made.columns["x"] == (0.5,)
        assert made.columns["rate"] == pytest.approx((0.75,))
        assert made.columns["rows"] == (4,)


def test_the_error_is_of_corollary_2():
    """TVB and PTB by hand: 100 rows, alpha 0.3, variation 2, one piece."""
    data = cal.predictions([0, 1] * 50, np.linspace(0, 1, 100))
    made = cal.papers.calibration_function(data, method="total-variation", alpha=0.3, variation=2.0)
    assert made.settings["pieces"] == 1
    t1, t2 = np.sqrt(np.log(40) / 2), np.sqrt(100 / 8 * np.log(4 * 99 / 0.1))
    within = (t1 + np.sqrt(t1**2 + 8 * t2)) / 10
    beyond = 2 * np.sqrt(np.log(20) / 200) + np.sqrt(np.log(20) / 200)
    assert made.settings["error"] == pytest.approx(min(within + beyond, 1.0))


@pytest.mark.parametrize(
    "options",
    [
        {"method": "isotonic"},
        {"grid": 1},
        {"grid": [0.5, 0.2]},
        {"grid": [0.5, 1.2]},
        {"grid": []},
        {"grid": ["a"]},
        {"grid": [[0.1], [0.2, 0.3]]},
        {"grid": True},
        {"bandwidth": 0},
        {"perturb": 1},
        {"variation": -1},
        {"alpha": 1.0},
        {"seed": -1},
    ],
)
def test_bad_settings_are_refused(options):
    with pytest.raises(BadInput, match="pass"):
        cal.papers.calibration_function(rows(), **options)


def test_what_has_no_proof_is_refused():
    weighted = rows(weights=np.ones(400))
    for data in (weighted, cal.sketch(rows())):
        with pytest.raises(NotComputable, match="calibration_function"):
            cal.papers.calibration_function(data)
    with pytest.raises(BadInput, match="at least 2"):
        cal.papers.calibration_function(cal.predictions([1], [0.5]))


@pytest.mark.parametrize(("method", "drawn"), [("kernel", "linear"), ("total-variation", "step-after")])
def test_chart(method, drawn):
    made = cal.papers.calibration_function(rows(), method=method).chart().to_dict()
    marks = [layer["mark"] for layer in made["layer"]]
    assert marks[0]["strokeDash"]
    assert marks[1]["interpolate"] == drawn
    assert [t["field"] for t in made["layer"][2]["encoding"]["tooltip"]] == ["the score", "event rate", "rows"]
