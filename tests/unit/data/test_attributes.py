"""How the score and covariates are cut into cells: by few digits, by levels that are not rare, never by labels."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.columns import Floats
from calibrant.data.layouts import DAY
from calibrant.data.specs.attributes import BINS, MOST, NEAR, Attribute, attributes_of, between, cells_of, edges_of
from calibrant.data.specs.coding import codings, encode
from calibrant.errors import BadInput, NotComputable
from calibrant.views.boxes import condition, tables_of
from calibrant.views.rules import columns_of, text_of
from effort import examples

NUMBERS = st.floats(allow_nan=True, allow_infinity=False)
TINY, HUGE = 5e-324, 1.7976931348623157e308


def cut(values: Any, p: Any = None) -> tuple[Attribute, Any]:
    """The trait of one column, and the cell of each of its rows."""
    table = pa.table({"v": values})
    how = codings(table)
    p = np.full(len(table), 0.5) if p is None else p
    attributes = attributes_of(p, table, how)
    return attributes[1], cells_of(attributes, p, encode(table, how), how)[1]


# ---- Edges ----


@examples(100)
@given(st.lists(NUMBERS, max_size=60), st.booleans(), st.randoms(use_true_random=False))
@example([0.0, -0.0, TINY, -TINY], False, None)
@example([HUGE, -HUGE, 0.0], False, None)
@example([HUGE, np.nextafter(HUGE, 0), -HUGE], False, None)
@example([np.nan], False, None)
@example([], False, None)
def test_edges_part_the_values(given_values: list[float], whole: bool, random: Any) -> None:
    values = np.floor(np.array(given_values, dtype=float)) if whole else np.array(given_values, dtype=float)
    edges = edges_of(values, "number", whole)
    there = np.unique(values[~np.isnan(values)])
    assert list(edges) == sorted(set(edges))
    assert len(edges) < BINS
    assert not whole or all(e == np.floor(e) for e in edges)
    assert not any(np.signbit(e) and e == 0.0 for e in edges)
    attribute = Attribute(name="v", kind="number", edges=edges, whole=whole)
    attribute.check("here", None)
    cells = attribute.cells(values)
    assert (cells[np.isnan(values)] == attribute.size - 1).all()
    assert (cells[~np.isnan(values)] < attribute.size - 1).all() if len(there) else not edges
    # every cell holds some of the values that it was made of, and a cell holds its upper edge
    assert set(attribute.cells(there).tolist()) == set(range(attribute.size - 1 if len(there) else 0))
    assert attribute.cells(np.array(edges)).tolist() == list(range(len(edges)))
    if len(there) <= BINS:
        assert len(edges) == max(len(there) - 1, 0)
    if random is not None:
        random.shuffle(given_values)
        again = np.array(given_values, dtype=float)
        again = (np.floor(again) if whole else again) * (-1.0 if set(there) <= {0.0} else 1.0)
        assert edges_of(again, "number", whole) == edges


@examples(60)
@given(st.integers(0, 2**32), st.sampled_from(["normal", "cauchy", "tiny", "rounded", "poisson", "atom"]))
def test_edges_lie_near_the_tenths_of_the_rows(seed: int, law: str) -> None:
    g = np.random.default_rng([0x7EA1, seed])
    z = g.normal(size=2000)
    laws: dict[str, Floats] = {
        "normal": z,
        "cauchy": g.standard_cauchy(2000),
        "tiny": z * 1e-300,
        "rounded": np.round(z, 1),
        "poisson": g.poisson(40.0, 2000).astype(float),
        "atom": np.where(g.random(2000) < 0.45, 0.0, z),
    }
    values = laws[law]
    edges = edges_of(values, "number", law == "poisson")
    below = np.array([(values <= e).mean() for e in edges])
    reached = np.unique(values, return_counts=True)[1].cumsum()[:-1] / len(values)
    for tenth in np.arange(1, BINS) / BINS:
        off = np.abs(below - tenth).min()
        assert off <= max(NEAR, np.abs(reached - tenth).min()) + 1e-9  # nearer no value parts the rows
    assert all(float(f"{e:.3g}") == e for e in edges)


@pytest.mark.parametrize(
    ("low", "high", "whole", "threshold"),
    [
        (0.79812, 0.80231, False, 0.8),
        (17.0, 18.0, True, 17.0),
        (0.0, 1.0, True, 0.0),
        (-1.0, 0.0, True, -1.0),
        (0.0, 0.000321, False, 0.0),
        (-0.31, 0.27, False, 0.0),
        (-0.0, 2.0, False, 0.0),
        (0.12, 0.13, False, 0.12),
        (0.12, 0.1300001, False, 0.12),
        (0.1234, 0.1311, False, 0.13),
        (20_000.0, 21_000.0, True, 20_000.0),
        (123_456.0, 131_311.0, True, 130_000.0),
        (-HUGE, HUGE, False, 0.0),
        (HUGE / 2, HUGE, False, 1e308),
        (1.0, np.nextafter(1.0, 2.0), False, 1.0),
        (np.nextafter(1.0, 0.0), 1.0, False, np.nextafter(1.0, 0.0)),
        (TINY, 2 * TINY, False, TINY),
        (2.0**53, 2.0**53 + 2, True, 2.0**53),
    ],
)
def test_thresholds_have_few_digits(low: float, high: float, whole: bool, threshold: float) -> None:
    found = between(low, high, "number", whole)
    assert low <= found < high
    assert found == threshold
    assert not np.signbit(found) or found < 0.0


@examples(60)
@given(st.floats(-6e4, 6e4), st.floats(1e-10, 1e3), st.sampled_from([DAY, 1_000_000, 1]))
@example(-719_162.0, 1e-9, 1)
@example(2_932_895.9, 1e-9, 1)
def test_times_are_parted_at_round_times(low: float, length: float, step: int) -> None:
    first = round(low * DAY) // step * step
    stop = first + max(round(length * DAY) // step, 1) * step
    found = between(first / DAY, stop / DAY, "date", step == DAY)
    assert first / DAY <= found < stop / DAY or first / DAY == stop / DAY
    if abs(first) >= 65_536 * DAY:
        return  # days in 64 bits do not tell microseconds apart
    tick = round(found * DAY)
    for coarser in (DAY, DAY // 24, 1_000_000):
        if -(-first // coarser) * coarser < stop:
            assert tick % coarser == 0
            break


def test_dates_have_no_time_of_day_where_the_data_has_none() -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(400)]
    attribute, cells = cut(days)
    assert (attribute.kind, attribute.whole, len(attribute.edges)) == ("date", True, BINS - 1)
    assert all(e == np.floor(e) for e in attribute.edges)
    assert np.bincount(cells).tolist() == pytest.approx([40] * 10, abs=7)
    last = condition(attribute, np.array([9, 10, 10, 10]))
    assert last.text.startswith("v after 2024-12-")


def test_few_values_have_a_cell_each() -> None:
    attribute, cells = cut([1.0, 2.0, 4.0, None, 2.0])
    assert attribute.edges == (1.0, 2.0)
    assert cells.tolist() == [0, 1, 2, 3, 1]
    assert text_of([condition(attribute, np.array([1, 2, 2, 2]))]) == "v over 1, up to 2"
    assert cut(list(range(10)))[0].edges == tuple(range(9))


def test_one_value_and_missing_ones_are_two_cells() -> None:
    attribute, cells = cut([3.0, None, 3.0])
    assert (attribute.edges, attribute.size, cells.tolist()) == ((), 2, [0, 1, 0])


def test_a_value_that_most_rows_have_is_a_cell() -> None:
    attribute, cells = cut(np.concatenate([np.zeros(970), np.linspace(0.001, 40.0, 30)]))
    assert attribute.edges == (0.0,)
    assert np.bincount(cells).tolist() == [970, 30]
    heavy = np.concatenate([np.linspace(-1.0, -0.001, 300), np.zeros(400), np.linspace(0.001, 1.0, 300)])
    attribute, cells = cut(heavy)
    assert 0.0 in attribute.edges
    assert len(set(cells[300:700].tolist())) == 1


# ---- Levels ----


def rows_of(counts: dict[str | None, int]) -> pa.Array:
    return pa.array([v for v, n in counts.items() for _ in range(n)], pa.string())


def test_levels_that_are_not_rare_have_a_cell() -> None:
    attribute, cells = cut(rows_of({"a": 500, "b": 480, "c": 10, "d": 9, None: 1}))
    assert (attribute.levels, attribute.labels) == (("a", "b", "c"), ("a", "b", "c", "other", "missing"))
    assert np.bincount(cells).tolist() == [500, 480, 10, 9, 1]


@pytest.mark.parametrize(("levels", "kept"), [(1, 1), (2, 2), (20, 20), (30, 20), (101, 0), (4000, 0)])
def test_numbers_of_levels(levels: int, kept: int) -> None:
    attribute, cells = cut(rows_of({f"v{i:04}": 3 for i in range(levels)} | {None: 1}))
    assert attribute.levels == tuple(f"v{i:04}" for i in range(kept))
    assert attribute.size == kept + 2
    expected = [3] * kept + [3 * (levels - kept)] + [1]
    assert np.bincount(cells, minlength=attribute.size).tolist() == expected


def test_a_rare_truth_value_is_not_taken_for_the_other() -> None:
    """Truth values come in the order of the alphabet, whichever is frequent."""
    attribute, cells = cut(pa.array([False] * 5 + [True] * 995))
    assert attribute.levels == ("true",)
    assert np.bincount(cells, minlength=3).tolist() == [995, 5, 0]
    assert (cells[:5] == 1).all()


def test_levels_called_other_and_missing() -> None:
    """A rule about absent values does not name, nor select, the value "missing", be it frequent or rare."""
    for often in (300, 2):
        values = rows_of({"a": 500, "missing": often, "other": often, "rare": 1, None: 200})
        data = cal.predictions(np.resize([0, 1], len(values)), np.linspace(0, 1, len(values)), pa.table({"v": values}))
        tables = tables_of(data, None, 1, 0)
        attribute = tables.attributes[1]
        assert attribute.rest == ("(other)", "(missing)")
        absent = condition(attribute, np.array([attribute.size - 1, attribute.size, attribute.size, attribute.size]))
        assert absent.text == "v = (missing)"
        selected = columns_of(data, None).select(absent)
        assert selected.tolist() == values.is_null().to_pylist()
        assert (tables.sample_rows.cells[1][selected] == attribute.size - 1).all()  # type: ignore[union-attr]
        # and each set of cells selects the rows that its rule does
        for own in tables.sets[1]:
            inside = np.isin(tables.sample_rows.cells[1], [*range(own[0], own[1]), *range(own[2], own[3])])  # type: ignore[union-attr]
            np.testing.assert_array_equal(columns_of(data, None).select(condition(attribute, own)), inside)


# ---- The score, and how many covariates ----


def test_the_score_is_cut_too() -> None:
    p = np.linspace(0, 1, 1001)
    score = attributes_of(p, pa.table({}), ())[0]
    assert score.edges == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert cells_of([score], p, encode(pa.table({}), (), len(p)), ()).shape == (1, 1001)
    assert attributes_of(np.full(9, 0.3), pa.table({}), ())[0].size == 2


@pytest.mark.parametrize("name", ["(score)", "the score"])
def test_a_covariate_of_the_scores_name_is_refused(name: str) -> None:
    data = cal.predictions([0, 1], [0.5, 0.6], {name: [1.0, 2.0]})
    with pytest.raises(BadInput, match=rf"'{re.escape(name)}'.*rename"):
        tables_of(data, None, 2, 0)


@pytest.mark.slow
def test_one_trait_too_many() -> None:
    g = np.random.default_rng(3)
    table = pa.table({"y": g.integers(0, 2, 60), "p": g.random(60)} | {f"x{i}": g.random(60) for i in range(MOST + 1)})
    sketch = cal.sketch(table, label="y", score="p", variables="*", tests=True)
    assert "boxes" not in sketch.parts
    rows = cal.predictions(table["y"].to_numpy(), table["p"].to_numpy(), table.select([f"x{i}" for i in range(101)]))
    with pytest.raises(NotComputable, match=r"^101 covariates .*: name at most 100 in variables=, or .*audit"):
        tables_of(sketch, None, 2, 0)
    with pytest.raises(NotComputable, match=r"^101 covariates .*: name at most 100 in variables=, or .*audit"):
        tables_of(rows, None, 2, 0)
    assert len(tables_of(rows, ["x0", "x7"], 2, 0).attributes) == 3


def test_constants_are_left_out_of_rows_and_sketches_alike() -> None:
    n = 200
    columns = {"one": np.ones(n), "none": pa.nulls(n, pa.float64()), "word": ["w"] * n, "x": np.arange(n) * 37 % n / n}
    data = cal.predictions(np.resize([0, 1, 1], n), np.linspace(0.1, 0.9, n), pa.table(columns))
    sketch = cal.sketch(data, variables="*", tests=True)
    rows, kept = (tables_of(given, None, 2, 0) for given in (data, sketch))
    assert [t.name for t in rows.attributes] == [t.name for t in kept.attributes] == ["(score)", "x"]
    np.testing.assert_array_equal(rows.sums, kept.sums)
    assert {name for name, _ in rows.left_out} == {name for name, _ in kept.left_out} == {"one", "none", "word"}
    with pytest.raises(BadInput, match="this sketch holds subgroups of x"):
        tables_of(sketch, "one", 2, 0)
    assert [t.name for t in tables_of(data, "one", 2, 0).attributes] == ["(score)"]
