"""Sample sizes of external validation against a program not written here.

`data/rows_needed.json` holds what `pmvalsampsize` (version inside) by Whittle and Ensor returned: rows for O/E, the
calibration slope and the C statistic (Riley et al. 2021, doi:10.1002/sim.9025). It draws a million scores, and searches
the standard error of O/E in steps of 0.0001: hence the tolerances. 905 and 4,252 are also what the tests of its R
package have for a prevalence of 0.018 and a C statistic of 0.8.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, ndtri

import calibrant as cal

THEIRS = json.loads((Path(__file__).parent / "data/rows_needed.json").read_text(encoding="utf-8"))
NAMES = ("observed_expected", "calibration_slope", "auroc")


@pytest.mark.parametrize("case", THEIRS["cases"], ids=lambda c: f"prevalence {c['settings']['prevalence']}")
def test_rows_are_those_of_pmvalsampsize(case):
    s = case["settings"]
    widths = dict(zip(NAMES, (s["oeciwidth"], s["csciwidth"], s["cstatciwidth"]), strict=True))
    scores = {"beta": s["lpbeta"]} if "lpbeta" in s else {"data": normal(*s["lpnormal"])}
    plan = cal.measure.rows_needed(widths, rate=s["prevalence"], expected_auroc=s["cstatistic"], **scores)
    ours = [plan.settings["rows"][name] for name in NAMES]
    assert ours == pytest.approx(case["rows"], rel=0.004)
    assert ours[2] == case["rows"][2]  # nothing of it is drawn
    assert plan.value == max(ours)


def normal(mean, sd):
    """Scores whose logits are normal, at the quantiles."""
    p = expit(mean + sd * ndtri((np.arange(5_000) + 0.5) / 5_000))
    return cal.predictions(np.arange(len(p)) % 2, p)
