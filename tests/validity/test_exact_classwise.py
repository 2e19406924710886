"""The class-wise error by summing over every data set of a few rows of three classes: no simulation."""

import itertools
import math

import numpy as np
import pytest

from calibrant.stats.clusters.classes import Classes
from calibrant.stats.clusters.clusters import Clusters

ALPHA = 0.05
ROWS = 4

# The same where errors cancel: the probability of every class is true, and no vector is. A witness that reads more than
# a class's own probability wins.
ONE, OTHER = (0.4, 0.4, 0.2, 0.0), (0.4, 0.4, 0.0, 0.2)
CANCELLING = ((0.4, ONE, 0), (0.1, ONE, 2), (0.4, OTHER, 1), (0.1, OTHER, 3))

# Kinds of rows: (probability, probabilities of the classes, class). Both vectors are far off, so that the signs of the
# error are nearly sure, and the evidence is nearly that of the true ones.
FIRST, SECOND = (0.9, 0.08, 0.02), (0.5, 0.1, 0.4)
KINDS = (
    (0.01, FIRST, 0),
    (0.48, FIRST, 1),
    (0.01, FIRST, 2),
    (0.01, SECOND, 0),
    (0.48, SECOND, 1),
    (0.01, SECOND, 2),
)


def truth():
    """Return the class-wise error: every class's probability names its vector."""
    total = 0.0
    for vector in (FIRST, SECOND):
        mass = sum(c for c, v, _ in KINDS if v is vector)
        rates = [sum(c for c, v, y in KINDS if v is vector and y == k) / mass for k in range(3)]
        total += mass * sum(abs(p - rate) for p, rate in zip(vector, rates, strict=True))
    return total


def data_sets(every=KINDS):
    """Yield the probability and the rows of every data set, dealt to fixed blocks, the first as the pilot."""
    for kinds in itertools.product(every, repeat=ROWS):
        p, y = np.array([v for _, v, _ in kinds]), np.array([y for _, _, y in kinds])
        block = np.array([0, 1, 2, 2])
        rows = Clusters(np.arange(ROWS), p.max(axis=1), (y == 0).astype(np.int8), np.ones(ROWS), block, most=1.0)
        yield math.prod(c for c, _, _ in kinds), rows, p, y


@pytest.fixture
def largest_known(monkeypatch):
    """Let M be 1, as if pilot rows had shown it."""
    monkeypatch.setattr(Clusters, "largest", 1.0)


@pytest.mark.usefixtures("largest_known")
@pytest.mark.parametrize("by_row", [True, False])
def test_above_at_the_true_error(by_row):
    means = 0.0
    for chance, rows, p, y in data_sets():
        evidence = Classes(rows, p, y, by_row).above(100)
        means = means + chance * np.exp(evidence.by_bet(truth()))
    assert means.max() <= 1 + 1e-9
    assert means.max() > 0.8  # and none is far below, where nothing could go wrong


# Rounded to fifths, halves up, these vectors add up to 1.4: a row of the last class wins 2.4, and a raw one 2 at most.
STEPS, ROUNDED = 5, {(0.3, 0.3, 0.3, 0.1): (0.4, 0.4, 0.4, 0.2), (0.3, 0.3, 0.3, 0.1, 0.0): (0.4, 0.4, 0.4, 0.2, 0.0)}


@pytest.mark.usefixtures("largest_known")
@pytest.mark.parametrize("by_row", [True, False])
@pytest.mark.parametrize("vector", ROUNDED)
@pytest.mark.parametrize("last", [0.94, 1.0])
def test_above_where_rounded_vectors_add_up_to_more_than_one(by_row, vector, last):
    k = len(vector)
    chances = [(1.0 - last) / (k - 1)] * (k - 1) + [last]
    error = sum(abs(s - rate) for s, rate in zip(ROUNDED[vector], chances, strict=True))
    means, missed = 0.0, 0.0
    for chance, rows, p, y in data_sets(tuple((c, vector, i) for i, c in enumerate(chances) if c > 0.0)):
        evidence = Classes(rows, p, y, by_row).above(STEPS)
        means = means + chance * np.exp(evidence.by_bet(error))
        missed += chance * (evidence.limit(ALPHA) < error)
    assert means.max() <= 1 + 1e-9
    assert missed <= ALPHA


@pytest.mark.slow
@pytest.mark.usefixtures("largest_known")
def test_below_at_the_true_error():
    means = 0.0
    for chance, rows, p, y in data_sets():
        evidence = Classes(rows, p, y, by_row=True).below(ALPHA, seed=0)
        wagers = [type(evidence)([w], evidence.size, 1.0, evidence.room, evidence.reach) for w in evidence.wagers]
        means = means + chance * np.array([np.exp(w.at(truth())) / w.wagers[0].share for w in wagers])
    assert means.max() <= 1 + 1e-9
    assert means.max() > 0.2


@pytest.mark.slow
@pytest.mark.usefixtures("largest_known")
def test_below_where_errors_cancel_given_each_class_s_own_probability():
    means = 0.0
    for chance, rows, p, y in data_sets(CANCELLING):
        evidence = Classes(rows, p, y, by_row=True).below(ALPHA, seed=0)
        wagers = [type(evidence)([w], evidence.size, 1.0, evidence.room, evidence.reach) for w in evidence.wagers]
        means = means + chance * np.array([np.exp(w.at(0.0)) / w.wagers[0].share for w in wagers])
    assert means.max() <= 1 + 1e-9
    assert means.max() > 0.9
