"""The nearest increasing sequence: that of scipy, to the bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from calibrant.kernels.runtime import FEW, sized
from calibrant.kernels.smooth import isotonic
from oracles import isotonic as oracle

VALUES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(-2.0, 2.0), st.integers(1, 9) | st.floats(0.01, 5.0)),
    min_size=1,
    max_size=40,
)


@given(VALUES)
def test_levels_are_those_of_scipy(pairs: list[tuple[float, float]]) -> None:
    values, weights = np.array(pairs, dtype=np.float64).T.copy()
    expected = isotonic_regression(values, weights=weights).x
    np.testing.assert_allclose(oracle.isotonic(values[:9], weights[:9]), isotonic(values[:9], weights[:9]), atol=1e-12)
    np.testing.assert_array_equal(isotonic(values, weights), expected)
    with sized(FEW + 1):
        np.testing.assert_array_equal(isotonic(values, weights), expected)


def test_many_values_are_fitted_as_few_are() -> None:
    rng = np.random.default_rng(0)
    values = np.linspace(0.0, 1.0, FEW + 1) + rng.normal(size=FEW + 1)
    few, many = isotonic(values[:-1], np.ones(FEW)), isotonic(values, np.ones(FEW + 1))
    assert (np.diff(many) >= 0.0).all()
    np.testing.assert_allclose(few[: FEW // 2], many[: FEW // 2])
    np.testing.assert_array_equal(many, isotonic_regression(values).x)
