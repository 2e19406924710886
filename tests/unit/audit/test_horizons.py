"""Several horizons as one family: alpha is shared, the worst is recorded, and each has its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.cli.run import main
from calibrant.report import commands, markdown, terminal

pytestmark = pytest.mark.slow

N, EACH = 3000, (30.0, 90.0, 365.0)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    scale = rng.uniform(300.0, 1500.0, N)
    event, end = rng.exponential(scale), rng.exponential(900.0, N)
    made = pd.DataFrame({"t": np.minimum(event, end), "e": (event <= end).astype(int), "g": rng.choice(["a", "b"], N)})
    return made.assign(**{f"p{h:g}": 1.0 - np.exp(-h / scale) for h in EACH}, off=np.full(N, 0.6))


AT = {"time": "t", "event": "e", "horizon": EACH, "way": "weights"}
SCORES = ["p30", "p90", "p365"]


@pytest.fixture(scope="module")
def record(frame: pd.DataFrame) -> AuditRecord:
    return cal.audit(frame, **AT, score=["p30", "off", "p365"], by="g", limit=0.05, alpha=0.06)


def test_each_line_is_the_audit_by_that_horizon_at_its_share(record: AuditRecord, frame: pd.DataFrame) -> None:
    c = record.curve("horizons").columns
    for i, (h, score) in enumerate(zip(EACH, ["p30", "off", "p365"], strict=True)):
        alone = cal.audit(frame, **{**AT, "horizon": h}, score=score, by="g", limit=0.05, alpha=0.02)
        own = [j for j, at in enumerate(c["horizon"]) if at == h]
        assert own == [3 * i, 3 * i + 1, 3 * i + 2]
        for j, one in zip(own, (alone.everyone, *alone.groups), strict=True):
            assert (c["low"][j], c["high"][j], c["verdict"][j]) == (
                one.gap.guaranteed.low,
                one.gap.guaranteed.high,
                one.verdict,
            )


def test_the_record_is_that_of_the_worst_verdict_with_all_shares(record: AuditRecord) -> None:
    assert (record.verdict, record.data["label"], record.data["score"]) == ("over", "e by 90", "off")
    assert record.settings["alpha"] == 0.02
    assert sum(s.alpha for s in record.shares if (s.wrong, s.part) == ("over", "everyone")) == pytest.approx(0.06)
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()


def test_the_page_has_a_line_for_each_and_the_command_all_of_them(record: AuditRecord) -> None:
    page = markdown.render(record)
    assert "3 horizons share the 6%" in page
    assert [line.split(" | ")[0] for line in page.splitlines() if line.startswith(("| 30 ", "| 90 ", "| 365 "))] == [
        "| 30",
        "| 90",
        "| 365",
    ]
    assert "horizon=[30,90,365]" in page.replace(" ", "")
    assert '["p30", "off", "p365"]' in page
    assert "alpha=0.06" in page


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    """Nobody is lost before 30, where one score is off; many are before 365, where the other is right."""
    rng = np.random.default_rng(0)
    event, end = rng.exponential(900.0, N), 100.0 + rng.exponential(900.0, N)
    made = pd.DataFrame({"t": np.minimum(event, end), "e": (event <= end).astype(int), "g": rng.choice(["a", "b"], N)})
    return made.assign(off=1.1 - np.exp(-30.0 / 900.0), right=1.0 - np.exp(-365.0 / 900.0))


MIXED = {"time": "t", "event": "e", "horizon": [30, 365], "way": "weights", "score": ["off", "right"], "quick": True}


def test_error_by_one_horizon_counts_whatever_the_others_show(mixed: pd.DataFrame) -> None:
    gate = {"fail_on": "error-shown"}
    alone = cal.audit(mixed, **{**MIXED, "score": "off", "horizon": 30}, **gate)
    made = cal.audit(mixed, **MIXED, **gate)
    assert alone.exit_status == made.exit_status == 1
    assert made.error_shown["everyone"]
    assert made.data["label"] == "e by 30"  # without a limit: the one that shows error
    assert cal.audit(mixed, **{**MIXED, "score": "right", "horizon": [365, 400]}).data["label"] == "e by 400"
    assert "this is one that shows error" in " ".join(terminal.render(made).split())


def test_verdicts_and_exit_statuses_are_the_worst_of_all_horizons(mixed: pd.DataFrame) -> None:
    made = cal.audit(mixed, **MIXED, limit=0.12, by="g", fail_on="error-shown")
    c = made.curve("horizons").columns
    by = {h: [v for at, v in zip(c["horizon"], c["verdict"], strict=True) if at == h] for h in (30.0, 365.0)}
    assert set(by[30.0]) == {"within"}  # off by 10 points, and error is shown
    assert made.verdicts["everyone"] == max(by[30.0][0], by[365.0][0], key=["within", "undecided", "over"].index)
    assert made.error_shown["everyone"]
    assert made.exit_status == 1
    assert set(made.curve("horizons").settings["exit_statuses"]) <= {0, 1, 3}
    read = AuditRecord.from_json(made.to_json())
    assert (read.exit_status, read.to_json()) == (1, made.to_json())


def test_a_page_says_by_which_horizon_something_is_assumed(mixed: pd.DataFrame) -> None:
    made = cal.audit(mixed, **MIXED, limit=0.05, by="g")
    assert made.data["label"] == "e by 30"
    for text in (terminal.render(made), markdown.render(made)):
        shown = " ".join(text.split())
        assert "By 30: no row lost, nothing assumed, events observed, the gap is judged." in shown
        assert "By 365: 611 rows lost, weights of censoring, events estimated, the gap is judged." in shown
        assert "being lost as independent of outcome and score together" in shown
        assert "Nothing is assumed of who was lost" not in shown
    page = markdown.render(made)
    assert "| 365 | 611, weights |" in page
    assert "| 30 | none |" in page
    assert "judge=" not in page  # as it was asked for
    assert made.curve("horizons").settings["judged"] == ("gap", "gap")


@pytest.mark.parametrize(
    ("horizon", "score"), [(30, "off"), ([30, 365], ["off", "right"]), ([20, 30], ["right", "off"])]
)
def test_code_that_a_page_prints_runs(mixed: pd.DataFrame, horizon: object, score: object) -> None:
    made = cal.audit(mixed, **{**MIXED, "horizon": horizon, "score": score}, limit=0.05, by="g")
    code = commands.repair(made, "")
    assert 'cal.at_horizon(data, time="t", event="e", horizon=30, score="off"' in " ".join(code.split()).replace(
        "( data", "(data"
    )
    names: dict[str, object] = {"cal": cal, "data": mixed}
    exec(code, names)  # noqa: S102
    assert names["calibrator"] is not None
    again: dict[str, object] = {"cal": cal, "data": mixed}
    exec(commands.audit_again(made).replace('record.save("audit.html")', ""), again)  # noqa: S102
    assert again["record"].everyone.to_dict() == made.everyone.to_dict()
    assert again["record"].exit_status == made.exit_status
    exec(commands.plan(made), {"cal": cal, "data": mixed})  # noqa: S102


def test_one_score_may_serve_all(frame: pd.DataFrame) -> None:
    made = cal.audit(frame, **AT, score="off", quick=True)
    assert set(made.curve("horizons").columns["score"]) == {"off"}


def test_horizons_that_cannot_be_a_family_are_refused(frame: pd.DataFrame) -> None:
    for more, line in (
        ({"score": ["p30", "p90"]}, "names 2 columns for 3 horizons"),
        ({"score": "p30", "horizon": [90, 30]}, "positive numbers in increasing order"),
        ({"score": "p30", "horizon": []}, "positive numbers in increasing order"),
    ):
        with pytest.raises(cal.BadInput, match=line):
            cal.audit(frame, **{**AT, **more})
    with pytest.raises(cal.BadInput, match="an audit takes several horizons"):
        cal.at_horizon(frame, **AT, score="p30")


def test_the_command_takes_them(frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stays.csv"
    frame.to_csv(path, index=False)
    line = ["--time", "t", "--event", "e", "--horizon", "30,90,365", "--score", ",".join(SCORES), "--way", "weights"]
    assert main(["audit", str(path), *line, "--quick"]) == 0
    assert "Horizons 30, 90 and 365 share alpha; this is the last, for none shows error" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["look", str(path), *line]) == 0


def test_each_horizon_is_audited_once(mixed: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """By 30 nobody was lost, and by 365 many: all judge gaps, and the first is not judged by its error before."""
    import sys

    run = sys.modules["calibrant.audit.run"]
    ours, judged = run.audited, []

    def counted(source: object, options: object, judging: object, *rest: object) -> AuditRecord:
        if not options.at.several:  # type: ignore[attr-defined]
            judged.append((options.at.horizon, judging.judge))  # type: ignore[attr-defined]
        return ours(source, options, judging, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "audited", counted)
    made = cal.audit(mixed, **MIXED, limit=0.12)
    assert judged == [(365.0, "auto"), (30.0, "gap")]
    assert made.curve("horizons").settings["judged"] == ("gap", "gap")
