"""Damaged files are refused in one line, or read: none takes the process down, none comes to light as a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from calibrant.cli.run import SPARING
from e2e import corrupt_files

ROOT = Path(__file__).parents[1]
CHECKED = ("2-", "3-")  # Parquet files with a checksum a page


def reported(paths: list[Path], how: str) -> dict[str, str]:
    """Read files in processes of limited memory; a new one where one has died."""
    out: dict[str, str] = {}
    command = [sys.executable, corrupt_files.__file__, how]
    where = os.pathsep.join([str(ROOT), *sys.path])
    while todo := [str(p) for p in paths if str(p) not in out]:
        done = subprocess.run(
            [*command, *todo],
            capture_output=True,
            text=True,
            timeout=900,
            env=os.environ | SPARING | {"PYTHONPATH": where},
        )
        lines, last = done.stdout.splitlines(), ""
        for line in lines:
            if line.startswith("at "):
                last = line[3:]
                out[last] = f"crashed {done.returncode}"
            else:
                out[last] = line
        assert last, done.stderr
    return out


def check(kind: str, count: int, folder: Path) -> Counter[str]:
    found = reported(corrupt_files.spoilt(kind, count, folder), "all")
    bad = {Path(p).name: line for p, line in found.items() if not line.startswith(("refused", "same", "other"))}
    assert not bad
    unseen = [p for p, line in found.items() if line == "other" and kind == "parquet" and Path(p).name[:2] in CHECKED]
    assert not unseen  # what a checksum could tell
    return Counter(line.split()[0] for line in found.values())


@pytest.mark.slow
def test_a_few_damaged_files(tmp_path: Path) -> None:
    """Those that once took the process down, or came to light as errors of libraries, and some others."""
    paths = [p for kind in ("parquet", "arrow", "orc") for p in corrupt_files.spoilt(kind, 12, tmp_path)]
    crashed = corrupt_files.spoilt("arrow", 1, tmp_path, first=42)  # an index that is none
    found = reported([*paths, *crashed], "rows")
    assert not [line for line in found.values() if not line.startswith(("refused", "same", "other"))]
    assert found[str(crashed[0])].startswith("refused")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "arrow", "orc"])
def test_five_hundred_damaged_files(kind: str, tmp_path: Path) -> None:
    counts = check(kind, 500, tmp_path)
    assert counts["refused"] > 350  # the others hold a number that no longer is what it was, and nothing to tell it by
    assert counts["same"] > 5
