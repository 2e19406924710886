"""The share that may be accepted: hand-computed cases, both ends, groups, units, sketches, refusals, the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.report.outputs import notebook
from calibrant.results import Estimate
from calibrant.stats.decisions import acceptance
from calibrant.stats.decisions.acceptance import THETAS, WEIGHTS, Ranking, log_evidence


@pytest.fixture(scope="module")
def answers() -> cal.Predictions:
    rng = np.random.default_rng(0)
    n = 6000
    confidence, topic = rng.uniform(0.5, 1.0, n).round(3), np.array(["law", "math"])[rng.integers(0, 2, n)]
    right = rng.uniform(size=n) < np.where(topic == "law", confidence**2, confidence)
    return cal.predictions(right, confidence, {"topic": topic})


def of(found: Estimate, name: str = "everyone") -> dict[str, float]:
    return found.settings["groups"][name]


def test_evidence_is_the_mixture_by_hand() -> None:
    by_hand = np.log(sum(w * (1 - t) ** 2 / (1 - t * 0.1) ** 30 for w, t in zip(WEIGHTS, THETAS, strict=True)))
    assert float(log_evidence(np.array(30), np.array(2), 0.1)) == pytest.approx(by_hand)


def test_evidence_of_very_long_lists_is_finite() -> None:
    assert np.isfinite(log_evidence(np.array([10**12]), np.array([10**9]), 0.01)).all()


def test_the_best_stand_first_and_ties_together() -> None:
    ranking = Ranking.of(np.array([0.9, 0.5, 0.9, 0.7]), np.array([True, True, False, False]), True)
    assert (list(ranking.threshold), list(ranking.rows), list(ranking.wrong)) == ([0.9, 0.7, 0.5], [2, 3, 4], [1, 1, 2])
    lowest = Ranking.of(np.array([0.9, 0.5]), np.array([True, False]), False)
    assert list(lowest.threshold) == [0.5, 0.9]


def test_certified_rates_are_inverted_exactly() -> None:
    ranking = Ranking(np.array([0.9, 0.8]), np.array([200, 500]), np.array([3, 20]))
    for k, s, high in zip(ranking.rows, ranking.wrong, acceptance.highest_rate(ranking, 0.05), strict=True):
        assert float(log_evidence(k, s, high)) == pytest.approx(np.log(20.0), abs=1e-6)


def test_clopper_pearson_agrees_with_scipy() -> None:
    from scipy.stats import binomtest

    found = acceptance.clopper_pearson(np.array([50, 50]), np.array([3, 50]), 0.05)
    assert found[0] == pytest.approx(binomtest(3, 50).proportion_ci(0.9, "exact").high)
    assert found[1] == 1.0


def test_accepts_down_to_the_last_depth_within(answers: cal.Predictions) -> None:
    found = cal.certify.accept(answers, risk=0.2, target="rows")
    reported = of(found)
    passed = answers.p >= reported["threshold"]
    assert reported["accepted"] == passed.sum()
    assert reported["wrong"] == (answers.y[passed] == 0).sum()
    assert found.low == reported["share"] == passed.mean()
    assert found.interval.high == 1.0
    assert reported["certified_rate"] <= 0.2
    assert reported["rate"] < reported["certified_rate"]
    deeper = np.sort(np.unique(answers.p[~passed]))[::-1]
    for t in deeper[:50]:
        more = answers.p >= t
        assert float(log_evidence(more.sum(), (answers.y[more] == 0).sum(), 0.2)) < np.log(20.0)


def test_all_rows_certify_the_population(answers: cal.Predictions) -> None:
    """None is drawn: the seed changes nothing, and the threshold is that of these rows."""
    rows, *population = (
        of(cal.certify.accept(answers, risk=0.2, target=t, seed=seed))["threshold"]
        for t, seed in (("rows", 0), ("population", 0), ("population", 5))
    )
    assert population == [rows, rows]


@pytest.mark.parametrize("target", ["population", "rows"])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_list_is_accepted_exactly_where_its_evidence_is_one_over_its_alpha(target: str, groups: int) -> None:
    """All of alpha is spent, or the part of a group, and no more."""
    n, errors, risk = 90, 2, 0.1
    wrong = np.tile(np.arange(n) % 45 == 44, groups)
    data = cal.predictions(~wrong, np.full(groups * n, 0.9), {"g": np.repeat(np.arange(groups), n).astype(str)})
    alpha = groups * float(np.exp(-log_evidence(np.array(n), np.array(errors), risk)))
    by = "g" if groups > 1 else None
    lows = [
        cal.certify.accept(data, risk=risk, by=by, target=target, alpha=alpha * (1.0 + e)).low  # type: ignore[arg-type]
        for e in (-1e-9, 1e-9)
    ]
    assert lows == [0.0, 1.0]


def test_the_lowest_scores_pass_as_no_cases() -> None:
    rng = np.random.default_rng(1)
    risk = rng.uniform(size=8000) ** 2
    found = cal.certify.accept(cal.predictions(rng.uniform(size=8000) < risk, risk), risk=0.05, end="low")
    t = of(found)["threshold"]
    assert 0.05 < t < 0.2
    assert found.low == np.mean(risk <= t)


def test_each_group_has_a_threshold_and_shares_alpha(answers: cal.Predictions) -> None:
    found = cal.certify.accept(answers, risk=0.2, by="topic")
    law, math = of(found, "topic = law"), of(found, "topic = math")
    assert law["threshold"] > math["threshold"]
    assert found.settings["delta"] == 0.025
    assert law["rows"] + math["rows"] == answers.n == found.n
    assert found.low == pytest.approx((law["accepted"] + math["accepted"]) / answers.n)


def test_nobody_is_accepted_where_everyone_is_wrong() -> None:
    found = cal.certify.accept(cal.predictions(np.zeros(500), np.linspace(0.5, 0.9, 500)), risk=0.1)
    assert found.low == found.value == 0.0
    assert of(found)["threshold"] is None
    assert of(found)["certified_rate"] is None


def test_fewest_is_the_first_number_without_an_error() -> None:
    k = acceptance.fewest(0.02, 0.05)
    assert float(log_evidence(np.array(k), np.array(0), 0.02)) >= np.log(20.0)
    assert float(log_evidence(np.array(k - 1), np.array(0), 0.02)) < np.log(20.0)


def test_units_that_repeat_rows_certify_less(answers: cal.Predictions) -> None:
    five = np.repeat(np.arange(1200), 5)
    p, y = answers.p[:1200][five], answers.y[:1200][five]
    by_rows = cal.certify.accept(cal.predictions(y, p), risk=0.25)
    by_clusters = cal.certify.accept(cal.predictions(y, p, cluster=five), risk=0.25)
    assert by_clusters.low < by_rows.low
    assert by_clusters.settings["clusters"] == 1200
    here = cal.certify.accept(cal.predictions(y, p, cluster=five), risk=0.25, target="rows")
    assert here.low == by_clusters.low
    assert "these rows but those of pilot clusters, given their scores" in here.settings["about"]


def test_weighted_shares_are_of_the_weights(answers: cal.Predictions) -> None:
    weights = np.where(answers.p > 0.8, 3.0, 1.0)
    found = cal.certify.accept(cal.predictions(answers.y, answers.p, weights=weights), risk=0.3)
    passed = answers.p >= of(found)["threshold"]
    assert found.low == pytest.approx(weights[passed].sum() / weights.sum())


def test_a_sketch_accepts_whole_cells(answers: cal.Predictions) -> None:
    sketch = cal.sketch(
        {"y": answers.y, "p": answers.p, "topic": answers.covariates["topic"]}, label="y", score="p", by="topic"
    )
    by_score, cells = cal.certify.accept(answers, risk=0.2), cal.certify.accept(sketch, risk=0.2)
    assert cells.low == pytest.approx(by_score.low, abs=0.03)
    assert set(cal.certify.accept(sketch, risk=0.2, by="topic").settings["groups"]) == {"topic = law", "topic = math"}


def test_of_the_population_the_rate_is_the_risk_that_was_fixed(answers: cal.Predictions) -> None:
    """Evidence at a rate that follows the data has no proof: what is certified is the risk."""
    for group in cal.certify.accept(answers, risk=0.2, by="topic").settings["groups"].values():
        assert group["rate"] < group["certified_rate"] == 0.2


def test_the_curve_of_a_population_tells_rates_apart_that_share_alpha(answers: cal.Predictions) -> None:
    curve = cal.diagnose.acceptance_curve(answers, risk=0.2, points=1000)
    rates = curve.settings["rates"]
    assert 0.2 in rates
    assert max(rates) < 1.0
    assert set(curve.columns["high"]) <= {*rates, 1.0}
    within = [s for s, u in zip(curve.columns["share"], curve.columns["high"], strict=True) if u <= 0.2]
    accepted = curve.settings["groups"]["everyone"]["accepted"]
    assert 0.9 * accepted < max(within) <= accepted
    assert cal.diagnose.acceptance_curve(answers, risk=0.2, target="rows").settings["rates"] == ()


@pytest.mark.parametrize("risk", [0.0005, 0.02, 0.5, 0.8, 0.99])
def test_shares_of_the_rates_add_up_to_alpha(risk: float, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spent(rows: object, wrong: object, rate: float) -> np.ndarray:
        seen.append(rate)
        return np.array([-np.inf])

    monkeypatch.setattr(acceptance, "log_evidence", spent)
    logs = []
    monkeypatch.setattr(acceptance.np, "log", lambda v: logs.append(float(v)) or math.log(v))
    acceptance.highest_of_rates(Ranking(np.zeros(1), np.ones(1), np.zeros(1)), risk, 0.05)
    assert sorted(seen) == pytest.approx(acceptance.rates(risk))
    assert sum(logs) == pytest.approx(0.05)
    assert max(logs) == pytest.approx(0.025)


def test_the_curve_agrees_with_what_is_accepted(answers: cal.Predictions) -> None:
    curve = cal.diagnose.acceptance_curve(answers, risk=0.2, points=1000, target="rows")
    reported = curve.settings["groups"]["everyone"]
    within = [s for s, u in zip(curve.columns["share"], curve.columns["high"], strict=True) if u <= 0.2]
    assert max(within) == pytest.approx(reported["accepted"], abs=0.002)
    assert reported["accepted"] <= reported["picked"]
    assert all(a <= b for a, b in zip(curve.columns["high_alone"], curve.columns["high"], strict=True))


def test_of_a_group_without_pilot_units_nobody_is_accepted() -> None:
    rng = np.random.default_rng(0)
    cluster_code, p = np.repeat(np.arange(300), 4), rng.uniform(size=1200)
    site = np.where(cluster_code < 3, "tiny", "big")
    data = cal.predictions(rng.uniform(size=1200) < p, p, {"site": site}, cluster=cluster_code)
    for seed in (0, 2):  # of the three units one is a pilot unit, and none
        groups = cal.certify.accept(data, risk=0.4, by="site", seed=seed).settings["groups"]
        assert groups["site = tiny"]["threshold"] is None
        assert groups["site = big"]["accepted"] > 500
    assert set(cal.diagnose.acceptance_curve(data, risk=0.4, by="site", seed=2).columns["group"]) == {"site = big"}


@pytest.mark.slow
def test_the_curve_of_units_has_the_pilots_thresholds(answers: cal.Predictions) -> None:
    data = cal.predictions(answers.y, answers.p, cluster=np.arange(answers.n) // 3)
    curve = cal.diagnose.acceptance_curve(data, risk=0.2)
    assert 30 <= len(curve.columns["share"]) <= 50
    assert all(a <= b for a, b in zip(curve.columns["high_alone"], curve.columns["high"], strict=True))


def test_plans_reach_their_power() -> None:
    """By simulation of the planned number of rows."""
    plan = cal.certify.rows_to_accept(risk=0.05, error=0.02, power=0.8)
    rng, n = np.random.default_rng(5), int(plan.value)
    won = 0
    for seed in range(200):
        data = cal.predictions(rng.uniform(size=n) >= 0.02, np.full(n, 0.9))
        won += cal.certify.accept(data, risk=0.05, seed=seed).low == 1.0
    assert 0.68 < won / 200 < 0.92
    assert plan.low == plan.settings["threshold_fixed_beforehand"] < plan.value


def test_rows_needed_beside_clopper_pearson() -> None:
    plan = cal.certify.rows_to_accept(risk=0.01, error=0.005)
    assert plan.value / plan.settings["threshold_fixed_beforehand"] < 1.9


@pytest.fixture(scope="module")
def pool() -> cal.Predictions:
    """Answers of which 15 % are wrong in math, and 2 % elsewhere; `grade` is known with the outcome."""
    rng = np.random.default_rng(1)
    n = 2000
    topic, confidence = np.array(["law", "art", "math"])[rng.choice(3, n, p=(0.7, 0.15, 0.15))], rng.beta(5, 1, n)
    right = rng.uniform(size=n) >= np.where(topic == "math", 0.15, 0.02)
    told = {
        "topic": topic,
        "grade": np.where(right, "pass", "fail"),
        "asked": np.arange(n),
        "long": rng.uniform(size=n),
    }
    return cal.predictions(right, confidence, told)


def test_evidence_above_is_the_mixture_by_hand() -> None:
    by_hand = np.log(np.mean([(1 + t) ** 9 / (1 + t * 0.05) ** 60 for t in acceptance.RAISED]))
    assert acceptance.log_evidence_above(60, 9, 0.05) == pytest.approx(by_hand)


def test_a_group_that_the_pool_hides_is_told(pool: cal.Predictions) -> None:
    found = cal.certify.accept(pool, risk=0.05).settings
    told = found["pool"]
    assert told["above_risk"].keys() == {"topic = math"}
    passed = (pool.p >= found["groups"]["everyone"]["threshold"]) & (np.array(pool.covariates["topic"]) == "math")
    assert told["above_risk"]["topic = math"]["accepted"] == passed.sum()
    assert told["above_risk"]["topic = math"]["wrong"] == (pool.y[passed] == 0).sum()
    assert (told["by"], told["columns"], told["left_out"]) == (("topic",), ("topic",), ("grade",))
    assert told["groups"] == 3
    curve = cal.diagnose.acceptance_curve(pool, risk=0.05)
    assert curve.settings["pool"] == told
    assert "topic = math" in next(iter(notebook.drawings(curve))).text


def test_groups_in_the_pool_share_alpha(pool: cal.Predictions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a column that reproduces the outcome are counted, and left out."""
    enough = math.log(5 / 0.05)  # three topics and two grades
    monkeypatch.setattr(acceptance, "log_evidence_above", lambda *_: enough - 1e-9)
    assert cal.certify.accept(pool, risk=0.05).settings["pool"]["above_risk"] == {}
    monkeypatch.setattr(acceptance, "log_evidence_above", lambda *_: enough + 1e-9)
    assert len(cal.certify.accept(pool, risk=0.05).settings["pool"]["above_risk"]) == 3


