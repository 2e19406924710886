"""ICI and the smooth curve by a horizon: what is computed by hand, what the curve covers, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.stats.missing.survival import Cohort, fit, splines

H = 365.0


def rows(n: int = 800, off: float = 1.0, seed: int = 0) -> cal.Predictions:
    rng = np.random.default_rng(seed)
    scale = rng.uniform(300.0, 2000.0, n)
    event, end = rng.exponential(scale), rng.exponential(1200.0, n)
    log = {"t": np.minimum(event, end), "e": event <= end, "p": 1.0 - np.exp(-off * H / scale)}
    return cal.at_horizon(log, score="p", time="t", event="e", horizon=H, way="weights")


def test_two_rows_have_coxs_model_by_hand() -> None:
    """Of two equal groups, events at 1 (x = 1), 2 (x = 0), 3 (x = 1), 4 (x = 0): the score is zero at the root."""
    x = np.array([1.0, 0.0, 1.0, 0.0])
    made = fit(Cohort.of(np.arange(1.0, 5.0), np.ones(4, dtype=np.int8), x[:, None]), 2.0)
    r = float(np.exp(made.beta[0]))
    assert 2.0 - (2 * r / (2 * r + 2) + r / (r + 2) + r / (r + 1)) == pytest.approx(0.0, abs=1e-9)
    assert made.hazard == pytest.approx(1.0 / (2 * r + 2) + 1.0 / (r + 2))


def test_splines_are_linear_beyond_the_outer_knots() -> None:
    for z in (np.array([-9.0, -8.0, -7.0]), np.array([7.0, 8.0, 9.0])):
        for column in splines(z, np.array([-1.0, 0.0, 0.5, 1.0])).T:
            assert np.diff(column, 2) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_a_score_that_is_too_high_is_off_by_its_excess() -> None:
    right, high = (cal.measure.integrated_calibration_index(rows(off=off)) for off in (1.0, 2.0))
    assert right.value < 0.03
    off = np.abs(
        (1.0 - np.exp(-2 * H / np.linspace(300, 2000, 999))) - (1.0 - np.exp(-H / np.linspace(300, 2000, 999)))
    )
    assert high.value == pytest.approx(off.mean(), abs=0.03)
    assert high.interval.low <= high.value <= high.interval.high
    assert high.settings["e50"] <= high.settings["e90"] <= high.settings["emax"]
    curve = cal.diagnose.curve_by_horizon(rows(off=2.0), grid=9).columns
    assert all(h < 0.0 for h in curve["high"][2:-2])
    assert all(low <= gap <= high for low, gap, high in zip(curve["low"], curve["gap"], curve["high"], strict=True))


def rivals(n: int = 800, off: float = 1.0, seed: int = 0) -> tuple[cal.Predictions, np.ndarray, np.ndarray]:
    """Exponential times of the event and of a competing one as likely: rows, scores and the true absolute risk."""
    rng = np.random.default_rng(seed)
    rate = rng.uniform(1 / 2000.0, 1 / 300.0, n)
    event, other, end = rng.exponential(1 / rate), rng.exponential(600.0, n), rng.exponential(1200.0, n)
    truth = rate / (rate + 1 / 600.0) * (1.0 - np.exp(-(rate + 1 / 600.0) * H))
    first = np.minimum(event, other)
    kind = np.where(end < first, 0, np.where(event <= other, 1, 2))
    log = {"t": np.minimum(first, end), "e": kind, "p": 1.0 - (1.0 - truth) ** off}
    made = cal.at_horizon(log, score="p", time="t", event="e", horizon=H, competing="2", way="weights")
    return made, log["p"], truth


@pytest.mark.slow
@pytest.mark.parametrize("off", [1.0, 2.0])
def test_with_competing_events_the_index_is_of_the_absolute_risk(off: float) -> None:
    made, p, truth = rivals(6000, off)
    found = cal.measure.integrated_calibration_index(made)
    assert found.value == pytest.approx(np.abs(truth - p).mean(), abs=0.02)
    curve = cal.diagnose.curve_by_horizon(made, grid=9).columns
    true = np.interp(curve["x"], np.sort(p), np.sort(truth)) - np.array(curve["x"])
    assert all(
        low - 0.01 <= gap <= high + 0.01 for low, gap, high in zip(curve["low"], true, curve["high"], strict=True)
    )
    lost = cal.at_horizon(
        {"t": [1.0, 2.0, 3.0, 5.0] * 30, "e": [1, 2, 0, 0] * 30, "p": np.linspace(0.1, 0.9, 120)},
        score="p", time="t", event="e", horizon=4, competing="2", way="weights",
    )  # fmt: skip
    assert cal.measure.integrated_calibration_index(lost).settings["smoother"].startswith("Fine and Gray's model")


@pytest.mark.slow
def test_the_band_holds_the_line_of_a_calibrated_score() -> None:
    def misses(seed: int) -> bool:
        c = cal.diagnose.curve_by_horizon(rows(400, seed=seed), grid=7, alpha=0.1, seed=seed).columns
        return not all(low <= 0.0 <= high for low, high in zip(c["low"], c["high"], strict=True))

    assert sum(misses(seed) for seed in range(30)) <= 10  # at most 0.1 each: more than 10 has probability below 1e-4


def test_what_no_curve_runs_through_is_refused() -> None:
    some = rows(60)
    for knots in (2, 6):
        with pytest.raises(cal.BadInput, match="knots"):
            cal.measure.integrated_calibration_index(some, knots=knots)
    log = {"t": [1.0, 2.0, 3.0] * 20, "p": np.linspace(0.1, 0.9, 60)}
    one = cal.at_horizon(
        {**log, "e": [1, 0, 0] * 20, "p": [0.4] * 60}, score="p", time="t", event="e", horizon=4, way="weights"
    )
    with pytest.raises(cal.NotComputable, match="all scores are equal"):
        cal.diagnose.curve_by_horizon(one)
    few = cal.at_horizon({**log, "e": [1] + [0] * 59}, score="p", time="t", event="e", horizon=4, way="weights")
    with pytest.raises(cal.NotComputable, match="at least 10 events"):
        cal.measure.integrated_calibration_index(few)
    with pytest.raises(cal.NotComputable, match="no follow-up"):
        cal.measure.integrated_calibration_index([0, 1], [0.2, 0.3])


@pytest.mark.parametrize("more", ["cluster", "weights"])
def test_rows_that_depend_or_do_not_count_alike_are_refused(more: str) -> None:
    some = replace(rows(60), **{more: np.ones(60, dtype=np.int64)})
    for of in (cal.measure.integrated_calibration_index, cal.diagnose.curve_by_horizon):
        with pytest.raises(cal.NotComputable, match=f"leave {more}= out"):
            of(some)
