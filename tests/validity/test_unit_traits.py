"""Certificates along a site and in pockets, of units at sites: both ends over designs that hurt, and saboteurs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.pockets.unit_ranges import UnitRanges
from calibrant.views.boxes import ranges_of, tables_of
from validity.acceptance import refuted
from validity.site_designs import HARD, OFF, Sites, inside, worst

ALPHA = 0.1  # of both ends
LARGE = 0.1
CLOSE = 1e-8


def along(design: Sites, seed: int, units: bool = True) -> tuple[bool, bool]:
    """Tell which ends of the error along the site are wrong."""
    data, _ = design.drawn(np.random.default_rng([41, seed]))
    given = data if units else cal.predictions(data.y, data.p, data.covariates)
    found = cal.certify.variable(given, "site", alpha=ALPHA)
    true = design.along(float(found.settings.get("largest_unit", np.inf)))
    return found.interval.low > true + CLOSE, found.interval.high < true - CLOSE


def pocket(design: Sites, seed: int, units: bool = True) -> tuple[bool, bool]:
    """Tell which ends of the worst gap of any pocket are wrong."""
    data, eta = design.drawn(np.random.default_rng([42, seed]))
    given = data if units else cal.predictions(data.y, data.p, data.covariates)
    ends = cal.certify.pockets(given, min_size=LARGE, clear_size=LARGE, alpha=ALPHA).interval
    tables = tables_of(given, None, 2, 0, by_units=True)
    assert tables.held is not None
    boxes = inside(ranges_of(given, tables, LARGE, 0).family, tables.held.cells)
    weight = np.ones(data.n) if data.weights is None else np.asarray(data.weights)
    true = worst(boxes, weight, eta - data.p)
    return ends.low > true + CLOSE, ends.high < true - CLOSE


@pytest.mark.parametrize("claim", [along, pocket])
@pytest.mark.parametrize("name", HARD)
def test_both_ends(name: str, claim) -> None:
    sets, wrong = 8, np.zeros(2, dtype=int)
    for seed in range(sets):
        wrong += claim(replace(HARD[name], off=OFF * (seed % 2)), seed)
    assert not any(refuted(int(w), sets, ALPHA / 2) for w in wrong), wrong


@pytest.mark.nightly
@pytest.mark.parametrize("off", [0.0, OFF])
@pytest.mark.parametrize("claim", [along, pocket])
@pytest.mark.parametrize("name", HARD)
def test_both_ends_often(name: str, claim, off: float) -> None:
    sets, wrong = 1000, np.zeros(2, dtype=int)
    for seed in range(sets):
        wrong += claim(replace(HARD[name], off=off), seed)
    assert not any(refuted(int(w), sets, ALPHA / 2) for w in wrong), wrong


# ---- Saboteurs: seen where the certificate is tight ----

FEW = Sites(units=60, sizes=(50,), alike=0.9)
EVEN = Sites(units=1500, sizes=(2,), alike=0.5)


@pytest.mark.parametrize("claim", [along, pocket])
def test_saboteur_rows_without_their_units(claim) -> None:
    wrong = sum(claim(FEW, seed, units=False)[0] for seed in range(20))
    assert refuted(wrong, 20, ALPHA / 2), wrong


def test_saboteur_alpha_that_pockets_do_not_share(monkeypatch: pytest.MonkeyPatch) -> None:
    def floor(self: UnitRanges, alpha: float) -> tuple[float, int]:
        low, high = self.ends(alpha / 2.0, alpha / 2.0, np.flatnonzero(np.abs(self.gap) > 2.0 * self.error))
        return float(max(np.maximum(low, -high).max(initial=0.0), 0.0)), 0

    monkeypatch.setattr(UnitRanges, "floor", floor)
    wrong = sum(pocket(EVEN, seed)[0] for seed in range(20))
    assert refuted(wrong, 20, ALPHA / 2), wrong
