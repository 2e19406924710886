"""Is it fixed? Who is held against a limit before and after a repair, and which repair is taken."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.errors import BadInput
from calibrant.repair.judge.fixed import Fixed, verdict_on
from calibrant.repair.judge.rows import Judged, Judging, People
from calibrant.repair.judge.verdict import AS_AUDITED, Comparison, Summary, recommended
from calibrant.report.terminal import comparison

REPAIRS = {"Platt": cal.repair.Platt(), "mended": cal.repair.AugmentedLogistic(variables=["site"])}


def two_sites(n: int = 30_000, off: float = 0.15, seed: int = 3) -> Any:
    """Return predictions that are right at one site, and too low by `off` at the other, where one row in four is."""
    rng = np.random.default_rng([seed, 0xF1])
    p, north = rng.uniform(0.2, 0.7, n), rng.uniform(size=n) < 0.25
    side = {"site": np.where(north, "north", "south")}
    return cal.predictions(rng.uniform(size=n) < p + off * north, p, side)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return cal.repair.evaluate(two_sites(), repairs=REPAIRS, by="site", limit=0.05, tests="scan", draws=99)


def line(found: Comparison, who: str) -> dict[str, Any]:
    """Return the line of a population."""
    c = found.fixed.columns
    return {k: v[c["id"].index(who)] for k, v in c.items()}


@pytest.mark.parametrize(
    ("ends", "limit", "verdict"),
    [
        ((0.03, 0.04), 0.02, "over"),
        ((0.01, 0.04), 0.02, "undecided"),
        ((0.01, 0.02), 0.02, "within"),
        ((-0.04, -0.03), 0.02, "over"),
        ((-0.04, 0.01), 0.02, "undecided"),
        ((-0.02, 0.01), 0.02, "within"),
        ((-0.02, 0.01), None, "not_checked"),
    ],
)
def test_a_range_is_judged_on_either_side(ends: Any, limit: Any, verdict: str) -> None:
    assert verdict_on(ends, limit) == verdict


def test_a_group_is_over_the_limit_before_and_not_after(found: Comparison) -> None:
    north = line(found, "site = north")
    assert found.recommended == "mended"
    assert (north["now"], north["kind"], north["variable"], north["value"]) == ("over", "group", "site", "north")
    assert north["after"] in ("within", "undecided")
    assert north["after_high"] < north["now_low"]
    everyone = line(found, "everyone")
    assert everyone["rows"] == found.settings["rows_judged"] > north["rows"]
    assert everyone["after"] == "within"
    assert found.fixed.settings["candidate"] == "mended"
    assert found.fixed.settings["command"] == "augmented-logistic"
    assert found.fixed.settings["tests"]["scan"]["now"] == 0.01 < found.fixed.settings["tests"]["scan"]["after"]


@pytest.mark.slow
def test_a_group_that_a_repair_brings_over_the_limit_is_counted(found: Comparison) -> None:
    """A map of the score alone splits the error: it leaves one site, and harms the other."""
    moved = cal.repair.evaluate(two_sites(off=0.3), repairs=cal.repair.Platt(), by="site", limit=0.05, tests=())
    counts = {c["name"]: c for c in moved.fixed.settings["candidates"]}
    assert (counts[AS_AUDITED]["over"], counts["Platt"]["over"]) == (2, 2)  # everyone and north; north and south
    alone = {c["name"]: c for c in found.fixed.settings["candidates"]}
    assert line(found, "site = south")["now"] != "over"  # a few groups are all listed, and counted where over it
    assert sum(alone[AS_AUDITED][k] for k in ("over", "undecided", "within")) == len(found.fixed.columns["id"]) - 1
    assert "Everyone and the groups over the limit now or after: as audited 2 over the limit and 0 undecided" in (
        " ".join(comparison(moved).split())
    )


@pytest.mark.slow
def test_of_many_groups_those_over_the_limit_are_listed() -> None:
    data = two_sites()
    many = pa.table({"ward": [f"{v}{i % 14}" for i, v in enumerate(data.covariates["site"].to_pylist())]})
    found = cal.repair.evaluate(
        replace(data, covariates=many), repairs=cal.repair.Platt(), by="ward", limit=0.05, tests=()
    )
    listed = found.fixed.columns["kind"].count("group")
    assert listed < found.fixed.settings["groups"] == 28
    assert "Of 28 groups only those over it now or after are listed." in " ".join(comparison(found).split())


@pytest.mark.slow
def test_gaps_have_a_sign_and_move_by_what_the_repair_moves() -> None:
    data = two_sites()
    found = cal.repair.evaluate(data, repairs=REPAIRS, by="site", limit=0.05, judge="gap", tests=())
    north = line(found, "site = north")
    assert north["measure"] == "gap"
    assert 0.1 < north["now_low"] < 0.15 < north["now_high"] < 0.2
    assert north["after_low"] < 0.0 < north["after_high"]
    width = north["now_high"] - north["now_low"]
    assert north["after_high"] - north["after_low"] == pytest.approx(width)  # one range serves every repair


@pytest.mark.slow
def test_choice_is_paid_for_by_every_repair_but_not_by_what_was_audited() -> None:
    data = two_sites()
    one = cal.repair.evaluate(data, repairs={"mended": REPAIRS["mended"]}, by="site", limit=0.05, tests=())
    many = cal.repair.evaluate(
        data, repairs={**REPAIRS, "third": cal.repair.Beta()}, by="site", limit=0.05, tests=(), certify_groups=False
    )
    alone, shared = line(one, "everyone"), line(many, "everyone")
    assert (alone["now_low"], alone["now_high"]) == (shared["now_low"], shared["now_high"])
    assert shared["after_high"] > alone["after_high"]


def test_without_a_limit_nobody_is_held_against_it() -> None:
    found = cal.repair.evaluate(two_sites(4000), repairs=cal.repair.Platt(), tests=())
    assert not found.fixed.columns
    assert Comparison.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.slow
@pytest.mark.parametrize("row_attributes", [{"cluster"}, {"weights"}, {"cluster", "weights"}])
def test_units_and_weights_are_certified_as_by_certify(row_attributes: set[str]) -> None:
    base, rows = two_sites(4000), np.arange(4000)
    given = {"cluster": rows // 4, "weights": np.linspace(1.0, 2.0, 4000)}
    data = cal.predictions(base.y, base.p, base.covariates, **{k: given[k] for k in row_attributes})
    fitted = cal.repair.Platt().fit(two_sites(2000, seed=4))
    found = cal.repair.evaluate(data, repairs={"Platt": fitted}, by="site", limit=0.05, tests=())
    now, row = line(found, "everyone"), found.row("as audited")
    ends = cal.certify.rounded(data, alpha=0.05).interval
    assert (now["measure"], now["now_low"] <= ends.high) == ("error", True)
    assert now["now_high"] == pytest.approx(ends.high)
    assert now["now_low"] == pytest.approx(cal.certify.raw_lower(data, side="lower", alpha=0.025).interval.low)
    assert row["error_low"] == pytest.approx(cal.certify.raw_lower(data, side="lower", alpha=0.0125).interval.low)
    assert row["error_high"] == pytest.approx(cal.certify.rounded(data, alpha=0.025).interval.high)
    assert row["distance_high"] == pytest.approx(cal.certify.distance(data, alpha=0.025, side="upper").interval.high)
    assert row["worst_group_low"] <= row["worst_group_high"]
    assert found.settings["not_applicable"] == ()


def test_one_unit_certifies_no_error() -> None:
    base = two_sites(2000)
    data = cal.predictions(base.y, base.p, cluster=np.zeros(2000))
    fitted = cal.repair.Platt().fit(two_sites(2000, seed=4))
    found = cal.repair.evaluate(data, repairs={"Platt": fitted}, limit=0.05, tests=())
    assert not found.fixed.columns
    assert [what for what, _ in found.settings["not_applicable"]] == ["certificates", "fixed"]
    assert "one cluster" in found.settings["not_applicable"][0][1]


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["error", "gap"])
def test_folds_are_averaged(judge: Any) -> None:
    found = cal.repair.evaluate(two_sites(2000), repairs=REPAIRS, by="site", limit=0.05, folds=2, judge=judge, tests=())
    everyone = line(found, "everyone")
    assert everyone["rows"] == 2000
    assert everyone["now_low"] < everyone["now_high"]


@pytest.mark.parametrize("how", [{"limit": 0.0}, {"limit": 1.5}, {"limit": 0.02, "judge": "gaps"}])
def test_settings_that_cannot_be_used(how: Any) -> None:
    with pytest.raises(cal.BadInput):
        cal.repair.evaluate(two_sites(400), repairs=cal.repair.Platt(), tests=(), **how)


# ---- which score is judged, and who is told of besides ----


def half_per_cents(n: int = 20_000) -> tuple[Any, Any]:
    """Return predictions of 160 values in steps of 0.005, right but in a group, where errors alternate by 0.25."""
    rng = np.random.default_rng(7)
    at = rng.integers(0, 160, n)
    p, small = 0.3 + at / 400.0, rng.uniform(size=n) < 0.07
    eta = p + small * np.where(at % 2, 0.25, -0.25)
    return cal.predictions(rng.uniform(size=n) < eta, p), small


def test_a_group_is_judged_by_the_score_that_everyone_is_judged_by() -> None:
    """A group's own rows would be too few for its values, and what is shown in whole percent hides the error."""
    data, small = half_per_cents()
    assert small.sum() < 10 * 160 < data.n
    scores = {AS_AUDITED: data.p, "moved": data.p + 1e-4}
    judged = Judged.of(data, scores, np.zeros(data.n, dtype=np.int64))
    people = [People(id="small", who="small", kind="group", rows=np.flatnonzero(small), shown=False)]
    found = Fixed.of(judged, people, Judging(limit=0.05, alpha=0.05, judge="error"))
    for name in scores:
        low, high = found.ends(people[0], name)
        assert 0.05 < low < 0.25 < high
    assert [one.id for one in found.lines(AS_AUDITED)] == ["small"]
    about = found.curve("moved", {"moved": cal.repair.Platt().fit(data)}).settings["about"]
    assert about == dict.fromkeys(("now", "after"), "the raw score, which takes 160 values")


