"""Intervals of inference from probabilities hold the truth, and three ways to get them wrong do not.

The truth is that of a million draws of the same law. Intervals are asymptotic: at 600 rows they are held to 94 %, and
to
93 % for what probabilities alone say where all are small. A true coverage of 0.88 is found out.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.measure.inferred import compared, described, inferring

MEAN = cal.measure.inferred_mean
RUNS, ROWS, CEILING = 500, 600, 0.06
DESIGNS = ("calibrated", "blind to age", "too high", "rare")
QUANTITIES = ("bias", "inferred", "observed")
NAMES = ("mean", "share", "gap")


def law(design, n, seed):
    """Draw age, group, probability and true rate."""
    rng = np.random.default_rng([seed, n, 0x1FE2])
    age, group, z = rng.uniform(18, 90, n), rng.uniform(size=n) < 0.2, rng.normal(size=n)
    eta = 0.5 * z + 0.03 * (age - 54) - 0.8 * group - 2.5 * (design == "rare")
    rate = 1 / (1 + np.exp(-eta))
    p = {"blind to age": 1 / (1 + np.exp(-0.5 * z)), "too high": np.minimum(1.3 * rate, 1)}.get(design, rate)
    return age, group, p, rate, rng


def drawn(design, seed, clusters=1):
    age, group, p, rate, rng = law(design, ROWS // clusters, seed)
    age, group, p, rate = (np.repeat(v, clusters) for v in (age, group, p, rate))
    y = rng.uniform(size=ROWS // clusters).repeat(clusters) < rate  # one draw for the whole cluster
    cluster_code = np.arange(ROWS // clusters).repeat(clusters) if clusters > 1 else None
    return cal.predictions(y, p, {"age": age, "group": group}, cluster=cluster_code)


@cache
def truths(design):
    age, group, p, rate, _ = law(design, 1_000_000, 1 << 40)
    out = {}
    for name, x in (("mean", age), ("share", group)):
        out[name] = {"inferred": p @ x / p.sum(), "observed": rate @ x / rate.sum()}
    out["gap"] = {k: v[group].mean() - v[~group].mean() for k, v in (("inferred", p), ("observed", rate))}
    return {name: v | {"bias": v["inferred"] - v["observed"]} for name, v in out.items()}


@cache
def intervals(design, clusters=1, reported=True):
    """Return both ends over the runs, shape (RUNS, 2), by what is described and quantity; a variable is read once."""
    ends = {(name, q): np.empty((RUNS, 2)) for name in NAMES for q in (QUANTITIES if clusters == 1 else ("bias",))}
    for seed in range(RUNS):
        data = drawn(design, seed, clusters)
        data = data if reported else cal.predictions(data.y, data.p, data.covariates)
        age, group = inferring(data, "age"), inferring(data, "group")
        calls = {
            "mean": lambda q, age=age: described(age, None, q, 0.05),
            "share": lambda q, group=group: described(group, True, q, 0.05),
            "gap": lambda q, group=group: compared(group, True, None, q, 0.05),
        }
        for (name, q), rows in ends.items():
            found = calls[name](q).interval
            rows[seed] = found.low, found.high
    return ends


def misses(name, quantity, design, shrink=1.0, **how):
    """Count how often the truth is left out of an interval, shrunk about its middle."""
    low, high = intervals(design, **how)[name, quantity].T
    return int((np.abs(truths(design)[name][quantity] - (low + high) / 2) > shrink * (high - low) / 2).sum())


def broken(found, ceiling=CEILING):
    """Tell whether so many misses refute the ceiling; the draws are the same every time, so a thousandth will do."""
    return binom.sf(found - 1, RUNS, ceiling) < 1e-3


def wasteful(found):
    """Tell whether misses are so few that an error rate of 3 % is refuted."""
    return binom.cdf(found, RUNS, 0.03) < 1e-3


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_interval_holds_the_truth(quantity, name, design):
    found = misses(name, quantity, design)
    ceiling = 0.07 if (quantity, design) == ("inferred", "rare") else CEILING
    assert not broken(found, ceiling), f"{found} misses in {RUNS}"


@pytest.mark.parametrize("name", NAMES)
def test_saboteur_narrow(name):
    found = misses(name, "bias", "calibrated", shrink=0.8)
    assert broken(found), f"{found} misses in {RUNS}"


@pytest.mark.parametrize("name", NAMES)
def test_interval_holds_the_truth_with_clusters(name):
    found = misses(name, "bias", "calibrated", clusters=4)
    assert not broken(found), f"{found} misses in {RUNS}"


@pytest.mark.parametrize("design", ["calibrated", "blind to age", "too high"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_interval_is_not_wasteful(quantity, name, design):
    found = misses(name, quantity, design)
    assert not wasteful(found), f"{found} misses in {RUNS}"


@pytest.mark.parametrize("name", NAMES)
def test_saboteur_wide(name):
    found = misses(name, "bias", "blind to age", shrink=1.6)
    assert wasteful(found), f"{found} misses in {RUNS}"
