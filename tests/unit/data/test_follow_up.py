"""Labels that are events seen: refused or asked about by names and values, and by neither alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.data.specs.follow_up import FEWEST, RISES, candidates, judged, meaning, rank_sum
from calibrant.report import terminal


def followed(time: str, event: str, n: int = 400, late: float = 900.0) -> pd.DataFrame:
    """Rows that entered at unlike times, and one closing date for all."""
    rng = np.random.default_rng(7)
    rate = rng.uniform(0.0005, 0.004, n)
    ends, lost = rng.exponential(1 / rate), late - rng.uniform(0, 700, n)
    t, e = np.minimum(ends, lost).round(3), (ends <= lost).astype(int)
    return pd.DataFrame({time: t, event: e, "risk": (1 - np.exp(-365 * rate)).round(4), "old": rng.uniform(size=n)})


REFUSED = [
    ("time", "died"),
    ("time", "status"),
    ("OS_MONTHS", "OS_STATUS"),
    ("days_to_last_followup", "vital_status"),
    ("fu_days", "died"),
    ("months", "event"),
    ("futime", "death"),
    ("survival_time_days", "dead"),
    ("timeToDeath", "death"),
    ("follow_up_months", "DEATH_EVENT"),
    ("tte", "churned"),
]
ASKED = [("days", "died"), ("months_on_book", "default"), ("customer_tenure", "churned"), ("person_years", "died")]
ASKED += [("durations", "event_observed"), ("tenure", "churn"), ("duration", "event"), ("weeks", "relapse")]
ASKED += [("days", "default")]
SILENT = [("time_in_hospital", "readmitted"), ("years_at_address", "default"), ("days", "employed"), ("age", "died")]
SILENT += [("T", "died"), ("survival_12_months", "died"), ("predicted_survival_days", "died")]


@pytest.mark.parametrize(("time", "event"), REFUSED)
def test_an_event_seen_is_refused_with_the_count(time: str, event: str) -> None:
    frame = followed(time, event)
    t, e = frame[time], frame[event]
    lost, none = int(((e == 0) & (t < t[e == 1].max())).sum()), int((e == 0).sum())
    with pytest.raises(cal.BadInput, match=rf"{lost} of {none} rows without it") as refused:
        cal.audit(frame, label=event, score="risk", quick=True)
    for part in (f"time={time!r}", f"event={event!r}", "horizon=H", "horizon='none'"):
        assert part in str(refused.value)
    assert cal.audit(frame, label=event, score="risk", quick=True, horizon="none").settings["final"]


def test_a_lazy_frame_is_computed_with_its_times() -> None:
    pl = pytest.importorskip("polars")
    frame = followed("time", "died")
    for source in (frame, pl.from_pandas(frame).lazy()):
        with pytest.raises(
            cal.BadInput, match="label 'died' is an event seen by the end of follow-up, as 'time' shows"
        ):
            cal.read(source, label="died", score="risk")


@pytest.mark.parametrize(("time", "event"), ASKED)
def test_what_may_be_one_is_asked_about_on_the_first_screen(time: str, event: str) -> None:
    record = cal.audit(followed(time, event), label=event, score="risk", quick=True)
    assert "perhaps-seen-events" in record.data["warnings"]
    assert (record.data["seen_events"]["time"], record.data["seen_events"]["label"]) == (time, event)
    shown = " ".join(terminal.render(record).split())
    assert f"{time} may be how long rows were followed until {event}: " in shown
    assert "says so" in shown.split("If every label is final, ")[1]
    final = cal.audit(followed(time, event), label=event, score="risk", quick=True, horizon="none")
    assert "perhaps-seen-events" not in final.data["warnings"]


@pytest.mark.parametrize(("time", "event"), SILENT)
def test_names_of_something_else_are_no_follow_up(time: str, event: str) -> None:
    assert "seen_events" not in cal.audit(followed(time, event), label=event, score="risk", quick=True).data


def test_names_alone_do_not_refuse() -> None:
    rng = np.random.default_rng(0)
    n = 600
    months, y = rng.integers(4, 72, n).astype(float), rng.uniform(size=n)
    longer = (y < months / 100).astype(float)  # long loans default more often: no time of follow-up
    assert judged(months, longer, ("months", "failed"), "time") is None
    within = np.where(y < 0.3, rng.uniform(0, 365, n), rng.uniform(365, 900, n))  # an outcome by 365 that is complete
    assert judged(within, (y < 0.3).astype(float), ("days", "died"), "time") is None
    assert judged(np.round(months / 20), (y < 0.2).astype(float), ("days", "died"), "time") is None  # a few steps
    short = (y < np.exp(-months / 20)).astype(float)
    one = judged(months, short, ("days", "died"), "time")
    assert one is not None
    assert one.sure
    assert not judged(months, short, ("tenure", "churn"), "length").sure  # type: ignore[union-attr]


def test_names_of_follow_up_decide_where_events_come_late() -> None:
    rng = np.random.default_rng(3)
    n = 2000
    ends = 365 * (rng.exponential(size=n) / rng.uniform(0.3, 2.3, n)) ** (1 / 3)
    lost = np.minimum(rng.exponential(250, n), 900)
    t, y = np.minimum(ends, lost), (ends <= lost).astype(float)
    assert rank_sum(t, y == 1.0) > RISES
    for name in ("time_to_event", "futime"):
        one = judged(t, y, (name, "event"), "follow-up")
        assert one is not None
        assert one.sure
    assert judged(np.where(y == 1.0, t, 0.0), y, ("time_to_death", "died"), "follow-up") is None  # 0 stands for none
    assert judged(t, y, ("time", "event"), "time") is None


def test_wrong_times_and_steps_hide_no_follow_up() -> None:
    frame = followed("followup_days", "died")
    t, y = frame["followup_days"].to_numpy(copy=True), frame["died"].to_numpy(dtype=float)
    whole = judged(t, y, ("followup_days", "died"), "follow-up")
    t[7] = -1.0
    one = judged(t, y, ("followup_days", "died"), "follow-up")
    assert whole is not None
    assert one is not None
    assert one.sure
    assert one.none >= whole.none - 1
    steps = judged(t // 100, y, ("followup_years", "died"), "follow-up")
    assert steps is not None
    assert judged(t // 100, y, ("time", "died"), "time") is None


def test_scores_groups_and_probabilities_are_no_times() -> None:
    frame = followed("survival", "died")
    frame["survival"] = 1.0 - frame["risk"]
    assert "seen_events" not in cal.audit(frame, label="died", score="risk", quick=True).data
    named = followed("time", "event")
    assert cal.read(named, label="event", score="risk", by="time").n == len(named)


def test_names_with_a_space_are_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "x.csv")
    followed("followup days", "died").to_csv(path, index=False)
    assert main(["measure", "ece", path, "--label", "died", "--score", "risk"]) == 2
    assert "--time 'followup days' --event died" in " ".join(capsys.readouterr().err.split())
    followed("tenure months", "churn").to_csv(path, index=False)
    main(["audit", path, "--label", "churn", "--score", "risk", "--quick", "-o", str(tmp_path / "a.md")])
    assert "--time 'tenure months'" in (tmp_path / "a.md").read_text(encoding="utf-8")


def test_few_rows_lost_make_no_follow_up() -> None:
    t = np.concatenate([np.arange(1.0, 41.0), np.full(60, 100.0), np.arange(2.0, 2.0 + FEWEST - 1)])
    y = np.concatenate([np.ones(40), np.zeros(60 + FEWEST - 1)])
    assert judged(t, y, ("days", "died"), "time") is None
    more = judged(np.append(t, 3.0), np.append(y, 0.0), ("days", "died"), "time")
    assert more is not None
    assert more.lost == FEWEST


def test_the_rank_sum_is_that_of_scipy() -> None:
    from scipy.stats import mannwhitneyu, norm

    rng = np.random.default_rng(5)
    t, event = rng.integers(0, 20, 80).astype(float), rng.uniform(size=80) < 0.3
    p = mannwhitneyu(t[event], t[~event], use_continuity=False, method="asymptotic").pvalue
    assert 2 * norm.sf(abs(rank_sum(t, event))) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("time", "time"),
        ("days_to_event", "follow-up"),
        ("Survival_in_days", "follow-up"),
        ("tenure_months", "length"),
        ("hours_per_week", None),
        ("BCR_followup_months", "follow-up"),
        ("followup_visits", None),
        ("OS_MONTHS", "follow-up"),
        ("survival_12_months", None),
        ("time_in_hospital", None),
        ("median reaction time (s)", None),
        ("reaction", None),
    ],
)
def test_what_names_mean(name: str, means: str | None) -> None:
    assert meaning(name) == means


def test_the_surest_name_comes_first() -> None:
    assert [c for c, _ in candidates("event", ["tenure", "days", "futime", "died", "time_in_hospital"])] == [
        "futime",
        "days",
        "tenure",
    ]
    assert not list(candidates("employed", ["days"]))


# ---- the command ----


@pytest.fixture(scope="module")
def stays(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("seen") / "stays.csv"
    followed("time", "died").to_csv(path, index=False)
    return str(path)


COMMANDS = [
    ["audit", "{}", "--score", "risk", "--quick"],
    ["look", "{}", "--score", "risk"],
    ["compare", "{}", "--score", "risk,old"],
    ["repair", "{}", "--score", "risk", "--quick"],
    ["measure", "ece", "{}", "--score", "risk"],
    ["plan", "0.1", "--data", "{}", "--score", "risk"],
    ["accept", "{}", "--score", "risk", "--risk", "0.4"],
    ["certify", "{}", "--score", "risk", "--method", "jittered"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_every_command_refuses_it_and_takes_labels_that_are_final(
    command: list[str], stays: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format(stays) for word in command]
    assert main([*words, "--label", "died"]) == 2
    out = capsys.readouterr()
    said = " ".join((out.err + out.out).split())
    assert "rows without it were followed for less than the latest event took" in said
    assert "--time time --event died --horizon H --score" in said
    assert main([*words, "--label", "died", "--horizon", "none"]) != 2


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] not in ("audit", "look")], ids=lambda c: c[0])
def test_every_command_says_once_what_may_be_an_event_seen(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "x.csv")
    followed("tenure", "churn").to_csv(path, index=False)
    words = [word.format(path) for word in command]
    main([*words, "--label", "churn"])
    assert capsys.readouterr().err.count("Event seen? tenure may be how long rows were followed until churn: ") == 1
    main([*words, "--label", "churn", "--horizon", "none"])
    assert "may be how long" not in capsys.readouterr().err


def test_look_prints_the_command_with_a_horizon(stays: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", stays]) == 0
    out = " ".join(capsys.readouterr().out.replace("\\\n", " ").split())
    assert "Run, with the time that H stands for, in the unit of the times:" in out
    assert "--time time --event died --horizon H --score risk" in out
    assert "--label" not in out.split("Run, with")[1]
    assert main(["look", stays, "--label", "died", "--horizon", "none"]) == 0
    assert "--label died --score risk --horizon none" in " ".join(capsys.readouterr().out.replace("\\\n", " ").split())


def test_a_page_of_final_labels_prints_a_command_that_runs(
    stays: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "a.json"
    asked = ["--label", "died", "--score", "risk", "--horizon", "none", "--quick", "--limit", "0.2"]
    main(["audit", stays, *asked, "-o", str(kept), "-o", str(tmp_path / "a.md")])
    capsys.readouterr()
    assert json.loads(kept.read_text(encoding="utf-8"))["settings"]["final"] is True
    again = (tmp_path / "a.md").read_text(encoding="utf-8").replace("\\\n", " ")
    assert "--horizon none" in " ".join(again.split())


def test_rows_in_python_are_read_by_the_same_rule() -> None:
    frame = followed("time", "died")
    with pytest.raises(cal.BadInput, match="pass 'none'"):
        cal.read(frame, label="died", score="risk", horizon="365")  # type: ignore[arg-type]
    with pytest.raises(cal.BadInput, match="rows without it were followed for less"):
        cal.read(frame, label="died", score="risk")
    assert cal.read(frame, label="died", score="risk", horizon="none").n == len(frame)


def test_a_sketch_keeps_what_was_noticed_and_merging_adds_it_up(tmp_path: Path) -> None:
    sketches = []
    for i in range(2):
        path = tmp_path / f"{i}.csv"
        followed("tenure", "churn", late=900.0 + 10.0 * i).to_csv(path, index=False)
        sketches.append(cal.sketch(str(path), label="churn", score="risk"))
    seen = [cal.Sketch.from_bytes(s.to_bytes()).log.seen_events for s in sketches]
    assert all(one["label"] == "churn" and one["lost"] > 0 for one in seen)
    assert "Event seen?" in " ".join(terminal.render(cal.audit(cal.Sketch.from_bytes(sketches[0].to_bytes()))).split())
    both = sketches[0].merge(sketches[1], allow_same=True).log.seen_events
    assert both["lost"] == seen[0]["lost"] + seen[1]["lost"]
    final = cal.sketch(str(tmp_path / "0.csv"), label="churn", score="risk", horizon="none")
    assert b"seen_events" not in final.to_bytes()
