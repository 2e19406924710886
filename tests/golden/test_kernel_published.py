"""The published kernel test against its authors' program (golden/A_klce)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.papers import published_local_test

EVENTS = [
    f"{kind}_{setting}"
    for kind in ("null", "miscal")
    for setting in ("w0.1_gamma0.5", "w0.1_gamma25.0", "w0.2_gamma1.0")
]


@pytest.fixture(scope="module")
def golden(shared: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shared / "golden/A_klce/elce2_golden.json").read_text())
    for kind in ("null", "miscal"):
        x0, x1, p, y = np.loadtxt(shared / f"golden/A_klce/input_{kind}_n300.csv", delimiter=",", skiprows=1).T
        found[kind] = cal.predictions(y, p, {"x0": x0, "x1": x1})
    return found


@pytest.mark.parametrize("case", EVENTS)
def test_the_authors_statistic_normalisation_and_permutation(golden: dict[str, Any], case: str) -> None:
    reported, data = golden[case], golden[case.split("_")[0]]
    setting: dict[str, Any] = {"score_width": reported["prob_kernel_width"], "covariate_gamma": reported["l_gamma"]}
    o = published_local_test(
        data,
        draws=reported["n_perm"],
        null="permuted",
        seed=reported["rs"],
        normalisation="code",
        **setting,
    )
    close: Any = lambda v: pytest.approx(v, rel=1e-9, abs=1e-12)  # noqa: E731
    assert o.parts["sum"] == close(reported["raw_sum_offdiag"])
    assert o.parts["kernel_sum"] == close(reported["kite_normalization"])
    assert o.statistic == o.parts["code"] == close(reported["klce2_kite"])
    assert o.parts["paper"] == close(reported["klce2_paper_n_n1"])
    assert o.p_value == reported["pvalue_kite_centered"]
    assert o.parts["p_plain"] == reported["pvalue_uncentered"]
    assert o.parts["null_mean"] == close(reported["perm_null_mean_raw"])
    assert o.parts["null_sd"] == close(reported["perm_null_sd_raw"])
    quantiles = (np.array(o.parts["null_quantiles"]) - o.parts["null_mean"]) / reported["kite_normalization"]
    assert quantiles == close(reported["perm_null_kite_q"])
    paper = published_local_test(data, draws=19, **setting)
    assert paper.statistic == close(reported["klce2_paper_n_n1"])
