"""The how-tos are true: their code and commands run in the order of the page, and print what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import HOWTOS, blocks, compare, play

NOT_HERE = {"r"}  # runs R, which no test has


@pytest.mark.slow
@pytest.mark.parametrize("page", HOWTOS, ids=lambda p: p.stem)
def test_a_howto_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    played = play(text, capsys)
    assert played.compared == sum(info == "text" for info, _, _ in blocks(text))
    if page.stem not in NOT_HERE:
        assert played.commands
        assert played.compared


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
