"""Every page is true: its code and commands run in its order, and print what the page shows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pages import PAGES, ROOT, START, blocks, compare, name_of, play, visits

ACTED = ("python", "bash")
PLAYED = [p for p in PAGES if any(info in ACTED for info, _, _ in blocks(p.read_text(encoding="utf-8")))]
FIRST = (ROOT / "README.md", ROOT / "docs/start.md")  # what newcomers run, each time; of the others a third
RUN = [pytest.param(p, marks=pytest.mark.slow(turns=1) if p in FIRST else pytest.mark.slow) for p in PLAYED]
pytestmark = pytest.mark.skipif(not START.exists(), reason="a source distribution without docs")


@pytest.mark.parametrize("page", RUN, ids=map(name_of, PLAYED))
def test_a_page_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    visits()
    text = page.read_text(encoding="utf-8")
    played = play(text, capsys)
    assert played.compared == sum(info == "text" for info, _, _ in blocks(text))


def test_what_is_shown_follows_what_prints_it() -> None:
    """Each block of text stands behind code or commands that a test runs, or is marked as of another program."""
    for page in PAGES:
        before = ""
        for info, _, line in blocks(page.read_text(encoding="utf-8")):
            assert info != "text" or before in (*ACTED, "text"), f"{name_of(page)}:{line}: nothing prints this"
            before = info


def test_code_that_no_test_runs_is_python() -> None:
    for page in (p for p in PAGES if p.is_relative_to(ROOT / "docs")):
        for info, body, _ in blocks(page.read_text(encoding="utf-8")):
            if info == "python no-run" and not body.startswith("%"):
                ast.parse(body, name_of(page))


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("a 1.00\nb 2\n", "a 1.01\nb 2\n", True),
        ("a 1.00\nb 2\n", "a 1.2\nb 2\n", False),
        ("a 1\nb 2\n", "a 1\n", False),
        ("a 1\nb 2\nc 3\n", "a 1\n...\nc 3\n", True),
        ("a 1\nb 2\nc 3\n", "a 1\n...\n", True),
        ("a 1\nb 2\nc 3\n", "...\nb 2\n", False),
        ("a 1\nb 2\nc 3\n", "...\nb 2\n...\n", True),
        ("a 1\nb 2\n", "...\nb 2\n...\na 1\n", False),
        ("met, 1\n", "not met, 1\n", False),
    ],
)
def test_what_is_shown_is_held_against_what_was_printed(printed: str, shown: str, same: bool) -> None:
    if same:
        compare(printed, shown)
    else:
        with pytest.raises(AssertionError):
            compare(printed, shown)
