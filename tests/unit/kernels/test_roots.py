"""Roots and lowest points between two points: those of scipy's brentq and of its bounded minimiser, to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from calibrant.kernels.roots import RELATIVE, crossing, lowest

TOLERANCES = ({}, {"xtol": 1e-12, "rtol": 1e-10}, {"xtol": 1e-5, "rtol": 1e-5}, {"xtol": 1e-7})
SHAPES = st.tuples(*[st.floats(-3.0, 3.0)] * 4)


@example((0.0, 0.0, 0.0, 0.0), -1.0, 3.0, {})
@given(SHAPES, st.floats(-4.0, 0.0), st.floats(0.5, 5.0), st.sampled_from(TOLERANCES))
def test_roots_are_those_of_scipy(shape: tuple[float, ...], start: float, length: float, how: dict[str, float]) -> None:
    a, b, c, d = shape

    def curve(x: float) -> float:
        return a * (x - b) + c * math.sin(3.0 * x) + math.exp(d * x) - 1.0 + (x - b) ** 3

    stop = start + length
    if curve(start) * curve(stop) < 0.0:
        try:
            there = brentq(curve, start, stop, **how)
        except RuntimeError:  # a root of a higher order, which takes more than its hundred steps
            with pytest.raises(RuntimeError, match="no root within 100 steps"):
                crossing(curve, start, stop, **how)
        else:
            assert crossing(curve, start, stop, **how) == there


@pytest.mark.parametrize("step", [0.3, -0.2])
def test_a_jump_is_found(step: float) -> None:
    assert crossing(lambda x: -1.0 if x < step else 1.0, -1.0, 1.0) == brentq(
        lambda x: -1.0 if x < step else 1.0, -1.0, 1.0
    )


def test_ends_that_are_roots_are_returned() -> None:
    assert crossing(lambda x: x, 0.0, 1.0) == 0.0
    assert crossing(lambda x: x - 1.0, 0.0, 1.0) == 1.0


def test_one_sign_at_both_ends_is_refused() -> None:
    with pytest.raises(ValueError, match="one sign"):
        crossing(lambda x: 1.0 + x * x, -1.0, 1.0)


def test_the_finest_tolerance_is_scipys() -> None:
    assert 4.0 * np.finfo(float).eps == RELATIVE


@given(SHAPES, st.floats(-4.0, 0.0), st.floats(0.5, 5.0), st.sampled_from([1e-3, 1e-5, 1e-9]))
def test_lowest_points_are_those_of_scipy(shape: tuple[float, ...], start: float, length: float, xtol: float) -> None:
    a, b, c, d = shape

    def curve(x: float) -> float:
        return a * (x - b) ** 2 + c * math.cos(3.0 * x) + round(d * x, 1)

    there = minimize_scalar(curve, bounds=(start, start + length), method="bounded", options={"xatol": xtol})
    assert lowest(curve, start, start + length, xtol=xtol) == there.x
