"""No masked count follows from what an audit shows: exact linear algebra over the rationals."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import calibrant as cal
from calibrant.audit.checks.reliability import Few, bins_of
from calibrant.audit.context import AuditContext
from calibrant.audit.decisions import groups, reported
from calibrant.audit.judging import Judging
from calibrant.audit.pooling import MASK, group_populations, pair_pools, pool_levels, pool_pairs, sharing
from calibrant.decisions.ladder import Ladder
from calibrant.stats.smoothing import clusters_new, starts_of
from calibrant.views import sample
from calibrant.views.unlabelled import Cells, kept_sketch
from effort import examples
from towns import TOWNS, people

counts = st.one_of(st.integers(0, 60), st.sampled_from([0, 1, 19, 20, 21, 500]))
vectors = st.lists(counts, min_size=1, max_size=9)
tables = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(counts, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
        lambda v: np.array(v).reshape(shape)
    )
)


def reduced(rows: Sequence[Sequence[int]]) -> list[list[Fraction]]:
    """Reduced row echelon form, without its zero rows."""
    a = [[Fraction(int(v)) for v in row] for row in rows]
    done, width = 0, len(a[0]) if a else 0
    for column in range(width):
        pivot = next((i for i in range(done, len(a)) if a[i][column]), None)
        if pivot is None:
            continue
        a[done], a[pivot] = a[pivot], a[done]
        a[done] = [v / a[done][column] for v in a[done]]
        for i in range(len(a)):
            if i != done and a[i][column]:
                a[i] = [v - a[i][column] * w for v, w in zip(a[i], a[done], strict=True)]
        done += 1
    return a[:done]


def determined(equations: Sequence[Sequence[int]], target: Sequence[int]) -> bool:
    """Tell whether the equations fix the target: whether it lies in their row space."""
    return len(reduced([*equations, target])) == len(reduced(equations))


def indicator(members: Sequence[int], size: int) -> list[int]:
    chosen = set(members)
    return [int(i in chosen) for i in range(size)]


def test_determined():
    assert determined([[1, 1, 0], [0, 1, 0]], [1, 0, 0])
    assert not determined([[1, 1, 0], [0, 0, 1]], [1, 0, 0])
    assert not determined([], [1])


def recoverable(groups: Sequence[Sequence[int]], margins: Sequence[Sequence[int]], rows: Sequence[int]) -> list[int]:
    """Small cells that follow from the shown groups, the margins, the total, and which cells are empty."""
    size = len(rows)
    empty = [[i] for i in range(size) if not rows[i]]
    equations = [indicator(g, size) for g in (*groups, *margins, range(size), *empty)]
    small = [i for i in range(size) if 0 < rows[i] < MASK]
    return [i for i in small if determined(equations, indicator([i], size))]


@examples(150)
@given(vectors)
def test_one_way_counts_are_not_recoverable(rows):
    groups = pool_levels(rows, MASK)
    if len([r for r in rows if r]) > 1:  # one level alone is the total, which is always known
        assert not recoverable(groups, [], rows)
    assert all(sum(rows[i] for i in g) >= MASK for g in groups)


@examples(150)
@given(vectors, st.booleans())
def test_levels_in_order_are_pooled_in_runs_and_are_not_recoverable(rows, missing):
    order = range(len(rows) - missing)
    groups = pool_levels(rows, MASK, order)
    if len([r for r in rows if r]) > 1:
        assert not recoverable(groups, [], rows)
    assert all(sum(rows[i] for i in g) >= MASK for g in groups)
    for g in groups:
        placed = sorted(i for i in g if i in order)
        assert all(rows[i] == 0 or i in placed for i in range(min(placed, default=0), max(placed, default=-1) + 1))


@pytest.mark.slow
@examples(100)
@given(tables)
def test_two_way_counts_are_not_recoverable_even_from_the_margins(table):
    groups, size = pool_pairs(table, MASK), table.size
    index = np.arange(size).reshape(table.shape)
    margins = [*index.tolist(), *index.T.tolist()]
    known = set(recoverable([], margins, table.reshape(-1)))  # by the margins alone: nothing an audit shows
    assert set(recoverable(groups, margins, table.reshape(-1))) <= known
    shown = np.zeros(size, dtype=bool)
    shown[[g[0] for g in groups if len(g) == 1]] = True
    rests = np.where(shown, 0, table.reshape(-1)).reshape(table.shape)
    whole = [rests.sum(axis=axis)[table.sum(axis=axis) >= MASK] for axis in (0, 1)]
    assert not groups or all(not 0 < rest < MASK for side in whole for rest in side.tolist())
    assert all(table.reshape(-1)[list(g)].sum() >= MASK for g in groups)


@examples(200)
@given(st.one_of(vectors.map(lambda v: (pool_levels, v)), tables.map(lambda t: (pool_pairs, t))))
def test_groups_are_disjoint_and_only_the_last_is_a_pool(case):
    pool, rows = case
    flat = np.asarray(rows).reshape(-1)
    groups = pool(rows, MASK)
    members = [i for g in groups for i in g]
    assert len(members) == len(set(members))
    if groups:
        assert set(members) == set(np.flatnonzero(flat).tolist())
    assert all(len(g) == 1 for g in groups[:-1])
    assert all(flat[g[0]] >= MASK for g in groups if len(g) == 1)


@examples(100)
@given(vectors, st.permutations(range(9)))
def test_pools_do_not_depend_on_the_order_of_distinct_counts(rows, order):
    if len(set(rows)) < len(rows):
        return  # equal counts are told apart by position
    order = [i for i in order if i < len(rows)]
    shuffled = pool_levels([rows[i] for i in order], MASK)
    assert {frozenset(order[i] for i in g) for g in shuffled} == {frozenset(g) for g in pool_levels(rows, MASK)}


def pooled_tables(table: Any) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """What an audit of two variables and their pairs shows: sums over levels, over pairs, and pairs that have nobody.

    The pairs are of levels as shown, pooled. Somebody who knows from elsewhere which pairs of finer levels have nobody
    may learn more: of [[0, 1, 20], [20, 0, 0]], that the second column holds one person.
    """
    index = np.arange(table.size).reshape(table.shape)
    first, second = (pool_levels(table.sum(axis=i).tolist(), MASK) for i in (1, 0))
    spec = SimpleNamespace(by_name={"b": SimpleNamespace(labels=range(table.shape[1]))})
    pairs = pair_pools(table.reshape(-1), first, second, spec, ("a", "b"))
    levels = [index[list(g)].reshape(-1) for g in first] + [index[:, list(g)].reshape(-1) for g in second]
    blocks = [index[np.ix_(a, b)].reshape(-1) for a in first for b in second if pairs]
    empty = [block for block in blocks if not table.reshape(-1)[block].sum()]
    known = [levels, pairs, [*([i] for block in empty for i in block), range(table.size)]]
    return tuple([indicator(list(g), table.size) for g in part] for part in known)


def small_levels(table: Any) -> list[list[int]]:
    """Levels of either variable with too few people to be shown."""
    index, out = np.arange(table.size).reshape(table.shape), []
    for axis, by_variable in ((1, index), (0, index.T)):
        rows = table.sum(axis=axis)
        out += [indicator(by_variable[i].tolist(), table.size) for i in range(len(rows)) if 0 < rows[i] < MASK]
    return out


@pytest.mark.slow
@examples(150)
@given(tables)
def test_nothing_small_follows_from_all_tables_together(table):
    levels, pairs, rest = pooled_tables(table)
    everything = [*levels, *pairs, *rest]
    for level in small_levels(table):
        assert determined(rest, level) or not determined(everything, level)
    for i in np.flatnonzero((table > 0) & (table < MASK)):  # margins alone may tell a cell: they have no pairs
        cell = indicator([int(i)], table.size)
        assert determined([*levels, *rest], cell) or not determined(everything, cell)


LEAKY = np.array([[3, 2, 0], [25, 25, 0], [20, 20, 60], [200, 0, 300]])


def test_a_masked_level_does_not_follow_from_the_table_of_pairs():
    """Pooled each on its own, pairs showed all of level 1 (25 + 25) and its variable levels 0 + 1 = 55."""
    known = [equation for part in pooled_tables(LEAKY) for equation in part]
    assert len(small_levels(LEAKY)) == 1
    assert not determined(known, small_levels(LEAKY)[0])
    apart = [indicator([3], 12), indicator([4], 12), indicator(range(6), 12), indicator([2], 12), indicator([5], 12)]
    assert determined(apart, indicator([0, 1], 12))


def test_audit_shows_what_these_tests_assume():
    pairs = [(f"a{i}", f"b{j}") for i, j in np.ndindex(LEAKY.shape) for _ in range(LEAKY[i, j])]
    a, b = (np.array(v) for v in zip(*pairs, strict=True))
    data = cal.predictions(np.arange(len(a)) % 2, np.full(len(a), 0.5), {"a": a, "b": b})
    whole = cal.sketch(data, by=["a", "b"], intersections=True)
    rows = {tuple(level for _, level in name): q.n for name, q, _ in group_populations(whole)}
    assert rows[("a1 + 1 more",)] == 55
    assert rows[("a1 + 1 more", "b0")] == 28
    assert not [name for name in rows if name[0] in ("a0", "a1")]


# ---- what exact numbers of several tables tell together ----


def sketched(data: dict[str, Any], **how: Any) -> cal.Sketch:
    return cal.sketch(data, label="y", score="p", by=["town", "county"], **how)


@pytest.mark.parametrize("intersections", [True, False])
def test_a_town_that_follows_from_its_county_is_seen_by_table_and_by_rows(intersections: bool) -> None:
    """The tiny town is pooled with one of another county, so that the county less its other towns is the tiny one."""
    county = np.where(np.isin(TOWNS, ["big", "mid"]), "n", "s")
    for where, expected in ((county, ("town", "county")), (np.resize(["n", "s"], len(TOWNS)), ())):
        data = people(where)
        rows = cal.predictions(data["y"], data["p"], {k: data[k] for k in ("town", "county")})
        whole = cal.sketch(rows, by=["town", "county"], intersections=intersections, variables="*", tests=True)
        held = None if intersections else rows
        assert sharing(whole, held, 20) == expected


def test_columns_that_nobody_crossed_are_rounded_where_one_has_a_pool() -> None:
    assert sharing(sketched(people()), None, 20) == ("town", "county")
    assert sharing(sketched(people()), None, 5) == ()


@pytest.mark.parametrize(
    ("n", "threshold", "low", "high"),
    [(1900, 0.4, 0.4001, 0.4049), (19_000, 0.205, 0.205001, 0.205016)],  # the second lies within a cell of the score
)
def test_thresholds_leave_no_few_people_next_to_a_range_of_the_score(
    n: int, threshold: float, low: float, high: float
) -> None:
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.uniform(0.0, 1.0, n), rng.uniform(low, high, 12)])
    q = sample.everyone(cal.sketch(cal.predictions((rng.random(len(p)) < p).astype(int), p)))
    for decisions in ((), (Ladder.of(q, threshold),)):
        edges = bins_of(q, 100, 0.05, Few(20, decisions)).columns["x_low"]
        between = [int(((p >= min(e, threshold)) & (p < max(e, threshold))).sum()) for e in edges]
        assert bool(decisions) == (min((k for k in between if k), default=20) >= 20)


def visits() -> tuple[NDArray[np.int64], pa.Table]:
    """Sixty people of thirty visits each, whose scores, dates and outcomes are alike: a range of each has few people.

    One person was lost; one has no age.
    """
    rng, person = np.random.default_rng(1), np.repeat(np.arange(60), 30)
    p = np.clip(rng.beta(2, 4, 60)[person] + rng.normal(0.0, 0.02, len(person)), 0.01, 0.99)
    y = np.where(rng.random(len(p)) < p, "yes", np.where(person == 3, "lost", "no"))
    day = np.datetime64("2024-01-01") + (6 * person + rng.integers(0, 6, len(p))).astype("timedelta64[D]")
    age = pa.array(20.0 + person % 40, mask=person == 5)
    return person, pa.table({"y": y, "p": p, "person": person, "seen": pa.array(day), "age": age})


HOW: Any = {"label": "y", "score": "p", "positive": "yes", "cluster": "person", "quick": True, "threshold": [0.2, 0.4]}


@pytest.mark.slow
def test_where_rows_share_clusters_no_part_of_a_record_is_of_few_people() -> None:
    person, data = visits()
    record, p, day = cal.audit(data, **HOW), data["p"].to_numpy(), data["seen"].to_numpy()
    bins = record.curve("bins").columns
    cuts = [*bins["x_low"], *record.curve("decisions").columns["acts_from"], 1.1]
    for cut in cuts:  # people below it, above it, and between it and the next: of the score, and where it is decided
        for other in cuts:
            between = len(np.unique(person[(p >= cut) & (p < other)]))
            assert between == 0 or between >= 20, (cut, other, between)
    low = cal.audit(data, **{k: v for k, v in HOW.items() if k != "threshold"}).curve("bins").columns["x_low"]
    assert all(len(np.unique(person[(p >= a) & (p < b)])) >= 20 for a, b in pairwise((*low, 1.1)))
    at = record.curve("decision_curve").columns["threshold"]
    assert all(len(np.unique(person[(p >= a) & (p < b)])) >= 20 for a, b in pairwise((0.0, *at, 1.1)))
    first, last = (np.datetime64(record.data["arrival"][k]) for k in ("first", "last"))
    assert min(len(np.unique(person[day <= first])), len(np.unique(person[day >= last]))) >= 20
    assert record.data["other_labels"] == {"lost": None, "no": None}
    assert record.data["columns"]["age"]["missing"] > 19 / 60


def test_values_of_the_label_that_few_people_have_do_not_follow_from_the_others() -> None:
    y = np.repeat(["yes", "no", "unknown", "lost"], [900, 1000, 60, 5])
    p = np.linspace(0.01, 0.99, len(y))
    others = cal.audit({"y": y, "p": p}, label="y", score="p", positive="yes", quick=True).data["other_labels"]
    assert others == {"no": 1000, "lost": None, "unknown": None}


def test_people_without_a_label_are_counted_by_cluster_along_the_score() -> None:
    person, data = visits()
    p, known = data["p"].to_numpy(), np.arange(len(person)) % 3 > 0
    y = np.where(known, data["y"].to_numpy(zero_copy_only=False) == "yes", np.nan)
    cells = Cells.of(kept_sketch(cal.predictions(y, p, cluster=person, missing="keep"), 0))
    assert len(cells.ranges(10)) == 10
    ranges = cells.ranges(10, 20)
    assert len(ranges) > 1
    for a, b in ranges:
        inside = (p >= a / 1024) & (p < b / 1024)
        assert min(len(np.unique(person[inside])), len(np.unique(person[inside & known]))) >= 20


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=1, max_size=60), st.integers(1, 5))
@examples(50)
def test_runs_of_cells_hold_clusters_enough(rows: list[tuple[int, int]], fewest: int) -> None:
    cell, cluster = (np.array(v) for v in zip(*rows, strict=True))
    starts = starts_of(7, clusters_new(cell, cluster, 7), fewest)
    within = [len(np.unique(cluster[(cell >= a) & (cell < b)])) for a, b in pairwise([*starts, 7])]
    assert len(starts) == 1 or min(within) >= fewest
    new = clusters_new(cell, cluster, 7)
    assert sum(new(i, 2) for i in range(2, 7)) == len(np.unique(cluster[cell >= 2]))


def test_of_a_table_of_pairs_with_a_pool_no_decision_is_reported() -> None:
    """Every group has people enough on both sides; of the pool's cells, one of 16 has not."""
    table = np.array([[400, 200, 100], [300, 160, 60], [120, 80, 16]])
    cell = np.repeat(np.arange(9), table.reshape(-1))
    data = {"y": np.arange(len(cell)) % 2, "p": np.resize([0.25, 0.75], len(cell))}
    data |= {"a": np.array(list("xyz"))[cell // 3], "b": np.array(list("uvw"))[cell % 3]}
    whole = cal.sketch(data, label="y", score="p", by=["a", "b"], intersections=True)
    context = AuditContext(whole, Judging.of(gates=(), threshold=[0.5]))
    every, pairs = groups(context), {2}
    assert min(one.least(0) for one in every) >= MASK
    assert any(one.grouping in pairs for one in every)
    assert {one.grouping for one in reported(every, 0, MASK, pairs)} == {0, 1}


def test_levels_in_order_are_pooled_with_neighbours() -> None:
    assert pool_levels([3, 50, 400, 30, 2], 20, range(5)) == [(2,), (0, 1), (3, 4)]
    assert pool_levels([50, 3, 400, 7], 20, range(3)) == [(2,), (0, 1, 3)]  # the last has no place
    assert pool_levels([12, 30], 20, range(2)) == []
