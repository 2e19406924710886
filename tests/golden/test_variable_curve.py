"""Local regression against `skmisc.loess`, and the published procedure against the authors' values.

`data/loess.json` holds five data sets, ties and gaps among them, and what scikit-misc 0.5.3 fitted to them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.smoothing import interpolated, smoother

SETS = json.loads((Path(__file__).parent / "data/loess.json").read_text(encoding="utf-8"))["sets"]


def cells(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return distinct values, their rows, and sums of y."""
    values, where = np.unique(x, return_inverse=True)
    return values, np.bincount(where).astype(float), np.bincount(where, y)


@pytest.mark.parametrize("name", SETS)
def test_local_regression_equals_skmisc(name: str) -> None:
    s = SETS[name]
    x, rows, sums = cells(np.array(s["x"]), np.array(s["y"]))
    untied = name in ("even", "ties", "gap")  # where no cut of the published surface falls on a value of many rows
    for surface, found in (("direct", smoother), ("interpolate", interpolated))[: 1 + untied]:
        theirs = np.array(s[surface])
        ours = found(x, rows, rows, np.array(s["at"]), s["span"], 2) @ sums
        assert np.abs(ours - theirs).max() < 1e-9 * np.ptp(theirs), surface


@pytest.mark.parametrize("name", SETS)
def test_the_public_curve_equals_skmisc(name: str) -> None:
    s = SETS[name]
    x, y = np.array(s["x"]), np.array(s["y"])
    data = cal.predictions(y, np.full(len(y), 0.5), {"x": x})
    curve = cal.diagnose.variable_curve(data, "x", span=s["span"], grid=s["at"], draws=99)
    theirs = dict(zip(s["at"], s["direct"], strict=True))
    shown = {v: o for v, o in zip(curve.columns["x"], curve.columns["gap"], strict=True) if v is not None}
    assert len(shown) >= 0.6 * len(theirs)
    worst = max(abs(0.5 + g - theirs[v]) for v, g in shown.items())
    assert worst < 1e-3 * np.ptp(s["direct"])


def test_the_authors_curves_and_largest_differences(shared: Any) -> None:
    rows = np.genfromtxt(shared / "golden/B_vece/input2_signflip_n3000.csv", delimiter=",", names=True)
    golden = json.loads((shared / "golden/B_vece/vece_golden2_signflip.json").read_text(encoding="utf-8"))
    error = 100.0 * (rows["pred"] != rows["actual"])
    predicted = 100.0 * (1.0 - np.maximum(rows["prob_0"], rows["prob_1"]))
    x, n, wrong = cells(rows["v"], error)
    expected = cells(rows["v"], predicted)[2]
    at = np.array(golden["loess_x"])
    direct = smoother(x, n, n, at, 0.9, 2) @ wrong
    np.testing.assert_allclose(direct, golden["loess_gaussian_direct"], rtol=1e-11)
    np.testing.assert_allclose(interpolated(x, n, n, at, 0.9, 2) @ wrong, golden["loess_gaussian"], rtol=1e-11)
    looked = np.linspace(*np.quantile(rows["v"], [0.05, 0.95]), 500)
    for span in (0.75, 0.9):
        largest = np.abs(interpolated(x, n, n, looked, span, 2) @ (wrong - expected)).max()
        assert abs(largest - golden[f"maxdiff_v_s{span}_percent"]) < 1e-9


def test_the_worst_point_is_the_authors_but_for_their_surface(shared: Any) -> None:
    rows = np.genfromtxt(shared / "golden/B_vece/input2_signflip_n3000.csv", delimiter=",", names=True)
    golden = json.loads((shared / "golden/B_vece/vece_golden2_signflip.json").read_text(encoding="utf-8"))
    data = cal.predictions(rows["actual"], rows["prob_1"], {"v": rows["v"]})
    for span in (0.75, 0.9):
        found = cal.diagnose.variable_curve(data, "v", view="confidence", span=span, draws=99).settings
        assert abs(100 * abs(found["worst_gap"]) - golden[f"maxdiff_v_s{span}_percent"]) < 0.05
        assert found["worst_low"] <= abs(found["worst_gap"]) <= found["worst_high"]
