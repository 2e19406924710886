"""Certified ranges of pockets, from rows to sentence: all boxes together, the worst from both sides."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.subgroups.ranges import ceiling, floor, over, together
from calibrant.views.boxes import tables_of
from validity.acceptance import check, refuted
from validity.subgroup_designs import DESIGNS, FINEST, drawn, family_and_gaps, gaps

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
def test_all_claims_hold(design: Any) -> None:
    runs = 400
    found = [misses(design, 2000, replicate) for replicate in range(runs)]
    for claim in found[0]:
        wrong = sum(f[claim] for f in found)
        assert not refuted(wrong, runs, ALPHA), f"{claim}: {wrong} of {runs}"


def test_the_public_function_holds_the_worst_gap() -> None:
    """Both ends of one call, at boxes of one size, so that they are about one number."""

    def missed(replicate: int) -> bool:
        data, eta = drawn(DESIGNS[replicate % len(DESIGNS)], 600, replicate)
        tables = tables_of(data, None, 2, 0)
        worst = float(np.abs(gaps(tables, eta, 0.1)).max())
        ends = cal.certify.subgroups(data, min_size=0.1, clear_size=0.1, alpha=0.2).interval
        return not ends.low - FINEST <= worst <= ends.high + FINEST

    check(missed, 400, 0.2)


# ---- Calibrated rows, of which nothing may be certified ----


def shown_off(data: Any, **settings: Any) -> bool:
    return bool(cal.certify.subgroups(data, side="lower", alpha=ALPHA, **settings).interval.low > 0.0)


def recut(cut: Any, replicate: int) -> bool:
    """Tell what is certified of one score, right for all, and one covariate that somebody has cut in two."""
    rng = np.random.default_rng([0xB0E7, replicate])
    x, y = rng.uniform(size=2000), rng.uniform(size=2000) < 0.3
    return shown_off(cal.predictions(y, np.full(2000, 0.3), {"x": cut(x, y - 0.3)}), order=1)


def test_nothing_is_certified_of_a_score_that_is_right() -> None:
    check(partial(recut, lambda x, _: np.where(x <= 0.5, "low", "high")), 100, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("n", [100, 20_000])
def test_all_claims_hold_in_a_thousand_data_sets(design: Any, n: int) -> None:
    found = [misses(design, n, 10_000 + replicate) for replicate in range(400)]
    for claim in found[0]:
        wrong = sum(f[claim] for f in found)
        print(f"{n:,} rows, {design.__name__}, {claim}: {wrong} of 400")
        assert not refuted(wrong, 400, ALPHA), claim
