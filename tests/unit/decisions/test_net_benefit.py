"""Net benefit by hand, with its bands: rows, weights, units, groups, sketches, refusals, coverage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main

P = np.array([0.9, 0.8, 0.6, 0.3, 0.2, 0.1])
Y = np.array([1, 0, 1, 1, 0, 0])


def by_hand(p: np.ndarray, y: np.ndarray, t: float) -> float:
    true, false = np.mean((p >= t) & (y == 1)), np.mean((p >= t) & (y == 0))
    return float(true - false * t / (1 - t))


def made(n: int, seed: int = 0, off: float = 1.0) -> cal.Predictions:
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n)
    return cal.predictions(rng.uniform(size=n) < p**off, p, {"sex": np.array(["f", "m"])[rng.integers(0, 2, n)]})


@pytest.mark.parametrize("t", [0.05, 0.2, 0.3, 0.5, 0.6, 0.85])
def test_by_hand(t: float) -> None:
    found = cal.measure.net_benefit(cal.predictions(Y, P), threshold=t)
    assert found.value == pytest.approx(by_hand(P, Y, t))
    assert found.settings["treat_all"] == pytest.approx(0.5 - 0.5 * t / (1 - t))
    assert found.settings["rows"] == (t <= P).sum()


def test_its_range_is_certified_and_half_as_wide_again_as_that_of_a_mean() -> None:
    data, t = made(3000), 0.3
    worth = np.where(data.p >= t, np.where(data.y == 1, 1.0, -t / (1 - t)), 0.0)
    normal = 1.959964 * worth.std(ddof=1) / np.sqrt(3000)
    found = cal.measure.net_benefit(data, threshold=t)
    assert found.interval.guarantee == "finite-sample"
    for half in (found.high - found.value, found.value - found.low):
        assert normal < half < 1.6 * normal


def test_ten_rows_of_one_outcome_say_little() -> None:
    found = cal.measure.net_benefit(cal.predictions(np.ones(10), np.full(10, 0.6)), threshold=0.5)
    assert found.value == found.high == 1.0
    assert found.low < 0.4


def test_weights_count_rows_and_units_are_summed() -> None:
    data, t = made(2000), 0.4
    weights = np.random.default_rng(2).integers(1, 4, 2000)
    heavy = cal.measure.net_benefit(cal.predictions(data.y, data.p, weights=weights), threshold=t)
    assert heavy.value == pytest.approx(by_hand(np.repeat(data.p, weights), np.repeat(data.y, weights), t))
    five = np.repeat(np.arange(400), 5)
    copied = cal.predictions(data.y[five], data.p[five], cluster=five)
    once = cal.measure.net_benefit(cal.predictions(data.y[:400], data.p[:400]), threshold=t)
    by_clusters = cal.measure.net_benefit(copied, threshold=t)
    assert by_clusters.value == pytest.approx(once.value)
    assert by_clusters.high - by_clusters.value == pytest.approx(
        once.high - once.value, rel=0.15
    )  # 40 pilot units leave
    assert by_clusters.settings["pilot_clusters"] == 40


def test_the_curve_agrees_with_each_threshold_and_its_band_is_wider() -> None:
    data = made(4000)
    curve = cal.diagnose.decision_curve(data)
    c = curve.columns
    for i in (4, 30, 70):
        one = cal.measure.net_benefit(data, threshold=c["threshold"][i])
        assert c["net_benefit"][i] == pytest.approx(one.value)
        assert c["treat_all"][i] == pytest.approx(one.settings["treat_all"])
        assert c["over_all"][i] == pytest.approx(one.value - one.settings["treat_all"])
        assert c["low"][i] < one.low < one.high < c["high"][i]
    assert curve.settings["left_out"] == 99 - len(c["threshold"])
    assert min(c["rows"]) >= 100


def test_groups_have_curves_of_their_own() -> None:
    data = made(4000)
    c = cal.diagnose.decision_curve(data, by="sex", thresholds=[0.3, 0.6]).columns
    assert c["group"] == ("sex = f", "sex = f", "sex = m", "sex = m")
    women = np.array(data.covariates["sex"].to_pylist()) == "f"
    assert c["net_benefit"][1] == pytest.approx(by_hand(data.p[women], data.y[women], 0.6))


def test_a_sketch_gives_the_same_where_it_knows_the_threshold() -> None:
    data = made(4000)
    table = {"y": data.y, "p": np.round(data.p, 1), "sex": data.covariates["sex"]}
    sketch = cal.sketch(table, label="y", score="p", by="sex")
    rows = cal.predictions(table["y"], table["p"], {"sex": table["sex"]})
    for t in (0.3, 0.6):  # scores of the very threshold are acted on, in a sketch rounded down too
        one, two = (cal.measure.net_benefit(d, threshold=t) for d in (rows, sketch))
        assert (one.value, one.interval) == (two.value, two.interval)
        in_groups = cal.measure.by_group(cal.measure.net_benefit, sketch, threshold=t)
        assert in_groups.keys() == {"sex = f", "sex = m"}
        for name, found in cal.measure.by_group(cal.measure.net_benefit, rows, by="sex", threshold=t).items():
            assert found.value == pytest.approx(in_groups[name].value)
    curves = [cal.diagnose.decision_curve(d, thresholds=[0.3, 0.6], by="sex").columns for d in (rows, sketch)]
    assert curves[0]["rows"] == curves[1]["rows"]


def test_a_sketch_of_units_has_groups_of_units() -> None:
    data, cluster_code = made(3000), np.arange(3000) // 30
    table = {"y": data.y, "p": data.p, "sex": data.covariates["sex"], "unit": cluster_code}
    sketch = cal.sketch(table, label="y", score="p", by="sex", cluster="unit")
    rows = cal.predictions(data.y, data.p, {"sex": table["sex"]}, cluster=cluster_code)
    for measure in (cal.measure.net_benefit, cal.measure.regret):
        of_rows = cal.measure.by_group(measure, rows, by="sex", threshold=0.4)
        of_sketch = cal.measure.by_group(measure, sketch, threshold=0.4)
        for name, found in of_rows.items():
            assert found.settings["clusters"] == of_sketch[name].settings["clusters"] == 100
            assert found.interval.high == pytest.approx(of_sketch[name].interval.high, abs=1e-6)
    curves = [cal.diagnose.decision_curve(d, thresholds=[0.4], by="sex").columns for d in (rows, sketch)]
    assert curves[0]["net_benefit"] == pytest.approx(curves[1]["net_benefit"])


def test_a_band_of_few_units_is_certified() -> None:
    data = made(2400)
    few = cal.predictions(data.y, data.p, cluster=np.arange(2400) // 60)
    many = cal.predictions(data.y, data.p, cluster=np.arange(2400) // 40)
    heavy = cal.predictions(data.y, data.p, cluster=np.arange(2400) // 4 * (np.arange(2400) > 1200))  # one is half
    reported = [cal.diagnose.decision_curve(d, thresholds=[0.2, 0.5]).columns for d in (few, many, heavy)]
    assert [c["guarantee"][0] for c in reported] == ["finite-sample", "asymptotic", "finite-sample"]
    for t, low, high in zip(*(reported[0][k] for k in ("threshold", "low", "high")), strict=True):
        one = cal.measure.net_benefit(few, threshold=t, alpha=0.05 / 2)
        assert (low, high) == pytest.approx((one.low, one.high))


def test_a_sketch_gives_nearly_the_same() -> None:
    data = made(4000)
    sketch = cal.sketch({"y": data.y, "p": data.p, "sex": data.covariates["sex"]}, label="y", score="p", by="sex")
    rows, cells = (cal.diagnose.decision_curve(d, thresholds=[0.3, 0.6], by="sex").columns for d in (data, sketch))
    assert cells["net_benefit"] == pytest.approx(rows["net_benefit"], abs=0.003)


def test_thresholds_may_come_in_any_order() -> None:
    data = made(2000)
    given, sorted_ = (cal.diagnose.decision_curve(data, thresholds=t) for t in ([0.5, 0.2, 0.5], [0.2, 0.5]))
    assert given == sorted_
    assert given.columns["threshold"] == (0.2, 0.5)


def test_refusals() -> None:
    data = made(500)
    with pytest.raises(cal.BadInput, match="threshold=1"):
        cal.measure.net_benefit(data, threshold=1)
    with pytest.raises(cal.BadInput, match=r"thresholds=\[\]: pass a number between 0 and 1, or several"):
        cal.diagnose.decision_curve(data, thresholds=[])
    with pytest.raises(cal.BadInput, match=r"thresholds=1.0: pass a number between 0 and 1"):
        cal.diagnose.decision_curve(data, thresholds=[0.5, 1.0])
    with pytest.raises(cal.NotComputable, match="nobody is acted for"):
        cal.measure.net_benefit(cal.predictions(Y, P), threshold=0.95)
    with pytest.raises(cal.NotComputable, match="100 rows"):
        cal.diagnose.decision_curve(cal.predictions(Y, P))


def test_the_command_asks_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = made(600), tmp_path / "log.csv"
    path.write_text("y,p\n" + "".join(f"{y},{p}\n" for y, p in zip(data.y, data.p, strict=True)))
    named = [str(path), "--label", "y", "--score", "p"]
    assert main(["measure", "net_benefit", *named, "--threshold", "0.2"]) == 0
    assert "treat_all" in capsys.readouterr().out
    assert main(["diagnose", "decision_curve", *named, "--thresholds", "0.1,0.2"]) == 0
    assert "net_benefit" in capsys.readouterr().out