def test_with_thresholds_of_their_own_no_group_is_hidden(pool: cal.Predictions) -> None:
    assert cal.certify.accept(pool, risk=0.05, by="topic").settings["pool"]["columns"] == ()
    assert cal.certify.accept(pool, risk=0.0001).settings["pool"]["above_risk"] == {}


def test_the_command_looks_for_groups_in_every_column(
    pool: cal.Predictions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answers.csv"
    columns = [
        pool.y.tolist(),
        pool.p.tolist(),
        pool.covariates["topic"].to_pylist(),
        pool.covariates["asked"].to_pylist(),
    ]
    path.write_text(
        "right,confidence,topic,asked\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in zip(*columns, strict=True))
    )
    named = ["accept", str(path), "--label", "right", "--score", "confidence"]
    assert main([*named, "--risk", "0.05"]) == 0
    printed = capsys.readouterr().out
    assert "Over 5% wrong of what is accepted of these rows, certified: topic = math (" in printed
    assert "--by topic." in printed
    assert main([*named, "--risk", "0.3"]) == 0
    assert (
        "Looked at 3 groups of topic: none is shown to be over 30% wrong. That is no promise" in capsys.readouterr().out
    )


def test_the_command_looks_at_groups_that_it_is_told_to_allow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, 2000)
    y = rng.uniform(size=2000) < p
    path, curve = tmp_path / "match.csv", tmp_path / "curve.json"
    path.write_text("won_a,prob_a,won_b\n" + "".join(f"{int(a)},{b},{int(not a)}\n" for a, b in zip(y, p, strict=True)))
    named = ["accept", str(path), "--label", "won_a", "--score", "prob_a", "--risk", "0.2"]
    assert main(named) == 0
    assert "Not looked at, as they reproduce the outcome: won_b." in capsys.readouterr().out
    assert main([*named, "--allow", "won_b", "--out", str(curve)]) == 0
    printed = capsys.readouterr().out
    assert "certified: won_b = 1 (" in printed
    assert "Not looked at" not in printed
    assert json.loads(curve.read_text())["settings"]["pool"]["left_out"] == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"risk": 1.5}, "risk=1.5"),
        ({"risk": True}, "risk=True"),
        ({"end": "up"}, "end='up'"),
        ({"target": "all"}, "target='all'"),
        ({"by": "age"}, "age"),
        ({"alpha": 0}, "alpha=0"),
    ],
)
def test_refusals(answers: cal.Predictions, settings: dict[str, object], says: str) -> None:
    with pytest.raises(cal.BadInput, match=says):
        cal.certify.accept(answers, **settings)  # type: ignore[arg-type]


