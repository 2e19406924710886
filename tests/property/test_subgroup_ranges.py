"""Boxes are passed over only where they cannot matter: the worst and those over a limit are those of all boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calibrant.stats.subgroups.ranges import ceiling, ends, floor, floors, over, p_values, together
from effort import examples
from validity.subgroup_designs import flat


@st.composite
def families(draw: st.DrawFn) -> Any:
    """Boxes of all sizes and rates, more than are looked at first; some without cases, or with nothing else."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from([1, 2, 70, 400]))
    rows = rng.integers(1, draw(st.sampled_from([3, 30, 3000])), size)
    score = np.clip(rng.normal(draw(st.sampled_from([0.0, 0.01, 0.3, 0.95, 1.0])), 0.05, size), 0.0, 1.0)
    off = rng.normal(0.0, draw(st.sampled_from([0.0, 0.02, 0.3])), size)
    events = rng.binomial(rows, np.clip(score + off, 0.0, 1.0))
    return flat(rows, events, score, rng.dirichlet(np.full(size, 0.5)) * 0.999 + 0.001 / size)


ALPHAS = st.sampled_from([1e-6, 0.05, 0.3, 0.9])


@given(families(), ALPHAS)
@examples(100)
def test_the_floor_is_that_of_all_boxes(family: Any, alpha: float) -> None:
    size, box = floor(family, alpha)
    plain = floors(*together(family, alpha))
    assert size == plain.max()
    if size > 0.0:
        assert plain[box] == size


@given(families(), ALPHAS, st.sampled_from([0.0, 2.0, 100.0]))
@examples(100)
def test_the_ceiling_is_that_of_all_boxes(family: Any, alpha: float, least: float) -> None:
    size, box = ceiling(family, alpha, least)
    low, high = ends(family, alpha, alpha)
    large = family.rows >= least
    if not large.any():
        assert (size, box) == (0.0, -1)
    else:
        plain = np.maximum(high, -low)
        assert size == min(plain[large].max(), 1.0)
        assert large[box]
        assert min(plain[box], 1.0) == size


@given(families(), ALPHAS, st.sampled_from([0.0, 0.01, 0.2]))
@examples(100)
def test_boxes_over_a_limit_are_those_of_holm_box_by_box(family: Any, alpha: float, limit: float) -> None:
    level, left = p_values(family, limit), np.ones(family.size, dtype=bool)
    while True:  # one box a turn, as Holm's procedure is told
        first = int(np.argmin(np.where(left, level / family.weight, np.inf)))
        if not left.any() or level[first] * family.weight[left].sum() > alpha * family.weight[first]:
            break
        left[first] = False
    assert (over(family, limit, alpha) == ~left).all()


@given(families(), ALPHAS, st.sampled_from([0.0, 0.01, 0.2]))
@examples(50)
def test_p_values_and_ranges_say_the_same(family: Any, alpha: float, limit: float) -> None:
    low, high = ends(family, alpha / 2, alpha / 2)
    level, size = p_values(family, limit), floors(low, high)
    clear = np.abs(size - limit) > 1e-12
    assert ((size > limit) == (level < alpha))[clear].all()
