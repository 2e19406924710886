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
from calibrant.data.specs.spec import Variable
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.sequential import exchange


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
    assert (drift.columns, drift.unwatched, drift.score) == (("ward",), (), True)


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
    del d["drift"]
    with pytest.raises(BadInput, match="not a monitor"):
        cal.Monitor.from_json(json.dumps(d))


def test_drift_is_refused_without_a_reference_and_where_rows_are_no_draws_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"drift_alpha=: without reference= there is nothing"):
        cal.Monitor(label="y", score="p", drift_alpha=0.1)
    with pytest.raises(BadInput, match=r"drift_alpha=: with shared_shocks= there is nothing"):
        cal.Monitor(rows(0), label="y", score="p", drift_alpha=0.1, shared_shocks=True)
    with pytest.raises(BadInput, match=r"drift_alpha=: with cluster= there is nothing"):
        cal.Monitor(rows(0), label="y", score="p", drift_alpha=0.1, cluster="person")
    for joined in ({"shared_shocks": True}, {"cluster": "person"}):
        none = watched(2, **joined)
        assert none.drift is None
        assert "Drift of scores and columns is not watched" in none.report(tmp_path / "p.html").read_text()
    first = cal.Monitor(label="y", score="p")
    assert first.update(rows(1), at=1).drift is None
    assert cal.Monitor(rows(0), label="y", score="p").drift is None  # no day yet


def test_a_reference_with_clusters_or_weights_is_refused() -> None:
    y, p = [0, 1] * 50, [0.2, 0.6] * 50
    with pytest.raises(BadInput, match=r"the reference has clusters, .* start it with cluster="):
        cal.Monitor(cal.predictions(y, p, cluster=list(range(50)) * 2), label="y", score="p")
    with pytest.raises(NotComputable, match="the reference has weights, of which a monitor has no proof"):
        cal.Monitor(cal.predictions(y, p, weights=[1.0, 2.0] * 50), label="y", score="p")


def zeros(seed: int, positive: float, n: int = 2000) -> pa.Table:
    """Scores of which most are 0."""
    rng = np.random.default_rng(seed)
    p = np.where(rng.uniform(size=n) < positive, rng.uniform(0.2, 0.9, n), 0.0).round(3)
    return rows(seed, n=n).set_column(2, "p", pa.array(p))


def test_of_scores_that_are_nearly_all_0_it_is_watched_how_many_are_not() -> None:
    watch = cal.Monitor(zeros(0, 0.05), label="y", score="p")
    for day in (1, 2, 3):
        watch.predicted(watch.rows_of(zeros(day, 0.25)), day)
    assert watch.drift is not None
    assert (watch.drift.watched, watch.drift.score) == (1, True)
    [change] = watch.drift.changes
    assert change.name.startswith("score of 2")
    assert change.before == pytest.approx(0.05, abs=0.02)
    assert change.now == pytest.approx(0.25, abs=0.03)


def test_what_is_not_watched_is_on_the_page_and_nothing_to_watch_is_refused(tmp_path: Path) -> None:
    watch = cal.Monitor(zeros(0, 0.0), label="y", score="p", by="ward")
    watch.predicted(watch.rows_of(zeros(1, 0.0)), 1)
    assert watch.drift is not None
    assert not watch.drift.score
    page = watch.report(tmp_path / "p.html").read_text()
    assert "The score is not watched: in a fifth of the reference no score is over 0." in page
    with pytest.raises(BadInput, match="among 400 rows, a fifth of it, no score is over 0, and no column has levels"):
        cal.Monitor(zeros(0, 0.0), label="y", score="p")


def test_shares_of_few_rows_are_not_shown() -> None:
    watch = cal.Monitor(rows(99, n=3000), label="y", score="p", by="ward")
    ward = np.random.default_rng(0).choice(["ICU", "A", "B"], 585, p=[0.12, 0.5, 0.38])
    watch.update(rows(1, ward=["new"] * 15 + list(ward)), at=1)
    assert watch.drift is not None
    assert watch.drift.changes == ()
    assert watch.drift.evidence < 1.0  # nor is their evidence
    assert "No change is named." in one_day_text(watch)
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
    assert (watch.drift.columns, watch.drift.unwatched) == (("ward",), ("rare",))
    assert "Not watched, because a fifth of the reference does not show the kind of its values: " in one_day_text(watch)


def test_it_is_on_the_page_and_in_the_alert(moved: cal.Monitor, tmp_path: Path) -> None:
    alert = moved.report(tmp_path / "a.md").read_text()
    assert "Drift, which says nothing of calibration: `ward = ICU` has changed since about 2026-01-0" in alert
    page = moved.report(tmp_path / "p.html").read_text()
    assert "Drift of scores and columns, without labels" in page
    assert "it changes no verdict" in page
    assert "people scored on several days make their levels look drifted" in page
    quiet = watched(2).report(tmp_path / "q.html").read_text()
    assert "No change is named." in quiet