def test_plans_refuse_an_error_over_the_risk() -> None:
    with pytest.raises(cal.BadInput, match=r"error=0\.02"):
        cal.certify.rows_to_accept(risk=0.01, error=0.02)


@pytest.fixture
def file(answers: cal.Predictions, tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    rows = zip(answers.y, answers.p, answers.covariates["topic"].to_pylist(), strict=True)
    lines = (f"{y},{p},{t},q{i // 2}\n" for i, (y, p, t) in enumerate(rows))
    path.write_text("right,confidence,topic,question\n" + "".join(lines))
    return path


def test_the_command_prints_and_writes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = file.with_name("curve.csv")
    named = ["--label", "right", "--score", "confidence", "--risk", "0.2"]
    assert main(["accept", str(file), *named, "--by", "topic", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "in each group wrong, certified" in printed
    assert "topic = law" in printed
    assert out.read_text().startswith("group,share,threshold")
    assert main(["accept", str(file), *named, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "certify.accept"
    assert main(["accept", str(file), *named[:-1], "0.0005"]) == 3
    assert "Nothing can be accepted yet" in capsys.readouterr().out


def test_the_command_says_at_which_thresholds_the_rate_holds(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of units it is proved at those that pilot units chose alone, of groups as of everyone."""
    named = ["accept", str(file), "--label", "right", "--score", "confidence", "--risk", "0.3"]
    stated = {}
    for cluster in ((), ("--cluster", "question")):
        for by in ((), ("--by", "topic")):
            assert main([*named, *cluster, *by]) == 0
            stated[bool(cluster), bool(by)] = capsys.readouterr().out.splitlines()[1]
    for (clusters, _), line in stated.items():
        assert ("at all thresholds" in line) != clusters
        assert ("that pilot clusters chose" in line) == clusters
    assert all(("in all groups at once" in line) == groups for (_, groups), line in stated.items())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--risk", "1.5"], "--risk=1.5: pass a number between 0 and 1"),
        (["--alpha", "7"], "--alpha=7.0: pass an error probability"),
        (["--seed", "-1"], "--seed=-1"),
    ],
)
def test_the_command_calls_arguments_as_its_options(
    file: Path, more: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["accept", str(file), "--label", "right", "--score", "confidence", *more]) == 2
    assert says in capsys.readouterr().err


def test_a_plan_calls_arguments_as_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accept", "--risk", "0.02", "--error", "0.01", "--share", "3"]) == 2
    assert "--share=3.0: pass" in capsys.readouterr().err
    assert main(["measure", "brier", "x.csv", "--alpha", "7"]) == 2


def test_the_command_plans_without_data(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accept", "--risk", "0.02", "--error", "0.01", "--share", "0.6"]) == 0
    assert "A plan, not a certificate." in capsys.readouterr().out
    assert main(["accept", str(file), "--error", "0.01"]) == 2
    assert main(["accept", str(file), "--share", "0.6", "--label", "right", "--score", "confidence"]) == 2
    assert "--share" in capsys.readouterr().err


def test_the_page_of_groups_draws_each(answers: cal.Predictions) -> None:
    """A picture for each group, with what it accepts over it."""
    curve = cal.diagnose.acceptance_curve(answers, risk=0.2, by="topic")
    named = {d.title.split(":")[0]: d for d in notebook.drawings(curve)}
    assert named.keys() == {"topic = law", "topic = math"}
    accepted = curve.settings["groups"]["topic = math"]["accepted"]
    assert f"{math.floor(1000 * accepted) / 10:g}% accepted with at most 20% wrong" in named["topic = math"].title
    assert all(len(d.panels) == 1 and "<path" in d.panels[0].picture for d in named.values())
    none = cal.diagnose.acceptance_curve(answers, risk=0.0001, by="topic")
    assert all("nobody accepted" in d.title for d in notebook.drawings(none))
