"""Every end of the public functions holds where rows come in units or carry weights: truths are formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import calibrant as cal
from calibrant.audit.checks.reliability import Few, bins_of
from calibrant.views.sample import everyone
from validity.acceptance import refuted

ALPHA = 0.05
VALUES = np.arange(1, 20) / 20

# Units, sizes, correlation within, how far every second value is off, how much more large units have, CV of weights
DESIGNS = {
    "by themselves, uneven weights": (1500, (1,), 0.0, 0.3, 0.0, 2.0),
    "ten each, calibrated": (150, (10,), 0.5, 0.0, 0.0, 0.0),
    "ten each, off": (150, (10,), 0.9, 0.3, 0.0, 0.0),
    "1 to 200": (80, (1, 5, 20, 200), 0.3, 0.3, 0.0, 0.0),
    "large ones differ": (300, (1, 2, 20), 0.1, 0.0, 0.04, 0.0),
    "weights and units": (200, (1, 2, 5, 10), 0.3, 0.3, 0.0, 1.0),
}


def rates(size, off, large):
    """Return the event rate by size of unit and score."""
    sign = np.where(np.arange(len(VALUES)) % 2, -1.0, 1.0)
    tilt = np.where(np.asarray(size) > np.median(size), large, -large)[:, None]
    return VALUES + off * np.minimum(VALUES, 1 - VALUES) * sign + tilt


def drawn(design, rng):
    """Return one data set, and error and gap by M."""
    clusters, sizes, intraclass_correlation, off, large, cv = design
    kind = rng.integers(0, len(sizes), clusters)
    cluster_code = np.repeat(np.arange(clusters), np.array(sizes)[kind])
    value = rng.integers(0, len(VALUES), len(cluster_code))
    latent = np.sqrt(intraclass_correlation) * rng.normal(size=clusters)[cluster_code] + np.sqrt(
        1 - intraclass_correlation
    ) * rng.normal(size=len(cluster_code))
    table = rates(sizes, off, large)
    y = ndtr(latent) < table[kind[cluster_code], value]
    weights = rng.lognormal(0.0, np.sqrt(np.log1p(cv**2)), len(cluster_code)) if cv else None

    def truth(largest):
        size = np.array(sizes, dtype=float)
        gaps = np.minimum(size, largest if cv == 0 else np.inf) @ (table - VALUES)
        gaps = gaps / np.minimum(size, largest if cv == 0 else np.inf).sum()
        return np.abs(gaps).mean(), gaps.mean()

    return cal.predictions(
        y, VALUES[value], {"all": np.ones(len(y), dtype=bool)}, weights=weights, cluster=cluster_code
    ), truth


def missed(design, sets):
    """Count the misses of the error's low and high end, and of the gap's."""
    out = np.zeros(4, dtype=int)
    for k in range(sets):
        data, truth = drawn(design, np.random.default_rng([0x22, k]))
        error, gap = truth(everyone(data).clusters.largest)
        low = cal.certify.raw_lower(data, alpha=ALPHA).interval.low
        high = cal.certify.values(data, alpha=ALPHA, side="upper").interval.high
        signed = next(iter(cal.certify.groups(data, by="all", judge="gap", alpha=ALPHA).values())).interval
        out += [low > error, high < error, signed.low > gap, signed.high < gap]
    return out


@pytest.mark.parametrize("name", ["large ones differ", "weights and units"])  # one unit's fate: test_exact_units.py
def test_every_end(name):
    sets = 300
    for count, rate in zip(missed(DESIGNS[name], sets), (ALPHA, ALPHA, ALPHA / 2, ALPHA / 2), strict=True):
        assert not refuted(count, sets, rate)


@pytest.mark.nightly
@pytest.mark.parametrize("name", DESIGNS)
def test_every_end_often(name):
    sets = 1000
    for count, rate in zip(missed(DESIGNS[name], sets), (ALPHA, ALPHA, ALPHA / 2, ALPHA / 2), strict=True):
        assert not refuted(count, sets, rate)


def test_rows_alone_are_certified_as_ever():
    """A unit a row, and weights that are all alike, change not a bit."""
    data, _ = drawn((800, (1,), 0.0, 0.3, 0.0, 0.0), np.random.default_rng(0))
    plain = cal.predictions(data.y, data.p)
    intraclass_correlation = cal.predictions(data.y, data.p, weights=np.full(data.n, 2.5), cluster=np.arange(data.n))
    assert cal.certify.values(intraclass_correlation) == cal.certify.values(plain)
    assert cal.certify.raw_lower(intraclass_correlation) == cal.certify.raw_lower(plain)


def test_order_of_rows_is_nothing():
    data, _ = drawn(DESIGNS["weights and units"], np.random.default_rng(1))
    order = np.random.default_rng(2).permutation(data.n)
    turned = cal.predictions(data.y[order], data.p[order], weights=data.weights[order], cluster=data.cluster[order])
    here, there = (
        cal.certify.values(d).interval
        for d in (cal.predictions(data.y, data.p, weights=data.weights, cluster=data.cluster), turned)
    )
    assert here.low == pytest.approx(there.low, abs=1e-12)
    assert here.high == pytest.approx(there.high, abs=1e-9)


def gaps_in_ranges(sets):
    """Count data sets in which a gap of a range of a calibrated score is told to be off: a unit has one score.

    That no certified unit's score moves an edge matters where outcomes go with other rows' scores: test_exact_units.py.
    """
    count = 0
    for k in range(sets):
        rng = np.random.default_rng([0x24, k])
        cluster_code, value = np.repeat(np.arange(150), 10), rng.integers(0, len(VALUES), 150)
        latent = np.sqrt(0.9) * rng.normal(size=150)[cluster_code] + np.sqrt(0.1) * rng.normal(size=1500)
        p = VALUES[value][cluster_code]
        data = cal.predictions(ndtr(latent) < p, p, cluster=cluster_code)
        reported = bins_of(everyone(data), 20, ALPHA, Few(20)).columns
        count += any(low > 1e-9 or high < -1e-9 for low, high in zip(reported["low"], reported["high"], strict=True))
    return count


def test_gaps_in_ranges_of_the_score_hold_together():
    assert not refuted(gaps_in_ranges(60), 60, ALPHA)
