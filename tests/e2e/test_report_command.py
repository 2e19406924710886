"""`calibrant report`, and what audits write besides: from a record that was kept, the same bytes as from the audit."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

import calibrant as cal
import factories
from calibrant.cli import main


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    factories.scanned(factories.employment()).save("record.json")
    return "record.json"


@pytest.mark.slow
def test_an_audit_and_its_record_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 2},{(i * 37 % 601) / 601:.4f},{'ab'[i % 3 == 0]}\n" for i in range(600))
    Path("log.csv").write_text(f"y,p,g\n{rows}")
    stated = ["--label", "y", "--score", "p", "--by", "g", "--quick", "--limit", "0.05"]
    assert main(["audit", "log.csv", *stated, "-o", "a.html", "-o", "a.md", "-o", "a.json"]) == 1
    assert main(["report", "a.json", "-o", "b.html", "-o", "b.md", "-o", "b.json"]) == 0
    for ending in ("html", "md", "json"):
        assert Path(f"a.{ending}").read_bytes() == Path(f"b.{ending}").read_bytes()
    record = cal.audit("log.csv", label="y", score="p", by="g", quick=True, limit=0.05)
    assert cal.AuditRecord.load("a.json") == record == cal.AuditRecord.from_json(record.to_json())
    assert main(["report", "a.html", "-o", "kept/"]) == 0
    assert Path("kept/report.html").read_bytes() == Path("a.html").read_bytes()
    assert main(["audit", "log.csv", *stated, "-o", "fresh/"]) == 1
    for path in Path("fresh").rglob("*.*"):
        assert path.read_bytes() == (Path("kept") / path.relative_to("fresh")).read_bytes()


def test_a_summary_is_printed_unless_standard_output_is_taken(kept: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", kept]) == 0
    assert "employment_ma" in capsys.readouterr().out
    assert main(["report", kept, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "employment_ma"


def test_a_page_is_opened_once_it_is_there(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool]] = []

    def opened(url: str) -> bool:
        path = Path(url.removeprefix("file://"))
        seen.append((path.name, path.exists()))
        return True

    monkeypatch.setattr(webbrowser, "open", opened)
    assert main(["report", kept, "-o", "x.html", "--open"]) == 0
    assert main(["report", kept, "-o", "folder/", "--open"]) == 0
    assert main(["report", kept, "-o", "no/x.html", "--open"]) == 2
    assert seen == [("x.html", True), ("report.html", True)]


def test_a_desktop_without_a_browser_is_told(
    kept: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert main(["report", kept, "-o", "x.html", "--open"]) == 0
    assert "no browser could be opened: open x.html in one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--open"], "--open shows a page: name one with -o audit.html"),
        (["-o", "html:-", "--open"], "--open shows a page"),
        (["-o", "pdf:-"], "a PDF goes to a file"),
        (["-o", "html:record.json"], "among the files to read"),
        (["--out", "record.json/"], "name a directory"),
        (["--out", "."], "among the files to read"),
        (["--json", "-o", "markdown:-"], "both claim standard output"),
        (["-o", "json:x", "-o", "pdf:x"], "would write one file"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(
    kept: str, given: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(kept).read_bytes()
    assert main(["report", kept, *given]) == 2
    assert why in capsys.readouterr().err
    assert Path(kept).read_bytes() == before
    assert [p.name for p in Path().iterdir()] == [kept]
