"""Certificates and p-values along a variable: ingredients, whole functions."""

from importlib import import_module

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats import variable
from calibrant.stats.variable import RowLedger
from calibrant.views.by_variable import by_variable_of
from validity.acceptance import SETS, check

residuals = import_module("calibrant.certify.variable")  # the module, not the function of that name

PI = np.pi


def rng(*stream):
    return np.random.default_rng([0xA10C, *stream])


# ---- ingredients ----


def test_the_limits_of_the_mean_hold():
    def miss(i):
        g = rng(2, i)
        p = g.uniform(size=300)
        y = g.uniform(size=300) < p**2
        ledger = RowLedger(y - p, np.zeros(300, np.int32), g.integers(0, 8, 300).astype(np.uint8), 1, 8)
        low, high = variable.gap_limits(ledger, 0.1)
        return not low <= -1 / 6 <= high

    check(miss, SETS, 0.1)


# ---- whole functions ----


def local(a):
    """A mean residual ``a cos(pi v)`` along a uniform variable, and its integral."""
    return lambda v: a * np.cos(PI * v), lambda v: a * np.sin(PI * v) / PI


DESIGNS = {"calibrated": local(0.0), "local": local(0.15), "gap": (lambda v: 0.1 + 0 * v, lambda v: 0.1 * v)}


def draw(name, n, i):
    g = rng(3, n, i)
    p, v = g.uniform(0.2, 0.8, n), g.uniform(size=n)
    return cal.predictions(g.uniform(size=n) < p + DESIGNS[name][0](v), p, {"v": v})


def truth_of(name, data, bins, seed, beyond):
    """The error in the bins that the pilot rows cut."""
    hash_split = residuals.hash_split_of(data, "probability", seed)
    seen = np.sort(data.covariates.column("v").to_numpy()[hash_split.pilot])
    ends = np.concatenate([[0.0], residuals._edges(seen, bins), [1.0]])
    whole = DESIGNS[name][1]
    gap = np.diff(whole(ends)) - (np.diff(ends) * (whole(1.0) - whole(0.0)) if beyond else 0.0)
    return float(np.abs(gap).sum())


def missed(name, n, beyond=False, alpha=0.1):
    def miss(i):
        data = draw(name, n, i)
        found = cal.certify.variable(data, "v", bins=5, beyond_gap=beyond, alpha=alpha, seed=i).interval
        return not found.low <= truth_of(name, data, 5, i, beyond) + 1e-12 <= found.high + 2e-12

    return miss


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("name", DESIGNS)
def test_certified_error_is_covered(name, beyond):
    check(missed(name, 400, beyond), 400, 0.1)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [200, 2000, 30_000])
@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("name", DESIGNS)
def test_certified_error_is_covered_everywhere(name, beyond, n):
    check(missed(name, n, beyond), 400, 0.1)


def test_a_jittered_variable_is_covered_and_below_the_raw_error():
    truth = 0.15 * 2 / PI  # E|a cos(pi V)|; the jitter can only lower it

    def miss(i):
        return cal.certify.variable(draw("local", 800, i), "v", bandwidth=0.05, seed=i).interval.low > truth

    check(miss, 300, 0.025)
    wide = cal.certify.variable(draw("local", 20_000, 0), "v", bandwidth=0.05)
    assert 0.06 < wide.interval.low < wide.value < wide.interval.high < 0.12


def test_p_values_keep_their_level():
    def miss(i):
        g = rng(4, i)
        v = g.integers(0, 6, 120)
        p = np.where(v == 5, 0.5, 0.03)  # rare but for one level
        data = cal.predictions(g.uniform(size=120) < p, p, {"v": v})
        return cal.measure.vece(data, "v", draws=99, seed=i).settings["p_beyond_gap"] <= 0.1

    check(miss, 150, 0.1)


def test_rows_and_sketch_agree():
    data = draw("local", 5000, 0)
    kept = cal.sketch(data, variables="v")
    rows, cells = (cal.measure.vece(d, "v", draws=999) for d in (data, kept))
    assert cells.value == pytest.approx(rows.value, abs=0.004)
    assert cells.settings["p_value"] == rows.settings["p_value"] == 0.001
    certified = cal.certify.variable(kept, "v")
    assert 0.05 < certified.interval.low < 0.15 * 2 / PI < certified.interval.high < 0.16
    assert by_variable_of(data, "v").strata.n == 5000
