"""The authors' statistics, with the predicted residuals given, so that nothing is fitted and nothing is random."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest

from calibrant.stats.cusum import Boundary, observed, path

SIDES = {"greater": "one_sided_greater=True", "less": "one_sided_greater=False", "two-sided": "two_sided"}


@pytest.fixture(scope="module")
def given(shared: Any) -> Any:
    table = np.genfromtxt(shared / "golden/C_cusum/stat_input_n400.csv", delimiter=",", names=True)
    with gzip.open(shared / "golden/C_cusum/stat_uniforms_200x400.csv.gz", "rt") as file:
        uniforms = np.loadtxt(file, delimiter=",", skiprows=1)
    return table, uniforms, json.loads((shared / "golden/C_cusum/stat_golden.json").read_text())


def paths_of(table: Any, alternative: Any, tolerance: float) -> tuple[Any, Any]:
    """One-sided golden values take the residual predictions as they are; two-sided ones take the tolerance off."""
    edge = Boundary.of(table["p"], tolerance)
    models = [table[name] for name in ("g0", "g1", "g2_allneg")]
    lift = {"greater": tolerance, "less": -tolerance, "two-sided": 0.0}[alternative]
    return [path(g + lift, edge, alternative, "authors") for g in models], edge


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
@pytest.mark.parametrize("alternative", SIDES)
def test_the_statistic_is_that_of_the_authors_program(given: Any, alternative: str, tolerance: float) -> None:
    table, uniforms, golden = given
    wanted = golden[f"{SIDES[alternative]}_tol={tolerance}"]
    paths, edge = paths_of(table, alternative, tolerance)
    found = observed(paths, table["y"], "authors")
    assert found.max() == pytest.approx(wanted["max_gval"]["stat"], abs=1e-6)
    assert found.argmax() == wanted["max_gval"]["model"]
    last = [q.curve(table["y"])[-1] for q in paths if q.scale.any()]
    assert max(last) == pytest.approx(wanted["last_gval"]["stat"], abs=1e-6)
    null = []
    for u in uniforms:
        up, down = u < edge.high, u < edge.low
        null.append(max(np.nanmax(q.curve(np.where(_upper(q, len(u)), up, down))) for q in paths if q.scale.any()))
    assert np.quantile(null, 0.9) == pytest.approx(wanted["max_gval"]["null_q90"], abs=1e-6)
    assert np.mean(np.array(null) >= found.max()) == pytest.approx(wanted["max_gval"]["pval"], abs=1e-9)


def _upper(q: Any, n: int) -> Any:
    out = np.zeros(n, dtype=bool)
    out[q.rows] = q.upper
    return out