def test_what_changed_before_the_window_is_in_the_table_and_not_in_the_line() -> None:
    watch = cal.Monitor(rows(99, n=3000), label="y", score="p", by="ward", window=5)
    for day in range(1, 13):  # a change that passes, and then one of another share
        some = rows(day, 0.31 if day <= 3 else 0.12)
        if day > 8:
            some = some.set_column(2, "p", pa.array(np.minimum(some["p"].to_numpy() + 0.2, 0.8)))
        watch.update(some, at=day)
        if day in (3, 8):
            line = _lines(watch)
            assert ("ward = ICU has changed since about 1" in line) == (day == 3)
    assert watch.drift is not None
    changes = watch.drift.changes
    recent = [c.recent for c in changes]
    assert recent == sorted(recent, reverse=True)
    assert recent == [int(c.day) > 7 for c in changes]
    assert changes[0].name.startswith("score")
    old = next(c for c in changes if c.name == "ward = ICU")
    assert not old.recent
    assert old.now == pytest.approx(0.31, abs=0.03)  # until it changed back
    line = _lines(watch)
    assert f"Drift, which says nothing of calibration: {changes[0].name} has changed since about" in line
    assert "of the rows since, in the last 5 days." in line
    assert f"So have {sum(recent) - 1} more shares." in line
    assert "ward = ICU" in one_day_text(watch)


def test_each_change_of_a_share_is_named_with_its_own_day_and_size(tmp_path: Path) -> None:
    watch = cal.Monitor(rows(99, n=3000), label="y", score="p", by="ward")
    for day in range(1, 25):
        watch.update(rows(day, 0.31 if 6 <= day < 16 else 0.12), at=day)
        if day in (15, 17, 24):
            line = _lines(watch)
            assert (" has changed again since about 16, from " in line) == (day > 15)
            assert ("% of the rows before to " in line) == (day > 15)
            assert "So has 1 more share." in line
    drift = watch.drift
    assert drift is not None
    first, second = [c for c in drift.changes if c.name == "ward = ICU"]
    assert (first.earlier, second.earlier) == (0, 1)
    assert (int(first.onset), int(second.onset)) == (pytest.approx(6, abs=1), pytest.approx(16, abs=1))
    assert first.before == pytest.approx(0.12, abs=0.03)
    assert first.now == second.before == pytest.approx(0.31, abs=0.03)
    assert second.now == pytest.approx(0.12, abs=0.03)
    score, ward = drift.series
    assert (score.column, ward.column, len(drift.days)) == (None, "ward", 24)
    assert [int(d) for d, v in zip(drift.days, ward.log_evidence, strict=True) if v >= np.log(20.0)] == [
        int(first.day),
        int(second.day),
    ]
    assert max(score.log_evidence) < np.log(20.0)
    page = watch.report(tmp_path / "p.html").read_text()
    assert "Evidence of drift has reached the threshold for ward." in page
    assert "Evidence of drift: ward. From 1 to 24. Largest on " in page
    assert "None of this is about calibration." in page
    again = cal.Monitor.load(watch.save(tmp_path / "m.json"))
    assert again.state == watch.state


def test_pictures_of_drift_are_few_and_name_what_they_leave_out() -> None:
    from calibrant.report import document as doc
    from calibrant.report.outputs.drifted import nodes

    rng = np.random.default_rng(0)
    more = {f"c{i}": rng.choice(["u", "v"], 600) for i in range(5)}
    watch = cal.Monitor(rows(0, **more), label="y", score="p", by="ward", variables=list(more))
    for day in (1, 2, 3):
        watch.predicted(watch.rows_of(rows(day, **more)), day)
    assert watch.drift is not None
    shown = list(nodes(watch.drift))
    figures = [n for n in shown if isinstance(n, doc.Figure)]
    assert figures[0].panels[0].title == "The score"
    assert len(figures) == 4
    assert figures[0].title == "No evidence of drift has reached the threshold."
    assert all('role="img" aria-label="Evidence of drift: ' in f.panels[0].picture for f in figures)
    assert "3 more columns have no larger evidence: at most " in str(shown)


