"""Measures against programs not written here.

Scikit-learn is called. The values of `relplot` 1.0.3 (numpy 2.4.6, scipy 1.17.1) were printed, with `uniforms` and
`CASES` below, by::

    for name, (n, score, rate) in CASES.items():
        p, y = drawn(name)
        print(name, *relplot.smECE(p, y, return_width=True),
              *(relplot.metrics.smECE_sigma(p, y, s) for s in (0.02, 0.1)))
"""

import numpy as np
import pytest
from sklearn import metrics

import calibrant as cal

EVENTS = {
    "identity": (2000, lambda u: u, lambda p: p),
    "square": (20000, lambda u: u, lambda p: p**2),
    "gap": (5000, lambda u: 0.9 * u, lambda p: p + 0.05),
    "rare": (20000, lambda u: 0.05 * u, lambda p: 0.5 * p),
    "ties": (3000, lambda u: np.floor(5 * u) / 5 + 0.1, lambda p: 0.5 + 0.6 * (p - 0.5)),
    "skew": (100000, lambda u: u**4, lambda p: 0.9 * p + 0.02),
}
RELPLOT = {  # automatic value and bandwidth; values at bandwidths 0.02 and 0.1
    "identity": (0.028773128915601753, 0.029296875, 0.03301042718560889, 0.019432339001155683),
    "square": (0.1625143335289424, 0.1630859375, 0.16253094336652546, 0.16235013859624456),
    "gap": (0.05028299560870819, 0.05078125, 0.05059160209501126, 0.05030126735133511),
    "rare": (0.010967830418273669, 0.01171875, 0.010964452406849883, 0.011035440360754285),
    "ties": (0.09194483569127464, 0.0927734375, 0.09566604902325009, 0.0913757597368901),
    "skew": (0.022200174308397488, 0.0224609375, 0.022296847985198747, 0.020901979215514004),
}


def uniforms(seed, n):
    """Splitmix64, so that the numbers depend on no library."""
    x = np.arange(seed * n, (seed + 1) * n, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def drawn(name):
    n, score, rate = EVENTS[name]
    p = score(uniforms(1, n))
    return p, (uniforms(2, n) < rate(p)).astype(float)


@pytest.fixture(params=list(EVENTS))
def case(request):
    p, y = drawn(request.param)
    return request.param, p, y, cal.predictions(y, p)


def test_smooth_ece_is_that_of_relplot(case):
    """To its own grid at a fixed bandwidth, and to its bisection, 2^-10, at the automatic one."""
    name, _, _, data = case
    value, width, narrow, wide = RELPLOT[name]
    for bandwidth, theirs in ((0.02, narrow), (0.1, wide)):
        assert cal.measure.smooth_ece(data, bandwidth=bandwidth).value == pytest.approx(theirs, abs=5e-4)
    found = cal.measure.smooth_ece(data)
    assert found.value == pytest.approx(value, abs=4e-4)
    assert abs(found.settings["bandwidth"] - width) <= 2**-10 + 4e-4


def test_smooth_ece_is_the_integral_it_says(case):
    """Against the defining sum over rows and reflections, which `relplot` approximates."""
    _, p, y, data = case
    t = (np.arange(500) + 0.5) / 500
    for width in (0.02, 0.3):
        cells = np.floor(p * 4000).astype(int)
        mass = np.bincount(cells, y - p, 4001) / len(p)
        at = np.bincount(cells, p, 4001) / np.maximum(np.bincount(cells, minlength=4001), 1)
        at, mass = at[mass != 0], mass[mass != 0]
        density = np.zeros(len(t))
        for mean_gap in range(-2, 3):
            for sign in (1, -1):
                gap = (t[:, None] - sign * at - 2 * mean_gap) / width
                density += (np.exp(-0.5 * gap**2) @ mass) / (width * np.sqrt(2 * np.pi))
        assert cal.measure.smooth_ece(data, bandwidth=width).value == pytest.approx(np.abs(density).mean(), abs=2e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(case, weighted):
    _, p, y, data = case
    w = uniforms(3, len(p)) + 0.5 if weighted else None
    data = cal.predictions(y, p, weights=w)
    for ours, theirs in (
        (cal.measure.brier, metrics.brier_score_loss),
        (cal.measure.log_loss, metrics.log_loss),
        (cal.measure.auroc, metrics.roc_auc_score),
    ):
        assert ours(data).value == pytest.approx(theirs(y, p, sample_weight=w), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_recalibration_is_that_of_scikit_learn(case, weighted):
    from sklearn.linear_model import LogisticRegression

    _, p, y, _ = case
    w = uniforms(3, len(p)) + 0.5 if weighted else np.ones(len(p))
    x = np.log(p / (1 - p))[:, None]
    fitted = LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky", max_iter=500).fit(x, y, w)
    found = cal.measure.calibration_slope(cal.predictions(y, p, weights=w))
    assert found.value == pytest.approx(float(fitted.coef_[0, 0]), rel=1e-6)
    assert found.settings["intercept"] == pytest.approx(float(fitted.intercept_[0]), rel=1e-6, abs=1e-6)
