"""Certified ranges of pockets, from rows to sentence: all boxes together, the worst from both sides, saboteurs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.pockets.ranges import ceiling, floor, over, together
from calibrant.views.boxes import tables_of
from validity import pocket_saboteurs as saboteurs
from validity.acceptance import check, count, refuted
from validity.pocket_designs import DESIGNS, FINEST, calibrated, drawn, family_and_gaps, flat, gaps, rare

ALPHA = 0.05


def misses(design: Any, n: int, replicate: int) -> dict[str, bool]:
    """Return which of the claims about one data set are wrong."""
    family, true = family_and_gaps(design, n, replicate)
    low, high = together(family, ALPHA)
    size = np.abs(true)
    large = family.rows >= 0.05 * n
    limit = float(np.quantile(size, 0.9))
    return {
        "together": bool(((low > true + FINEST) | (high < true - FINEST)).any()),
        "floor": floor(family, ALPHA)[0] > size.max() + FINEST,
        "ceiling": ceiling(family, ALPHA, 0.05 * n)[0] < size[large].max() - FINEST,
        "over": bool((over(family, limit, ALPHA) & (size < limit - FINEST)).any()),
    }


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("n", [100, 2000])
def test_all_claims_hold(design: Any, n: int) -> None:
    runs = 100 if n < 1000 else 50
    found = [misses(design, n, replicate) for replicate in range(runs)]
    for claim in found[0]:
        wrong = sum(f[claim] for f in found)
        assert not refuted(wrong, runs, ALPHA), f"{claim}: {wrong} of {runs}"


def test_the_public_function_holds_the_worst_gap() -> None:
    """Both ends of one call, at boxes of one size, so that they are about one number."""

    def missed(replicate: int) -> bool:
        data, eta = drawn(DESIGNS[replicate % len(DESIGNS)], 600, replicate)
        tables = tables_of(data, None, 2, 0)
        worst = float(np.abs(gaps(tables, eta, 0.1)).max())
        ends = cal.certify.pockets(data, min_size=0.1, clear_size=0.1, alpha=0.2).interval
        return not ends.low - FINEST <= worst <= ends.high + FINEST

    check(missed, 120, 0.2)


# ---- The worst from above, where it hurts: many boxes that share no row, drawn as numbers of cases ----


def above(replicate: int, rows: Any, eta: Any, bound: Any, score: float = 0.3) -> bool:
    rng = np.random.default_rng([0xB0E6, replicate])
    family = flat(rows, rng.binomial(rows, eta), score)
    return bool(bound(family, ALPHA, 0.0) < np.abs(np.asarray(eta) - score).max() - 1e-9)


ONE = np.full(60, 2000), np.where(np.arange(60) == 7, 0.4, 0.3)  # one box far worse than all others
TIED = np.full(60, 300), np.where(np.arange(60) % 2, 0.4, 0.2)  # all equally bad, to both sides
SMALLEST = np.append(np.full(59, 20_000), 60), np.append(np.full(59, 0.36), 0.38)  # the worst is small, others near


def ours(family: Any, alpha: float, least: float) -> float:
    return ceiling(family, alpha, least)[0]


@pytest.mark.parametrize("design", [ONE, TIED, SMALLEST], ids=["one", "tied", "smallest"])
def test_the_worst_from_above(design: Any) -> None:
    check(lambda r: above(r, *design, ours), 2000, ALPHA)


def test_broken_bounds_of_the_worst() -> None:
    def doubled(family: Any, alpha: float, least: float) -> float:
        return ceiling(family, 2 * alpha, least)[0]

    assert refuted(count(lambda r: above(r, *ONE, doubled), 2000), 2000, ALPHA)
    assert refuted(count(lambda r: above(r, *SMALLEST, saboteurs.worst_seen), 500), 500, ALPHA)
    below = np.full(60, 2000), np.where(np.arange(60) == 7, 0.2, 0.3)
    assert refuted(count(lambda r: above(r, *below, saboteurs.one_sign), 200), 200, ALPHA)


# ---- Saboteurs, through the public function: calibrated rows, where nothing may be certified ----


def shown_off(data: Any, **settings: Any) -> bool:
    return bool(cal.certify.pockets(data, side="lower", alpha=ALPHA, **settings).interval.low > 0.0)


def recut(cut: Any, replicate: int) -> bool:
    """Tell what is certified of one score, right for all, and one covariate that somebody has cut in two."""
    rng = np.random.default_rng([0xB0E7, replicate])
    x, y = rng.uniform(size=2000), rng.uniform(size=2000) < 0.3
    return shown_off(cal.predictions(y, np.full(2000, 0.3), {"x": cut(x, y - 0.3)}), order=1)


def test_bins_cut_with_labels() -> None:
    check(partial(recut, lambda x, _: np.where(x <= 0.5, "low", "high")), 100, ALPHA)
    assert refuted(count(partial(recut, saboteurs.best_cut), 200), 200, ALPHA)


def test_the_best_subset_of_levels_taken_for_a_fixed_box() -> None:
    def many(x: Any, residual: Any) -> Any:
        return saboteurs.best_subset(np.floor(x * 20), residual)

    assert refuted(count(partial(recut, many), 60), 60, ALPHA)


def test_ranges_that_share_nothing() -> None:
    def missed(ranges_of: Any, replicate: int) -> bool:
        family, true = family_and_gaps(calibrated, 1000, replicate)
        low, high = ranges_of(family, ALPHA)
        return bool(((low > true + FINEST) | (high < true - FINEST)).any())

    assert refuted(count(partial(missed, saboteurs.unshared), 30), 30, ALPHA)


def test_the_box_found_and_its_own_one_sided_range() -> None:
    def missed(replicate: int) -> bool:
        family, true = family_and_gaps(calibrated, 1000, replicate)
        return saboteurs.found_and_told(family, ALPHA) > np.abs(true).max() + FINEST

    assert refuted(count(missed, 30), 30, ALPHA)


def test_the_normal_approximation_for_rare_events() -> None:
    def missed(replicate: int) -> bool:
        family, true = family_and_gaps(rare, 2000, replicate)
        low, high = saboteurs.normal_ends(family, ALPHA / 2 * family.weight, ALPHA / 2 * family.weight)
        return bool(((low > true + FINEST) | (high < true - FINEST)).any())

    assert refuted(count(missed, 30), 30, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("n", [100, 20_000])
def test_all_claims_hold_in_a_thousand_data_sets(design: Any, n: int) -> None:
    found = [misses(design, n, 10_000 + replicate) for replicate in range(400)]
    for claim in found[0]:
        wrong = sum(f[claim] for f in found)
        print(f"{n:,} rows, {design.__name__}, {claim}: {wrong} of 400")
        assert not refuted(wrong, 400, ALPHA), claim
