"""Cox's test by units and with weights, against statsmodels 0.15.0, which was run outside of this repository.

`GLM(y, add_constant(logit p), family=Binomial(), var_weights=w)` with ``cov_type="cluster"``, and ``"HC0"`` without
units; the intercept alone with ``offset=logit p``. Its clustered covariance has a factor of ``(n - 1) / (n - k)`` more.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f

import calibrant as cal
from validity.acceptance import refuted
from validity.cluster_designs import Clusters, alone

K = np.arange(100)
P = np.round(0.05 + 0.9 * ((K * 37) % 100) / 100, 3)
Y = (np.round(11 * P) > (K * K * 7 + 3 * K) % 11).astype(int)
Y[::7] = 1 - Y[::7]
G, W = K // 4, np.round(0.5 + ((K * 13) % 10) / 5, 2)
EVENTS = {
    "cluster": (
        {"cluster": G},
        (
            [0.1891150422, 0.4771232355],
            [[0.02232646464, 0.005303408784], [0.005303408784, 0.03947699212]],
            [0.2443047777],
            [0.1788051947],
        ),
    ),
    "weights": (
        {"weights": W},
        (
            [0.3257797515, 0.532719238],
            [[0.0524725254, 0.007612451755], [0.007612451755, 0.03231301067]],
            [0.4130515762],
            [0.2797688241],
        ),
    ),
    "both": (
        {"cluster": G, "weights": W},
        (
            [0.3257797515, 0.532719238],
            [[0.03264274759, 0.01008881166], [0.01008881166, 0.04598095196]],
            [0.4130515762],
            [0.2072792827],
        ),
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_estimates_and_sandwich_are_those_of_statsmodels(name: str) -> None:
    more, (params, cov, alone_at, alone_error) = EVENTS[name]
    found = cal.detect.cox_test(cal.predictions(Y, P, **more))
    clustered, n = "cluster" in more, len(Y)
    clusters = 25 if clustered else n
    c = np.array(cov) * ((n - 2) / (n - 1) if clustered else 1.0)
    away = np.array(params) - [0.0, 1.0]
    w, d = away @ np.linalg.solve(c, away), clusters - 1
    assert found.statistic == pytest.approx(w, rel=1e-6)
    assert found.p_value == pytest.approx(f.sf(w * (d - 1) / (2 * d), 2, d - 1), rel=1e-6)
    assert found.parts["slope"] == pytest.approx(params[1], rel=1e-7)
    assert found.parts["slope_error"] == pytest.approx(c[1, 1] ** 0.5, rel=1e-6)
    assert found.parts["slope_p"] == pytest.approx(f.sf(away[1] ** 2 / c[1, 1], 1, d), rel=1e-6)
    assert found.parts["intercept"] == pytest.approx(alone_at[0], rel=1e-7)
    assert found.parts["intercept_error"] == pytest.approx(alone_error[0], rel=1e-6)
    assert found.law.startswith("asymptotic: Wald test by the sandwich")
    assert (found.settings["null"], found.settings["draws"]) == ("asymptotic", 0)


def rejections(design: Clusters, by_rows: bool) -> int:
    rng = np.random.default_rng(6)
    drawn = (design.drawn(rng) for _ in range(300))
    return sum(cal.detect.cox_test(alone(d) if by_rows else d, null="asymptotic").p_value <= 0.05 for d in drawn)


@pytest.mark.slow
@pytest.mark.parametrize("design", [Clusters(clusters=100), Clusters(clusters=30, unequal=True)])
def test_level_by_units_and_what_rows_would_say(design: Clusters) -> None:
    assert not refuted(rejections(design, by_rows=False), 300, 0.07)
    assert refuted(rejections(design, by_rows=True), 300, 0.07)
