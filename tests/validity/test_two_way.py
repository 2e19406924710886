"""Ends of units that cross hold where rows depend through both columns."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.clusters.bounds import gap_of
from calibrant.stats.clusters.clusters import Design
from calibrant.stats.evidence import Gap
from validity.acceptance import refuted
from validity.crossed_designs import DESIGNS, drawn

ALPHA = 0.05


def missed(name, run):
    """Return whether the low and the high end of the error, and of the gap, are wrong."""
    codes, p, y = drawn(name, np.random.default_rng([7, run]))
    off = DESIGNS[name][-1]
    data = cal.predictions(
        y, p, {"all": np.zeros(len(p), dtype=int)}, cluster={"person": codes[0], "question": codes[1]}
    )
    low = cal.certify.raw_lower(data, alpha=ALPHA).interval.low
    high = cal.certify.values(data, alpha=ALPHA, side="upper").interval.high
    (gap,) = cal.certify.groups(data, by="all", judge="gap", alpha=2 * ALPHA).values()
    return low > off, high < off, gap.interval.low > off, gap.interval.high < off


FEW = "few questions, one fate each way"  # where a copy that forgets one of the columns is seen first


def nightly_but(*names):
    """Return the designs, of which all but some wait for the night: sixteen shifts take a second a data set."""
    return [n if n in names else pytest.param(n, marks=pytest.mark.nightly) for n in DESIGNS]


@pytest.mark.parametrize("name", nightly_but("small, one fate a question", FEW))
def test_every_end_holds(name):
    runs = 40
    misses = np.sum([missed(name, run) for run in range(runs)], axis=0)
    assert not any(refuted(int(m), runs, ALPHA) for m in misses), misses


@pytest.mark.parametrize("name", nightly_but(FEW))
def test_the_distance_holds(name):
    """Where the score is off, all of it is too low, so that the distance is the error."""
    runs, misses = 8, np.zeros(2, dtype=int)
    for run in range(runs):
        codes, p, y = drawn(name, np.random.default_rng([9, run]))
        data = cal.predictions(y, p, cluster={"person": codes[0], "question": codes[1]})
        ends = [cal.certify.distance(data, alpha=ALPHA, side=side).interval for side in ("lower", "upper")]
        misses += [ends[0].low > DESIGNS[name][-1], ends[1].high < DESIGNS[name][-1]]
    assert not any(refuted(int(m), runs, ALPHA) for m in misses), misses


def e_values(make, name, runs=200):
    """Count how often an e-value of the true gap is 1 / alpha or more."""
    count = 0
    for run in range(runs):
        codes, p, y = drawn(name, np.random.default_rng([8, run]))
        count += make(codes, p, y).at_most.at(0.0) >= -np.log(ALPHA)
    return count, runs


def mean_of_gaps(codes, p, y):
    return Gap.mean([gap_of(s.clusters, ALPHA) for s in Design(codes, 0).diagonal_blocks(p, y, np.ones(len(p)))])


@pytest.mark.parametrize("name", ["both effects", FEW])
def test_the_mean_of_shifts_is_an_e_value(name):
    assert not refuted(*e_values(mean_of_gaps, name), ALPHA)


# ---- the audit ----


def audit_is_wrong(run, *, two_way=True):
    """Return which ends of an audit are wrong: of the error from below and above, the gap, and any range's gap."""
    codes, p, y = drawn(FEW, np.random.default_rng([10, run]))
    off = DESIGNS[FEW][-1]
    cluster = {"person": codes[0], "question": codes[1]} if two_way else None
    found = cal.audit(cal.predictions(y, p, cluster=cluster), variables=None, alpha=ALPHA, quick=True)
    one, bins = found.everyone, found.curves["bins"].columns
    gap = one.gap.guaranteed
    ranges = zip(bins["low"], bins["high"], strict=True)
    return (
        one.lower.interval.low > off,
        one.upper.interval.high < off,
        not gap.low <= off <= gap.high,
        any(not low <= off <= high for low, high in ranges),
    )


@pytest.mark.slow
def test_an_audit_of_units_that_cross_is_not_wrong_more_often_than_it_says():
    runs = 25
    misses = np.sum([audit_is_wrong(run) for run in range(runs)], axis=0)
    assert not any(refuted(int(m), runs, ALPHA) for m in misses), misses