def test_of_many_looks_and_changes_the_latest_are_kept() -> None:
    from calibrant.audit.monitor.drift import LOOKS, Detected, _kept, _thinned

    some = np.arange(LOOKS + 1)
    thinned = _thinned(some)
    assert len(thinned) == LOOKS // 2 + LOOKS // 4 + 1
    assert thinned[-LOOKS // 2 :].tolist() == some[-LOOKS // 2 :].tolist()
    assert len(_thinned(some[:LOOKS])) == LOOKS
    many = tuple(Detected(share=k % 3, day=k, onset=(k, k, k), earlier=k // 3, before=(0, 0)) for k in range(120))
    kept = _kept((Detected(share=9, day=0, onset=(0, 0, 0), earlier=0, before=(0, 0)), *many))
    assert len(kept) == 100
    assert kept[0].share == 9  # its latest, however old
    assert kept[-1] is many[-1]


def _lines(watch: cal.Monitor) -> str:
    from calibrant.report.outputs.monitored import lines

    return lines(watch)


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
    # Page, alert and JSON have it too, before any label.
    assert watch("report", home, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "waiting": {"days": 3, "rows": 1800, "labels": 0},
        "drift": json.loads(json.dumps(drift.to_dict())),
    }
    outs = [tmp_path / f"early.{e}" for e in ("html", "md", "json")]
    assert watch("report", home, *(x for o in outs for x in ("-o", o))) == 0
    page, alert, state = (o.read_text() for o in outs)
    for text in (page, alert):
        assert "No day is complete yet: there is no verdict." in text
        assert "3 days wait for labels" in text
        assert "has changed since about 1" in text
    assert "Drift of scores and columns, without labels" in page
    assert json.loads(state)["drift"]["at"] == "3"
    assert "has changed since about 1" in folder.opened(home).report(tmp_path / "own.md").read_text()
    # A day whose labels come enters what is judged, and drift no second time.
    assert watch("labels", home, written(tmp_path, "l", rows(1, 0.31), "p", "ward", "person"), "--at", 3) == 0
    assert watch("labels", home, "--at", 32) == 0
    state = folder.opened(home).state
    assert state.at == "1"
    assert state.drift == drift


def test_whoever_is_ended_before_the_day_waits_enters_it_again(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, "d", rows(1, 0.31), "y")
    with patch.object(folder.pq, "write_table", side_effect=KeyboardInterrupt):
        watch("predictions", home, path, "--at", 1)
    assert folder.waiting(home) == ()
    assert watch("predictions", home, path, "--at", 1) == 0
    assert folder.opened(home).drift.rows == 600
    five = written(tmp_path, "five", rows(5), "y")
    with patch.object(folder.pq, "write_table", side_effect=KeyboardInterrupt):
        watch("predictions", home, five, "--at", 5)
    capsys.readouterr()
    assert watch("predictions", home, written(tmp_path, "four", rows(4), "y"), "--at", 4) == 2
    assert "predictions of 4 come after those of 5" in capsys.readouterr().err
    assert watch("predictions", home, five, "--at", 5) == 0
    assert folder.opened(home).drift.rows == 1200


def test_it_is_refused_on_the_command_line_without_a_reference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watch("start", tmp_path / "n", *LATE, "--drift-alpha", "0.1") == 2
    assert "--drift-alpha: without --reference there is nothing" in capsys.readouterr().err


def test_levels_are_counted_as_they_are_coded() -> None:
    numbers = pa.array([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0, 2.5, np.inf, np.nan, None] * 3)
    texts = pa.array(["a", "b", "z", None, "b"])
    for column, variable in (
        (numbers, Variable(name="v", kind="number", edges=(-1.0, 0.0, 2.0))),
        (numbers, Variable(name="v", kind="number")),
        (pa.array([3, 1, None, 2]), Variable(name="v", kind="number", edges=(2.0,), whole=True)),
        (pa.array([], pa.float64()), Variable(name="v", kind="number", edges=(2.0,))),
        (texts, Variable(name="v", kind="category", values=("a", "b", "c"))),
        (texts.dictionary_encode(), Variable(name="v", kind="category", values=("b", "a"))),
    ):
        coded = np.bincount(variable.codes(column), minlength=len(variable.labels))
        assert variable.counts(column).tolist() == coded.tolist()


def test_chances_are_those_of_scipy_to_the_last_bit_and_wherever_scipy_keeps_them() -> None:
    rng = np.random.default_rng(0)
    assert exchange._ufuncs() is not None  # else each command of a monitor with a reference takes a second longer
    for total in (1, 2, 7, 400, 30_000, 2_000_000):
        having = np.append(rng.integers(0, total + 1, 20), [0, total])
        for drawn in (0, 1, total // 3, total):
            least, most = np.maximum(drawn - total + having, 0), np.minimum(having, drawn)
            for counts in (least, most, rng.integers(least, most + 1)):
                direct = exchange.chances(counts, total, having, drawn)
                with patch.object(exchange, "_ufuncs", lambda: None):
                    public = exchange.chances(counts, total, having, drawn)
                assert np.array_equal(direct, public)
                assert np.allclose(np.sum(direct, axis=0), 1.0, rtol=1e-6)
