"""The tiers hold what they say: slices in a row have every test once, and a quick test that is slow fails."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import pytest

import costs
import effort

NAMES = [f"tests/validity/test_{a}.py::test_{b}[{c}]" for a in "abcdef" for b in "xyz" for c in range(50)]
FILE = """
import time

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

first = []

def test_first_of_a_file():
    burn(0 if first else 0.3)
    first.append(True)

def test_always():
    burn(0.3)

def test_fast():
    burn(0)
"""
CONFTEST = """
import sys
sys.path.insert(0, {folder!r})
from costs import Costs

def pytest_configure(config):
    config.pluginmanager.register(Costs(0.2, None))
"""


@pytest.mark.parametrize("turns", [3, 10])
def test_slices_in_a_row_hold_every_test_that_takes_turns_once(turns: int) -> None:
    held = [[n for n in NAMES if effort.in_slice(n, which, turns)] for which in effort.SLICES[:turns]]
    assert sorted(n for names in held for n in names) == sorted(NAMES)
    assert all(0.5 < turns * len(names) / len(NAMES) < 1.5 for names in held)
    assert all(effort.in_slice(n, "all", turns) for n in NAMES)


def git(folder: Path, *words: str, day: int = 1) -> None:
    date = f"2026-01-{day:02d}T12:00:00"
    who = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", str(folder), *name, *words], check=True, env=who, capture_output=True)


def test_the_slice_follows_the_days_that_brought_a_change(tmp_path: Path) -> None:
    assert effort.slice_of_today(tmp_path) == str(datetime.date.today().toordinal() % 10)
    git(tmp_path, "init")
    for day in (1, 1, 2, 5):
        git(tmp_path, "commit", "--allow-empty", "-m", "change", day=day)
    assert effort.slice_of_today(tmp_path) == "3"
    git(tmp_path, "clone", "--depth", "1", f"file://{tmp_path}", str(tmp_path / "shallow"))
    assert effort.slice_of_today(tmp_path / "shallow") == str(datetime.date.today().toordinal() % 10)


@pytest.mark.slow
def test_a_quick_test_that_is_slow_twice_fails_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(FILE)
    (tmp_path / "conftest.py").write_text(CONFTEST.format(folder=str(Path(costs.__file__).parent)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "1 failed, 2 passed" in done.stdout
    assert "test_some.py::test_always took 0." in done.stdout
