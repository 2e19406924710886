"""`calibrant watch`: a directory that survives being ended at any point, late labels, exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant.audit.monitor import folder, names
from calibrant.audit.monitor.monitor import Monitor
from calibrant.cli.run import main
from calibrant.errors import BadInput

SETTINGS = ("--label", "y", "--score", "p", "--limit", "0.1", "--by", "site")
LATE = (*SETTINGS, "--key", "id", "--labels-within", "2")


def day(tmp_path: Path, number: int, off: float = 0.0) -> str:
    rng = np.random.default_rng(number)
    n = 600
    p, site = rng.uniform(0.1, 0.8, n).round(3), rng.choice(["A", "B"], n)
    y = (rng.uniform(size=n) < p + np.where(site == "B", off, 0.0)).astype(int)
    path = tmp_path / f"day{number}.parquet"
    pq.write_table(pa.table({"id": [f"{number}-{i}" for i in range(n)], "y": y, "p": p, "site": site}), path)
    return str(path)


def without(path: str, *columns: str, rows: slice = slice(None)) -> str:
    table = pq.read_table(path).drop_columns(list(columns))
    out = path.replace(".parquet", f"-{len(columns)}-{rows.start}-{rows.stop}.parquet")
    pq.write_table(table.slice(rows.start or 0, (rows.stop or table.num_rows) - (rows.start or 0)), out)
    return out


def watch(*arguments: object) -> int:
    return main(["watch", *map(str, arguments)])


@pytest.mark.slow
def test_a_scheduler_reads_the_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "m"
    assert watch("start", home, *SETTINGS) == 0
    assert watch("update", home, day(tmp_path, 1), "--at", "2026-01-01") == 0
    assert watch("update", home, day(tmp_path, 1), "--at", "2026-01-01") == 2
    assert "2026-01-01 has been entered: pass --replace to put" in capsys.readouterr().err
    for number in range(2, 9):
        status = watch("update", home, day(tmp_path, number, 0.2), "--at", f"2026-01-0{number}")
    assert status == 1
    assert watch("report", home, "-o", tmp_path / "page.html", "-o", tmp_path / "alert.md") == 1
    assert "site = B" in (tmp_path / "alert.md").read_text()
    assert watch("start", home, *SETTINGS) == 2
    assert "holds a monitor already" in capsys.readouterr().err
    assert watch("update", tmp_path / "none", day(tmp_path, 1), "--at", "1") == 2


def test_two_writers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "m"
    watch("start", home, *SETTINGS)
    with folder.locked(home):
        assert watch("update", home, day(tmp_path, 1), "--at", "1") == 2
    assert "another process is writing" in capsys.readouterr().err
    assert watch("update", home, day(tmp_path, 1), "--at", "1") == 0


def test_whoever_is_ended_finds_the_day_before_or_after(tmp_path: Path) -> None:
    """A process that ends at any write leaves a monitor that loads, and the command can be run again."""
    home, target = tmp_path / "m", tmp_path / "m" / folder.MONITOR
    watch("start", home, *SETTINGS)
    watch("update", home, day(tmp_path, 1), "--at", "1")
    before = target.read_bytes()
    with patch("calibrant.data.targets.os.replace", side_effect=KeyboardInterrupt):
        watch("update", home, day(tmp_path, 2), "--at", "2")
    assert target.read_bytes() == before
    assert watch("update", home, day(tmp_path, 2), "--at", "2") == 0
    assert Monitor.load(target).state.looks == 2


def test_labels_enter_when_their_day_is_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "m"
    watch("start", home, *LATE)
    days = {n: day(tmp_path, n) for n in (1, 2, 3)}
    for n, path in days.items():
        assert watch("predictions", home, without(path, "y"), "--at", n) == 0
    assert watch("labels", home, without(days[1], "p", "site", rows=slice(0, 500)), "--at", 3) == 0
    assert folder.waiting(home) == ((1, 600, 500), (2, 600, 0), (3, 600, 0))
    assert folder.opened(home).last is None  # nothing is used before its day is complete
    # On day 4 the first day is complete: the labels that come now are too late for it.
    missed = without(days[1], "p", "site", rows=slice(500, 600))
    capsys.readouterr()
    assert watch("labels", home, missed, "--at", 4) == 0
    assert "0 labels kept, 100 of rows that do not wait; entered: 1" in capsys.readouterr().out
    state = folder.opened(home).state
    assert (state.rows, state.unlabelled) == (500, 100)
    assert watch("labels", home, without(days[2], "p", "site"), "--at", 4) == 0
    assert watch("labels", home, "--at", 5) == 0
    assert folder.opened(home).state.rows == 1100
    direct = tmp_path / "direct"
    watch("start", direct, *SETTINGS)
    watch("update", direct, without(days[1], rows=slice(0, 500)), "--at", 1)
    watch("update", direct, days[2], "--at", 2)
    late, whole = ([r.gap for r in folder.opened(f).state.window] for f in (home, direct))
    assert late == pytest.approx(whole)


def test_a_day_enters_once_though_a_process_ended_before_it_was_removed(tmp_path: Path) -> None:
    home = tmp_path / "m"
    watch("start", home, *LATE)
    path = day(tmp_path, 1)
    watch("predictions", home, without(path, "y"), "--at", 1)
    watch("labels", home, without(path, "p", "site"), "--at", 2)
    with patch.object(folder, "remove", side_effect=KeyboardInterrupt):
        watch("labels", home, "--at", 9)
    assert len(list((home / folder.WAITING).glob("*.parquet"))) == 1
    assert watch("labels", home, "--at", 9) == 0
    assert folder.opened(home).state.looks == 1
    assert not list((home / folder.WAITING).iterdir())
    assert not list((home / folder.LABELS).iterdir())


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda t: t.set_column(0, "id", pa.array(["a"] * t.num_rows)), "'a' names several rows"),
        (lambda t: t.set_column(1, "p", pa.array([1.5] * t.num_rows)), "600 values are outside 0 to 1"),
        (lambda t: t.set_column(2, "site", pa.array([["A"]] * t.num_rows)), "group column 'site' holds list"),
        (lambda t: t.set_column(0, "id", pa.array([["A"]] * t.num_rows)), "--key id: list<element: string> names no"),
        (lambda t: t.set_column(0, "id", pa.array([None, *["b"] * (t.num_rows - 1)])), "1 rows have no value"),
        (lambda t: t.drop_columns(["site"]), "'site'"),
    ],
)
def test_predictions_that_cannot_be_used_are_refused(tmp_path: Path, change: object, line: str) -> None:
    home = tmp_path / "m"
    watch("start", home, *LATE)
    path = tmp_path / "bad.parquet"
    pq.write_table(change(pq.read_table(without(day(tmp_path, 1), "y"))), path)  # type: ignore[operator]
    with pytest.raises(BadInput) as e:
        folder.predictions(home, str(path), 1)
    assert line in str(e.value)


def test_predictions_and_labels_go_once_and_in_order(tmp_path: Path) -> None:
    home = tmp_path / "m"
    watch("start", home, *LATE)
    first, second = day(tmp_path, 1), day(tmp_path, 2)
    folder.predictions(home, without(first, "y"), 1)
    with pytest.raises(BadInput, match="predictions of 1 come after those of 1"):
        folder.predictions(home, without(first, "y"), 1)
    with pytest.raises(BadInput, match="waits for its label since 1"):
        folder.predictions(home, without(first, "y"), 2)
    folder.predictions(home, without(second, "y"), 2)
    own = without(first, "p", "site")
    assert folder.labels(home, own, 2)[1].matched == 600
    assert folder.labels(home, own, 2)[1].matched == 600  # the same delivery again
    again = folder.labels(home, without(first, "p", "site", rows=slice(0, 10)), 3)[1]
    assert (again.matched, again.again) == (10, 10)  # an export of all labels so far brings most of them again
    flipped = pq.read_table(own)
    pq.write_table(flipped.set_column(1, "y", pa.array(1 - flipped.column("y").to_numpy())), tmp_path / "f.parquet")
    with pytest.raises(BadInput, match="'1-0' has another label already"):
        folder.labels(home, str(tmp_path / "f.parquet"), 3)
    watch("start", tmp_path / "n", *SETTINGS)
    with pytest.raises(BadInput, match="takes days that are complete"):
        folder.predictions(tmp_path / "n", without(second, "y"), 1)


def late(tmp_path: Path, *numbers: int, more: tuple[str, ...] = ()) -> Path:
    """A monitor whose predictions of some days wait."""
    home = tmp_path / "late"
    assert watch("start", home, *LATE, *more) == 0
    for n in numbers:
        assert watch("predictions", home, without(day(tmp_path, n), "y"), "--at", n) == 0
    return home


def delivery(tmp_path: Path, number: int, labels: list[object], start: int = 0) -> str:
    path = tmp_path / f"labels-{number}-{start}.parquet"
    ids = [f"{number}-{i}" for i in range(start, start + len(labels))]
    pq.write_table(pa.table({"id": ids, "y": labels}), path)
    return str(path)


def test_labels_of_other_types_and_those_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = late(tmp_path, 1)
    assert watch("labels", home, delivery(tmp_path, 1, [None, 1, 0, None]), "--at", 1) == 0
    assert "2 labels kept, 2 without a value yet; entered: no day" in capsys.readouterr().out
    assert watch("labels", home, delivery(tmp_path, 1, [True, False], 10), "--at", 1) == 0
    assert watch("labels", home, delivery(tmp_path, 1, [1.0, 0.0], 20), "--at", 1) == 0
    for bad, line in (([2, 0], "label column 'y' holds 2"), (["maybe", "no"], "holds string (such as 'maybe')")):
        assert watch("labels", home, delivery(tmp_path, 1, bad, 30), "--at", 1) == 2
        assert line in capsys.readouterr().err
    assert folder.waiting(home) == ((1, 600, 6),)
    assert watch("labels", home, "--at", 4) == 0
    state = folder.opened(home).state
    assert (state.rows, state.unlabelled) == (6, 594)


def test_a_day_of_which_no_label_came_does_not_hold_up_the_others(tmp_path: Path) -> None:
    home = late(tmp_path, 1, 2)
    watch("labels", home, without(day(tmp_path, 2), "p", "site"), "--at", 2)
    assert watch("labels", home, "--at", 9) == 0
    state = folder.opened(home).state
    assert (state.looks, state.rows, state.unlabelled, state.at) == (2, 600, 600, "2")
    assert folder.waiting(home) == ()


def test_an_alarm_of_any_day_that_closes_is_an_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = late(tmp_path, 1, 2, 3, 4)
    for n in (1, 2, 3, 4):
        path = day(tmp_path, n, 0.9 if n == 3 else 0.0)
        watch("labels", home, without(path, "p", "site"), "--at", 3)
    capsys.readouterr()
    assert watch("labels", home, "--at", 20) == 1
    assert "entered: 1, 2, 3, 4 (alarm)" in capsys.readouterr().out
    assert not folder.opened(home).state.alarmed


def test_labels_that_came_too_late_are_not_used(tmp_path: Path) -> None:
    home = late(tmp_path, 1, 2)
    watch("labels", home, delivery(tmp_path, 1, [0] * 300), "--at", 3)
    with patch.object(folder, "_closed", lambda *_: ((), False)):  # as on a day on which nothing was closed
        watch("labels", home, delivery(tmp_path, 1, [1] * 300, 300), "--at", 4)
    watch("labels", home, "--at", 4)
    state = folder.opened(home).state
    assert (state.rows, state.unlabelled) == (300, 300)


def test_only_the_labels_of_a_day_are_read_when_it_closes(tmp_path: Path) -> None:
    home = late(tmp_path, *range(1, 6))
    for n in range(1, 6):
        watch("labels", home, without(day(tmp_path, n), "p", "site"), "--at", 3)
    seen: list[str] = []
    read = pq.read_table
    with patch.object(folder.pq, "read_table", lambda p, **more: seen.append(Path(p).parent.name) or read(p, **more)):
        folder.labels(home, None, 6)
        assert seen == ["waiting", "1", "waiting", "2", "waiting", "3"]
        seen.clear()
        assert folder.waiting(home) == ((4, 600, 600), (5, 600, 600))
        assert seen == []


def test_whoever_is_ended_between_two_files_of_a_delivery_can_bring_it_again(tmp_path: Path) -> None:
    home = late(tmp_path, 1, 2)
    whole = pa.concat_tables([pq.read_table(without(day(tmp_path, n), "p", "site")) for n in (1, 2)])
    pq.write_table(whole, tmp_path / "both.parquet")
    write, written = pq.write_table, []

    def once(table: pa.Table, path: Path) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(path)
        write(table, path)

    with patch.object(folder.pq, "write_table", once):
        watch("labels", home, tmp_path / "both.parquet", "--at", 2)
    assert folder.waiting(home) == ((1, 600, 600), (2, 600, 0))
    assert watch("labels", home, tmp_path / "both.parquet", "--at", 2) == 0
    assert folder.waiting(home) == ((1, 600, 600), (2, 600, 600))


def test_columns_may_be_called_as_ours(tmp_path: Path) -> None:
    """A key `name` and a group `label`, and keys that one file has as whole numbers and the other as real ones."""
    home, numbers = tmp_path / "m", np.arange(60)
    watch("start", home, "--label", "y", "--score", "p", "--by", "label", "--key", "name", "--labels-within", 1)
    rows = {"name": numbers, "p": np.full(60, 0.5), "label": ["u", "v"] * 30}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    pq.write_table(pa.table({"name": numbers * 1.0, "y": [0, 1] * 30}), tmp_path / "y.parquet")
    assert watch("predictions", home, tmp_path / "rows.parquet", "--at", 1) == 0
    assert watch("labels", home, tmp_path / "y.parquet", "--at", 1) == 0
    assert watch("labels", home, "--at", 3) == 1
    state = folder.opened(home).state
    assert [r.rows for r in state.window] == [60, 30, 30]
    assert [round(r.gap, 9) for r in state.window[1:3]] == [-0.5, 0.5]


def test_a_report_before_the_first_day_is_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = late(tmp_path, 1)
    assert watch("report", home) == 0
    assert "1 day waits for labels: 600 rows, 0 with a label" in capsys.readouterr().out
    assert watch("report", home, "-o", tmp_path / "page.html", "-o", tmp_path / "page.md") == 0
    assert "No day is complete yet" in (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "1 day waits for labels" in (tmp_path / "page.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert watch("report", home, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"waiting": {"days": 1, "rows": 600, "labels": 0}}


def test_a_day_without_labels_shows_no_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = late(tmp_path, 1)
    assert watch("labels", home, "--at", 9) == 0
    printed = capsys.readouterr().out
    assert "No row of the last 28 days has a label." in printed
    assert "100.0" not in printed


def test_what_is_watched_is_fixed_by_all_rows_of_the_first_day(tmp_path: Path) -> None:
    """Not by those that will have a label, which outcomes may choose."""
    home = late(tmp_path, 1)
    plan = folder.opened(home).plan
    watch("labels", home, delivery(tmp_path, 1, [1] * 20), "--at", 1)
    watch("labels", home, "--at", 9)
    assert folder.opened(home).plan == plan


def test_a_day_may_have_no_event_but_a_misspelt_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "m"
    watch("start", home, *SETTINGS, "--positive", "yes")

    def rows(n: int, outcomes: list[str]) -> str:
        pq.write_table(pa.table({"y": outcomes, "p": [0.1] * n, "site": ["A"] * n}), tmp_path / "rows.parquet")
        return str(tmp_path / "rows.parquet")

    assert watch("update", home, rows(600, ["no"] * 600), "--at", 1) == 2
    assert "positive='yes' does not occur in column 'y'" in capsys.readouterr().err
    assert watch("update", home, rows(20, ["no"] * 20), "--at", 1) == 0
    assert watch("update", home, rows(300, ["no"] * 300), "--at", 2) in (0, 1)


def test_labels_of_text_are_refused_with_what_can_be_done_once_a_monitor_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which label is the event is said at the start, and no option of a later step names it."""
    way = "pass --positive (of watch start) to name the event"
    text = pa.table({"y": ["yes", "no"] * 30, "p": [0.5] * 60, "site": ["A"] * 60, "id": range(60)})
    pq.write_table(text, tmp_path / "text.parquet")
    whole, late_ = tmp_path / "whole", tmp_path / "late"
    watch("start", whole, *SETTINGS)
    watch("start", late_, *SETTINGS, "--key", "id", "--labels-within", 3)
    watch("predictions", late_, tmp_path / "text.parquet", "--at", 1)
    for home, step in ((whole, "update"), (late_, "labels")):
        capsys.readouterr()
        assert watch(step, home, tmp_path / "text.parquet", "--at", 1) == 2
        assert capsys.readouterr().err.endswith(f"(such as 'yes'), not numbers; {way}\n")
    pq.write_table(
        text.set_column(0, "y", [[0, 1] * 30]).set_column(1, "p", [["50%"] * 60]), tmp_path / "percent.parquet"
    )
    capsys.readouterr()
    assert watch("update", whole, tmp_path / "percent.parquet", "--at", 1) == 2
    assert capsys.readouterr().err.endswith("such as '50%': pass --percent (of watch start)\n")
    monitor = Monitor(label="y", score="p", limit=0.02)
    with pytest.raises(BadInput, match=r"pass positive= to name the event$"):
        monitor.update(text, at=1)


