"""An installed package adds a format, an output and a command; a broken one is told in one line."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
import factories
from calibrant.cli import main
from calibrant.plugins import COMMANDS, FORMATS, OUTPUTS

TABLES = FORMATS, OUTPUTS, COMMANDS
TOY = """
import json
from pathlib import Path

import pyarrow as pa

from calibrant.arguments import OUTPUT
from calibrant.errors import BadInput
from calibrant.plugins import Command, Format, Output
from calibrant.toolkit.command import options as take
from calibrant.toolkit.data import whole


class Pairs(Format):
    called = "a file of pairs"
    endings = (".pairs",)

    def begins(self, first):
        return first.startswith(b"%PAIRS")

    def open(self, path, name, form):
        rows = [line.split() for line in path.read_text().splitlines() if not line.startswith("%")]
        y, p = zip(*rows)
        return whole(pa.table({"y": [int(v) for v in y], "p": [float(v) for v in p]}), name)


class Slack(Output):
    line, metavar = "100% of a message for a chat", "OUT.json"

    def options(self, p):
        p.add_argument("--channel", help="of -o slack: where to")

    def check(self, target, given):
        if target and not target.endswith((".json", "-")):
            raise BadInput(f"cannot write {target!r} as a message: end its name in .json")

    def content(self, thing, target, given):
        return json.dumps({"channel": given.channel, "text": thing.verdict})


class R(Output):
    line, of = "the calibrator as R", "calibrator"

    def content(self, thing, target, given):
        return f"{target} <- function(p) NULL # {thing.recipe}\\n"


class Tally(Command):
    line, more, status, after = "count cases, 100% of them", "As a test.", "exit status:\\n  5   always\\n", "look"

    def options(self, p):
        take.files(p)
        p.add_argument("--times", type=int, default=1)
        p.under(OUTPUT, "--upper").add_argument("--upper", action="store_true", help="in capital letters")

    def run(self, given):
        if given.times < 0:
            return {}["absent"]
        print(given.times * sum(line[:2] == "1 " for f in given.files for line in Path(f).read_text().splitlines()))
        return 5


class Empty:
    line = "nothing more"
"""

Installed = Callable[[str], None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    """Return what puts a package on the path: its name, and what entry_points.txt holds."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "toy_calibrant.py").write_text(TOY)
    monkeypatch.syspath_prepend(str(site))

    def forget() -> None:
        sys.modules.pop("toy_calibrant", None)
        importlib.invalidate_caches()
        for table in TABLES:
            table.__dict__.pop("installed", None)
            table.used.clear()

    def install(points: str, name: str = "toy-calibrant") -> None:
        info = site / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(points)
        forget()

    forget()
    yield install
    monkeypatch.undo()
    forget()


WHOLE = """[calibrant.formats]
pairs = toy_calibrant:Pairs
[calibrant.outputs]
slack = toy_calibrant:Slack
r-code = toy_calibrant:R
[calibrant.commands]
tally = toy_calibrant:Tally
"""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 0.9, 300).round(2)
    path = tmp_path / "log.pairs"
    path.write_text("".join(f"{int(y)} {q}\n" for y, q in zip(rng.random(300) < p, p, strict=True)))
    return path


def stated(capsys: pytest.CaptureFixture[str], argv: list[str]) -> tuple[int, str, str]:
    status = main(argv)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return status, out, err


