"""Whatever a page shows as the output of its code or its commands is held against what is printed."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from calibrant.cli import main
from pages import HOWTOS, ROOT, blocks, compare

DOCS = ROOT / "docs"
ELSEWHERE = {  # pages whose blocks of text other tests compare
    "cases-decisions.md": "e2e/test_decision_events.py",
    "start.md": "unit/test_docs.py",
    "howto/tracking.md": "e2e/test_pipelines.py",
}
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="a source distribution without docs")


def shown(page: Path) -> list[tuple[list[str], str, int]]:
    """Return each block of text that follows code or commands: what stands before it, the text, and its line."""
    found, before = [], ("", "")
    for info, body, line in blocks(page.read_text(encoding="utf-8")):
        if info == "text" and before[0].split(" ")[0] in ("python", "bash", "console"):
            found.append((before[1].splitlines(), body, line))
        before = (info, body)
    return found


def visits(path: Path) -> None:
    """Write a file as people have them: per cents, ids, codes, dates as text, repeated rows, missing values."""
    rng = np.random.default_rng(5)
    lines = ["visit_id,patient_id,zip,seen,sex,age,ward,readmitted,risk"]
    for i in range(2_000):
        risk = "" if i % 40 == 7 else f"{40 * rng.uniform():.2f}"
        readmitted = "" if i in (11, 900) else "yes" if rng.uniform() < 0.2 else "no"
        seen = f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}"
        known = f"V{i:05d},P{i // 4:05d},0{2100 + i % 7},{seen},{'fm'[i % 2]},{20 + i % 60},B"
        lines.append(f"{known},{readmitted},{risk}")
    lines += lines[21:41]  # twenty rows that are there twice
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_look_prints_what_the_page_on_data_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    visits(tmp_path / "visits.csv")
    assert main(["look", "visits.csv"]) == 0
    ((command, text, _),) = shown(DOCS / "data.md")
    assert command == ["calibrant look visits.csv"]
    compare(capsys.readouterr().out, text)


def test_a_plan_prints_what_its_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    ((command, *_), text, _) = next(one for one in shown(DOCS / "plan.md") if "rows for all" in one[1])
    assert main(shlex.split(command)[1:]) == 0
    compare(capsys.readouterr().out, text)


def test_what_is_shown_after_code_is_compared_somewhere() -> None:
    """A formula has the info string `text formula`: it is no output."""
    for page in sorted({*DOCS.rglob("*.md")} - {*HOWTOS}):
        name = page.relative_to(DOCS).as_posix()
        if name in ELSEWHERE:
            assert page.name in (ROOT / "tests" / ELSEWHERE[name]).read_text(encoding="utf-8")
            assert shown(page), name
        elif name not in ("data.md", "plan.md"):
            lines = [line for _, _, line in shown(page)]
            assert not lines, f"{name}:{lines}: let a test compare it, or call it `text formula`"
