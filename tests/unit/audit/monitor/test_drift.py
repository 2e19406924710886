"""Drift against a reference: named before any label, with its size; saved, replaced, refused, and no verdict."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.audit.monitor import folder
from calibrant.audit.monitor.drift import DriftNow
from calibrant.cli.run import main
from calibrant.errors import BadInput


def rows(seed: int, icu: float = 0.12, n: int = 600, **more: object) -> pa.Table:
    rng = np.random.default_rng(seed)
    p, ward = rng.uniform(0.1, 0.8, n).round(3), rng.choice(["ICU", "A", "B"], n, p=[icu, 0.5, 0.5 - icu])
    y = (rng.uniform(size=n) < p).astype(int)
    columns = {"id": [f"{seed}-{i}" for i in range(n)], "y": y, "p": p, "ward": ward, "person": np.arange(n) // 2}
    return pa.table(columns | more)


def watched(days: int, icu: float = 0.12, **more: object) -> cal.Monitor:
    usual = {"label": "y", "score": "p", "by": "ward", "limit": 0.1}
    watch = cal.Monitor(rows(99, n=3000), **usual | more)
    for day in range(1, days + 1):
        watch.update(rows(day, icu if day > 3 else 0.12), at=f"2026-01-{day:02}")
    return watch


@pytest.fixture(scope="module")
def moved() -> cal.Monitor:
    return watched(9, 0.31)


def test_what_has_changed_is_named_with_its_size_and_day(moved: cal.Monitor) -> None:
    state = moved.state
    assert state.drift is not None
    first = state.drift.changes[0]
    assert first.name == "ward = ICU"
    assert "2026-01-03" <= first.onset <= first.day <= "2026-01-06"
    assert first.day >= "2026-01-04"
    assert first.onset_first <= first.onset <= first.onset_last
    assert first.before == pytest.approx(0.12, abs=0.03)
    assert first.now == pytest.approx(0.31, abs=0.03)
    assert not any(f.name.startswith("score") for f in state.drift.changes)
    assert (state.verdict, state.exit_status, state.alarms) == ("within", 0, ())  # drift changes no verdict
    assert state.drift.rows == 9 * 600
    assert state.drift.reference_rows == 2400


def test_a_reference_and_days_that_are_alike_show_none() -> None:
    drift = watched(4).drift
    assert drift is not None
    assert drift.changes == ()
    assert drift.evidence < 1.0
    assert drift.columns == ("ward",)


def test_it_is_the_same_after_it_was_saved_or_a_day_was_replaced(moved: cal.Monitor, tmp_path: Path) -> None:
    again = cal.Monitor.load(moved.save(tmp_path / "m.json"))
    assert again.to_json() == moved.to_json()
    assert again.state == moved.state
    assert DriftNow.from_dict(json.loads(json.dumps(again.state.drift.to_dict()))) == moved.drift
    more, direct = cal.Monitor.load(tmp_path / "m.json"), cal.Monitor.load(tmp_path / "m.json")
    more.update(rows(50, 0.45), at="2026-01-10")
    more.update(rows(51), at="2026-01-10", replace=True)
    direct.update(rows(51), at="2026-01-10")
    assert more.to_json() == direct.to_json()
    before = more.to_json()
    with pytest.raises(BadInput, match="has been entered"):
        more.update(rows(52, 0.45), at="2026-01-10")
    assert more.to_json() == before  # what is refused is not counted


def test_a_file_whose_shares_do_not_go_together_is_refused(moved: cal.Monitor) -> None:
    d = json.loads(moved.to_json())
    d["drift"]["reference"]["thresholds"] = d["drift"]["reference"]["thresholds"][1:]
    with pytest.raises(BadInput, match="the drift is of other shares than the reference's"):
        cal.Monitor.from_json(json.dumps(d))


def test_drift_is_refused_without_a_reference_and_for_shared_shocks() -> None:
    with pytest.raises(BadInput, match=r"drift_alpha=: without reference= there is nothing"):
        cal.Monitor(label="y", score="p", drift_alpha=0.1)
    with pytest.raises(BadInput, match=r"drift_alpha=: with shared_shocks= there is nothing"):
        cal.Monitor(rows(0), label="y", score="p", drift_alpha=0.1, shared_shocks=True)
    assert cal.Monitor(rows(0), label="y", score="p", shared_shocks=True).drift is None
    first = cal.Monitor(label="y", score="p")
    assert first.update(rows(1), at=1).drift is None
    assert cal.Monitor(rows(0), label="y", score="p").drift is None  # no day yet


def test_of_rows_of_a_cluster_one_is_compared() -> None:
    watch = watched(2, cluster="person")
    assert watch.drift is not None
    assert (watch.drift.rows, watch.drift.reference_rows) == (600, 1200)


def test_shares_of_few_rows_are_not_shown() -> None:
    watch = cal.Monitor(rows(99, n=3000), label="y", score="p", by="ward")
    watch.update(rows(1, ward=["new"] * 15 + ["A"] * 585), at=1)
    assert watch.drift is not None
    assert all("other" not in f.name for f in watch.drift.changes)
    watch.update(rows(2, ward=["new"] * 15 + ["A"] * 585), at=2)
    shown = {f.name: f for f in watch.drift.changes}
    assert shown["ward = other"].before == 0.0
    assert shown["ward = other"].now == pytest.approx(30 / 1200)
    one_day = cal.Monitor(rows(99, n=3000), label="y", score="p", by="ward", window=1)
    for day in (1, 2):
        one_day.update(rows(day, ward=["new"] * 15 + ["A"] * 585), at=day)
    assert {f.name: f.now for f in one_day.drift.changes}["ward = other"] is None
    assert "fewer than 20 rows" in one_day_text(one_day)


def one_day_text(watch: cal.Monitor) -> str:
    from calibrant.report.outputs.monitored import document

    return str(document(watch, watch.state))


def test_a_column_that_a_fifth_of_the_reference_does_not_show_has_no_levels() -> None:
    reference = rows(0, rare=np.concatenate([np.zeros(580), np.arange(1.0, 21.0)]))  # a fifth has few values of it
    watch = cal.Monitor(reference, label="y", score="p", by="ward", variables="rare")
    watch.update(rows(1, rare=pa.array([1.0] * 600)), at=1)
    assert watch.drift is not None
    assert watch.drift.columns == ("ward",)


def test_it_is_on_the_page_and_in_the_alert(moved: cal.Monitor, tmp_path: Path) -> None:
    alert = moved.report(tmp_path / "a.md").read_text()
    assert "Drift, which says nothing of calibration: `ward = ICU` has changed since about 2026-01-0" in alert
    page = moved.report(tmp_path / "p.html").read_text()
    assert "Drift of scores and columns, without labels" in page
    assert "it changes no verdict" in page
    quiet = watched(2).report(tmp_path / "q.html").read_text()
    assert "None is named." in quiet


# ---- labels that come late ----


def watch(*arguments: object) -> int:
    return main(["watch", *map(str, arguments)])


def written(tmp_path: Path, name: str, table: pa.Table, *without: str) -> str:
    pq.write_table(table.drop_columns(list(without)), tmp_path / f"{name}.parquet")
    return str(tmp_path / f"{name}.parquet")


LATE = ("--label", "y", "--score", "p", "--by", "ward", "--key", "id", "--labels-within", "30")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    reference = written(tmp_path, "reference", rows(99, n=3000))
    assert watch("start", tmp_path / "m", *LATE, "--reference", reference, "--drift-alpha", "0.01") == 0
    return tmp_path / "m"


def test_rows_that_wait_for_their_labels_are_compared(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in (1, 2, 3):
        assert watch("predictions", home, written(tmp_path, "d", rows(day, 0.31), "y"), "--at", day) == 0
    said = capsys.readouterr().out
    assert "Drift, which says nothing of calibration: ward = ICU has changed since about 1" in said
    assert watch("report", home) == 0
    assert "ward = ICU has changed" in capsys.readouterr().out
    drift = folder.opened(home).drift
    assert (drift.at, drift.rows, drift.alpha) == ("3", 1800, 0.01)
    # A day whose labels come enters what is judged, and drift no second time.
    assert watch("labels", home, written(tmp_path, "l", rows(1, 0.31), "p", "ward", "person"), "--at", 3) == 0
    assert watch("labels", home, "--at", 32) == 0
    state = folder.opened(home).state
    assert state.at == "1"
    assert state.drift == drift


def test_whoever_is_ended_before_the_day_waits_enters_it_again(home: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "d", rows(1, 0.31), "y")
    with patch.object(folder.pq, "write_table", side_effect=KeyboardInterrupt):
        watch("predictions", home, path, "--at", 1)
    assert folder.waiting(home) == ()
    assert watch("predictions", home, path, "--at", 1) == 0
    assert folder.opened(home).drift.rows == 600


def test_it_is_refused_on_the_command_line_without_a_reference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watch("start", tmp_path / "n", *LATE, "--drift-alpha", "0.1") == 2
    assert "--drift-alpha: without --reference there is nothing" in capsys.readouterr().err
