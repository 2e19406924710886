"""What a scikit-learn user writes at first works, or says what to write: the table of the page is what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from e2e import guesses

ROWS = [line for line in guesses.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
RAISED = {written: row for written, row in zip(guesses.GUESSES, ROWS, strict=True) if "| **" in row}
FIX = r"write |pass |swap |did you mean|name the |leave it out"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> guesses.Names:
    return guesses.Names(Path(tmp_path_factory.mktemp("guesses")))


def test_few_lines_raise_and_each_says_what_to_write() -> None:
    assert len(guesses.GUESSES) == len(set(guesses.GUESSES)) == 105
    assert len(RAISED) <= 15
    for row in RAISED.values():
        assert re.search(FIX, row.split("**: ")[1]), row
    assert guesses.PAGE.read_text(encoding="utf-8") == guesses.page(ROWS)


@pytest.mark.parametrize("written", sorted(RAISED))
def test_what_raises_says_what_the_table_says(written: str, names: guesses.Names) -> None:
    assert guesses.line_of(written, names) == RAISED[written]


@pytest.mark.slow
def test_every_line_does_what_the_table_says(names: guesses.Names) -> None:
    assert [guesses.line_of(written, names) for written in guesses.GUESSES] == ROWS
