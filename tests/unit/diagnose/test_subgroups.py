"""Distinct pockets: each error told once and simply, what is left of it, who is in it besides, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data import survey
from calibrant.diagnose.fixed_subgroups import Search
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.subgroups.ranges import RowRanges
from calibrant.stats.subgroups.scan import Left, sums_in
from calibrant.views.boxes import Boxed, tables_of

N = 16_000
LEFT = ("rows_left", "gap_left", "rows", "gap")
Gap = Callable[[Any], Any]


def table(gap: Gap, seed: int = 0, n: int = N, more: Any = None) -> pa.Table:
    """Return rows with six uniform traits, and more, whose rate is the score plus a gap."""
    rng = np.random.default_rng([0xD157, seed])
    x: dict[str, Any] = {f"x{j}": rng.uniform(size=n) for j in range(1, 7)}
    x |= {k: make(rng, x) for k, make in (more or {}).items()}
    p = 1 / (1 + np.exp(-rng.normal(-0.9, 0.6, n)))
    y = rng.random(n) < np.clip(p + gap(x), 0, 1)
    return pa.table({"y": y.astype(int), "p": p, **x})


def rows(made: pa.Table) -> Any:
    return cal.predictions(made.column("y"), made.column("p"), made.drop_columns(["y", "p"]))


def corner(x: Any) -> Any:
    return 0.15 * ((x["x2"] > 0.8) & (x["x3"] > 0.8))


def reported(made: pa.Table, **settings: Any) -> dict[str, dict[str, Any]]:
    """Return the lines of the curve by rule."""
    c = cal.diagnose.subgroups(rows(made), **settings).columns
    return {rule: {k: v[i] for k, v in c.items()} for i, rule in enumerate(c["rule"])}


# ---- Each error is told once ----


def three(x: Any) -> Any:
    either = (x["x2"] > 0.8) & ((x["x3"] > 0.8) | (x["x4"] > 0.8))
    return 0.2 * either - 0.2 * ((x["x5"] <= 0.2) & (x["x6"] <= 0.2))


def test_two_corners_that_overlap_and_one_of_the_other_sign_are_three_pockets() -> None:
    found = reported(table(three))
    sides = {rule: line["side"] for rule, line in found.items()}
    assert sides == {
        "x2 over 0.8 and x3 over 0.8": "underpredicts",
        "x2 over 0.8 and x4 over 0.8": "underpredicts",
        "x5 up to 0.2 and x6 up to 0.2": "overpredicts",
    }
    lines = list(found.values())
    assert all(line["floor"] > 0 for line in lines)
    assert all(line["low"] < line["gap"] < line["high"] for line in lines)
    assert lines[0]["gap_left"] is lines[0]["rows_left"] is None
    assert all(line["rows_left"] > line["rows"] / 2 for line in lines[1:])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [0.07, -0.3])
def test_an_error_of_one_trait_is_told_as_one_trait(seed: int, size: float) -> None:
    found = reported(table(lambda x: size * (x["x4"] > 0.7), seed))
    assert next(iter(found)) == "x4 over 0.7"
    assert len(found) == 1


def test_errors_side_by_side_are_two_pockets() -> None:
    def gap(x: Any) -> Any:
        return (x["x2"] > 0.8) * (0.15 * (x["x3"] > 0.8) - 0.15 * ((x["x3"] <= 0.8) & (x["x3"] > 0.6)))

    found = reported(table(gap))
    assert {r: (line["side"], line["floor"] > 0) for r, line in found.items()} == {
        "x2 over 0.8 and x3 over 0.8": ("underpredicts", True),
        "x2 over 0.8 and x3 over 0.6, up to 0.8": ("overpredicts", True),
    }


def test_a_wide_error_is_told_beside_the_worse_corner_in_it() -> None:
    found = reported(table(lambda x: 0.05 * (x["x2"] > 0.7) + 0.2 * ((x["x2"] > 0.7) & (x["x3"] > 0.8))))
    first, second = list(found)[:2]
    assert (first, second) == ("x2 over 0.7 and x3 over 0.8", "x2 over 0.7")
    assert found[second]["gap_left"] < 0.7 * found[second]["gap"]


def test_of_a_calibrated_model_the_most_suspicious_is_told_and_shown_to_be_nothing() -> None:
    found = cal.diagnose.subgroups(rows(table(lambda _: 0.0)), limit=0.01)
    c = found.columns
    assert len(c["rule"]) == 1
    assert c["floor"] == (0.0,)
    assert c["low"][0] < 0 < c["high"][0]
    assert c["over"] == (False,)
    assert c["stability"][0] < 1


def test_an_error_of_everyone_is_told_as_one_wide_pocket_beside_the_shift() -> None:
    found = cal.diagnose.subgroups(rows(table(lambda _: 0.05)))
    assert len(found.columns["rule"]) == 1
    assert found.columns["share"][0] > 0.8
    assert found.settings["gap"] == pytest.approx(0.05, abs=0.01)


# ---- Categories, missing values, names, orders ----


def test_levels_of_a_category_and_awkward_names_are_told_as_they_are() -> None:
    more = {
        'kind or "type"': lambda rng, _: rng.choice(["a", "b = 1", "not c", "d"], N),
        "up to": lambda rng, _: rng.integers(0, 50, N),
    }
    made = table(lambda x: 0.2 * ((x['kind or "type"'] == "b = 1") & (x["up to"] > 34)), more=more)
    found = cal.diagnose.subgroups(rows(made), variables=list(more))
    rule = found.columns["rule"][0]
    assert set(rule.split(" and ")) == {'"kind or \\"type\\"" = "b = 1"', '"up to" over 33'}
    assert {c["variable"]: c.get("levels") for c in found.settings["conditions"][0]} == {
        'kind or "type"': ("b = 1",),
        "up to": None,
    }


def test_two_levels_make_one_pocket() -> None:
    ward = {"ward": lambda rng, _: rng.choice(list("abcde"), N)}
    made = table(lambda x: -0.1 * np.isin(x["ward"], ["b", "d"]), more=ward)
    found = reported(made, variables=["ward", "x1"])
    assert list(found) in (["ward = b or d"], ["ward = d or b"])


def test_missing_values_are_a_pocket_of_their_own() -> None:
    def income(rng: Any, _: Any) -> Any:
        return np.where(rng.random(N) < 0.1, np.nan, rng.uniform(0, 9, N))

    made = table(lambda x: 0.15 * (np.isnan(x["income"]) & (x["x1"] <= 0.5)), more={"income": income})
    assert next(iter(reported(made, variables=["x1", "income"]))) == "x1 up to 0.5 and income missing"


def test_one_trait_or_three() -> None:
    def fifths(rng: Any, _: Any) -> Any:
        return rng.integers(1, 6, N)

    names = ["a", "b", "c"]
    made = table(lambda x: 0.3 * ((x["a"] > 3) & (x["b"] > 3) & (x["c"] > 3)), more=dict.fromkeys(names, fifths))
    assert next(iter(reported(made, variables=names, order=3))) == "a over 3 and b over 3 and c over 3"
    assert all(" and " not in rule for rule in reported(made, variables=names, order=1))


# ---- What a line says ----


@pytest.mark.slow
def test_lines_say_what_rows_say() -> None:
    made = table(three)
    c = cal.diagnose.subgroups(rows(made), limit=0.05).columns
    x = {k: made.column(k).to_numpy() for k in made.column_names}
    inside = {
        "x2 over 0.8 and x3 over 0.8": (x["x2"] > 0.8) & (x["x3"] > 0.8),
        "x2 over 0.8 and x4 over 0.8": (x["x2"] > 0.8) & (x["x4"] > 0.8),
        "x5 up to 0.2 and x6 up to 0.2": (x["x5"] <= 0.2) & (x["x6"] <= 0.2),
    }
    out = np.zeros(N, dtype=bool)
    for i, rule in enumerate(c["rule"]):
        own = inside[rule]
        assert c["rows"][i] == own.sum()
        assert c["share"][i] == own.mean()
        assert c["predicted"][i] == pytest.approx(x["p"][own].mean(), abs=1e-8)
        assert c["observed"][i] == x["y"][own].mean()
        assert c["gap"][i] == pytest.approx((x["y"] - x["p"])[own].mean(), abs=1e-8)
        spread = np.sqrt((x["p"] * (1 - x["p"]))[own].sum() + 4)
        assert c["evidence"][i] == pytest.approx(abs((x["y"] - x["p"])[own].sum()) / spread, abs=1e-6)
        assert c["floor"][i] == max(c["low"][i], -c["high"][i], 0.0)
        assert c["over"][i] or c["floor"][i] <= 0.05
        if i:
            assert c["rows_left"][i] == (own & ~out).sum()
            assert c["gap_left"][i] == pytest.approx((x["y"] - x["p"])[own & ~out].mean(), abs=1e-8)
        out |= own


def test_an_overlap_of_few_people_is_told_as_none() -> None:
    def gap(x: Any) -> Any:
        return 0.3 * ((x["x1"] > 0.9) & (x["x2"] > 0.9)) + 0.3 * ((x["x3"] > 0.9) & (x["x4"] > 0.9))

    c = cal.diagnose.subgroups(rows(table(gap))).columns
    assert len(c["rule"]) == 2
    assert c["rows_left"][1] == c["rows"][1]  # sixteen would be shared in ten thousand: about two
    assert c["gap_left"][1] == pytest.approx(c["gap"][1], abs=1e-12)


def test_a_firm_pocket_is_found_in_every_half() -> None:
    assert reported(table(corner))["x2 over 0.8 and x3 over 0.8"]["stability"] >= 0.8


def test_besides_tells_what_distinguishes_the_people_without_a_label() -> None:
    def region(rng: Any, x: Any) -> Any:
        inside = (x["x2"] > 0.8) & (x["x3"] > 0.8)
        return np.where(rng.random(N) < np.where(inside, 0.7, 0.2), "north", "south")

    made = table(corner, more={"region": region})
    found = cal.diagnose.subgroups(rows(made))
    (attribute, words, inside, outside), *more = found.settings["besides"][0]
    assert (attribute, words, more) == ("region", "= north", [])
    assert inside == pytest.approx(0.7, abs=0.05)
    assert outside == pytest.approx(0.2, abs=0.02)


def test_no_few_people_are_told_besides() -> None:
    # of a pocket of some 60 people ten are in the north, who hardly occur elsewhere
    def region(_: Any, x: Any) -> Any:
        inside = np.flatnonzero((x["x2"] > 0.8) & (x["x3"] > 0.8))
        out = np.full(len(x["x2"]), "south")
        out[inside[:15]] = "north"
        return out

    made = table(lambda x: 0.5 * ((x["x2"] > 0.8) & (x["x3"] > 0.8)), n=1500, more={"region": region})
    found = cal.diagnose.subgroups(rows(made), variables=["x2", "x3", "region"], min_size=0)
    assert found.columns["rule"][0] == "x2 over 0.8 and x3 over 0.8"
    assert found.settings["besides"][0] == ()


@pytest.mark.slow
def test_the_curve_round_trips_and_is_the_same_again() -> None:
    made = table(three)
    first, again = (cal.diagnose.subgroups(rows(made), limit=0.02) for _ in range(2))
    text = json.dumps(first.to_dict(), allow_nan=False)
    assert text == json.dumps(again.to_dict())
    assert json.dumps(Curve.from_dict(json.loads(text)).to_dict()) == text


# ---- From a sketch ----


def sketched(made: pa.Table) -> Any:
    return cal.sketch(made, label="y", score="p", variables="*", tests=True)


@pytest.mark.slow
def test_a_sketch_of_all_rows_gives_the_same_bits() -> None:
    made = table(three, more={"ward": lambda rng, _: rng.choice(["a", "b", None], N)})
    of_rows = cal.diagnose.subgroups(rows(made), limit=0.02)
    assert cal.diagnose.subgroups(sketched(made), limit=0.02).to_dict() == of_rows.to_dict()


@pytest.mark.slow
def test_a_sketch_with_a_sample_tells_the_same_pockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "KEPT", 8_000)
    made = table(three)
    small, whole = cal.diagnose.subgroups(sketched(made)), cal.diagnose.subgroups(rows(made))
    assert (small.settings["rows_in_sample"], small.settings["n"]) == (8_000, N)
    first = [{k: v[0] for k, v in curve.columns.items() if k != "stability"} for curve in (small, whole)]
    assert first[0] == first[1]  # the first pocket is that of all rows
    assert sorted(small.columns["side"]) == sorted(whole.columns["side"])
    for rows_left, left, count, gap in zip(*(small.columns[k][1:] for k in LEFT), strict=True):
        assert count / 2 < rows_left <= count
        assert left == pytest.approx(gap, abs=0.05)


@pytest.mark.slow
def test_sums_over_a_sample_estimate_what_is_left_with_the_variance_told() -> None:
    """One box, of which a part is taken out, by the sums of a random sample of it."""
    tables = tables_of(rows(table(lambda _: 0.0, n=4_000)), ["x1", "x2"], 2, 0)
    family, held, rng = tables.family(0.2), tables.sample_rows, np.random.default_rng([0xD157, 99])
    assert held is not None
    box, out = 0, held.cells[2] < 3
    layout, errors = tables.layout, []
    sums = np.zeros((layout.cells, 4), dtype=np.int64)
    for _ in range(300):
        y = (rng.random(len(held.p)) < held.p).astype(np.int8)
        part, some = np.flatnonzero(out), np.flatnonzero(out & (rng.random(len(y)) < 0.25))
        left = []
        for taken, times in ((part, 1.0), (some, 4.0)):
            every, own = sums.copy(), sums.copy()
            layout.summed(held.cells, held.p, y, every)
            layout.summed(held.cells[:, taken], held.p[taken], y[taken], own)
            split = [[layout.of(s, t) for t in range(len(layout.combined))] for s in (every, own)]
            left.append(Left.of(family, sums_in(family, split[0])).without(sums_in(family, split[1]), times))
        errors.append([v.residual[box] / np.sqrt(v.variance[box] + v.noise[box]) for v in left])
    assert np.abs(np.mean(errors, axis=0)).max() < 0.25
    assert np.std(errors, axis=0) == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
def test_sums_of_boxes_are_those_of_the_rows_inside() -> None:
    tables = tables_of(rows(table(corner, n=2_000)), ["x1", "x2", "x3"], 3, 0)
    family, held = tables.family(0.01), tables.sample_rows
    assert held is not None
    sums = sums_in(family, tables.tables)
    for box in np.random.default_rng([0xD157, 98]).integers(0, family.size, 50):
        inside = family.inside(box, held.cells)
        assert tuple(sums[:2, box]) == (inside.sum(), held.y[inside].sum())
    assert (sums[0] == family.rows).all()


# ---- Refusals ----


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"limit": 1.0}, "limit=1.0: pass a probability between 0 and 1"),
        ({"rules": 0}, "rules=0: pass a whole number from 1 to 20"),
        ({"alpha": 0}, "alpha=0"),
        ({"order": 4}, "order=4"),
        ({"min_size": 1}, "min_size=1"),
        ({"variables": ["nobody"]}, "nobody"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        cal.diagnose.subgroups(rows(table(corner, n=500)), **settings)


def test_weights_and_units_are_those_of_the_pocket() -> None:
    rng = np.random.default_rng(8)
    cluster_code, weight = np.repeat(np.arange(500), 4), rng.choice([1.0, 2.0], 2000)
    p, site = rng.uniform(0.2, 0.6, 2000), rng.choice(["a", "b", "c"], 2000)
    y = rng.random(2000) < np.where(site == "b", p + 0.3, p)
    found = cal.diagnose.subgroups(cal.predictions(y, p, {"site": site}, cluster=cluster_code, weights=weight))
    own, c = site == "b", found.columns
    assert c["rule"] == ("site = b",)
    assert c["gap"][0] == pytest.approx(np.average((y - p)[own], weights=weight[own]))
    assert c["predicted"][0] == pytest.approx(np.average(p[own], weights=weight[own]))
    assert c["rows"] == (int(own.sum()),)
    assert found.settings["people"] == ((len(set(cluster_code[own])), len(set(cluster_code[~own]))),)
    assert (found.settings["people_apart"], found.settings["people_shared"]) == ((None,), (0,))
    assert 0.1 < c["floor"][0] < c["gap"][0] < c["high"][0]
    drawn = cal.diagnose.subgroup_map(
        cal.predictions(y, p, {"site": site}, cluster=cluster_code, weights=weight),
        "site",
        "the score",
        subgroups=found,
    )
    level = drawn.settings["axes"][0]["labels"].index("b")
    cells = [i for i, first in enumerate(drawn.columns["first"]) if first == level]
    assert sum(drawn.columns["rows"][i] for i in cells) == own.sum()


@pytest.mark.slow
def test_people_who_tell_pockets_apart_are_units() -> None:
    rng = np.random.default_rng(8)
    cluster_code = np.repeat(np.arange(800), 5)
    p, site, ward = rng.uniform(0.2, 0.6, 4000), rng.choice(["a", "b", "c"], 4000), rng.choice(["x", "y", "z"], 4000)
    y = rng.random(4000) < np.where(site == "b", p + 0.35, np.where(ward == "y", p + 0.35, p))
    found = cal.diagnose.subgroups(cal.predictions(y, p, {"site": site, "ward": ward}, cluster=cluster_code))
    assert found.columns["rule"] == ("ward = y", "site = b")
    first, then = ward == "y", site == "b"
    s = found.settings
    sides = [first & ~then, then & ~first]
    assert s["people_apart"] == (None, min(len(set(cluster_code[side])) for side in sides))
    assert s["people_shared"] == (0, len(set(cluster_code[first & then])))


@pytest.mark.parametrize(("people", "reported"), [(15, 0), (40, 1)])
def test_who_is_besides_in_a_pocket_is_units_enough(people: int, reported: int) -> None:
    rng = np.random.default_rng(8)
    cluster_code = np.concatenate(
        [np.repeat(np.arange(15), 40), 15 + np.repeat(np.arange(425), 8)]
    )  # fifteen have 600 rows
    p, site = rng.uniform(0.2, 0.6, 4000), np.where(rng.random(4000) < 0.3, "b", "a")
    site[cluster_code < 15] = "b"
    y = rng.random(4000) < np.where(site == "b", p + 0.35, p)
    ward = np.where(cluster_code < people, "x", "y")
    found = cal.diagnose.subgroups(
        cal.predictions(y, p, {"site": site, "ward": ward}, cluster=cluster_code), rules=1, order=1
    )
    assert found.columns["rule"] == ("site = b",)
    assert len(found.settings["besides"][0]) == reported


def test_tables_without_rows_cannot_be_peeled() -> None:
    tables = replace(tables_of(rows(table(corner, n=500)), None, 2, 0), sample_rows=None)
    with pytest.raises(NotComputable, match="this sketch holds no rows"):
        list(Search(boxed=Boxed(tables=tables), ranges=RowRanges(tables.family(0.01)), alpha=0.05).reported(5))


def test_few_rows_have_no_pocket() -> None:
    with pytest.raises(NotComputable, match="no subgroup"):
        cal.diagnose.subgroups(cal.predictions([0, 1] * 5, np.linspace(0.1, 0.9, 10), {"x": range(10)}))


def test_scores_of_zero_and_one_are_no_trouble() -> None:
    rng = np.random.default_rng([0xD157, 97])
    x, p = rng.uniform(size=2_000), rng.choice([0.0, 1.0], 2_000)
    found = cal.diagnose.subgroups(cal.predictions(np.where(x > 0.8, 1 - p, p), p, {"x": x}))
    assert np.isfinite([v for k in ("gap", "low", "high", "evidence") for v in found.columns[k]]).all()
    assert found.columns["rule"][0] == "the score over 0 and x over 0.78"


def test_the_number_of_pockets_is_bounded() -> None:
    assert len(reported(table(three), rules=2)) == 2