def test_the_log_decides_which_score_is_judged_and_not_the_half_of_it() -> None:
    data, _ = half_per_cents(2000)
    found = cal.repair.evaluate(data, repairs=cal.repair.Platt(), limit=0.12, tests=())
    assert found.settings["rows_judged"] < 10 * 160 < data.n
    assert found.fixed.settings["about"]["now"] == "the raw score, which takes 160 values"
    assert cal.audit(data, limit=0.12, quick=True).data["display"] == {"values": 160}


def test_a_shift_over_the_limit_is_told_whatever_an_estimate_says() -> None:
    """Every one that is "broken" is listed: no estimate by which populations are picked can miss it."""
    rng = np.random.default_rng(3)
    p, group = rng.uniform(0.2, 0.6, 3000), np.arange(3000) // 300
    data = cal.predictions(rng.uniform(size=3000) < p + 0.25, p)
    people = [
        People(id=str(g), who=str(g), kind="group", rows=np.flatnonzero(group == g), share=0.1, shown=False)
        for g in range(10)
    ]
    found = Fixed.of(
        Judged.of(data, {AS_AUDITED: p}, np.zeros(3000, dtype=np.int64)),
        people,
        Judging(limit=0.14, alpha=0.2),
    )
    broken = [one.id for one in people if found.ends(one, AS_AUDITED)[0] > 0.14]
    assert broken
    assert [one.id for one in found.lines(AS_AUDITED)] == broken