def test_a_damaged_monitor_is_refused_by_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "m"
    watch("start", home, *SETTINGS)
    (home / folder.MONITOR).write_text("{}")
    assert watch("report", home) == 2
    assert "cannot be read (not a monitor): put a copy back" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--score", "p"), "name the columns: --label"),
        ((*SETTINGS, "--cluster", "c", "--shared-shocks"), "--cluster and --shared-shocks: a day is one cluster"),
        ((*SETTINGS, "--labels-within", "3"), "--labels-within needs --key"),
        ((*SETTINGS, "--window", "0"), "--window=0: pass a whole number of days"),
    ],
)
def test_start_names_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    assert watch("start", tmp_path / "m", *arguments) == 2
    assert line in capsys.readouterr().err


def test_refusals_name_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, rows = tmp_path / "m", day(tmp_path, 1)
    watch("start", home, *SETTINGS)
    watch("update", home, rows, "--at", "2026-01-01")
    lacking = pq.read_table(rows).set_column(1, "y", pa.array([None, *[1] * 599]))
    pq.write_table(lacking, tmp_path / "lacking.parquet")
    for arguments, line in (
        ((tmp_path / "lacking.parquet", "--at", "2026-01-02"), "leave those rows out of the data"),
        ((rows, "--at", "7"), "--at=7: the days before are dates"),
        ((rows, "--at", "2026-01-02T10:00:00Z"), "--at='2026-01-02T10:00:00Z': pass a date"),
        ((rows, "--at", "2025-12-31"), "2025-12-31 is earlier than the latest day, 2026-01-01"),
        ((rows, "--at", "2025-12-31", "--replace"), "only the latest can be replaced"),
    ):
        assert watch("update", home, *arguments) == 2
        error = capsys.readouterr().err
        assert line in error
        assert "=True" not in error


