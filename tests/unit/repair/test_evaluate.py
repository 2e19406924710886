"""The judge of repairs: what it returns, what it refuses, and what it calls better."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import calibrant as cal
from calibrant.repair.calibrators.curves import Logistic, scale_of
from calibrant.repair.fitted import Calibrator
from calibrant.repair.judge.evidence import group_changes, groups_of
from calibrant.repair.judge.rows import Judged, hash_split
from calibrant.repair.judge.verdict import AS_AUDITED, Comparison, Summary, by_estimates, recommended, simplicity
from calibrant.report import numbers as num
from calibrant.report import terminal

Platt, evaluate = cal.repair.Platt, cal.repair.evaluate


def rows(n: int = 6000, seed: int = 11, bend: float = 1.0, **more: Any) -> Any:
    """Return predictions whose score is the event rate to a power, with a group and a number beside it."""
    rng = np.random.default_rng([seed, 0xC0])
    true = rng.uniform(0.02, 0.98, n)
    side = {"sex": np.array(["f", "m"])[rng.integers(0, 2, n)], "age": rng.integers(18, 90, n)}
    return cal.predictions(rng.uniform(size=n) < true, true**bend, side, **more)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return evaluate(
        rows(bend=2.0), repairs=[Platt(), Platt(scale="raw")], by=["sex", "age"], tests="local", test_rows=500, draws=99
    )


def test_names_rows_and_round_trip(found: Comparison) -> None:
    assert found.table.columns["probability"] == (AS_AUDITED, "Platt", "Platt 2")
    assert set(found.calibrators) == {"Platt", "Platt 2"} == set(found.verdicts)
    assert len(found.variables.columns["vece"]) == 3 * 2
    assert len(found.differences.columns["change"]) == 2 * 3
    assert Comparison.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found
    again = Comparison.from_json(found.to_json())
    assert again == found
    assert again.to_json() == found.to_json()
    assert again != replace(found, recommended="other")
    assert len(repr(found).splitlines()) == 2 + len(found.calibrators)


def test_the_scale_that_a_curve_took_stands_beside_it(found: Comparison) -> None:
    taken_scales = (None, found.calibrators["Platt"].settings["scale"], "raw")
    assert found.table.columns["scale"] == taken_scales
    assert found.calibrators["Platt"].settings["scale_requested"] == "auto"
    others = evaluate(rows(800), repairs=[cal.repair.Temperature(), cal.repair.ScalingBinning(scale="raw")], tests=())
    assert others.table.columns["scale"] == (None, None, "raw")


@pytest.mark.parametrize("scale", ["auto", "<b>", ["raw"], {"raw": 1}, 3, None])
def test_a_scale_that_is_none_is_not_told(scale: Any) -> None:
    fitted = Platt().fit(rows(200))
    assert scale_of(replace(fitted, settings={"scale": scale})) is None


def test_a_real_improvement_is_recommended_and_said(found: Comparison) -> None:
    v = found.verdicts["Platt"]
    assert {"error", "brier", "log_loss"} <= set(v["better"])
    assert not v["worse"]
    assert v["line"].startswith("Platt: better in certified error")
    assert found.recommended in ("Platt", "Platt 2")
    before, after = found.row(AS_AUDITED), found.row("Platt")
    assert after["error_high"] < before["error_shown_low"]
    assert after["distance_high"] < before["distance_high"]
    assert before["local_p"] <= 0.05
    assert after["groups_better"] > 0 == before["groups_better"]


def test_numbers_are_those_of_measure_and_certify(found: Comparison) -> None:
    data = rows(bend=2.0)
    judged = data.part(np.flatnonzero(hash_split(data, 2, 0) == 1))
    row = found.row("Platt")
    after = found.calibrators["Platt"](judged)
    assert row["brier"] == pytest.approx(cal.measure.brier(after).value, abs=1e-12)
    assert row["log_loss"] == pytest.approx(cal.measure.log_loss(after).value, abs=1e-9)
    assert row["auroc"] == pytest.approx(cal.measure.auroc(after).value, abs=1e-12)
    assert row["error_low"] == pytest.approx(cal.certify.raw_lower(after, alpha=0.05 / 6).value, abs=1e-12)
    high = cal.certify.rounded(after, steps=100, alpha=0.05 / 6, side="upper").interval.high
    assert row["error_high"] == pytest.approx(high, abs=1e-12)
    low = cal.certify.rounded(after, steps=100, alpha=0.05 / 6, side="lower").interval.low
    assert row["error_shown_low"] == pytest.approx(low, abs=1e-12)
    c = found.variables.columns
    at = next(i for i, v in enumerate(c["variable"]) if v == "age" and c["probability"][i] == "Platt")
    assert c["vece"][at] == pytest.approx(cal.measure.vece(after, "age").value, abs=2e-3)
    gaps = {
        v: g
        for p, v, g in zip(*(found.groups.columns[k] for k in ("probability", "level", "gap")), strict=True)
        if p == "Platt"
    }
    men = np.asarray(judged.covariates.column("sex").to_pylist()) == "m"
    assert gaps["m"] == pytest.approx((after.y[men] - after.p[men]).mean(), abs=1e-12)


def test_halves_are_disjoint_and_the_same_again() -> None:
    data = rows(1001)
    part = hash_split(data, 2, 3)
    assert (part == hash_split(data, 2, 3)).all()
    assert abs(int(part.sum()) - 500) <= 1
    assert (part != hash_split(data, 2, 4)).any()


@pytest.mark.slow
def test_clusters_are_kept_together() -> None:
    data = rows(4000, bend=2.0)
    data = replace(data, cluster=np.random.default_rng(3).integers(0, 300, 4000), cache={})
    for parts in (2, 5):
        part = hash_split(data, parts, 0)
        assert all(len(set(part[data.cluster == c])) == 1 for c in np.unique(data.cluster))
        each = np.bincount(part[np.unique(data.cluster, return_index=True)[1]])
        assert each.max() - each.min() <= 1
    found = evaluate(data, repairs=[Platt()], by="sex", tests=())
    assert found.settings["not_applicable"] == ()
    alone = evaluate(replace(data, cluster=None, cache={}), repairs=[Platt()], by="sex", tests=())
    assert found.row("Platt")["error_high"] > alone.row("Platt")["error_high"]
    assert {"brier", "log_loss"} <= set(found.verdicts["Platt"]["better"])
    with pytest.raises(cal.NotComputable, match="1 cluster cannot be split into 2 parts"):
        evaluate(replace(data, cluster=np.zeros(4000), cache={}), repairs=[Platt()])


def test_where_a_unit_goes_does_not_depend_on_sizes() -> None:
    """Dealt evenly in rows, as once, a unit that grows pushes others from part to part, and is more often the last."""
    rng = np.random.default_rng(5)
    first: dict[int, NDArray[np.int64]] = {}
    for _ in range(20):
        cluster_code = np.repeat(np.arange(60), rng.integers(1, 200, 60))
        data = replace(rows(len(cluster_code)), cluster=cluster_code, cache={})
        for parts in (2, 5):
            part = hash_split(data, parts, 0)[np.unique(cluster_code, return_index=True)[1]]
            assert (first.setdefault(parts, part) == part).all()


@pytest.mark.slow
def test_units_are_counted_on_both_sides_and_told() -> None:
    data = replace(rows(4000, bend=2.0), cluster=np.random.default_rng(3).integers(0, 300, 4000), cache={})
    cluster_sums = len(np.unique(data.cluster))
    found = evaluate(data, repairs=[Platt()], tests=())
    reported = found.settings
    assert reported["clusters_fit"] + reported["clusters_judged"] == cluster_sums
    line = terminal.comparison(found).partition("\n")[0]
    judged = f"judged on {num.count(reported['rows_judged'])} rows of {reported['clusters_judged']} other clusters."
    assert line.startswith(
        f"Fitted on {num.count(reported['rows_fit'])} rows of {reported['clusters_fit']} clusters, {judged}"
    )
    folded = evaluate(data, repairs=[Platt()], folds=3, tests=())
    assert "folds of whole clusters" in terminal.comparison(folded)
    alone = evaluate(replace(data, cluster=None, cache={}), repairs=[Platt()], tests=())
    assert (alone.settings["clusters_fit"], alone.settings["clusters_judged"]) == (0, 0)
    assert "unit" not in terminal.comparison(alone).splitlines()[0]


@pytest.mark.slow
def test_rows_of_a_unit_are_not_fitted_on_and_judged() -> None:
    patient = np.random.default_rng(3).integers(0, 300, 4000)
    fit = replace(rows(4000, bend=2.0, seed=1), cluster=patient, cache={})
    data = replace(rows(4000, bend=2.0, seed=2), cluster=patient + 290, cache={})
    with pytest.raises(cal.BadInput, match="10 of 300 clusters to judge on have rows to fit on too"):
        evaluate(data, repairs=[Platt()], fit_on=fit, tests=())
    numbered_anew = evaluate(data, repairs=[Platt()], fit_on=fit, tests=(), distinct_clusters=True)
    assert (numbered_anew.settings["clusters_fit"], numbered_anew.settings["clusters_judged"]) == (300, 300)
    with pytest.raises(cal.BadInput, match="distinct_clusters= is about"):
        evaluate(data, repairs=[Platt()], tests=(), distinct_clusters=True)
    others = replace(data, cluster=patient + 300, cache={})
    found = evaluate(others, repairs=[Platt()], fit_on=fit, tests=())
    assert (found.settings["clusters_fit"], found.settings["clusters_judged"]) == (300, 300)
    assert "rows of 300 other clusters, judged on" in terminal.comparison(found)


@pytest.mark.slow
def test_weights_change_the_scores_and_widen_the_certificates() -> None:
    data = rows(4000, bend=2.0)
    weight = np.random.default_rng(4).uniform(1, 3, 4000)
    found = evaluate(replace(data, weights=weight, cache={}), repairs=[Platt()], tests=())
    judged = replace(data, weights=weight, cache={}).part(np.flatnonzero(hash_split(data, 2, 0) == 1))
    assert found.row(AS_AUDITED)["brier"] == pytest.approx(cal.measure.brier(judged).value)
    assert (
        found.row(AS_AUDITED)["error_high"] > evaluate(data, repairs=[Platt()], tests=()).row(AS_AUDITED)["error_high"]
    )
    assert "brier" in found.verdicts["Platt"]["better"]


@pytest.mark.slow
def test_folds_judge_every_row_and_give_a_map_of_all() -> None:
    data = rows(3000, bend=2.5)
    found = evaluate(data, repairs=[Platt()], folds=3, by="sex", tests="local", test_rows=600, draws=99)
    assert found.settings["rows_judged"] == 3000
    assert found.settings["folds"] == 3
    assert found.calibrators["Platt"].fitted_on.rows == 3000
    assert "brier" in found.verdicts["Platt"]["better"]
    assert found.row(AS_AUDITED)["error_low"] < found.row(AS_AUDITED)["error_high"]
    assert found.row(AS_AUDITED)["local_p"] >= 0.03  # three times the smallest possible of 99 draws


def test_a_repair_fitted_where_clusters_cross_is_judged_on_independent_rows() -> None:
    fit, (person, question) = rows(600, seed=5), np.divmod(np.arange(600), 20)
    crossed = cal.predictions(fit.y, fit.p, cluster={"person": person, "question": question})
    found = evaluate(rows(400), repairs=[cal.repair.Platt()], fit_on=crossed, tests=())
    assert (found.settings["rows_fit"], found.settings["clusters_fit"]) == (600, 0)


def test_fit_on_other_rows_judges_all() -> None:
    found = evaluate(rows(2000, seed=1), repairs=[Platt()], fit_on=rows(3000, seed=2), tests=())
    assert (found.settings["rows_fit"], found.settings["rows_judged"], found.settings["how"]) == (3000, 2000, "fit_on")


@pytest.mark.slow
def test_a_fitted_map_is_judged_on_all_rows_and_beside_recipes() -> None:
    fitted = Platt().fit(rows(3000, seed=5))
    assert evaluate(rows(2000), repairs=fitted, tests=()).settings["how"] == "fitted"
    both = evaluate(rows(2000), repairs={"old": fitted, "new": Platt()}, tests=())
    assert both.settings["rows_judged"] == 1000
    assert both.calibrators["old"] == fitted


@pytest.mark.slow
def test_a_harmful_repair_is_called_worse() -> None:
    harmful = Logistic(recipe="Platt", slope=3.0, intercept=0.0)
    found = evaluate(rows(20_000), repairs={"sharpen": harmful}, by=["sex"], tests=())
    v = found.verdicts["sharpen"]
    assert {"error", "brier", "log_loss"} <= set(v["worse"])
    assert "nothing is shown to be better; worse in certified error, the worst group, Brier score" in v["line"]
    assert found.recommended == AS_AUDITED


@pytest.mark.parametrize("folds", [0, 2])
def test_a_map_that_changes_nothing_is_shown_neither_better_nor_worse(folds: int) -> None:
    rng = np.random.default_rng(6)
    high = rng.uniform(size=4000) < 0.5  # error that steps of two points hide: the raw lower end is above the upper end
    data = cal.predictions(
        rng.uniform(size=4000) < np.where(high, 0.7, 0.3), np.where(high, 0.505, 0.495), {"g": np.full(4000, "all")}
    )
    same = Logistic(recipe="Platt", slope=1.0, intercept=0.0)
    repairs = {"same": same, "Platt": Platt()} if folds else {"same": same}
    found = evaluate(data, repairs=repairs, by="g", folds=folds, steps=50, tests=())
    row = found.row(AS_AUDITED)
    assert row["error_low"] > row["error_high"] > row["error_shown_low"]
    assert row["worst_group_low"] > row["worst_group_high"] > row["worst_group_shown_low"]
    assert found.verdicts["same"]["better"] == found.verdicts["same"]["worse"] == ()
    assert folds or found.recommended == AS_AUDITED


@pytest.mark.slow
def test_harm_moved_to_a_group_is_named() -> None:
    data = rows(20_000)
    men = np.asarray(data.covariates.column("sex").to_pylist()) == "m"
    y = np.where(men, data.y, np.random.default_rng(9).uniform(size=data.n) < data.p**2).astype(np.int8)
    found = evaluate(replace(data, y=y, cache={}), repairs=[Platt()], by="sex", tests=())
    v = found.verdicts["Platt"]
    assert "group:sex = f" in v["better"]
    assert "group:sex = m" in v["worse"]
    assert "worse in the gap of sex = m" in v["line"]


def subset(data: Any, keep: Any) -> Any:
    return data.part(np.flatnonzero(keep))


def test_judging_on_rows_of_the_fit_is_refused() -> None:
    data = rows(3000)
    half = np.arange(3000) < 1500
    for fit, judge in (
        (data, data),
        (data, subset(data, half)),
        (subset(data, half), data),
        (data, subset(data, np.arange(3000) >= 2700)),
    ):
        with pytest.raises(cal.BadInput, match="repair 'Platt' would be judged on"):
            evaluate(judge, repairs=[Platt().fit(fit)], tests=())
    shuffled = data.part(np.random.default_rng(0).permutation(3000))
    with pytest.raises(cal.BadInput, match="the very rows it was fitted on"):
        evaluate(shuffled, repairs=Platt().fit(data), tests=())
    with pytest.raises(cal.BadInput, match="data holds rows of fit_on"):
        evaluate(data, repairs=[Platt()], fit_on=subset(data, half), tests=())
    with pytest.raises(cal.BadInput, match="'Platt' would be judged on"):
        evaluate(data, repairs=[Platt().fit(data), Platt()], folds=2, tests=())


@pytest.mark.parametrize("digits", [0, 1, 2, 3])
def test_equal_scores_of_other_people_are_no_reason_to_refuse(digits: int) -> None:
    one, other = rows(3000, seed=21), rows(3000, seed=22)
    coarse = [replace(d, p=np.round(d.p, digits), cache={}) for d in (one, other)]
    evaluate(coarse[0], repairs=Platt().fit(coarse[1]), tests=())
    evaluate(coarse[0], repairs=[Platt()], tests=())


def test_the_same_counts_of_few_scores_are_no_reason_to_refuse() -> None:
    y, p = np.arange(400) % 2, np.repeat([0.25, 0.5], 200)
    evaluate(cal.predictions(y, p), repairs=Platt().fit(cal.predictions(y, p)), tests=())


def test_what_was_not_fitted_may_be_judged_anywhere() -> None:
    data = rows(2000)
    found = evaluate(data, repairs={"steps": cal.repair.Rounding(steps=20).fit(data)}, tests=())
    assert found.settings["rows_judged"] == 2000


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"repairs": [Platt]}, "repair 'type' is a Platt: pass a recipe"),
        ({"repairs": ["platt"]}, "repair 'str' is a str"),
        ({"repairs": []}, "repairs is empty"),
        ({"repairs": {"as audited": Platt()}}, "cannot be named 'as audited'"),
        ({"folds": 1}, "folds=1: pass a whole number from 2 to 20"),
        ({"folds": 2, "fit_on": rows(50)}, "pass one"),
        ({"fit_on": 3}, "fit_on is a int"),
        ({"tests": "weak"}, "tests='weak': choose from local, strong"),
        ({"by": "sexx"}, "group column 'sexx' is not in the data; did you mean 'sex'"),
        ({"by": "sex", "bins": {"age": [40]}}, "bins for 'age', which is not a group column"),
        ({"variables": "agee"}, "covariate column 'agee' is not in the data"),
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"steps": 1}, "steps=1"),
        ({"draws": 5}, "draws=5"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_that_cannot_be_used(how: dict[str, Any], says: str) -> None:
    with pytest.raises(cal.BadInput, match=says):
        evaluate(rows(200), **{"repairs": [Platt()], "tests": (), **how})


def test_data_that_cannot_be_used() -> None:
    with pytest.raises(cal.BadInput, match="several classes"):
        evaluate(cal.multiclass_predictions([0, 1, 2], np.full((3, 3), 1 / 3)))
    with pytest.raises(cal.BadInput, match="data is a str"):
        evaluate("rows.csv")
    with pytest.raises(cal.BadInput, match="fitted already"):
        evaluate(rows(200), repairs=Platt().fit(rows(100, seed=2)), folds=2)
    with pytest.raises(cal.NotComputable, match="no repair could be fitted: Platt cannot be fitted"):
        evaluate(cal.predictions(np.zeros(50), np.full(50, 0.2)), repairs=[Platt()])
    with pytest.raises(cal.NotComputable, match="at least two rows"):
        evaluate(cal.predictions([0], [0.2]), repairs=[Platt()])


class Picky(Platt):
    def fit(self, data: Any) -> Any:  # noqa: ARG002
        raise cal.NotComputable("it is picky")


@pytest.mark.slow
def test_what_cannot_be_fitted_is_left_out_and_said() -> None:
    for folds in (0, 2):
        found = evaluate(rows(300), repairs={"a": Platt(), "b": Picky()}, folds=folds, tests=())
        assert found.settings["left_out"] == (("b", "it is picky"),)
        assert set(found.calibrators) == {"a"}


@pytest.mark.parametrize("p", [np.full(60, 0.3), np.tile([0.0, 1.0], 30), np.tile([0.2, 0.2, 0.7], 20)])
def test_degenerate_scores_give_numbers(p: Any) -> None:
    y = np.arange(60) % 3 == 0
    found = evaluate(cal.predictions(y, p, {"x": np.arange(60) % 4}), repairs=[Platt()], by="x", tests=())
    json.dumps(found.to_dict(), allow_nan=False)


def test_judged_rows_of_one_class_have_no_auroc() -> None:
    judged = cal.predictions(np.zeros(300), np.random.default_rng(0).uniform(size=300))
    found = evaluate(judged, repairs=Platt().fit(rows(500)), tests=())
    assert found.row("Platt")["auroc"] is None


def table(**brier: float) -> dict[str, Summary]:
    return {
        name: Summary(probability=name, recipe=name, order="kept", brier=b, error_shown_low=0.0, error_high=0.1)
        for name, b in {AS_AUDITED: 0.2, **brier}.items()
    }


def stated(better: str = "brier", worse: str = "") -> dict[str, Any]:
    return {"better": (better,) if better else (), "worse": (worse,) if worse else ()}


def test_the_simplest_that_is_not_shown_worse_is_recommended() -> None:
    t = table(Isotonic=0.10, Platt=0.11, BBQ=0.12)
    verdicts = {name: stated() for name in ("Isotonic", "Platt", "BBQ")}
    nothing: dict[str, tuple[str, ...]] = dict.fromkeys(t, ())
    assert recommended(t, verdicts, nothing) == "Platt"
    assert recommended(t, verdicts, {**nothing, "Platt": ("Isotonic",)}) == "Isotonic"
    assert recommended(t, {**verdicts, "Platt": stated("accuracy")}, nothing) == "Isotonic"
    assert recommended(t, {**verdicts, "Platt": stated("brier", "log_loss")}, nothing) == "Isotonic"
    assert recommended(t, {name: stated("") for name in verdicts}, nothing) == AS_AUDITED
    t["Platt"] = replace(t["Platt"], error_shown_low=0.2, error_high=0.3)
    assert recommended(t, verdicts, nothing) == "Isotonic"
    assert simplicity("Platt") < simplicity("VariableTree") < simplicity("yours")


@pytest.mark.slow
def test_by_default_the_score_is_repaired_and_with_covariates_they_are_read() -> None:
    assert set(evaluate(rows(600), tests=()).calibrators) == {"Platt", "Beta", "Isotonic", "AugmentedLogistic"}
    assert "AugmentedLogistic" not in evaluate(rows(600), variables=(), tests=()).calibrators


def test_a_map_carries_what_refuses_it_through_json() -> None:
    data = rows(500)
    again = Calibrator.from_json(Platt().fit(data).to_json())
    with pytest.raises(cal.BadInput, match="would be judged on"):
        evaluate(data, repairs=again, tests=())


def test_a_repair_that_called_impossible_what_happened_is_never_recommended() -> None:
    rng = np.random.default_rng(77)
    low = np.arange(8_000) % 20 == 0

    def year(rate: float) -> cal.Predictions:
        true = np.where(low, rate, rng.uniform(0.2, 0.8, 8_000))
        return cal.predictions(rng.uniform(size=8_000) < true, np.where(low, rng.uniform(0.001, 0.002, 8_000), true**2))

    earlier, later = year(0.0), year(0.02)
    found = cal.repair.evaluate(later, repairs=[cal.repair.Isotonic(), cal.repair.Beta()], fit_on=earlier, tests=())
    assert found.row("Isotonic")["impossible"] > 0
    assert found.row("Beta")["impossible"] == 0
    assert "certainty" in found.verdicts["Isotonic"]["worse"]
    assert "certainty" in found.verdicts["Isotonic"]["line"]
    assert found.recommended == "Beta"


# ---- by ordinary intervals, where no guarantee says anything ----


def test_what_only_ordinary_intervals_show_is_recommended_and_said_to_rest_on_them() -> None:
    """Platt lowers the Brier score, too little to be certified at so few rows: it is not left alone."""
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, 2400)
    data = cal.predictions(rng.uniform(size=2400) < 0.25 + 0.5 * p, p)
    found = evaluate(data, repairs=[Platt()], tests=(), alpha=0.001)
    assert (found.recommended, found.settings["basis"]) == ("Platt", "guaranteed")
    few = cal.predictions(data.y[:700], data.p[:700])
    found = evaluate(few, repairs=[Platt()], tests=(), alpha=0.05)
    v = found.verdicts["Platt"]
    assert (found.recommended, found.settings["basis"]) == ("Platt", "estimated")
    assert not v["better"]
    assert "log_loss" in v["estimated_better"]
    text = terminal.comparison(found)
    assert "This rests on ordinary intervals" in text
    assert re.search(r"Brier\s+score −0\.\d{4}\s+\(−0\.\d{4}\s+to\s+", text)
    assert "leave it as it is" not in text


def test_what_may_make_a_group_worse_is_not_recommended_by_estimates() -> None:
    verdicts = {"Platt": {"worse": (), "estimated_better": ("brier",), "estimated_worse": ("group:site = north",)}}
    assert recommended(table(Platt=0.1), by_estimates(verdicts), {"Platt": ()}) == AS_AUDITED
    verdicts["Platt"]["estimated_worse"] = ()
    assert recommended(table(Platt=0.1), by_estimates(verdicts), {"Platt": ()}) == "Platt"


def test_groups_recommend_nothing_by_estimates_and_scores_do() -> None:
    verdicts = {"Platt": {"worse": (), "estimated_better": ("group:site = north",), "estimated_worse": ()}}
    assert recommended(table(Platt=0.1), by_estimates(verdicts), {"Platt": ()}) == AS_AUDITED
    verdicts["Platt"]["estimated_better"] = ("group:site = north", "log_loss")
    assert recommended(table(Platt=0.1), by_estimates(verdicts), {"Platt": ()}) == "Platt"


@pytest.mark.parametrize("score", ["brier", "log_loss"])
def test_what_estimates_show_worse_in_a_proper_score_is_not_recommended_by_a_guarantee(score: str) -> None:
    verdict = {"better": ("variable:age",), "worse": (), "estimated_worse": (score,)}
    assert recommended(table(Platt=0.1), {"Platt": verdict}, {"Platt": ()}) == AS_AUDITED
    verdict["estimated_worse"] = ("group:site = north",)
    assert recommended(table(Platt=0.1), {"Platt": verdict}, {"Platt": ()}) == "Platt"


@pytest.mark.parametrize("clusters", [False, True])
def test_groups_without_events_are_estimated_better_only_where_events_were_to_come(clusters: bool) -> None:
    """Residuals of no events vary as little as scores do, which says nothing of how many there could have been."""
    size = {"a": 50, "b": 400, "c": 3000}  # 1, 8 and 60 events expected
    site = np.repeat(list(size), list(size.values()))
    p = np.full(len(site), 0.02) + 1e-4 * (np.arange(len(site)) % 3)
    cluster = np.arange(len(site)) // 3 if clusters else None
    data = cal.predictions(np.zeros(len(site)), p, {"site": site}, cluster=cluster)
    judged = Judged.of(data, {AS_AUDITED: p, "halved": p / 2, "doubled": 2 * p}, np.zeros(len(site), dtype=np.int64))
    changes = group_changes(judged, groups_of(data, ("site",), {}, 10, 0), 0.05)
    said = {(c.probability, c.level): c.estimated for c in changes}
    assert {said[name, level] for name in ("halved", "doubled") for level in "ab"} == {"undecided"}
    assert (said["halved", "c"], said["doubled", "c"]) == ("better", "worse")


def test_where_none_is_recommended_the_best_is_named_and_whether_error_is_shown() -> None:
    data = rows(600)
    found = evaluate(data, repairs=[cal.repair.Rounding(steps=100)], tests=())
    assert found.recommended == AS_AUDITED
    assert "None is recommended" in (text := terminal.comparison(found))
    assert "Rounding: Brier score" in text
