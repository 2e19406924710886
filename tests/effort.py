"""How much is tried: little by default, what the default left with --rest, both with --all, more with --nightly."""

from __future__ import annotations

import datetime
import subprocess
import zlib
from pathlib import Path
from typing import Any

from hypothesis import is_hypothesis_test, settings

QUICK, USUAL, NIGHTLY = 20, 100, 1000  # examples of a property test that does not say how many it needs
PROFILES = {"quick": QUICK, "all": USUAL, "rest": USUAL - QUICK, "nightly": NIGHTLY}
SLICES = (*"0123456789", "all")

for name, number in PROFILES.items():
    settings.register_profile(name, max_examples=number, deadline=None)


def load(effort: str) -> None:
    """Choose one of the four for this run, before any test module is imported."""
    settings.load_profile(effort)


def examples(usual: int, quick: int = QUICK, **more: Any) -> settings:
    """Return the settings of a property test that needs `usual` examples: so many with --all, if not over 100.

    By default `quick` of them, fewer than 20 where one takes a tenth of a second or more. At night ten times `usual`.
    """
    often = min(usual, USUAL)
    number = {
        "quick": min(often, quick),
        "all": often,
        "rest": max(often - quick, 1),
        "nightly": usual * (NIGHTLY // USUAL),
    }[settings.get_current_profile_name()]
    return settings(max_examples=number, **more)


def has_rest(test: Any) -> bool:
    """Tell whether a property test has examples that the default does not try."""
    return is_hypothesis_test(test) and test._hypothesis_internal_use_settings.max_examples > 1


def slice_of_today(folder: Path) -> str:
    """Return which tenth of the simulations is due: a new one each day that brought a change, or each day."""
    git = ["git", "-C", str(folder)]
    shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if shallow.stdout.strip() != "false":
        return str(datetime.date.today().toordinal() % 10)
    days = subprocess.run([*git, "log", "--format=%cd", "--date=short"], capture_output=True, text=True, check=True)
    return str(len(set(days.stdout.split())) % 10)


def in_slice(name: str, which: str, turns: int = 10) -> bool:
    """Tell whether the test of this name is in a slice, 0 to 9, or in `all`: of `turns` slices in a row, one has it."""
    return which == "all" or zlib.crc32(name.encode()) % turns == int(which) % turns
