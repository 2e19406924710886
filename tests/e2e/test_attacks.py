"""A few damaged files of each kind and a few bombs, seeded: each is read, or refused in a line, in little time.

`benchmarks/attack/files.py` tries thousands, each bomb in a process of its own, and measures memory too.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from calibrant.cli import main
from e2e.bombs import BOMBS
from e2e.hostile_files import damaged_file, kinds

SECONDS = 30.0  # of CPU
LONGEST = 1_000  # characters of a refusal
FEW = 6
QUICK = (  # those that are made in little time, of each kind
    "text: quotes",
    "text: fields of dashes",
    "JSON: lists in lists",
    "JSON lines: a long name of many fields",
    "JSON lines: long names in long names",
    "NumPy: text of no size",
    "NumPy: a header of 9 MB",
    "Excel: a stray cell",
    "Excel: many sheets",
    "Inspect: a long name of many fields",
    "lm-eval: a long name of many fields",
    "lm-eval: lists in lists",
    "Arrow: nulls without bytes",
    "Arrow: a claimed length",
    "sketch: a header in lists",
    "calibrator: a long number",
    "record: long columns",
    "page: unclosed",
    "words: a long number",
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sound")


def held(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends as it documents, and says in one line why where it refuses."""
    capsys.readouterr()
    began = time.process_time()
    status = main(words)
    assert time.process_time() - began < SECONDS
    printed = capsys.readouterr()
    assert status in (0, 1, 2, 3), printed.err
    if status == 2 and not (words[0] == "look" and printed.out):  # a look says what cannot be used, and the rest
        assert printed.err.count("\n") == 1
        assert len(printed.err) < LONGEST
        assert printed.err[:-1].isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW))
def test_damaged_files_of_each_kind_are_read_or_refused(
    seed: int, sound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sound / "files").mkdir(exist_ok=True)
    every = kinds(sound)
    assert len(every) == 20
    for kind in every.values():
        held(damaged_file(kind, 7_000_000 + seed, sound / "files"), capsys)
        for left in (sound / "files").iterdir():
            left.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_bombs_are_read_or_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held(BOMBS[name](tmp_path), capsys)
