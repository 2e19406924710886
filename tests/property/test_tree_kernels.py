"""Trees and cells: compiled equals reference."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oracles.trees
from calibrant.kernels import trees
from calibrant.kernels.trees import Columns, Grouping, Rule, Tree
from effort import examples


@examples(60)
@given(st.integers(0, 2**32), st.integers(1, 200), st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 2, 7, 52]))
def test_trees(seed, n, d, depth, bins):
    g = np.random.default_rng([0x7EE5, seed])
    codes = g.integers(0, bins, (n, d)).astype(np.uint8)
    ordered = g.uniform(size=d) < 0.5
    y, log_odds, weight = (g.uniform(size=n) < 0.4).astype(np.int8), g.normal(size=n), g.uniform(0.5, 2, n)
    a, b = (np.empty((2, n)) for _ in range(2))
    trees.gradients(log_odds, y, weight, *a)
    oracles.trees.gradients(log_odds, y, weight, *b)
    np.testing.assert_allclose(a, b, rtol=1e-13)
    rows = np.sort(g.choice(n, g.integers(1, n + 1), replace=False)).astype(np.int32)
    rule = Rule(depth, g.uniform(0.1, 5), g.choice([0.0, 0.5, 4.0]))
    grown = [m.grow(Columns(codes, ordered), *b, rows, rule) for m in (trees, oracles.trees)]
    for one, other in zip(*grown, strict=True):
        np.testing.assert_array_equal(one, other)
    forest = Tree(*(np.stack([v, v]) for v in grown[0]))
    sums = [log_odds.copy(), log_odds.copy()]
    trees.add_trees(codes, forest, sums[0])
    oracles.trees.add_trees(codes, forest, sums[1])
    np.testing.assert_array_equal(*sums)


@examples(40)
@given(st.integers(0, 2**32), st.integers(1, 100), st.integers(-1, 2), st.integers(-1, 2), st.integers(1, 12))
def test_level_shifts(seed, n, first, second, levels):
    g = np.random.default_rng([0x7EE6, seed])
    codes = g.integers(0, 52, (n, 3)).astype(np.uint8)
    p = np.where(g.uniform(size=n) < 0.3, g.choice([0.0, 0.5, 1.0], n), g.uniform(size=n))
    y, weight = g.integers(0, 2, n).astype(np.int8), g.uniform(0.5, 2, n)
    both, by = (trees, oracles.trees), Grouping(first, second, levels)
    sums = [m.cell_sums(codes, by, y, p, weight) for m in both]
    np.testing.assert_array_equal(*sums)
    table = g.normal(0, 0.3, len(sums[0]))
    shifted = [p.copy(), p.copy()]
    for m, q in zip(both, shifted, strict=True):
        m.gap(codes, by, table, q)
    np.testing.assert_array_equal(*shifted)
