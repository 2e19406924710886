"""Correct code passes a type checker, and wrong code does not: pyright reads a user's script."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("user_script.py")
WRONG = """
import calibrant as cal

data = cal.predictions([0, 1], [0.2, 0.7])
data.top_label()
cal.audit(data, y="y")
cal.audit(data, "label")
cal.certify.rounded(data, steps="many")
cal.predictions([0, 1], [0.2, 0.7], None, [1.0, 1.0])
cal.audit(data).reliability
"""


@pytest.fixture(scope="module")
def checker() -> str:
    """Return a pyright that starts: the package fetches its program at first use."""
    for name in ("pyright", "basedpyright"):
        found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
        if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    pytest.skip("pyright is not installed, or cannot start: pip install 'calibrant[dev]'")


def errors(checker: str, file: Path) -> list[tuple[int, str]]:
    """Return line and message of every error."""
    command = [checker, "--pythonpath", sys.executable, "--level", "error", "--outputjson", str(file)]
    stated = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found: list[dict[str, Any]] = json.loads(stated)["generalDiagnostics"]
    return [(d["range"]["start"]["line"] + 1, d["message"]) for d in found]


@pytest.mark.slow(turns=1)
def test_correct_code_passes(checker: str) -> None:
    assert errors(checker, SCRIPT) == []


@pytest.mark.slow(turns=1)
def test_correct_code_runs() -> None:
    subprocess.run([sys.executable, str(SCRIPT)], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.slow(turns=1)
def test_wrong_code_does_not_pass(checker: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG, encoding="utf-8")
    assert sorted({line for line, _ in errors(checker, file)}) == [5, 6, 7, 8, 9, 10]
