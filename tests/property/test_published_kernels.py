"""Compiled equals reference for the published comparators' kernels, and the denoiser is optimal."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import oracles.smooth
from calibrant.apps.papers.bounds import denoised
from calibrant.kernels import smooth
from effort import examples

cluster = st.floats(0.0, 1.0, allow_subnormal=False)


def read_only(values):
    array = np.ascontiguousarray(values, dtype=np.float64)
    array.flags.writeable = False
    return array


@st.composite
def cells(draw):
    counts = draw(hnp.arrays(np.int64, st.integers(1, 40), elements=st.integers(1, 4)))
    positives = [draw(st.integers(0, int(c))) for c in counts]
    radius = draw(st.one_of(st.just(0.0), st.sampled_from([0.5, 1.0, 2.0]), st.floats(1e-3, 30.0)))
    return read_only(counts), read_only(positives), radius


@examples(200)
@given(cells())
def test_denoiser_equals_reference(case):
    assert np.allclose(smooth.taut_string(*case), oracles.smooth.taut_string(*case), atol=1e-10, rtol=0)


@examples(200)
@given(cells())
def test_denoiser_is_optimal(case):
    counts, positives, radius = case
    fit = smooth.taut_string(counts, positives, radius)
    dual = np.cumsum(positives - counts * fit)
    assert abs(dual[-1]) < 1e-9  # the mean is preserved
    assert np.all(np.abs(dual) <= radius + 1e-9)
    jump = np.diff(fit)
    held = np.abs(jump) > 1e-9
    assert np.allclose(dual[:-1][held], -radius * np.sign(jump[held]), atol=1e-9)
    assert fit.min() > -1e-12
    assert fit.max() < 1 + 1e-12


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1)), min_size=1, max_size=30), st.randoms())
def test_ties_do_not_depend_on_row_order(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    fits = []
    for order in (rows, shuffled):
        s, y = np.array(sorted(order, key=lambda row: row[0]), dtype=np.float64).T
        fits.append(denoised(s / 6, np.ascontiguousarray(y), 0.7))
    assert np.array_equal(fits[0][0], fits[1][0])
    assert np.array_equal(fits[0][1], fits[1][1])


@examples(200)
@given(
    hnp.arrays(np.float64, st.integers(1, 25), elements=cluster),
    st.lists(st.tuples(cluster, st.booleans()), min_size=1, max_size=40),
    st.sampled_from([1e-4, 0.01, 0.1, 0.25]),
)
def test_smoother_equals_reference(at, rows, bandwidth):
    scores, labels = np.array(sorted(rows), dtype=np.float64).T
    arguments = (read_only(np.sort(at)), read_only(scores), read_only(labels), bandwidth, 32.0, 6144.0)
    fast, slow = smooth.smooth(*arguments), oracles.smooth.smooth(*arguments)
    assert fast[2] == slow[2]
    assert np.allclose(fast[0], slow[0], atol=1e-11, rtol=0)
    assert np.allclose(fast[1], slow[1], atol=0, rtol=1e-11)


def test_smoother_equals_reference_over_wide_windows():
    rng = np.random.default_rng(3)
    scores = np.sort(rng.random(5000))
    labels = (rng.random(5000) < scores).astype(np.float64)
    at = np.concatenate([[0.0], np.sort(rng.random(30)), [1.0]])
    arguments = (read_only(at), read_only(scores), read_only(labels), 0.25, 2.0, 24.0)
    fast, slow = smooth.smooth(*arguments), oracles.smooth.smooth(*arguments)
    assert np.allclose(fast[0], slow[0], atol=1e-12, rtol=0)
    assert np.allclose(fast[1], slow[1], atol=0, rtol=1e-12)
