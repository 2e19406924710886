"""Of every pattern of signs the forms of Theorem CU are at most the logarithm of the product: all patterns tried."""

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calibrant.stats.clusters.bounds import (
    Above,
    Pairs,
    Quadratic,
    Separable,
    below_of,
    bounded,
    orders_of,
    root_bounds,
)
from calibrant.stats.clusters.clusters import Clusters
from effort import examples


def least(q: Pairs, kappa: float, x: float) -> float:
    """Return ``min over f of ln E_x(f)``."""
    t = np.zeros((len(q.size), q.cells))
    t[q.cluster, q.cell] = q.value
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=q.cells)))
    return float(np.log1p(-kappa * (signs @ t.T - x * q.size + q.moved)).sum(axis=1).min())


def drawn(seed: int, clusters: int, cells: int, whole: bool) -> Clusters:
    """Return units of up to six rows; the first is the pilot, with the largest weights, but sometimes too small."""
    rng = np.random.default_rng(seed)
    cluster = np.concatenate([np.arange(clusters), rng.integers(0, clusters, 3 * clusters)])
    weight = np.ones(len(cluster)) if whole else rng.gamma(1.0, size=len(cluster))
    block = rng.integers(1, 9, clusters)
    block[0] = 0
    y = rng.integers(0, 2, len(cluster)).astype(np.int8)
    return Clusters(cluster, rng.integers(0, cells, len(cluster)) / max(cells - 1, 1), y, weight, block)


@examples(100)
@given(
    seed=st.integers(0, 2**32 - 1),
    clusters=st.integers(2, 12),
    cells=st.integers(1, 6),
    x=st.floats(0.0, 1.0),
    share=st.floats(0.01, 0.95),
    whole=st.booleans(),
)
def test_forms_are_below_every_pattern_of_signs(seed, clusters, cells, x, share, whole):
    held, moved = drawn(seed, clusters, cells, whole), (0.0, 0.1, 1.0)[seed % 3]
    tallies = held.tallies(np.round(held.p * max(cells - 1, 1)).astype(np.int64), cells, held.p)
    by_variable = moved * held.size * np.random.default_rng([seed, 1]).uniform(size=clusters)
    q, kappa = Pairs.of(tallies, by_variable if moved else None), share / (held.largest * (1.0 + moved))
    truth, close = least(q, kappa, x), 1e-9 * (1 + len(q.size))
    plain = Quadratic.of(q, kappa)
    for form in (Separable(q, kappa), plain, plain.relaxed(0.3)):
        assert form.at(x) <= truth + close
    guessed = replace(plain, relaxation=np.random.default_rng(seed).normal(size=q.cells + 1))
    assert guessed.at(x) <= truth + close  # whatever the relaxation is
    if q.apart:
        assert abs(Separable(q, kappa).at(x) - truth) <= close


@examples(100)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 7))
def test_quadratic_forms_of_signs(seed, k):
    rng = np.random.default_rng(seed)
    t = rng.normal(size=(2 * k, k))
    g = t.T @ t
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=k)))
    largest = ((signs @ g) * signs).sum(axis=1).max()
    assert root_bounds(g, np.inf) >= largest - 1e-9
    assert root_bounds(g, float((np.abs(t).sum(axis=1) ** 2).sum())) >= largest - 1e-9
    off = g - np.diag(np.diag(g))
    assert bounded(off, rng.normal(size=k)) >= ((signs @ off) * signs).sum(axis=1).max() - 1e-9


@examples(50)
@given(seed=st.integers(0, 2**32 - 1), clusters=st.integers(2, 40), cells=st.integers(1, 6), whole=st.booleans())
def test_what_units_add_up_to(seed, clusters, cells, whole):
    held = drawn(seed, clusters, cells, whole)
    assert held.size.max() <= held.largest * (1 + 1e-12)
    assert np.allclose(np.bincount(held.cluster, held.weight), held.size)
    cell = np.round(held.p * max(cells - 1, 1)).astype(np.int64)
    tallies = held.tallies(cell, cells, held.p)
    table = np.zeros((clusters, cells))
    np.add.at(table, (held.cluster, cell), held.weight * (held.y - held.p))
    assert np.allclose(tallies.witnessed(np.ones(cells)), table.sum(axis=1))
    assert np.allclose(tallies.by_block(square=True).sum(axis=0), (table**2).sum(axis=0))
    own = table[held.certified]
    square = own.sum(axis=0) ** 2 - (own**2).sum(axis=0)
    if held.total:
        assert np.isclose(tallies.debiased, np.sqrt(np.maximum(square, 0)).sum() / held.total, atol=1e-7)
    group = held.cluster % 2 == 0
    part = held.within(group)
    assert part.largest <= held.largest
    assert part.count == len(np.unique(held.cluster[group]))
    assert Above.of(part.tallies(cell[group], cells, part.p)).limit(0.05) <= 1.0


@examples(50)
@given(seed=st.integers(0, 2**32 - 1), clusters=st.integers(4, 40), cells=st.integers(1, 6))
def test_a_bet_knows_nothing_of_its_unit_or_later_ones(seed, clusters, cells):
    held = drawn(seed, clusters, cells, whole=False)
    order = orders_of(seed)[0]
    turn = np.argsort(np.concatenate([[0], order]))[held.block]  # when each unit is bet on, pilots first
    rng = np.random.default_rng(seed)
    now = int(rng.integers(1, 9))
    later = (turn >= now)[held.cluster]
    other = replace(
        held,
        input_weights=np.where(later, held.input_weights * rng.uniform(0.1, 1.0, len(held.p)), held.input_weights),
        y=np.where(later, 1 - held.y, held.y).astype(np.int8),
    )
    same = (turn <= now)[held.certified]
    found, changed = (
        below_of(u.tallies(np.round(u.p * max(cells - 1, 1)).astype(np.int64), cells, u.p), 0.999, seed, few=True)
        for u in (held, other)
    )
    for a, b in zip(found.wagers[:7], changed.wagers[:7], strict=True):  # of the first order, and below the largest
        assert np.array_equal(a.bet[same], b.bet[same])
