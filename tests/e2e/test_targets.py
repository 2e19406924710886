"""Where commands write: never onto what they read, never two things to one place, never half a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from calibrant.cli import main
from calibrant.data import employment_path
from calibrant.data.sources.query import Query
from calibrant.data.targets import checked_targets, written
from calibrant.errors import BadInput
from calibrant.repair.calibrators.curves import Logistic

COLUMNS = ["--label", "y", "--score", "p"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with good.csv, a.sketch, b.sketch and calibrator.json, whose every byte must outlive a test."""
    rng = np.random.default_rng(5)
    p = rng.uniform(size=400)
    table = pa.table({"y": (rng.uniform(size=400) < p).astype(int), "p": p})
    (tmp_path / "in").mkdir()
    for name in ("good.csv", "in/more.csv"):
        pa.csv.write_csv(table, tmp_path / name)
    (tmp_path / "link.csv").symlink_to(tmp_path / "good.csv")
    (tmp_path / "calibrator.json").write_text(Logistic(recipe="Platt", slope=2.0, intercept=0.0).to_json())
    monkeypatch.chdir(tmp_path)
    for name in ("a.sketch", "b.sketch"):
        assert main(["sketch", "good.csv", *COLUMNS, "--out", name]) == 0
    before = {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()}
    yield tmp_path
    assert {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()} == before


@pytest.mark.parametrize(
    "line",
    [
        *(f"audit good.csv LS -o {kind}:good.csv" for kind in ("json", "html", "markdown")),
        "audit good.csv LS -o json:./in/../good.csv",
        "audit good.csv LS -o json:link.csv",
        "audit link.csv LS -o json:good.csv",
        "audit *.csv LS -o json:good.csv",
        "audit in LS -o json:in/more.csv",
        "audit file://HERE/good.csv LS -o json:good.csv",
        "audit a.sketch b.sketch -o json:b.sketch",
        "sketch good.csv LS --out good.csv",
        "sketch good.csv --like a.sketch --out a.sketch",
        "merge a.sketch b.sketch --out a.sketch",
        "apply calibrator.json good.csv --score p --out good.csv",
        "repair good.csv LS --out good.csv",
        "repair good.csv LS --judge-on in/more.csv --out in/more.csv",
        "example --quick -o json:EXAMPLE",
    ],
)
def test_an_input_is_never_written_over(log: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    given = line.replace("HERE", str(log)).replace("EXAMPLE", str(employment_path())).split()
    given = [word for w in given for word in (COLUMNS if w == "LS" else [w])]
    kept = employment_path().stat().st_mtime_ns
    assert main(given) == 2
    assert "is among the files to read: write to another file" in capsys.readouterr().err
    assert employment_path().stat().st_mtime_ns == kept


def test_a_query_names_its_files_in_quotes(log: Path) -> None:
    with pytest.raises(BadInput, match="is among the files to read"):
        checked_targets({"--json": "good.csv"}, [Query("select * from 'good.csv' where p > 0.1")])
    checked_targets({"--json": "new.csv"}, [Query("select * from 'good.csv' where p > 0.1")])


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("audit good.csv LS -o no/r.html", "cannot write 'no/r.html': there is no directory 'no'"),
        ("audit good.csv LS -o markdown:in", "cannot write 'in': it is a directory"),
        (
            "audit good.csv LS -o json:r.x -o html:in/../r.x",
            "-o json:r.x and -o html:in/../r.x would write one file, 'in/../r.x'",
        ),
        ("audit good.csv LS --json -o markdown:-", "both claim standard output"),
        ("audit good.csv LS -o html:- -o markdown:-", "both claim standard output"),
        ("example -o no/r.json", "there is no directory 'no'"),
        ("sketch good.csv LS --out no/x", "there is no directory 'no'"),
        ("merge a.sketch --out no/x", "there is no directory 'no'"),
        ("repair good.csv LS -o no/m.json", "there is no directory 'no'"),
        ("repair good.csv LS --out o.xlsx", "end its name in .parquet"),
        ("audit good.csv LS -o EMPTY", "cannot write '': name a file"),
        ("repair good.csv LS --out EMPTY", "cannot write '': name a file"),
        ("repair good.csv LS -o calibrator:EMPTY", "cannot write ''"),
    ],
)
def test_a_target_is_refused_before_any_work(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, stated: str
) -> None:
    for work in ("commands.audited", "commands.summarised", "commands.merged", "repairing.evaluate"):
        monkeypatch.setattr(f"calibrant.cli.{work}", None)
    words = [word for w in line.split() for word in (COLUMNS if w == "LS" else [w])]
    assert main([w.replace("EMPTY", "") for w in words]) == 2  # as an unset variable of a shell leaves it
    assert stated in capsys.readouterr().err


@pytest.mark.parametrize("locked", ["in", "in/more.csv"])
def test_a_target_that_may_not_be_written_is_refused(log: Path, monkeypatch: pytest.MonkeyPatch, locked: str) -> None:
    may = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: Path(p).resolve() != (log / locked).resolve() and may(p, mode))
    with pytest.raises(BadInput, match=r"cannot write 'in/more.csv': .*may not be written"):
        checked_targets({"--json": "in/more.csv"}, ())


def test_a_failed_write_leaves_the_old_file_and_no_part(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadInput, match=r"cannot write 'good.csv': No space left on device"):
        written("good.csv", b"x")


def test_a_file_keeps_its_link_and_its_rights(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    written(str(link), b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(f.name for f in tmp_path.iterdir()) == ["link.txt", "real.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs devices as files")
def test_a_device_is_written_to_and_not_replaced() -> None:
    assert set(checked_targets({"--json": os.devnull, "--report": os.devnull}, ())) == {"--json", "--report"}
    written(os.devnull, b"x")
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs standard output as a file")
@pytest.mark.parametrize("redirected", [False, True])
def test_standard_output_may_be_named_as_a_file(tmp_path: Path, redirected: bool) -> None:
    code = "from calibrant.data.targets import *; checked_targets({'--json': '/dev/stdout'}, ()); "
    command = [sys.executable, "-c", code + "written('/dev/stdout', b'x')"]
    out = tmp_path / "out"
    with out.open("wb") as file:
        done = subprocess.run(command, stdout=file if redirected else subprocess.PIPE, check=True)
    assert (out.read_bytes() if redirected else done.stdout) == b"x"
    assert [f.name for f in tmp_path.iterdir()] == ["out"]


def test_the_longest_name_that_a_disk_takes_is_written(tmp_path: Path) -> None:
    for name in ("j" * 250 + ".json", "é" * 125 + ".json"):
        written(str(tmp_path / name), b"{}")
        assert [p.name for p in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names are UTF-8 there")
def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (b"caf\xe9.csv", b"caf\xe9"):
        name = os.fsdecode(os.path.join(os.fsencode(tmp_path), line))
        if line.endswith(b"csv"):
            Path(name).write_text("y,p\n0,0.2\n1,0.7\n")
        else:
            Path(name).mkdir()
            (Path(name) / "log.csv").write_text("y,p\n0,0.2\n1,0.7\n")
        for command in ("look", "audit"):
            assert main([command, name, "--label", "y", "--score", "p"]) == 2
            assert "is not UTF-8: rename the file, or its folder" in capsys.readouterr().err
