"""Decisions in the audit: numbers by hand, who is not told, costs, refusals, the record, the report, the command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.checks.decisions import RATES, Rate, layers, spreads
from calibrant.audit.decisions import CERTIFIED_ENDS, clopper_pearson, reported
from calibrant.audit.record import AuditRecord
from calibrant.cli import main
from calibrant.decisions.ladder import ClusterLadder
from calibrant.report import html, markdown, terminal
from calibrant.report.brief import nodes
from calibrant.report.commands import repair
from calibrant.report.document import Paragraph
from calibrant.report.outputs import notebook
from calibrant.report.wording.decisions import acted, worst_reported
from calibrant.stats.clusters.clusters import Clusters


def table(n: int = 3000, seed: int = 0, off: float = 0.1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    p, sex = rng.beta(1, 3, n), np.array(["f", "m"])[rng.integers(0, 2, n)]
    y = (rng.uniform(size=n) < np.clip(p + off * (sex == "f"), 0, 1)).astype(int)
    return {"y": y, "p": p, "sex": sex}


def audited(data: dict[str, np.ndarray], **more: object) -> AuditRecord:
    return cal.audit(data, **{"label": "y", "score": "p", "quick": True, "variables": None, **more})


@pytest.fixture(scope="module")
def record() -> AuditRecord:
    return audited(table(), by="sex", threshold=[0.2, 0.5])


def test_numbers_by_hand(record: AuditRecord) -> None:
    data, c = table(), record.curve("decisions").columns
    assert c["group"] == ("everyone", "sex = f", "sex = m") * 2
    each = 0.05 / 2 / 2 / 2 / CERTIFIED_ENDS  # half everyone's, two thresholds, half certified, six ends
    for i, (name, t) in enumerate(zip(c["group"], c["threshold"], strict=True)):
        own = np.full(3000, True) if name == "everyone" else data["sex"] == name[-1]
        p, y = data["p"][own], data["y"][own]
        on = p >= t
        assert c["acts_from"][i] == t
        assert abs(c["acted"][i] - on.sum()) < 5
        assert abs(c["events_left"][i] - y[~on].sum()) < 5
        wrong, missed = 1 - y[on].mean(), y[~on].mean()
        assert c["wrong_low"][i] < wrong < c["wrong_high"][i]
        assert c["missed_low"][i] < missed < c["missed_high"][i]
        low, high = clopper_pearson(int((y[on] == 0).sum()), int(on.sum()), each if name == "everyone" else each / 2)
        assert c["wrong_low"][i] <= low < low + 0.04
        assert high <= c["wrong_high"][i] <= high + 0.04
        benefit = (y * on).mean() - ((1 - y) * on).mean() * t / (1 - t)
        everyone = y.mean() - (1 - y).mean() * t / (1 - t)
        assert c["net_benefit"][i] == pytest.approx(benefit, abs=0.003)
        assert c["over_all"][i] == pytest.approx(benefit - everyone, abs=0.01)
        assert c["regret_low"][i] <= c["regret"][i] <= c["regret_high"][i]


def test_rates_by_hand(record: AuditRecord) -> None:
    from scipy.stats import binomtest

    data, c = table(), record.curve("rates").columns
    assert c["group"][:12] == ("everyone",) * 4 + ("sex = f",) * 4 + ("sex = m",) * 4
    assert c["rate"] == RATES * 6
    assert c["variable"][:12] == ("",) * 4 + ("sex",) * 8
    for i, (name, t, rate) in enumerate(zip(c["group"], c["threshold"], c["rate"], strict=True)):
        own = np.full(3000, True) if name == "everyone" else data["sex"] == name[-1]
        y, on = data["y"][own] == 1, data["p"][own] >= t
        hit, among = {
            "selection_rate": (on, np.ones(len(y), bool)),
            "true_positive_rate": (on, y),
            "false_positive_rate": (on, ~y),
            "precision": (y, on),
        }[rate]
        hits, n = int((hit & among).sum()), int(among.sum())
        assert c["value"][i] == pytest.approx(hits / n)
        interval = binomtest(hits, n).proportion_ci(1 - 0.05 / (1 if name == "everyone" else 2), "exact")
        assert (c["low"][i], c["high"][i]) == pytest.approx((interval.low, interval.high))
        each = 0.05 / 2 / 2 / 8 / (1 if name == "everyone" else 2)
        assert (c["guaranteed_low"][i], c["guaranteed_high"][i]) == pytest.approx(clopper_pearson(hits, n, each))


def test_rates_are_those_of_scikit_learn(record: AuditRecord) -> None:
    from sklearn.metrics import precision_score, recall_score

    data, c = table(), record.curve("rates").columns
    value = dict(zip(zip(c["group"], c["threshold"], c["rate"], strict=True), c["value"], strict=True))
    on = data["p"] >= 0.5
    assert value["everyone", 0.5, "precision"] == pytest.approx(precision_score(data["y"], on))
    assert value["everyone", 0.5, "true_positive_rate"] == pytest.approx(recall_score(data["y"], on))


def test_differences_of_rates(record: AuditRecord) -> None:
    c, d = record.curve("rates").columns, record.curve("rate_differences").columns
    assert d["rate"] == RATES * 2
    for i, (t, rate) in enumerate(zip(d["threshold"], d["rate"], strict=True)):
        own = [j for j in range(len(c["rate"])) if c["variable"][j] and (c["threshold"][j], c["rate"][j]) == (t, rate)]
        values = [c["value"][j] for j in own]
        assert d["groups"][i] == 2
        assert d["difference"][i] == pytest.approx(max(values) - min(values))
        assert d["ratio"][i] == pytest.approx(min(values) / max(values))
        assert d["guaranteed_low"][i] <= d["low"][i] <= d["difference"][i] <= d["high"][i] <= d["guaranteed_high"][i]
        assert c["group"][own[values.index(max(values))]] == d["highest"][i]


@pytest.mark.slow
def test_rates_of_clusters_and_weights() -> None:
    data = table(2000)
    data |= {"unit": np.arange(2000) // 4, "w": np.where(np.arange(2000) % 2, 3.0, 1.0)}
    record = audited(data, by="sex", threshold=0.2, cluster="unit", weights="w")
    c = record.curve("rates").columns
    assert all(
        gl <= low <= v <= high <= gh
        for v, low, high, gl, gh in zip(
            *(c[k] for k in ("value", "low", "high", "guaranteed_low", "guaranteed_high")), strict=True
        )
        if v is not None
    )
    on = data["p"] >= 0.2
    assert c["value"][0] == pytest.approx(np.average(on, weights=data["w"]), abs=0.02)  # pilot clusters certify nothing


def test_a_rate_of_pilot_clusters_alone_is_absent_and_leaves_the_others_their_range() -> None:
    n = 200
    p, y = np.tile([0.1, 0.9], n // 2), np.tile([0, 1, 1, 0], n // 4).astype(np.int8)
    cluster = np.arange(n) // 20
    block = np.where(np.arange(10) < 5, 0, 1)  # the first five are pilots
    low = np.arange(100) / 100
    for rows, certified in ((slice(0, 100), False), (slice(0, n), True)):
        u = Clusters(cluster[rows], p[rows], y[rows], np.ones(n)[rows], block[: cluster[rows].max() + 1])
        ladder = ClusterLadder(0.5, 0.5, low, 50, np.zeros((1, 100, 2), dtype=np.int64), False, u)
        value, interval, ends = layers(ladder, "selection_rate", (0.05, 0.05), 0)
        assert (value is None) != certified
        assert (interval is None) != certified
        assert certified or ends == (0.0, 1.0)
    lines = [
        Rate("site", f"site = {i}", 0.5, "precision", v, v - 0.1, v + 0.1, v - 0.2, v + 0.2)
        for i, v in ((0, 0.5), (1, 0.7))
    ]
    absent = Rate("site", "site = 2", 0.5, "precision", None, None, None, None, None)
    assert list(spreads([*lines, absent])) == list(spreads(lines))
    assert next(spreads([*lines, absent])).low is not None


@pytest.mark.slow
def test_rates_of_few_are_not_in_a_record_to_publish() -> None:
    data = table(1200)
    data["sex"][:150] = "x"
    c = audited(data, by="sex", threshold=0.5, publish=True).curve("rates").columns
    known = {(g, r) for g, r, v in zip(c["group"], c["rate"], c["value"], strict=True) if v is not None}
    assert ("everyone", "selection_rate") in known
    assert not any(group == "sex = x" for group, _ in known)
    assert ("sex = f", "precision") not in known  # fewer than 200 are acted on


@pytest.mark.slow
def test_regret_is_that_of_the_measure_at_its_share_of_alpha() -> None:
    data = table()
    one = audited(data, threshold=0.2)
    c = one.curve("decisions").columns
    each = 0.05 / 2 / 2 / CERTIFIED_ENDS
    alone = cal.measure.regret(cal.sketch(data, label="y", score="p", variables=()), threshold=0.2, alpha=2 * each)
    assert c["regret_low"][0] <= alone.low
    assert alone.high <= c["regret_high"][0] <= alone.high + 0.003


def test_the_limits_are_exact() -> None:
    from scipy.stats import binomtest

    for hits, n in ((0, 30), (7, 30), (30, 30)):
        found = binomtest(hits, n).proportion_ci(0.9, "exact")
        assert clopper_pearson(hits, n, 0.05) == pytest.approx((found.low, found.high))


@pytest.mark.slow
def test_costs_set_the_threshold_and_nobody_asked_is_silent() -> None:
    data = table(600)
    priced = audited(data, costs=(1, 4))
    assert priced.curve("decisions").settings["thresholds"] == (0.2,)
    assert priced.settings["costs"] == (1.0, 4.0)
    silent = audited(data)
    assert "decisions" not in silent.curves
    assert "decisions" not in [c.code for c in silent.checks]
    assert silent.verdict == priced.verdict


@pytest.mark.slow
def test_few_are_not_told_and_not_had_by_subtraction() -> None:
    data = table(2000)
    data["site"] = np.repeat(["a", "b", "c", "d"], 500)
    data["p"] = np.where((data["site"] == "a") & (data["p"] >= 0.2), data["p"] * 0.19, data["p"])
    data["p"][:7] = 0.9  # seven of site a are acted on
    c = audited(data, by="site", threshold=0.2).curve("decisions").columns
    assert "site = a" not in c["group"]
    assert len(c["group"]) == 3  # everyone, and two: one more leaves with site a
    nobody = audited(data, threshold=0.999)
    check = next(c for c in nobody.checks if c.code == "decisions")
    assert check.status == "measured"  # nobody is acted on: that is no few
    assert nobody.curve("decisions").columns["wrong"] == (None,)
    data["p"][:3] = 1.0
    few = audited(data, threshold=0.999)
    check = next(c for c in few.checks if c.code == "decisions")
    assert check.status == "not-applicable"
    assert "20" in check.reason
    assert "decisions" not in few.curves


def test_thresholds_that_part_few_people_are_not_both_told() -> None:
    data = table(1000)
    data["p"] = np.where((data["p"] >= 0.2) & (data["p"] < 0.21), 0.3, data["p"])
    data["p"][:4] = 0.205
    assert audited(data, threshold=[0.2, 0.21]).curve("decisions").columns["threshold"] == (0.2,)


def test_no_group_is_told_where_nobody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reported([], 0, 20, set()) == []


@pytest.mark.slow
def test_units_are_certified_by_units() -> None:
    data = table(3000)
    order = np.argsort(data["p"] + 0.3 * data["y"])
    data = {k: v[order] for k, v in data.items()}
    data["unit"] = np.arange(3000) // 10
    alone = audited({k: v for k, v in data.items() if k != "unit"}, threshold=0.2, allow_same=True)
    clusters = audited(data, threshold=0.2, cluster="unit")
    a, b = (r.curve("decisions").columns for r in (alone, clusters))
    assert b["wrong_low"][0] < a["wrong_low"][0] < a["wrong_high"][0] < b["wrong_high"][0]
    assert "cluster" in clusters.curve("decisions").settings["assumes"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"threshold": 1.2}, "threshold=1.2"),
        ({"threshold": [0.2, 0]}, "threshold=0"),
        ({"threshold": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}, "5 at most"),
        ({"costs": (1, -4)}, "costs=-4"),
        ({"costs": (1, 4, 2)}, "two costs"),
        ({"costs": 4}, "two costs"),
        ({"costs": (1, 4), "threshold": 0.2}, "drop one of the two"),
    ],
)
def test_refusals(given: dict[str, object], says: str) -> None:
    with pytest.raises(cal.BadInput, match=says):
        audited(table(100), **given)


def test_the_record_goes_to_json_and_back_and_to_the_page(record: AuditRecord, tmp_path: Path) -> None:
    again = AuditRecord.from_json(record.to_json())
    assert again.curve("decisions").columns == record.curve("decisions").columns
    record.save(tmp_path / "a.json")
    for ending in ("html", "md"):
        assert main(["report", str(tmp_path / "a.json"), "-o", str(tmp_path / f"a.{ending}")]) == 0
        text = (tmp_path / f"a.{ending}").read_text()
        assert "What it means for decisions" in text
        assert "Acting from 20% on" in text
    assert 'aria-label="Net benefit against' in (tmp_path / "a.html").read_text()


@pytest.mark.slow
def test_the_brief_says_the_worst(record: AuditRecord) -> None:
    lines = acted(record)
    assert lines[0].everyone
    assert not worst_reported(audited(table(3000, off=0.0), threshold=0.2))
    wrong = table(3000)
    wrong["y"] = (np.random.default_rng(1).uniform(size=3000) < 0.05).astype(int)
    worse = audited(wrong, threshold=0.2)
    reported = "".join(s.text for s in worst_reported(worse))
    assert reported.startswith("Acting from 20% on: for everyone acting on nobody is better, by at least ")
    shown = [n for n in nodes(worse) if isinstance(n, Paragraph)]
    assert reported in ["".join(s.text for s in n.text) for n in shown]


@pytest.mark.slow
def test_every_output_says_from_where_error_costs_and_the_repair_it_prints_asks_for_it(tmp_path: Path) -> None:
    path, data = tmp_path / "log.csv", table(6000, off=0.25)
    path.write_text("y,p\n" + "".join(f"{y},{p}\n" for y, p in zip(data["y"], data["p"], strict=True)))
    asked = {"label": "y", "score": "p", "quick": True, "limit": 0.02}
    costly = cal.audit(path, threshold=0.2, **asked)
    stated = "".join(s.text for s in worst_reported(costly))
    assert stated.startswith("Acting from 20% on, error costs at least ")
    marks = re.escape("Acting from 20% on, **error costs at least ")
    assert stated in " ".join(terminal.render(costly).split())
    assert re.search(rf"^{marks}", markdown.render(costly), re.MULTILINE)
    assert "Acting from 20% on" in notebook.record(costly)
    assert "Every check" not in terminal.render(costly) + notebook.record(costly)
    assert 'href="#decisions">Acting from 20% on</a>' in html.render(costly)
    assert "--threshold 0.2" in repair(costly)
    assert "--costs 1.0,4.0" in repair(cal.audit(path, costs=(1.0, 4.0), **asked))


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = table(600), tmp_path / "log.csv"
    path.write_text("y,p,sex\n" + "".join(f"{y},{p},{s}\n" for y, p, s in zip(*data.values(), strict=True)))
    named = ["audit", str(path), "--label", "y", "--score", "p", "--quick", "--variables", "none"]
    assert main([*named, "--by", "sex", "--threshold", "0.2,0.5", "-o", f"{tmp_path / 'out'}/"]) == 0
    lines = next((tmp_path / "out").rglob("decisions.csv")).read_text().splitlines()
    assert lines[0].startswith("group,threshold,acts_from,rows,acted")
    assert len(lines) == 7
    capsys.readouterr()
    assert main([*named, "--costs", "1,4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["threshold"] == [0.2]
    for wrong in (
        ["--threshold", "1.5"],
        ["--threshold", "x"],
        ["--costs", "1"],
        ["--costs", "1,4", "--threshold", "0.2"],
    ):
        assert main([*named, *wrong]) == 2
        assert "Traceback" not in capsys.readouterr().err
