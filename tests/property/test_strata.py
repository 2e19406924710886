"""Cells along a variable: compiled equals reference, sketches equal rows, and parts add up in any order."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import calibrant as cal
import oracles.strata
from calibrant.data.sketches.parts import Fine
from calibrant.kernels import strata
from calibrant.kernels.draws import Draws
from calibrant.kernels.strata import Seen
from calibrant.stats.strata import quantile_cells
from calibrant.views.by_variable import by_variable_of, strata_of
from effort import examples

VALUES = st.floats(allow_nan=True, allow_infinity=False)


@examples(60)
@given(st.lists(VALUES, max_size=40), st.sets(st.floats(allow_nan=False, allow_infinity=False), max_size=30))
@example([0.0, 1e308, -1.7e308], {-1.7e308, 0.5, 1.7e308})
@example([0.0, 5e-324], {0.0, 5e-324})
def test_locate(values, edges):
    ends = np.array(sorted(edges), dtype=float)
    x = np.array([*values, *ends], dtype=float)
    assert (strata.locate(x, ends) == oracles.strata.locate(x, ends)).all()


@examples(40)
@given(st.integers(0, 2**32), st.integers(1, 60), st.booleans(), st.booleans())
def test_sums(seed, n, weighted, confidence):
    g = np.random.default_rng([0x57A7, seed])
    p, x = np.where(g.uniform(size=n) < 0.2, 0.5, g.uniform(size=n)), g.normal(size=n)
    y, cell, ids = (g.integers(0, k, n) for k in (2, 4, 2**63))
    w = g.uniform(0.5, 2, n) if weighted else None
    cell, ids = cell.astype(np.int32), ids.astype(np.uint64)
    seen, both = Seen(p, w, confidence), (strata, oracles.strata)
    pairs = [
        [m.strata_sums(cell, 4, y, seen, x) for m in both],
        [m.strata_sums(cell, 4, y, seen) for m in both],
        [m.null_sums(ids, cell, 4, seen, Draws(3, 5, 77)) for m in both],
        [m.power_sums(y - p, cell, cell % 2, 4, 2) for m in both],
    ]
    for compiled, reference in pairs:
        np.testing.assert_allclose(compiled, reference, rtol=1e-12, atol=1e-12)
    ends = np.array([-1.0, 0.0, 0.5, 0.5])
    fine = [np.zeros((4, 2, 2, 4), dtype=np.int64) for _ in range(2)]
    strata.fine_sums(cell, x, ends, p, y, fine[0])
    oracles.strata.fine_sums(cell, x, ends, p, y, fine[1])
    assert (fine[0] == fine[1]).all()


def rows(n=6000, seed=1):
    g = np.random.default_rng([0x57A8, seed])
    p = np.round(g.uniform(size=n), 3)
    x = np.where(g.uniform(size=n) < 0.03, np.nan, g.normal(size=n))
    day = np.datetime64("2020-01-30") + g.integers(0, 90, n)
    level = np.array(["a", "b", None], dtype=object)[g.integers(0, 3, n)]
    table = {"x": x, "day": day, "level": pa.array(level.tolist()), "age": g.integers(18, 70, n)}
    return cal.predictions(g.uniform(size=n) < p, p, table)


@pytest.mark.parametrize("view", ["probability", "confidence"])
def test_sketch_and_rows_hold_the_same_sums(view):
    data = rows()
    kept = cal.sketch(data, variables="*")
    for name in ("day", "level", "age"):
        a, b = strata_of(data, name, view), strata_of(kept, name, view)
        assert (a.labels, a.missing, a.date, a.titles()) == (b.labels, b.missing, b.date, b.titles())
        for field, off in (("x", 0), ("rows", 0), ("events", 0), ("score", 1e-5), ("noise", 2e-3), ("resid2", 2e-3)):
            np.testing.assert_allclose(getattr(a, field), getattr(b, field), atol=off)
    a, b = strata_of(data, "x", view).binned(10), strata_of(kept, "x", view).binned(10)
    np.testing.assert_allclose(a.rows, b.rows, atol=8)
    np.testing.assert_allclose(a.x, b.x, atol=0.02)
    assert a.missing
    assert b.missing
    assert np.isnan(b.x[-1])
    assert a.rows[-1] == b.rows[-1]


@pytest.mark.slow
@examples(15)
@given(st.lists(st.integers(1, 2999), max_size=4), st.randoms(use_true_random=False))
def test_parts_add_up_in_any_order(cuts, random):
    data = rows(3000)
    whole = cal.sketch(data, variables="*")
    table = data.covariates.append_column("y", pa.array(data.y)).append_column("p", pa.array(data.p))
    at = [0, *sorted(set(cuts)), 3000]
    parts = []
    for start, stop in itertools.pairwise(at):
        part = cal.Sketch(whole.spec)
        batch = table.rename_columns([*data.covariates.schema.names, whole.spec.label, whole.spec.score])
        part.update(batch.slice(start, stop - start).combine_chunks().to_batches()[0], first_row=start)
        parts.append(part)
    random.shuffle(parts)
    total = parts[0]
    for part in parts[1:]:
        total.merge(part, allow_same=True)
    again = cal.Sketch.from_bytes(total.to_bytes())
    for name, held in whole.parts["fine"].stored.items():
        assert (held == total.parts["fine"].stored[name]).all()
        assert (held == again.parts["fine"].stored[name]).all()
    assert isinstance(again.parts["fine"], Fine)


@examples(30)
@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 12), st.booleans())
def test_bins_split_no_tie_and_leave_no_gap(seed, n, bins, coarse):
    g = np.random.default_rng([0x57A9, seed])
    x = np.round(g.normal(size=n), 0 if coarse else 3)
    data = cal.predictions(g.integers(0, 2, n), g.uniform(size=n), {"x": x})
    found = by_variable_of(data, "x")
    for method in ("quantile", "uniform"):
        group = found.strata.bin_of(bins, method)
        joined = found.strata.joined(group)
        assert joined.n == n
        assert joined.size <= bins
        assert (joined.rows > 0).all()
        assert (np.diff(group) >= 0).all()
        assert (joined.low[1:] > joined.high[:-1]).all()
    if not coarse and n >= 200:
        assert np.abs(found.strata.binned(bins).rows - n / bins).max() <= 8
    cell = quantile_cells(x, bins)
    assert cell.max() + 1 == len(np.unique(cell)) <= bins
