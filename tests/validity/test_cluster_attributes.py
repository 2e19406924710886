"""Certificates along a site and in pockets, of units at sites: both ends over designs that hurt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.views.boxes import boxed, tables_of
from validity.acceptance import refuted
from validity.site_designs import HARD, OFF, Sites, inside, worst

ALPHA = 0.1  # of both ends
LARGE = 0.1
CLOSE = 1e-8


def by_variable(design: Sites, seed: int) -> tuple[bool, bool]:
    """Tell which ends of the error along the site are wrong."""
    data, _ = design.drawn(np.random.default_rng([41, seed]))
    found = cal.certify.variable(data, "site", alpha=ALPHA)
    true = design.by_variable(float(found.settings.get("largest_cluster", np.inf)))
    return found.interval.low > true + CLOSE, found.interval.high < true - CLOSE


def subgroup(design: Sites, seed: int) -> tuple[bool, bool]:
    """Tell which ends of the worst gap of any pocket are wrong."""
    data, eta = design.drawn(np.random.default_rng([42, seed]))
    ends = cal.certify.subgroups(data, min_size=LARGE, clear_size=LARGE, alpha=ALPHA).interval
    tables = tables_of(data, None, 2, 0)
    assert tables.sample_rows is not None
    boxes = inside(boxed(data, tables).ranges(LARGE).family, tables.sample_rows.cells)
    weight = np.ones(data.n) if data.weights is None else np.asarray(data.weights)
    true = worst(boxes, weight, eta - data.p)
    return ends.low > true + CLOSE, ends.high < true - CLOSE


@pytest.mark.parametrize("claim", [by_variable, subgroup])
@pytest.mark.parametrize("name", HARD)
def test_both_ends(name: str, claim) -> None:
    sets, wrong = 60, np.zeros(2, dtype=int)
    for seed in range(sets):
        wrong += claim(replace(HARD[name], off=OFF * (seed % 2)), seed)
    assert not any(refuted(int(w), sets, ALPHA / 2) for w in wrong), wrong


@pytest.mark.nightly
@pytest.mark.parametrize("off", [0.0, OFF])
@pytest.mark.parametrize("claim", [by_variable, subgroup])
@pytest.mark.parametrize("name", HARD)
def test_both_ends_often(name: str, claim, off: float) -> None:
    sets, wrong = 1000, np.zeros(2, dtype=int)
    for seed in range(sets):
        wrong += claim(replace(HARD[name], off=off), seed)
    assert not any(refuted(int(w), sets, ALPHA / 2) for w in wrong), wrong
