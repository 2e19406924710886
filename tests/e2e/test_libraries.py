"""Which libraries a command on a small file loads, in a process of its own: each costs more than the work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = (
    "import json, sys\n"
    "from calibrant.cli import main\n"
    "sys.argv = ['calibrant', *sys.argv[1:]]\n"
    "status = main()\n"
    "print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)\n"
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.01, 0.99, 400).round(6)
    path = tmp_path_factory.mktemp("small") / "small.csv"
    y, age, site = (rng.random(400) < p).astype(int), rng.normal(50, 9, 400).round(2), rng.choice(["a", "b"], 400)
    rows = zip(p, y, age, site, strict=True)
    path.write_text("p,y,age,site\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows))
    return path


def loaded(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
    status, modules = json.loads(done.stderr.splitlines()[-1])
    assert status == 0
    return set(modules)


def beyond(found: set[str]) -> set[str]:
    """Return which of the modules found the special functions of the SciPy that is here do not load by themselves."""
    if not found:
        return found
    program = "import sys, scipy.special; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return found - set(done.stdout.split())


@pytest.mark.slow
def test_a_quick_audit_of_a_small_file_loads_what_it_needs(small: Path, tmp_path: Path) -> None:
    modules = loaded(
        *("audit", str(small), "--label", "y", "--score", "p", "--by", "site", "--quick"),
        *("-o", str(tmp_path / "page.html")),
    )
    assert {"numpy", "pyarrow", "scipy.special"} <= modules
    spared = {"sklearn", "scipy.stats", "scipy.optimize", "scipy.linalg", "pandas", "numba", "matplotlib", "numpy.f2py"}
    assert not beyond(spared & modules)
    unasked = ("calibrant.repair.maps.", "calibrant.repair.judge.", "calibrant.search.", "calibrant.detect.")
    assert not {m for m in modules if m.startswith(unasked)}
    assert "calibrant.inspect.run" not in modules
