"""Kernels of the measures equal their twins, and laws that hold for any data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import calibrant as cal
import oracles.strata
from calibrant.kernels import strata
from calibrant.stats.nulls import noise
from calibrant.stats.smoothing import coarser, length, smoothed
from calibrant.stats.strata import equal_mass_edges
from effort import examples

SCORES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, np.nextafter(1, 0), 1 / 3, 0.25]))


@st.composite
def weighed(draw, least=0):
    n = draw(st.integers(least, 40))
    p = draw(hnp.arrays(np.float64, n, elements=SCORES))
    y = draw(hnp.arrays(np.int8, n, elements=st.integers(0, 1)))
    f, w = (draw(st.none() | hnp.arrays(np.float64, n, elements=st.floats(0.1, 9))) for _ in range(2))
    return p, y, f, w


@examples(150)
@given(rows=weighed(), bins=st.integers(1, 20), own=st.booleans(), data=st.data())
def test_bin_sums(rows, bins, own, data):
    edges = np.sort(data.draw(hnp.arrays(np.float64, bins - 1, elements=SCORES))) if own else None
    fast, slow = (module.bin_sums(*rows, edges, bins) for module in (strata, oracles.strata))
    np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)


@examples(150)
@given(rows=weighed(), steps=st.sampled_from([1, 2, 7, 64, 4096]))
def test_spread(rows, steps):
    fast, slow = strata.spread(*rows, steps), oracles.strata.spread(*rows, steps)
    np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)
    p, y, f, w = rows
    residual = (1 if f is None else f) * (1 if w is None else w) * (y - p)
    at = np.arange(steps + 1) / steps
    assert fast[:, 0].sum() == pytest.approx(residual.sum(), abs=1e-9)
    assert fast[:, 0] @ at == pytest.approx((residual * p).sum(), abs=1e-9)


@examples(150)
@given(rows=weighed(least=1), bins=st.integers(1, 20), weighted=st.booleans())
def test_equal_mass_keeps_ties_together(rows, bins, weighted):
    p, mass = rows[0], rows[2] if weighted else None
    edges = equal_mass_edges(p, mass, bins)
    m = np.ones(len(p)) if mass is None else mass
    where = np.searchsorted(edges, p, side="right")
    assert len(edges) < bins or bins == 1
    for value in np.unique(p):
        before, here = m[p < value].sum(), m[p == value].sum()
        rank = bins * (before + here / 2) / m.sum()
        members = where[p == value]
        assert len(set(members.tolist())) == 1
        others = [v for v in np.unique(p) if where[p == v][0] == members[0]]
        for v in others:  # sharing a bin means sharing floor(bins * middle rank), up to rounding
            other = bins * (m[p < v].sum() + m[p == v].sum() / 2) / m.sum()
            assert np.floor(min(rank, other) + 1e-9) >= np.floor(max(rank, other) - 1e-9) - 1e-9


@examples(80)
@given(
    mass=hnp.arrays(np.float64, 65, elements=st.floats(-1, 1)),
    narrow=st.floats(0.05, 0.5),
    factor=st.floats(1, 3),
)
def test_smoothing_keeps_mass_and_never_adds_length(mass, narrow, factor):
    density = smoothed(mass, narrow)
    weights = np.ones(65) / 64
    weights[[0, -1]] /= 2
    assert density @ weights == pytest.approx(mass.sum(), abs=1e-9)
    assert length(density) <= np.abs(mass).sum() + 1e-9
    assert length(smoothed(mass, narrow * factor)) <= length(density) + 1e-9
    assert coarser(mass, 16).sum() == pytest.approx(mass.sum(), abs=1e-9)


@examples(50)
@given(
    share=hnp.arrays(np.float64, 4, elements=st.floats(0.05, 1)),
    lean=hnp.arrays(np.float64, 4, elements=st.floats(-1, 1)),
)
def test_noise_has_the_covariance_it_says(share, lean):
    second = share / share.sum()
    mean = lean * second
    draws = noise(second, mean, 10.0, np.eye(4))
    np.testing.assert_allclose(draws.T @ draws, (np.diag(second) - np.outer(mean, mean)) / 10, atol=1e-12)


@pytest.mark.slow
@examples(40)
@given(rows=weighed(least=2), bins=st.integers(1, 9))
def test_laws(rows, bins):
    p, y = rows[0], rows[1]
    data, flipped = cal.predictions(y, p), cal.predictions(1 - y, 1 - p)
    found = cal.measure.ece(data, bins=bins)
    s = found.settings
    assert found.interval.low <= found.value <= found.interval.high + 1e-12
    assert s["under_prediction"] + s["over_prediction"] == pytest.approx(found.value, abs=1e-12)
    assert s["under_prediction"] - s["over_prediction"] == pytest.approx((y - p).mean(), abs=1e-12)
    assert found.value <= cal.measure.ece(data, bins=bins, norm=2).value + 1e-12
    assert found.value <= cal.measure.max_calibration_error(data, bins=bins).value + 1e-12
    assert abs((y - p).mean()) <= cal.measure.smooth_ece(data).value + 1e-9
    assert cal.measure.brier(flipped).value == pytest.approx(cal.measure.brier(data).value, abs=1e-12)
    assert cal.measure.smooth_ece(flipped).value == pytest.approx(cal.measure.smooth_ece(data).value, abs=1e-6)
