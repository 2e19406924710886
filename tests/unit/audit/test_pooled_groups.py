"""No small count follows from what an audit shows, with pair tables beside single variables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.pooling import group_populations


def shown(columns: dict[str, list[str]]) -> dict[tuple[tuple[str, str], ...], int]:
    n = len(next(iter(columns.values())))
    data = pa.table({"y": np.arange(n) // 3 % 2, "p": np.full(n, 0.5), **columns})
    whole = cal.sketch(data, label="y", score="p", by=list(columns), intersections=True)
    return {name: q.n for name, q, _ in group_populations(whole)}


def test_a_level_pooled_alone_stays_pooled_in_pairs() -> None:
    a = ["q"] * 60 + ["r"] * 6 + ["s"] * 200
    b = ["1", "2"] * 133
    groups = shown({"a": a, "b": b})
    assert groups == {
        (("a", "s"),): 200,
        (("a", "q + 1 more"),): 66,
        (("b", "1"),): 133,
        (("b", "2"),): 133,
        (("a", "s"), ("b", "1")): 100,
        (("a", "s"), ("b", "2")): 100,
        (("a", "q + 1 more"), ("b", "1")): 33,
        (("a", "q + 1 more"), ("b", "2")): 33,
    }


@pytest.mark.parametrize("seed", range(40))
def test_no_small_cell_or_level_is_a_difference_of_shown_counts(seed: int) -> None:
    """Solve for every unknown level and cell count from all that is shown: no small one may be determined."""
    rng = np.random.default_rng([seed, 77])
    n = int(rng.integers(60, 700))
    pa_, pb = rng.dirichlet(np.full(int(rng.integers(2, 6)), 0.5)), rng.dirichlet(np.full(int(rng.integers(2, 5)), 0.5))
    a, b = rng.choice(len(pa_), n, p=pa_), rng.choice(len(pb), n, p=pb)
    columns = {"a": [f"a{v}" for v in a], "b": [f"b{v}" for v in b]}
    data = pa.table({"y": np.arange(n) // 3 % 2, "p": np.full(n, 0.5), **columns})
    whole = cal.sketch(data, label="y", score="p", by=["a", "b"], intersections=True)
    counts = np.zeros((len(pa_), len(pb)), int)
    np.add.at(counts, (a, b), 1)
    rows, cells = [np.ones(counts.size)], counts.size
    for grouping, (name, members) in _members(whole):
        mask = np.zeros(counts.shape)
        for level in members:
            ia = [int(v[1:]) for k, v in level if k == "a"]
            ib = [int(v[1:]) for k, v in level if k == "b"]
            mask[np.ix_(ia or range(len(pa_)), ib or range(len(pb)))] = 1
        rows.append(mask.reshape(-1))
        assert (counts * mask).sum() >= 20, (grouping, name)
    known = [np.eye(cells)[i] for i in range(cells) if counts.reshape(-1)[i] == 0]  # absent cells may be guessed
    basis = np.array(rows + known)
    targets = [np.eye(cells)[i] for i in range(cells) if 0 < counts.reshape(-1)[i] < 20]
    for i in range(len(pa_)):
        if 0 < counts[i].sum() < 20:
            t = np.zeros(counts.shape)
            t[i] = 1
            targets.append(t.reshape(-1))
    for j in range(len(pb)):
        if 0 < counts[:, j].sum() < 20:
            t = np.zeros(counts.shape)
            t[:, j] = 1
            targets.append(t.reshape(-1))
    rank = np.linalg.matrix_rank(basis)
    for t in targets:
        assert np.linalg.matrix_rank(np.vstack([basis, t])) > rank


def _members(whole: cal.Sketch) -> list[tuple[int, tuple[object, list[tuple[tuple[str, str], ...]]]]]:
    """Each shown group with the elementary groups it is made of."""
    from calibrant.audit import pooling

    out = []
    original = pooling.groups_of
    labels = [name for g in range(len(whole.spec.groupings)) for name in whole.spec.group_names(g)]
    seen: list[list[int]] = []

    def spy(data: object, sketch: object, groups: list[list[int]], seed: int) -> object:
        seen.extend(map(list, groups))
        return original(data, sketch, groups, seed)  # type: ignore[arg-type]

    pooling.groups_of = spy  # type: ignore[assignment]
    try:
        groups = group_populations(whole)
    finally:
        pooling.groups_of = original
    for (name, _, _), indices in zip(groups, seen, strict=True):
        out.append((len(name), (name, [labels[i] for i in indices])))
    return out
