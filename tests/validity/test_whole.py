"""The public functions end to end, on designs whose truth is a formula: misses against the claimed rate."""

from functools import lru_cache

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.checks.everyone import gap
from calibrant.audit.checks.reliability import Few, bins_of
from calibrant.certify.groups import groups
from calibrant.certify.jittered import jittered
from calibrant.certify.whole import bounded_variation, distance, raw_lower, rounded
from calibrant.views.sample import everyone
from validity.acceptance import SETS, check
from validity.designs import (
    ALL,
    CALIBRATED_ONE,
    FEW,
    IDENTITY,
    ONE,
    RARE,
    SKEWED,
    SQUARE,
    STEP,
    TIES,
    TWO,
    ZERO,
    atoms,
)

ALPHA = 0.1
SIZES = (50, 200, 1000, 10_000, 100_000)
TINY = 2e-9  # scores are whole multiples of 2^-30


def outside(interval, truth):
    return not interval.low - TINY <= truth <= interval.high + TINY


def at_night(n):
    """Data sets of a heavy test: each of many rows takes as long as a few of few."""
    return 500 if n <= 1000 else 200


def events(few, sizes, nightly=ALL):
    """The designs and sizes of every run, and the rest for the nightly one, with replicates."""
    quick = [(d, n) for d in few for n in sizes]
    slow = [(d, n) for d in nightly for n in SIZES if (d, n) not in quick]
    yield from (pytest.param(d, n, False, id=f"{d.name}-{n}") for d, n in quick)
    yield from (pytest.param(d, n, True, id=f"{d.name}-{n}-nightly", marks=pytest.mark.nightly) for d, n in slow)


def every(few, sizes, nightly=ALL):
    return pytest.mark.parametrize(("design", "n", "slow"), list(events(few, sizes, nightly)))


@every(ALL, (1000,))
def test_rounded(design, n, slow):
    truth = {k: design.rounded(k) for k in (10, 100)}

    def miss(r):
        k = (10, 100)[r % 2]
        return outside(rounded(design.draw(n, 1, r), steps=k, alpha=ALPHA, seed=r).interval, truth[k])

    check(miss, at_night(n) if slow else SETS, ALPHA)


@every((IDENTITY, STEP, SKEWED, RARE, TIES), (1000,))
def test_rounded_upper_alone(design, n, slow):
    check(
        lambda r: rounded(design.draw(n, 2, r), steps=50, alpha=ALPHA, side="upper").interval.high < design.rounded(50),
        at_night(n) if slow else SETS,
        ALPHA,
    )


@every((IDENTITY, RARE, CALIBRATED_ONE, FEW, TIES), (1000,))
def test_raw_lower(design, n, slow):
    check(
        lambda r: raw_lower(design.draw(n, 3, r), alpha=ALPHA, seed=r).interval.low > design.raw + TINY,
        at_night(n) if slow else SETS,
        ALPHA,
    )


@lru_cache
def jittered_truth(design, bandwidth):
    return design.jittered(bandwidth)


@every((IDENTITY, ONE, RARE), (1000,))
def test_jittered(design, n, slow):
    h = 2.0**-6
    truth = jittered_truth(design, h)
    check(
        lambda r: outside(jittered(design.draw(n, 4, r), bandwidth=h, alpha=ALPHA, seed=r).interval, truth),
        100 if slow else 400,
        ALPHA,
    )


KNOWN = tuple(d for d in ALL if d.distance is not None)


@every((IDENTITY, ONE, TWO), (1000,), KNOWN)
def test_distance(design, n, slow):
    check(
        lambda r: outside(distance(design.draw(n, 5, r), alpha=ALPHA, seed=r).interval, design.distance),
        100 if slow else 400,
        ALPHA,
    )


@every((IDENTITY, STEP, ONE, RARE), (1000,))
def test_bounded_variation(design, n, slow):
    def miss(r):
        found = bounded_variation(design.draw(n, 6, r), variation=design.variation, alpha=ALPHA, seed=r).interval
        return outside(found, design.raw)

    check(miss, at_night(n) if slow else SETS, ALPHA)


def grouped(sizes, designs, replicate):
    parts = [d.draw(n, 7, i, replicate) for i, (d, n) in enumerate(zip(designs, sizes, strict=True))]
    names = np.repeat([f"group {i}" for i in range(len(parts))], sizes)
    y, p = (np.concatenate([getattr(q, v) for q in parts]) for v in ("y", "p"))
    order = np.random.default_rng([0x7E58, replicate]).permutation(len(y))
    return cal.predictions(y[order], p[order], {"group": names[order]})


@pytest.mark.parametrize("runs", [300, pytest.param(1000, marks=pytest.mark.nightly)])
def test_groups_hold_together(runs):
    """One wrong end of one of eight groups is a miss of the family."""
    members = (IDENTITY, SQUARE, ONE, RARE, TIES, FEW, ZERO, CALIBRATED_ONE)
    sizes = (300, 40, 200, 500, 900, 20, 350, 5)
    shown = [d.rounded(50) for d in members]

    def miss(r):
        found = groups(grouped(sizes, members, r), by="group", steps=50, alpha=ALPHA, seed=r)
        assert list(found) == [f"group = group {i}" for i in range(len(members))]
        ends = zip(found.values(), members, shown, strict=True)
        return any(e.interval.low > d.raw + TINY or e.interval.high < top - TINY for e, d, top in ends)

    check(miss, runs, ALPHA)


RESIDUAL = {
    "identity": 0.0,
    "square": -1 / 6,
    "step": 0.0,
    "rare": -0.005,
    "skewed": 0.0,
    "one score": 0.06,
    "one calibrated score": 0.0,
    "score zero": 0.004,
    "ties": 0.0,
    "few scores": 0.014,
    "two scores": 0.0,
}


@every((IDENTITY, SQUARE, RARE), (50,))
def test_mean_residual(design, n, slow):
    centre = RESIDUAL[design.name]

    def miss(r):
        return outside(gap(everyone(design.draw(n, 8, r)), ALPHA).interval, centre)

    check(miss, at_night(n) if slow else SETS, ALPHA)


def test_gaps_of_the_reliability_curve_hold_together():
    design = atoms("curve", np.arange(1, 10) / 10, np.arange(1, 10) / 10 + 0.03)

    def miss(r):
        curve = bins_of(everyone(design.draw(1500, 9, r)), 20, ALPHA, Few(20)).columns
        pairs = zip(curve["low"], curve["high"], strict=True)
        return any(not low - TINY <= 0.03 <= high + TINY for low, high in pairs)

    check(miss, SETS, ALPHA)
