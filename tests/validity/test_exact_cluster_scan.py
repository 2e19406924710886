"""The scan of weighted rows, and of units, against every outcome and every pattern of signs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats.subgroups.cluster_scan import ClusterScan, ScannedClusters, ScannedRows
from calibrant.views.boxes import SampleRows
from oracles import scan as oracle
from validity.acceptance import LEAST

# the whole file takes seconds: it waits for --rest
pytestmark = pytest.mark.slow

FEW, DRAWS = 9, 8_192
P = np.array([0.03, 0.2, 0.5, 0.7, 0.9, 0.4, 0.15, 0.6, 0.97])
W = np.array([0.2, 1.0, 5.0, 0.7, 2.0, 1.3, 3.1, 0.4, 1.0])


def scan_of(y: Any, cluster: Any, tolerance: float, sides: tuple[int, ...]) -> ClusterScan:
    """Boxes of two traits, of nine rows that each lie in one of three cells."""
    rng = np.random.default_rng(4)
    cells = rng.integers(0, 3, (2, FEW)).astype(np.uint8)
    held = SampleRows(cells=cells, p=P, y=np.asarray(y, dtype=np.int8), ids=np.arange(FEW, dtype=np.uint64))
    family = oracle.tables_of("nc", 5, held, 2).family(0.0, 2)
    ids = np.arange(FEW if cluster is None else cluster.max() + 1, dtype=np.uint64) + np.uint64(17)
    known = {"cells": cells, "p": P, "y": held.y, "weight": W, "ids": ids}
    rows = ScannedRows(**known) if cluster is None else ScannedClusters(**known, cluster=cluster)
    return ClusterScan(family=family, rows=rows, tolerance=tolerance, sides=sides)


def law_of(scan: ClusterScan, tolerance: float, sides: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return every margin that chance can make, and its probability."""
    if isinstance(scan.rows, ScannedClusters):
        signs = np.array(list(product((1, -1), repeat=len(scan.rows.ids))))
        fixed = [_signed(scan, s[scan.rows.cluster]) for s in signs]
        return np.array(fixed), np.full(len(signs), 1.0 / len(signs))
    each, chance = [], []
    if tolerance == 0.0:
        for y in product((0, 1), repeat=FEW):
            each.append(scan_of(y, None, 0.0, sides).best().margin)
            chance.append(np.prod(np.where(y, P, 1.0 - P)))
        return np.array(each), np.array(chance)
    (side,) = sides  # one edge: outcomes at it are independent
    edge = np.clip(P + (tolerance if side == 0 else -tolerance), 0.0, 1.0)
    for y in product((0, 1), repeat=FEW):
        each.append(scan_of(y, None, tolerance, sides).best().margin)
        chance.append(np.prod(np.where(y, edge, 1.0 - edge)))
    return np.array(each), np.array(chance)


def _signed(scan: ClusterScan, sign: np.ndarray) -> float:
    """The largest margin once residuals have these signs, their squares being what they were."""
    f, found = scan.family, -np.inf
    for b in range(f.size):
        inside = f.inside(b, scan.rows.cells)
        total = (sign * W * (scan.rows.y - P))[inside].sum()
        found = max(found, abs(total) / scan.spread[0, b] - scan.needed[b])
    return float(found)


def agrees(drawn: np.ndarray, values: np.ndarray, chance: np.ndarray) -> bool:
    """Tell whether draws exceed each of a few levels as often as they should, by exact binomial tails."""
    for level in np.quantile(values, [0.05, 0.3, 0.5, 0.8, 0.95, 0.99]) - 1e-7:
        rate, count = float(chance[values >= level].sum()), int((drawn >= level).sum())
        rate = min(rate, 1.0)
        if min(binom.cdf(count, len(drawn), rate), binom.sf(count - 1, len(drawn), rate)) < LEAST:
            return False
    return True


@pytest.mark.parametrize(("tolerance", "sides"), [(0.0, (0, 1)), (0.1, (0,)), (0.1, (1,))])
def test_weighted_outcomes_follow_the_law_of_all_outcomes(tolerance: float, sides: tuple[int, ...]) -> None:
    scan = scan_of((0, 1, 1, 0, 1, 0, 0, 1, 1), None, tolerance, sides)
    values, chance = law_of(scan, tolerance, sides)
    assert chance.sum() == pytest.approx(1.0)
    drawn = scan.simulated(DRAWS)
    assert agrees(drawn, values, chance)
    assert set(np.round(drawn, 4)) <= set(np.round(values, 4))  # sums are exact: no value that cannot be
    unweighted = replace(scan, rows=replace(scan.rows, weight=np.ones(FEW)))
    assert not agrees(unweighted.simulated(DRAWS), values, chance)
    if tolerance:  # chance at the score, not at the edge
        assert not agrees(replace(scan, tolerance=0.0).simulated(DRAWS), values, chance)


CLUSTER = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4])


def test_signs_of_units_follow_the_law_of_all_signs() -> None:
    scan = scan_of((0, 1, 1, 0, 1, 0, 0, 1, 1), CLUSTER, 0.0, (0, 1))
    values, chance = law_of(scan, 0.0, (0, 1))
    drawn = scan.simulated(DRAWS)
    assert agrees(drawn, values, chance)
    assert set(np.round(drawn, 4)) == set(np.round(values, 4))
    by_row = replace(scan, rows=replace(scan.rows, cluster=np.arange(FEW), ids=np.arange(FEW, dtype=np.uint64)))
    assert not agrees(by_row.simulated(DRAWS), values, chance)
