"""Where nothing is compiled, as in a browser, an audit says the same to the last digit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import calibrant as cal
from calibrant.kernels import runtime

pytestmark = pytest.mark.all
AUDIT = ("--label", "y", "--score", "p", "--by", "sex", "--limit", "0.03", "--json", "-")


def test_an_audit_without_a_compiler_is_the_same(tmp_path) -> None:
    rng = np.random.default_rng(0)
    n = 1500
    p, x = rng.beta(2, 5, n).round(4), rng.normal(size=n).round(3)
    y = (rng.uniform(size=n) < np.clip(p + 0.05 * (x > 1), 0, 1)).astype(int)
    log = tmp_path / "log.csv"
    pyarrow.csv.write_csv(pa.table({"y": y, "p": p, "x": x, "sex": rng.choice(list("fm"), n)}), log)
    told = {}
    for kernels in ("", "plain"):
        run = subprocess.run(
            [sys.executable, "-m", "calibrant", "audit", str(log), *AUDIT],
            env={**os.environ, "CALIBRANT_KERNELS": kernels},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode in (0, 1, 3), run.stderr
        told[kernels] = json.loads(run.stdout)
    assert "numba" in told[""].pop("versions")
    assert "numba" not in told["plain"].pop("versions")
    assert told[""] == told["plain"]


WITHOUT_THREADS = """
import sys
import threading
import types

import calibrant.data.sources.abreast
from calibrant.cli import main

def refused(self):
    raise RuntimeError("can't start new thread")

calibrant.data.sources.abreast.sys = types.SimpleNamespace(platform="emscripten")
threading.Thread.start = refused
sys.exit(main(sys.argv[1:]))
"""


def test_files_are_read_and_audited_where_no_thread_starts(tmp_path) -> None:
    """As in a browser: several files, each scanned and then read in its turn; the record is the same."""
    rng = np.random.default_rng(1)
    for name, n in {"a.csv": 300, "b.csv": 200}.items():
        p = rng.beta(2, 5, n).round(4)
        held = {"y": (rng.uniform(size=n) < p).astype(int), "p": p, "sex": rng.choice(list("fm"), n)}
        pyarrow.csv.write_csv(pa.table(held), tmp_path / name)
    told = {}
    for start in (("-m", "calibrant"), ("-c", WITHOUT_THREADS)):
        run = subprocess.run(
            [sys.executable, *start, "audit", *(str(tmp_path / f) for f in ("a.csv", "b.csv")), *AUDIT],
            env={**os.environ, "CALIBRANT_KERNELS": "plain"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode in (0, 1, 3), run.stderr
        told[start] = json.loads(run.stdout)
    first, second = told.values()
    assert first["data"]["rows"] == 500
    assert first == second


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.interpreted.cache_clear()
    monkeypatch.setenv("CALIBRANT_KERNELS", "fast")
    with pytest.raises(cal.BadInput, match="CALIBRANT_KERNELS='fast'"):
        runtime.interpreted()
    runtime.interpreted.cache_clear()
