"""The classical tests against programs not written here.

`data/classical.json` holds what `probcal`, `mcgrad`, `mapie` and `statsmodels` (versions inside) returned for `CASES`
below, with weights ``0.5 + uniforms(3, n)`` and four grades ``floor(4 uniforms(4, n))``. MAPIE's p-value of
Spiegelhalter's test is one-sided, and its scores carry noise of relative size 1e-8 to break ties, for which reason the
tied case is not compared with it. The score test is `statsmodels.api.GLM.score_test` at intercept 0 and slope 1.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.classical import maximum_tail, range_tail

THEIRS = json.loads((Path(__file__).parent / "data/classical.json").read_text(encoding="utf-8"))
EVENTS = {
    "calibrated": (2000, lambda u: u, lambda p: p),
    "square": (1000, lambda u: u, lambda p: p**2),
    "timid": (3000, lambda u: 0.3 + 0.4 * u, lambda p: 0.5 + 1.8 * (p - 0.5)),
    "rare": (20000, lambda u: 0.02 * u + 1e-4, lambda p: 1.3 * p),
    "ties": (3000, lambda u: np.floor(5 * u) / 5 + 0.1, lambda p: 0.5 + 0.9 * (p - 0.5)),
}


def uniforms(seed, n):
    """Splitmix64, so that the numbers depend on no library."""
    x = np.arange(seed * n, (seed + 1) * n, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@pytest.fixture(params=list(EVENTS))
def case(request):
    n, score, rate = EVENTS[request.param]
    p = score(uniforms(1, n))
    y = uniforms(2, n) < rate(p)
    grades = {"grade": np.array([f"g{int(v)}" for v in np.floor(4 * uniforms(4, n))])}
    weighted = cal.predictions(y, p, weights=0.5 + uniforms(3, n))
    return THEIRS["cases"][request.param], cal.predictions(y, p, grades), weighted


def near(found, theirs, rel=1e-9, small=1e-12):
    assert (found.statistic, found.p_value) == pytest.approx(tuple(theirs), rel=rel, abs=small)


def test_hosmer_lemeshow_is_that_of_probcal(case):
    theirs, data, _ = case
    for bins in (10, 8):
        found = cal.detect.hosmer_lemeshow_test(data, bins=bins, null="asymptotic")
        statistic, degrees, p = theirs[f"hosmer_lemeshow_{bins}"]
        near(found, (statistic, p))
        assert found.parts["degrees"] == degrees
    statistic, _, p = theirs["hosmer_lemeshow_fitted"]
    near(cal.detect.hosmer_lemeshow_test(data, fitted=True, null="asymptotic"), (statistic, p))


def test_spiegelhalter_is_that_of_probcal_and_mapie(case):
    theirs, data, weighted = case
    found = cal.detect.spiegelhalter_test(data, null="asymptotic")
    near(found, theirs["spiegelhalter_probcal"])
    near(cal.detect.spiegelhalter_test(weighted, null="asymptotic"), theirs["spiegelhalter_weighted"])
    z, one_sided = theirs["spiegelhalter_mapie"]
    near(found, (z, 2 * min(one_sided, 1 - one_sided)), rel=1e-6)


def test_cumulative_is_that_of_mcgrad_mapie_and_probcal(case):
    theirs, data, weighted = case
    range_, most = (
        cal.detect.cumulative_test(data, statistic=s, null="asymptotic") for s in ("kuiper", "kolmogorov-smirnov")
    )
    assert most.parts["ecce"] == pytest.approx(theirs["ks_probcal"], rel=1e-9)
    heavy = cal.detect.cumulative_test(weighted, statistic="kolmogorov-smirnov", null="asymptotic")
    assert heavy.parts["ecce"] == pytest.approx(theirs["ks_probcal_weighted"], rel=1e-9)
    if "kuiper_mcgrad" in theirs:
        ecce, sigma, p = theirs["kuiper_mcgrad"]  # theirs leaves out the walk's start
        assert range_.parts["ecce"] == pytest.approx(ecce, abs=1.01 / data.n)
        near(range_, theirs["kuiper_mapie"], rel=1e-4, small=1e-10)
        near(most, theirs["ks_mapie"], rel=1e-4, small=1e-10)
        assert range_tail(sigma) == pytest.approx(p, rel=1e-3, abs=1e-12)


def test_laws_of_brownian_motion_are_those_of_mcgrad_and_mapie():
    laws = THEIRS["laws"]
    for x, a, b, c in zip(*(laws[k] for k in ("x", "range_mcgrad", "range_mapie", "maximum_mapie")), strict=True):
        assert range_tail(x) == pytest.approx(a, rel=1e-9, abs=1e-12)
        assert range_tail(x) == pytest.approx(b, rel=1e-9, abs=1e-12)
        assert maximum_tail(x) == pytest.approx(c, rel=1e-9, abs=1e-12)


def test_cox_and_score_tests_are_those_of_statsmodels(case):
    theirs, data, _ = case
    cox, found = theirs["cox"], cal.detect.cox_test(data, null="asymptotic")
    near(found, cox["joint"], rel=1e-6)
    keys = ("intercept_statistic", "intercept_p", "intercept", "intercept_error")
    assert [found.parts[k] for k in keys] == pytest.approx(cox["intercept"], rel=1e-5, abs=1e-8)
    keys = ("slope_statistic", "slope_p", "slope", "slope_error")
    assert [found.parts[k] for k in keys] == pytest.approx(cox["slope"], rel=1e-5, abs=1e-8)
    assert found.parts["slope_intercept"] == pytest.approx(cox["slope_intercept"], rel=1e-5, abs=1e-7)
    near(cal.detect.score_test(data, null="asymptotic"), theirs["score"], rel=1e-7)


def test_jeffreys_is_that_of_probcal(case):
    theirs, data, _ = case
    theirs, found = theirs["jeffreys"], cal.detect.jeffreys_test(data, by="grade", null="asymptotic").parts
    assert found["grade"] == tuple(theirs["grade"])
    assert (list(found["grade_rows"]), list(found["events"])) == (theirs["n"], theirs["k"])
    mean = np.array(found["expected"]) / found["grade_rows"]
    assert mean == pytest.approx(np.array(theirs["pd"]), rel=1e-12)
    assert found["posterior"] == pytest.approx(theirs["p"], rel=1e-8, abs=1e-14)
