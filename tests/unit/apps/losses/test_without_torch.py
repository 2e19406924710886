"""Without PyTorch everything else works, and the training losses say in one line what is missing."""

import subprocess
import sys

CODE = """
import sys
sys.modules["torch"] = None
import calibrant as cal
import calibrant.repair
try:
    cal.repair.objectives
except ImportError as e:
    assert str(e) == "calibrant.repair.objectives needs PyTorch: pip install 'calibrant[torch]'", e
else:
    raise SystemExit("no error")
"""


def test_the_error_names_the_extra() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
