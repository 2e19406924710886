"""Outcomes by a horizon: the rules, what is left out, and what is refused in one line."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.errors import CalibrantWarning, NotComputable
from calibrant.stats.missing import survival
from calibrant.views.points import parts

# time, status (1 the event, 2 another one, 0 neither), outcome by 10
RULES = [
    (4.0, 1, 1),
    (10.0, 1, 1),
    (10.5, 1, 0),
    (4.0, 2, 0),
    (10.0, 2, 0),
    (12.0, 2, 0),
    (10.0, 0, 0),
    (30.0, 0, 0),
    (9.99, 0, None),
    (0.0, 0, None),
]
LOG = {
    "t": [t for t, _, _ in RULES],
    "status": [s for _, s, _ in RULES],
    "p": [0.1 * i for i in range(len(RULES))],
    "site": ["a", "b"] * 5,
}
AT = {"score": "p", "time": "t", "event": "status", "horizon": 10}


def test_each_row_comes_to_what_the_rules_say() -> None:
    rows = cal.at_horizon(LOG, **AT, competing="2", way="unknown")
    known = [y for _, _, y in RULES if y is not None]
    assert rows.y.tolist() == known
    assert rows.unlabelled is not None
    assert rows.unlabelled.p.tolist() == [p for p, (_, _, y) in zip(LOG["p"], RULES, strict=True) if y is None]
    assert rows.followed is not None
    assert rows.followed.time.tolist() == [t for t, _, y in RULES if y is not None] + [9.99, 0.0]
    assert {k: rows.horizon[k] for k in ("events", "competing_events", "none", "unknown", "late")} == {
        "events": 2,
        "competing_events": 2,
        "none": 4,
        "unknown": 2,
        "late": 0,
    }


def test_lost_rows_are_refused_with_their_count_and_the_first() -> None:
    with pytest.raises(cal.BadInput, match=r"2 of 10 rows were followed for less than 10 .*first: row 8"):
        cal.at_horizon(LOG, **AT, competing="2")
    for argument in ("entered=", "way=weights", "way=unknown"):
        with pytest.raises(cal.BadInput, match=argument):
            cal.at_horizon(LOG, **AT, competing="2")


def test_rows_that_entered_too_late_are_left_out_whatever_their_outcome() -> None:
    """Entry at 5 can be followed to 10 by 15, entry at 6 cannot; outcomes of those play no part."""
    log = {"start": [5, 6, 6, 0], "t": [9.0, 1.0, 9.0, 15.0], "e": [1, 1, 0, 0], "p": [0.2, 0.4, 0.6, 0.8]}
    rows = cal.at_horizon(log, score="p", time="t", event="e", horizon=10, entered="start", closed=15)
    assert rows.p.tolist() == [0.2, 0.8]
    assert rows.y.tolist() == [1, 0]
    assert rows.horizon["late"] == 2
    assert rows.followed is None
    log["t"][3] = 8.0  # lost though it could have been followed
    with pytest.raises(cal.BadInput, match=r"1 of 2 row was followed for less than 10"):
        cal.at_horizon(log, score="p", time="t", event="e", horizon=10, entered="start", closed=15)


@pytest.mark.parametrize("kind", ["text", "date", "timestamp"])
def test_dates_count_in_days(kind: str) -> None:
    entry, end = ["2024-01-01", "2024-01-01", "2024-12-01"], ["2024-02-15", "2025-06-01", "2024-12-20"]
    made = {"text": list, "date": lambda d: pd.to_datetime(d).date, "timestamp": pd.to_datetime}[kind]
    log = pd.DataFrame({"entry": made(entry), "end": made(end), "died": [True, False, True], "p": [0.2, 0.3, 0.4]})
    rows = cal.at_horizon(log, score="p", time="end", event="died", horizon=365, entered="entry", closed="2025-06-30")
    assert rows.p.tolist() == [0.2, 0.3]
    assert rows.y.tolist() == [1, 0]


REFUSED = {
    "several other values": (LOG, {}, r"holds '0', '2' next to the event '1'.*competing="),
    "text without an event": (LOG | {"status": ["x", "y"] * 5}, {}, "name the event by positive="),
    "an event that is not there": (LOG, {"positive": "7"}, "positive='7' does not occur"),
    "a competing event that is not there": (LOG, {"competing": ["2", "9"]}, "'9' does not occur"),
    "times below zero": (LOG | {"t": [-1.0, *LOG["t"][1:]]}, {"competing": "2"}, "1 rows end before they begin"),
    "times that are missing": (LOG | {"t": [None, *LOG["t"][1:]]}, {"competing": "2"}, "1 row has nothing in 't'"),
    "times that are text": (LOG | {"t": ["soon"] * 10}, {"competing": "2"}, "store times as numbers, or as dates"),
    "no such column": (LOG, {"event": "statu"}, "status"),
    "a closing date without entry": (LOG, {"closed": 20}, "name entered="),
    "nobody early enough": (LOG | {"s": [9] * 10}, {"entered": "s", "closed": 10, "competing": "2"}, "no row entered"),
    "a closing date that is none": (LOG | {"s": [1] * 10}, {"entered": "s", "closed": "soon"}, "pass a number"),
    "a horizon of zero": (LOG, {"horizon": 0}, "horizon=0: pass a positive number"),
    "another way": (LOG, {"way": "maybe"}, "'followed', 'weights' or 'unknown'"),
    "a group that makes the outcome": (LOG, {"by": "status", "competing": "2"}, "leave them out of score and groups"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_decided_is_refused_in_one_line(case: str) -> None:
    log, more, line = REFUSED[case]
    with pytest.raises(cal.BadInput, match=line) as reported:
        cal.at_horizon(log, **{**AT, "way": "unknown", **more})
    assert "\n" not in str(reported.value)


def test_missing_parts_are_left_out_where_that_is_asked() -> None:
    log = LOG | {"t": [None, *LOG["t"][1:]], "status": [*LOG["status"][:-1], None]}
    rows = cal.at_horizon(log, **AT, competing="2", way="unknown", missing="drop")
    assert (rows.n, len(rows.unlabelled.p), rows.horizon["lacking"]) == (7, 1, 2)


ROWS = cal.at_horizon(LOG, **AT, competing="2", way="weights", by="site")


@pytest.mark.parametrize(
    "function",
    [cal.certify.rounded, cal.certify.raw_lower, cal.measure.ece, cal.measure.net_benefit, cal.detect.scan_test,
     cal.diagnose.reliability_curve, cal.detect.strong_calibration_test],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_reads_known_outcomes_alone_refuses_them(function: object) -> None:
    more = {"threshold": 0.2} if function is cal.measure.net_benefit else {}
    with pytest.raises(cal.NotComputable, match="no fair sample"):
        function(ROWS, **more)  # type: ignore[operator]


def test_measures_of_rows_lost_need_weights() -> None:
    lost = cal.at_horizon(LOG, **AT, competing="2", way="unknown")
    with pytest.raises(cal.NotComputable, match="way='weights'"):
        cal.measure.brier(lost)
    assert cal.certify.missing_labels(lost).columns["unlabelled"] == (2, 2, 2, 2)


def test_weights_are_the_inverse_of_being_followed_with_events_first() -> None:
    """At 2 an event and an end of follow-up: the event is first, so that 2 of 2 others are at risk of being lost."""
    log = {"t": [1.0, 2.0, 2.0, 3.0, 9.0], "e": [0, 1, 0, 1, 0], "p": [0.5, 0.4, 0.3, 0.2, 0.1]}
    rows = cal.at_horizon(log, score="p", time="t", event="e", horizon=5, way="weights")
    # followed: 4/5 after the first; an event at 2 is divided by 4/5; then one of three is lost: 4/5 * 2/3
    w = np.array([5 / 4, 15 / 8, 15 / 8])
    y, p = np.array([1, 1, 0]), np.array([0.4, 0.2, 0.1])
    assert w.sum() == pytest.approx(5)
    assert cal.measure.brier(rows).value == pytest.approx(float(w @ (y - p) ** 2) / 5)
    assert cal.measure.observed_expected(rows).settings["observed"] == pytest.approx(25 / 8)


def test_groups_have_their_own_follow_up() -> None:
    log = {k: v * 8 for k, v in LOG.items()}
    rows = cal.at_horizon(log, **AT, competing="2", way="weights", by="site")
    both = cal.measure.by_group(cal.measure.observed_expected, rows, by="site")
    for site in "ab":
        own = {k: [v for v, s in zip(log[k], log["site"], strict=True) if s == site] for k in log}
        alone = cal.at_horizon(own, **AT, competing="2", way="weights")
        assert both[f"site = {site}"].value == pytest.approx(cal.measure.observed_expected(alone).value)


def test_groups_of_rows_lost_keep_their_weights_and_clusters() -> None:
    """Groups with rows lost are left out by the reason; the ECE of the others is that of rows that were never lost."""
    n = 60
    site, status = np.array(["a", "b"] * (n // 2)), np.arange(n) % 3 == 0
    time = np.where((np.arange(n) % 4 == 1) & ~status, 2.0, np.where(status, 4.0, 12.0))  # of site b some are lost
    log = {"t": time, "status": status.astype(int), "p": np.linspace(0.1, 0.9, n), "site": site, "ward": site[::-1]}
    log |= {"w": np.linspace(1.0, 2.0, n), "who": np.arange(n) // 4}
    own = {k: v[site == "a"] for k, v in log.items()}
    for settings in ({"weights": "w"}, {"cluster": "who"}, {"weights": "w", "cluster": "who"}):
        rows = cal.at_horizon(log, **AT, way="weights", by=["site", "ward"], **settings)
        at_a = cal.at_horizon(own, **AT, by=["site"], **settings)
        with pytest.warns(
            CalibrantWarning, match=r"left out (site = b|ward = a|site = b, ward = a): .* no fair sample"
        ):
            found = cal.measure.by_group(cal.measure.ece, rows, by=["site", "ward"], intersections=True)
        assert found["site = a"] == found["site = a, ward = b"] == cal.measure.ece(at_a)
        with pytest.raises(
            NotComputable, match=r"computable in none of 6 groups; first: .* proved for independent rows"
        ):
            cal.measure.by_group(cal.measure.brier, rows, by=["site", "ward"], intersections=True)
        lost = next(part for name, part in parts(rows, ("site",)) if name == (("site", "b"),)).unlabelled
        assert [x is not None and len(x) == len(lost.p) for x in (lost.weights, lost.cluster)] == [
            name in settings for name in ("weights", "cluster")
        ]


def test_frames_of_polars_come_to_the_same_rows() -> None:
    """Rows are left out, which Arrow cannot do with text as Polars lays it out."""
    pl = pytest.importorskip("polars")
    log, at = (
        LOG | {"late": [0.0] * 9 + [11.0]},
        AT | {"way": "unknown", "by": "site", "entered": "late", "closed": 20, "competing": "2"},
    )
    one, other = cal.at_horizon(log, **at), cal.at_horizon(pl.DataFrame(log), **at)
    assert one.p.tolist() == other.p.tolist()
    assert one.horizon == other.horizon
    assert one.covariates.to_pydict() == other.covariates.to_pydict()


def test_a_repair_moves_the_scores_of_rows_lost_too() -> None:
    half = cal.repair.Platt().fit(cal.predictions([0, 1, 0, 1] * 5, [0.2, 0.5, 0.4, 0.9] * 5))
    repaired = half(ROWS)
    assert repaired.unlabelled.p.tolist() == pytest.approx(half.scores(ROWS.unlabelled.p).tolist())


def test_a_repair_is_fitted_by_weights_of_censoring_and_judged_on_other_rows() -> None:
    rng = np.random.default_rng(8)
    n, h = 6000, 365.0
    scale = rng.uniform(400.0, 2000.0, n)
    ends, lost = rng.exponential(scale), rng.exponential(500.0, n)
    truth = 1 - np.exp(-h / scale)
    log = {"t": np.minimum(ends, lost), "e": (ends <= lost).astype(int), "p": truth**2}
    half = {k: v[:3000] for k, v in log.items()}, {k: v[3000:] for k, v in log.items()}
    asked = {"score": "p", "time": "t", "event": "e", "horizon": h}
    fitted, held = (cal.at_horizon(one, **asked, way="weights") for one in half)
    repaired = cal.repair.Platt().fit(fitted)
    t, kind = half[0]["t"], half[0]["e"].astype(np.int8)
    w = survival.inverse_weights(t, kind, h, survival.censoring(t, kind))
    known = w > 0.0
    own = cal.predictions(((kind == 1) & (t <= h))[known], half[0]["p"][known], weights=w[known])
    assert repaired.scores(held.p).tolist() == pytest.approx(cal.repair.Platt().fit(own).scores(held.p).tolist())
    alone = cal.repair.Platt().fit(cal.predictions(own.y, own.p))  # events are known sooner
    off = [abs(float((one.scores(half[1]["p"]) - truth[3000:]).mean())) for one in (repaired, alone)]
    assert off[0] < 0.03 < 0.05 < off[1]
    ranges = [cal.certify.horizon(one, limit=0.12).columns["verdict"] for one in (held, repaired(held))]
    assert ranges == [("over",), ("within",)]
    with pytest.raises(cal.NotComputable, match="no fair sample"):
        cal.repair.Platt().fit(cal.at_horizon(half[0], **asked, way="unknown"))


def test_the_command_says_how_to_repair_rows_lost(hospital: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", str(hospital), *H, "--way", "unknown"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "or keep rows that were followed to the horizon (--entered, --closed), and repair these" in said


# ---- the command ----


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    n = 600
    start, rate = rng.integers(0, 700, n), rng.uniform(0.0003, 0.003, n)
    ends, lost = rng.exponential(1 / rate), 900.0 - start
    frame = pd.DataFrame(
        {
            "days": np.minimum(ends, lost).round(2),
            "died": (ends <= lost).astype(int),
            "risk": 1 - np.exp(-365 * rate),
            "entered": (pd.Timestamp("2022-01-01") + pd.to_timedelta(start, unit="D")).date,
            "ward": np.where(rng.uniform(size=n) < 0.5, "a", "b"),
        }
    )
    path = tmp_path_factory.mktemp("horizon") / "stays.csv"
    frame.to_csv(path, index=False)
    return path


H = ["--time", "days", "--event", "died", "--horizon", "365", "--score", "risk"]
CLOSED = ["--entered", "entered", "--closed", "2024-06-19"]


def test_look_proposes_follow_up(hospital: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", str(hospital)]) == 0
    assert "--time days --event died" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_an_audit_says_who_was_left_out_and_prints_its_own_command(
    hospital: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "a.json"
    assert main(["audit", str(hospital), *H, *CLOSED, "--by", "ward", "--quick", "-o", str(record)]) == 0
    out = " ".join(capsys.readouterr().out.replace("\\\n", " ").split())
    data = cal.AuditRecord.load(record).data
    assert data["label"] == "died by 365"
    assert data["horizon"]["late"] > 0
    assert data["horizon"]["late"] + data["rows"] == data["horizon"]["rows"] == 600
    assert f"{data['horizon']['late']} of 600 rows that entered too late" in out
    assert {(c, level) for c, level, _, _ in data["kept_and_late"]} >= {("risk", "mean"), ("ward", "a")}
    assert "--time days --event died --horizon 365 --score risk --entered entered --closed 2024-06-19" in out


def test_a_naive_label_is_refused_with_the_count(hospital: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(hospital), *H, "--quick"]) == 2
    assert "rows were followed for less than 365 without an event" in capsys.readouterr().err


@pytest.mark.slow
def test_weights_are_certified_and_measured(hospital: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", str(hospital), *H, "--way", "weights", "--method", "horizon", "--by", "ward"]) == 0
    out = capsys.readouterr()
    assert "everyone" in out.out
    assert "lost before the horizon, whose outcome is unknown" in out.err
    assert main(["measure", "auroc", str(hospital), *H, "--way", "weights"]) == 0
    assert main(["audit", str(hospital), *H, "--way", "weights", "--by", "ward"]) == 0


# ---- clocks ----

DAYS = {"died": [1, 0], "p": [0.2, 0.3]}
END = {"score": "p", "time": "end", "event": "died", "horizon": 365, "entered": "entry"}


@pytest.mark.parametrize("of", ["entry", "end"])
@pytest.mark.parametrize("kind", ["timestamps", "text"])
def test_dates_of_which_one_alone_names_a_zone_are_refused(kind: str, of: str) -> None:
    dates = {"entry": ["2024-01-01 08:00", "2024-01-02 08:00"], "end": ["2024-02-15 09:00", "2025-06-01 09:00"]}
    if kind == "text":
        log: object = {**DAYS, **dates, of: [f"{d}+02:00" for d in dates[of]]}
    else:
        log = pd.DataFrame({**DAYS, **{k: pd.to_datetime(v) for k, v in dates.items()}})
        log[of] = log[of].dt.tz_localize("America/New_York")  # type: ignore[index]
    other = {"entry": "end", "end": "entry"}[of]
    with pytest.raises(cal.BadInput, match=rf"time column '{of}' names a zone and '{other}' none"):
        cal.at_horizon(log, **END)


def test_dates_that_both_name_a_zone_are_read() -> None:
    zone = "America/New_York"
    log = pd.DataFrame({**DAYS, "entry": pd.date_range("2024-01-01", periods=2, tz=zone)})
    log["end"] = log["entry"] + pd.to_timedelta([30, 400], unit="D")
    assert cal.at_horizon(log, **END).y.tolist() == [1, 0]


@pytest.mark.parametrize(
    "closed", ["2025-06-30", "2025-06-30T00:00", pd.Timestamp("2025-06-30"), datetime(2025, 6, 30)]
)
def test_a_closing_date_is_a_date_in_whatever_form(closed: object) -> None:
    log = pd.DataFrame({**DAYS, "entry": pd.to_datetime(["2024-01-01"] * 2), "end": pd.to_datetime(["2024-02-01"] * 2)})
    log["died"] = 1
    assert cal.at_horizon(log, **END, closed=closed).horizon["closed"] == "2025-06-30"


def test_a_law_of_censoring_that_rises_again_is_refused() -> None:
    rng = np.random.default_rng(0)
    t = rng.exponential(400.0, 200)
    log = {"t": t, "e": rng.uniform(size=200) < 0.5, "p": np.full(200, 0.4)}
    rows = cal.at_horizon(log, score="p", time="t", event="e", horizon=365, way="weights")
    with pytest.raises(cal.BadInput, match="only falls with time"):
        cal.certify.horizon(rows, censoring_survival=lambda t: np.where(t < 100, 0.5, 0.9))


# ---- look ----

PAIRS = ["time,cens", "stime,status", "tenure,churned", "week,arrest", "ftime,fstat"]


@pytest.mark.parametrize("pair", PAIRS)
def test_look_proposes_pairs_and_counts_who_a_naive_label_would_miscount(
    pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    time, event = pair.split(",")
    rng = np.random.default_rng(1)
    ends, lost = rng.exponential(400.0, 200), rng.exponential(500.0, 200)
    t, e = np.minimum(ends, lost).round(3), (ends <= lost).astype(int)
    pd.DataFrame({time: t, event: e, "risk": rng.uniform(size=200).round(4)}).to_csv(tmp_path / "x.csv", index=False)
    main(["look", str(tmp_path / "x.csv")])
    out = " ".join(capsys.readouterr().out.split())
    shorter = int(((e == 0) & (t < t[e == 1].max())).sum())
    assert f"--time {time} --event {event} --horizon H in place of --label" in out
    assert f"{shorter} of {int((e == 0).sum())} rows without an event were followed for less" in out


def test_look_says_that_a_column_of_the_censored_may_run_backwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"time": rng.exponential(9.0, 90), "censored": rng.integers(0, 2, 90)})
    frame.assign(risk=rng.uniform(size=90)).to_csv(tmp_path / "x.csv", index=False)
    main(["look", str(tmp_path / "x.csv")])
    assert "the event may be 0: name it by --positive" in " ".join(capsys.readouterr().out.split())


def test_times_in_months_next_to_dates_of_entry_are_refused() -> None:
    """Dates count days: by months hardly any row would be late, and all that were lost would seem to be few."""
    rng = np.random.default_rng(3)
    entry = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, 200), unit="D")
    days = (pd.Timestamp("2025-12-31") - entry).days.to_numpy().astype(float)
    log = pd.DataFrame({"entry": entry, "days": days, "months": days / 30.44, "died": 0, "p": 0.3})
    log.loc[:20, "died"] = 1
    how = {"score": "p", "event": "died", "entered": "entry", "closed": "2025-12-31"}
    assert cal.at_horizon(log, time="days", horizon=365, **how).n < 200
    with pytest.raises(cal.BadInput, match=r"'entry' holds dates, so that 'months' and horizon= count days.*3\.3%"):
        cal.at_horizon(log, time="months", horizon=12, **how)
