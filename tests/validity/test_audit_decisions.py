"""All certified ranges that an audit tells of decisions hold together."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from validity.acceptance import count, refuted

ALPHA, THRESHOLDS = 0.4, (0.2, 0.4)  # at a level that is missed often enough to be seen
RUNS = [30, pytest.param(200, marks=pytest.mark.nightly)]
VALUES, RATES = np.arange(1, 10) / 10, np.array([0.2, 0.2, 0.4, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8])
REPORTS = ("wrong", "missed", "net_benefit", "over_all", "regret")


def truth(t: float) -> dict[str, float]:
    """Of nine values that are equally frequent."""
    on = t <= VALUES
    worse = np.where(on, np.maximum(t - RATES, 0.0), np.maximum(RATES - t, 0.0)).mean() / (1.0 - t)
    worth = RATES - (1.0 - RATES) * t / (1.0 - t)
    gains = {"net_benefit": (worth * on).mean(), "over_all": -(worth * ~on).mean()}
    return {"wrong": 1.0 - RATES[on].mean(), "missed": RATES[~on].mean(), **gains, "regret": worse}


def missed(seed: int, clusters: int = 0) -> bool:
    """Tell whether any range misses; `clusters` have three rows of one kind and fate each."""
    rng = np.random.default_rng([0x7E59, seed])
    n = clusters or 3000
    at, group = rng.integers(0, 9, n), rng.integers(0, 2 if clusters else 8, n)
    y = (rng.uniform(size=n) < RATES[at]).astype(int)
    data = {"y": y, "p": VALUES[at], "g": np.array(list("abcdefgh"))[group], "unit": np.arange(n)}
    how = {"label": "y", "score": "p", "by": "g", "variables": None, "quick": True, "alpha": ALPHA}
    if clusters:
        data, how["cluster"] = {k: np.repeat(v, 3) for k, v in data.items()}, "unit"
    record = cal.audit(data, threshold=THRESHOLDS, **how)
    c = record.curve("decisions").columns
    assert len(c["group"]) == (6 if clusters else 18)
    return any(
        not c[f"{k}_low"][i] - 1e-8 <= truth(t)[k] <= c[f"{k}_high"][i] + 1e-8
        for i, t in enumerate(c["threshold"])
        for k in REPORTS
    )


@pytest.mark.parametrize("runs", RUNS)
def test_all_ranges_hold_together(runs: int) -> None:
    assert not refuted(count(missed, runs), runs, ALPHA)


@pytest.mark.parametrize("runs", RUNS)
def test_all_ranges_hold_together_of_units(runs: int) -> None:
    assert not refuted(count(lambda seed: missed(seed, 700), runs), runs, ALPHA)
