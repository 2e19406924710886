"""Unnamed pockets in an audit: the check, its verdict and exit status, and that what is told leaves nobody alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
import factories
from calibrant.audit.checks import all_checks, gates
from calibrant.audit.context import AuditContext, CheckResult, NotRun
from calibrant.audit.judging import Judging
from calibrant.audit.record import AuditRecord
from calibrant.audit.rounding import RandomRounding, Sums, step
from calibrant.audit.subgroups import people_in, reported_map, reported_subgroups, reported_worst
from calibrant.detect.subgroup_tests import WEIGHT
from calibrant.errors import NotComputable
from calibrant.results import Curve
from calibrant.views.boxes import tables_of
from calibrant.views.rules import Condition
from effort import examples

QUESTION = next(q for q in all_checks() if q.code == "subgroups")


def planted(n: int = 3_000, gap: float = 0.4, seed: int = 0, covariates: int = 3) -> cal.Predictions:
    """More happens than the model says where both of two traits are high."""
    rng = np.random.default_rng(seed)
    x, p = rng.uniform(size=(covariates, n)), rng.uniform(0.1, 0.5, n)
    y = rng.uniform(size=n) < p + np.where((x[0] > 0.8) & (x[1] > 0.8), gap, 0.0)
    return cal.predictions(y, p, {f"x{i}": v for i, v in enumerate(x)})


def case(data: Any, **asked: Any) -> AuditContext:
    """Return what a check reads; the adaptive search, which is slow, is not made."""
    held = data if isinstance(data, cal.Sketch) else cal.sketch(data, variables="*", tests=True)
    made = AuditContext(held, Judging.of(gates=gates(), **asked))
    made.__dict__["adaptive"] = factories.strong_outcome(0.4)
    return made


@cache
def answered(gap: float = 0.4, limit: float | None = 0.05) -> CheckResult:
    return QUESTION.make(case(planted(gap=gap), limit=limit), {})


# ---- the check ----


@pytest.mark.slow
def test_a_planted_corner_is_certified_named_and_mapped() -> None:
    found = answered()
    assert found.status == "over"
    worst = found.estimates["subgroups"]
    assert worst.interval.low > 0.05
    assert {c["variable"] for c in worst.settings["conditions_low"]} == {"x0", "x1"}
    reported = found.curves["subgroups"]
    assert reported.columns["over"][0]
    assert reported.settings["conditions"][0] == worst.settings["conditions_low"]
    assert reported.columns["floor"][0] == worst.interval.low  # told twice, and alike
    drawn = found.curves["subgroup_map"]
    assert {a["name"] for a in drawn.settings["axes"]} == {"x0", "x1"}
    assert drawn.settings["subgroups"]
    assert found.outcome is not None
    assert found.outcome.p_value == pytest.approx(0.001 / WEIGHT, abs=1e-4)  # as told, rounded up
    assert found.outcome.parts["detected_by"] == "scan"
    assert found.outcome.parts.keys() == factories.subgroup_outcome().parts.keys()
    assert found.outcome.settings.keys() == factories.subgroup_outcome().settings.keys()


@pytest.mark.slow
def test_a_calibrated_model_is_not_broken_and_nothing_is_mapped() -> None:
    found = answered(0.0)
    assert found.status in ("within", "undecided")
    assert found.estimates["subgroups"].interval.low == 0.0
    assert found.estimates["subgroups"].settings["subgroup_low"] is None
    assert not any(found.curves["subgroups"].columns["over"])
    assert "subgroup_map" not in found.curves


@pytest.mark.slow
def test_without_a_limit_it_is_measured() -> None:
    found = answered(limit=None)
    assert found.status == "measured"
    assert not any(found.curves["subgroups"].columns["over"])
    assert found.estimates["subgroups"].settings["rows_needed"] is None


@pytest.mark.parametrize(
    ("data", "asked", "raised", "why"),
    [
        (lambda: planted(300), {"quick": True}, NotRun, "left out by --quick"),
        (lambda: cal.predictions([0, 1] * 50, [0.4] * 100), {}, NotRun, "no covariates"),
        (lambda: cal.sketch(planted(300), variables="*"), {}, NotRun, "without what tests need"),
        (lambda: planted(10), {}, NotComputable, "at least 20"),
        (lambda: planted(300), {"mask": 400}, NotComputable, "at least 400"),
    ],
)
def test_what_cannot_be_searched_says_why(
    data: Callable[[], Any], asked: dict[str, Any], raised: type[Exception], why: str
) -> None:
    with pytest.raises(raised) as caught:
        QUESTION.make(case(data(), **asked), {})
    assert why in caught.value.reason  # type: ignore[attr-defined]


@pytest.mark.slow
def test_of_more_covariates_than_a_search_takes_some_are_searched_and_nothing_is_met() -> None:
    rng = np.random.default_rng(3)
    halves = {f"x{i}": rng.integers(0, 2, 900) for i in range(101)}  # of two levels: few boxes
    p = rng.uniform(0.1, 0.5, 900)
    of = case(cal.predictions(rng.uniform(size=900) < p, p, halves), limit=0.5)
    found = QUESTION.make(of, {})
    assert found.status == "undecided"  # of those left out nothing is known
    assert of.screen is not None
    assert len(found.estimates["subgroups"].settings["attributes"]) <= len(of.screen.chosen) + 1


def test_one_class_and_a_score_of_one_value_are_judged_all_the_same() -> None:
    x = np.random.default_rng(0).uniform(size=400)
    found = QUESTION.make(case(cal.predictions(np.zeros(400), np.full(400, 0.3), {"x": x}), limit=0.1), {})
    assert found.status == "over"
    assert found.curves["subgroups"].columns["side"][0] == "overpredicts"


@pytest.mark.slow
def test_a_sketch_gives_the_answer_of_its_rows() -> None:
    data = planted(2_000)
    one, two = (QUESTION.make(case(d, limit=0.05), {}) for d in (data, cal.sketch(data, variables="*", tests=True)))
    assert one.estimates == two.estimates
    assert one.curves == two.curves


def test_a_sketch_without_rows_is_certified_all_the_same() -> None:
    whole = cal.sketch(planted(2_000), variables="*", tests=True)
    whole.parts.pop("sample")
    of = AuditContext(whole, Judging.of(gates=gates(), limit=0.04))
    found = QUESTION.make(of, {})
    assert found.status == "over"
    assert found.outcome is None
    assert not found.curves


def test_the_adaptive_search_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("calibrant.detect.strong_calibration_test")
    made: list[int] = []

    def count(*_: Any, **__: Any) -> Any:
        made.append(1)
        return factories.strong_outcome(0.4)

    monkeypatch.setattr(module, "strong_calibration_test", count)
    of = AuditContext(cal.sketch(planted(300), variables="*", tests=True), Judging.of(gates=gates()))
    assert of.adaptive is of.adaptive
    assert made == [1]


# ---- the record ----


@pytest.mark.parametrize(
    ("low", "high", "p_value", "limit", "fail_on", "status"),
    [
        (0.03, 0.09, 0.4, 0.015, (), 1),
        (0.0, 0.09, 0.4, 0.015, (), 0),
        (0.0, 0.09, 0.4, 0.015, ("subgroups",), 3),
        (0.0, 0.09, 0.002, 0.015, ("subgroups",), 1),
        (0.0, 0.012, 0.4, 0.015, ("subgroups",), 0),
        (0.0, 0.012, 0.002, 0.015, (), 0),
        (0.0, 0.012, 0.002, 0.015, ("subgroups",), 1),
        (0.03, 0.09, 0.002, None, (), 0),
        (0.03, 0.09, 0.002, None, ("subgroups",), 1),
        (0.03, 0.09, None, None, ("subgroups",), 0),
    ],
)
def test_exit_status(
    low: float, high: float, p_value: float | None, limit: float | None, fail_on: tuple[str, ...], status: int
) -> None:
    of = factories.record(factories.finding(limit=limit), limit=limit, fail_on=fail_on)
    assert factories.scanned(of, low, high, p_value=p_value).exit_status == status


def test_a_gate_that_was_not_searched_is_no_pass() -> None:
    of = factories.record(fail_on=("subgroups",))
    not_run = cal.audit(planted(60), quick=True)
    check = next(c for c in not_run.checks if c.code == "subgroups")
    assert check.status == "not-run"
    assert replace(of, checks=(*of.checks, check)).exit_status == 3


def test_the_record_survives_being_written() -> None:
    made = factories.scanned(factories.record())
    assert AuditRecord.from_json(made.to_json()).to_json() == made.to_json()
    assert made.certified["subgroups"].interval.low == 0.0261


# ---- what is told ----


def lines(**columns: Any) -> Curve:
    made = factories.subgroup_lines()
    return replace(made, columns={**made.columns, **columns}, settings={**made.settings, "n": 60_000})


def test_pockets_of_few_people_or_of_all_but_few_are_not_told() -> None:
    reported = reported_subgroups(
        lines(rows=(19, 59_990, 2_700), rows_left=(None, 59_990, 1_800)), 60_000, 20, RandomRounding
    )
    assert (
        len(reported.columns["rule"]) == len(reported.settings["besides"]) == len(reported.settings["conditions"]) == 1
    )
    assert reported.columns["gap_left"] == (None,)  # it would be without people of whom nothing is told
    assert reported.columns["rows_left"] == (None,)


@pytest.mark.parametrize(
    ("rows", "left", "kept"),
    [
        ((2_400, 2_410, 3_000), (None, 10, 2_000), 2),  # the second is the first and ten more
        ((2_400, 3_000, 3_000), (None, 610, 2_000), 2),  # the first is the second but for ten
        ((2_400, 3_000, 3_000), (None, 600, 2_000), 3),
        ((2_400, 3_000, 3_000), (None, 1_000, 2_000), 3),
    ],
)
def test_no_two_told_pockets_differ_by_few_people(rows: Any, left: Any, kept: int) -> None:
    assert len(reported_subgroups(lines(rows=rows, rows_left=left), 60_000, 20, RandomRounding).columns["rule"]) == kept


def test_of_units_people_are_counted_and_not_rows() -> None:
    made = lines(rows=(2_400, 3_000, 3_000), rows_left=(None, 1_000, 2_000))
    found = ("c", "= d", 0.6, 0.2)
    clusters = {"people": ((200, 900),) * 3, "people_apart": (None, 20, 19), "people_shared": (0, 20, 50)}
    clusters["besides"] = ((found,), (), ())
    reported = reported_subgroups(replace(made, settings={**made.settings, **clusters}), 60_000, 20, RandomRounding)
    assert reported.columns["rule"] == made.columns["rule"][:2]  # 19 people tell the third from another, of 1,000 rows
    assert [len(b) for b in reported.settings["besides"]] == [1, 0]
    clusters |= {"people_apart": (None, 20, 20)}
    reported = reported_subgroups(
        replace(made, settings={**made.settings, **clusters}), 60_000, 20, RandomRounding
    ).columns
    assert reported["rows_left"] == (None, 1_000, 2_000)
    clusters |= {"people_shared": (0, 19, 50)}
    reported = reported_subgroups(
        replace(made, settings={**made.settings, **clusters}), 60_000, 20, RandomRounding
    ).columns
    assert reported["rows_left"] == (None, None, 2_000)
    clusters |= {"people_apart": (None, 30, 30), "people_shared": (0, 30, 50)}
    reported = reported_subgroups(replace(made, settings={**made.settings, **clusters}), 60_000, 30, RandomRounding)
    assert reported.settings["besides"] == ((), (), ())  # 20 have it, or lack it; nobody knows of 30


def test_a_pocket_that_shares_few_people_does_not_tell_how_many() -> None:
    reported = reported_subgroups(lines(rows_left=(None, 2_690, 2_000)), 60_000, 20, RandomRounding)
    assert reported.columns["rows_left"] == (None, None, 2_000)
    assert reported.columns["gap_left"][1] is None


def test_what_few_people_of_a_pocket_have_or_lack_is_not_told() -> None:
    made = factories.subgroup_lines()
    found = (("a", "= b", 0.005, 0.0001), ("c", "= d", 0.995, 0.2), ("e", "= f", 0.6123456, 0.3))
    reported = reported_subgroups(
        replace(made, settings={**made.settings, "besides": (found, (), ())}), 60_000, 20, RandomRounding
    )
    ((name, level, inside, outside),) = reported.settings["besides"][0]
    assert (name, level) == ("e", "= f")
    assert inside == pytest.approx(0.6123456, abs=step(2_400))
    assert round(inside / step(2_400), 6) % 1 == round(outside / step(57_600), 6) % 1 == 0


@examples(100)
@given(st.integers(0, 10_000), st.floats(0.005, 0.2))
def test_ranges_move_outward_and_verdicts_are_on_what_is_told(seed: int, limit: float) -> None:
    rng = np.random.default_rng(seed)
    gap = rng.uniform(-0.3, 0.3, 3)
    half = rng.uniform(0.0, 0.3, 3)
    made = lines(
        rows=tuple(int(v) for v in rng.integers(200, 20_000, 3)),
        rows_left=(None, 150, 150),
        predicted=(0.5,) * 3,
        observed=tuple(0.5 + gap),
        gap=tuple(gap),
        low=tuple(gap - half),
        high=tuple(gap + half),
    )
    made = replace(made, settings={**made.settings, "limit": limit})
    reported = reported_subgroups(made, 60_000, 20, RandomRounding).columns
    of = {r: i for i, r in enumerate(made.columns["rule"])}
    for j, rule in enumerate(reported["rule"]):
        i = of[rule]
        u = step(made.columns["rows"][i])
        assert made.columns["low"][i] - 2.001 * u <= reported["low"][j] <= made.columns["low"][i]
        assert made.columns["high"][i] <= reported["high"][j] <= made.columns["high"][i] + 2.001 * u
        assert reported["low"][j] <= reported["gap"][j] <= reported["high"][j]
        assert reported["floor"][j] == max(reported["low"][j], -reported["high"][j], 0.0)
        assert reported["over"][j] == (reported["floor"][j] > limit)
        assert reported["rows"][j] % 5 == 0


def test_evidence_says_no_more_than_the_gap_as_told() -> None:
    """One case more is 0.05 standard deviations here: twenty numbers of cases are told apart by steps of five alone."""
    reported = []
    for events in range(690, 710):
        residual = events - 600.0
        one = lines(observed=(events / 2_400,) * 3, predicted=(0.25,) * 3, gap=(residual / 2_400,) * 3)
        one = replace(one, columns={**one.columns, "evidence": (residual / np.sqrt(450 + 4),) * 3})
        c = reported_subgroups(
            replace(one, columns={**one.columns, "rows": (2_400,) * 3}), 60_000, 20, RandomRounding
        ).columns
        reported.append((c["evidence"][0], c["gap"][0]))
    assert len({evidence for evidence, _ in reported}) == len({gap for _, gap in reported}) < 10


@pytest.mark.slow
def test_the_worst_gap_is_told_in_steps_of_people() -> None:
    data = planted()
    least, most = (cal.certify.subgroups(data, side=side) for side in ("lower", "upper"))
    tables, u = tables_of(data, None, 2, 0), step(least.settings["smallest_subgroup"])
    wide = replace(most, interval=replace(most.interval, high=1.0))
    values = {
        reported_worst(replace(least, value=v), wide, tables, case(data), least.n).value
        for v in np.linspace(0.4, 0.5, 50)
    }
    assert least.interval.low < 0.35
    assert all(round(v / u, 6) % 1 == 0 for v in values)


def test_the_worst_is_told_like_a_group_and_a_box_that_leaves_few_is_not_named() -> None:
    data = planted()
    least, most = (cal.certify.subgroups(data, side=side) for side in ("lower", "upper"))
    tables = tables_of(data, None, 2, 0)
    reported = reported_worst(least, most, tables, case(data), least.n)
    assert least.interval.low - 2.001 * step(least.settings["rows_low"]) <= reported.interval.low < least.interval.low
    assert reported.interval.high >= most.interval.high
    assert reported.settings["rows_low"] % 5 == 0
    rule = tuple(Condition.from_dict(c) for c in least.settings["conditions_low"])
    assert people_in(tables, rule, RandomRounding).exact[0] == least.settings["rows_low"]
    assert people_in(tables, tuple(reversed(rule)), Sums) == people_in(tables, rule, Sums)
    hidden = reported_worst(least, most, tables, case(data, mask=least.settings["rows_low"] + 1), least.n)
    assert (hidden.settings["subgroup_low"], hidden.settings["rows_low"], hidden.settings["share_low"]) == (
        None,
        None,
        None,
    )
    assert hidden.interval.low == reported.interval.low


@pytest.mark.parametrize(("mask", "exact"), [(None, True), (20, False)])
def test_the_worst_is_exact_only_where_small_groups_are_shown(mask: int | None, exact: bool) -> None:
    data = planted()
    least, most = (cal.certify.subgroups(data, side=side) for side in ("lower", "upper"))
    reported = reported_worst(least, most, tables_of(data, None, 2, 0), case(data, mask=mask), least.n)
    assert (reported.interval.low == least.interval.low) == exact
    assert (reported.interval.high == most.interval.high) == exact
    assert not exact or reported.settings["rows_low"] == least.settings["rows_low"]


def test_exact_sums_leave_pockets_and_cells_as_they_are() -> None:
    made = lines(rows=(2_401, 3_003, 3_004), rows_left=(None, 1_001, 2_002))
    reported = reported_subgroups(made, 60_000, 20, Sums).columns
    for name in ("rows", "rows_left", "gap_left", "predicted", "observed", "gap", "low", "high"):
        assert reported[name] == pytest.approx(made.columns[name]), name
    table = mapped(np.full((4, 4), 301))
    cells = reported_map(table, 20, Sums)
    assert cells is not None
    assert cells.columns == table.columns
    assert reported_map(mapped(np.full((4, 4), 3)), 20, Sums) is None  # of few people nothing is told all the same


# ---- the map ----


def mapped(table: np.ndarray, subgroups: Any = (), kinds: tuple[str, str] = ("number", "category")) -> Curve:
    cells = [(int(i), int(j)) for i, j in zip(*table.nonzero(), strict=True)]
    columns = {
        "first": tuple(i for i, _ in cells),
        "second": tuple(j for _, j in cells),
        "rows": tuple(int(table[c]) for c in cells),
        "predicted": (0.3,) * len(cells),
        "observed": (0.3,) * len(cells),
        "gap": (0.0,) * len(cells),
    }
    axes = tuple(
        {"name": f"x{k}", "kind": kind, "labels": tuple(f"{k}{i}" for i in range(n))}
        for k, (kind, n) in enumerate(zip(kinds, table.shape, strict=True))
    )
    return Curve(method="diagnose.subgroup_map", columns=columns, settings={"axes": axes, "subgroups": subgroups})


@examples(200)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 6))
def test_no_small_cell_follows_from_rows_columns_or_pockets(seed: int, a: int, b: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 120, (a, b)) * (rng.uniform(size=(a, b)) < 0.9)
    i, j = int(rng.integers(a)), int(rng.integers(b))
    ranges = ((i, a), (j, b))
    reported = reported_map(mapped(table, (ranges,)), 20, RandomRounding)
    if reported is None:
        return
    shown = np.zeros_like(table, dtype=bool)
    shown[list(reported.columns["first"]), list(reported.columns["second"])] = True
    assert (table[shown] >= 20).all()
    assert not (shown & (table == 0)).any()
    blank = ~shown & (table > 0)
    inside = np.zeros_like(shown)
    inside[i:, j:] = True
    for part in (inside, ~inside):
        assert table[part & ~shown].sum() == 0 or table[part & ~shown].sum() >= 20 or not (part & shown).any()
    for k in range(2):  # a small cell is never alone in its row and its column
        assert not ((blank & (table < 20)) & (blank.sum(axis=k, keepdims=True) == 1)).any()
    assert all(rows % 5 == 0 for rows in reported.columns["rows"])


def test_a_level_of_few_people_is_not_named() -> None:
    table = np.full((4, 4), 300)
    table[:, 3] = 3
    reported = reported_map(mapped(table), 20, RandomRounding)
    assert reported is not None
    assert reported.settings["axes"][1]["labels"] == ("10", "11", "12", None)
    assert reported.settings["axes"][0]["labels"] == ("00", "01", "02", "03")


def test_a_map_of_few_people_is_not_shown() -> None:
    assert reported_map(mapped(np.full((4, 4), 3)), 20, RandomRounding) is None
