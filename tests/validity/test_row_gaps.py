"""Gaps of rows in groups that overlap, at size: ranges, verdicts and the worst of all, where rows are anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibrant.certify.closed import Limit, SignedEvidence, bet_sizes_for, verdicts
from calibrant.certify.groups import sizes
from calibrant.stats.cells import Cells
from calibrant.stats.subgroups.row_gaps import row_gap
from validity.acceptance import SETS, check

ALPHA = 0.05
ROWS = 300


def half_sure(rng: Any) -> tuple[Any, Any]:
    """Rates of 0 and 1 for half of the rows, scores in the middle."""
    return rng.uniform(0.2, 0.8, ROWS), np.where(np.arange(ROWS) % 2, rng.integers(0, 2, ROWS), 0.5)


def rare(rng: Any) -> tuple[Any, Any]:
    """Three sure events among rows that have none."""
    return rng.beta(0.6, 40, ROWS), np.where(np.arange(ROWS) < 3, 1.0, 0.0005)


def sharp(rng: Any) -> tuple[Any, Any]:
    """Scores that are nearly sure, a tenth of them wrong: here bets are narrower."""
    p = np.where(rng.random(ROWS) < 0.5, 0.03, 0.97)
    return p, np.where(rng.random(ROWS) < 0.1, 1.0 - p, p)


def calibrated(rng: Any) -> tuple[Any, Any]:
    p = rng.random(ROWS)
    return p, p


def groups(rng: Any, p: Any) -> list[Any]:
    """Which rows are in each: a partition, a large one across it, small ones, and one that scores choose."""
    site = rng.integers(0, 4, ROWS)
    return [site == 0, site == 1, site == 2, site == 3, site < 3, np.arange(ROWS) < 25, p >= np.median(p)]


Design = Any
DESIGNS = (half_sure, rare, sharp, calibrated)


def drawn(design: Design, replicate: int, by_sets: bool) -> Any:
    """Evidence about each group, and the gap of its rows; rates and groups of one set, or of all alike."""
    kept = np.random.default_rng([0x60A5, DESIGNS.index(design), replicate if by_sets else 0])
    p, rate = design(kept)
    parts = groups(kept, p)
    y = (np.random.default_rng([0x60A6, replicate]).random(ROWS) < rate).astype(np.int64)
    stake = bet_sizes_for(ALPHA / 2.0, len(parts))
    of = [SignedEvidence(row_gap(Cells.of_rows(y[rows], p[rows]), stake)) for rows in parts]
    return of, np.array([(rate[rows] - p[rows]).mean() for rows in parts])


@pytest.mark.nightly
@pytest.mark.parametrize("by_sets", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_no_end_is_wrong_more_often_than_it_may_be(design: Design, by_sets: bool) -> None:
    def miss(replicate: int) -> bool:
        of, truth = drawn(design, replicate, by_sets)
        each = ALPHA / (2.0 * len(of))
        return any(
            not low <= gap <= high for (low, high), gap in zip((e.ends(each, each) for e in of), truth, strict=True)
        )

    check(miss, SETS, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("quantile", [0.0, 0.5, 1.0])
def test_no_verdict_is_wrong_more_often_than_it_may_be(design: Design, quantile: float) -> None:
    """The limit is the size of one of the gaps, which is on its edge from either side."""
    wrong: dict[str, list[bool]] = {"over": [], "within": [], "worst": []}
    for replicate in range(SETS):
        of, truth = drawn(design, replicate, by_sets=False)
        limit = float(np.sort(np.abs(truth))[round(quantile * (len(truth) - 1))])
        for side, edge in (("over", limit + 1e-9), ("within", limit - 1e-9)):
            at = Limit(edge, edge)
            p_values = any(e.p_values for e in of)
            says = verdicts([e.over(at) for e in of], [e.within(at) for e in of], "gap", ALPHA, p_values)
            lies = np.abs(truth) <= edge if side == "over" else np.abs(truth) > edge
            wrong[side].append(any(v == side and lie for v, lie in zip(says, lies, strict=True)))
        wrong["worst"].append(max(sizes(e, ALPHA / 2, "gap")[1] for e in of) < np.abs(truth).max() - 1e-9)
    check(wrong["over"].__getitem__, SETS, ALPHA)
    check(wrong["within"].__getitem__, SETS, ALPHA / 2)
    check(wrong["worst"].__getitem__, SETS, ALPHA / 2)
