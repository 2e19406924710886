"""Measures by units against statsmodels 0.15.0, whose numbers were computed outside of this repository.

`sm.GLM(..., offset=).fit(cov_type="cluster", cov_kwds={"groups": unit, "use_correction": True})`: binomial with the
log-odds as offset for the intercept and as covariate for the slope, Poisson with ``log p`` as offset for O/E; `sm.OLS`
of squared differences on a constant for Brier's. It takes a normal quantile; here Student's, or inverted noise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrant as cal

# estimate, standard error (of O/E: of its logarithm)
DETECTED = {
    "calibration_intercept": (-0.08827000, 0.17264944),
    "calibration_slope": (0.7854164193501039, 0.10090051339107221),
    "brier": (0.20282087, 0.0116625),
    "observed_expected": (0.96725542, 0.06609173),
}


def visits(by_clusters: bool = True) -> cal.Predictions:
    """Return 447 visits of 80 patients who share half of their fates."""
    rng = np.random.default_rng(5)
    cluster_code = np.repeat(np.arange(80), rng.integers(1, 12, 80))
    p = np.round(rng.uniform(0.05, 0.95, len(cluster_code)), 3)
    u = np.where(
        rng.uniform(size=len(cluster_code)) < 0.5,
        rng.uniform(size=80)[cluster_code],
        rng.uniform(size=len(cluster_code)),
    )
    return cal.predictions((u < p).astype(int), p, cluster=cluster_code if by_clusters else None)


def error_of(name: str, found: cal.Estimate) -> float:
    """Return the standard error that the interval stands for at a normal quantile."""
    low, high = found.interval.low, found.interval.high
    low, high = (math.log(low), math.log(high)) if name == "observed_expected" else (low, high)
    return (high - low) / 2 / 1.959963984540054


@pytest.mark.parametrize("name", DETECTED)
def test_estimates_and_standard_errors(name: str) -> None:
    value, error = DETECTED[name]
    found = getattr(cal.measure, name)(visits())
    assert found.value == pytest.approx(value, abs=1e-7)
    wider = error_of(name, found) / error
    assert 1.0 <= wider < (1.03 if name == "calibration_slope" else 1.16)  # fewer degrees of freedom, never narrower
    if name != "brier":  # whose rows' variance hardly depends on units here
        by_rows = error_of(name, getattr(cal.measure, name)(visits(by_clusters=False)))
        assert by_rows < 0.95 * error
