"""The local calibration bias against its authors' program (golden/A_klce)."""

from typing import Any

import numpy as np
import pytest

import calibrant as cal


@pytest.mark.parametrize("name", ["miscal", "null"])
def test_published_kernel_is_that_of_the_authors(shared: Any, name: str) -> None:
    rows = np.genfromtxt(shared / f"golden/A_klce/input_{name}_n300.csv", delimiter=",", names=True)
    theirs = np.genfromtxt(shared / f"golden/A_klce/ewf_{name}.csv", delimiter=",", names=True)
    data = cal.predictions(rows["y"], rows["p"], {"x0": rows["x0"], "x1": rows["x1"]})
    grid = np.column_stack([theirs[k] for k in ("x0", "x1", "p")])
    ours = cal.diagnose.local_bias(data, ["x0", "x1"], grid=grid, kernel="published", gamma=0.5, draws=19)
    assert len(ours.columns["gap"]) == 18
    np.testing.assert_allclose(ours.columns["gap"], theirs["lcb_ewf_gamma05"], atol=1e-9, rtol=0)
    at = np.array([ours.columns["x"], ours.columns["x2"], ours.columns["score"]]).T
    np.testing.assert_array_equal(at, grid)
