"""Vectors that are perturbed on the simplex: laws by enumeration, and every data set of a few rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.clusters.classes import LatticeClasses, emitted, masses
from calibrant.stats.clusters.clusters import Clusters

STEPS, ROWS = 4, 4
FIRST, SECOND = (0.9, 0.08, 0.02), (0.5, 0.1, 0.4)
KINDS = (
    (0.01, FIRST, 0),
    (0.48, FIRST, 1),
    (0.01, FIRST, 2),
    (0.01, SECOND, 0),
    (0.48, SECOND, 1),
    (0.01, SECOND, 2),
)


def truth() -> float:
    """The class-wise error of what is emitted, from the law of each class's multiple written out."""
    total = 0.0
    for k in range(3):
        for j in range(STEPS + 1):
            mass = came = 0.0
            for chance, vector, y in KINDS:
                kernel = max(0.0, 1.0 - abs(STEPS * vector[k] - j))
                mass += chance * kernel
                came += chance * kernel * (y == k)
            total += abs(j / STEPS * mass - came)
    return total


def test_what_is_emitted_is_on_the_lattice_and_has_the_law_that_is_certified() -> None:
    """Of each offset in a fine grid: sums are one, each class's multiples are as probable as `masses` says."""
    p = np.array([FIRST, SECOND, (1.0, 0.0, 0.0), (1 / 3, 1 / 3, 1 / 3)])
    offsets = (np.arange(4000) + 0.5) / 4000
    every = np.array([emitted(p, STEPS, np.full(len(p), u)) for u in offsets])
    assert (every.sum(axis=2) == 1.0).all()
    assert (every >= 0.0).all()
    np.testing.assert_allclose(every.mean(axis=0), p, atol=1e-3)
    for k in range(3):
        law = np.zeros((len(p), STEPS + 1))
        for level, mass in masses(p[:, k], STEPS):
            law[np.arange(len(p)), level] += mass
        seen = np.array([(np.rint(every[:, :, k] * STEPS) == j).mean(axis=0) for j in range(STEPS + 1)]).T
        np.testing.assert_allclose(seen, law, atol=1e-3)


def data_sets() -> object:
    """Yield the probability and the rows of every data set, dealt to fixed blocks, the first as the pilot."""
    for kinds in itertools.product(KINDS, repeat=ROWS):
        p, y = np.array([v for _, v, _ in kinds]), np.array([y for _, _, y in kinds])
        block = np.array([0, 1, 2, 2])
        rows = Clusters(np.arange(ROWS), p.max(axis=1), (y == 0).astype(np.int8), np.ones(ROWS), block, most=1.0)
        yield math.prod(c for c, _, _ in kinds), LatticeClasses(rows, p, y, by_row=True, steps=STEPS)


def test_above_at_the_true_error() -> None:
    means = 0.0
    for chance, rows in data_sets():
        means = means + chance * np.exp(rows.ends_above()[0].by_bet(truth()))
    assert means.max() <= 1 + 1e-9
    assert means.max() > 0.8  # and none is far below, where nothing could go wrong


@pytest.mark.slow
def test_below_at_the_true_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clusters, "largest", 1.0)
    means = 0.0
    for chance, rows in data_sets():
        evidence = rows.below(0.05, seed=0)
        wagers = [type(evidence)([w], evidence.size, 1.0, evidence.room, evidence.reach) for w in evidence.wagers]
        means = means + chance * np.array([np.exp(w.at(truth())) / w.wagers[0].share for w in wagers])
    assert means.max() <= 1 + 1e-9
    assert means.max() > 0.2


def test_a_row_can_win_no_more_than_it_pays_for() -> None:
    for _, rows in itertools.islice(data_sets(), 40):
        won = np.zeros(ROWS)
        for k in range(3):
            won += sum(np.abs(each) for _, each, _ in rows.parts(k, rows.p[:, k]))
        np.testing.assert_allclose(won, rows.reach)
        assert (won <= 2.0 + 1e-12).all()


def test_both_ends_hold_the_error_and_what_has_no_proof_is_refused() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet([0.5] * 4, 3000)
    eta = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    y = np.minimum((rng.uniform(size=(3000, 1)) > eta.cumsum(axis=1)).sum(axis=1), 3)
    data = cal.multiclass_predictions(y, p)
    error = 0.0  # given these rows
    for k in range(4):
        gap = np.zeros(21)
        for level, mass in masses(p[:, k], 20):
            gap += np.bincount(level, mass * (level / 20 - eta[:, k]), 21)
        error += np.abs(gap).sum() / 3000
    result = cal.certify.jittered_classes(data, steps=20)
    assert 0.5 * error < result.interval.low < error < result.interval.high < 1.6 * error
    assert result.interval.low <= result.value <= result.interval.high
    assert cal.certify.jittered_classes(data, side="lower").interval.high == 2.0
    one = cal.certify.jitter_classes(p, ids=range(3000), steps=20, seed=3)
    assert (one == cal.certify.jitter_classes(p, ids=range(3000), steps=20, seed=3)).all()
    assert np.abs(one - p).max() < 1 / 20
    np.testing.assert_array_equal(np.rint(one * 20).sum(axis=1), 20)
    with pytest.raises(cal.NotComputable, match="perturbed vectors with cluster"):
        cal.certify.jittered_classes(cal.multiclass_predictions(y, p, cluster=np.arange(3000) // 2))
    with pytest.raises(cal.BadInput, match="add up to one"):
        cal.certify.jitter_classes([[0.5, 0.5, 0.5]], ids=[0])


def test_rows_that_are_perturbed_one_by_one_get_numbers_of_their_own() -> None:
    p = np.tile([0.23, 0.31, 0.46], (2000, 1))
    by_row = np.vstack([cal.certify.jitter_classes(p[i : i + 1], ids=[f"row {i}"], steps=10) for i in range(2000)])
    at_once = cal.certify.jitter_classes(p, ids=[f"row {i}" for i in range(2000)], steps=10)
    np.testing.assert_array_equal(by_row, at_once)
    np.testing.assert_allclose(by_row.mean(axis=0), p[0], atol=0.005)  # five standard errors
    assert (cal.certify.jitter_classes(p, ids=range(2000), steps=10, seed=1) != at_once).any()


@pytest.mark.parametrize(
    ("ids", "why"), [([7, 7], "the same id twice"), ([7], "ids has 1 rows"), ([7, None], "are missing")]
)
def test_ids_that_name_no_row_are_refused(ids: list[object], why: str) -> None:
    with pytest.raises(cal.BadInput, match=why):
        cal.certify.jitter_classes([[0.2, 0.3, 0.5]] * 2, ids=ids)
