"""The judge of repairs keeps its error rate: verdicts by simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

import calibrant as cal
from calibrant.repair.fitted import fitted_on, overlap
from calibrant.repair.judge.evaluate import SHARES
from calibrant.repair.judge.evidence import bins_along, group_changes, groups_of, score_changes, variable_changes
from calibrant.repair.judge.rows import LOSSES, Judged, Judging, fits_of
from calibrant.repair.judge.verdict import AS_AUDITED
from calibrant.stats.betting import Clusters, mean_limits
from validity.acceptance import SETS, check

REPAIRS = {"Platt": cal.repair.Platt(), "Isotonic": cal.repair.Isotonic()}
ALPHA = 0.2
SLACK = 1e-9


# ---- limits ----


DESIGNS = {
    "coins": (np.full(8, -0.5), np.full(8, 0.5), np.full(8, 0.5)),
    "rare": (np.full(8, -0.1), np.full(8, 0.9), np.full(8, 0.1)),
    "one heavy row": (np.r_[np.full(7, -0.05), -1.0], np.r_[np.full(7, 0.05), 3.0], np.r_[np.full(7, 0.5), 0.2]),
    "all sure": (np.full(8, -0.2), np.full(8, 0.8), np.full(8, 0.999)),
    "mixed": (np.linspace(-1, 0, 8), np.linspace(1, -0.5, 8), np.linspace(0.05, 0.9, 8)),
}


def test_limits_close_in_on_the_mean() -> None:
    rng = np.random.default_rng(77)
    p = rng.uniform(size=50_000)
    y = (rng.uniform(size=50_000) < p).astype(np.int8)
    low, high = mean_limits(Clusters.of_values(y, p, (-p, 1 - p), np.ones(50_000)), 0.05)
    assert high - low < 2 * 1.7 * 1.96 * np.sqrt((p * (1 - p)).mean() / 50_000)


# ---- the verdicts, by simulation ----


def bent(p: Any) -> Any:
    return np.clip(p + 0.1 * np.sin(6.0 * p), 0.01, 0.99)


def drawn(seed: int, n: int, rate: Any = None) -> tuple[Any, Any]:
    """Return predictions and the event rates behind them; calibrated without `rate`."""
    rng = np.random.default_rng([0xBEEF, seed])
    p = rng.uniform(0.02, 0.98, n)
    side = {"sex": np.array(["f", "m"])[rng.integers(0, 2, n)], "age": rng.integers(20, 80, n).astype(float)}
    true = p if rate is None else rate(p)
    return cal.predictions(rng.uniform(size=n) < true, p, side), true


def statements_missed(seed: int, n: int, rate: Any, folds: int) -> bool:
    """Tell whether any range of any paired statement misses its truth."""
    data, true = drawn(seed, n, rate)
    judged = fits_of(data, Judging(repairs=REPAIRS, folds=folds)).judged
    place = {float(p): float(t) for p, t in zip(data.p, true, strict=True)}
    eta = np.array([place[float(p)] for p in judged.data.p])
    for one in score_changes(judged, ALPHA * SHARES["scores"])[0]:
        loss = LOSSES[one.measure]
        before, after = loss(judged.scores[AS_AUDITED]), loss(judged.scores[one.probability])
        change = float(((after[0] - before[0]) * (1 - eta) + (after[1] - before[1]) * eta).mean())
        change = -change if one.measure == "accuracy" else change
        if not one.change_low - SLACK <= change <= one.change_high + SLACK:
            return True
    groups = groups_of(judged.data, ("sex",), {}, 20, 0)
    for i, of in enumerate(group_changes(judged, groups, ALPHA * SHARES["groups"])):
        at = groups.people[i % len(groups.people)].rows
        gap, moved = (
            float((eta - judged.data.p)[at].mean()),
            float((judged.scores[of.probability] - judged.data.p)[at].mean()),
        )
        if not of.change_low - SLACK <= abs(gap - moved) - abs(gap) <= of.change_high + SLACK:
            return True
    bin_ = bins_along(judged, "age")
    for by_variable in variable_changes(judged, ("age",), ALPHA * SHARES["variables"], 0)[1:]:
        change = sum(
            share * squared(eta[at] - judged.scores[by_variable.probability][at], eta[at] - judged.data.p[at], bin_[at])
            for at, share in judged.each_fold()
        )
        if not by_variable.change_low - SLACK <= change <= by_variable.change_high + SLACK:
            return True
    return False


def squared(after: Any, before: Any, bin_: Any) -> float:
    rows = np.maximum(np.bincount(bin_), 1)
    mean = [np.bincount(bin_, r) / rows for r in (after, before)]
    return float((rows / len(bin_) * (mean[0] ** 2 - mean[1] ** 2)).sum())


@pytest.mark.parametrize(("rate", "folds"), [(None, 0), (bent, 0), (None, 3)])
def test_all_paired_statements_hold_together(rate: Any, folds: int) -> None:
    check(lambda r: statements_missed(r, 600, rate, folds), 400, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize(("rate", "folds"), [(None, 0), (bent, 0), (None, 3), (bent, 5)])
@pytest.mark.parametrize("n", [100, 2000])
def test_all_paired_statements_hold_together_in_depth(rate: Any, folds: int, n: int) -> None:
    check(lambda r: statements_missed(10_000 + r, n, rate, folds), 300, ALPHA)


def called_better(seed: int, n: int) -> bool:
    data, _ = drawn(50_000 + seed, n)
    found = cal.repair.evaluate(data, repairs=REPAIRS, by="sex", alpha=ALPHA, tests=(), certify_groups=False)
    return any(v["better"] for v in found.verdicts.values())


def test_no_repair_of_a_calibrated_score_is_called_better() -> None:
    check(lambda r: called_better(r, 400), SETS, ALPHA)


@pytest.mark.nightly
def test_no_repair_of_a_calibrated_score_is_called_better_in_depth() -> None:
    check(lambda r: called_better(r, 3000), 300, ALPHA)


# ---- ordinary intervals of paired changes, by which a repair may be recommended where no guarantee does ----


def paired_rows(seed: int, n: int, clusters: int = 0) -> tuple[Judged, float]:
    """Rows with a fixed map of the score, and the change of the Brier score to expect of all rows like these."""
    rng = np.random.default_rng([0xFACADE, seed, n])
    size, cluster = n, None
    if clusters:
        size = clusters
        cluster = np.sort(rng.integers(0, clusters, n))
    p = rng.uniform(0.05, 0.95, size)[cluster if clusters else slice(None)]
    true = np.clip(p + 0.1 * np.sin(6.0 * p), 0.01, 0.99)
    u = rng.uniform(size=size)[cluster if clusters else slice(None)]  # rows of one cluster share their outcome
    grid = np.linspace(0.05, 0.95, 20_001)
    rate = np.clip(grid + 0.1 * np.sin(6.0 * grid), 0.01, 0.99)
    change = float((raised(grid) ** 2 - grid**2 - 2.0 * (raised(grid) - grid) * rate).mean())
    data = cal.predictions((u < true).astype(np.int8), p, cluster=cluster)
    return Judged.of(data, {AS_AUDITED: p, "raised": raised(p)}, np.zeros(n, dtype=np.int64)), change


def raised(p: Any) -> Any:
    return np.clip(p + 0.06, 0.0, 1.0)


def interval_missed(seed: int, n: int, clusters: int) -> bool:
    judged, change = paired_rows(seed, n, clusters)
    _, low, high = judged.paired("brier", "raised", AS_AUDITED, 0.05)
    return not low <= change <= high


@pytest.mark.parametrize(("n", "clusters"), [(100, 0), (2000, 0), (800, 100)])
def test_ordinary_intervals_of_a_paired_change_cover_what_they_say(n: int, clusters: int) -> None:
    """Of large samples: 93 to 97 % of 1,000 sets, and the sampling error of their number."""
    missed = sum(interval_missed(r, n, clusters) for r in range(1000))
    assert 0.03 - 3 * 0.0054 < missed / 1000 < 0.07 + 3 * 0.008, missed


def test_an_ordinary_interval_is_that_of_cluster_totals() -> None:
    judged, _ = paired_rows(1, 60, 12)
    y, p, cluster = judged.data.y, judged.data.p, judged.data.cluster
    d = (y - raised(p)) ** 2 - (y - p) ** 2
    totals = [float((d - d.mean())[cluster == c].sum()) for c in np.unique(cluster)]
    m = len(totals)
    error = (m / (m - 1) * sum(t * t for t in totals)) ** 0.5 / 60
    mean, low, high = judged.paired("brier", "raised", AS_AUDITED, 0.1)
    half = error * float(student.ppf(0.95, m - 1))
    assert (mean, low, high) == pytest.approx((d.mean(), d.mean() - half, d.mean() + half))
    one = Judged.of(replace(judged.data, cluster=np.zeros(60, dtype=np.int64), cache={}), judged.scores, judged.part)
    assert one.paired("brier", "raised", AS_AUDITED, 0.1)[1:] == (-np.inf, np.inf)  # one cluster shows nothing


def recommended_wrongly(seed: int, n: int) -> bool:
    data, _ = drawn(70_000 + seed, n)
    found = cal.repair.evaluate(data, repairs=REPAIRS, by="sex", alpha=ALPHA, tests=(), certify_groups=False)
    return found.recommended != AS_AUDITED


def test_no_repair_of_a_calibrated_score_is_recommended_by_estimates() -> None:
    check(lambda r: recommended_wrongly(r, 300), 100, ALPHA)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [120, 3000])
def test_no_repair_of_a_calibrated_score_is_recommended_by_estimates_in_depth(n: int) -> None:
    check(lambda r: recommended_wrongly(r, n), 400, ALPHA)


def recommended_among_groups_of_few_events(seed: int, groups: int = 30, rows: int = 100) -> bool:
    """Calibrated scores of 2 % on the average, half of whose rows judge: one event expected in each group."""
    rng = np.random.default_rng([0x2002, seed])
    p = 0.02 * np.exp(rng.normal(-0.005, 0.1, groups * rows))
    site = np.repeat([f"site {i}" for i in range(groups)], rows)
    data = cal.predictions(rng.uniform(size=len(p)) < p, p, {"site": site})
    found = cal.repair.evaluate(data, repairs=REPAIRS, by="site", variables=(), tests=(), certify_groups=False)
    return found.settings["basis"] == "estimated"


@pytest.mark.slow
def test_groups_of_few_events_recommend_no_repair_of_a_calibrated_score() -> None:
    check(recommended_among_groups_of_few_events, 60, 0.05)


@pytest.mark.nightly
def test_groups_of_few_events_recommend_no_repair_of_a_calibrated_score_in_depth() -> None:
    check(lambda r: recommended_among_groups_of_few_events(10_000 + r), 400, 0.05)


# ---- rows of the fit: found where they are, and not where they are not ----


@pytest.mark.parametrize("values", [None, 20_000, 3000, 500, 50, 7, 2])
def test_other_rows_are_not_taken_for_the_rows_of_a_fit(values: int | None) -> None:
    for seed in range(40):
        rng = np.random.default_rng([0xFADE, seed])
        p = rng.uniform(size=4000) if values is None else rng.integers(0, values, 4000) / values
        y = rng.uniform(size=4000) < p
        one, other = cal.predictions(y[:1500], p[:1500]), cal.predictions(y[1500:], p[1500:])
        assert not overlap(fitted_on(one), other)
        assert not overlap(fitted_on(other), one)


@pytest.mark.parametrize(
    ("values", "first", "last"),
    [(None, 0, 1500), (None, 0, 400), (None, 1300, 4000), (20_000, 0, 1500), (20_000, 0, 1000), (20_000, 400, 4000)],
)
def test_rows_of_a_fit_are_found_among_others(values: int | None, first: int, last: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng([0xFEED, seed])
        p = rng.uniform(size=4000) if values is None else rng.integers(0, values, 4000) / values
        y = rng.uniform(size=4000) < p
        fitted = fitted_on(cal.predictions(y[:1500], p[:1500]))
        assert overlap(fitted, cal.predictions(y[first:last], p[first:last]))
