"""Several statistics joined by their draws: the level is a matter of counting, for any numbers and any ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.stats.nulls import ranked, surprises
from effort import examples

SHAPES = st.tuples(st.integers(1, 5), st.integers(20, 120), st.integers(0, 2**32))


def scores(shape: tuple[int, int, int], kind: str) -> Any:
    """Statistics as they come: smooth, of few events, or equal in most columns; some copy each other."""
    statistics, columns, seed = shape
    rng = np.random.default_rng([0x5C0, seed])
    draw = {
        "smooth": lambda: rng.normal(size=columns),
        "rare": lambda: (rng.poisson(0.7, columns) - 0.7) / 0.7**0.5,
        "equal": lambda: np.where(rng.random(columns) < 0.05, rng.integers(0, 3, columns), 0.0),
    }[kind]
    found = np.stack([draw() for _ in range(statistics)])
    found[-1] = np.where(rng.random(columns) < 0.5, found[0], found[-1])
    return found


@examples(60)
@given(SHAPES, st.sampled_from(["smooth", "rare", "equal"]))
def test_no_level_is_exceeded_whichever_column_is_the_data(shape: tuple[int, int, int], kind: str) -> None:
    """Data and draws are exchangeable: a column is the data's with the same chance as any other."""
    p = ranked(surprises(scores(shape, kind)).max(axis=0))[0]
    for k in range(1, shape[1] + 1):
        assert np.count_nonzero(p <= k / shape[1] + 1e-12) <= k


@examples(60)
@given(SHAPES, st.sampled_from(["smooth", "rare", "equal"]))
def test_data_and_draws_are_treated_alike(shape: tuple[int, int, int], kind: str) -> None:
    x = scores(shape, kind)
    order = np.random.default_rng([0x5C1, shape[2]]).permutation(shape[1])
    np.testing.assert_allclose(surprises(x)[:, order], surprises(x[:, order]), rtol=1e-9)


@examples(60)
@given(SHAPES, st.sampled_from(["smooth", "rare", "equal"]))
def test_more_is_never_less_surprising(shape: tuple[int, int, int], kind: str) -> None:
    for x, s in zip(scores(shape, kind), surprises(scores(shape, kind)), strict=True):
        assert (np.diff(s[np.argsort(x, kind="stable")]) >= -1e-9).all()


@pytest.mark.parametrize("least", [0.05, 0.1])
def test_saboteur_the_smallest_p_value_without_its_null(least: float) -> None:
    p = ranked(scores((3, 1000, 1), "smooth")).min(axis=0)
    assert np.count_nonzero(p <= least) > 2 * least * 1000


def test_a_tail_goes_on_as_that_of_a_normal_score() -> None:
    rng = np.random.default_rng([0x5C2])
    x = rng.normal(size=(1, 4000))
    x[0, 0] = 6.0
    assert surprises(x)[0, 0] == pytest.approx(-np.log(1e-9), rel=0.12)  # the upper tail of 6 is 1.0e-9
    assert surprises(x)[0].max() == surprises(x)[0, 0]
    heavy = np.concatenate([[12.0], rng.standard_t(3, 3999)])[None, :]
    assert surprises(heavy)[0, 0] < 25.0  # and not the 75 of a normal score