# ---- whose gap ----


@pytest.mark.parametrize("clusters", [False, True])
def test_gaps_of_all_rows_like_these_are_certified_under_each_repair(clusters: bool) -> None:
    """As `certify.groups` certifies them: after a repair at the share of one of two repairs."""
    rng = np.random.default_rng(5)
    p = rng.uniform(0.1, 0.9, 1200)
    y, cluster = (rng.uniform(size=1200) < p).astype(np.int8), np.arange(1200) // 3 if clusters else None
    scores = {AS_AUDITED: p, "up": p + 0.05, "squared": p**2}
    how = Judging(limit=0.1, alpha=0.1, judge="gap", target="population")
    judged = Judged.of(cal.predictions(y, p, cluster=cluster), scores, np.zeros(1200, dtype=np.int64))
    everyone = People(id="everyone", who="everyone", kind="everyone", rows=np.arange(1200))
    subgroup = People(id="s", who="s", kind="subgroup", rows=np.arange(600))
    found = Fixed.of(judged, [everyone, subgroup], how)
    for name, alpha in ((AS_AUDITED, 0.1), ("up", 0.05), ("squared", 0.05)):
        data = cal.predictions(y, scores[name], {"g": np.full(1200, "a")}, cluster=cluster)
        (alone,) = cal.certify.groups(data, by="g", judge="gap", target="population", alpha=alpha).values()
        assert found.ends(everyone, name) == pytest.approx(
            (alone.interval.low, alone.interval.high), abs=1e-6
        )  # cells of other widths
    moved = float((scores["squared"] - p)[:600].mean())  # of a subgroup the gap is always that of its rows
    now, after = found.ends(subgroup, AS_AUDITED), found.ends(subgroup, "squared")
    assert after == pytest.approx((now[0] - moved, now[1] - moved))


