"""The paper's conclusion on the American Housing Survey: calibrating the score does not calibrate locally."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import calibrant as cal

pytestmark = pytest.mark.slow
NAMES = ("HHSEX", "METRO", "HHGRAD", "HHMAR", "HHCITSHP", "HHAGE", "NUMPEOPLE", "DIVISION", "HINCP", "BLACK")


@pytest.fixture(scope="module")
def homes(shared: Any) -> tuple[Any, Any, Any]:
    table = pq.read_table(shared / "data/ahs_2019.parquet")
    x = np.column_stack([table[c].to_numpy().astype(float) for c in NAMES])
    return x, table["OWNER"].to_numpy().astype(int), np.random.default_rng(2019).permutation(len(x)) % 3


def recalibrated(how: str, scores: Any, y: Any, new: Any) -> Any:
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    if how == "isotonic":
        return IsotonicRegression(out_of_bounds="clip", y_min=0.002, y_max=0.998).fit(scores, y).predict(new)
    old, later = (np.log(v / (1 - v))[:, None] for v in (scores, new))
    return LogisticRegression(C=1e6).fit(old, y).predict_proba(later)[:, 1]


@pytest.mark.parametrize("how", ["as trained", "Platt", "isotonic"])
@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_a_calibrated_score_is_not_local_calibration(homes: tuple[Any, Any, Any], name: str, how: str) -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    x, y, part = homes
    seen = x[:, :8]  # all but income and race
    scaled = (seen - seen.mean(axis=0)) / seen.std(axis=0)
    forest = RandomForestClassifier(40, min_samples_leaf=20, random_state=0)
    model = LogisticRegression(max_iter=1000) if name == "logistic" else forest
    model.fit(scaled[part == 0], y[part == 0])
    scores = [model.predict_proba(scaled[part == k])[:, 1].clip(1e-4, 1 - 1e-4) for k in (1, 2)]
    p = scores[1] if how == "as trained" else recalibrated(how, scores[0], y[part == 1], scores[1])
    race = np.where(x[part == 2, 9] > 0, "Black", "other")
    held = cal.predictions(y[part == 2], p, {"income": x[part == 2, 8], "race": race})
    local = cal.detect.local_calibration_test(held, draws=499)
    adjusted = dict(zip(local.parts["variables"], local.parts["variable_adjusted_p"], strict=True))
    assert local.p_value == 0.002
    assert adjusted["income"] == adjusted["race"] == 0.002
    assert cal.measure.ece(held).value < 0.03
