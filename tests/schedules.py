"""The recipes of docs/howto/schedule.md, and a folder in which they run as they are printed."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.cli import main
from pages import ROOT, blocks

PAGE = ROOT / "docs/howto/schedule.md"
DAYS = [f"2026-01-{day:02}" for day in range(1, 5)]
SETTINGS = ["--label", "y", "--score", "p", "--by", "region", "--limit", "0.05"]
OFF = DAYS[-2:]  # the days on which the model is far off


def recipe(kind: str, word: str) -> str:
    """The block of the page that is of this kind and has this word."""
    (body,) = (b for info, b, _ in blocks(PAGE.read_text(encoding="utf-8")) if info == kind and word in b)
    return body


def scored(day: str, n: int = 400) -> pa.Table:
    """A day's rows: calibrated, or 40 points under what comes true."""
    rng = np.random.default_rng(int(day[-2:]))
    p = rng.uniform(0.1, 0.5, n).round(3)
    y = rng.uniform(size=n) < p + 0.4 * (day in OFF)
    return pa.table({"region": rng.choice(["n", "s"], n), "p": p, "y": y.astype(np.int32)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a monitor as the page starts it, where `calibrant` and `curl` are programs; the second keeps."""
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, script in {
        "calibrant": f'exec {sys.executable} -m calibrant "$@"',
        "curl": 'printf "%s\\n" "$@" >> sent.txt; cat alert.md >> sent.txt',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOOK", "https://chat.example/hook")
    assert main(["watch", "start", "drift", *SETTINGS]) == 0
    return tmp_path


def entered(folder: Path) -> cal.Monitor:
    return cal.Monitor.load(folder / "drift/monitor.json")
