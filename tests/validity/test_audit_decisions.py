"""All certified ranges that an audit tells of decisions hold together."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.checks.decisions import RATES
from validity.acceptance import count, refuted

ALPHA, THRESHOLDS = 0.4, (0.2, 0.4)  # at a level that is missed often enough to be seen
RUNS = [30, pytest.param(200, marks=pytest.mark.nightly)]
VALUES, RATES_OF_VALUES = np.arange(1, 10) / 10, np.array([0.2, 0.2, 0.4, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8])
REPORTS = ("wrong", "missed", "net_benefit", "over_all", "regret")


def truth(t: float) -> dict[str, float]:
    """Of nine values that are equally frequent."""
    on = t <= VALUES
    worse = np.where(on, np.maximum(t - RATES_OF_VALUES, 0.0), np.maximum(RATES_OF_VALUES - t, 0.0)).mean() / (1.0 - t)
    worth = RATES_OF_VALUES - (1.0 - RATES_OF_VALUES) * t / (1.0 - t)
    gains = {"net_benefit": (worth * on).mean(), "over_all": -(worth * ~on).mean()}
    return {"wrong": 1.0 - RATES_OF_VALUES[on].mean(), "missed": RATES_OF_VALUES[~on].mean(), **gains, "regret": worse}


def true_rates(t: float) -> dict[str, float]:
    """The rates of the same nine values."""
    on = t <= VALUES
    events, non_events = RATES_OF_VALUES.sum(), (1.0 - RATES_OF_VALUES).sum()
    result = (
        on.mean(),
        RATES_OF_VALUES[on].sum() / events,
        (1.0 - RATES_OF_VALUES)[on].sum() / non_events,
        RATES_OF_VALUES[on].mean(),
    )
    return dict(zip(RATES, result, strict=True))


def audited(seed: int, clusters: int = 0) -> cal.AuditRecord:
    """An audit of two groups of `clusters`, or of eight groups of rows, in which nothing differs between groups."""
    rng = np.random.default_rng([0x7E59, seed])
    n = clusters or 3000
    at, group = rng.integers(0, 9, n), rng.integers(0, 2 if clusters else 8, n)
    y = (rng.uniform(size=n) < RATES_OF_VALUES[at]).astype(int)
    data = {"y": y, "p": VALUES[at], "g": np.array(list("abcdefgh"))[group], "unit": np.arange(n)}
    how = {"label": "y", "score": "p", "by": "g", "variables": None, "quick": True, "alpha": ALPHA}
    if clusters:
        data, how["cluster"] = {k: np.repeat(v, 3) for k, v in data.items()}, "unit"
    return cal.audit(data, threshold=THRESHOLDS, **how)


def missed(seed: int, clusters: int = 0) -> bool:
    """Tell whether any range misses; `clusters` have three rows of one kind and fate each."""
    c = audited(seed, clusters).curve("decisions").columns
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


def rates_missed(seed: int, clusters: int = 0) -> tuple[bool, bool, bool]:
    """Whether any certified range of a rate misses, any interval of one rate of groups, any range of differences."""
    record = audited(seed, clusters)
    c, d = record.curve("rates").columns, record.curve("rate_differences").columns
    truth = [true_rates(t)[rate] for t, rate in zip(c["threshold"], c["rate"], strict=True)]
    out = [
        not a - 1e-9 <= v <= b + 1e-9 for v, a, b in zip(truth, c["guaranteed_low"], c["guaranteed_high"], strict=True)
    ]
    one = [r == "true_positive_rate" and t == THRESHOLDS[0] for r, t in zip(c["rate"], c["threshold"], strict=True)]
    groups = [chosen and bool(name) for chosen, name in zip(one, c["variable"], strict=True)]
    ordinary = [not a <= v <= b for v, a, b, g in zip(truth, c["low"], c["high"], groups, strict=True) if g]
    apart = any(v > 0.0 for v in d["guaranteed_low"]) or any(v < 1.0 for v in d["guaranteed_ratio_high"])
    return any(out), any(ordinary), apart


@pytest.mark.parametrize("clusters", [0, 700])
@pytest.mark.parametrize("runs", RUNS)
def test_ranges_of_rates_hold_together(runs: int, clusters: int) -> None:
    """Certified ranges of all rates, intervals of one rate over groups, and that groups alike are not shown apart."""
    misses = np.array([rates_missed(seed, clusters) for seed in range(runs)]).sum(axis=0)
    assert not any(refuted(int(k), runs, ALPHA) for k in misses)
