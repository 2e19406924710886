"""The class-wise error holds for 3, 10 and 100 classes, rare ones among them, whose truths are sums over vectors."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify import classwise
from validity.acceptance import SETS, refuted

ALPHA = 0.1
SWAPPED = -1.0  # each class's probability is truly the next one's: the error exceeds 1
VECTORS = 40  # that the classifier takes, so that the truth is a sum


def vectors(classes, conc, seed=0):
    """Return vectors in whole percent, shape (VECTORS, classes): every class has some."""
    rng = np.random.default_rng(seed)
    counts = np.array([rng.multinomial(100, rng.dirichlet(np.full(classes, conc))) for _ in range(VECTORS)])
    return counts / 100


def truth(p, eta):
    """The class-wise error where every vector is as frequent: sums over the values of each class's probability."""
    total = 0.0
    for own, rate in zip(p.T, eta.T, strict=True):
        for value in np.unique(own):
            at = own == value
            total += abs((own[at] - rate[at]).sum()) / len(p)
    return total


# classes, concentration of the vectors, temperature of the truth (1: calibrated), rows, rows a cluster
DESIGNS = {
    "3 classes, calibrated": (3, 1.0, 1.0, 400, 1),
    "3 classes, overconfident": (3, 0.3, 0.4, 400, 1),
    "10 classes, calibrated": (10, 0.2, 1.0, 1000, 1),
    "10 classes, underconfident": (10, 1.0, 2.5, 1000, 1),
    "10 classes, one of them wrong": (10, 0.4, 0.0, 1000, 1),
    "100 classes, most of them rare": (100, 0.03, 0.6, 2000, 1),
    "10 classes, clusters of ten": (10, 0.3, 0.5, 1500, 10),
    "4 classes, sure and wrong": (4, 0.1, SWAPPED, 400, 1),
    "4 classes, sure and wrong, of few rows": (4, 0.1, SWAPPED, 12, 1),
    "4 classes, sure and wrong, clusters of ten": (4, 0.1, SWAPPED, 1500, 10),
}


def rates(p, temperature):
    """Return what happens: the vectors at a temperature, or the first class's share taken by the second."""
    if temperature == 0.0:
        moved = p.copy()
        moved[:, 1] += 0.5 * p[:, 0]
        moved[:, 0] *= 0.5
        return moved
    if temperature == SWAPPED:
        return np.roll(p, 1, axis=1)
    raised = p**temperature
    return raised / raised.sum(axis=1, keepdims=True)


def drawn(design, rng):
    classes, conc, temperature, rows, size = design
    p = vectors(classes, conc)
    eta = rates(p, temperature)
    at = rng.integers(0, len(p), rows)
    if size > 1:  # rows of a cluster have one vector and, two times of three, one outcome
        at = np.repeat(at[: rows // size], size)
    u = rng.uniform(size=rows)
    if size > 1:
        alike = np.repeat(rng.uniform(size=rows // size), size)
        u = np.where(rng.uniform(size=rows) < 2 / 3, alike, u)
    y = np.minimum((u[:, None] > eta[at].cumsum(axis=1)).sum(axis=1), classes - 1)
    cluster = np.arange(rows) // size if size > 1 else None
    return cal.multiclass_predictions(y, p[at], cluster=cluster), truth(p, eta)


def missed(name, runs):
    """Count the misses of either end."""
    counts = np.zeros(2, dtype=int)
    for seed in range(runs):
        data, error = drawn(DESIGNS[name], np.random.default_rng([seed, len(name)]))
        ends = classwise(data, alpha=ALPHA, seed=seed).interval
        assert ends.low <= ends.high
        counts += ends.low > error, ends.high < error
    return counts


@pytest.mark.parametrize("name", DESIGNS)
def test_neither_end_is_wrong_more_often_than_allowed(name):
    assert not any(refuted(m, SETS, ALPHA / 2) for m in missed(name, SETS))


def test_an_error_above_one_is_bounded_on_both_sides():
    data, error = drawn(DESIGNS["4 classes, sure and wrong"], np.random.default_rng(0))
    ends = classwise(data, alpha=ALPHA).interval
    assert 1.0 < ends.low <= error <= ends.high < 2.0
