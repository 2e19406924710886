"""`calibrant watch`: a directory that survives being ended at any point, late labels, exit statuses."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant.audit.monitor import folder
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
    assert "2026-01-01 has been entered: pass replace=True" in capsys.readouterr().err
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
    assert watch("labels", home, missed, "--at", 4) == 2
    assert "none of 100 labels is of a row that waits" in capsys.readouterr().err
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
        (lambda t: t.set_column(1, "p", pa.array([1.5] * t.num_rows)), "score column 'p' holds 1.5, first in row 1"),
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
    with pytest.raises(BadInput, match="has a label already"):
        folder.labels(home, without(first, "p", "site", rows=slice(0, 10)), 3)
    watch("start", tmp_path / "n", *SETTINGS)
    with pytest.raises(BadInput, match="takes days that are complete"):
        folder.predictions(tmp_path / "n", without(second, "y"), 1)
