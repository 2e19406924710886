"""Compiled local regression and simulated sums equal their NumPy twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oracles.draws
import oracles.smooth
from calibrant.data.sketches.sample import identities_of
from calibrant.kernels import smooth
from calibrant.kernels.draws import Draws, tallies
from calibrant.stats.nulls import holm, step_down
from effort import examples


@examples(60)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.floats(0.05, 1.0), st.integers(0, 2), st.booleans())
def test_local_regression_equals_its_twin(cells: int, seed: int, span: float, degree: int, whole: bool) -> None:
    rng = np.random.default_rng([seed, 41])
    x = np.cumsum(rng.integers(1, 6, cells)) * 1.0 if whole else np.sort(rng.normal(size=cells))
    rows = rng.integers(1, 9, cells).astype(float)
    mass = rows * rng.uniform(0.5, 2.0, cells)
    grid = np.sort(rng.uniform(x[0] - 0.1, x[-1] + 0.1, 7)) + 1e-7
    need = max(1.0, np.floor(rows.sum() * span))
    ours = smooth.operator(x, rows, mass, grid, need, degree)
    theirs = oracles.smooth.operator(x, rows, mass, grid, need, degree)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * np.abs(b).max())
    np.testing.assert_allclose(ours[0] @ mass, 1.0, atol=1e-7)


@examples(40)
@given(st.integers(1, 60), st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(0, 50), st.booleans())
def test_simulated_sums_equal_their_twin(n: int, seed: int, draws: int, first: int, weighted: bool) -> None:
    rng = np.random.default_rng([seed, 42])
    codes = np.stack([rng.integers(-1, 4, n), 4 + rng.integers(0, 3, n)], axis=1)
    weight = rng.integers(1, 5, n).astype(float) if weighted else None
    given_rows = identities_of(n, seed % 7), rng.random(n), weight, codes, 7, Draws(first, draws, seed)
    np.testing.assert_array_equal(tallies(*given_rows), oracles.draws.tallies(*given_rows))


@examples(50)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_adjusted_p_values_are_ordered_and_no_smaller(tests: int, seed: int) -> None:
    rng = np.random.default_rng([seed, 43])
    observed, simulated = rng.normal(size=tests), rng.normal(size=(tests, 49))
    own = (1 + (simulated >= observed[:, None]).sum(axis=1)) / 50
    adjusted = step_down(observed, simulated)
    assert (adjusted >= own - 1e-12).all()
    assert (np.diff(adjusted[np.argsort(-observed)]) >= 0).all()
    top = int(np.argmax(observed))
    assert adjusted[top] == (1 + (simulated.max(axis=0) >= observed[top]).sum()) / 50
    corrected = holm(own)
    assert (corrected >= own).all()
    assert corrected.max() <= 1.0