def test_a_target_is_of_gaps() -> None:
    data = cal.predictions([0, 1] * 50, [0.3, 0.6] * 50)
    with pytest.raises(BadInput, match=r"target='rows' \(--target\) is about gaps"):
        cal.repair.evaluate(data, judge="error", target="rows")
    with pytest.raises(BadInput, match="target='people'"):
        cal.repair.evaluate(data, judge="gap", target="people")  # type: ignore[arg-type]


# ---- which repair is taken ----


def taken(over: dict[str, tuple[float, ...]], shown: dict[str, tuple[str, ...]] | None = None) -> str:
    """Return what is recommended of three repairs, the first the simplest, by populations over and undecided."""
    recipe = {"first": "Platt", "second": "Beta", "third": "Isotonic"}
    table = {
        name: Summary(probability=name, recipe=recipe.get(name, ""), order="kept", brier=0.2)
        for name in (AS_AUDITED, *recipe)
    }
    better = {"first": ("brier",), "second": ("brier",), "third": ("brier",), **(shown or {})}
    verdicts = {name: {"better": better[name], "worse": ()} for name in recipe}
    counts = {
        name: dict(zip(("over", "undecided", "worst"), (*left, 0.0), strict=False)) for name, left in over.items()
    }
    return recommended(table, verdicts, dict.fromkeys(table, ()), counts)


def test_fewest_over_the_limit_then_fewest_undecided_then_the_simplest() -> None:
    now = {AS_AUDITED: (3, 1)}
    assert taken({**now, "first": (2, 0), "second": (1, 5), "third": (1, 6)}) == "second"
    assert taken({**now, "first": (1, 2), "second": (1, 1), "third": (1, 1)}) == "second"
    assert taken({**now, "first": (1, 1), "second": (1, 1), "third": (1, 1)}) == "first"


def test_of_equally_many_left_the_worst_decides_before_simplicity() -> None:
    """A lower end that falls just below the limit mends nobody: 4.5 to 25.0 before, 1.5 to 24.5 after."""
    now = {AS_AUDITED: (1, 1, 0.25)}
    assert taken({**now, "first": (0, 2, 0.245), "second": (0, 2, 0.18), "third": (0, 2, 0.178)}) == "second"
    assert taken({**now, "first": (0, 2, 0.182), "second": (0, 2, 0.18), "third": (0, 2, 0.178)}) == "first"
    assert taken({**now, "first": (0, 0, 0.019), "second": (0, 0, 0.01), "third": (0, 0, 0.01)}) == "first"


def test_a_repair_under_which_more_are_over_the_limit_is_not_taken() -> None:
    assert taken({AS_AUDITED: (1, 1), "first": (2, 0), "second": (2, 0), "third": (2, 0)}) == AS_AUDITED


def test_fewer_over_the_limit_is_not_enough_where_nothing_is_shown_better() -> None:
    over = {AS_AUDITED: (3, 0), "first": (0, 0), "second": (1, 0), "third": (1, 0)}
    assert taken(over, {"first": ()}) == "second"
