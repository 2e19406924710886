"""Intervals of inference from probabilities hold the truth, and three ways to get them wrong do not.

The truth is that of four million draws of the same law. Intervals are asymptotic and held to the rate that
docs/measures.md gives for these sizes.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from validity.acceptance import LEAST, count, refuted

MEAN, GAP = cal.measure.inferred_mean, cal.measure.inferred_gap
RUNS, ROWS, CEILING = 200, 600, 0.07
DESIGNS = ("calibrated", "blind to age", "too high", "rare")
QUANTITIES = ("bias", "inferred", "observed")
CALLS = {
    "mean": lambda d, q: MEAN(d, "age", quantity=q),
    "share": lambda d, q: MEAN(d, "group", True, q),
    "gap": lambda d, q: GAP(d, "group", True, quantity=q),
}


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
    unit = np.arange(ROWS // clusters).repeat(clusters) if clusters > 1 else None
    return cal.predictions(y, p, {"age": age, "group": group}, clusters=unit)


@cache
def truths(design):
    age, group, p, rate, _ = law(design, 4_000_000, 1 << 40)
    out = {}
    for name, x in (("mean", age), ("share", group)):
        out[name] = {"inferred": p @ x / p.sum(), "observed": rate @ x / rate.sum()}
    out["gap"] = {k: v[group].mean() - v[~group].mean() for k, v in (("inferred", p), ("observed", rate))}
    return {name: v | {"bias": v["inferred"] - v["observed"]} for name, v in out.items()}


def misses(call, truth, design, runs=RUNS, **how):
    def miss(seed):
        found = call(drawn(design, seed, **how)).interval
        return not found.low <= truth <= found.high

    return count(miss, runs)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_interval_holds_the_truth(quantity, name, design):
    found = misses(lambda d: CALLS[name](d, quantity), truths(design)[name][quantity], design)
    assert not refuted(found, RUNS, CEILING), f"{found} misses in {RUNS}"


@pytest.mark.parametrize("name", list(CALLS))
def test_interval_holds_the_truth_with_clusters(name):
    found = misses(lambda d: CALLS[name](d, "bias"), truths("calibrated")[name]["bias"], "calibrated", clusters=4)
    assert not refuted(found, RUNS, CEILING), f"{found} misses in {RUNS}"


@pytest.mark.parametrize("name", list(CALLS))
def test_saboteur_clusters_ignored(name):
    def call(d):
        return CALLS[name](cal.predictions(d.y, d.p, d.covariates), "bias")

    found = misses(call, truths("calibrated")[name]["bias"], "calibrated", clusters=4)
    assert refuted(found, RUNS, CEILING), f"{found} misses in {RUNS}"


def wasteful(ends, runs=600):
    """Tell whether an interval for the bias of the mean misses so seldom that an error rate of 3 % is refuted."""
    truth = truths("calibrated")["mean"]["bias"]

    def miss(seed):
        low, high = ends(drawn("calibrated", seed))
        return not low <= truth <= high

    return bool(binom.cdf(count(miss, runs), runs, 0.03) < LEAST)


def test_interval_is_not_wasteful():
    def ends(d):
        found = MEAN(d, "age").interval
        return found.low, found.high

    assert not wasteful(ends)


def test_saboteur_inferred_and_observed_as_independent():
    def ends(d):
        apart = [MEAN(d, "age", quantity=q).settings for q in ("inferred", "observed")]
        half = 1.96 * np.hypot(*(s["error"] for s in apart))
        return apart[0]["bias"] - half, apart[0]["bias"] + half

    assert wasteful(ends)


def test_saboteur_denominators_as_known():
    def ends(d):
        x, bias = d.covariates.column("age").to_numpy(), MEAN(d, "age").value
        half = 1.96 * np.sqrt(((x * (d.p / d.p.sum() - d.y / d.y.sum())) ** 2).sum())
        return bias - half, bias + half

    assert wasteful(ends)
