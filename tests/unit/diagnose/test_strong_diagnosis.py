"""Control chart, importance and rules of the strong calibration test: what they hold, find and refuse."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import vl_convert as vlc
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import calibrant as cal
from calibrant.diagnose.rule_search import Ballot, Binned, Hunt, price
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.cusum import Boundary
from calibrant.views.rules import Condition, columns_of

QUICK: list[tuple[str, Any]] = [
    ("tree", DecisionTreeRegressor(max_depth=3, min_samples_leaf=10)),
    ("logistic", LogisticRegression()),
]
chart_of, importance, searched_subgroups = (
    cal.diagnose.control_chart,
    cal.diagnose.importance,
    partial(cal.diagnose.subgroups, method="searched"),
)


def planted(n: int = 1000, off: float = 0.35, seed: int = 3, **more: Any) -> Any:
    """A model that is off for those over 70 in ward b."""
    rng = np.random.default_rng([0xD1A, seed])
    age, ward = rng.integers(20, 90, n), rng.choice(["a", "b", "c"], n)
    bmi = np.where(rng.random(n) < 0.1, np.nan, rng.normal(27, 5, n))
    p = rng.uniform(0.35, 0.6, n)
    y = rng.random(n) < np.where((age > 70) & (ward == "b"), p + off, p)
    return cal.predictions(y, p, {"age": age, "ward": ward, "bmi": bmi}, **more)


@pytest.mark.parametrize("null", ["fixed", "split", "refit"])
def test_the_chart_shows_the_test(null: Any) -> None:
    few = QUICK[:1] if null == "refit" else QUICK
    tolerance = 0.0 if null == "refit" else 0.05
    data, draws = planted(600), 39
    curve = chart_of(data, tolerance=tolerance, null=null, models=few, draws=draws, alpha=0.1)
    found = cal.detect.strong_calibration_test(data, tolerance=tolerance, null=null, models=few, draws=draws)
    s, c = curve.settings, curve.columns
    assert (s["p_value"], s["statistic"]) == (found.p_value, found.statistic)
    assert (s["peak_rows"], s["model"]) == (found.parts["peak_rows"], found.parts["chosen"])
    assert max(c["evidence"]) == s["statistic"] == s["peak_score"]
    assert (max(c["evidence"]) >= c["line"][0]) == (s["p_value"] <= 0.1)
    assert len(c["x"]) <= 60
    assert list(c["x"]) == sorted(set(c["x"]))
    assert c["x"][0] == c["evidence"][0] == 0.0
    assert {f"null_{b}" for b in range(1, 9)} < set(c)
    assert Curve.from_dict(curve.to_dict()) == curve
    assert curve.to_arrow().num_rows == len(c["x"])


@pytest.mark.parametrize(("null", "tolerance", "fits"), [("fixed", 0.05, 5), ("split", 0.0, 1)])
def test_the_test_and_what_explains_it_fit_and_draw_once(
    null: Any, tolerance: float, fits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calibrant.search import detectors, models

    counted = {"fits": 0, "draws": 0}
    fit, draw = models.Pool.fitted, detectors.simulated

    def fitted(*rest: Any) -> Any:
        counted["fits"] += 1
        return fit(*rest)

    def drawn(*rest: Any) -> Any:
        counted["draws"] += 1
        return draw(*rest)

    monkeypatch.setattr(models.Pool, "fitted", fitted)
    monkeypatch.setattr(detectors, "simulated", drawn)
    data, asked = planted(600), {"tolerance": tolerance, "null": null, "models": QUICK}
    test = cal.detect.strong_calibration_test(data, **asked)
    chart, table = chart_of(data, **asked), importance(data, repeats=2, **asked)
    assert counted == {"fits": fits, "draws": 1}
    assert test.p_value == chart.settings["p_value"]
    assert table.settings["statistic"] == pytest.approx(test.statistic)
    assert table.settings["rows_tested"] == test.parts["rows_tested"]
    chart_of(data, **asked | {"tolerance": 0.1})
    assert counted == {"fits": fits, "draws": 2}


def test_the_first_simulated_paths_are_those_of_the_line() -> None:
    """A path read at all its points would peak where the simulation says; the points drawn come close from below."""
    from calibrant.search import nulls as strong_nulls
    from calibrant.search.detectors import Settings, detector_inputs

    data = planted(400)
    curve = chart_of(data, tolerance=0.05, models=QUICK[:1], draws=39)
    peaks = strong_nulls.verdict_of(
        detector_inputs(data, Settings(tolerance=0.05, models=QUICK[:1])), "fixed", 39
    ).peaks
    tops = np.array([max(curve.columns[f"null_{b}"]) for b in range(1, 9)])
    assert (tops <= np.maximum(peaks[:8], 0.0) + 1e-3).all()
    assert (tops >= 0.3 * peaks[:8]).all()


def test_which_way_and_where_the_chart_peaks() -> None:
    up, down = (chart_of(planted(1500, off), tolerance=0.05, models=QUICK, draws=39) for off in (0.35, -0.35))
    assert (up.settings["side"], down.settings["side"]) == ("underpredicts", "overpredicts")
    for curve in (up, down):
        gap = curve.settings["peak_observed"] - curve.settings["peak_predicted"]
        assert abs(gap) > 0.2
        assert 0.04 < curve.settings["peak_share"] < 0.4


@pytest.mark.slow
def test_few_draws_have_no_line_and_nothing_beyond_has_no_chart() -> None:
    curve = chart_of(planted(300), tolerance=0.05, models=QUICK[:1], draws=19, alpha=0.01)
    assert set(curve.columns["line"]) == {None}
    assert Curve.from_dict(curve.to_dict()) == curve
    curve.chart().to_dict()
    with pytest.raises(NotComputable, match="no path to draw"):
        chart_of(planted(300), tolerance=0.9, models=QUICK[:1], draws=19)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda d: chart_of(d, null="forward"), "null='forward'"),  # type: ignore[arg-type]
        (lambda d: chart_of(d, alpha=1.0), "alpha=1.0"),
        (lambda d: importance(d, repeats=1), "repeats=1"),
        (lambda d: searched_subgroups(d, rules=0), "rules=0"),
        (lambda d: searched_subgroups(d, depth=9), "depth=9"),
        (lambda d: searched_subgroups(d, min_share=0.7), "min_share=0.7"),
        (lambda d: searched_subgroups(d, variables=["nobody"]), "nobody"),
        (lambda d: searched_subgroups(cal.multiclass_predictions([0, 1, 2], np.eye(3))), "several classes"),
    ],
)
def test_bad_arguments_are_named(call: Any, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        call(planted(100))


def test_importance_ranks_what_matters() -> None:
    data = planted(1500)
    table = importance(data, tolerance=0.05, models=QUICK, repeats=5)
    c = table.columns
    assert set(c["variable"][:2]) == {"age", "ward"}
    assert set(c["variable"]) == {"age", "ward", "bmi", "the score"}
    assert list(c["drop"]) == sorted(c["drop"], reverse=True)
    assert all(a <= d <= b for a, d, b in zip(c["low"], c["drop"], c["high"], strict=True))
    assert c["low"][0] > 0
    assert c["drop"][0] == pytest.approx(c["share"][0] * table.settings["statistic"])
    assert Curve.from_dict(table.to_dict()) == table
    again = importance(data, tolerance=0.05, models=QUICK, repeats=5)
    assert again == table


def test_a_covariate_named_score_is_not_the_score() -> None:
    rng = np.random.default_rng(8)
    p, own = rng.uniform(0.2, 0.7, 800), rng.normal(size=800)
    data = cal.predictions(rng.random(800) < np.where(own > 0.8, p + 0.3, p), p, {"score": own})
    table = importance(data, tolerance=0.05, models=QUICK, repeats=3)
    assert table.columns["variable"][0] == "score"
    assert set(table.columns["variable"]) == {"score", "the score"}


def test_importance_of_nothing_is_refused() -> None:
    with pytest.raises(NotComputable, match="statistic is 0"):
        importance(planted(300), tolerance=0.9, models=QUICK[:1])


def test_rules_name_the_group_and_keep_their_promises() -> None:
    data = planted(3000)
    table = searched_subgroups(data, tolerance=0.05, models=QUICK)
    c = table.columns
    assert sorted(c["rule"][0].split(" and "))[1] == "ward = b"
    assert c["finding"][0]
    assert c["side"][0] == "underpredicts"
    assert c["stability"][0] >= 0.8
    columns = columns_of(data, None)
    rule = [Condition.from_dict(v) for v in table.settings["conditions"][0]]
    inside = columns.matching(rule)
    truth = (columns.numbers["age"] > 70) & columns.select(Condition(variable="ward", kind="category", levels=("b",)))
    assert (inside & truth).sum() / (inside | truth).sum() > 0.5
    assert c["share"][0] == pytest.approx(inside.mean())
    for i in range(len(c["rule"])):
        assert c["rows"][i] >= 20
        assert c["observed_low"][i] <= c["observed"][i] <= c["observed_high"][i]
        assert c["gap"][i] == pytest.approx(c["observed"][i] - c["predicted"][i])
        assert c["low"][i] == pytest.approx(c["observed_low"][i] - c["predicted"][i])
        assert c["p_value"][i] <= c["p_adjusted"][i]
    assert list(c["excess"]) == sorted(c["excess"], reverse=True)
    assert Curve.from_dict(table.to_dict()) == table
    assert table.to_arrow().num_rows == len(c["rule"])
    assert searched_subgroups(data, tolerance=0.05, models=QUICK) == table


def test_rules_of_three_attributes_that_no_pair_shows() -> None:
    """The score is off by 14 points, up where an odd number of three attributes is "yes" and down elsewhere."""
    rng = np.random.default_rng(17)
    b, p = rng.choice([-1, 1], (2400, 4)), rng.uniform(0.3, 0.7, 2400)
    covariates = {f"b{j}": np.where(v > 0, "yes", "no") for j, v in enumerate(b.T)} | {"x": rng.normal(size=2400)}
    y = rng.random(2400) < p + 0.14 * b[:, :3].prod(axis=1)
    data = cal.predictions(y, p, covariates)
    table = searched_subgroups(data)
    c = table.columns
    three = [i for i, rule in enumerate(c["rule"]) if [w for w in rule.split() if w[0] == "b"] == ["b0", "b1", "b2"]]
    assert len(three) >= 3
    for i in three:
        side = 1 if c["rule"][i].count("yes") % 2 else -1
        assert side * c["gap"][i] > 0
        assert c["low"][i] < side * 0.14 < c["high"][i]
    assert sum(c["finding"][i] for i in three) >= 2
    assert "b2" not in " ".join(searched_subgroups(data, depth=2).columns["rule"])  # two conditions cannot say it


def test_the_judging_half_cannot_change_the_rules() -> None:
    data = planted(600)
    first = searched_subgroups(data, models=QUICK)
    from calibrant.search.models import hash_split

    judges = hash_split(data.n, 2, 0) == 1
    y = np.where(judges, 1 - data.y, data.y)
    second = searched_subgroups(cal.predictions(y, data.p, data.covariates), models=QUICK)
    assert {json.dumps(r, default=list) for r in first.to_dict()["settings"]["conditions"]} == {
        json.dumps(r, default=list) for r in second.to_dict()["settings"]["conditions"]
    }


@pytest.mark.parametrize("more", ["weights", "clusters", "both"])
def test_weights_and_clusters(more: str) -> None:
    rng = np.random.default_rng(5)
    extra: dict[str, Any] = {}
    if more != "clusters":
        extra["weights"] = rng.uniform(0.5, 2.0, 2000)
    if more != "weights":
        extra["cluster"] = rng.integers(0, 300, 2000)
    c = searched_subgroups(planted(2000, 0.4, **extra), models=QUICK).columns
    assert "ward = b" in c["rule"][0]
    assert c["finding"][0]
    assert 0.0 < c["low"][0] < c["gap"][0] < c["high"][0] < 0.7


def test_one_side_only_and_small_data() -> None:
    table = searched_subgroups(planted(2000, -0.35), models=QUICK, alternative="greater")
    assert "overpredicts" not in table.columns["side"]
    with pytest.raises(NotComputable, match="two halves"):
        searched_subgroups(planted(30), models=QUICK)
    with pytest.raises(NotComputable, match="clusters"):
        searched_subgroups(planted(100, cluster=np.arange(100) % 8), models=QUICK)
    tiny = searched_subgroups(planted(60), models=QUICK)
    assert all(n >= 20 for n in tiny.columns["rows"])


def test_missing_numbers_are_a_side_of_their_own() -> None:
    rng = np.random.default_rng(6)
    income = np.where(rng.random(2000) < 0.2, np.nan, rng.lognormal(10, 1, 2000))
    p = rng.uniform(0.3, 0.6, 2000)
    data = cal.predictions(rng.random(2000) < np.where(np.isnan(income), p + 0.3, p), p, {"income": income})
    assert searched_subgroups(data, models=QUICK).columns["rule"][0] == "income missing"


def test_without_covariates_rules_are_about_the_score() -> None:
    rng = np.random.default_rng(7)
    p = rng.uniform(size=2000)
    table = searched_subgroups(cal.predictions(rng.random(2000) < np.where(p > 0.7, p - 0.2, p), p), models=QUICK)
    assert table.columns["rule"][0].startswith("the score over ")
    assert table.columns["side"][0] == "overpredicts"


@pytest.mark.slow
def test_charts_are_drawn() -> None:
    data = planted(800)
    made = [
        chart_of(data, tolerance=0.02, null="fixed", models=QUICK, draws=39),
        importance(data, models=QUICK, repeats=2),
        searched_subgroups(data, models=QUICK, rules=3),
    ]
    for curve in made:
        assert "<svg" in vlc.vegalite_to_svg(curve.chart().to_json())
    stated = made[0].chart().to_json(ensure_ascii=False)
    assert ("The curve ends at" in stated) == (max(made[0].columns["x"]) < 0.995)
    assert "The line is from" not in stated
    assert "Where a line takes in 0, the variable is not shown to be needed." in made[1].chart().to_json()
    none = {**made[2].columns, "finding": (False,) * len(made[2].columns["rule"])}
    calm = Curve(method=made[2].method, columns=none, settings=made[2].settings).chart().to_json()
    assert "Examined most closely, not shown" in calm
    assert "Who is badly served" not in calm
    hostile = made[2].to_dict()
    hostile["columns"]["rule"][0] = "</script> \\' \" over 3 and " + "w" * 90
    assert "<svg" in vlc.vegalite_to_svg(Curve.from_dict(hostile).chart().to_json())
    empty = Curve(
        method="diagnose.subgroups.searched", columns=dict.fromkeys(made[2].columns, ()), settings=made[2].settings
    )
    with pytest.raises(NotComputable, match="nothing to draw"):
        empty.chart()


def test_constant_covariates_leave_only_the_score() -> None:
    data = cal.predictions([0, 1] * 100, [0.4, 0.6] * 100, pa.table({"k": [1] * 200}))
    assert all("k" not in r for r in searched_subgroups(data, models=QUICK).columns["rule"])


# ---- the search for rules, against plainer ways ----


def test_trees_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(size=(200, 3))
    data = cal.predictions(rng.integers(0, 2, 200), rng.random(200), {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]})
    columns, weights = columns_of(data, None), rng.uniform(0.5, 2.0, 200)
    target = (x[:, 0] > 0.3) * (x[:, 1] < 0.5) + 0.1 * rng.normal(size=200)
    matrix = np.stack(list(columns.numbers.values()), axis=1)
    tree = DecisionTreeRegressor(max_depth=2, min_samples_leaf=10).fit(matrix, target, sample_weight=weights)
    path = tree.decision_path(matrix).toarray().astype(bool)[:, 1:]
    found = {columns.matching(rule).tobytes() for rule in Binned.of(columns).grown(target, weights, 2, 10)}
    assert found == {node.tobytes() for node in path.T}


def test_the_best_pair_is_the_best_of_all_pairs_without_a_fold() -> None:
    data = planted(300)
    ballot = Ballot(
        columns=columns_of(data, None),
        y=data.y.astype(float),
        edge=Boundary.of(data.p, 0.05),
        weights=np.ones(300),
        alternative="two-sided",
    )
    hunt = Hunt.of(ballot, np.arange(300) % 5, 20, 3, 1)
    left = hunt.fold != 2
    worth, rule = hunt._best_pair(hunt._folds.sum(axis=0) - hunt._folds[2], 16)
    best = -np.inf
    for i, a in enumerate(hunt.met):
        for j, b in enumerate(hunt.met[: i + 1]):
            inside = a & b & left
            if inside.sum() >= 16:
                y, p = data.y[inside], data.p[inside]
                up, down = np.minimum(p + 0.05, 1.0), np.maximum(p - 0.05, 0.0)
                above = (y - up).sum() / np.sqrt((up * (1 - up)).sum())
                below = (down - y).sum() / np.sqrt((down * (1 - down)).sum())
                best = max(best, max(above, below, 0.0) ** 2 - price(1 if i == j else 2, len(hunt.conditions)))
    assert worth == pytest.approx(best, rel=1e-4)
    assert hunt._value(rule, left, 16) == pytest.approx(best, rel=1e-4)
