"""The scan over boxes equals a search row by row, of the data and of every simulated set of outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from calibrant.errors import NotComputable
from calibrant.kernels.draws import outcomes
from calibrant.stats.subgroups.scan import SALT, bound
from calibrant.views.boxes import SampleRows, Tables
from effort import examples
from oracles import scan as oracle

SEEDS = st.integers(0, 2**32)
KINDS = st.sampled_from(["s", "sn", "sc", "snc", "scc", "snn"])
SIDES = st.sampled_from([(0, 1), (0,), (1,)])
TOLERANCES = st.sampled_from([0.0, 0.07])
ROUNDING = 1e-9


def drawn(seed: int, kinds: str, order: int, n: int = 30, size: int = 4) -> Tables:
    g = np.random.default_rng([0x5CA4, seed])
    cells = g.integers(0, size, (len(kinds), n), dtype=np.uint8)
    cells[0] = np.minimum(cells[0], size - 2)  # no score is missing
    held = SampleRows(
        cells=cells,
        p=g.uniform(0.05, 0.95, n),
        y=g.integers(0, 2, n, dtype=np.int8),
        ids=g.integers(0, 2**63, n, dtype=np.uint64),
    )
    return oracle.tables_of(kinds, size, held, min(order, len(kinds)))


def worse_than_all(tables: Tables, scan: Any, margin: float) -> bool:
    """Tell whether all levels together, which are no subset, beat the best subset: then another may be the best."""
    held: Any = tables.sample_rows
    most = oracle.needed(tables, scan)[1]
    return any(
        max(oracle.score(whole, held.y, held.p, scan.tolerance, scan.extra)) - most[t] > margin
        for t, _, whole in oracle.subsets(tables, 1)
    )


@examples(60)
@given(SEEDS, KINDS, st.integers(1, 3), SIDES, TOLERANCES)
def test_the_best_box(seed: int, kinds: str, order: int, sides: tuple[int, ...], tolerance: float) -> None:
    tables = drawn(seed, kinds, order)
    scan = oracle.scan_of(tables, tolerance, sides)
    y = tables.sample_rows.y  # type: ignore[union-attr]
    found, wanted = scan.best(), oracle.largest(tables, scan, lambda side: y)
    assert found.margin <= wanted + ROUNDING
    # subsets are looked for among those of more cases than expected, or of fewer: no other can be found to be off
    above = found.score > 0.0
    assert not above or found.margin >= wanted - ROUNDING or worse_than_all(tables, scan, found.margin)
    assert 1 <= found.rows < tables.n


@examples(30)
@given(SEEDS, KINDS, st.integers(1, 3), SIDES, TOLERANCES)
def test_simulated_outcomes_are_searched_as_the_data_are(
    seed: int, kinds: str, order: int, sides: tuple[int, ...], tolerance: float
) -> None:
    tables = drawn(seed, kinds, order)
    held: Any = tables.sample_rows
    scan = oracle.scan_of(tables, tolerance, sides)
    peaks = scan.simulated(held.cells, held.p, held.ids, 70)
    edges = np.minimum(held.p + tolerance, 1.0), np.maximum(held.p - tolerance, 0.0)
    at = [outcomes(held.ids, edge, 0, 70, SALT) for edge in edges]
    for draw in (0, 1, 63, 64, 69):
        each = []
        for side in sides:
            again = SampleRows(cells=held.cells, p=held.p, y=at[side][:, draw].astype(np.int8), ids=held.ids)
            own = oracle.tables_of(kinds, 4, again, min(order, len(kinds)))
            each.append(oracle.scan_of(own, tolerance, (side,)).best().margin)
        assert abs(peaks[draw] - max(each)) <= ROUNDING


@examples(30)
@given(SEEDS, KINDS, SIDES, TOLERANCES)
def test_rows_in_another_order_change_nothing(seed: int, kinds: str, sides: tuple[int, ...], tolerance: float) -> None:
    tables = drawn(seed, kinds, 2)
    held: Any = tables.sample_rows
    order = np.random.default_rng([0x5CA5, seed]).permutation(tables.n)
    other = SampleRows(cells=held.cells[:, order], p=held.p[order], y=held.y[order], ids=held.ids[order])
    scans = [oracle.scan_of(oracle.tables_of(kinds, 4, h, 2), tolerance, sides) for h in (held, other)]
    peaks = [s.simulated(h.cells, h.p, h.ids, 100) for s, h in zip(scans, (held, other), strict=True)]
    np.testing.assert_array_equal(*peaks)
    assert scans[0].best().margin == scans[1].best().margin
    assert bound(scans[0])[0] == bound(scans[1])[0]


@examples(60)
@given(SEEDS, KINDS, st.integers(2, 9))
def test_boxes_have_rows_enough(seed: int, kinds: str, fewest: int) -> None:
    tables = drawn(seed, kinds, 2)
    try:
        scan = oracle.scan_of(tables, fewest=fewest)
    except NotComputable:
        assume(False)
    found = scan.best()
    assert fewest <= found.rows < tables.n
    assert len(list(oracle.boxes(tables, fewest))) == scan.family.size


@examples(60)
@given(SEEDS, KINDS)
def test_a_tolerance_only_takes_evidence_away(seed: int, kinds: str) -> None:
    tables = drawn(seed, kinds, 2)
    margins = [oracle.scan_of(tables, t).best().margin for t in (0.0, 0.03, 0.2)]
    assert margins == sorted(margins, reverse=True)
    p = [bound(oracle.scan_of(tables, t))[0] for t in (0.0, 0.03, 0.2)]
    assert p == sorted(p)