def test_a_report_is_printed_as_json_next_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "m"
    watch("start", home, *SETTINGS)
    watch("update", home, day(tmp_path, 1), "--at", "1")
    capsys.readouterr()
    assert watch("report", home, "--json", "-o", tmp_path / "alert.md") == 0
    assert json.loads(capsys.readouterr().out)["at"] == "1"
    assert (tmp_path / "alert.md").exists()


def again(path: str, number: int, old: int) -> str:
    """A day's predictions whose rows are named as those of another day."""
    table = pq.read_table(path)
    ids = pa.array([f"{old}-{i}" for i in range(table.num_rows)])
    out = path.replace(f"day{number}", f"again{number}")
    pq.write_table(table.set_column(0, "id", ids).drop_columns(["y"]), out)
    return out


def test_a_name_is_used_once_though_its_day_has_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An export of all outcomes would bring those of day 1 as labels of the same people on day 8."""
    home = late(tmp_path, 1)
    watch("labels", home, without(day(tmp_path, 1), "p", "site"), "--at", 2)
    assert watch("labels", home, "--at", 4) == 0
    second = day(tmp_path, 8)
    assert watch("predictions", home, again(second, 8, 1), "--at", 8) == 2
    assert "'1-0' has named a row of an earlier day" in (error := capsys.readouterr().err)
    assert "a --key that has the day, too" in error
    assert watch("predictions", home, without(second, "y"), "--at", 8) == 0
    assert folder.waiting(home) == ((8, 600, 0),)


@pytest.mark.parametrize("step", ["written", "remove"])
def test_names_are_kept_whenever_the_process_ends(tmp_path: Path, step: str) -> None:
    """Ended before the names are written, or before the files of the day are removed: the names are there after it."""
    home = late(tmp_path, 1)
    watch("labels", home, without(day(tmp_path, 1), "p", "site"), "--at", 2)
    where = (names, "_written") if step == "written" else (folder, "remove")
    with patch.object(*where, side_effect=KeyboardInterrupt):
        watch("labels", home, "--at", 9)
    assert folder.opened(home).state.looks == 1
    second = day(tmp_path, 10)
    assert watch("predictions", home, again(second, 10, 1), "--at", 10) == 2
    assert watch("labels", home, "--at", 10) == 0
    assert watch("predictions", home, again(second, 10, 1), "--at", 10) == 2


def test_names_of_many_days_are_in_few_files(tmp_path: Path) -> None:
    def of(day: int) -> pa.ChunkedArray:
        return pa.chunked_array([[f"{day}-{i}" for i in range(50)]])

    for n in range(40):
        names.keep(tmp_path, n, of(n))
        names.keep(tmp_path, n, of(n))  # once more, after a process has ended
    files = list((tmp_path / names.ENTERED).iterdir())
    assert len(files) <= 6
    assert sum(f.stat().st_size for f in files) == 8 * 50 * 40
    assert all(names.entered(tmp_path, of(n)).all() for n in range(40))
    assert not names.entered(tmp_path, of(40)).any()
    # Ended between a file that holds several days and the removal of those: they are there twice, and then once.
    names.keep(tmp_path, 40, of(40))
    with patch.object(names, "remove", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        names.keep(tmp_path, 41, of(41))
    assert names.entered(tmp_path, of(41)).all()
    names.keep(tmp_path, 42, of(42))
    assert sum(f.stat().st_size for f in (tmp_path / names.ENTERED).iterdir()) == 8 * 50 * 43


def test_what_cannot_be_used_is_refused_before_a_day_enters(tmp_path: Path) -> None:
    home = late(tmp_path, 1, 2)
    watch("labels", home, delivery(tmp_path, 2, [1] * 10), "--at", 2)
    for bad in (delivery(tmp_path, 99, [1] * 5), delivery(tmp_path, 2, [0] * 10)):  # of no row; another label
        assert watch("labels", home, bad, "--at", 4) == 2
        assert folder.opened(home).last is None
        assert [d for d, _, _ in folder.waiting(home)] == [1, 2]


def test_an_export_that_brings_nothing_new_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels of rows whose day closes now, and of those whose day has closed, are counted and not used."""
    home = late(tmp_path, 1)
    export = without(day(tmp_path, 1), "p", "site")
    assert watch("labels", home, export, "--at", 2) == 0
    for at, entered in ((4, "1"), (5, "no day")):
        capsys.readouterr()
        assert watch("labels", home, export, "--at", at) == 0
        assert f"0 labels kept, 600 of rows that do not wait; entered: {entered}" in capsys.readouterr().out
    assert folder.opened(home).state.rows == 600
    assert watch("labels", home, delivery(tmp_path, 99, [1] * 5), "--at", 5) == 2
    assert "none of 5 labels is of a row that waits, or that has entered" in capsys.readouterr().err


def test_python_does_not_undo_what_a_scheduler_entered(tmp_path: Path) -> None:
    home, path = tmp_path / "m", tmp_path / "m" / folder.MONITOR
    watch("start", home, *SETTINGS)
    mine = Monitor.load(path)
    mine.update(day(tmp_path, 1), at=1)
    mine.save(path)
    mine.update(day(tmp_path, 2), at=2)
    mine.save(path)  # what it wrote itself is no change
    assert watch("update", home, day(tmp_path, 3), "--at", 3) == 0
    mine.update(day(tmp_path, 4), at=4)
    with pytest.raises(BadInput, match="has changed since it was read, and days that were entered would be lost"):
        mine.save(path)
    assert folder.opened(home).state.looks == 3
    mine.save(tmp_path / "copy.json")
    again = Monitor.load(path)
    again.update(day(tmp_path, 4), at=4)
    with folder.locked(home), pytest.raises(BadInput, match="another process is writing"):
        again.save(path)
    again.save(path)
    assert folder.opened(home).state.looks == 4
