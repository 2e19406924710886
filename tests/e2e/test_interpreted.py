"""Where nothing is compiled, an audit says the same to the last digit."""

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

pytestmark = pytest.mark.slow
AUDIT = ("--label", "y", "--score", "p", "--by", "sex", "--limit", "0.03", "--json")


@pytest.mark.slow
def test_an_audit_without_a_compiler_is_the_same(tmp_path) -> None:
    rng = np.random.default_rng(0)
    n = 1500
    p, x = rng.beta(2, 5, n).round(4), rng.normal(size=n).round(3)
    y = (rng.uniform(size=n) < np.clip(p + 0.05 * (x > 1), 0, 1)).astype(int)
    log = tmp_path / "log.csv"
    pyarrow.csv.write_csv(pa.table({"y": y, "p": p, "x": x, "sex": rng.choice(list("fm"), n)}), log)
    reported = {}
    for kernels in ("", "plain"):
        run = subprocess.run(
            [sys.executable, "-m", "calibrant", "audit", str(log), *AUDIT],
            env={**os.environ, "CALIBRANT_KERNELS": kernels},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode in (0, 1, 3), run.stderr
        reported[kernels] = json.loads(run.stdout)
    assert "numba" in reported[""].pop("versions")
    assert "numba" not in reported["plain"].pop("versions")
    assert reported[""] == reported["plain"]


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.interpreted.cache_clear()
    monkeypatch.setenv("CALIBRANT_KERNELS", "fast")
    with pytest.raises(cal.BadInput, match="CALIBRANT_KERNELS='fast'"):
        runtime.interpreted()
    runtime.interpreted.cache_clear()
