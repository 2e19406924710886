"""Weights of rows of several classes: joined by row, carried by projections, refused where no proof is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calibrant as cal

P = np.full((60, 3), 1 / 3)
Y = np.arange(60) % 3
W = np.linspace(0.5, 2.0, 60)
X = {"age": np.linspace(20.0, 80.0, 60)}


def test_projections_carry_them() -> None:
    data = cal.multiclass_predictions(Y, P, X, weights=W)
    for view in (data.top_label(), data.one_vs_rest(1)):
        np.testing.assert_array_equal(view.weights, W)
    assert data.weights is not None
    assert not data.weights.flags.writeable
    assert cal.multiclass_predictions(Y, P).weights is None


def test_they_are_joined_by_the_labels_of_rows() -> None:
    order, names = np.random.default_rng(0).permutation(60), [f"case {k}" for k in range(60)]
    weights = pd.Series(W, names).iloc[order]
    data = cal.multiclass_predictions(pd.Series(Y, names), pd.DataFrame(P, names), weights=weights)
    np.testing.assert_array_equal(data.weights, W)


@pytest.mark.parametrize(
    ("weights", "message"), [(W[:5], "weights has shape"), (W * 0, "no rows are left"), (-W, "row 0 has")]
)
def test_what_is_no_weight_is_refused(weights: np.ndarray, message: str) -> None:
    with pytest.raises(cal.BadInput, match=message):
        cal.multiclass_predictions(Y, P, weights=weights)


def test_kernel_statistics_have_no_form_for_them() -> None:
    data = cal.multiclass_predictions(Y, P, X, weights=W)
    with pytest.raises(cal.NotComputable, match="several classes"):
        cal.measure.klce(data)
    with pytest.raises(cal.NotComputable, match="several classes"):
        cal.detect.local_calibration_test(data, features="exact")
    assert cal.detect.local_calibration_test(cal.multiclass_predictions(Y, P, X), features="exact", draws=99)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
@pytest.mark.parametrize("more", [{}, {"cluster": np.arange(600) // 2}])
def test_their_unit_changes_no_certified_end(unit: float, more: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(0)
    p, weights = rng.dirichlet([0.6] * 4, 600), rng.uniform(0.5, 2.0, 600)
    y = np.where(rng.uniform(size=600) < 0.5, p.argmin(axis=1), p.argmax(axis=1))
    one, other = (
        cal.certify.classwise(cal.multiclass_predictions(y, p, weights=weights * u, **more)).interval
        for u in (1.0, unit)
    )
    assert one.low > 0.1
    assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=1e-9)