def test_a_format_is_read(installed: Installed, rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(WHOLE)
    status, out, _ = stated(capsys, ["measure", "brier", "log.pairs", "--label", "y", "--score", "p", "--json"])
    read = cal.read(str(rows), label="y", score="p")
    assert (status, read.n) == (0, 300)
    assert json.loads(out)["value"] == cal.measure.brier(read).value


def test_a_format_is_told_by_its_first_bytes(installed: Installed, rows: Path) -> None:
    installed(WHOLE)
    other = rows.with_suffix(".measured")
    other.write_text("%PAIRS\n" + rows.read_text())
    assert cal.read(str(other), label="y", score="p").n == 300
    named = rows.with_suffix(".txt")  # an ending that is ours tells what it is
    named.write_text("%PAIRS\n" + rows.read_text())
    with pytest.raises(cal.BadInput, match="'y'"):
        cal.read(str(named), label="y", score="p")


def test_what_is_refused_may_be_a_format_of_others(installed: Installed, rows: Path) -> None:
    data = rows.with_suffix(".sav")
    data.write_bytes(b"$FL2 1\n")
    with pytest.raises(cal.BadInput, match=r"log.sav is an SPSS file, which is not read"):
        cal.read(str(data), label="y", score="p")
    installed("[calibrant.formats]\nsav = toy_calibrant:Pairs\n")
    data.write_bytes(b"$FL2 1\n")
    with pytest.raises(cal.NotComputable, match=r"^the format 'sav' of package toy-calibrant 1.2 failed: ValueError"):
        cal.read(str(data), label="y", score="p")


def test_an_output_is_written(installed: Installed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(WHOLE)
    record = factories.whole()
    kept = str(record.save(tmp_path / "record.json"))
    out = tmp_path / "told.json"
    status, _, err = stated(capsys, ["report", kept, "-o", f"slack:{out}", "--channel", "risk"])
    assert (status, err) == (0, f"written: {out}\n")
    assert json.loads(out.read_text()) == {"channel": "risk", "text": record.verdict}
    status, printed, _ = stated(capsys, ["report", kept, "-o", "slack:-"])
    assert json.loads(printed)["channel"] is None
    status, _, err = stated(capsys, ["report", kept, "-o", f"slack:{tmp_path / 'told.txt'}"])
    assert status == 2
    assert err.startswith("calibrant: cannot write ")
    assert err.count("\n") == 1
    status, _, err = stated(capsys, ["report", kept, "-o", f"slack:{kept}"])
    assert status == 2
    assert "among the files to read" in err


def test_a_calibrator_is_printed(installed: Installed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(WHOLE)
    (tmp_path / "calibrator.json").write_text(cal.repair.Rounding(steps=2).fit().to_json())
    status, out, _ = stated(capsys, ["apply", str(tmp_path / "calibrator.json"), "-o", "r-code:-"])
    assert (status, out) == (0, "repaired <- function(p) NULL # Rounding\n")


def test_a_command_is_run(installed: Installed, rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(WHOLE)
    events = sum(line.startswith("1 ") for line in rows.read_text().splitlines())
    assert stated(capsys, ["tally", "log.pairs", "--times", "2"]) == (5, f"{2 * events}\n", "")


def test_help_lists_what_is_installed(installed: Installed, capsys: pytest.CaptureFixture[str]) -> None:
    installed(WHOLE)
    assert re.search(r"^  tally +count cases, 100% of them$", stated(capsys, ["more"])[1], re.MULTILINE)
    out = stated(capsys, ["audit", "--help-all"])[1]
    assert re.search(r"^ +-o slack:OUT\.json +100% of a message for a chat$", out, re.MULTILINE)
    assert "--channel" in out
    assert "-o r-code:OUT" in stated(capsys, ["apply", "--help-all"])[1]
    out = stated(capsys, ["tally", "--help"])[1]
    assert "--upper" not in out
    every = stated(capsys, ["tally", "--help-all"])[1]
    assert re.search(r"^Output:\n  --upper +in capital letters$", every, re.MULTILINE)
    assert "As a test." in out
    assert "exit status:\n  5   always" in out


def test_ours_need_no_look_at_packages(installed: Installed, rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    csv = rows.with_suffix(".csv")
    csv.write_text("y,p\n" + rows.read_text().replace(" ", ","))
    assert stated(capsys, ["audit", "log.csv", "--label", "y", "--score", "p", "--quick", "-o", "tripod:t.md"])[0] == 0
    assert stated(capsys, ["weights", "--cap", "x"])[0] == stated(capsys, ["grades", "log.csv"])[0] == 2
    assert [table.kind for table in TABLES if "installed" in table.__dict__] == []
    assert stated(capsys, ["tally"])[0] == 2
    assert "installed" in COMMANDS.__dict__


def test_ours_come_first(installed: Installed, rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed("[calibrant.commands]\nweights = toy_calibrant:Tally\naudit = toy_calibrant:Tally\n")
    for command in ("weights", "audit"):
        assert "count cases" not in stated(capsys, [command, "--help"])[1]
    assert stated(capsys, ["more"])[1].count("count cases") == 0


BROKEN = {
    "absent:Tally": "ModuleNotFoundError: No module named 'absent'",
    "toy_calibrant:Absent": "AttributeError: module 'toy_calibrant' has no attribute 'Absent'",
    "toy_calibrant:Empty": "it has no ",
}


@pytest.mark.parametrize("where", BROKEN)
def test_what_cannot_be_used_is_one_line_that_names_the_package(
    installed: Installed, rows: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    installed("".join(f"[calibrant.{g}]\ntally = {where}\n" for g in ("formats", "outputs", "commands")))
    rows.rename("log.tally")
    record = str(factories.tiny().save("record.json"))
    for kind, argv in {
        "command": ["tally", "log.tally", "--times", "2"],
        "output": ["report", record, "-o", "tally:x.json"],
        "format": ["measure", "brier", "log.tally", "--label", "y", "--score", "p"],
    }.items():
        status, out, err = stated(capsys, argv)
        reported = f"calibrant: the {kind} 'tally' of package toy-calibrant 1.2 cannot be used: {BROKEN[where]}"
        assert (status, out, err.count("\n"), err.startswith(reported)) == (2, "", 1, True), err
    for argv in (["more"], ["audit", "--help-all"]):
        status, out, _ = stated(capsys, argv)
        assert status == 0
        assert "package toy-calibrant 1.2 cannot be used" in " ".join(out.split())


def test_a_broken_package_stands_in_no_other_way(installed: Installed, rows: Path) -> None:
    installed("[calibrant.formats]\nother = absent:Format\n")
    rows.write_text("y,p\n" + rows.read_text().replace(" ", ","))
    assert cal.read(str(rows), label="y", score="p").n == 300  # text with an ending that nobody knows
    rows.write_bytes(b"\x01\x02\x03")
    with pytest.raises(cal.BadInput, match=r"is none of .*; the format 'other' of package toy-calibrant 1.2 cannot"):
        cal.read(str(rows), label="y", score="p")


def test_what_goes_wrong_inside_names_the_package(
    installed: Installed, rows: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(WHOLE)
    rows.write_text("neither\n")
    reported = "calibrant: the {} of package toy-calibrant 1.2 failed: {}"
    status, _, err = stated(capsys, ["tally", "log.pairs", "--times", "-1"])
    assert (status, err) == (2, reported.format("command 'tally'", "KeyError: 'absent'\n"))
    _, _, err = stated(capsys, ["measure", "brier", "log.pairs", "--label", "y", "--score", "p"])
    assert err.startswith(reported.format("format 'pairs'", "ValueError: not enough values"))
    monkeypatch.setenv("CALIBRANT_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["tally", "log.pairs", "--times", "-1"])


def test_two_packages_with_one_name_clash(installed: Installed, rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(WHOLE)
    installed("[calibrant.commands]\ntally = toy_calibrant:Tally\n", "another")
    status, _, err = stated(capsys, ["tally", "log.pairs"])
    reported = "package another 1.2 and package toy-calibrant 1.2 each bring the command 'tally': remove all but one"
    assert (status, err) == (2, f"calibrant: {reported}\n")
