"""The scan over boxes by enumeration: every set of outcomes of a few rows, with its probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.detect.subgroup_tests import joined
from calibrant.kernels.boxes import subset_peaks
from calibrant.kernels.draws import words
from calibrant.results import Outcome
from calibrant.stats.subgroups import scan as scan_file
from calibrant.stats.subgroups.scan import Scan, bound
from calibrant.views.boxes import SampleRows, Tables
from oracles import scan as oracle
from validity.acceptance import LEAST

SCORES = {
    "smooth": [0.11, 0.23, 0.31, 0.37, 0.42, 0.55, 0.61, 0.68, 0.74, 0.83],
    "rare": [0.01, 0.02, 0.02, 0.03, 0.01, 0.02, 0.05, 0.04, 0.01, 0.3],
    "ties": [0.2, 0.2, 0.2, 0.5, 0.5, 0.5, 0.5, 0.8, 0.8, 0.8],
}
CELLS = [0, 0, 1, 1, 2, 2, 2, 3, 3, 3]  # of the one trait
SIDES = {"two-sided": (0, 1), "greater": (0,), "less": (1,)}
FEW = 6  # rows where every rate takes three values


def tables(p: Any, y: Any, kinds: str = "n") -> Tables:
    n = len(p)
    held = SampleRows(
        cells=np.array([CELLS[:n]], dtype=np.uint8),
        p=np.array(p),
        y=np.array(y, dtype=np.int8),
        ids=np.arange(n, dtype=np.uint64),
    )
    return oracle.tables_of(kinds, 5, held, 1)


def scan_of(p: Any, y: Any, tolerance: float, sides: tuple[int, ...], kinds: str = "n") -> Scan:
    return oracle.scan_of(tables(p, y, kinds), tolerance, sides, fewest=2)


def chances(rates: Any) -> tuple[Any, Any]:
    """Every set of outcomes, and its probability."""
    y = np.array(list(product([0, 1], repeat=len(rates))))
    return y, np.where(y == 1, rates, 1.0 - np.asarray(rates)).prod(axis=1)


def within(p: Any, tolerance: float) -> Iterator[Any]:
    """Rates at the score and at either edge of the tolerance, every row by itself."""
    for gap in product([-tolerance, 0.0, tolerance], repeat=len(p)):
        yield np.clip(np.asarray(p) + gap, 0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ["n", "c"])
@pytest.mark.parametrize("name", SCORES)
def test_the_simulated_law_is_that_of_every_set_of_outcomes(name: str, kinds: str) -> None:
    p = SCORES[name]
    y, chance = chances(p)
    margins = np.round([scan_of(p, own, 0.0, (0, 1), kinds).best().margin for own in y], 9)
    draws = 20_000
    scan = scan_of(p, y[0], 0.0, (0, 1), kinds)
    held: Any = tables(p, y[0], kinds).sample_rows
    simulated = np.round(scan.simulated(held.cells, held.p, held.ids, draws), 9)
    assert set(simulated) <= set(margins)
    for value in np.unique(margins):
        exact, seen = min(1.0, float(chance[margins >= value].sum())), int((simulated >= value).sum())
        assert min(binom.cdf(seen, draws, exact), binom.sf(seen - 1, draws, exact)) > LEAST / 10, value


def test_subsets_of_levels_are_looked_for_in_every_draw() -> None:
    """Draws are sets of outcomes: each has the margin that it would have as data, of the best subset of five levels."""
    rng, n = np.random.default_rng(4), 60
    p, ids = rng.choice([0.2, 0.3, 0.5], n), np.arange(n, dtype=np.uint64)
    cells = rng.integers(0, 5, (1, n)).astype(np.uint8)

    def scan_with(y: Any) -> Scan:
        held = SampleRows(cells=cells, p=p, y=np.asarray(y, dtype=np.int8), ids=ids)
        return oracle.scan_of(oracle.tables_of("c", 5, held, 1), 0.0, (0, 1), fewest=2)

    bits = words(ids, p, p, 0, scan_file.SALT)[:, 0]
    found = [scan_with((bits >> np.uint64(k)) & np.uint64(1)).best() for k in range(64)]
    assert any(not isinstance(one.box, int) for one in found)
    simulated = scan_with(np.zeros(n)).simulated(cells, p, ids, 64)
    assert np.sort(simulated) == pytest.approx(np.sort([one.margin for one in found]), abs=1e-6)


def coupled(p: Any, tolerance: float, sides: tuple[int, ...]) -> tuple[Any, Any]:
    """The law that is simulated: of every row, one uniform number below both edges, between them, or above both."""
    low, high = np.maximum(np.asarray(p) - tolerance, 0.0), np.minimum(np.asarray(p) + tolerance, 1.0)
    each, chance = [], []
    for where in product([0, 1, 2], repeat=len(p)):
        at = np.array(where)
        chance.append(np.select([at == 0, at == 1], [low, high - low], 1.0 - high).prod())
        y = {0: at < 2, 1: at < 1}
        each.append(max(scan_of(p, y[s], tolerance, (s,)).best().margin for s in sides))
    return np.array(each), np.array(chance)


@pytest.mark.slow
@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("name", ["smooth", "rare"])
def test_no_rates_within_the_tolerance_have_larger_margins_than_are_simulated(name: str, alternative: str) -> None:
    p, tolerance, sides = SCORES[name][:FEW], 0.08, SIDES[alternative]
    simulated, weight = coupled(p, tolerance, sides)
    y = chances(p)[0]
    margins = np.array([scan_of(p, own, tolerance, sides).best().margin for own in y])
    levels = np.unique(margins)
    tail = np.array([weight[simulated >= v - 1e-9].sum() for v in levels])
    beyond = margins[None, :] >= levels[:, None] - 1e-9
    for rates in within(p, tolerance):
        assert (beyond @ chances(rates)[1] <= tail + 1e-9).all()


@pytest.mark.slow
def test_saboteur_two_uniform_numbers_a_row() -> None:
    """Outcomes of the two sides that are independent have another law, which enumeration tells from the one stated."""
    p, tolerance, draws = SCORES["smooth"][:FEW], 0.08, 50_000
    simulated, weight = coupled(p, tolerance, (0, 1))
    scan = scan_of(p, np.zeros(FEW), tolerance, (0, 1))
    held: Any = tables(p, np.zeros(FEW)).sample_rows

    def agrees() -> bool:
        peaks = scan.simulated(held.cells, held.p, held.ids, draws)
        for value in np.unique(np.round(simulated, 9)):
            exact = min(1.0, float(weight[simulated >= value - 1e-9].sum()))
            seen = int((peaks >= value - 1e-9).sum())
            if min(binom.cdf(seen, draws, exact), binom.sf(seen - 1, draws, exact)) < LEAST / 10:
                return False
        return True

    def apart(ids: Any, low: Any, high: Any, first: int, salt: int) -> Any:
        below, above = (words(ids, rate, rate, first, salt + k)[:, 0] for k, rate in enumerate((low, high)))
        return np.stack([below, above], axis=1)

    assert agrees()
    with patch.object(scan_file, "words", apart):
        assert not agrees()


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("name", SCORES)
def test_the_bound_holds_at_every_level(name: str, alternative: str) -> None:
    """For rates within the tolerance, the probability of a p-value of at most a is at most a, for every a."""
    tolerance, sides = 0.08, SIDES[alternative]
    p = SCORES[name][:FEW]
    y = chances(p)[0]
    found = np.array([bound(scan_of(p, own, tolerance, sides))[0] for own in y])
    small = found[None, :] <= np.unique(found)[:, None] + 1e-12
    for rates in within(p, tolerance):
        assert (small @ chances(rates)[1] <= np.unique(found) + 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_two_sides_of_the_bound_pay_for_both(seed: int) -> None:
    p = SCORES["smooth"]
    y = np.random.default_rng(seed).integers(0, 2, len(p))
    two, up, down = (bound(scan_of(p, y, 0.05, sides))[0] for sides in SIDES.values())
    assert two == pytest.approx(min(1.0, 2.0 * min(up, down)))


def unshared(scan: Scan) -> Scan:
    return replace(scan, family=replace(scan.family, weight=np.ones(scan.family.size)))


def one_side(scan: Scan) -> Scan:
    """The score itself in place of the edge of the tolerance."""
    return replace(scan, tolerance=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "tolerance"), [(unshared, 0.0), (one_side, 0.2)])
def test_saboteurs_of_the_bound(broken: Any, tolerance: float) -> None:
    p = SCORES["smooth"]
    y = chances(p)[0]
    rates = np.clip(np.array(p) + tolerance, 0.0, 1.0)
    chance = chances(rates)[1]
    found = np.array([bound(broken(scan_of(p, own, tolerance, (0,))))[0] for own in y])
    assert any(chance[found <= a].sum() > a + 1e-9 for a in np.unique(found))


def test_the_best_proper_subset_may_lose_by_a_further_case() -> None:
    """Why subsets are looked for only where the null is one law: a tolerance, or one side, needs scores that rise."""
    rate, rows = np.array([0.1, 0.5]), np.array([10.0, 40.0])
    levels = np.stack([rows * rate, rows * rate * (1 - rate), rows], axis=1)
    events = np.array(
        [[2, 35], [3, 35]], dtype=np.int32
    ).T  # 1 and 15 too many; then 2, which its variance makes more of
    peaks = np.full((2, 2), -np.inf)
    subset_peaks(events, levels, 4.0, 1.0, peaks)
    assert peaks[0] == pytest.approx([15 / np.sqrt(14), 2 / np.sqrt(4.9)])


@pytest.mark.parametrize("gap", [0, 1, 35, 500, 965])
def test_two_p_values_joined_hold_however_they_depend_on_each_other(gap: int) -> None:
    """Both uniform on thousandths, one the other's turned by so many steps, or all pairs of hundredths."""

    def small(pairs: Any, join: Any, level: float) -> float:
        return float(np.mean([join(a, b) <= level + 1e-12 for a, b in pairs]))

    def joint(a: float, b: float) -> float:
        return joined(p_only(a), p_only(b)).p_value

    steps = np.arange(1, 1001)
    turned = list(zip(steps / 1000, (steps - 1 + gap) % 1000 / 1000 + 0.001, strict=True))
    every = list(product(np.arange(1, 101) / 100, repeat=2)) if gap == 0 else []
    for level in (0.01, 0.05, 0.2):
        assert all(small(pairs, joint, level) <= level + 1e-9 for pairs in (turned, every) if pairs)
    if gap == 500:
        assert small(turned, min, 0.05) > 0.09  # the smaller of the two, unadjusted, is a saboteur


def p_only(p: float) -> Outcome:
    return Outcome(method="", statistic=0.0, p_value=float(p), alternative="", null="", law="")
