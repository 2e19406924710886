"""Ends of units that cross hold where rows depend through both columns, and copies that forget one are seen."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.units.below import gap_of
from calibrant.stats.units.crossed import Design, MeanGap
from calibrant.stats.units.units import Units
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
        count += make(codes, p, y).at(0.0, 1.0) >= -np.log(ALPHA)
    return count, runs


def mean_of_shifts(codes, p, y):
    return MeanGap([gap_of(s.units, ALPHA) for s in Design(codes, 0).shifted(p, y, None)])


def persons_alone(codes, p, y):
    """The saboteur that forgets the questions."""
    names = np.random.default_rng(0).integers(0, 2**63, codes[0].max() + 1).astype(np.uint64)
    return gap_of(Units.dealt(codes[0], p, y, None, names), ALPHA)


class Product(MeanGap):
    """The saboteur that takes shifts as independent: evidence adds up."""

    def at(self, mean, side):
        return sum(part.at(mean, side) for part in self.parts)


def product_of_shifts(codes, p, y):
    return Product(mean_of_shifts(codes, p, y).parts)


def all_blocks_at_once(codes, p, y):
    """The saboteur that has every block of every shift as a unit."""
    design = Design(codes, 0)
    cell = design.group(0) * design.groups + design.group(1)
    block, unit = np.unique(cell, return_inverse=True)
    names = np.random.default_rng(0).integers(0, 2**63, len(block)).astype(np.uint64)
    return gap_of(Units.dealt(unit.reshape(-1), p, y, None, names), ALPHA)


@pytest.mark.parametrize("name", ["both effects", FEW])
def test_the_mean_of_shifts_is_an_e_value(name):
    assert not refuted(*e_values(mean_of_shifts, name), ALPHA)


@pytest.mark.parametrize("saboteur", [persons_alone, product_of_shifts, all_blocks_at_once])
def test_copies_that_forget_what_rows_share_are_seen(saboteur):
    assert refuted(*e_values(saboteur, FEW), ALPHA)


# ---- the audit ----


def audit_is_wrong(run, *, crossed=True):
    """Return which ends of an audit are wrong: of the error from below and above, the gap, and any range's gap."""
    codes, p, y = drawn(FEW, np.random.default_rng([10, run]))
    off = DESIGNS[FEW][-1]
    cluster = {"person": codes[0], "question": codes[1]} if crossed else None
    found = cal.audit(cal.predictions(y, p, cluster=cluster), variables=None, alpha=ALPHA, quick=True)
    one, bins = found.everyone, found.curves["bins"].columns
    gap = one.gap.interval
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


@pytest.mark.slow
def test_an_audit_that_takes_these_rows_as_independent_is_seen():
    runs = 25
    wrong = np.sum([audit_is_wrong(run, crossed=False) for run in range(runs)], axis=0)
    assert refuted(int(wrong[0]), runs, ALPHA), wrong  # from below
    assert refuted(int(wrong[2]), runs, ALPHA), wrong  # of the gap


# ---- ranges of the score: a shift without rows in one counts as evidence of 1 ----


def means_in_a_range(rare=0.3, delta=0.0025):
    """Return mean e-values of a gap of 0 in a range, over all 3 x 3 tables: all told, and empty shifts left out.

    Persons and questions have a trait each, `rare`; rows where both or neither have it are in the range. With both
    the outcome always happens. Of tables without rows in the range nothing is told.
    """
    other = 0.5 - 0.5 * rare**2 / (1.0 - rare) ** 2  # the rate with neither, so that half of all in the range happen
    codes = np.array([np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)])
    every, dropped, told = 0.0, 0.0, 0.0
    for traits in itertools.product((0, 1), repeat=6):
        of = np.array(traits)[codes + np.array([[0], [3]])]
        inside, both = of[0] == of[1], of.min(axis=0) == 1
        free = np.flatnonzero(inside & ~both)
        chance = rare ** sum(traits) * (1.0 - rare) ** (6 - sum(traits))
        for happened in itertools.product((0, 1), repeat=len(free)):
            y = both.astype(np.int8)
            y[free] = happened
            weight = chance * other ** sum(happened) * (1.0 - other) ** (len(free) - sum(happened))
            shifts = Design(codes, 0).shifted(np.where(inside, 0.5, 0.9), y, None)
            held = [replace(s.units.within(inside[s.rows]), most=s.units.largest) for s in shifts]
            gaps = [gap_of(u, delta) for u in held if u.count]
            every += weight * (np.exp(MeanGap(gaps, len(shifts)).at(0.0, 1.0)) if gaps else 1.0)
            dropped += weight * np.exp(MeanGap(gaps).at(0.0, 1.0)) if gaps else 0.0
            told += weight if gaps else 0.0
    return every, dropped / told


def test_shifts_without_rows_count_as_one():
    every, dropped = means_in_a_range()
    assert every == pytest.approx(1.0, abs=1e-9)
    assert dropped > 1.005  # the saboteur that leaves them out: scores decide which
