"""Rows that are lost sooner in some groups: levels with a law of their own, for everyone, estimates and measures."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import calibrant as cal
from calibrant.cli.run import main
from calibrant.report import terminal
from calibrant.report.brief.action import decision, state_of
from calibrant.stats.missing import survival

pytestmark = pytest.mark.slow  # audits

N, H = 4000, 365.0
AT = {"score": "p", "time": "t", "event": "e", "horizon": 365}


def drawn(seed: int = 0, sooner: float = 6.0) -> dict[str, np.ndarray]:
    """Ward b has more events than its score says, ward a fewer, and b is lost sooner: calibrated together."""
    rng = np.random.default_rng(seed)
    ward, sex = np.array(["a", "b"])[rng.integers(0, 2, N)], np.array(["f", "m"])[rng.integers(0, 2, N)]
    scale = np.where(ward == "b", 350.0, 1600.0)
    truth = 1.0 - np.exp(-H / scale)
    ends, lost = rng.exponential(scale), rng.exponential(np.where(ward == "b", 2400.0 / sooner, 2400.0))
    score = np.full(N, truth.mean())
    kept = {"t": np.minimum(ends, lost), "e": (ends <= lost).astype(int), "p": score, "ward": ward, "sex": sex}
    return {**kept, "truth": truth}


@pytest.fixture(scope="module")
def frame() -> dict[str, np.ndarray]:
    made = drawn()
    made.pop("truth")
    return made


def audited(frame: dict[str, np.ndarray], **more: object) -> cal.AuditRecord:
    return cal.audit(frame, **AT, way="weights", quick=True, **more)  # type: ignore[arg-type]


def test_the_estimate_of_everyone_is_that_of_levels_by_their_rows(frame: dict[str, np.ndarray]) -> None:
    one, own = (audited(frame, within=within).everyone for within in (None, "ward"))
    kind = frame["e"].astype(np.int8)
    shares = [(at := frame["ward"] == w).mean() * survival.incidence(frame["t"][at], kind[at]).at(H) for w in "ab"]
    assert own.gap.value == pytest.approx(sum(shares) - frame["p"].mean(), abs=1e-12)
    assert abs(own.gap.value) < 0.02 < abs(one.gap.value)  # together one law for all is wrong
    assert own.gap.interval is not None
    assert own.gap.interval.low <= 0.0 <= own.gap.interval.high


def test_ranges_are_those_of_the_certificate_within_levels(frame: dict[str, np.ndarray]) -> None:
    record = audited(frame, within="ward", by="sex")
    rows = cal.at_horizon(frame, **AT, way="weights", within="ward", by="sex")
    table = cal.certify.horizon(rows, by="sex").columns
    assert record.everyone.gap.guaranteed is not None
    assert (record.everyone.gap.guaranteed.low, record.everyone.gap.guaranteed.high) == (
        pytest.approx(table["low"][0]),
        pytest.approx(table["high"][0]),
    )
    named = cal.certify.horizon(cal.at_horizon(frame, **AT, way="weights", by=["sex", "ward"]), within="ward", by="sex")
    assert named.columns == table
    assert named.settings["assumes"] == record.everyone.gap.assumes
    assert "within levels of ward" in str(record.everyone.gap.assumes)


def test_measures_weigh_within_levels(frame: dict[str, np.ndarray]) -> None:
    rows = cal.at_horizon(frame, **AT, way="weights", within="ward")
    kind = frame["e"].astype(np.int8)
    brier = 0.0
    for w in "ab":
        at = frame["ward"] == w
        g = survival.censoring(frame["t"][at], kind[at])
        weight = survival.inverse_weights(frame["t"][at], kind[at], H, g)
        y = (frame["t"][at] <= H) & (kind[at] == 1)
        brier += float((weight * (y - frame["p"][at]) ** 2).sum())
    assert cal.measure.brier(rows).value == pytest.approx(brier / N)
    assert cal.measure.brier(cal.at_horizon(frame, **AT, way="weights")).value != pytest.approx(brier / N, abs=1e-3)


def test_a_page_proposes_levels_that_are_lost_unlike(frame: dict[str, np.ndarray], tmp_path: Path) -> None:
    pd.DataFrame(frame).to_csv(tmp_path / "x.csv", index=False)
    asked = ["--score", "p", "--time", "t", "--event", "e", "--horizon", "365", "--way", "weights", "--quick"]
    main(
        ["audit", str(tmp_path / "x.csv"), *asked, "--by", "ward,sex", "--limit", "0.2", "-o", str(tmp_path / "a.json")]
    )
    record = cal.AuditRecord.load(tmp_path / "a.json")
    assert list(record.data["horizon"]["lost_unlike"]) == ["ward"]
    text = " ".join(terminal.render(record).replace("\\\n", " ").split())
    assert "Rows of some levels of ward are lost sooner than others (log-rank test of pilot rows, p < 0.0001)." in text
    assert "what everyone's range assumes may not hold: --within ward." in text
    assert "--within ward -o audit.html" in text
    again = audited(frame, within="ward", by=["ward", "sex"], limit=0.2)
    assert "lost_unlike" not in again.data["horizon"]
    assert "within each level of ward" in " ".join(terminal.render(again).split())


def test_levels_that_are_lost_alike_are_not_proposed() -> None:
    found = []
    for seed in range(200):
        made = drawn(seed, sooner=1.0)
        for column in ("ward", "sex"):
            level = np.unique(made[column], return_inverse=True)[1]
            found.append(survival.censoring_differs(made["t"], made["e"].astype(np.int8), level))
    assert 0.02 < np.mean(np.array(found) < 0.05) < 0.09  # of 400, at 5%
    made = drawn(0, sooner=1.0)
    made.pop("truth")
    assert "lost_unlike" not in audited(made, by=["ward", "sex"]).data["horizon"]


def test_within_needs_weights_and_a_column(frame: dict[str, np.ndarray]) -> None:
    with pytest.raises(cal.BadInput, match=r"within= goes with way='weights'"):
        cal.at_horizon(frame, **AT, way="unknown", within="ward")
    with pytest.raises(cal.BadInput, match="'wards' is not in the data; did you mean 'ward'"):
        cal.at_horizon(frame, **AT, way="weights", within="wards")
    with pytest.raises(cal.BadInput, match="leave them out of score and groups"):
        cal.at_horizon(frame, **AT, way="weights", within="t")


def test_the_log_rank_test_is_that_of_a_table() -> None:
    time, kind = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 5.0]), np.array([0, 0, 1, 0, 1, 0], dtype=np.int8)
    level = np.array([0, 1, 0, 0, 1, 1])
    # lost at 1, 2, 3 and 5; at risk of being lost, of level 0: 3, 1 (of two one had the event), 1, 0; of all 6, 4, 3, 1
    expected = 3 / 6 + 1 / 4 + 1 / 3
    variance = sum(n / m * (1 - n / m) for n, m in ((3, 6), (1, 4), (1, 3)))
    p = chi2.sf((2 - expected) ** 2 / variance, 1)
    assert survival.censoring_differs(time, kind, level) == pytest.approx(p, rel=1e-12)
    assert survival.censoring_differs(time, kind, np.zeros(6, dtype=np.int64)) == 1.0
    assert survival.censoring_differs(time, np.ones(6, dtype=np.int8), level) == 1.0


def test_every_command_takes_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = drawn(1)
    pd.DataFrame(made).to_csv(tmp_path / "x.csv", index=False)
    asked = [str(tmp_path / "x.csv"), "--score", "p", "--time", "t", "--event", "e", "--horizon", "365"]
    asked += ["--way", "weights", "--within", "ward"]
    assert main(["certify", *asked, "--method", "horizon"]) == 0
    assert main(["measure", "brier", *asked]) == 0
    assert main(["look", *asked]) == 0
    assert "--way weights --within ward" in " ".join(capsys.readouterr().out.replace("\\\n", " ").split())


def at_sites(leaves: dict[str, float], odds: dict[str, float], closes: dict[str, float] | None = None) -> pd.DataFrame:
    """Rows of sites with a mean time to being lost and, perhaps, an end of follow-up each."""
    rng = np.random.default_rng(2)
    site = rng.choice(list(odds), N, p=list(odds.values()))
    p = rng.uniform(0.05, 0.6, N)
    ends, lost = (
        rng.exponential(-H / np.log1p(-p)),
        rng.exponential(pd.Series(site).map(leaves)),
    )
    lost = lost if closes is None else np.minimum(lost, pd.Series(site).map(closes))
    return pd.DataFrame({"t": np.minimum(ends, lost), "e": (ends <= lost).astype(int), "p": p, "site": site})


def test_follow_up_that_differs_after_the_horizon_is_alike() -> None:
    later = at_sites({"a": 2500.0, "b": 2500.0}, {"a": 0.5, "b": 0.5}, {"a": 1825.0, "b": 730.0})
    level, kind = (later["site"] == "a").to_numpy().astype(np.int64), later["e"].to_numpy().astype(np.int8)
    assert survival.censoring_differs(later["t"].to_numpy(), kind, level) < 1e-9
    assert "lost_unlike" not in audited(later, by="site").data["horizon"]  # type: ignore[arg-type]


def test_only_levels_that_can_have_a_law_are_proposed() -> None:
    loss = {"a": 2500.0, "b": 500.0, "c": 2500.0}
    few = at_sites(loss, {"a": 0.55, "b": 0.446, "c": 0.004})
    few["age"] = np.where(few["site"] == "b", 60, 30) + np.random.default_rng(0).integers(0, 30, N)
    record = audited(few, by=["site", "age"], limit=0.2)  # type: ignore[arg-type]
    assert set(record.data["horizon"]["lost_unlike"]) == {"site", "age"}
    assert record.data["horizon"]["own_law"] == []
    text = " ".join(terminal.render(record).replace("\\\n", " ").split())
    assert "Levels of site are too small or too many for a law of their own each" in text
    assert state_of(record) != "lost unlike"
    with pytest.raises(cal.NotComputable, match=r"leave within= \(--within\) out, or merge small levels"):
        audited(few, within="site")  # type: ignore[arg-type]
    few["region"] = np.where(few["site"] == "b", "south", "north")
    mended = audited(few, by=["site", "region"], limit=0.2)  # type: ignore[arg-type]
    assert mended.data["horizon"]["own_law"] == ["region"]
    assert state_of(mended) == "lost unlike"
    assert audited(few, within="region").everyone.gap.guaranteed is not None  # type: ignore[arg-type]


def test_missing_values_are_one_level(frame: dict[str, np.ndarray]) -> None:
    made = {**frame, "g": np.where(np.arange(N) % 3 == 0, np.nan, 1.0)}
    rows = cal.at_horizon(made, **AT, way="weights", within="g", by="g")
    assert rows.followed is not None
    assert len(np.unique(rows.followed.level)) == 2
    apart = cal.at_horizon(made, **AT, way="weights", by="g")
    assert cal.certify.horizon(apart, within="g").columns == cal.certify.horizon(rows).columns


def test_measures_say_within_what_levels_and_a_curve_refuses_them(frame: dict[str, np.ndarray]) -> None:
    rows, together = (cal.at_horizon(frame, **AT, way="weights", within=w) for w in ("ward", None))
    for name in ("brier", "observed_expected"):
        stated = getattr(cal.measure, name)(rows).assumes
        assert " within levels of ward" in stated
        assert "within levels" not in getattr(cal.measure, name)(together).assumes
    for smooth in (cal.measure.integrated_calibration_index, cal.diagnose.curve_by_horizon):
        with pytest.raises(cal.NotComputable, match=r"levels of within= .* are not read: leave it out"):
            smooth(rows)


def test_repairs_by_weights_need_rows_that_were_followed() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.6, 2000)
    ends, lost = rng.exponential(-H / np.log1p(-p)), rng.exponential(70, 2000)
    frame = {"t": np.minimum(ends, lost), "e": (ends <= lost).astype(int), "p": p}
    with pytest.raises(cal.NotComputable, match=r"followed to 365 is estimated at 0\.00.*few rows would rule"):
        cal.repair.Platt().fit(cal.at_horizon(frame, **AT, way="weights"))
    longer = rng.exponential(1500, 2000)
    frame = {"t": np.minimum(ends, longer), "e": (ends <= longer).astype(int), "p": p}
    fitted = cal.repair.Platt().fit(cal.at_horizon(frame, **AT, way="weights"))
    assert abs(float(fitted.scores(np.array([0.3]))[0]) - 0.3) < 0.05


def test_what_is_proposed_of_repairs_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By weights repairs are compared; without tests, or without an assumption, the command that compares them."""
    frame = at_sites({"a": 1500.0, "b": 1500.0}, {"a": 0.5, "b": 0.5})
    frame["p"] = np.minimum(frame["p"] + 0.3, 1.0)
    monkeypatch.chdir(tmp_path)  # a report names files without their directory
    path = str(tmp_path / "x.csv")
    frame.to_csv(path, index=False)
    asked = [path, "--score", "p", "--time", "t", "--event", "e", "--horizon", "365"]
    assert main(["repair", *asked, "--way", "unknown"]) == 2
    assert "--way weights, which takes being lost as independent" in " ".join(capsys.readouterr().err.split())
    for way, more, state in (
        ("weights", {}, "repair helps"),
        ("weights", {"quick": True}, "off by a horizon"),
        ("unknown", {}, "off by a horizon"),
    ):
        record = cal.audit(path, score="p", time="t", event="e", horizon=365, way=way, limit=0.05, **more)
        assert state_of(record) == state
        typed = decision(record).command
        assert "calibrant repair" in typed
        assert "--way weights" in typed
        words = shlex.split(typed.replace("\\\n", " "))
        words[words.index("calibrator.json")] = str(tmp_path / "calibrator.json")
        assert main(words[1:]) == 0
        capsys.readouterr()
