"""Families of kernels against scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import calibrant as cal
from calibrant.papers import published_local_test

W, GAMMA, DEGREE = 0.3, 0.7, 2


def scaled(k: Any) -> Any:
    return k / np.sqrt(np.outer(np.diag(k), np.diag(k)))


def theirs(p: Any, x: Any) -> dict[str, Any]:
    gaussian = rbf_kernel(p, gamma=W**-2) * rbf_kernel(x, gamma=GAMMA)
    laplace = Matern(W, nu=0.5)(p) * Matern(GAMMA**-0.5, nu=0.5)(x)
    polynomial = polynomial_kernel(p, degree=DEGREE, gamma=W**-2) * polynomial_kernel(x, degree=DEGREE, gamma=GAMMA)
    return {"gaussian": gaussian, "laplace": laplace, "polynomial": scaled(polynomial)}


@pytest.mark.parametrize("family", ["gaussian", "laplace", "polynomial"])
def test_the_statistic_is_that_of_scikit_learns_kernel(family: Any) -> None:
    rng = np.random.default_rng(7)
    p, x = rng.uniform(size=80), rng.normal(size=(80, 2))
    data = cal.predictions(rng.random(80) < p, p, {"a": x[:, 0], "b": x[:, 1]})
    k, e = theirs(p[:, None], x)[family], data.y - p
    degree = DEGREE if family == "polynomial" else None
    how: Any = {"score_width": W, "covariate_gamma": GAMMA, "family": family, "degree": degree}
    found = published_local_test(data, draws=19, **how)
    assert found.statistic == pytest.approx((e @ k @ e - e @ (np.diag(k) * e)) / (80 * 79), rel=1e-9)
    assert found.parts["kernel_sum"] == pytest.approx(k.sum() * 79 / 80, rel=1e-9)
