"""The class-wise error holds for 3, 10 and 100 classes, rare ones among them, whose truths are sums over vectors."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.certify import classwise
from validity.acceptance import SETS, refuted
from validity.class_designs import MOVED, SWAPPED, Design

ALPHA = 0.1

DESIGNS = {
    "3 classes, calibrated": Design(3, 1.0, 1.0, 400),
    "3 classes, overconfident": Design(3, 0.3, 0.4, 400),
    "10 classes, calibrated": Design(10, 0.2, 1.0, 1000),
    "10 classes, underconfident": Design(10, 1.0, 2.5, 1000),
    "10 classes, one of them wrong": Design(10, 0.4, MOVED, 1000),
    "100 classes, most of them rare": Design(100, 0.03, 0.6, 2000),
    "10 classes, clusters of ten": Design(10, 0.3, 0.5, 1500, 10),
    "4 classes, sure and wrong": Design(4, 0.1, SWAPPED, 400),
    "4 classes, sure and wrong, of few rows": Design(4, 0.1, SWAPPED, 12),
    "4 classes, sure and wrong, clusters of ten": Design(4, 0.1, SWAPPED, 1500, 10),
}


def missed(name, runs):
    """Count the misses of either end."""
    counts, error = np.zeros(2, dtype=int), DESIGNS[name].truth()
    for seed in range(runs):
        data = DESIGNS[name].drawn(np.random.default_rng([seed, len(name)]))
        ends = classwise(data, alpha=ALPHA, seed=seed).interval
        assert ends.low <= ends.high
        counts += ends.low > error, ends.high < error
    return counts


@pytest.mark.parametrize("name", DESIGNS)
def test_neither_end_is_wrong_more_often_than_allowed(name):
    assert not any(refuted(m, SETS, ALPHA / 2) for m in missed(name, SETS))


def test_an_error_above_one_is_bounded_on_both_sides():
    design = DESIGNS["4 classes, sure and wrong"]
    ends = classwise(design.drawn(np.random.default_rng(0)), alpha=ALPHA).interval
    assert 1.0 < ends.low <= design.truth() <= ends.high < 2.0
