"""Certificates with weights that were learnt: each end misses as seldom as it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from validity.acceptance import refuted
from validity.weight_designs import Design, ends

HURT = (0.2, 0.0, -0.1)
DESIGNS = (
    Design("margins", strong=True),
    Design("cells", off=HURT),
    Design("rake", strong=True, off=HURT),
    Design("classifier", off=HURT),
    Design("classifier", strong=True, off=HURT, cap=2.0),
    Design("cells", strong=True, off=HURT, pilot=0.2),
    Design("margins", rare=True, strong=True),
)
TIMES, NIGHTLY = 40, 200


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_each_end_misses_as_seldom_as_it_says(design: Design) -> None:
    found = [ends(design, seed) for seed in range(TIMES)]
    for side in (0, 1):
        assert not refuted(sum(f[side] for f in found), TIMES, 0.025)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_each_end_misses_as_seldom_as_it_says_at_size(design: Design, n: int) -> None:
    found = [ends(replace(design, n=n), seed) for seed in range(NIGHTLY)]
    for side in (0, 1):
        assert not refuted(sum(f[side] for f in found), NIGHTLY, 0.025)
